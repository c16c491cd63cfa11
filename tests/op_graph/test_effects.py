"""State and order: what effects mean once ``functional`` has made values of them."""

import numpy as np
import pytest

import geon
from geon.op_graph.op_graph import post_order, same_ops
from geon.op_graph.transforms.functionalize import functional, pure_value

from .computing import compute, state_after

A, B, N = geon.Axis("A", 4), geon.Axis("B", 3), geon.Axis("N")


def variable(axes=(), name=None):
    return geon.Variable(axes=axes, dtype="float64", name=name)


@pytest.fixture
def v():
    return variable(name="v")


@pytest.fixture
def w():
    return variable([A, B], name="w")


def zeros(w):
    return {w: np.zeros((4, 3))}


# Values at entry, and after ----------------------------------------------------------------------


def test_a_swap_swaps():
    p, q = variable(), variable()
    swap = geon.doall([geon.assign(p, q), geon.assign(q, p)])
    assert state_after(swap, {p: 1.0, q: 2.0}) == {p: 2.0, q: 1.0}


def test_a_sequence_adds_two_and_yields_the_new_value(v):
    twice = geon.sequential([geon.assign(v, v + 1), geon.assign(v, v + 1), v])
    assert compute(twice, {v: 5.0}) == 7
    assert state_after(twice, {v: 5.0}) == {v: 7.0}
    assert geon.assign(v, v + 1) is geon.assign(v, v + 1)


def test_reads_beside_an_assignment_see_the_value_at_entry(v):
    read, after = v * 10.0, geon.assign(v, v + 1.0)
    assert compute([read, after, v], {v: 1.0}) == [10.0, None, 1.0]
    assert state_after([after, read], {v: 1.0}) == {v: 2.0}


def test_a_later_element_sees_the_effects_of_a_group(v):
    u = variable()
    both = geon.doall([geon.assign(v, u), geon.assign(u, v)])
    assert compute(geon.sequential([both, v * 10.0 + u]), {v: 1.0, u: 2.0}) == 21.0


def test_nested_sequences(v):
    inner = geon.sequential([geon.assign(v, v * 2.0), v])
    outer = geon.sequential([geon.assign(v, v + 1.0), inner + v])
    # inner is an argument of an element: its effect lands after that element has read v.
    assert compute(outer, {v: 3.0}) == 8 + 4
    assert state_after(outer, {v: 3.0}) == {v: 8.0}
    again = geon.sequential([inner, inner, v])
    assert compute(again, {v: 3.0}) == 12


def test_a_value_used_inside_and_outside_a_sequence(v):
    square = v * v
    y = square + geon.sequential([geon.assign(v, v + 1.0), square])
    assert compute(y, {v: 2.0}) == 4 + 9


def test_follows_is_a_sequence(v):
    step = geon.assign(v, v + 1.0)
    read = geon.multiply(v, 10.0, follows=[step])
    assert compute(read, {v: 1.0}) == 20.0 and state_after(read, {v: 1.0}) == {v: 2.0}
    late = geon.assign(v, v * 10.0, follows=step)
    assert state_after(late, {v: 1.0}) == {v: 20.0}


def test_an_effect_under_a_value_still_happens(v):
    y = geon.tanh(geon.sequential([geon.assign(v, 0.5), v]) + 1.0)
    assert state_after(y, {v: 3.0}) == {v: 0.5}
    assert compute(y, {v: 3.0}) == np.tanh(1.5)


def test_placeholders_are_set_for_later_elements_only(v):
    x = geon.placeholder((), "float64")
    y = geon.sequential([geon.SetItem(x, x + x), geon.assign(v, x), x])
    assert compute(y, {x: 3.0, v: 0.0}) == 6
    assert state_after(y, {x: 3.0, v: 0.0}) == {v: 6.0}


def test_a_result_asked_for_twice_is_run_once(v):
    step = geon.assign(v, v + 1.0)
    assert state_after([step, step, geon.doall([step])], {v: 1.0}) == {v: 2.0}


def test_what_has_no_effects_is_left_as_it_is(w):
    y = geon.sum(geon.tanh(w))
    assert pure_value(y) is y
    made = functional([y])
    assert same_ops(made.outputs, [y]) and same_ops(made.roots, [y])
    assert made.updates == {} and made.prints == ()


def test_functional_is_idempotent_and_pure(v):
    y = geon.sequential([geon.assign(v, v + 1.0), v * v])
    pure = pure_value(y)
    assert pure_value(pure) is pure and not pure.effectful and y.effectful
    assert all(op.primitive.kind != "effect" for op in post_order([pure]))


def test_lines_are_kept(v):
    y = geon.sequential([geon.assign(v, v + 1.0), v * v])
    assert "test_effects.py:" in pure_value(y).file_info


# Slices ------------------------------------------------------------------------------------------


def placed(w, at, value):
    array = np.zeros((4, 3))
    array[at] = value
    return array


@pytest.mark.parametrize(
    "at",
    [0, -1, slice(1, 3), slice(None, None, 2), slice(None, None, -1), slice(3, 0, -2),
     (slice(1, 3), 2), (slice(None), slice(0, 2)), (2, 1)],
    ids=str,
)  # fmt: skip
def test_a_set_on_a_slice(w, at):
    part = w[at]
    shape = tuple(part.axes.lengths)
    values = np.arange(1.0, 1 + np.prod(shape, dtype=int)).reshape(shape)
    value = geon.constant(values, axes=list(part.axes))
    found = state_after(geon.SetItem(part, value), zeros(w))[w]
    np.testing.assert_array_equal(found, placed(w, at, values))


def test_a_set_on_a_slice_of_a_slice(w):
    found = state_after(geon.assign(w[1:4][0:2][{B: 1}], 5.0), zeros(w))[w]
    np.testing.assert_array_equal(found, placed(w, (slice(1, 3), 1), 5))


def test_a_number_is_set_everywhere(w):
    np.testing.assert_array_equal(state_after(geon.assign(w, 2), zeros(w))[w], np.full((4, 3), 2.0))


def test_a_set_at_a_position_known_at_run_time(w):
    i = geon.placeholder((), "int64")
    found = state_after(geon.assign(w[i], 1.0), {**zeros(w), i: np.int64(2)})[w]
    np.testing.assert_array_equal(found, placed(w, 2, 1))


def test_a_position_is_read_in_order(w):
    i = geon.Variable(dtype="int64")
    steps = geon.sequential([geon.assign(w[i], 1.0), geon.assign(i, i + 1), geon.assign(w[i], 2.0)])
    after = state_after(steps, {**zeros(w), i: np.int64(1)})
    np.testing.assert_array_equal(after[w][:, 0], [0, 1, 2, 0])
    assert after[i] == 2


def test_a_later_set_on_an_overlapping_slice_wins(w):
    steps = geon.sequential([geon.assign(w[0:3], 1.0), geon.assign(w[2:4], w[1:3] * 2.0)])
    np.testing.assert_array_equal(state_after(steps, zeros(w))[w][:, 0], [1, 1, 2, 2])


# Unordered assignments ---------------------------------------------------------------------------


def both(*ops):
    return geon.doall(ops)


DISJOINT = [
    (slice(0, 2), slice(2, 4)),
    (0, 1),
    (0, slice(1, 4)),
    (-1, slice(0, 3)),
    (slice(0, 4, 2), slice(1, 4, 2)),
    (slice(0, 4, 2), 3),
    ((slice(None), 0), (slice(None), slice(1, 3))),
    (slice(3, 1, -1), slice(1, None, -1)),
]
OVERLAPPING = [
    (slice(None), 0),
    (slice(0, 3), slice(2, 4)),
    (slice(0, 4, 2), slice(0, 4, 3)),
    (slice(0, 4, 2), 2),
    ((0, slice(None)), (slice(None), 0)),
    (1, -3),
]


@pytest.mark.parametrize(("first", "second"), DISJOINT, ids=str)
def test_parts_that_do_not_overlap_need_no_order(w, first, second):
    ops = geon.assign(w[first], 1.0), geon.assign(w[second], 2.0)
    expected = placed(w, first, 1) + placed(w, second, 2)
    np.testing.assert_array_equal(state_after(both(*ops), zeros(w))[w], expected)
    np.testing.assert_array_equal(state_after(ops, zeros(w))[w], expected)


@pytest.mark.parametrize(("first", "second"), OVERLAPPING, ids=str)
def test_parts_that_overlap_need_an_order(w, first, second):
    ops = geon.assign(w[first], 1.0), geon.assign(w[second], 2.0)
    with pytest.raises(geon.OrderError, match=r"w\(A:4, B:3\).*geon.sequential") as caught:
        functional([both(*ops)])
    assert str(caught.value).count("test_effects.py:") == 3
    with pytest.raises(geon.OrderError):
        functional(ops)
    functional([geon.sequential(ops)])


def test_positions_known_at_run_time_may_overlap(w):
    i = geon.placeholder((), "int64")
    with pytest.raises(geon.OrderError):
        functional([geon.assign(w[i], 1.0), geon.assign(w[0], 2.0)])
    functional([geon.assign(w[{A: i, B: 0}], 1.0), geon.assign(w[{B: 1}], 2.0)])


def test_parts_of_an_open_axis():
    w = variable([N])
    functional([geon.assign(w[0], 1.0), geon.assign(w[1:], 2.0)])
    functional([geon.assign(w[:-1], 1.0), geon.assign(w[-1], 2.0)])
    with pytest.raises(geon.OrderError):
        functional([geon.assign(w[0], 1.0), geon.assign(w[-1], 2.0)])


def test_a_sequence_beside_an_assignment_needs_an_order(v):
    steps = geon.sequential([geon.assign(v, 1.0), geon.assign(v, 2.0)])
    with pytest.raises(geon.OrderError):
        functional([steps, geon.assign(v, 3.0)])
    assert state_after([steps, steps], {v: 0.0}) == {v: 2.0}


def test_two_variables_need_no_order(v):
    u = variable()
    assert state_after([geon.assign(v, 1.0), geon.assign(u, 2.0)], {v: 0.0, u: 0.0}) == {v: 1, u: 2}


# Prints ------------------------------------------------------------------------------------------


def test_prints_are_kept_in_order(v):
    first = geon.print(v, "before")
    steps = geon.sequential([first, geon.assign(v, v + 1.0), geon.print(v, "after"), v])
    made = functional([steps])
    assert [op.attrs.label for op in made.prints] == ["before", "after"]
    assert compute(made.prints[1], {v: 1.0}) == 2.0
    assert geon.print(v).attrs.label == str(v)


# What is refused ---------------------------------------------------------------------------------


def test_only_storage_can_be_assigned(v, w):
    c = geon.constant([1.0], axes=geon.Axis("L", 1))
    for target in (c, v + 1.0, geon.tanh(w)[0], geon.reorder(w, [B, A])):
        with pytest.raises(geon.AssignError, match=r"cannot assign.*test_effects.py:\d+.*Variable"):
            geon.assign(target, 1.0)
    with pytest.raises(geon.AssignError, match="3"):
        geon.assign(3, 1.0)


def test_groups_take_ops(v):
    for group in (geon.doall, geon.sequential):
        with pytest.raises(geon.AssignError, match="takes ops, not 3"):
            group([3])
    with pytest.raises(geon.AssignError, match="at least one"):
        geon.sequential([])
    assert functional([geon.doall([])]).updates == {}


def test_a_value_must_fit_the_target(w):
    with pytest.raises(geon.AxisError, match="N"):
        geon.assign(w, geon.placeholder([N], "float64"))
    geon.assign(w, geon.placeholder([B], "float64"))
    with pytest.raises(geon.DTypeError, match="has no value"):
        geon.assign(w, geon.assign(w, 1.0))


# Size --------------------------------------------------------------------------------------------


def test_a_long_sequence_passes(v):
    steps = [geon.assign(v, v + 1.0)] * 3000
    assert state_after(geon.sequential(steps), {v: 0.0}) == {v: 3000.0}


def test_deep_nesting_passes(v):
    op = geon.assign(v, v + 1.0)
    for _ in range(20_000):
        op = geon.sequential([op])
    assert state_after(op, {v: 0.0}) == {v: 1.0}
