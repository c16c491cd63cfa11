"""Operators on sequences of different lengths: rows one after another, and their offsets.

``Offsets`` has one number more than there are sequences: sequence i has the rows from offset i up
to, without, offset i + 1.
"""

from __future__ import annotations

from collections.abc import Callable

import geon

from ...positional.elementwise import elementwise
from ...positional.indexing import gather
from ...positional.movement import Part, concat, slices, with_axis
from ...positional.picking import gather_at, numbers
from ...positional.products import matmul
from ...positional.programs import cast
from ...positional.reshaping import unsqueeze
from ...positional.values import Size, Value, array, as_array, fresh, renamed
from .networks import zeros
from .rows import INT, Function, Row


def lengths_of(offsets: Value) -> Value:
    """Return the length of each sequence."""
    return elementwise(
        geon.subtract, slices(offsets, {0: Part(1)}), slices(offsets, {0: Part(0, -1)})
    )


def sequence_numbers(x: Value, offsets: Value) -> Value:
    """Return the number of the sequence that each row of x belongs to."""
    rows, bounds = as_array(numbers(x.shape[0])), with_axis(as_array(offsets), 0)
    (row,) = rows.dims
    if row is None:
        rows = with_axis(rows, 0)
        (row,) = rows.dims
    bounds = renamed(bounds, [fresh("offset", rows.tensor.axes.names)])
    wide = geon.cast(bounds.tensor, "int64")
    found = geon.searchsorted(wide, rows.tensor, bounds.dims[0], side="right") - 1
    return array(found, rows.dims)


def of_each(offsets: Value, x: Value, part: Callable[[Value], Value]) -> Value:
    """Return for each row of x the number that ``part`` of the offsets has for its sequence."""
    return gather(part(cast(offsets, "int64")), sequence_numbers(x, offsets), 0)


def begins(offsets: Value) -> Value:
    """Return the first row of each sequence."""
    return slices(offsets, {0: Part(0, -1)})


def ends(offsets: Value) -> Value:
    """Return the row after the last of each sequence."""
    return slices(offsets, {0: Part(1)})


def segmented(f: Function, x: Value, offsets: Value) -> Value:
    """Return ``f``, such as ``geon.segment_sum``, of the rows of each sequence."""
    given = with_axis(as_array(x), 0)
    row = given.dims[0]
    assert row is not None
    numbers_of = with_axis(as_array(sequence_numbers(x, offsets)), 0)
    at = renamed(numbers_of, [row.name]).tensor
    name = fresh("sequence", given.tensor.axes.names)
    count: Size = as_array(offsets).shape[0] - 1
    found = f(given.tensor, at, geon.Axis(name, count), row.name)
    return array(found, [name, *[None if d is None else d.name for d in given.dims[1:]]])


def by_rows(per_sequence: Value, like: Value) -> Value:
    """Return one number for each sequence with the positions of ``like`` after the first."""
    return unsqueeze(per_sequence, range(1, len(like.shape)))


def sequence_pool(x: Value, offsets: Value, *, pooltype: str = "AVERAGE") -> Value:
    """Return one row for each sequence: a sum, mean, extreme, the first or the last row."""
    if pooltype == "FIRST":
        return gather(x, begins(offsets), 0)
    if pooltype == "LAST":
        return gather(x, elementwise(lambda t: t - 1, ends(offsets)), 0)
    if pooltype in ("MAX", "MIN"):
        f = geon.segment_max if pooltype == "MAX" else geon.segment_min
        return segmented(f, x, offsets)
    total = segmented(geon.segment_sum, x, offsets)
    if pooltype == "SUM":
        return total
    count = by_rows(cast(lengths_of(offsets), x.dtype), x)
    root = geon.sqrt if pooltype == "SQRT" else (lambda t: t)
    return elementwise(lambda t, n: t / root(geon.maximum(n, 1)), total, count)


def sequence_softmax(x: Value, offsets: Value) -> Value:
    """Return the softmax over the rows of each sequence."""
    at = sequence_numbers(x, offsets)
    high = gather(segmented(geon.segment_max, x, offsets), at, 0)
    powers = elementwise(lambda t, m: geon.exp(t - geon.stop_gradient(m)), x, high)
    total = gather(segmented(geon.segment_sum, powers, offsets), at, 0)
    return elementwise(geon.divide, powers, total)


def sequence_expand(x: Value, y: Value, offsets: Value) -> Value:
    """Return row i of X for each row of sequence i of Y, which has the offsets."""
    return gather(x, sequence_numbers(y, offsets), 0)


def sequence_reverse(x: Value, offsets: Value) -> Value:
    """Return the rows of each sequence in reverse order."""
    row = numbers(x.shape[0])
    sums = [of_each(offsets, x, begins), of_each(offsets, x, ends)]
    return gather(x, elementwise(lambda a, b, r: a + b - 1 - r, *sums, row), 0)


def sequence_context(x: Value, offsets: Value, start: int, length: int) -> Value:
    """Return rows beside each other: those from ``start`` on after each one, 0 outside."""
    row = numbers(x.shape[0])
    low, high = of_each(offsets, x, begins), of_each(offsets, x, ends)
    parts = []
    for k in range(start, start + length):
        at = elementwise(lambda r, k=k: r + k, row)
        inside = elementwise(lambda a, b, r: geon.logical_and(a <= r, r < b), low, high, at)
        place = elementwise(lambda i, r: geon.where(i, r, 0), inside, at)
        found = gather(x, place, 0)
        known = unsqueeze(inside, range(1, len(x.shape)))
        parts.append(elementwise(lambda i, t: geon.where(i, t, 0), known, found))
    return concat(parts, 1)


def sequence_conv(
    x: Value, weight: Value, offsets: Value, *, contextLength: int = 3, contextStart: int = -1
) -> Value:
    """Return the product of the rows around each row with Filter (contextLength * D, M)."""
    return matmul(sequence_context(x, offsets, contextStart, contextLength), weight)


def sequence_mask(x: Value, *, maxlen: int = INT, dtype: str = "int64") -> Value:
    """Return 1 at the positions before each length, along a new last position, else 0."""
    rank = len(x.shape) + 1
    place = numbers(maxlen, rank, rank - 1)
    return cast(elementwise(geon.greater, unsqueeze(cast(x, "int64"), [rank - 1]), place), dtype)


def sequence_pad(
    x: Value, offsets: Value, *, padded_length: int = INT, pad_value: float = 0.0
) -> tuple[Value, Value]:
    """Return sequences (N, padded_length, ...) with a number after their ends, and the lengths.

    Rows beyond padded_length are left out.
    """
    count = cast(lengths_of(offsets), "int64")
    place = numbers(padded_length, 2, 1)
    inside = elementwise(geon.greater, unsqueeze(count, [1]), place)
    at = elementwise(
        lambda i, b, p: geon.where(i, b + p, 0),
        inside,
        unsqueeze(cast(begins(offsets), "int64"), [1]),
        place,
    )
    found = gather(x, at, 0)
    known = unsqueeze(inside, range(2, len(x.shape) + 1))
    return elementwise(lambda i, t: geon.where(i, t, pad_value), known, found), count


def sequence_unpad(x: Value, y: Value, offsets: Value) -> Value:
    """Return the rows of padded sequences X one after another, as many as Y has."""
    inside = elementwise(geon.subtract, numbers(y.shape[0]), of_each(offsets, y, begins))
    return gather_at(x, {0: sequence_numbers(y, offsets), 1: inside})


def offsets_of(x: Value) -> Value:
    """Return the offsets of sequences of these lengths."""
    given = with_axis(as_array(cast(x, "int64")), 0)
    whole = array(geon.cumsum(given.tensor, given.dims[0]), given.dims)
    return concat([zeros([1], "int64"), whole], 0)


ROWS = [
    Row("sequence_pool", sequence_pool, "", "X Offsets"),
    Row("sequence_softmax", sequence_softmax, "", "X Offsets"),
    Row("sequence_expand", sequence_expand, "", "X Y Offsets"),
    Row("sequence_reverse", sequence_reverse, "", "X Offsets", "Y"),
    Row("sequence_conv", sequence_conv, "", "X Filter Offsets"),
    Row("sequence_mask", sequence_mask, "", "X", "Y", gradient=False),
    Row("sequence_pad", sequence_pad, "", "X Offsets", "Out Length"),
    Row("sequence_unpad", sequence_unpad, "", "X Y Offsets"),
    Row("sequence_lengths", lengths_of, "", "Offsets", gradient=False),
    Row("sequence_offsets", offsets_of, "", "X", "Offsets", gradient=False),
]
