"""What ``Model.fit`` costs beside a loop of its steps: ``python -m benchmarks.fitting``.

Both train one network of ``geon.frontends.neon`` on the same batches, in turns,
in one process and on one thread. Printed are processor seconds of a turn of some epochs, the least
and the median of all turns, and their ratios.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable

import numpy as np

import geon
from geon.frontends import neon
from geon.frontends.neon import axis as ax

clock = time.process_time
EPOCHS = 5  # in a turn
SIZES = {"784-512-512-10, batch 128": (784, 512, 128), "64-64-64-10, batch 32": (64, 64, 32)}


def model(inputs: int, hidden: int) -> neon.Model:
    """Two hidden layers, trained by Adam."""
    random = geon.Random(0, name="random")
    wide = [geon.Axis(name, hidden) for name in ("H", "K")]
    net = neon.Sequential(
        [
            *(neon.Affine(axis, neon.Kaiming(random), activation=geon.relu) for axis in wide),
            neon.Affine(geon.Axis("Y", 10), neon.Glorot(random)),
        ],
        name="net",
    )
    x = geon.placeholder([ax.N, geon.Axis("C", inputs)], name="x")
    t = geon.placeholder([ax.N], "int64", name="t")
    transformer = geon.make_transformer("native", threads=1)
    cost = neon.costs.cross_entropy
    return neon.Model(net, x, t, cost, neon.Adam(), transformer=transformer)


def turns(inputs: int, hidden: int, size: int, batches: int, rounds: int) -> dict[str, list[float]]:
    """Processor seconds of each turn, by both ways."""
    random = np.random.default_rng(0)
    points = random.normal(size=(size * batches, inputs)).astype(np.float32)
    data = neon.Batches(points, random.integers(0, 10, len(points)), size=size)
    made = model(inputs, hidden)
    step = model(inputs, hidden).step()

    def loop(until: int) -> None:
        for number in range(until - EPOCHS, until):
            for batch in data.epoch(number):
                float(step(*batch)[0])

    def fit(until: int) -> None:
        made.fit(data, until)

    ways: dict[str, Callable[[int], None]] = {"loop": loop, "fit": fit}
    taken: dict[str, list[float]] = {name: [] for name in ways}
    for number in range(rounds + 1):  # the first compiles, and warms up
        for name, way in ways.items():
            start = clock()
            way(EPOCHS * (number + 1))
            if number:
                taken[name].append(clock() - start)
    return taken


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.fitting")
    parser.add_argument("--batches", type=int, default=40, help="in an epoch")
    parser.add_argument("--rounds", type=int, default=15)
    chosen = parser.parse_args()
    print(
        "| network | loop: least | median | fit: least | median | ratio of the least | of medians |"
    )
    print("|---" * 7 + "|")
    for title, (inputs, hidden, size) in SIZES.items():
        taken = turns(inputs, hidden, size, chosen.batches, chosen.rounds)
        least, median = ([of(taken[name]) for name in taken] for of in (min, statistics.median))
        cells = [
            f"{1e3 * value:.1f} ms" for pair in zip(least, median, strict=True) for value in pair
        ]
        ratios = [f"{fit / loop:.3f}" for loop, fit in (least, median)]
        print(f"| {title} | {' | '.join(cells)} | {' | '.join(ratios)} |", flush=True)


if __name__ == "__main__":
    main()
