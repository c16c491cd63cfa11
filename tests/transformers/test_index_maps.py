"""Rows of nothing but an index map are computed by every target, alone and among other ops."""

import numpy as np
import pytest

import geon
from geon.op_graph.axes.affine import AffineIndex, Quotient, Remainder, variable
from geon.op_graph.axes.index_map import GuardedElement, InRange, Position, view_map
from geon.op_graph.core.primitive import PRIMITIVES, Primitive
from geon.op_graph.op_graph import make

A, B = geon.Axis("A", 3), geon.Axis("B", 8)
N = geon.Axis("N")
W = geon.Axis("W", 3)


def window(op, index):
    """Windows of the last axis: three elements, every second one, two apart."""
    return view_map({**index, "B": index["B"] * 2 + index["W"]})


def diagonal(op, index):
    return view_map({"A": index["A"], "B": index["A"] * 2 + 1})


def main_diagonal(op, index):
    return view_map({"A": index["A"], "B": index["A"]})


def halved(op, index):
    """The last axis in two, with a step within the halves."""
    whole = index["B"] * 4 + index["W"]
    return view_map({"A": index["A"], "B": whole})


def merged(op, index):
    """All axes as one, by division."""
    return view_map(
        {"A": variable(Quotient(index["W"], 8)), "B": variable(Remainder(index["W"], 8))}
    )


def repeated(op, index):
    return view_map({**index, "B": variable(Quotient(index["B"], 2))})


def tiled(op, index):
    return view_map(
        {**index, "B": variable(Remainder(index["B"], op.args[0].axes["B"].expression))}
    )


def shifted(op, index):
    """Every element one further on, the first of another argument."""
    inside = InRange(index["B"], 1, op.axes["B"].expression)
    return GuardedElement((inside,), 0, {**index, "B": index["B"] - 1}), GuardedElement((), 1, {})


def even(op, index):
    """Elements at odd places of the second argument, at even ones of the first, backwards."""
    even = InRange(variable(Remainder(index["B"], 2)), 0, 1)
    back = index["B"] * -1 + (op.axes["B"].expression - 1)
    return GuardedElement((even,), 0, {**index, "B": back}), GuardedElement((), 1, index)


def rolled(op, index):
    """Each row from a position on that another argument holds for it."""
    at = variable(Position(1, (("A", index["A"]),), op.axes["B"].expression))
    moved = variable(Remainder(index["B"] + at, op.axes["B"].expression))
    return view_map({**index, "B": moved})


X = np.arange(24, dtype=np.float32).reshape(3, 8)
CASES = {
    "window": (window, True, [A, B.with_length(3), W], ()),
    "diagonal": (diagonal, True, [A], ()),
    "main diagonal": (main_diagonal, True, [A], ()),
    "halved": (halved, True, [A, B.with_length(2), W.with_length(4)], ()),
    "merged": (merged, True, [W.with_length(24)], ()),
    "repeated": (repeated, True, [A, B.with_length(16)], ()),
    "tiled": (tiled, True, [A, B.with_length(20)], ()),
    "shifted": (shifted, False, [A, B], (np.float32(-1),)),
    "even": (even, False, [A, B], (-X,)),
    "rolled": (rolled, False, [A, B], (np.array([2, -1, 0]),)),
}
EXPECTED = {
    "window": np.lib.stride_tricks.sliding_window_view(X, 3, axis=1)[:, ::2],
    "diagonal": X[[0, 1, 2], [1, 3, 5]],
    "main diagonal": X[[0, 1, 2], [0, 1, 2]],
    "halved": X.reshape(3, 2, 4),
    "merged": X.reshape(24),
    "repeated": np.repeat(X, 2, axis=1),
    "tiled": np.tile(X, 3)[:, :20],
    "shifted": np.concatenate([np.full((3, 1), -1, np.float32), X[:, :-1]], axis=1),
    "even": np.where(np.arange(8) % 2, -X, X[:, ::-1]),
    "rolled": np.stack([np.roll(row, -k) for row, k in zip(X, (2, -1, 0), strict=True)]),
}


@pytest.fixture(params=CASES)
def case(request):
    """What builds the op of a row that is gone after the test, its data, and its value."""
    index_map, view, axes, more = CASES[request.param]
    facts = {"index_map": index_map, "view": view}

    def infer(args, attrs):
        return geon.Axes(axes), args[0].dtype, ()

    row = Primitive(f"fake {request.param}", "movement", "A row of a test.", infer=infer, **facts)
    yield lambda *args: make(row, args), (X, *more), EXPECTED[request.param]
    del PRIMITIVES[row.name]


def feeds(data):
    axes = {2: [A, B], 1: [A], 0: []}
    return [geon.placeholder(axes[d.ndim], d.dtype.name) for d in map(np.asarray, data)]


def test_alone(transformer, case):
    build, data, expected = case
    xs = feeds(data)
    got = transformer.computation(build(*xs), *xs)(*data)
    np.testing.assert_array_equal(got, expected, strict=True)


def test_of_what_is_computed_and_in_what_is_computed(transformer, case):
    build, data, expected = case
    xs = feeds(data)
    doubled = [x * 2 if x.dtype == "float32" else x for x in xs]
    y = build(*doubled)
    f = transformer.computation([y + 1, geon.sum(y, y.axes[0]), geon.sum(y)], *xs)
    for got, wanted in zip(
        f(*data), [2 * expected + 1, (2 * expected).sum(0), (2 * expected).sum()], strict=True
    ):
        np.testing.assert_array_equal(got, wanted)


def test_of_a_transpose_and_of_a_part(transformer, case):
    build, data, expected = case
    xs = feeds(data)
    turned = [geon.placeholder([B, A]), *xs[1:]]
    y = build(geon.reorder(turned[0], [A, B]), *turned[1:])
    got = transformer.computation(y * 1, *turned)(data[0].T, *data[1:])
    np.testing.assert_array_equal(got, expected)
    wide = [geon.placeholder([A, B.with_length(18)]), *xs[1:]]
    y = build(wide[0][:, 1:17:2], *wide[1:])
    spread = np.repeat(data[0], 2, axis=1)
    padded = np.concatenate([spread[:, :1], spread, spread[:, :1]], axis=1)
    got = transformer.computation([y, y + 1], *wide)(padded, *data[1:])
    np.testing.assert_array_equal(got[0], expected)
    np.testing.assert_array_equal(got[1], expected + 1)


def test_a_map_of_open_lengths(transformer):
    def turned(op, index):
        return view_map({"N": index["N"] * -1 + (op.axes["N"].expression - 1)})

    row = Primitive(
        "fake_turned",
        "movement",
        "A row of a test.",
        infer=lambda args, attrs: (args[0].axes, args[0].dtype, ()),
        index_map=turned,
        view=True,
    )
    try:
        x = geon.placeholder(N)
        f = transformer.computation([make(row, (x,)), make(row, (x * 2,)) + 1], x)
        for data in (np.arange(5, dtype=np.float32), np.zeros(0, np.float32)):
            got = f(data)
            np.testing.assert_array_equal(got[0], data[::-1])
            np.testing.assert_array_equal(got[1], 2 * data[::-1] + 1)
    finally:
        del PRIMITIVES[row.name]


def test_an_index_that_is_a_number(transformer):
    row = Primitive(
        "fake_first",
        "movement",
        "A row of a test.",
        infer=lambda args, attrs: (args[0].axes.without(["B"]), args[0].dtype, ()),
        index_map=lambda op, index: view_map({**index, "B": AffineIndex((), 3)}),
        view=True,
    )
    try:
        x = geon.placeholder([A, B])
        got = transformer.computation([make(row, (x,)), geon.sum(make(row, (x + 1,)))], x)(X)
        np.testing.assert_array_equal(got[0], X[:, 3])
        assert got[1] == (X[:, 3] + 1).sum()
    finally:
        del PRIMITIVES[row.name]
