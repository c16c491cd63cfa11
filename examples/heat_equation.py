"""The heat equation on a ring, solved by Fourier transforms; its coefficient, found by gradient.

    python examples/heat_equation.py [--steps 8] [--seed 0] [--into heat.png]

Temperatures u along a ring follow du/dt = c d²u/dx². In the Fourier transform along the ring every
frequency decays by itself, as exp(-c (2 pi k)² t), so the temperatures at all times at once are one
product in between two transforms. Measured are the temperatures of a ring that was heated at two
places, at ten times and with noise. The program finds c from a guess that is ten times too small:
steps against the gradient of the squared error, divided by its curvature, which is the mean square
of the derivative of the temperatures (C. F. Gauss, 1809). It prints the coefficient that the
measurements were made with, and the one that it found.
"""

import argparse
import math
from collections.abc import Sequence
from pathlib import Path

import numpy as np

import geon

POINTS = 256
X, TIME = geon.Axis("x", POINTS), geon.Axis("time")
MADE, NOISE = 4e-3, 0.02  # square lengths of the ring a second; of temperatures between 0 and 1
TIMES = np.linspace(0.02, 1, 10)


class Ring:
    """Temperatures along a ring, and a step towards the coefficient that measured ones have."""

    def __init__(self, guess: float) -> None:
        begin = geon.placeholder([X], "float64", name="begin")
        times = geon.placeholder([TIME], "float64", name="times")
        measured = geon.placeholder([TIME, X], "float64", name="measured")
        logarithm = geon.Variable([], "float64", initial_value=math.log(guess), name="logarithm")

        waves = 2 * math.pi * geon.fft.rfftfreq(X, 1 / POINTS, dtype="float64")
        decay = geon.exp(
            -geon.exp(logarithm) * geon.outer(geon.multiply, times, geon.square(waves))
        )
        u = geon.fft.irfft(decay * geon.fft.rfft(begin, X), X, X)
        loss = geon.mean(geon.square(u - measured)) / 2
        curvature = geon.mean(geon.square(geon.jvp(u, logarithm, 1.0)))
        better = logarithm - geon.deriv(loss, logarithm) / curvature

        self.transformer = geon.make_transformer()
        computation = self.transformer.computation
        self.solve = computation(u, begin, times, name="solve")
        self.step = computation(
            [loss, geon.assign(logarithm, better)], begin, times, measured, name="step"
        )
        self.coefficient = computation(geon.exp(logarithm), name="coefficient")

    def fit(self, begin: np.ndarray, measured: np.ndarray, steps: int) -> list[float]:
        """Go so many steps; return the error before each of them."""
        return [float(self.step(begin, TIMES, measured)[0]) for _ in range(steps)]


def heated() -> np.ndarray:
    """Temperatures at the beginning: 1 at two places of the ring, 0 elsewhere."""
    x = np.arange(POINTS) / POINTS
    return np.where((abs(x - 0.3) < 0.1) | (abs(x - 0.7) < 0.03), 1.0, 0.0)


def measure(seed: int) -> np.ndarray:
    """Temperatures over (time, x) for the coefficient ``MADE``, with noise."""
    exact = Ring(MADE).solve(heated(), TIMES)
    return exact + np.random.default_rng(seed).normal(0, NOISE, exact.shape)


def plot(measured: np.ndarray, found: np.ndarray, path: Path) -> None:
    """Draw what was measured at a few times, and what was computed with the coefficient."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8, 4), layout="constrained")
    axes, x = figure.subplots(), np.arange(POINTS) / POINTS
    for k in (0, 2, 5, 9):
        (line,) = axes.plot(x, found[k], label=f"{TIMES[k]:.2f} s")
        axes.plot(x, measured[k], ".", markersize=2, color=line.get_color())
    axes.set(xlabel="place on the ring", ylabel="temperature")
    axes.legend()
    figure.savefig(path)


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description="Find the coefficient of the heat equation.")
    parser.add_argument("--steps", type=int, default=8, help="against the gradient")
    parser.add_argument("--seed", type=int, default=0, help="of the noise")
    parser.add_argument("--into", type=Path, default=Path("heat.png"), help="picture")
    options = parser.parse_args(argv)

    measured, ring = measure(options.seed), Ring(MADE / 10)
    for number, error in enumerate(ring.fit(heated(), measured, options.steps)):
        print(f"step {number}: root mean square error {math.sqrt(2 * error):.4f}")
    print(f"made with {MADE:.6f}, found {float(ring.coefficient()):.6f}")
    plot(measured, ring.solve(heated(), TIMES), options.into)


if __name__ == "__main__":
    main()
