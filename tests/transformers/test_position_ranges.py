"""Positions that are inside of an axis by what computes them are not checked at run time."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import geon
from geon.op_graph.axes.lengths import evaluate
from geon.op_graph.evaluation.interpreter import interpret
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


# Positions that a loop carries --------------------------------------------------------------------

PLACE = geon.Axis("place", 5)
NEXT = geon.constant([2, 0, 4, 1, 3], axes=[PLACE], dtype="int64")


def followed(start: Any, step: Callable[[Any], Any], steps: int | None = None) -> Any:
    """Return the last of the positions that ``step`` leads to, from 0 on."""
    return geon.while_loop(lambda at: geon.any(at < 4), step, start, max_steps=steps)


def by_table(at: Any) -> Any:
    return geon.gather(NEXT, at, PLACE)


def in_scan(start: Any, step: Callable[[Any], Any]) -> Any:
    along = geon.Axis("T", 3)
    return geon.scan(lambda at, _: (step(at), step(at)), start, geon.iota(along), over=along)


FIRST = geon.constant([0, 1, 2], axes=[K], dtype="int64")
# Loops whose positions are inside in every step.
PROVEN: dict[str, Callable[[], Any]] = {
    "carry": lambda: by_table(followed(FIRST, by_table, 6)),
    "growing carry": lambda: by_table(
        followed(FIRST, lambda at: geon.minimum(by_table(at) + 1, 4), 6)
    ),
    "scan": lambda: by_table(in_scan(FIRST, by_table)[0]),
    "stacks of a scan": lambda: by_table(in_scan(FIRST, by_table)[1]),
    "slices and steps": lambda: geon.scan(
        lambda total, at: (total + geon.sum(by_table(at + geon.iota(K)), K), None),
        geon.constant(0, dtype="int64"),
        geon.iota(geon.Axis("T", 3)),
        over="T",
    )[0],
    "loop in a loop": lambda: in_scan(FIRST, lambda at: followed(at, by_table, 2))[0],
    "case": lambda: by_table(
        geon.cond(geon.sum(whole) > 0, lambda: FIRST + 1, lambda: by_table(FIRST + 2))
    ),
}


def all_checks(op: Any) -> int:
    """Return the number of checks in the graph that is compiled, with those inside of loops."""
    f = geon.NumPyTransformer().computation(op, whole)
    return str(f.explain("simplify")).count("checked")


@pytest.mark.parametrize("name", PROVEN)
def test_positions_in_loops_that_are_always_inside_are_not_checked(
    name: str, transformer: Any
) -> None:
    made = PROVEN[name]()
    assert all_checks(made) == 0
    expected = interpret([made], {whole: WHOLE}, LENGTHS)[made]
    np.testing.assert_array_equal(transformer.computation(made, whole)(WHOLE), expected)


# Positions that leave the axis in some step.
LEAVING: dict[str, Callable[[], Any]] = {
    "carry that grows": lambda: followed(FIRST, lambda at: by_table(at) * 0 + at + 3, 6),
    "carry that begins outside": lambda: followed(FIRST + 3, by_table, 6),
    "carry of another carry": lambda: geon.while_loop(
        lambda c: geon.any(c[0] < 4),
        lambda c: (by_table(c[1]), c[1] + c[0] + 1),
        (FIRST, FIRST),
        max_steps=6,
    )[0],
    "step number": lambda: in_scan(
        FIRST, lambda at: by_table(geon.broadcast(geon.max(at), [K]) + 3)
    )[0],
}


@pytest.mark.parametrize("name", LEAVING)
def test_positions_that_may_leave_the_axis_in_a_step_are_checked(
    name: str, transformer: Any
) -> None:
    made = LEAVING[name]()
    assert all_checks(made) > 0
    with pytest.raises(geon.IndexRangeError):
        transformer.computation(made, whole)(WHOLE)


def test_positions_that_pass_through_many_loops_take_no_deep_recursion() -> None:
    at: Any = FIRST
    for _ in range(400):
        at = followed(at, lambda p: geon.minimum(p + 1, 4), 3)
    assert range_of(at) == (None, None)  # ops that are too far away are not looked at
    assert all_checks(by_table(at)) == 0  # but each loop is known where the next one begins
