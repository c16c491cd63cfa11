"""Open lengths: one computation for every length, and violated guards."""

from __future__ import annotations

import numpy as np
import pytest

import geon
from geon.testing import assert_agrees

C = geon.Axis("C", 3)


def ramp(*shape: int) -> np.ndarray[tuple[int, ...], np.dtype[np.float32]]:
    """Return 0, 1, 2, ... in this shape."""
    return np.arange(np.prod(shape), dtype=np.float32).reshape(shape)


def test_one_computation_takes_every_length(transformer: geon.Transformer) -> None:
    n, m = geon.Axis("N"), geon.Axis("M")
    x, y = geon.placeholder([n, C]), geon.placeholder([C, m])
    product = geon.dot(x, y)
    results = [geon.sum(product, n), geon.softmax(product, normalization_axes=m), x - geon.mean(x)]
    f = transformer.computation([*results, geon.tensor_size(product)], x, y)
    for size in [(1, 1), (5, 2), (2, 5), (64, 33), (5, 2), (0, 4)]:
        a, b = ramp(size[0], 3) / 10, np.cos(ramp(3, size[1]))
        total, shares, centred, count = f(a, b)
        np.testing.assert_allclose(total, (a @ b).sum(0), rtol=1e-4, atol=1e-4)
        e = np.exp(a @ b - (a @ b).max(1, keepdims=True))
        np.testing.assert_allclose(shares, e / e.sum(1, keepdims=True), rtol=1e-4)
        assert centred.shape == a.shape and int(count) == size[0] * size[1]


@pytest.mark.parametrize("size", [2, 3, 6, 7, 128])
def test_derived_lengths(transformer: geon.Transformer, size: int) -> None:
    n = geon.Axis("N")
    x = geon.placeholder([n, C])
    twice = geon.concat([x, x[::2]], n)
    results = [
        twice,
        geon.flatten(twice, [n, C]),
        geon.pad(x, {n: (2, 1)}),
        x[1:] - x[:-1],
        geon.flatten(geon.broadcast(x, [n, n.prime, C])),
        geon.sum(geon.rename(x, {n: n.prime}), C),
        geon.cast(geon.iota(n), "float32") * 2,
        geon.cumsum(twice, n),
    ]
    assert_agrees(transformer, results, {x: ramp(size, 3)})


def test_lengths_that_are_asked_for(transformer: geon.Transformer) -> None:
    n = geon.Axis("of asked lengths")
    ones = geon.broadcast(geon.constant(1.0), [n])
    f = transformer.computation([geon.sum(ones), geon.iota(n)], lengths={n: 6})
    assert float(f()[0]) == 6 and list(f()[1]) == [0, 1, 2, 3, 4, 5]
    n.length = 4
    try:
        assert float(transformer.computation(geon.sum(ones))()) == 4
        x = geon.placeholder([n])
        with pytest.raises(geon.FeedError, match="of asked lengths"):
            transformer.computation(x + 1, x)(ramp(5))
    finally:
        n.length = None  # otherwise later tests would see it


def test_two_lengths_under_one_name(transformer: geon.Transformer) -> None:
    n = geon.Axis("N")
    x, y = geon.placeholder([n]), geon.placeholder([n])
    f = transformer.computation(x + y, x, y)
    with pytest.raises(geon.FeedError, match="N"):
        f(ramp(2), ramp(3))
    np.testing.assert_array_equal(f(ramp(3), ramp(3)), 2 * ramp(3))


def test_guards_are_checked_before_anything_changes(transformer: geon.Transformer) -> None:
    n, m = geon.Axis("N"), geon.Axis("M")
    x, y = geon.placeholder([n]), geon.placeholder([m])
    v = geon.Variable(initial_value=0)
    count = geon.assign(v, v + 1)
    joined = x + geon.rename(y, {m: n})
    f = transformer.computation([joined, x[2:4], geon.max(x), count], x, y)
    f(ramp(5), ramp(5))
    for first, second in ((ramp(5), ramp(4)), (ramp(3), ramp(3)), (ramp(0), ramp(0))):
        with pytest.raises(geon.GuardError, match="test_lengths.py:"):
            f(first, second)
    assert float(transformer.get(v)) == 1


def test_nothing_is_a_legal_length(transformer: geon.Transformer) -> None:
    n = geon.Axis("N")
    x = geon.placeholder([n, C])
    results = [x * 2, geon.sum(x, n), geon.prod(x), geon.cumsum(x, n), geon.sort(x, n), x[::-1],
               geon.dot(x, x, over=n), geon.any(x > 0, n), geon.concat([x, x], n)]  # fmt: skip
    assert_agrees(transformer, results, {x: ramp(0, 3)})
