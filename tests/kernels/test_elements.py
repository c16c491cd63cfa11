"""Ops as scalar code and loops: what moves elements is index arithmetic that can run everywhere."""

import numpy as np
import pytest

import geon
from geon.op_graph.axes.affine import variable
from geon.op_graph.rows.elementwise import add, exp
from geon.op_graph.values.dtypes import FLOAT32, INT64
from geon.transformers.kernels.ir.scalar_code import (
    Apply,
    Clamped,
    Load,
    ScalarBuilder,
    Select,
    Wrapped,
    children_of,
    operands_of,
    walk,
)
from geon.transformers.kernels.nests.buffered_loads import choose_buffered
from tests.golden.emitting import Native

from .transformer import KernelsTransformer

N, A, B = geon.Axis("N"), geon.Axis("A", 3), geon.Axis("B", 4)


def nest(result, *inputs):
    """The nest that is all that a computation runs."""
    (kernel,) = Native().computation(result, *inputs).plan.schedule.kernels
    assert kernel.kind == "nest"
    return kernel.work


def nodes(work):
    """The scalar code of a nest's values."""
    steps = [store for each in work.passes for store in each.stores]
    roots = [store.value for store in steps]
    roots += [x for each in work.passes for r in each.reductions for x in r.elements]
    return list(walk(*roots))


def loads(work):
    """The loads of a nest."""
    return [node for node in nodes(work) if isinstance(node, Load)]


def test_a_node_is_walked_once_after_what_it_computes_with_positions_too():
    code = ScalarBuilder()
    at = code(Load, 0, variable("i"), INT64)
    place = code(Wrapped, at, 7)
    x = code(Load, 1, variable(place) * 4 + variable("j"), FLOAT32)
    root = code.apply(add, code.apply(exp, x), x)
    found = list(walk(root, x))
    assert len(found) == len({id(node) for node in found}) == 5
    before = {id(node): k for k, node in enumerate(found)}
    assert before[id(at)] < before[id(place)] < before[id(x)] < before[id(root)]
    assert all(before[id(part)] < before[id(node)] for node in found for part in operands_of(node))
    assert [type(node) for node in walk(root, known={id(x)})] == [Apply, Apply]


def test_what_a_node_stands_on_is_found_once():
    code = ScalarBuilder()
    at = code(Load, 0, variable("i"), INT64)
    x = code(Load, 1, variable(code(Wrapped, at, 7)) * 4, FLOAT32)
    y = code.apply(add, x, code.number(1.0, FLOAT32))
    assert [type(node) for node in children_of(x)] == [Wrapped] and children_of(at) == ()
    assert children_of(y) == y.args and all(
        children_of(node) is children_of(node) for node in (at, x, y)
    )


def test_equal_code_is_one_node_and_zeros_of_two_signs_are_two():
    code = ScalarBuilder()
    assert code.apply(exp, code.number(1.0, FLOAT32)) is code.apply(exp, code.number(1.0, FLOAT32))
    assert code.number(0.0, FLOAT32) is not code.number(-0.0, FLOAT32)
    assert code.number(1, FLOAT32) is not code.number(1, INT64)


def test_a_view_is_the_offset_of_a_load():
    long = geon.Axis("L", 64)
    x = geon.placeholder([N, long, B])
    part = x[{long: slice(63, None, -1), B: slice(1, 4, 2)}]
    (load,) = loads(nest(geon.reorder(part, [B.with_length(2), N, long]) + 1, x))
    assert all(isinstance(atom, str) for atom in load.offset.terms)
    assert sorted(step for step in load.offset.terms.values()) == [-4, 2, 256]
    assert load.offset.constant == 63 * 4 + 1


def test_an_index_that_guards_limit_is_0_where_they_do_not_hold():
    x = geon.placeholder([N, A])
    work = nest(geon.pad(x, {A: (1, 2)}, value=9), x)
    (choice,) = [node for node in nodes(work) if isinstance(node, Select)]
    (load,) = loads(work)
    (clamped,) = [atom for atom in load.offset.terms if isinstance(atom, Clamped)]
    assert clamped.guards == choice.guards != ()


@pytest.mark.parametrize("first", [True, False])
def test_what_is_empty_is_never_read(first):
    empty, x = geon.placeholder([geon.Axis("C", 0), A]), geon.placeholder([geon.Axis("C", 2), A])
    both = [empty, x] if first else [x, empty]
    work = nest(geon.concat(both, geon.Axis("C", 2)), empty, x)
    assert not any(isinstance(node, Select) for node in nodes(work))
    (load,) = loads(work)
    assert work.operands[load.operand].axes.same_set(x.axes)


def test_neighbouring_axes_are_one_loop_where_every_offset_walks_them_as_one():
    long = geon.Axis("L", 64)
    x, bias = geon.placeholder([N, A, long]), geon.placeholder([long])
    assert [loop.axes for loop in nest(x + 1, x).passes[0].loops] == [("N", "A", "L")]
    work = nest(x + bias, x, bias)
    loops = [*work.rows, *(loop for each in work.passes for loop in each.loops)]
    assert [loop.axes for loop in loops] == [("N", "A"), ("L",)]


def test_short_axes_are_one_loop_with_those_around_them_whose_loads_divide():
    x, bias = geon.placeholder([N, A, B]), geon.placeholder([B])
    work = nest(x + bias, x, bias)
    assert work.rows == () and [loop.axes for loop in work.passes[0].loops] == [("N", "A", "B")]
    (repeated,) = choose_buffered(work.passes[0])
    assert repeated.digits == ((f"{work.passes[0].loops[0].name}_digit1", 4),)
    assert work.operands[repeated.value.operand] is bias


def test_rows_that_adjoin_are_taken_side_by_side_but_where_each_needs_a_division():
    x = geon.placeholder([N, A, B])
    assert nest(geon.sum(geon.exp(x), [N, A]), x).across.axes == ("B",)
    flat = geon.Axis("F", 12)
    turned = geon.flatten(geon.reorder(x, [N, B, A]), [B, A], flat)
    weights = geon.placeholder([N, flat])
    assert nest(geon.sum(weights * turned, N), x, weights).across is None


def test_loops_go_along_what_is_read_and_not_along_axes_of_what_is_computed_on_the_way():
    c = geon.Axis("C", 200)
    x, bias = geon.placeholder([N, c]), geon.placeholder([c])
    assert (bias + x).axes.names == ("C", "N")
    for reduce in (geon.max, geon.argmax):
        by_rows = nest(reduce(bias + x * 2, c), x, bias)
        assert by_rows.across is None and [loop.axes for loop in by_rows.rows] == [("N",)]
    assert nest(geon.max(bias + x * 2, N), x, bias).across.axes == ("C",)


def test_rows_side_by_side_are_over_all_axes_that_everything_walks_as_one():
    """What has an element for each index of an outer axis alone keeps that a loop of its own."""
    a, b, c, k = geon.Axis("A", 300), geon.Axis("B", 3), geon.Axis("C"), geon.Axis("K", 4)
    x, each = geon.placeholder([a, b, c]), geon.placeholder([b])
    assert nest(geon.sum(x, a), x).across.axes == ("B", "C")
    assert nest(geon.argmax(x, a), x).across.axes == ("B", "C")
    kept = nest(geon.sum(x * each, a), x, each)
    assert kept.across.axes == ("C",) and [loop.axes for loop in kept.rows] == [("B",)]
    short = geon.placeholder([geon.Axis("A", 100), k, geon.Axis("D", 5)])
    made = nest(geon.max(short, short.axes["D"]), short)
    assert made.across.axes == ("A", "K") and not made.rows


@pytest.mark.parametrize("length", [1, 2, 3, 7])
def test_nothing_is_read_outside_an_axis_that_is_too_short_for_its_slices(length):
    """The slope of differences along an axis of one, whose slices are empty."""
    x = geon.placeholder([geon.Axis("N"), geon.Axis("C", 3)])
    slope = geon.deriv(geon.sum(geon.square(x[1:] - x[:-1])), x)
    values = np.random.default_rng(0).normal(size=(length, 3)).astype(np.float32)
    found = KernelsTransformer().computation(slope, x)(values)
    wanted = geon.NumPyTransformer().computation(slope, x)(values)
    np.testing.assert_allclose(found, wanted, rtol=1e-6)
