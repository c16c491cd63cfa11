"""Joins, borders and updates are computed by pieces in which nothing is chosen for each element."""

import itertools
import math

import numpy as np
import pytest

import geon
from geon.op_graph.axes.affine import AffineIndex, variable
from geon.op_graph.axes.index_map import InRange
from geon.transformers.kernels.analysis.index_boxes import Facts, Interval, guards_of, points_of
from geon.transformers.kernels.ir.scalar_code import Clamped, indices, walk
from geon.transformers.kernels.nests.index_set_splitting import (
    MAX_PIECES,
    _Splitter,
    in_turns,
    stored_values,
    with_borders,
)
from tests.golden.emitting import Native
from tests.random_borders import Borders

from .transformer import KernelsTransformer

N, C = geon.Axis("N", 40), geon.Axis("C", 30)
OPEN = geon.Axis("N"), geon.Axis("C")
SIZES = (N, C), OPEN


def taken(x, axis, *where):
    return x[{axis: slice(*where)}]


def slope(x, c):
    """That of the squares of differences along an axis."""
    return geon.deriv(geon.sum(geon.square(taken(x, c, 1, None) - taken(x, c, None, -1))), x)


JOINS = {
    "rows": lambda x, n, c: geon.concat([geon.tanh(x), x * 2.0, x], n),
    "columns": lambda x, n, c: geon.concat([geon.tanh(x), x * 2.0, x], c),
    "below other ops": lambda x, n, c: geon.exp(geon.concat([x, x * x], c)) + 1,
    "both": lambda x, n, c: geon.concat(
        [geon.concat([x, x + 1], c), geon.concat([x * 2, x], c)], n
    ),
    "border": lambda x, n, c: geon.pad(x * 2, {n: (1, 2), c: (3, 1)}),
    "one side": lambda x, n, c: geon.pad(x * 2, {c: (0, 9)}),
    "slope along rows": lambda x, n, c: slope(x, c),
    "slope along columns": lambda x, n, c: slope(x, n),
    "turned": lambda x, n, c: geon.concat([geon.flip(x, c), geon.flip(x * 2, c)], c),
    "turned after": lambda x, n, c: geon.flip(geon.concat([x + 1, x * 2], c), c) * 2,
    "stacked": lambda x, n, c: geon.stack([x, x + 1, x * x], geon.Axis("S"), 2),
    "stacked first": lambda x, n, c: geon.stack([x, x + 1, x * x], geon.Axis("S"), 0),
    "every second": lambda x, n, c: taken(geon.concat([x + 1, x * 2], c), c, None, None, 2) + 1,
}


def nests(f):
    return [kernel.work for kernel in f.plan.schedule.kernels]


def computation(make, n, c, transformer=Native):
    x = geon.placeholder([n, c])
    return transformer().computation(make(x, n, c), x)


@pytest.mark.parametrize("axes", [(N, C), OPEN], ids=["known", "open"])
@pytest.mark.parametrize("name", JOINS)
def test_no_element_of_a_piece_is_chosen(name, axes):
    (nest,) = nests(computation(JOINS[name], *axes))
    assert nest.pieces and any(guards_of(*stored_values(nest)))
    for piece in nest.pieces:
        assert not any(guards_of(*stored_values(piece)))


def test_rows_of_columns_side_by_side_are_walked_once():
    (nest,) = nests(computation(JOINS["columns"], N, C))
    (piece,) = nest.pieces
    assert [step.loops[-1].extent for step in piece.steps] == [30, 30, 30]


def test_parts_one_after_another_are_single_loops():
    (nest,) = nests(computation(JOINS["rows"], N, C))
    assert [[len(step.loops) for step in piece.steps] for piece in nest.pieces] == [[1], [1], [1]]


def test_a_short_innermost_axis_has_no_loop():
    (nest,) = nests(computation(JOINS["stacked"], N, C))
    (piece,) = nest.pieces
    (step,) = piece.steps
    assert len(step.stores) == 3 and step.loops[-1].extent == 1200


@pytest.mark.parametrize("axes", [(N, C), OPEN], ids=["known", "open"])
@pytest.mark.parametrize("step", [2, 3, 4])
def test_a_slope_of_every_second_element_takes_two_at_a_time(axes, step):
    """What is left behind the last whole turn is a loop of its own."""

    def make(x, n, c):
        return geon.deriv(geon.sum(geon.square(taken(x, c, 1, None, step))), x)

    (nest,) = nests(computation(make, *axes))
    (piece,) = nest.pieces
    (turns,) = [each for each in piece.steps if len(each.stores) == step]
    assert [store.offset.step(turns.loops[-1].name) for store in turns.stores] == [step] * step
    assert not any(guards_of(*[store.value for store in turns.stores]))


def test_a_thin_border_is_cut_along_rows_alone():
    """A stencil of two on all sides: two borders of rows, and what lies between them."""
    x = geon.placeholder([geon.Axis("N", 80), geon.Axis("C", 90)])
    n, c = x.axes

    def curved(axis):
        return geon.square(taken(x, axis, 2, None) - taken(x, axis, 1, -1) + taken(x, axis, 0, -2))

    loss = geon.sum(curved(n)) + geon.sum(curved(c))
    (nest,) = nests(Native().computation(geon.deriv(loss, x), x))
    assert len(nest.pieces) == 3
    assert {len(piece.steps) for piece in nest.pieces} == {3}


@pytest.mark.parametrize("axes", ["XYZ", "ZXY", "YZX"])
def test_a_long_row_of_a_piece_is_read_as_a_run(axes):
    """A border of an axis that is not cut decides nothing along those whose indices it leaves."""
    a, b, c = (geon.Axis(name, 80) for name in axes)
    x = geon.placeholder([a, b, c])
    bent = -6 * x[1:-1, 1:-1, 1:-1] + x[2:, 1:-1, 1:-1] + x[:-2, 1:-1, 1:-1]
    bent += x[1:-1, 2:, 1:-1] + x[1:-1, :-2, 1:-1] + x[1:-1, 1:-1, 2:] + x[1:-1, 1:-1, :-2]
    slope = geon.deriv(geon.sum(geon.square(bent)), x)
    *_, nest = nests(Native().computation(slope, x))
    long = [step for piece in nest.pieces for step in piece.passes if step.loops[-1].extent > 60]
    assert long
    for step in long:
        along = step.loops[-1].name
        for node in walk(*(store.value for store in step.stores)):
            for atom in (a for index in indices(node) for a in index.terms):
                assert not (isinstance(atom, Clamped) and along in atom.of.terms)


def test_small_values_and_joins_of_many_are_left_alone():
    small = geon.Axis("N", 5), geon.Axis("C", 5)
    (nest,) = nests(computation(JOINS["columns"], *small))
    assert not nest.pieces
    many = [*range(MAX_PIECES + 1)]
    (nest,) = nests(computation(lambda x, n, c: geon.concat([x + k for k in many], n), N, C))
    assert not nest.pieces


def test_what_must_hold_of_open_lengths_is_said():
    (nest,) = nests(computation(JOINS["slope along rows"], *OPEN))
    assert [str(size) for size in nest.holds] == ["C - 2"]
    (nest,) = nests(computation(JOINS["columns"], *OPEN))
    assert nest.holds == ()


@pytest.mark.parametrize("name", JOINS)
def test_pieces_give_the_bits_of_the_whole(name):
    """The transformer of data compares them wherever a nest has pieces."""
    f = computation(JOINS[name], *OPEN, KernelsTransformer)
    g = computation(JOINS[name], *OPEN, lambda: geon.make_transformer("numpy"))
    for n, c in [(2, 2), (2, 3), (3, 2), (5, 2), (7, 8)]:
        x = np.random.default_rng(n).standard_normal((n, c)).astype(np.float32)
        np.testing.assert_allclose(f(x), g(x), rtol=1e-6, err_msg=f"{n} by {c}")


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize(
    "where", [(0, None, 2), (1, None, 2), (2, -1, 3), (5, 19, 7), (3, None, 9)]
)
def test_slopes_of_slices_with_steps(axis, where):
    """Also with flips, sums of several, and what is left in each length."""

    def make(x, n, c):
        along = (n, c)[axis]
        part = geon.square(taken(x, along, *where))
        turned = geon.square(taken(geon.flip(x, along), along, 1, None, 2))
        return geon.deriv(geon.sum(part) + geon.sum(turned), x)

    f = computation(make, *OPEN, KernelsTransformer)
    g = computation(make, *OPEN, lambda: geon.make_transformer("numpy"))
    for n, c in [(20, 21), (21, 20), (22, 23), (25, 24), (40, 43)]:
        x = np.random.default_rng(n).standard_normal((n, c)).astype(np.float32)
        np.testing.assert_allclose(f(x), g(x), rtol=1e-6)
        known = N.with_length(n), C.with_length(c)
        np.testing.assert_allclose(
            computation(make, *known, KernelsTransformer)(x), g(x), rtol=1e-6
        )


@pytest.mark.parametrize("phases", range(1, 10))
def test_turns_and_borders_take_each_index_once(phases):
    """Of intervals of any lengths, long ones and open ones beside them."""
    for lengths in [(3, 20, 3), (1, 64, 9), (70, 2, 5), (5, 4, 30), (7, 8, 1), (0, 11, 0)]:
        bounds = [0, *np.cumsum(lengths).tolist()]
        parts = [Interval(a, b - a) for a, b in itertools.pairwise(bounds)]
        for long in (1, 10, 64, math.inf):
            found = with_borders(in_turns(parts, phases, Facts()), long)
            taken = [each.low + k for each in found for k in range(each.turns * each.phases)]
            assert taken == list(range(bounds[-1]))


@pytest.mark.parametrize("part", range(4))
def test_random_borders(part):
    """Each element is stored once, from what there is, and is that of NumPy."""
    for number in range(6 * part, 6 * part + 6):
        case = Borders(number)
        feeds = case.feeds()
        found, expected = [
            transformer.computation(case.results, *feeds)(*feeds.values())
            for transformer in (KernelsTransformer(), geon.NumPyTransformer())
        ]
        for a, b in zip(found, expected, strict=True):
            np.testing.assert_allclose(a, b, 1e-6, 1e-9, err_msg=f"{case.what} {case.known}")


@pytest.mark.slow
def test_axes_along_which_nothing_is_chosen_have_no_pieces(monkeypatch):
    """To look for what is chosen along all axes finds no other pieces."""

    def texts():
        found = [computation(make, *axes).source for make in JOINS.values() for axes in SIZES]
        for number in range(40):
            case = Borders(number)
            found.append(Native().computation(case.results, *case.feeds()).source)
        return found

    looked = set()
    few = _Splitter.chosen.func
    monkeypatch.setattr(_Splitter, "chosen", property(lambda self: all_of(self, looked, few)))
    every = texts()
    monkeypatch.undo()
    assert texts() == every
    assert {True, False} <= looked


def all_of(splitter, looked, few):
    """All axes of what a splitter takes apart; whether elements choose along fewer is noted."""
    looked.add(len(few(splitter)) < len(splitter.order))
    return set(splitter.order)


# What is known of lengths -------------------------------------------------------------------------


def test_points_at_which_guards_begin_and_end():
    """For each step of an index, the same as trying all of them."""
    for step in (1, -1, 2, -2, 3, -3):
        for constant in range(-4, 9):
            guard = InRange(variable("i") * step + constant, 1, 5)
            low, high = points_of(guard, "i")
            for i in range(-12, 13):
                assert (low <= i < high) == (1 <= step * i + constant < 5)
    assert points_of(InRange(variable("i") + variable("j"), 0, 3), "i") is None


def test_guards_are_decided_by_ranges():
    facts, i = Facts(), variable("i")
    n = geon.Axis("N").expression
    assert facts.decide(InRange(i + 1, 1, n + 1), {"i": n}) is True
    assert facts.decide(InRange(i, n, n + 3), {"i": n}) is False
    assert facts.decide(InRange(i, 1, n), {"i": n}) is None
    assert facts.decide(InRange(i, 0, n - 1), {"i": 1}) is None
    facts.assume(n - 2)
    assert facts.decide(InRange(i, 0, n - 1), {"i": 1}) is True
    assert facts.decide(InRange(i + variable("j"), 0, 5), {"i": 3, "j": 3}) is True
    assert facts.decide(InRange(i * -1 + 2, 0, 3), {"i": 3}) is True
    assert facts.decide(InRange(AffineIndex((), 4), 0, 4), {}) is False
    assert facts.decide(InRange(variable("k"), 0, 4), {"i": 3}) is None
