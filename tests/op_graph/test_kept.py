"""What the reverse of a scan keeps of its steps, and what it computes again."""

import pytest

import geon
from geon.op_graph.core.interning import OwnTable
from geon.op_graph.op_graph import RegionOp, deep_order, post_order
from geon.op_graph.regions.scan_deriv import MIN_STORED_PRODUCT_TERMS, kept_of
from geon.op_graph.transforms.functionalize import functional
from geon.transformers.lowering.rules.program import build_program

T, N = geon.Axis("T"), geon.Axis("N", 5)


def loops(step, init, xs, wanted):
    """The rows of the steps of a loop, and of those of its reverse, and what this is given."""
    last, _ = geon.scan(step, init, xs, over=T)
    found = geon.deriv(geon.sum(last), wanted)
    target = geon.NumPyTransformer().target
    roots = build_program(functional([last, *found]), target, OwnTable()).roots
    regions = [op for op in post_order(roots) if isinstance(op, RegionOp)]
    rows = [[op.primitive.name for op in deep_order(each.bodies[0].results)] for each in regions]
    return rows, [len(each.bodies[0].results) for each in regions]


def test_products_are_not_computed_again():
    h = geon.Axis("H", MIN_STORED_PRODUCT_TERMS)
    x, w = geon.placeholder([T, N, h]), geon.placeholder([h.prime, h])

    def step(c, e):
        return geon.tanh(geon.dot(geon.cast_axes(c, [N, h.prime]), w) + e), None

    rows, _ = loops(step, geon.broadcast(0.0, [N, h]), x, [w, x])
    assert [names.count("dot") for names in rows] == [1, 1]
    assert [names.count("tanh") for names in rows] == [1, 0]


def test_short_products_are_computed_again():
    h = geon.Axis("H", MIN_STORED_PRODUCT_TERMS - 1)
    x, w = geon.placeholder([T, N, h]), geon.placeholder([h.prime, h])

    def step(c, e):
        return geon.sin(geon.dot(geon.cast_axes(c, [N, h.prime]), w) + e), None

    rows, results = loops(step, geon.broadcast(0.0, [N, h]), x, [x])
    assert results[0] == 2  # the carry, and how each step found it


def test_reductions_are_kept_and_what_is_made_of_them_is_not():
    h = geon.Axis("H", 100)
    x = geon.placeholder([T, N, h])

    def step(c, e):
        return c * geon.exp(geon.sum(e * e, h)) + geon.sin(c), None

    rows, _ = loops(step, geon.broadcast(1.0, [N]), x, [x])
    assert "sum" not in rows[1]


def test_the_fewest_bytes_are_kept():
    h, wide = geon.Axis("H", 64), geon.Axis("W", 64)
    c, e, w = (geon.placeholder(axes) for axes in ([N, h], [N, wide], [h, wide]))
    product = geon.dot(c, w)
    narrow = geon.sum(geon.sin(product + e), wide)
    after = geon.exp(narrow)
    other = geon.cos(product + e) * geon.cast_axes(c, [N, wide])
    found = kept_of([after, other], [c, e], {after, narrow})
    assert len(found) == 1 and found[0] is narrow
    summed = product + e
    found = kept_of([after, other], [c, e], {geon.sin(summed), geon.cos(summed)})
    assert len(found) == 1 and found[0] is summed


@pytest.mark.parametrize("read", [0, 1])
def test_nothing_is_kept_where_nothing_dear_is_read(read):
    c, e = geon.placeholder([N]), geon.placeholder([N])
    made = [geon.sin(c * e), geon.exp(e)]
    assert kept_of(made, [c, e], {made[read]}) == []
