"""Loops over short axes as one, and what is read ahead: the results of NumPy, in vectors."""

import re

import numpy as np
import pytest

import geon
from geon.transformers.kernels.nests.buffered_loads import MAX_BUFFERED_VALUES, MAX_PERIOD_TURNS
from geon.transformers.kernels.nests.index_set_splitting import MIN_STRIDED_ELEMENTS
from geon.transformers.kernels.nests.nest_lowering import (
    MIN_COPIED_ROW_ELEMENTS,
    MIN_VECTOR_LOOP_BYTES,
)
from geon.transformers.loops.rules.cpu import MIN_PARALLEL_ROWS, MIN_SPLIT_VECTORS
from geon.transformers.loops.rules.transposed_tiles import STRAIGHT_ELEMENTS
from geon.transformers.loops.values_ahead import MAX_BUFFERED_TURNS
from geon.transformers.sizes.limits import AVX2_BYTES

from .test_short_rows import compare, values

SHORT = [
    1,
    2,
    3,
    5,
    7,
    15,
    16,
    31,
    32,
    33,
    MAX_PERIOD_TURNS - 1,
    MAX_PERIOD_TURNS,
    MAX_PERIOD_TURNS + 1,
]


def is_read_ahead(source):
    """Whether a load is read into an array before the loop that computes with it."""
    return re.search(r"\bg\d+_from\b|\w_at\b", source) is not None


@pytest.mark.parametrize("length", SHORT)
@pytest.mark.parametrize("dtype", ["float32", "float64", "int8", "bool"])
def test_short_axes_that_are_turned_and_repeated_give_what_numpy_gives(length, dtype):
    n, m, k = geon.Axis("N", 37), geon.Axis("M", 41), geon.Axis("K", length)
    x = geon.placeholder([n, m, k])
    turned = geon.placeholder([m, n, k], dtype=dtype)
    row = geon.placeholder([n, m], dtype=dtype)
    column = geon.placeholder([k], dtype="float64")
    y = x * geon.broadcast(geon.cast(turned, "float32"), x.axes)
    y = y + geon.broadcast(geon.cast(row, "float32"), x.axes)
    y = y - geon.broadcast(geon.cast(column, "float32"), x.axes)
    results = [y, geon.max(y), geon.argmin(y), geon.cast(y, "bool")]
    feeds = [
        x, values("float32", 37, 41, length), turned, values(dtype, 41, 37, length),
        row, values(dtype, 37, 41), column, np.arange(length, dtype="float64"),
    ]  # fmt: skip
    source = compare(results, *feeds)
    whole = length * 4 % AVX2_BYTES == 0  # a row of whole vectors is a loop of its own
    assert is_read_ahead(source) == (1 < length < MIN_VECTOR_LOOP_BYTES // 4 and not whole)


@pytest.mark.parametrize(
    "length",
    [
        MAX_BUFFERED_TURNS - 1,
        MAX_BUFFERED_TURNS,
        MAX_BUFFERED_TURNS + 1,
        3 * MAX_BUFFERED_TURNS + 5,
    ],
)
@pytest.mark.parametrize("dtype", ["float16", "float64", "int8", "bool", "bfloat16"])
def test_what_is_read_backwards_beside_other_widths_is_read_ahead(length, dtype):
    n, m = geon.Axis("N", 3), geon.Axis("M", length)
    x = geon.placeholder([n, m])
    y = geon.cast(geon.maximum(x, 0.5)[:, ::-1], dtype)
    data = np.abs(values("float32", 3, length))
    data[~np.isfinite(data)] = 1.0
    source = compare([y], x, data)
    in_lanes = "+ each * (-1)];" in source  # a vector of lanes is read before it is computed with
    assert is_read_ahead(source) or in_lanes


def test_what_is_read_backwards_among_equal_widths_is_read_in_its_place():
    n = geon.Axis("N", 5000)
    x = geon.placeholder([n])
    assert not is_read_ahead(compare([x[::-1] * 2], x, values("float32", 5000)))


@pytest.mark.parametrize(
    "length", [MIN_COPIED_ROW_ELEMENTS - 1, MIN_COPIED_ROW_ELEMENTS, MIN_COPIED_ROW_ELEMENTS + 1]
)
def test_what_is_only_copied_is_stored_by_digits_in_the_shortest_rows(length):
    n, m, k = geon.Axis("N", 64), geon.Axis("M", 100), geon.Axis("K", length)
    x = geon.placeholder([m, n, k])
    source = compare([geon.reorder(x, [n, m, k])], x, values("float32", 100, 64, length))
    assert not is_read_ahead(source)
    assert ("_at_" in source) == (length < MIN_COPIED_ROW_ELEMENTS)


@pytest.mark.parametrize("count", [MAX_BUFFERED_VALUES, MAX_BUFFERED_VALUES + 1])
def test_more_loads_than_the_nearest_cache_has_room_for_are_read_in_their_places(count):
    n, m, k = geon.Axis("N", 33), geon.Axis("M", 20), geon.Axis("K", 3)
    total = geon.placeholder([n, m, k])
    feeds = [total, values("float32", 33, 20, 3)]
    for _ in range(count):
        x = geon.placeholder([m, n, k])
        feeds += [x, values("float32", 20, 33, 3)]
        total = total + geon.broadcast(x, total.axes)
    assert is_read_ahead(compare([geon.tanh(total)], *feeds)) == (count <= MAX_BUFFERED_VALUES)


@pytest.mark.parametrize("rows", [1, MIN_PARALLEL_ROWS - 1, MIN_PARALLEL_ROWS])
@pytest.mark.parametrize("length", [4 * MIN_SPLIT_VECTORS - 1, 16 * MIN_SPLIT_VECTORS + 65])
def test_few_long_rows_are_divided_along_themselves(rows, length):
    n, m = geon.Axis("N", rows), geon.Axis("M", length + 3)
    x = geon.placeholder([n, m])
    source = compare([x[:, 3:] + 1], x, np.ones((rows, length + 3), np.float32))
    divided = 1 < rows < MIN_PARALLEL_ROWS and length > 16 * MIN_SPLIT_VECTORS
    # Rows that are written past the caches are divided into what is held for that.
    held = rows >= MIN_PARALLEL_ROWS and length > 16 * MIN_SPLIT_VECTORS
    assert ("(i_0) % (" in source) == (divided or held)
    assert ("geon_past_put" in source) == held


@pytest.mark.parametrize("lengths", [(0, 5, 3), (4, 0, 3), (4, 5, 0), (1, 1, 3), (0, 0, 2)])
def test_short_axes_beside_axes_without_elements(lengths):
    n, m, k = (geon.Axis(name, length) for name, length in zip("NMK", lengths, strict=True))
    x, turned = geon.placeholder([n, m, k]), geon.placeholder([m, n, k], dtype="bool")
    y = geon.tanh(x) + geon.broadcast(geon.cast(turned, "float32"), x.axes)
    compare([y, geon.sum(y)], x, np.ones(lengths, np.float32),
            turned, np.ones((lengths[1], lengths[0], lengths[2]), bool))  # fmt: skip


def test_few_columns_are_turned_in_parts_of_their_length():
    n, m = geon.Axis("N", 2 * STRAIGHT_ELEMENTS + 100), geon.Axis("M", 9)
    x = geon.placeholder([n, m])
    y = geon.reorder(x * 2, [m, n])
    source = compare([y], x, values("float32", 2 * STRAIGHT_ELEMENTS + 100, 9))
    assert "const int64_t size = 65;" in source  # tasks: tiles of 128 elements


@pytest.mark.parametrize("length", [3, 100, 5000])
def test_positions_over_several_axes_are_those_of_one_loop(length):
    n, m, k = geon.Axis("N", length), geon.Axis("M", 7), geon.Axis("K", 3)
    x = geon.placeholder([n, m, k])
    source = compare([geon.argmin(x), geon.argmax(x)], x, values("float32", length, 7, 3))
    assert "i_2" not in source
    f = geon.NativeTransformer().computation([geon.argmin(x), geon.argmax(x)], x)
    ((step,),) = [kernel.work.passes for kernel in f.plan.schedule.kernels]
    assert [loop.extent for loop in step.loops] == [21 * length]


@pytest.mark.parametrize("length", SHORT)
@pytest.mark.parametrize("dtype", ["int64", "float32", "int8"])
def test_indices_that_are_numbers_are_read_ahead_of_short_axes(length, dtype):
    n, k = geon.Axis("N", 1037), geon.Axis("K", length)
    x = geon.placeholder([n, k], dtype=dtype)
    row = geon.cast(geon.iota(n) % 100, dtype)
    at = x + geon.broadcast(row, x.axes) - geon.broadcast(geon.cast(geon.iota(k), dtype), x.axes)
    data = np.random.default_rng(length).integers(-9, 9, (1037, length)).astype(dtype)
    source = compare([at, geon.max(at), geon.argmax(at)], x, data)
    assert is_read_ahead(source) == (1 < length < MIN_VECTOR_LOOP_BYTES // np.dtype(dtype).itemsize)


STEPS = [2, 3, 5, 8, 9, 127, 128, 129, 1000]


def is_chosen_ahead(source):
    """Whether a truth of each element is read into an array before the loop that chooses by it."""
    return re.search(r"uint8_t [bg]\d+\[", source) is not None


def strided(x, axis, start, step):
    """The slope of a sum of squares of each ``step``-th part of ``x``, and something of all."""
    part = x[{axis: slice(start, None, step)}]
    return geon.deriv(geon.sum(geon.square(part)), x) + geon.sigmoid(x)


@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("start", [0, 1])
def test_each_so_many_rows_of_short_ones_are_chosen_ahead(step, start):
    n, k = geon.Axis("N", 1037), geon.Axis("K", 3)
    x = geon.placeholder([n, k])
    source = compare([strided(x, n, start, step)], x, values("float32", 1037, 3))
    assert is_chosen_ahead(source)


@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("start", [0, 1])
@pytest.mark.parametrize(
    "length", [MAX_BUFFERED_TURNS - 1, MAX_BUFFERED_TURNS, 3 * MAX_BUFFERED_TURNS + 5]
)
def test_each_so_many_elements_are_chosen_ahead_where_functions_are_computed(length, step, start):
    n, k = geon.Axis("N", 5), geon.Axis("K", length)
    x = geon.placeholder([n, k])
    source = compare([strided(x, k, start, step)], x, values("float32", 5, length))
    if step < length and length % step:  # else a loop for each digit may need no truths
        assert is_chosen_ahead(source)


@pytest.mark.parametrize(
    "inner", [MIN_STRIDED_ELEMENTS - 1, MIN_STRIDED_ELEMENTS, MIN_STRIDED_ELEMENTS + 1]
)
def test_long_rows_of_which_each_third_is_another_are_turns_of_three(inner):
    n, k = geon.Axis("N", 1037), geon.Axis("K", inner)
    x = geon.placeholder([n, k])
    source = compare([strided(x, n, 0, 3)], x, values("float32", 1037, inner))
    assert is_chosen_ahead(source) == (inner < MIN_STRIDED_ELEMENTS)


def test_elements_at_each_so_many_places_are_read_where_they_lie():
    """A strided part that was put back is read at its place itself: no quotient is in the text."""
    n = geon.Axis("N", 1 << 16)
    x = geon.placeholder([n])
    source = compare([strided(x, n, 0, 100)], x, values("float32", 1 << 16))
    elements = source.split("#pragma omp simd")[-1]
    assert not re.search(r"int64_t q\d+ =", elements)
