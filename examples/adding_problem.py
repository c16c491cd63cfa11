"""The adding problem: add two marked numbers of 200, which stand anywhere in a sequence.

    python examples/adding_problem.py [--length 200] [--steps 2500] [--seed 0] [--into adding.png]

Each step of a sequence has a number from 0 to 1 and a mark; two marks are 1, one in each half. A
network of gated recurrent units reads it and says the sum of the two numbers at the end, so what it
learns has to go back through up to 200 steps. It begins with short sequences: the time is an open
axis, so one compiled step serves all lengths. It prints the share of new sequences that it adds to
within 0.04, which is what S. Hochreiter and J. Schmidhuber, "Long short-term memory", 1997, call
right, beside that of always saying 1; and draws what it says against the sums.
"""

import argparse
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

import geon
from geon.frontends import neon
from geon.frontends.neon import axis as ax

INPUT = geon.Axis("input", 2)  # the number, and its mark
BATCH, NEAR, TESTED = 64, 0.04, 2000


def sequences(
    random: np.random.Generator, count: int, length: int
) -> tuple[np.ndarray, np.ndarray]:
    """Sequences over (N, T, input), and the sum of the marked numbers of each."""
    numbers, marks = random.uniform(size=(count, length)), np.zeros((count, length))
    rows = np.arange(count)
    marks[rows, random.integers(0, length // 2, count)] = 1
    marks[rows, random.integers(length // 2, length, count)] = 1
    return np.stack([numbers, marks], axis=2), (numbers * marks).sum(1)


def length_at(step: int, steps: int, length: int) -> int:
    """How long the sequences of a training step are: ever longer, all of it from the middle on."""
    return max(10, min(length, round(length * 2 * step / steps)))


def build(seed: int, steps: int) -> neon.Model:
    """A model from sequences to sums."""
    x = geon.placeholder([ax.N, ax.T, INPUT], name="x")
    total = geon.placeholder([ax.N], name="total")
    random = geon.Random(seed, name="random")
    state, answer = geon.Axis("state", 64), neon.Affine((), neon.Glorot(random))
    units = neon.GRU(state, neon.Glorot(random), neon.Orthogonal(random), last=True)
    layer = neon.Sequential([units, answer], name="adder")
    rate = neon.schedules.OneCycle(0.01, steps, rise=0.1)
    optimiser = neon.Adam(rate, clip=neon.ByGlobalNorm(1.0))
    return neon.Model(layer, x, total, neon.costs.squared_error, optimiser)


def train(model: neon.Model, steps: int, length: int, seed: int) -> None:
    """Train it on new sequences at each step."""

    def batches(epoch: int) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        random = np.random.default_rng([seed, epoch])
        for step in range(steps):
            yield sequences(random, BATCH, length_at(step, steps, length))

    model.fit(neon.Stream(batches), 1, callbacks=[neon.Progress()])


def share_near(said: np.ndarray, totals: np.ndarray) -> float:
    """The share of the sums that are right to within 0.04, 0 to 1."""
    return float(np.mean(np.abs(said - totals) <= NEAR))


def plot(said: np.ndarray, totals: np.ndarray, path: Path) -> None:
    """Draw what was said against the sums, with the lines between which it is right."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(5, 5), layout="constrained")
    axes = figure.subplots()
    axes.plot(totals, said, ".", markersize=2)
    for side in (-NEAR, NEAR):
        axes.plot([0, 2], [side, 2 + side], color="black", linewidth=0.5)
    axes.set(xlabel="sum", ylabel="said")
    figure.savefig(path)


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description="Learn to add two numbers far apart.")
    parser.add_argument("--length", type=int, default=200, help="of the sequences")
    parser.add_argument("--steps", type=int, default=2500, help="of training")
    parser.add_argument("--seed", type=int, default=0, help="of weights and sequences")
    parser.add_argument("--into", type=Path, default=Path("adding.png"), help="picture")
    options = parser.parse_args(argv)

    model = build(options.seed, options.steps)
    train(model, options.steps, options.length, options.seed)
    x, totals = sequences(np.random.default_rng([options.seed, 1, 1]), TESTED, options.length)
    said = model.predict(x, size=500)
    print(f"always 1: {100 * share_near(np.ones(TESTED), totals):.2f} % within {NEAR}")
    print(f"learned: {100 * share_near(said, totals):.2f} % within {NEAR}")
    plot(said, totals, options.into)


if __name__ == "__main__":
    main()
