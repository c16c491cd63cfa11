"""Overhead of ``Executor.run``: the digits step, beside the same computation called directly.

    python benchmarks/program.py [--transformer native] [--runs 300]

Prints the least times of both in microseconds, and the limit: 1.05 times the call plus 30.
"""

import argparse
import itertools
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "examples"))

import digits
import program_digits

from geon.frontends import program as fluid
from geon.frontends.program.storage import home_of

LIMIT, ADDED = 1.05, 30.0


def fastest(calls: Sequence[Callable[[], object]], runs: int) -> list[float]:
    """The least microseconds of each call, which take turns."""
    times: list[list[float]] = [[] for _ in calls]
    for _ in range(runs):
        for call, found in zip(calls, times, strict=True):
            begin = time.perf_counter()
            call()
            found.append(1e6 * (time.perf_counter() - begin))
    return [min(found) for found in times]


def measure(transformer: str, runs: int) -> tuple[float, float]:
    """The microseconds of a step by the executor, and of its computation called directly."""
    network, scope = program_digits.build(), fluid.Scope()
    executor = fluid.Executor(fluid.CPUPlace(transformer))
    executor.run(network["startup"], scope=scope)
    images, labels = digits.load().train
    feed = program_digits.feed((images[:64], labels[:64]))

    def run() -> None:
        executor.run(network["main"], feed, [network["loss"]], scope)

    run()
    computation = home_of(scope).transformer(executor.place).computations[-1]
    numbers = itertools.count(runs)  # of runs, which other draws belong to

    def call() -> None:
        own = [feed[p.name] if p.name in feed else next(numbers) for p in computation.placeholders]
        computation(*own)

    found = fastest([run, call], runs)
    return found[0], found[1]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--transformer", default="native")
    parser.add_argument("--runs", type=int, default=300)
    options = parser.parse_args()
    run, call = measure(options.transformer, options.runs)
    limit = LIMIT * call + ADDED
    print(f"Executor.run {run:.0f} us, the computation {call:.0f} us, limit {limit:.0f} us")


if __name__ == "__main__":
    main()
