"""The layout of a view tells where its elements lie, for every order of its argument's memory."""

import itertools

import numpy as np
import pytest

import geon
from geon.op_graph.axes.index_map import view_map
from geon.op_graph.core.primitive import PRIMITIVES, Primitive
from geon.op_graph.evaluation.eval_index_map import eval_index_map
from geon.op_graph.op_graph import make
from geon.transformers.lowering.facts.target import Layout
from geon.transformers.lowering.facts.view_layout import view_layout
from tests.op_graph.test_index_map import MOVING, A, ops_with_maps

VIEWS = [
    (op, arrays)
    for sample in MOVING
    for op, arrays in ops_with_maps(sample)
    if op.primitive.view and len(op.args) == 1
]


def places(x, order):
    """Where each element of ``x`` lies in memory whose axes nest in this order."""
    shape = [x.axes[name].expression for name in order]
    numbers = np.arange(int(np.prod(shape))).reshape(shape)
    return numbers.transpose([order.index(name) for name in x.axes.names])


@pytest.mark.parametrize("number", range(len(VIEWS)))
def test_elements_lie_where_the_layout_says(number):
    op, arrays = VIEWS[number]
    x = op.args[0]
    for order in itertools.permutations(x.axes.names):
        at = eval_index_map(op, places(x, order), *arrays[1:])
        found = view_layout(op, Layout(order))
        if found is None:
            assert op.primitive.name == "flatten"
            continue
        assert sorted(found.order) == sorted(op.axes.names)
        inside = at.transpose([op.axes.index(name) for name in found.order])
        if found.mergeable and at.size:
            np.testing.assert_array_equal(inside.ravel(), np.arange(at.size) + inside.ravel()[0])
        if found.unit and at.size:
            assert (np.diff(inside, axis=-1) == 1).all()


@pytest.mark.parametrize("number", range(len(VIEWS)))
def test_memory_with_gaps_stays_such(number):
    op, arrays = VIEWS[number]
    for unit in (True, False):
        found = view_layout(op, Layout(op.args[0].axes.names, mergeable=False, unit=unit))
        if found is None:
            assert op.primitive.name == "flatten"
        else:
            assert not found.mergeable and found.unit <= unit or not op.axes.size


def test_a_guard_that_makes_lengths_equal_keeps_memory_whole():
    n, k = geon.Axis("N"), geon.Axis("K")
    x = geon.placeholder([n, A])
    renamed = geon.cast_axes(x, [k, A])
    split = geon.unflatten(geon.placeholder([A, n]), n, [k, geon.Axis("M", 2)])
    for op in (renamed, split):
        assert op.guards
        assert view_layout(op, Layout(op.args[0].axes.names)) == Layout(op.axes.names)


def test_one_index_for_two_axes_is_neither_whole_nor_adjacent():
    x = geon.placeholder([A, geon.Axis("B", 2)])
    row = Primitive(
        "fake_diagonal",
        "movement",
        "A row of a test.",
        infer=lambda args, attrs: (geon.Axes(A), args[0].dtype, ()),
        index_map=lambda op, index: view_map({"A": index["A"], "B": index["A"]}),
        view=True,
    )
    del PRIMITIVES[row.name]  # it is no row of geon's, for other tests
    assert view_layout(make(row, (x,)), Layout(("A", "B"))) == Layout(("A",), False, False)
