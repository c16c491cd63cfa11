"""How near ordered work comes to what the machine can do: prefix sums, scatters, gathers, sorts,
positions of extremes, at 10^5 to 10^7 elements.

``python benchmarks/ordered.py`` prints for each case the least of several calls' times in its
kernel, the share of the ceiling (for sorts and lines of cache that are touched once each, a ceiling
that nothing reaches), and the predicted time over the measured one. ``--only TEXT`` takes the cases
whose names have the text, ``--threads N`` runs on so many.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

import geon  # noqa: E402  # found from the root

Case = tuple[str, Callable[[], tuple[Any, list[Any], list[Any]]]]
SHAPES = {10**5: (16, 100, 1000, 10**5), 10**7: (16, 100, 1000, 10**5, 10**7)}

COLUMNS = [(10, 10**6), (1000, 10000), (10**5, 100), (10**6, 10), (10**6, 16), (3 * 10**6, 3),
           (100, 100, 1000), (1000, 1000, 10), (10000, 100, 10), (5, 2 * 10**6)]  # fmt: skip


def drawn(shape: tuple[int, ...], dtype: str) -> Any:
    """Random elements; integers below 1000."""
    random = np.random.default_rng(0)
    if dtype.startswith("int"):
        return random.integers(0, 1000, shape).astype(dtype)
    return random.standard_normal(shape).astype(dtype)


def placed(shape: tuple[int, ...], dtype: str) -> tuple[Any, list[geon.Axis], Any]:
    """A placeholder of this shape, its axes, and data for it."""
    axes = [geon.Axis(name, n) for name, n in zip("ABCD", shape, strict=False)]
    return geon.placeholder(axes, dtype=dtype), axes, drawn(shape, dtype)


def running(shape: tuple[int, ...], along: int, dtype: str, **options: Any) -> Any:
    """A prefix sum."""
    x, axes, data = placed(shape, dtype)
    return geon.cumsum(x, axes[along], **options), [x], [data]


def scattered(places: int, count: int, row: int, dtype: str) -> Any:
    """Rows added to places at random."""
    x, (axis, *_), start = placed((places, row) if row > 1 else (places,), dtype)
    index_axis = geon.Axis("P", count)
    index = geon.placeholder([index_axis], dtype="int64")
    values = geon.placeholder([index_axis, *x.axes[1:]], dtype=dtype)
    at = np.random.default_rng(1).integers(0, places, count)
    added = drawn((count, row) if row > 1 else (count,), dtype)
    return geon.scatter(x, index, values, axis, mode="add"), [x, index, values], [start, at, added]


def gathered(places: int, count: int, row: int, dtype: str) -> Any:
    """Rows of places at random."""
    x, (axis, *_), data = placed((places, row) if row > 1 else (places,), dtype)
    index = geon.placeholder([geon.Axis("P", count)], dtype="int64")
    at = np.random.default_rng(1).integers(0, places, count)
    return geon.gather(x, index, axis), [x, index], [data, at]


def ordered(shape: tuple[int, ...], dtype: str, which: Callable[..., Any]) -> Any:
    """Lines that are sorted, or whose extremes are found."""
    x, axes, data = placed(shape, dtype)
    return which(x, axes[-1]), [x], [data]


def cases() -> Iterator[Case]:
    """The cases, by name."""
    for size, rows in SHAPES.items():
        for row in rows:
            for dtype in ("float32", "float64", "int64", "int32"):
                if dtype == "float32" or size == 10**7:
                    shape = (size // row, row)
                    yield f"cumsum {shape} {dtype}", lambda s=shape, d=dtype: running(s, 1, d)
    shape = (1000, 10000)
    yield f"cumsum {shape} reverse", lambda: running((1000, 10000), 1, "float32", reverse=True)
    yield f"cumsum {shape} exclusive", lambda: running((1000, 10000), 1, "float32", exclusive=True)
    yield f"cumsum {shape} float16", lambda: running((1000, 10000), 1, "float16")
    for shape in COLUMNS:
        along = len(shape) - 2
        yield f"cumsum axis {along} of {shape}", lambda s=shape, a=along: running(s, a, "float32")
    for dtype in ("float32", "float64", "int64"):
        for places in (1000, 10**4, 10**6):
            name = f"scatter-add 1000000 into {places} {dtype}"
            yield name, lambda n=places, d=dtype: scattered(n, 10**6, 1, d)
    for dtype in ("float32", "float64"):
        for row in (8, 64, 300):
            for places in (1000, 10**4):
                count = 3 * 10**6 // row
                name = f"scatter-add {count} rows of {row} into {places} {dtype}"
                yield name, lambda n=places, c=count, r=row, d=dtype: scattered(n, c, r, d)
    for places in (1000, 10**6, 10**7):
        yield f"gather 1000000 of {places}", lambda n=places: gathered(n, 10**6, 1, "float32")
    for row in (8, 64, 300):
        for places in (1000, 30000):
            name = f"gather rows of {row} of {places}"
            count = 3 * 10**6 // row
            yield name, lambda n=places, c=count, r=row: gathered(n, c, r, "float32")
    for size in (10**5, 10**7):
        for row in (10, 100, 1000, 10**5):
            shape = (size // row, row)
            for which in (geon.argmax, geon.sort, geon.argsort):
                name = f"{which.__name__} {shape}"
                yield name, lambda s=shape, w=which: ordered(s, "float32", w)
            if row > 10:
                name = f"top 5 {shape}"
                yield name, lambda s=shape: ordered(s, "float32", lambda x, a: geon.top_k(x, 5, a))


def main() -> None:
    """Print a line for each case."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=7)
    options = parser.parse_args()
    transformer = geon.make_transformer("native", threads=options.threads)
    print(f"{'case':52} {'ms':>9} {'GB/s':>7} {'share':>6} {'predicted/measured':>19}")
    for name, build in cases():
        if options.only not in name:
            continue
        result, placeholders, data = build()
        computation = transformer.computation(result, *placeholders)
        rounds = [computation.profile(*data, repeats=1) for _ in range(options.rounds)]
        kernels = [min(each, key=lambda k: k.seconds) for each in zip(*rounds, strict=True)]
        worst = max(kernels, key=lambda k: k.seconds)
        rate = f"{1e3 * worst.seconds:9.3f} {worst.gigabytes_per_second:7.1f}"
        ratio = worst.predicted / worst.seconds
        print(f"{name:52} {rate} {worst.share:6.2f} {ratio:19.2f}", flush=True)


if __name__ == "__main__":
    main()
