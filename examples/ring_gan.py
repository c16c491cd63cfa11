"""Two networks against each other learn a distribution: eight heaps of points on a ring.

    python examples/ring_gan.py [--steps 4000] [--seed 0] [--into ring.png]

A generator makes points of noise, a discriminator tells them from real ones, and each is trained
against the other: two computations, each with an optimiser that moves the parameters of one
network, are called in turn. The discriminator pays for its gradient at real points, so its step is
differentiated through geon.deriv (L. Mescheder, A. Geiger and S. Nowozin, "Which training methods
for GANs do actually converge?", ICML 2018). It prints how many heaps have their share of the points
that are made, and the share of the points that lie in a heap, before and after training; and draws
real points beside made ones.
"""

import argparse
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from tqdm import tqdm

import geon
from geon.frontends import neon

N, PLANE, NOISE = geon.Axis("N"), geon.Axis("plane", 2), geon.Axis("noise", 2)
BATCH, HEAPS, SPREAD, MADE = 256, 8, 0.06, 4000
PLACES = np.array([(np.cos(a), np.sin(a)) for a in 2 * np.pi * np.arange(HEAPS) / HEAPS])


def real_points(random: np.random.Generator, count: int) -> np.ndarray:
    """Points over (N, plane), each near a place of the ring."""
    near = random.normal(0, SPREAD, (count, 2))
    return PLACES[random.integers(0, HEAPS, count)] + near


def network(outputs: Sequence[geon.Axis], random: geon.Random, name: str) -> neon.Layer:
    """Two hidden layers."""
    he, glorot = neon.Kaiming(random), neon.Glorot(random)
    hidden = [
        neon.Affine(geon.Axis(f"hidden{k}", 128), he, activation=geon.leaky_relu) for k in (1, 2)
    ]
    return neon.Sequential([*hidden, neon.Affine(outputs, glorot)], name=name)


class Pair:
    """Both networks, the step of each, and what makes points."""

    def __init__(self, seed: int, steps: int) -> None:
        random = geon.Random(seed, name="random")
        generator = network([PLANE], random, "generator")
        discriminator = network([], random, "discriminator")
        real = geon.placeholder([N, PLANE], name="real")
        noise = geon.placeholder([N, NOISE], name="noise")
        made, said = generator(noise), discriminator(real)

        # How the discriminator tells, and how the generator fools it.
        steep = geon.sum(geon.square(geon.deriv(geon.sum(said), real)), PLANE)
        false = discriminator(geon.stop_gradient(made))
        told = geon.mean(geon.softplus(-said) + geon.softplus(false) + 0.01 * steep)
        fooled = geon.mean(geon.softplus(-discriminator(made)))
        rate = neon.schedules.Polynomial(0.002, steps)
        tell = neon.Adam(rate, first=0.5, name="tell")(told, discriminator.parameters())
        fool = neon.Adam(rate, first=0.5, name="fool")(fooled, generator.parameters())

        self.transformer = geon.make_transformer()
        self.tell = self.transformer.computation([told, tell], real, noise, name="tell")
        self.fool = self.transformer.computation([fooled, fool], noise, name="fool")
        self.make = self.transformer.computation(made, noise, name="make")

    def points(self, seed: int) -> np.ndarray:
        """Points that the generator makes, over (N, plane)."""
        return self.make(np.random.default_rng(seed).normal(size=(MADE, NOISE.length)))

    def train(self, seed: int, steps: int) -> None:
        """Let each take steps in turn, on new points and noise."""
        random = np.random.default_rng(seed)
        for _ in tqdm(range(steps)):
            self.tell(real_points(random, BATCH), random.normal(size=(BATCH, NOISE.length)))
            self.fool(random.normal(size=(BATCH, NOISE.length)))


def judged(points: np.ndarray) -> tuple[int, float]:
    """How many heaps have at least half of their share, and the share of points in any, 0 to 1.

    A point lies in a heap to four of its standard deviations.
    """
    far = np.linalg.norm(points[:, None] - PLACES, axis=2)
    inside = far.min(1) < 4 * SPREAD
    counts = np.bincount(far.argmin(1)[inside], minlength=HEAPS)
    return int(np.sum(counts >= len(points) / HEAPS / 2)), float(inside.mean())


def plot(real: np.ndarray, made: np.ndarray, path: Path) -> None:
    """Draw real points beside those that are made."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8, 4), layout="constrained")
    for axes, points, title in zip(
        figure.subplots(1, 2), (real, made), ("real", "made"), strict=True
    ):
        axes.plot(*points.T, ".", markersize=2)
        axes.set(title=title, xlim=(-1.5, 1.5), ylim=(-1.5, 1.5), aspect="equal")
    figure.savefig(path)


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description="Learn to make points of a ring.")
    parser.add_argument("--steps", type=int, default=4000, help="of both networks")
    parser.add_argument("--seed", type=int, default=0, help="of weights, points and noise")
    parser.add_argument("--into", type=Path, default=Path("ring.png"), help="picture")
    options = parser.parse_args(argv)

    pair = Pair(options.seed, options.steps)
    for when in ("before", "after"):
        if when == "after":
            pair.train(options.seed, options.steps)
        made = pair.points(options.seed)
        heaps, inside = judged(made)
        print(f"{when} training: {heaps} of {HEAPS} heaps, {100 * inside:.1f} % of points in one")
    plot(real_points(np.random.default_rng(options.seed), MADE), made, options.into)


if __name__ == "__main__":
    main()
