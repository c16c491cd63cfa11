"""Operators on sequences of different lengths: rows one after another, and their offsets.

``Offsets`` has one number more than there are sequences: sequence i has the rows from offset i up
to, without, offset i + 1.
"""

from __future__ import annotations

from typing import Any

import numpy as np

import geon

from ....errors import ArgumentError
from ...positional.elementwise import chain, elementwise
from ...positional.indexing import gather, select
from ...positional.movement import Part, concat, slices, with_axis
from ...positional.picking import gather_at, numbers
from ...positional.products import matmul
from ...positional.programs import cast
from ...positional.reshaping import unsqueeze
from ...positional.values import Size, Value, array, as_array, fresh, host, renamed
from ..values import chosen
from .rows import INT, Function, Row


def begins(offsets: Value) -> Value:
    """Return the first row of each sequence."""
    return slices(offsets, {0: Part(0, -1)})


def ends(offsets: Value) -> Value:
    """Return the row after the last of each sequence."""
    return slices(offsets, {0: Part(1)})


def lengths_of(offsets: Value) -> Value:
    """Return the length of each sequence."""
    return elementwise(geon.subtract, ends(offsets), begins(offsets))


def sequence_numbers(x: Value, offsets: Value) -> Value:
    """Return the number of the sequence that each row of x belongs to."""
    rows, bounds = with_axis(as_array(numbers(x.shape[0])), 0), with_axis(as_array(offsets), 0)
    bounds = renamed(bounds, [fresh("offset", rows.tensor.axes.names)])
    wide = geon.cast(bounds.tensor, "int64")
    found = geon.searchsorted(wide, rows.tensor, bounds.dims[0], side="right") - 1
    return array(found, rows.dims)


def row_numbers(x: Value, offsets: Value) -> list[Value]:
    """Return for each row of x its number, the first of its sequence, and the one after."""
    at, bounds = sequence_numbers(x, offsets), cast(offsets, "int64")
    return [numbers(x.shape[0]), gather(begins(bounds), at, 0), gather(ends(bounds), at, 0)]


def segmented(f: Function, x: Value, segments: Value, count: Size) -> Value:
    """Return ``f``, such as ``geon.segment_sum``, of the rows of each of ``count`` segments."""
    given = with_axis(as_array(x), 0)
    names: list[Any] = [d and d.name for d in given.dims]
    at = renamed(with_axis(as_array(segments), 0), names[:1]).tensor
    name = fresh("sequence", given.tensor.axes.names)
    return array(f(given.tensor, at, geon.Axis(name, count), names[0]), [name, *names[1:]])


def of_sequences(f: Function, x: Value, offsets: Value) -> Value:
    """Return ``f``, such as ``geon.segment_sum``, of the rows of each sequence."""
    return segmented(f, x, sequence_numbers(x, offsets), as_array(offsets).shape[0] - 1)


FOLDS: dict[str, Function] = {
    "SUM": geon.segment_sum, "MAX": geon.segment_max, "MIN": geon.segment_min,
    "AVERAGE": geon.segment_mean, "PROD": geon.segment_prod,
}  # fmt: skip


def segment_pool(
    x: Value, segments: Value, *, num_segments: int = INT, pooltype: str = "SUM"
) -> Value:
    """Return a sum, mean or extreme of the rows of each segment; SegmentIds has their numbers."""
    if pooltype not in FOLDS:
        raise ArgumentError(f"pooltype={pooltype!r} of segment_pool is none of {', '.join(FOLDS)}")
    return segmented(FOLDS[pooltype], x, cast(segments, "int64"), num_segments)


def sequence_pool(x: Value, offsets: Value, *, pooltype: str = "AVERAGE") -> Value:
    """Return one row for each sequence: a sum, mean, extreme, the first or the last row."""
    if pooltype in ("FIRST", "LAST"):
        at = begins(offsets) if pooltype == "FIRST" else elementwise(lambda t: t - 1, ends(offsets))
        return gather(x, at, 0)
    found = of_sequences(FOLDS.get(pooltype, geon.segment_sum), x, offsets)
    if pooltype != "SQRT":
        return found
    count = unsqueeze(cast(lengths_of(offsets), x.dtype), range(1, len(x.shape)))
    return elementwise(lambda t, n: t * geon.rsqrt(geon.maximum(n, 1)), found, count)


def sequence_softmax(x: Value, offsets: Value) -> Value:
    """Return the softmax over the rows of each sequence."""
    at = sequence_numbers(x, offsets)
    high = gather(of_sequences(geon.segment_max, x, offsets), at, 0)
    powers = elementwise(lambda t, m: geon.exp(t - geon.stop_gradient(m)), x, high)
    total = gather(of_sequences(geon.segment_sum, powers, offsets), at, 0)
    return elementwise(geon.divide, powers, total)


def around(x: Value, offsets: Value, begin: int, count: int) -> list[Value]:
    """Return for each k of ``count`` the rows that are begin + k after each row, 0 outside."""
    row, low, high = row_numbers(x, offsets)
    parts = []
    for k in range(begin, begin + count):
        at = elementwise(lambda r, k=k: r + k, row)
        inside = elementwise(lambda r, a, b: geon.logical_and(a <= r, r < b), at, low, high)
        parts.append(chosen(inside, gather(x, chosen(inside, at, 0), 0), 0))
    return parts


def sequence_conv(
    x: Value, weight: Value, offsets: Value, *, contextLength: int = 3, contextStart: int = -1
) -> Value:
    """Return the product of the rows around each row with Filter (contextLength * D, M)."""
    return matmul(concat(around(x, offsets, contextStart, contextLength), 1), weight)


def row_conv(x: Value, weight: Value, offsets: Value) -> Value:
    """Return the sums of each row and those after it times the rows of Filter (context, D)."""
    count = int(weight.shape[0])
    return chain(geon.add, [
        elementwise(geon.multiply, rows, select(weight, 0, k))
        for k, rows in enumerate(around(x, offsets, 0, count))
    ])  # fmt: skip


def before(lengths: Value, count: int) -> Value:
    """Return True at the positions before each length, along a new last position."""
    rank = len(lengths.shape) + 1
    place = numbers(count, rank, rank - 1)
    return elementwise(geon.greater, unsqueeze(cast(lengths, "int64"), [rank - 1]), place)


def sequence_pad(
    x: Value, offsets: Value, *, padded_length: int = INT, pad_value: float = 0.0
) -> tuple[Value, Value]:
    """Return sequences (N, padded_length, ...) with a number after their ends, and the lengths.

    Rows beyond padded_length are left out.
    """
    count = cast(lengths_of(offsets), "int64")
    inside, first = before(count, padded_length), unsqueeze(cast(begins(offsets), "int64"), [1])
    at = chosen(inside, elementwise(geon.add, first, numbers(padded_length, 2, 1)), 0)
    return chosen(inside, gather(x, at, 0), pad_value), count


def sequence_unpad(x: Value, y: Value, offsets: Value) -> Value:
    """Return the rows of padded sequences X one after another, as many as Y has."""
    row, low, _ = row_numbers(y, offsets)
    inside = elementwise(geon.subtract, row, low)
    return gather_at(x, {0: sequence_numbers(y, offsets), 1: inside})


def offsets_of(x: Value) -> Value:
    """Return the offsets of sequences of these lengths."""
    given = with_axis(as_array(cast(x, "int64")), 0)
    whole = array(geon.cumsum(given.tensor, given.dims[0]), given.dims)
    return concat([host(np.zeros(1, np.int64)), whole], 0)


ROWS = [
    Row("sequence_pool", sequence_pool, "", "X@1+ Offsets@1"),
    Row("segment_pool", segment_pool, "", "X@1+ SegmentIds@1"),
    Row("sequence_softmax", sequence_softmax, "", "X@1+ Offsets@1"),
    Row("sequence_expand", lambda x, y, offsets: gather(x, sequence_numbers(y, offsets), 0),
        "Return row i of X for each row of sequence i of Y, which has the offsets.",
        "X@1+ Y@1+ Offsets@1"),
    Row("sequence_reverse", lambda x, offsets: gather(
        x, elementwise(lambda r, a, b: a + b - 1 - r, *row_numbers(x, offsets)), 0),
        "Return the rows of each sequence in reverse order.", "X@1+ Offsets@1", "Y"),
    Row("sequence_conv", sequence_conv, "", "X@2 Filter@2 Offsets@1"),
    Row("row_conv", row_conv, "", "X@2 Filter@2 Offsets@1"),
    Row("sequence_mask", lambda x, *, maxlen=INT, dtype="int64": cast(before(x, maxlen), dtype),
        "Return 1 at the positions before each length, along a new last position, else 0.",
        "X", "Y", gradient=False),
    Row("sequence_pad", sequence_pad, "", "X@1+ Offsets@1", "Out Length"),
    Row("sequence_unpad", sequence_unpad, "", "X@2+ Y@1+ Offsets@1"),
    Row("sequence_lengths", lengths_of, "", "Offsets@1", gradient=False),
    Row("sequence_offsets", offsets_of, "", "X@1", "Offsets", gradient=False),
]  # fmt: skip
