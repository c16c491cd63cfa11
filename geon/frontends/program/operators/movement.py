"""Operators that move elements: shapes, joins, slices, gathers and scatters."""

from __future__ import annotations

from typing import Any

import geon

from ....errors import ArgumentError, AxisError
from ....op_graph.axes.lengths import product
from ...positional.elementwise import elementwise, expand
from ...positional.functions import take_along
from ...positional.indexing import gather as gather_along
from ...positional.indexing import gather_tuples, scatter_tuples, select
from ...positional.movement import Part, concat, flip, pad, slices, split, tile
from ...positional.picking import gather_at, numbers
from ...positional.programs import cast
from ...positional.reductions import along_axis
from ...positional.reshaping import reshape, squeeze, transpose, unsqueeze
from ...positional.values import Value, array, as_array, host, position, positions
from .rows import INT, INTS, Function, Row, matched


def split_along(x: Value, *, num: int = 0, sections: Any = (), axis: int = 0) -> list[Value]:
    """Return num equal parts along a position, or parts of the lengths in sections."""
    at = position(axis, len(x.shape))
    if not sections and num < 1:
        raise ArgumentError("split needs num, the number of equal parts, or sections; give one")
    return split(x, at, list(sections) if sections else [x.shape[at] // num] * num)


def sliced(x: Value, *, axes: Any = INTS, starts: Any = INTS, ends: Any = INTS) -> Value:
    """Return elements from starts up to, without, ends along some positions."""
    at = positions(axes, len(x.shape))
    bounds = matched(len(at), axes=at, starts=starts, ends=ends)
    return slices(x, {k: Part(begin, end) for k, begin, end in bounds})


def stacked(x: list[Value], *, axis: int = 0) -> Value:
    """Return variables of one shape along a new position."""
    at = position(axis, len(x[0].shape), 1)
    if any(len(each.shape) != len(x[0].shape) for each in x):
        raise AxisError(f"stack of {', '.join(map(str, x))}: give variables of one shape")
    return concat([unsqueeze(each, [at]) for each in x], at)


def unstacked(x: Value, *, axis: int = 0, num: int = 0) -> list[Value]:
    """Return the parts at each index along a position, which they lack."""
    at = position(axis, len(x.shape))
    return [select(x, at, k) for k in range(num or int(x.shape[at]))]


def expand_to(x: Value, *, shape: Any = INTS) -> Value:
    """Return x broadcast to a shape; -1 keeps a length."""
    rest = len(shape) - len(x.shape)
    if rest < 0 or -1 in shape[:rest]:
        raise ArgumentError(f"shape={list(shape)} has no length for each dimension of {x}; give it")
    return expand(x, [x.shape[k - rest] if n == -1 else n for k, n in enumerate(shape)])


def roll(x: Value, *, shifts: Any = INTS, axis: Any = INTS) -> Value:
    """Return x with elements shifted around along some positions."""
    for at, shift in matched(len(axis), axis=positions(axis, len(x.shape)), shifts=shifts):
        x = concat([slices(x, {at: Part(-shift, None)}), slices(x, {at: Part(0, -shift)})], at)
    return x


def flat(index: Value) -> Value:
    """Return an index as int64, (N, 1) as (N,)."""
    found = cast(index, "int64")
    return squeeze(found, [1]) if len(index.shape) == 2 and index.shape[1] == 1 else found


def one_hot(x: Value, *, depth: int = INT) -> Value:
    """Return 1 at the index of each element along a new last position, else 0."""
    index = cast(squeeze(x, [len(x.shape) - 1]) if x.shape[1:] and x.shape[-1] == 1 else x, "int64")
    at = len(index.shape)
    hit = elementwise(geon.equal, unsqueeze(index, [at]), numbers(depth, at + 1, at))
    return cast(hit, "float32")


def multiplex(ids: Value, x: list[Value]) -> Value:
    """Return row i of the variable whose number is ids[i]."""
    return gather_at(stacked(x), {0: flat(ids), 1: numbers(x[0].shape[0])})


def triangle(x: Value, *, diagonal: int = 0, lower: bool = True) -> Value:
    """Return the elements of matrices on one side of a diagonal, and 0 elsewhere."""
    rank = len(x.shape)
    rows, columns = numbers(x.shape[-2], rank, rank - 2), numbers(x.shape[-1], rank, rank - 1)
    way = 1 if lower else -1
    return elementwise(
        lambda t, i, j: geon.where(way * (j - i) <= way * diagonal, t, 0), x, rows, columns
    )


def resized(mode: str) -> Function:
    """Return the function of an operator that resizes images (N, C, H, W)."""

    def build(
        x: Value, *, out_h: int = INT, out_w: int = INT, align_corners: bool = False
    ) -> Value:
        given = as_array(x)
        names: list[Any] = [d and d.name for d in given.dims]
        lengths = dict(zip(names[2:], (out_h, out_w), strict=True))
        how = "corners" if align_corners else "centers"
        return array(geon.resize(given.tensor, lengths, mode, how), names)

    return build


def borders(paddings: Any, rank: int) -> list[Any]:
    """Return pairs of widths before and after each of ``rank`` positions."""
    widths = [width for (width,) in matched(2 * rank, paddings=paddings)]
    return list(zip(widths[::2], widths[1::2], strict=True))


PADS = "Return x with a border: the widths before and after each position"
ROWS = [
    Row("reshape", lambda x, *, shape=INTS: reshape(
        x, [x.shape[position(k, len(x.shape))] if n == 0 else n for k, n in enumerate(shape)]),
        "Return the elements in another shape; 0 keeps a length, -1 is derived."),
    Row("transpose", lambda x, *, axis=INTS: transpose(x, axis),
        "Return x with its positions in the order of axis."),
    Row("concat", lambda x, *, axis=0: concat(x, axis),
        "Return variables joined along a position.", "X*"),
    Row("split", split_along, "", "X", "Out*"),
    Row("slice", sliced, "", "Input"),
    Row("stack", stacked, "", "X*", "Y"),
    Row("unstack", unstacked, "", "X", "Y*"),
    Row("expand", lambda x, *, expand_times=INTS: tile(
        x, [n for n, in matched(len(x.shape), expand_times=expand_times)]),
        "Return x repeated as a whole along each position."),
    Row("expand_v2", expand_to),
    Row("squeeze", lambda x, *, axes=(): squeeze(x, axes or None),
        "Return x without these positions of length 1; by default without all of them."),
    Row("unsqueeze", lambda x, *, axes=INTS: unsqueeze(
        x, axes),
        "Return x with new positions of length 1."),
    Row("flatten", lambda x, *, axis=1: reshape(
        x, [product(x.shape[:axis]), product(x.shape[axis:])]),
        "Return a matrix: the positions before axis as rows, the others as columns."),
    Row("pad", lambda x, *, paddings=INTS, pad_value=0.0: pad(
        x, borders(paddings, len(x.shape)), "constant", pad_value), f"{PADS}."),
    Row("pad2d", lambda x, *, paddings=INTS, mode="constant", pad_value=0.0: pad(
        x, [(0, 0), (0, 0), *borders(paddings, 2)], mode, pad_value),
        f"{PADS} of the last two; mode is constant, reflect or edge.", "X@4"),
    Row("crop", lambda x, *, offsets=INTS, shape=INTS: slices(x, {k: Part(o, o + n) for k, (o, n)
        in enumerate(matched(len(x.shape), offsets=offsets, shape=shape))}),
        "Return the part of a shape that begins at offsets."),
    Row("reverse", lambda x, *, axis=INTS: flip(x, axis),
        "Return x in reverse order along some positions."),
    Row("roll", roll),
    Row("repeat_interleave", lambda x, *, repeats=INT, axis=0: along_axis(
        lambda t, a: geon.repeat(t, {a: repeats}), x, axis),
        "Return x with each index along a position repeated."),
    Row("take_along_axis", lambda x, index, *, axis=0: take_along(
        x, cast(index, "int64"), axis),
        "Return the elements at Index, which has as many positions as x, along a position.",
        "X Index"),
    Row("gather", lambda x, index, *, axis=0: gather_along(
        x, flat(index), axis),
        "Return the elements at Index along a position.", "X Index"),
    Row("gather_nd", lambda x, index: gather_tuples(x, index),
        "Return the elements at tuples of indices, the last position of Index.", "X Index@1+"),
    Row("scatter", lambda x, ids, updates, *, overwrite=True: scatter_tuples(
        x, unsqueeze(flat(ids), [1]), updates, "set" if overwrite else "add"),
        "Return X with the rows at Ids replaced by Updates, or added to.", "X Ids@1+ Updates"),
    Row("scatter_nd_add", lambda x, index, updates: scatter_tuples(x, index, updates, "add"),
        "Return X with Updates added at tuples of indices.", "X Index@1+ Updates"),
    Row("one_hot", one_hot, gradient=False),
    Row("multiplex", multiplex, "", "Ids X*"),
    Row("shape", lambda x: as_array(host(list(x.shape), "int64")), "Return the lengths of Input.",
        "Input", gradient=False),
    Row("size", lambda x: as_array(host([product(x.shape)], "int64")),
        "Return the number of elements, with shape (1,).", "Input", gradient=False),
    Row("tril_triu", triangle, "", "X@2+"),
    Row("bilinear_interp", resized("linear"), "Return images resized linearly.", "X@4"),
    Row("nearest_interp", resized("nearest"), "Return images of the nearest pixels.",
        "X@4"),
]  # fmt: skip
