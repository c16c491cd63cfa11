"""What is moved along open axes before it is joined, reduced or looked up, on each transformer."""

import numpy as np
import pytest

import geon
from geon.testing import assert_agrees

A, B, C = geon.Axis("A"), geon.Axis("B"), geon.Axis("C")
LONG = geon.Axis("L", 64)


def from_the_end(x, axis):
    """Rows in the opposite order, by positions that count from the end."""
    back = geon.rename(-1 - geon.iota(axis), {axis: "R"})
    return geon.gather(x, back, axis)


def joined(x, axis, name="J"):
    """A value twice, one behind the other."""
    return geon.rename(geon.concat([x, x], axis), {axis.name: name})


def data(axes, **lengths):
    """Small integers, different for each element of a few hundred."""
    shape = [axis.length if axis.name == "L" else lengths[axis.name] for axis in axes]
    return (np.arange(np.prod(shape)) % 251).reshape(shape)


@pytest.mark.parametrize("length", [1, 2, 3, 9, 17])
@pytest.mark.parametrize("axes", [[LONG, B, C], [C, LONG, B], [LONG, C]])
def test_rows_that_are_looked_up_are_shifted_and_joined(transformer, axes, length):
    """Pieces of a join read rows at positions, which are fetched ahead."""
    x = geon.placeholder(axes)
    array = data(axes, B=5, C=length).astype("float32")
    rows = from_the_end(x, LONG)
    moved = geon.roll(geon.where(rows > 3, rows, -rows), {axes[-1].name: 1})
    of_a_join = from_the_end(joined(x, C), LONG)
    assert_agrees(transformer, [moved, of_a_join, rows * 2], {x: array}, exact=True)


@pytest.mark.parametrize("lengths", [(3, 5), (1, 1), (2, 64), (9, 33)])
@pytest.mark.parametrize("order", ["BJL", "LJB", "JBL", "BLJ"])
def test_the_position_of_an_extreme_of_what_is_joined(transformer, order, lengths):
    """Each part of a join is a pass of its own, with positions of its own."""
    x = geon.placeholder([C, LONG, B], dtype="int64")
    y = joined(x, C)
    turned = geon.reorder(y, [y.axes[name] for name in order])
    array = data([C, LONG, B], C=lengths[0], B=lengths[1])
    results = [geon.argmax(turned, y.axes["J"]), geon.argmin(turned, y.axes["J"])]
    assert_agrees(transformer, results, {x: array}, exact=True)


@pytest.mark.parametrize("lengths", [(1, 5), (2, 3), (5, 1), (3, 40)])
def test_what_is_turned_and_flattened_is_multiplied_by_all(transformer, lengths):
    """A position in what is flattened is divided for each row."""
    x = geon.placeholder([B, A], dtype="int32")
    flat = geon.flip(geon.flatten(geon.absolute(x), [A, B], geon.Axis("F")), "F")
    array = data([B, A], A=lengths[0], B=lengths[1]).astype("int32")
    product = geon.outer(geon.multiply, flat, x)
    assert_agrees(transformer, [product, geon.sum(flat)], {x: array}, exact=True)


@pytest.mark.parametrize("length", [1, 2, 3, 5, 9, 40])
@pytest.mark.parametrize("step", [1, 2, 3])
@pytest.mark.parametrize("known", [False, True])
def test_the_slope_of_every_other_row(transformer, length, step, known):
    """Rows that were left out have a slope of 0."""
    last = C.with_length(length) if known else C
    x = geon.placeholder([A, LONG, last])
    slope = geon.deriv(geon.sum(x[:, 5:40:step]), x)
    array = data([A, LONG, C], A=2, C=length).astype("float32")
    assert_agrees(transformer, [slope, geon.sum(x)], {x: array})


@pytest.mark.parametrize("lengths", [(1, 4), (3, 4), (2, 40), (2, 300)])
def test_what_is_chosen_in_an_outer_row_meets_all_rows_of_its_group(transformer, lengths):
    """Which part an outer row is of is known for the whole group that shares its elements."""
    x = geon.placeholder([B, A])
    array = data(x.axes, B=lengths[0], A=lengths[1]).astype("float32")
    moved = [
        geon.concat([x, x], B),
        geon.roll(x, {B: 1}),
        geon.pad(x, {B: 1}),
        geon.where(geon.iota(B) > 0, x, 0),
    ]
    results = [y - geon.rename(y, {A: "P"}) for y in moved]
    results += [geon.relu(y * geon.rename(y, {A: "P"})) for y in moved]
    assert_agrees(transformer, results, {x: array}, exact=True)
