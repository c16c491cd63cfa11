"""Positions that are inside of an axis by what computes them are not checked at run time."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import geon
from geon.op_graph.axes.lengths import evaluate
from geon.transformers.lowering.facts.position_ranges import range_of

N, M, K = geon.Axis("N"), geon.Axis("M", 5), geon.Axis("K", 3)
LENGTHS = {"N": 4}
RANDOM = np.random.default_rng(3)
SCORES = RANDOM.normal(size=(4, 5))
WHOLE = RANDOM.integers(-30, 30, size=(4, 5))
scores = geon.placeholder([N, M], dtype="float64", name="scores")
whole = geon.placeholder([N, M], dtype="int64", name="whole")

# Positions along N or M with a known range.
BOUNDED: dict[str, Callable[[], Any]] = {
    "argmax": lambda: geon.argmax(scores, M),
    "argmax over an open axis": lambda: geon.argmax(scores, N),
    "argmax over two axes": lambda: geon.argmax(scores, [N, M]),
    "argmin": lambda: geon.argmin(scores, M),
    "argsort": lambda: geon.argsort(scores, M),
    "top_k": lambda: geon.top_k(scores, 2, M)[1],
    "clip": lambda: geon.clip(whole, 1, 4),
    "iota backwards": lambda: -1 - geon.iota(M) + 5,
    "remainder": lambda: whole % 5,
    "quotient": lambda: geon.floordivide(geon.clip(whole, -9, 9), 4),
    "quotient and remainder": lambda: geon.floordivide(geon.iota(M), 2) * 2 - geon.iota(M) % 2,
    "constant": lambda: geon.constant([4, 0, -5], axes=[K]),
    "truth": lambda: geon.cast(whole > 0, "int64"),
    "choice": lambda: geon.where(whole > 0, geon.iota(M), 2),
    "extremes": lambda: geon.minimum(geon.maximum(whole, geon.iota(M)), 4),
    "views": lambda: geon.flip(geon.argsort(scores, M)[{M: slice(1, 4)}], M),
    "gathered": lambda: geon.gather(geon.argsort(scores, M), {M: geon.argmax(scores, M)}),
}
UNBOUNDED: dict[str, Callable[[], Any]] = {
    "data": lambda: whole,
    "sum": lambda: geon.sum(geon.argmax(scores, M), N),
    "product of what may be negative": lambda: geon.clip(whole, -2, 2) * geon.clip(whole, -2, 2),
    "remainder by data": lambda: geon.iota(M) % whole,
    "narrow": lambda: geon.cast(geon.cast(geon.clip(whole, 0, 400), "int8"), "int64"),
    "clipped below": lambda: geon.maximum(whole, 0),
    "cast of a float": lambda: geon.cast(geon.clip(scores, 0.0, 4.0), "int64"),
}


def computed(op: Any) -> Any:
    return geon.NumPyTransformer().computation(op, scores, whole)(SCORES, WHOLE)


@pytest.mark.parametrize("name", BOUNDED)
def test_elements_are_in_the_range(name: str) -> None:
    op = BOUNDED[name]()
    low, high = range_of(op)
    assert low is not None and high is not None
    values = computed(op)
    assert evaluate(low, LENGTHS) <= values.min() and values.max() <= evaluate(high, LENGTHS)


@pytest.mark.parametrize("name", UNBOUNDED)
def test_no_bounds_are_invented(name: str) -> None:
    low, high = range_of(UNBOUNDED[name]())
    assert low is None or high is None


def checks(op: Any, *given: Any) -> int:
    """Return the number of kernels that check positions."""
    f = geon.NumPyTransformer().computation(op, *given)
    return str(f.explain("schedule")).count("can raise")


@pytest.mark.parametrize("name", [n for n in BOUNDED if "open" not in n and "two" not in n])
def test_a_gather_by_these_is_not_checked(name: str) -> None:
    table = geon.constant(np.arange(5.0), axes=[geon.Axis("place", 5)])
    index = BOUNDED[name]()
    made = geon.gather(table, index, "place")
    expected = np.arange(5.0)[computed(index)]
    assert checks(made, scores, whole) == 0
    np.testing.assert_array_equal(computed(made), expected)
    made = geon.gather(table, {"place": index})
    assert checks(made, scores, whole) == 0
    np.testing.assert_array_equal(computed(made), expected)


def test_positions_along_several_axes_are_checked_once_each(transformer: Any) -> None:
    i, j = geon.argmax(scores, M), geon.placeholder([N], dtype="int64", name="j")
    table = geon.placeholder([M, K], dtype="float64", name="table")
    made = geon.gather(table, {M: i, K: j})
    assert checks(made, scores, table, j) == 1
    f = transformer.computation(made, scores, table, j)
    values, picked = RANDOM.normal(size=(5, 3)), np.array([0, -1, 2, -3])
    expected = values[SCORES.argmax(1), picked]
    np.testing.assert_array_equal(f(SCORES, values, picked), expected)
    with pytest.raises(geon.IndexRangeError, match="-4 to 2 where the axis has length 3"):
        f(SCORES, values, np.array([0, -4, 2, 1]))


def test_updates_and_scatters_need_no_check_either(transformer: Any) -> None:
    at = geon.argmax(scores, M)
    made = geon.scatter(geon.broadcast(0.0, [M]), at, 1.0, M, mode="add")
    part = geon.take_along(whole, at, M)
    assert checks([made, part], scores, whole) == 0
    counted, picked = transformer.computation([made, part], scores, whole)(SCORES, WHOLE)
    np.testing.assert_array_equal(counted, np.bincount(SCORES.argmax(1), minlength=5))
    np.testing.assert_array_equal(picked, WHOLE[np.arange(4), SCORES.argmax(1)])


def test_positions_just_outside_are_checked(transformer: Any) -> None:
    table = geon.placeholder([M], dtype="float64", name="table")
    for shift in (1, -6):
        made = geon.gather(table, geon.iota(M) + shift, M)
        assert checks(made, table) == 1
        with pytest.raises(geon.IndexRangeError):
            transformer.computation(made, table)(np.zeros(5))
    made = geon.gather(table, geon.iota(M) - 5, M)
    assert checks(made, table) == 0
    np.testing.assert_array_equal(
        transformer.computation(made, table)(np.arange(5.0)), np.arange(5.0)
    )


def test_large_graphs_of_positions_take_no_long_time() -> None:
    index: Any = geon.iota(M)
    for _ in range(10):
        index = geon.minimum(index + index, 4)
    assert range_of(index) == (0, 4)
    for _ in range(3000):
        index = geon.minimum(index + index, 4)
    assert range_of(index) == (None, 4)
