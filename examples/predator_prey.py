"""Fit a differential equation to data through its solver: hares and lynxes, 1900 to 1920.

    python examples/predator_prey.py [--steps 60] [--seed 0] [--into hares.png]

Pelts that the Hudson's Bay Company bought, in thousands (E. Odum, "Fundamentals of ecology", 1953).
Hares grow and are eaten, lynxes eat and starve, as A. Lotka and V. Volterra wrote it:

    hares' = (birth - hunted lynxes) hares        lynxes' = (fed hares - death) lynxes

The solver is a Runge-Kutta method in geon.scan, and the error of the logarithms is differentiated
through it by four rates and the first year's numbers. L-BFGS fits them; its step is one program.
First it fits numbers that are made with known rates and a noise of 5 %, drawn by ``--seed``, and
prints both.
"""

import argparse
from collections.abc import Sequence
from pathlib import Path

import numpy as np

import geon
from geon.frontends import neon

HARES = [30.0, 47.2, 70.2, 77.4, 36.3, 20.6, 18.1, 21.4, 22.0, 25.4, 27.1]
HARES += [40.3, 57.0, 76.6, 52.3, 19.5, 11.2, 7.6, 14.6, 16.2, 24.7]
LYNXES = [4.0, 6.1, 9.8, 35.2, 59.4, 41.7, 19.0, 13.0, 8.3, 9.1, 7.4]
LYNXES += [8.0, 12.3, 19.5, 45.7, 51.1, 29.7, 15.8, 9.7, 10.1, 8.6]
PELTS = np.array([HARES, LYNXES]).T
NAMES = ["birth", "hunted", "fed", "death", "first hares", "first lynxes"]
FIRST = [0.5, 0.02, 0.02, 0.5, 30.0, 4.0]  # where the search begins
MADE = [0.55, 0.028, 0.024, 0.8, 34.0, 6.0]  # of the numbers that are made

YEAR, SPECIES = geon.Axis("year", len(PELTS)), geon.Axis("species", 2)
RATE, SUBSTEP = geon.Axis("rate", len(NAMES)), geon.Axis("substep", 20)


def solve(rates: geon.Tensor) -> geon.Tensor:
    """The logarithms of both numbers in each year, over (year, species)."""
    birth, hunted, fed, death = (rates[{RATE: k}] for k in range(4))

    def change(logs: geon.Tensor) -> geon.Tensor:
        hares, lynxes = (geon.exp(logs[{SPECIES: k}]) for k in range(2))
        return geon.stack([birth - hunted * lynxes, fed * hares - death], SPECIES)

    def substep(y: geon.Tensor, _: None) -> tuple[geon.Tensor, None]:
        """The classical method of fourth order."""
        dt = 1 / SUBSTEP.length
        a = change(y)
        b = change(y + dt / 2 * a)
        c = change(y + dt / 2 * b)
        d = change(y + dt * c)
        return y + dt / 6 * (a + 2 * b + 2 * c + d), None

    def year(y: geon.Tensor, _: None) -> tuple[geon.Tensor, geon.Tensor]:
        return geon.scan(substep, y, over=SUBSTEP)[0], y

    first = geon.stack([geon.log(rates[{RATE: k}]) for k in (4, 5)], SPECIES)
    return geon.scan(year, first, over=YEAR)[1]


class Fit:
    """Rates that are fitted to numbers over (year, species), step by step."""

    def __init__(self) -> None:
        numbers = geon.placeholder([YEAR, SPECIES], "float64", name="numbers")
        logs = geon.Variable([RATE], "float64", initial_value=np.log(FIRST), name="logs")
        rates = geon.exp(logs)  # so that none is below 0
        curve = solve(rates)
        error = geon.mean(geon.square(curve - geon.log(numbers)))
        self.transformer = geon.make_transformer()
        self.logs = logs
        self.step = self.transformer.computation([error, neon.LBFGS()(error)], numbers)
        self.found = self.transformer.computation([rates, geon.exp(curve)])

    def to(self, numbers: np.ndarray, steps: int) -> tuple[float, np.ndarray, np.ndarray]:
        """The error's root, the rates, and the numbers of the fitted curve."""
        self.transformer.initialize(force=True)
        for _ in range(steps):
            error, _ = self.step(numbers)
        return float(np.sqrt(error)), *self.found()


def plot(curve: np.ndarray, path: Path) -> None:
    """Draw the pelts and the fitted curve."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7, 4), layout="constrained")
    axes = figure.subplots()
    years = np.arange(1900, 1900 + len(PELTS))
    for k, (name, colour) in enumerate([("hares", "C0"), ("lynxes", "C1")]):
        axes.plot(years, PELTS[:, k], "o", color=colour)
        axes.plot(years, curve[:, k], color=colour, label=name)
    axes.set_ylabel("pelts, thousands")
    axes.legend()
    figure.savefig(path)


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description="Fit an equation of hares and lynxes.")
    parser.add_argument("--steps", type=int, default=60, help="of L-BFGS, at most")
    parser.add_argument("--seed", type=int, default=0, help="of the noise of the made numbers")
    parser.add_argument("--into", type=Path, default=Path("hares.png"), help="picture")
    options = parser.parse_args(argv)

    fit = Fit()
    fit.transformer.set(fit.logs, np.log(MADE))
    noise = np.random.default_rng(options.seed).normal(0, 0.05, PELTS.shape)
    made = fit.found()[1] * np.exp(noise)
    _, again, _ = fit.to(made, options.steps)
    error, rates, curve = fit.to(PELTS, options.steps)
    print(f"{'':14}{'made with':>10}{'found':>8}{'pelts':>8}")
    for row in zip(NAMES, MADE, again, rates, strict=True):
        print("{:14}{:10.3f}{:8.3f}{:8.3f}".format(*row))
    plain = np.log(PELTS).std(0)
    print(f"error of logarithms: {error:.3f}, and of their means {np.sqrt(np.mean(plain**2)):.3f}")
    plot(curve, options.into)


if __name__ == "__main__":
    main()
