"""What an open axis costs: each computation compiled for any length, and for the one it has.

``python benchmarks/open_axes.py`` prints the first quartile of calls in turn, on one thread.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

import geon

CALLS = 200
Case = tuple[str, list[tuple[str, int]], Callable[..., Any], list[str]]


def cases() -> Iterator[Case]:
    """Names, axes with lengths, the computation of placeholders, and the axes of each of these."""

    def normalized(x: Any, n: Any, c: Any) -> Any:
        centred = x - geon.mean(x, c)
        return centred / geon.sqrt(geon.mean(geon.square(centred), c) + 1e-5)

    table = [("N", 512), ("C", 1000)]
    yield "softmax", table, lambda x, n, c: geon.softmax(x, c), ["NC"]
    yield "layer norm", table, normalized, ["NC"]
    yield "sums over rows", table, lambda x, n, c: geon.sum(x, c), ["NC"]
    yield "sums over columns", table, lambda x, n, c: geon.sum(x, n), ["NC"]
    yield "transpose", table, lambda x, n, c: geon.reorder(x * 2, [c, n]), ["NC"]
    yield "second differences", table, lambda x, n, c: x[:, 2:] - 2 * x[:, 1:-1] + x[:, :-2], ["NC"]
    yield "rows of four", [("N", 128), ("C", 4)], lambda x, n, c: geon.sum(geon.tanh(x), c), ["NC"]
    yield "tanh-GELU", [("N", 200_000)], lambda x, n: geon.gelu(x), ["N"]
    for m, k, n in [
        (64, 64, 64),
        (256, 256, 256),
        (1024, 1024, 8),
        (8, 1024, 1024),
        (4096, 16, 16),
    ]:
        axes = [("M", m), ("K", k), ("N", n)]
        yield f"product {m}×{k}×{n}", axes, lambda a, b, *axes: geon.dot(a, b), ["MK", "KN"]
    dense = [("M", 128), ("K", 784), ("N", 512)]
    yield (
        "dense layer",
        dense,
        lambda a, b, c, *axes: geon.relu(geon.dot(a, b) + c),
        ["MK", "KN", "N"],
    )


def arrays(case: Case) -> list[np.ndarray]:
    """What a case's three computations read: the same arrays, since it matters where they lie."""
    random, sizes = np.random.default_rng(0), dict(case[1])
    return [random.random([sizes[n] for n in names], np.float32) for names in case[3]]


def computed(
    case: Case, are_open: set[str], transformer: geon.NativeTransformer
) -> Callable[..., Any]:
    """The case's computation, with these axes open."""
    _, lengths, compute, operands = case
    axes = {n: geon.Axis(n) if n in are_open else geon.Axis(n, size) for n, size in lengths}
    leaves = [geon.placeholder([axes[n] for n in names]) for names in operands]
    return transformer.computation(compute(*leaves, *axes.values()), *leaves)


def main() -> None:
    """Print a table."""
    print(f"{'':22}{'fixed':>10}{'first open':>12}{'all open':>10}   microseconds, ratios")
    for case in cases():
        names = [name for name, _ in case[1]]
        with geon.NativeTransformer(threads=1) as transformer:
            calls = [computed(case, set(given), transformer) for given in ((), names[:1], names)]
            values = arrays(case)
            out = np.array(calls[0](*values))
            times: list[list[float]] = [[], [], []]
            for _ in range(CALLS):
                for call, spent in zip(calls, times, strict=True):
                    begin = time.perf_counter()
                    call(*values, out=out)
                    spent.append(time.perf_counter() - begin)
        fixed, first, every = (sorted(spent)[CALLS // 4] * 1e6 for spent in times)
        print(f"{case[0]:22}{fixed:10.1f}{first / fixed:12.2f}{every / fixed:10.2f}")


if __name__ == "__main__":
    main()
