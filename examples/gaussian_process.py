"""A Gaussian process on the carbon dioxide in the air, with its marginal likelihood.

    python examples/gaussian_process.py [--steps 60] [--starts 6] [--seed 0] [--into co2.png]

Annual means at Mauna Loa in ppm, 1959 to 2014, as NOAA's Global Monitoring Laboratory published
them (P. Tans and R. Keeling; public domain). Learned are those up to 2004; the later ones are
foretold. The covariance of two years is a line, a slow and a quick part, and a noise, whose six
sizes and lengths L-BFGS makes likelier, from several beginnings that ``--seed`` draws.

The Cholesky factor of the covariance of the years learned gives the marginal likelihood, and what
these foretell of the rest. It prints the logarithm of the marginal likelihood before and after, and
how far the foretold years are off, beside a straight line, and how many of ten lie in their ranges
of 95 %.
"""

import argparse
from collections.abc import Sequence
from pathlib import Path

import numpy as np

import geon
from geon import linalg
from geon.frontends import neon

MEANS = """\
315.97 316.91 317.64 318.45 318.99 319.62 320.04 321.38 322.16 323.04 324.62 325.68 326.32 327.45
329.68 330.18 331.08 332.05 333.78 335.41 336.78 338.68 340.10 341.44 343.03 344.58 346.04 347.39
349.16 351.56 353.07 354.35 355.57 356.38 357.07 358.82 360.80 362.59 363.71 366.65 368.33 369.52
371.13 373.22 375.77 377.49 379.80 381.90 383.76 385.59 387.37 389.85 391.63 393.82 396.48 398.61"""
CO2 = np.array([float(each) for each in MEANS.split()])
YEARS = np.arange(1959, 2015)
KNOWN = 46  # years to learn from
YEAR, ALL = geon.Axis("year", len(YEARS)), geon.Axis("all", len(YEARS))
OTHER = YEAR.prime
NAMES = ["line", "slow part", "its years", "quick part", "its years", "noise"]
SIZE = geon.Axis("size", len(NAMES))
FIRST = np.array([1.0, 1.0, 50.0, 0.1, 5.0, 0.1])  # where the search begins, times what is drawn


def covariance(sizes: geon.Tensor) -> geon.Tensor:
    """The covariance of the values of each two years, noise included, over (year, year')."""
    line, slow, slow_years, quick, quick_years, noise = (sizes[{SIZE: k}] for k in range(6))
    t = geon.constant(YEARS - YEARS[:KNOWN].mean(), [YEAR], "float64")
    other = t.rename({YEAR: OTHER})
    far = geon.square(geon.outer(geon.subtract, t, other))

    def bell(size: geon.Tensor, years: geon.Tensor) -> geon.Tensor:
        return geon.square(size) * geon.exp(-far / (2 * geon.square(years)))

    straight = geon.square(line / 20) * geon.outer(geon.multiply, t, other)
    same = geon.constant(np.eye(len(YEARS)), [YEAR, OTHER], "float64") * geon.square(noise)
    return straight + bell(slow, slow_years) + bell(quick, quick_years) + same


def learn(
    covariance: geon.Tensor, values: geon.Tensor
) -> tuple[geon.Tensor, geon.Tensor, geon.Tensor]:
    """Means and variances of all years given those learned, and how likely these were, in nats.

    C. Rasmussen and C. Williams, "Gaussian processes for machine learning", 2006, algorithm 2.1.
    """
    first = covariance[{YEAR: slice(0, KNOWN)}]
    # A line search may try sizes without a factor, whose likelihood is then NaN.
    factor = linalg.cholesky(first[{OTHER: slice(0, KNOWN)}], [YEAR, OTHER], check=False)
    white = linalg.triangular_solve(factor, values[{YEAR: slice(0, KNOWN)}], [YEAR, OTHER])
    root = geon.sum(geon.log(geon.diagonal(factor, [YEAR, OTHER])))
    likely = -geon.sum(np.log(2 * np.pi) + geon.square(white)) / 2 - root
    # The covariance of the years learned with all, white along the first.
    cross = linalg.triangular_solve(factor, first.rename({OTHER: ALL}), [YEAR, OTHER])
    variances = geon.diagonal(covariance, [YEAR, OTHER], ALL) - geon.sum(geon.square(cross), OTHER)
    return geon.dot(white, cross, OTHER), variances, likely


class Process:
    """The Gaussian process: a step up its likelihood, and what it foretells."""

    def __init__(self) -> None:
        self.middle, self.spread = CO2[:KNOWN].mean(), CO2[:KNOWN].std()
        logs = geon.Variable([SIZE], "float64", initial_value=np.log(FIRST), name="logs")
        values = np.where(np.arange(len(YEARS)) < KNOWN, (CO2 - self.middle) / self.spread, 0)
        given = geon.constant(values, [YEAR], "float64")
        self.sizes = sizes = geon.exp(logs)
        means, variances, likelihood = learn(covariance(sizes), given)
        self.transformer, cost = geon.make_transformer(), -likelihood / KNOWN
        self.climb = self.transformer.computation([likelihood, neon.LBFGS()(cost)])
        self.found = self.transformer.computation([likelihood, sizes, means, variances])

    def fit(self, steps: int, starts: int, seed: int) -> None:
        """Take the likeliest of what is found from several beginnings: there are many hills."""
        found = []
        for change in np.random.default_rng(seed).normal(0, 0.5, (starts, len(FIRST))):
            self.transformer.initialize(force=True)
            self.transformer.set("logs", np.log(FIRST) + change)
            for _ in range(steps):
                self.climb()
            found.append((float(self.found()[0]), self.transformer.get("logs")))
        self.transformer.set("logs", max(found, key=lambda pair: pair[0])[1])

    def foretold(self) -> tuple[np.ndarray, np.ndarray]:
        """Means and standard deviations of the years that were not learned, in ppm."""
        _, _, means, variances = self.found()
        return means[KNOWN:] * self.spread + self.middle, np.sqrt(variances[KNOWN:]) * self.spread


def plot(means: np.ndarray, deviations: np.ndarray, path: Path) -> None:
    """Draw the data, and what was foretold with its ranges of 95 %."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7, 4), layout="constrained")
    axes, far = figure.subplots(), 1.96 * deviations
    axes.plot(YEARS[:KNOWN], CO2[:KNOWN], ".", label="learned")
    axes.plot(YEARS[KNOWN:], CO2[KNOWN:], ".", label="held out")
    axes.plot(YEARS[KNOWN:], means, label="foretold")
    axes.fill_between(YEARS[KNOWN:], means - far, means + far, alpha=0.3)
    axes.legend(title="carbon dioxide, ppm")
    figure.savefig(path)


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description="Foretell carbon dioxide.")
    parser.add_argument("--steps", type=int, default=60, help="of L-BFGS")
    parser.add_argument("--starts", type=int, default=6, help="how many beginnings")
    parser.add_argument("--seed", type=int, default=0, help="of where the search begins")
    parser.add_argument("--into", type=Path, default=Path("co2.png"), help="picture")
    options = parser.parse_args(argv)

    process = Process()
    before = process.found()[0]
    process.fit(options.steps, options.starts, options.seed)
    after, sizes, *_ = process.found()
    means, deviations = process.foretold()
    line = np.polynomial.Polynomial.fit(YEARS[:KNOWN], CO2[:KNOWN], 1)(YEARS[KNOWN:])
    off, straight = (np.sqrt(np.mean(np.square(y - CO2[KNOWN:]))) for y in (means, line))
    inside = np.sum(np.abs(means - CO2[KNOWN:]) < 1.96 * deviations)
    print(*(f"{name} {size:.3g}" for name, size in zip(NAMES, sizes, strict=True)), sep=", ")
    print(f"log marginal likelihood: {before:.2f}, then {after:.2f}")
    print(f"2005 to 2014: {off:.2f} ppm off, a straight line {straight:.2f}; {inside} of 10 inside")
    plot(means, deviations, options.into)


if __name__ == "__main__":
    main()
