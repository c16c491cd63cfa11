"""Learn the variances of a Kalman filter by likelihood: a thing that moves, and the Nile.

    python examples/kalman_filter.py [--steps 40] [--seed 0] [--into nile.png]

The filter is a geon.scan over time: what is known of a state, a mean and a covariance, moves on,
and each observation makes it more certain. How likely each observation was is the likelihood of the
whole, and L-BFGS climbs it through the scan by the logarithms of the variances. The update is by
the Cholesky factor of the covariance of what is seen; the scan is one kernel.

First 20 made walks, whose state is a place and a speed and of which places are seen: it prints the
variances that made them and those found. Then the flow of the Nile at Aswan in 1871 to 1970, in
10^8 cubic metres a year (G. Cobb, "The problem of the Nile", 1978), as a level that wanders: J.
Durbin and S. Koopman, "Time series analysis by state space methods", 2001, find the variances 15099
of the flow and 1469.1 of the level. It draws the level that the filter knows.
"""

import argparse
from collections.abc import Sequence
from pathlib import Path

import numpy as np

import geon
from geon import linalg
from geon.frontends import neon

NILE = """1120 1160 963 1210 1160 1160 813 1230 1370 1140 995 935 1110 994 1020 960 1180 799 958
1140 1100 1210 1150 1250 1260 1220 1030 1100 774 840 874 694 940 833 701 916 692 1020 1050 969 831
726 456 824 702 1120 1100 832 764 821 768 845 864 862 698 845 744 796 1040 759 781 865 845 944 984
897 822 1010 771 676 649 846 812 742 801 1040 860 874 848 890 744 749 838 1050 918 986 797 923 975
815 1020 906 901 1170 912 746 919 718 714 740"""
FLOWS = np.array([float(each) for each in NILE.split()])

N, T = geon.Axis("N"), geon.Axis("T")  # series, and time
SEEN = geon.Axis("seen", 1)  # parts of an observation
ALSO = SEEN.prime
VARIANCE = geon.Axis("variance", 2)  # of what is seen, and of how the last part of the state moves
MADE = np.array([4.0, 0.01])  # of the walks


Known = tuple[geon.Tensor, ...]


class Filter:
    """A Kalman filter whose state goes over ``state``, of which the first part is seen.

    ``move`` is the matrix of a step, new state by old state. The first state is known but vaguely,
    with the variance ``vague``. R. Kalman, "A new approach to linear filtering", 1960.
    """

    def __init__(self, move: list[list[float]], first: Sequence[float], vague: float) -> None:
        state = self.state = geon.Axis("state", len(move))
        other = self.other = state.prime
        self.move = geon.constant(move, [state, other], "float64")
        same = np.eye(len(move))
        self.look = geon.constant(same[:1], [SEEN, state], "float64")
        self.last = geon.constant(np.diag(same[-1]), [state, other], "float64")
        y = geon.placeholder([N, T], "float64", name="y")
        self.logs = geon.Variable([VARIANCE], "float64", initial_value=np.log(first), name="logs")
        self.variances = geon.exp(self.logs)
        mean = geon.broadcast(geon.constant(0, (), "float64"), [N, state])
        begin = (mean, geon.constant(vague * same, [state, other], "float64"))
        _, (likely, level, spread) = geon.scan(self.step, begin, y, over=T)
        cost = -geon.mean(likely)  # each observation counts the same
        self.transformer = geon.make_transformer()
        self.climb = self.transformer.computation([cost, neon.LBFGS()(cost)], y)
        self.found = self.transformer.computation([self.variances, geon.sum(likely)], y)
        self.levels = self.transformer.computation([level, spread], y)

    def times(self, a: geon.Tensor, b: geon.Tensor) -> geon.Tensor:
        """The product of two matrices over (state, state')."""
        inner = self.other.prime
        return geon.dot(a.rename({self.other: inner}), b.rename({self.state: inner}), over=inner)

    def turned(self, a: geon.Tensor) -> geon.Tensor:
        """A matrix whose rows were its columns."""
        return a.rename({self.state: self.other, self.other: self.state})

    def step(self, known: Known, y: geon.Tensor) -> tuple[Known, Known]:
        """What is known of the next state, and how likely the observation was, in nats."""
        mean, covariance = known
        first, other = {self.state: 0}, {self.other: 0}
        also = self.look.rename({self.state: self.other, SEEN: ALSO})
        cross = geon.dot(self.look, covariance, self.state)  # over (seen, state')
        same = geon.constant(np.eye(1), [SEEN, ALSO], "float64")
        spread = geon.dot(cross, also, self.other) + self.variances[{VARIANCE: 0}] * same
        factor = linalg.cholesky(spread, [SEEN, ALSO])
        gap = y - geon.dot(mean, self.look, self.state)
        white = linalg.triangular_solve(factor, gap, [SEEN, ALSO])
        root = geon.sum(geon.log(geon.diagonal(factor, [SEEN, ALSO])))
        likely = -geon.sum(np.log(2 * np.pi) + geon.square(white), ALSO) / 2 - root
        gain = linalg.triangular_solve(factor, cross, [SEEN, ALSO])  # over (seen', state')
        turned = gain.rename({self.other: self.state})
        mean = mean + geon.dot(white, turned, ALSO)
        covariance = covariance - geon.dot(turned, gain, ALSO)
        seen = likely, mean[first], covariance[first][other]

        mean = geon.dot(mean.rename({self.state: self.other}), self.move)
        covariance = self.times(self.times(self.move, covariance), self.turned(self.move))
        return (mean, covariance + self.variances[{VARIANCE: 1}] * self.last), seen

    def fit(self, y: np.ndarray, steps: int) -> tuple[np.ndarray, float]:
        """The likeliest variances, and the logarithm of the likelihood that they reach."""
        for _ in range(steps):
            self.climb(y)
        variances, likelihood = self.found(y)
        return variances, float(likelihood)


def walks(seed: int, count: int = 20, length: int = 300) -> np.ndarray:
    """Places over (N, T), seen with noise, of things whose speeds wander."""
    random = np.random.default_rng(seed)
    speeds = random.normal(0, np.sqrt(MADE[1]), (count, length)).cumsum(1)
    return speeds.cumsum(1) + random.normal(0, np.sqrt(MADE[0]), (count, length))


def plot(level: np.ndarray, spread: np.ndarray, path: Path) -> None:
    """Draw the flow, and the level that is known, with two standard deviations to each side."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8, 4), layout="constrained")
    axes, years = figure.subplots(), np.arange(1871, 1971)
    axes.plot(years, FLOWS, ".", color="black")
    axes.plot(years, level)
    far = 2 * np.sqrt(spread)
    axes.fill_between(years, level - far, level + far, alpha=0.3)
    axes.set(ylabel="flow, 10^8 cubic metres a year", ylim=(400, 1450))
    figure.savefig(path)


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description="Learn the variances of a Kalman filter.")
    parser.add_argument("--steps", type=int, default=40, help="of L-BFGS")
    parser.add_argument("--seed", type=int, default=0, help="of the made walks")
    parser.add_argument("--into", type=Path, default=Path("nile.png"), help="picture")
    options = parser.parse_args(argv)

    moving = Filter([[1, 1], [0, 1]], [1, 1], 100)
    variances, _ = moving.fit(walks(options.seed), options.steps)
    print(f"walks: made with {MADE[0]:.2f} and {MADE[1]:.4f}, found ", end="")
    print(f"{variances[0]:.2f} and {variances[1]:.4f}")
    level = Filter([[1]], [FLOWS.var(), FLOWS.var()], 1e7)
    variances, likelihood = level.fit(FLOWS[None], options.steps)
    print(f"Nile: found {variances[0]:.0f} and {variances[1]:.1f}, log likelihood {likelihood:.2f}")
    levels, spread = level.levels(FLOWS[None])
    plot(levels[:, 0], spread, options.into)


if __name__ == "__main__":
    main()
