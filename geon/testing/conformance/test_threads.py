"""Threads: calls that only read run concurrently, calls that write exclude all others."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

import geon

THREADS = 6
C = geon.Axis("C", 40)


def together(work: Callable[[int], Any]) -> list[Any]:
    """Return the results of ``work`` in each of the threads."""
    with ThreadPoolExecutor(THREADS) as pool:
        return list(pool.map(work, range(THREADS)))


def test_calls_with_other_inputs_do_not_mix(transformer: geon.Transformer) -> None:
    n = geon.Axis("N")
    x = geon.placeholder([n, C])
    w = geon.Variable(axes=[C], initial_value=2)
    y = geon.tanh(x * w) + 1
    f = transformer.computation([geon.sum(y * y, C), geon.softmax(y, normalization_axes=C)], x)

    def work(k: int) -> bool:
        array = np.random.default_rng(k).normal(size=(20 + k % 3, 40)).astype(np.float32)
        first = f(array)
        return all(
            np.array_equal(a, b) for _ in range(25) for a, b in zip(f(array), first, strict=True)
        )

    assert all(together(work))


def test_no_update_is_lost(transformer: geon.Transformer) -> None:
    v, x = geon.Variable(axes=[C], initial_value=0), geon.placeholder(())
    f = transformer.computation([geon.assign(v, v + x), v * 1], x)
    g = transformer.computation(v * 1)

    def work(k: int) -> bool:
        for _ in range(40):
            f(k)
            seen = g()
            if not (seen == seen[0]).all():
                return False
        return True

    assert all(together(work))
    np.testing.assert_array_equal(transformer.get(v), np.full(40, 40 * sum(range(THREADS))))


def test_a_first_call_from_many_threads(transformer: geon.Transformer) -> None:
    v = geon.Variable(axes=[C], initial_value=geon.Random(1).normal([C]))
    f = transformer.computation(v * 2)
    first, *others = together(lambda _: f())
    for other in others:
        np.testing.assert_array_equal(other, first)


def test_draws_of_many_threads_are_those_of_one(transformer: geon.Transformer) -> None:
    stream = geon.Random(4)
    f = transformer.computation(stream.bits([geon.Axis("K", 3)]))
    drawn = {tuple(map(int, bits)) for part in together(lambda _: [f() for _ in range(10)])
             for bits in part}  # fmt: skip
    transformer.set(stream.counter, 0)
    assert drawn == {tuple(map(int, f())) for _ in range(10 * THREADS)}
