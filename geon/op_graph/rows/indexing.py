"""Gather and scatter along axes by tensors of indices."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple, Unpack

import numpy as np

from ...errors import (
    ArgumentError,
    AxisError,
    DTypeError,
    IndexRangeError,
    LinearAlgebraError,
)
from ...lazy_dataclasses import dataclass
from ..axes.affine import variable
from ..axes.axes import Axes, Axis, axes_may_equal
from ..axes.index_map import Index, Map, Position, view_map
from ..axes.lengths import Length
from ..building.constants import as_tensor, number
from ..building.elementwise_build import meet
from ..building.resolve_axes import axis_of, by_own_axis, has_axes
from ..building.weak import put_into, strengthen
from ..core.argument_hints import public
from ..core.primitive import Inferred, Primitive, require
from ..core.source_info import describe, user_call, user_site
from ..op_graph import Guard, Op, Tensor, make
from ..values.attribute_types import (
    SCATTER_MODES,
    AlongAxis,
    BatchSizes,
    Flag,
    Name,
    ScatterMode,
    Size,
    Text,
)
from ..values.dtypes import (
    FLOAT32,
    HALVES,
    INT64,
    UINT64,
    DType,
    accumulator,
    is_float8,
    kind,
    name_of,
)
from .accumulation import widen
from .elementwise import (
    absolute,
    add,
    cast,
    equal,
    floordivide,
    infer_same,
    less,
    maximum,
    minimum,
    multiply,
    where,
)
from .leaves import iota, length_value
from .movement import broadcast, flatten, reorder, unflatten

if TYPE_CHECKING:
    from ..building.typing import AxisLike, OpKeywords, TensorLike

Array = np.ndarray[Any, Any]


class ScatterAttributes(NamedTuple):
    """The axis of the positions, and how values are combined with the elements there."""

    axis: Name
    mode: ScatterMode


class CheckedAttributes(NamedTuple):
    """The length that positions must be inside of; ``from_end`` if negative ones count too.

    ``batch`` is None for positions. For a check of matrices it has the name and the length of each
    batch axis: the second argument is a bool for each matrix, true if it failed, or, where loops
    are printed, 0 or 1 + the row-major position of the first that failed. ``purpose`` is then the
    key in ``PURPOSES``.
    """

    length: Size
    from_end: Flag
    batch: BatchSizes
    purpose: Text


@dataclass(frozen=True)
class Purpose:
    """The use of indices, for messages about those that are out of range.

    ``used`` says how they are used, ``cure`` is the advice for an index out of range.
    """

    used: str
    cure: str


# Purposes by the tag of the checked indices or of the check.
PURPOSES: dict[str, Purpose] = {}
POSITIONS = Purpose("used as positions", "check the data, make the axis longer, or geon.clip them")


def gathered_axes(x: Axes, index: Axes, axis: str) -> Axes:
    """Return the axes of a gather: those of ``x`` with ``axis`` replaced by the index's own."""
    own = [a for a in index if a.name == axis or a not in x]
    out: list[Axis] = []
    for a in x:
        out += own if a.name == axis else [a]
    return Axes(out)


def gather_plan(op: Op, x: Axes, index: Axes) -> tuple[list[str], list[str], list[str]]:
    """Return the names of batch axes, of the index's own axes, and of the other axes of ``x``."""
    axis = op.attrs.axis
    batch = [n for n in x.names if n in index and n != axis]
    own = [n for n in index.names if n not in batch]
    rest = [n for n in x.names if n not in batch and n != axis]
    return batch, own, rest


def _grids(op: Op, x_axes: Axes, index_axes: Axes, index: Array) -> tuple[Any, ...]:
    batch, own, _ = gather_plan(op, x_axes, index_axes)
    ordered = index.transpose([index_axes.index(n) for n in [*batch, *own]])
    grids = []
    for k, name in enumerate(batch):
        length = int(x_axes[name].expression)
        shape = [1] * ordered.ndim
        shape[k] = length
        grids.append(np.arange(length).reshape(shape))
    return (*grids, ordered)


def check_range(op: Op, index: Array, axis: Axis) -> None:
    """Raise ``IndexRangeError`` if an index is out of range of ``axis``, of integer length."""
    length = int(axis.expression)
    if index.size and (index.min() < -length or index.max() >= length):
        raise IndexRangeError(
            f"{op.primitive.name} made at {op.line_info}: the index holds "
            f"{int(index.min())} to {int(index.max())}, outside axis {axis}"
        )


def _checked_reference(op: Op, index: Array, *extremes: Array) -> Array:
    if op.attrs.batch is not None:
        if extremes[0].any():
            raise LinearAlgebraError(
                f"{op} made at {op.line_info}: matrix {int(np.argmax(extremes[0]))} of the batch"
            )
        return index
    length = op.attrs.length
    low = -length if op.attrs.from_end else 0
    if index.size and (index.min() < low or index.max() >= length):
        more = " or more" if is_held(op.args[0]) else ""
        raise IndexRangeError(
            f"{before_int64(op.args[0])} made at {op.line_info}: {index.min()} to {index.max()}"
            f"{more} where the axis has length {length}"
        )
    return index


def _gather_reference(op: Op, x: Array, index: Array) -> Array:
    x_axes, index_axes = op.args[0].axes, op.args[1].axes
    check_range(op, index, x_axes[op.attrs.axis])
    batch, own, rest = gather_plan(op, x_axes, index_axes)
    arranged = x.transpose([x_axes.index(n) for n in [*batch, op.attrs.axis, *rest]])
    out = arranged[_grids(op, x_axes, index_axes, index)]
    names = [*batch, *own, *rest]
    ordered: Array = out.transpose([names.index(n) for n in op.axes.names])
    return ordered


def _scatter_reference(op: Op, x: Array, index: Array, value: Array) -> Array:
    x_axes, index_axes = op.args[0].axes, op.args[1].axes
    a: ScatterAttributes = op.attrs
    check_range(op, index, x_axes[a.axis])
    batch, own, rest = gather_plan(op, x_axes, index_axes)
    order = [x_axes.index(n) for n in [*batch, a.axis, *rest]]
    out = np.array(x.transpose(order), total_dtype(op))
    names = op.args[2].axes.names
    values = value.transpose([names.index(n) for n in [*batch, *own, *rest]])
    positions = _grids(op, x_axes, index_axes, index)
    if a.mode == "set":
        out[positions] = values
    else:
        COMBINING[a.mode].at(out, positions, values.astype(out.dtype))
    return out.transpose(np.argsort(order)).astype(op.dtype)


COMBINING = {"add": np.add, "max": np.maximum, "min": np.minimum, "multiply": np.multiply}


def total_dtype(op: Op) -> DType:
    """Return the dtype in which a scatter combines: float32 where it adds or multiplies halves."""
    halves = op.attrs.mode in ("add", "multiply") and name_of(op.dtype) in HALVES
    return accumulator(op.dtype) if halves else op.dtype


def _gather_transpose(g: Tensor, op: Op, i: int) -> Tensor | None:
    if i == 1:
        return None
    x, index = op.args
    zeros = cast(broadcast(as_tensor(0), x.axes), g.dtype)
    return _scatter(zeros, index, g, op.attrs.axis, "add")


def _scatter_transpose(g: Tensor, op: Op, i: int) -> Tensor | None:
    x, index, value = op.args
    a: ScatterAttributes = op.attrs
    if i == 1:
        return None
    if a.mode == "add":
        return g if i == 0 else _gather(g, index, a.axis)
    if a.mode != "set":
        given = g if i == 0 else _gather(g, index, a.axis)
        return multiply.apply(given, cast(_partials(op)[i // 2], g.dtype))
    if i == 0:
        zeros = cast(broadcast(as_tensor(0), value.axes), g.dtype)
        return _scatter(g, index, zeros, a.axis, "set")
    picked = _gather(g, index, a.axis)
    return broadcast(where.apply(_wins(x, index, a.axis), picked, 0), value.axes)


def _scatter_tangent(op: Op, moving: list[int], by_argument: dict[Op, Tensor]) -> Tensor | None:
    """Return the tangent of a scatter from the tangents ``by_argument``."""
    x, index, value = op.args
    a: ScatterAttributes = op.attrs
    if not any(i != 1 for i in moving):
        return None
    tangents = [
        by_argument.get(arg, cast(broadcast(as_tensor(0), arg.axes), op.dtype))
        for arg in (x, value)
    ]
    if a.mode in ("set", "add"):
        return _scatter(tangents[0], index, tangents[1], a.axis, a.mode)
    moved, put = (
        multiply.apply(tangent, cast(partial, op.dtype))
        for tangent, partial in zip(tangents, _partials(op), strict=True)
    )
    return _scatter(moved, index, put, a.axis, "add")


def _partials(op: Op) -> tuple[Tensor, Tensor]:
    """Return the derivative of the result at each element's index, for elements of x and values."""
    x, index, value = op.args
    a: ScatterAttributes = op.attrs
    dtype = FLOAT32 if name_of(op.dtype) in HALVES else op.dtype
    both: Any = (x, value)
    if a.mode in ("max", "min"):  # tied elements share the derivative, as in the reductions
        out: Any = op
        hits = [
            cast(equal.apply(each, best), dtype)
            for each, best in zip(both, (out, _gather(out, index, a.axis)), strict=True)
        ]
        count = _scatter(hits[0], index, hits[1], a.axis, "add")
        return hits[0] / count, hits[1] / _gather(count, index, a.axis)
    # The product of the other factors: the product of the nonzero ones times that of the zeros,
    # which are kept as factors for the second derivative.
    wide = [cast(each, dtype) for each in both]
    one, nothing = number(1, dtype), number(0, dtype)
    is_zero = [equal.apply(each, nothing) for each in wide]
    factors = [where.apply(z, one, each) for z, each in zip(is_zero, wide, strict=True)]
    zeros = [where.apply(z, each, nothing) for z, each in zip(is_zero, wide, strict=True)]
    counts = [cast(z, INT64) for z in is_zero]
    product = _scatter(factors[0], index, factors[1], a.axis, "multiply")
    total = _scatter(zeros[0], index, zeros[1], a.axis, "add")
    count = _scatter(counts[0], index, counts[1], a.axis, "add")
    parts = []
    for k in (0, 1):
        all_factors, all_zeros, all_counts = (
            each if k == 0 else _gather(each, index, a.axis) for each in (product, total, count)
        )
        others = all_counts - counts[k]
        rest = where.apply(equal.apply(others, 1), all_zeros - zeros[k], nothing)
        rest = where.apply(equal.apply(others, 0), one, rest)
        parts.append(all_factors / factors[k] * rest)
    return parts[0], parts[1]


def _wins(x: Op, index: Op, axis: str) -> Tensor:
    """Return whether each index element is the last one with its value, whose value is stored."""
    number: Any = as_tensor(0)
    for a in index.axes:
        number = add.apply(multiply.apply(number, length_value(a.expression)), iota(a))
    number = broadcast(cast(number, INT64), index.axes)
    places = Axes(*(a for a in x.axes if a.name == axis or a in index.axes))
    nobody = cast(broadcast(as_tensor(-1), places), INT64)
    target = gathered_axes(places, index.axes, axis)
    stayed = _scatter(nobody, index, broadcast(number, target), axis, "set")
    return equal.apply(_gather(stayed, index, axis), number)


def _gather_infer(args: tuple[Any, ...], attrs: AlongAxis) -> Inferred:
    (x, index), axis = args, attrs.axis
    guards = _shared_guards("gather", x, index, axis)
    return gathered_axes(x.axes, index.axes, axis), x.dtype, guards


def _scatter_infer(args: tuple[Any, ...], attrs: ScatterAttributes) -> Inferred:
    x, index, value = args
    guards = _shared_guards("scatter", x, index, attrs.axis)
    places = gathered_axes(x.axes, index.axes, attrs.axis)
    require(axes_may_equal(value.axes, places), "scatter of {} to {}", value.axes, places)
    require(value.dtype is x.dtype, "scatter of {} into {}", value.dtype, x.dtype)
    if kind(x.dtype) == "c" and attrs.mode not in ("set", "add"):
        raise DTypeError(
            f"scatter with mode={attrs.mode!r} takes no complex numbers, and {x} (made at "
            f"{x.line_info}) is complex; take mode='add' or 'set', or scatter real tensors"
        )
    if is_float8(x.dtype) and attrs.mode != "set":
        raise DTypeError(
            f"scatter with mode={attrs.mode!r} takes no float8 numbers, which are only stored, and "
            f"{x} (made at {x.line_info}) is {x.dtype.name}; take mode='set', or scatter into "
            'geon.cast(x, "float32")'
        )
    return x.axes, x.dtype, guards


def _shared_guards(what: str, x: Op, index: Op, axis: str) -> tuple[Guard, ...]:
    has_axes(x, (axis,), what)
    require(index.dtype is INT64, "{} with an index of {}", what, index.dtype)
    guards: list[Guard] = []
    for a in index.axes:
        known = x.axes.get(a.name)
        if known is not None and a.name != axis:
            guards += meet(what, a.name, (known.expression, x), (a.expression, index))
    return tuple(guards)


def _gather_map(op: Op, index: Index) -> Map:
    (x, places), axis = op.args, op.attrs.axis
    coordinates = tuple([(name, index[name]) for name in places.axes.names])
    at = variable(Position(1, coordinates, x.axes[axis].expression))
    return view_map({name: at if name == axis else index[name] for name in x.axes.names})


GATHER = Primitive(
    "gather",
    "indexing",
    "Elements of x at the positions an index tensor holds along an axis.",
    reference=_gather_reference,
    transpose=_gather_transpose,
    attributes=AlongAxis,
    arity=2,
    infer=_gather_infer,
    index_map=_gather_map,
    dtype_operands=(0,),
    cost="once",
)
SCATTER = Primitive(
    "scatter",
    "indexing",
    "x with values set at, or combined with, the positions an index tensor holds along an axis.",
    reference=_scatter_reference,
    transpose=_scatter_transpose,
    jvp=_scatter_tangent,
    attributes=ScatterAttributes,
    arity=3,
    infer=_scatter_infer,
    dtype_operands=(0, 2),
    batched_together=(0, 2),
    cost="kernel",
    in_place=(0,),
)
CHECKED = Primitive(
    "checked",
    "indexing",
    "Integer positions, after a check that each is inside an axis of this length, counted from its "
    "end if negative; further arguments are their smallest and largest, if computed elsewhere.",
    reference=_checked_reference,
    attributes=CheckedAttributes,
    infer=infer_same,
    has_side_effect=True,
    raises=True,
)


def _gather(x: Op, index: Op, axis: str, guards: tuple[Guard, ...] = ()) -> Tensor:
    return make(GATHER, (x, index), (axis,), guards=guards)


def _scatter(x: Op, index: Op, value: Op, axis: str, mode: str) -> Tensor:
    return make(SCATTER, (x, index, value), (axis, mode))


def _index(index: Any, what: str) -> Tensor:
    index = as_tensor(index)
    if kind(index.dtype) != "i":
        raise DTypeError(
            f"{what}: the index {index} (made at {index.line_info}) is {index.dtype.name}, not an "
            "integer dtype; geon.cast it, or use geon.where for a mask"
        )
    held: Any = held_by_int64(index)
    return strengthen(held, INT64)


def held_by_int64(index: Op) -> Op:
    """Return indices clamped to int64; larger ones are out of range of every axis anyway."""
    return minimum.apply(index, np.iinfo(np.int64).max) if index.dtype is UINT64 else index


def before_int64(index: Op) -> Op:
    """Return the indices as they were given, before their conversion to int64."""
    if index.primitive.name == "cast" and index.name is None:
        index = index.args[0]
    held = index.dtype is UINT64 and index.primitive.name == "minimum" and index.name is None
    return index.args[0] if held else index


def is_held(index: Op) -> bool:
    """Return True if the indices are uint64 clamped to int64."""
    return before_int64(index).dtype is UINT64


def purpose_of(op: Op) -> Purpose:
    """Return the purpose of the indices that ``op`` checks."""
    if op.attrs.purpose:
        return PURPOSES[op.attrs.purpose]
    purposes = [PURPOSES[tag] for tag in PURPOSES if tag in op.tags | before_int64(op.args[0]).tags]
    return purposes[0] if len(purposes) == 1 else POSITIONS  # one op may serve several purposes


@dataclass(frozen=True, eq=False)
class Merged:
    """A tensor with several axes flattened into ``axis``, and the positions along that axis."""

    x: Tensor
    index: Tensor
    axis: Axis
    parts: Axes


def _merged(x: Tensor, given: Any, axis: Any, what: str) -> Merged:
    """Return ``x`` and the positions ``given``, a dict from axes to indices, along one axis.

    Each index is checked against its own axis.
    """
    by_axis = by_own_axis(x, given, what)
    if axis is not None or not by_axis:
        wrong = f"axis={axis} beside a dict of indices" if by_axis else "a dict without an index"
        raise ArgumentError(
            f"{user_call(what)}: {wrong} for {x} (made at {x.line_info}); give a dict from each "
            "axis to its index, or one index and its axis"
        )
    parts = x.axes.only(by_axis)
    flat_index: Any = None
    for part in parts:
        index = _index(by_axis[part.name], what)
        result = make(CHECKED, (index,), (part.expression, True, None, ""))
        length = length_value(part.expression)
        at = where.apply(less.apply(result, 0), add.apply(result, length), result)
        flat_index = at if flat_index is None else add.apply(multiply.apply(flat_index, length), at)
    merged = Axis("_".join(parts.names), parts.size)
    while merged in x.axes or merged in flat_index.axes:
        merged = merged.prime
    return Merged(flatten(x, parts, merged), cast(flat_index, INT64), merged, parts)


@public
def gather(
    x: TensorLike,
    index: TensorLike | Mapping[Any, TensorLike],
    axis: AxisLike | None = None,
    **notes: Unpack[OpKeywords],
) -> Tensor:
    """Return the elements of ``x`` at the indices ``index`` along ``axis``.

    In the result ``axis`` is replaced by the index's own axes; axes that ``x`` and ``index`` share
    (other than ``axis``) are matched. Negative indices count from the end; one out of range raises
    ``IndexRangeError`` when computed. A dict such as ``{A: i, B: j}`` picks along several axes at
    once: the axes of all indices stand in the place of the first of them.
    """
    x = as_tensor(x)
    if isinstance(index, Mapping) and not isinstance(index, Op):
        several = _merged(x, index, axis, "gather")
        return _gather(several.x, several.index, several.axis.name)
    index = _index(index, "gather")
    return _gather(x, index, axis_of(x, axis, "gather").name)


@public
def take_along(x: TensorLike, index: TensorLike, axis: AxisLike | None = None) -> Tensor:
    """Return ``gather(x, index, axis)``: each element of ``index`` selects along ``axis``."""
    return gather(x, index, axis)


@public
def scatter(
    x: TensorLike,
    index: TensorLike | Mapping[Any, TensorLike],
    value: TensorLike,
    axis: AxisLike | None = None,
    *,
    mode: str = "set",
    **notes: Unpack[OpKeywords],
) -> Tensor:
    """Return ``x`` with ``value`` set at, or combined with, the indices ``index`` along ``axis``.

    ``index`` is as in ``gather``, where it may be a dict; ``value`` is broadcast over the axes of
    that gather.
    ``mode="set"`` keeps the last value for an index, in row-major order. ``"add"``, ``"max"``,
    ``"min"`` and ``"multiply"`` combine all values for an index with the element of ``x`` there;
    float16 and bfloat16 are added and multiplied in float32 and rounded once. ``"mean"`` is their
    mean, the element of ``x`` included; that of integers is rounded down.

    The derivative of ``"max"`` and ``"min"`` goes to the elements that are the extreme, in equal
    shares if several tie, and NaN counts as in ``geon.max``. That of ``"multiply"`` is the product
    of the other factors, also where some are 0. It divides the product of the nonzero factors by
    each factor, so it is not finite where that product is not. A third derivative treats a product
    of three zeros as constant.
    """
    x = as_tensor(x)
    modes = (*SCATTER_MODES, "mean")
    if not (isinstance(mode, str) and mode in modes):
        raise AxisError(f"scatter: mode {mode!r} is none of {', '.join(map(repr, modes))}")
    if isinstance(index, Mapping) and not isinstance(index, Op):
        several = _merged(x, index, axis, "scatter")
        flat = scatter(several.x, several.index, value, several.axis, mode=mode)
        return reorder(unflatten(flat, several.axis, several.parts), x.axes)
    index, along = _index(index, "scatter"), axis_of(x, axis, "scatter").name
    x, value = put_into("scatter", x, value)
    if value.dtype is not x.dtype:
        raise DTypeError(
            f"scatter: the value {value} is {value.dtype.name} (made at {value.line_info}) and {x} "
            f"is {x.dtype.name} (made at {x.line_info}); geon.cast the value"
        )
    value = broadcast(value, gathered_axes(x.axes, index.axes, along))
    return (
        _scatter_mean(x, index, value, along)
        if mode == "mean"
        else _scatter(x, index, value, along, mode)
    )


def _scatter_mean(x: Tensor, index: Tensor, value: Tensor, axis: str) -> Tensor:
    """Return ``x`` with each element replaced by the mean of it and of the values put there."""
    wide = widen(x)
    total = _scatter(wide, index, widen(value), axis, "add")
    places = Axes(*(a for a in x.axes if a.name == axis or a in index.axes))
    one = cast(broadcast(as_tensor(1), places), INT64)
    added = cast(broadcast(as_tensor(1), gathered_axes(places, index.axes, axis)), INT64)
    count = cast(_scatter(one, index, added, axis, "add"), total.dtype)
    ratio = total / count if kind(x.dtype) in "fc" else floordivide.apply(total, count)
    return cast(reorder(ratio, x.axes), x.dtype)


def pad_by_gather(x: Tensor, widths: dict[str, tuple[int, int]], mode: str) -> Tensor:
    """Return ``x`` with borders that repeat (``edge``) or mirror (``reflect``) its elements."""
    for name, (before, after) in widths.items():
        axis = x.axes[name]
        longer = axis.with_length(axis.expression + before + after)
        last = length_value(axis.expression) - 1
        position = iota(longer) - before
        if mode == "edge":
            index = minimum.apply(maximum.apply(position, 0), last)
        else:
            # Reflect at 0 and at the last element, repeatedly for borders longer than the axis.
            period = maximum.apply(2 * last, 1)
            folded = absolute(position) % period
            index = minimum.apply(folded, period - folded)
            index = where.apply(equal.apply(last, 0), 0, index)
        guards = _some_element(x, axis, mode) if before + after else ()
        x = _gather(x, cast(broadcast(index, Axes(longer)), INT64), name, guards)
    return x


def _some_element(x: Tensor, axis: Axis, mode: str) -> tuple[Guard, ...]:
    """Return a guard that ``axis`` has an element to repeat; ``AxisError`` if it has none."""
    meaning = (
        f"pad of {x} (made at {x.line_info}) with mode={mode!r}: {axis.name} has no element that "
        "the border could repeat; give it one, or pad with mode='constant'"
    )
    if axis.expression == 0:
        raise AxisError(f"{meaning}; at {describe(user_site())}")
    open_length = isinstance(axis.expression, Length)
    return (Guard("<=", 1, axis.expression, meaning),) if open_length else ()
