"""What index maps say is what the rows' own references compute, on every sample."""

import itertools

import numpy as np
import pytest

import geon
from geon.op_graph.axes.index_map import identity
from geon.op_graph.core.primitive import PRIMITIVES
from geon.op_graph.evaluation.eval_index_map import eval_index_map
from geon.op_graph.evaluation.interpreter import BoundOp, interpret
from geon.op_graph.op_graph import post_order
from geon.testing.cases import for_each
from geon.testing.samples import SAMPLES

ROWS = [row for row in PRIMITIVES.values() if row.index_map is not None]
MOVING = list(itertools.chain(*SAMPLES.values()))
A, B = geon.Axis("A", 3), geon.Axis("B", 4)


def ops_with_maps(sample):
    """The ops of a sample whose rows have index maps, bound, with the arrays of their arguments."""
    results, feeds = sample.results(sample.dtypes[0])
    order = post_order(results)
    values = interpret(results, feeds, {})
    bounds = {}
    for op in order:
        bounds[op] = BoundOp(op, {}, tuple(bounds[arg] for arg in op.args))
        if op.primitive.index_map is not None:
            yield bounds[op], [values[arg] for arg in op.args]


@for_each("sample", MOVING, ids=str)
def test_a_map_says_what_the_reference_computes(sample):
    for op, arrays in ops_with_maps(sample):
        if op.primitive.reference is None:
            continue  # the map is all that says it
        with np.errstate(all="ignore"):
            expected = op.primitive.reference(op, *arrays)
        got = eval_index_map(op, *arrays)
        np.testing.assert_array_equal(got, expected, strict=True)


def test_every_row_that_moves_elements_has_samples():
    seen = {op.primitive for sample in MOVING for op, _ in ops_with_maps(sample)}
    assert set(ROWS) <= seen


@for_each("sample", MOVING, ids=str)
def test_a_view_is_one_piece_and_the_last_piece_has_no_guards(sample):
    for op, _ in ops_with_maps(sample):
        pieces = op.primitive.index_map(op, identity(op.axes.names))
        assert pieces[-1].guards == ()
        assert all(piece.guards for piece in pieces[:-1])
        if op.primitive.view:
            assert len(pieces) == 1 and pieces[0].arg == 0
        for piece in pieces:
            assert piece.index.keys() >= set(op.args[piece.arg].axes.names)


@pytest.mark.parametrize("at", [-4, 3])
def test_a_position_outside_its_axis_raises(at):
    x, k = geon.placeholder([A, B]), geon.placeholder(dtype="int64")
    op = x[k]
    bound = BoundOp(op, {}, (BoundOp(x, {}, ()), BoundOp(k, {}, ())))
    with pytest.raises(geon.IndexRangeError):
        eval_index_map(bound, np.zeros((3, 4), np.float32), np.array(at))
