"""Errors of invalid calls, which must leave variables unchanged."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import geon

C = geon.Axis("C", 3)


def test_arguments(transformer: geon.Transformer) -> None:
    x, y = geon.placeholder([C], name="x"), geon.placeholder((), name="y")
    f = transformer.computation(x * y, x, y)
    np.testing.assert_array_equal(f([1, 2, 3], y=2), [2, 4, 6])
    wrong: list[tuple[tuple[Any, ...], dict[str, Any]]] = [
        (([1, 2, 3],), {}),
        (([1, 2, 3], 1, 1), {}),
        (([1, 2, 3], 1), {"y": 2}),
        (([1, 2, 3],), {"z": 2}),
    ]
    for arguments, keywords in wrong:
        with pytest.raises(geon.ArgumentError):
            f(*arguments, **keywords)
    with pytest.raises(geon.ArgumentError, match="test_errors.py:"):
        transformer.computation(x * y, x)


@pytest.mark.parametrize(
    ("dtype", "value"),
    [
        ("float32", [1, 2]),
        ("float32", [[1, 2, 3]]),
        ("float32", ["a", "b", "c"]),
        ("float32", [1e300, 0, 0]),
        ("int8", [1, 2, 300]),
        ("uint16", [-1, 0, 0]),
        ("int64", [1.0, 2.0, 3.0]),
        ("bool", [1, 0, 1]),
        ("float16", [1e6, 0, 0]),
    ],
)
def test_feeds(transformer: geon.Transformer, dtype: str, value: Any) -> None:
    x = geon.placeholder([C], dtype)
    f = transformer.computation(geon.where(x > 0, x, x), x)
    with pytest.raises(geon.FeedError, match="test_errors.py:"):
        f(np.array(value))


def test_feeds_are_cast_within_a_kind_and_upwards(transformer: geon.Transformer) -> None:
    x = geon.placeholder([C], "float32")
    f = transformer.computation(x + 0.5, x)
    for given in ([1, 2, 3], np.array([1, 2, 3], np.int8), np.array([1.0, 2, 3]), (True, 2, 3)):
        np.testing.assert_array_equal(f(given), [1.5, 2.5, 3.5])
    assert np.isinf(f([np.inf, 0, 0])[0])


def test_values_that_are_not_finite_are_found(transformer: geon.Transformer) -> None:
    x = geon.placeholder([C])
    v = geon.Variable(initial_value=0)
    y = geon.log(x)
    loss = geon.sum(y)
    results = [loss, geon.deriv(loss, x), geon.assign(v, v + 1)]
    f = transformer.computation(results, x, check="nan")
    f([1, 2, 3])
    with pytest.raises(geon.NonFiniteError, match="test_errors.py:") as caught:
        f([1, 0, 3])
    assert "log" in str(caught.value)
    assert float(transformer.get(v)) == 1
    assert np.isinf(transformer.computation(results, x)([1, 0, 3])[0])


T = geon.Axis("T")
IN_LOOPS: dict[str, tuple[Any, str]] = {
    "scan": (lambda x, n: geon.scan(lambda c, _: (geon.log(c), None), x, over=T.with_length(4))[0],
             r"log\(.*at step 1 along T"),
    "while": (lambda x, n: geon.while_loop(lambda c: c[1] > 0, lambda c: (c[0] * c[0], c[1] - 1),
                                           (x, n))[0],
              r"multiply\(.*at step [67] along a while loop"),
    "branch": (lambda x, n: geon.cond(n > 2, lambda: geon.log(x - 1), lambda: x), r"log\("),
}  # fmt: skip


@pytest.mark.parametrize("name", IN_LOOPS)
def test_values_in_loops_that_are_not_finite_are_found(
    transformer: geon.Transformer, name: str
) -> None:
    x, n = geon.placeholder([C]), geon.placeholder([], "int64")
    build, message = IN_LOOPS[name]
    f = transformer.computation([geon.exp(build(x, n)), n], x, n, check="nan")
    with pytest.raises(geon.NonFiniteError, match=rf"^{message}.*: . of 3 values"):
        f([1, 1, 2 if name == "while" else 1], 200)


def test_infinities_in_loops_that_were_written_are_none_of_these(
    transformer: geon.Transformer,
) -> None:
    x = geon.placeholder([T, C])
    start = geon.constant(np.zeros(3), [C])
    masked = geon.scan(
        lambda c, each: (c + geon.exp(geon.where(each > 0, each, -np.inf)), None), start, x, over=T
    )[0]
    f = transformer.computation(masked, x, check="nan")
    np.testing.assert_allclose(f([[0, 1, -1]]), [0, np.e, 0], rtol=1e-5)


def test_a_closed_transformer_refuses(transformer: geon.Transformer) -> None:
    x = geon.placeholder([C])
    v = geon.Variable(initial_value=0)
    f, g = transformer.computation(x + 1, x), transformer.computation(v + x, x)
    f([1, 2, 3]), g([1, 2, 3])
    transformer.close()
    for refused in (lambda: g([1, 2, 3]), lambda: transformer.get(v), transformer.initialize,
                    lambda: f([1, 2, 3])):  # fmt: skip
        with pytest.raises(geon.ClosedError):
            refused()
