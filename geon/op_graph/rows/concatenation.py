"""Concatenation, stacking and padding."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Unpack

import numpy as np

from ...errors import ArgumentError, AxisError
from ..axes.affine import Size
from ..axes.axes import Axes, Axis, axes_of, new_axis
from ..axes.index_map import GuardedElement, Index, Map
from ..axes.index_map import InRange as Guarded
from ..axes.lengths import Length, may_equal
from ..building.constants import as_tensor, number
from ..building.elementwise_build import meet
from ..building.resolve_axes import by_own_axis, has_axes, own_axis
from ..building.weak import in_dtype, meet_together, put_into
from ..core.argument_hints import public
from ..core.primitive import Inferred, Primitive, require
from ..core.source_info import user_call
from ..op_graph import NO_AXES, Guard, Op, Tensor, make
from ..values.attribute_types import AlongAxis, Widths, as_int
from ..values.dtypes import is_number
from .indexing import pad_by_gather
from .movement import broadcast, expand, reorder, sum_to

if TYPE_CHECKING:
    from ..building.typing import AxisLike, OpKeywords, TensorLike

Array = np.ndarray[Any, Any]


# Concat -----------------------------------------------------------------------------------------


def _concat_transpose(g: Tensor, op: Op, i: int) -> Tensor:
    name = op.attrs.axis
    start: int | Length = 0
    for arg in op.args[:i]:
        start = start + arg.axes[name].expression
    own = op.args[i].axes[name].expression
    return g[{g.axes[name]: slice(start, start + own)}]


def _concat_infer(args: tuple[Any, ...], attrs: AlongAxis) -> Inferred:
    first, name = args[0], attrs.axis
    has_axes(first, (name,), "concat")
    total: int | Length = 0
    for x in args:
        matches = x.axes.names == first.axes.names and x.dtype is first.dtype
        require(matches, "concat of {} {} and {} {}", first, first.dtype, x, x.dtype)
        for have, want in zip(x.axes, first.axes, strict=True):
            if have is not want and have.name != name:
                meets = may_equal(have.expression, want.expression)
                require(meets, "concat along {!r} of {} and {}", name, first, x)
        total = total + x.axes[name].expression
    axes = axes_of(tuple([a.with_length(total) if a.name == name else a for a in first.axes]))
    return axes, first.dtype, ()


def _concat_map(op: Op, index: Index) -> Map:
    name = op.attrs.axis
    elements: list[GuardedElement] = []
    start: Size = 0
    for k, x in enumerate(op.args):
        end = start + x.axes[name].expression
        last = k == len(op.args) - 1
        guards = () if last else (Guarded(index[name], start, end),)
        elements.append(GuardedElement(guards, k, {**index, name: index[name] - start}))
        start = end
    return tuple(elements)


CONCAT = Primitive(
    "concat",
    "movement",
    "Tensors laid one after another along an axis.",
    reference=lambda op, *xs: np.concatenate(xs, axis=op.axes.index(op.attrs.axis)),
    transpose=_concat_transpose,
    attributes=AlongAxis,
    infer=_concat_infer,
    index_map=_concat_map,
    batched_together=None,
    cost="once",
)


@public
def concat(tensors: Sequence[TensorLike], axis: AxisLike, **notes: Unpack[OpKeywords]) -> Tensor:
    """Concatenate tensors along ``axis``, whose lengths add up; other axes must agree.

    The axes are in the order of the first tensor; dtypes are promoted. Raises ``AxisError`` if one
    lacks the axis or another axis differs.
    """
    xs = [as_tensor(x) for x in tensors]
    if not xs:
        raise AxisError(
            f"{user_call('concat')} was given no tensor; give at least one, or geon.constant(0.0, "
            "axes) for an empty part"
        )
    first = xs[0]
    if not isinstance(axis, Axis):
        axis = own_axis(first, axis, "concat")
    for x in xs:
        if axis not in x.axes or not x.axes.same_set(first.axes):
            raise AxisError(
                f"concat along {axis.name!r}: {first} (made at {first.line_info}) and {x} (made at "
                f"{x.line_info}) must have that axis and otherwise the same ones; "
                "geon.stack makes a new axis"
            )
    if all(isinstance(_difference(x, axis), int) for x in xs):
        own_axis(first, axis, "concat")
    _, guards = join_others("concat", xs, axis.name)
    met = meet_together("concat", xs)
    names = first.axes.names
    xs = [x if x.axes.names == names else reorder(x, [x.axes[n] for n in names]) for x in met]
    if len(xs) == 1:
        return xs[0]
    return make(CONCAT, tuple(xs), (axis.name,), guards=guards)


def _difference(x: Tensor, axis: Axis) -> int | Length | None:
    """Return how much longer the axis of ``x`` is than ``axis``; None if they are equal."""
    return (x.axes[axis.name].expression - axis.expression) or None


def join_others(what: str, xs: Sequence[Tensor], but: str) -> tuple[Axes, tuple[Guard, ...]]:
    """Return the axes other than ``but``, and guards where their lengths may differ."""
    guards: list[Guard] = []
    first = xs[0]
    for x in xs[1:]:
        for axis in x.axes:
            if axis.name != but:
                known = first.axes[axis.name]
                guards += meet(what, axis.name, (known.expression, first), (axis.expression, x))
    return first.axes.without([but]), tuple(guards)


@public
def stack(
    tensors: Sequence[TensorLike], axis: Axis, position: int = 0, **notes: Unpack[OpKeywords]
) -> Tensor:
    """Stack tensors with the same axes along a new ``axis`` of length ``len(tensors)``.

    An open ``axis`` takes that length.
    """
    xs: list[Any] = [x if is_number(x) else as_tensor(x) for x in tensors]
    axis = new_axis(axis, "stack")
    if not xs:
        raise AxisError(
            f"{user_call('stack')} was given no tensor, of which it would have the axes; give at "
            "least one"
        )
    if isinstance(axis.expression, int) and axis.expression != len(xs):
        raise AxisError(
            f"stack: the axis {axis} has length {axis.expression} and there are {len(xs)} tensors"
            f"{''.join([f', {_shown(x)}' for x in xs[:2]])}{', ...' * (len(xs) > 2)}; "
            f"give an open axis or one of length {len(xs)}"
        )
    for x in xs:
        if not _axes(x).same_set(_axes(xs[0])):
            raise AxisError(
                f"stack: {_shown(xs[0])} and {_shown(x)} must have the same axes; geon.broadcast "
                "one of them"
            )
    if _axes(xs[0]) is not NO_AXES:
        join_others("stack", xs, axis.name)
    xs = meet_together("stack", xs)
    one = axis.with_length(1)
    return concat([expand(x, one, position) for x in xs], one)


def _axes(x: Any) -> Axes:
    return x.axes if isinstance(x, Tensor) else NO_AXES


def _shown(x: Any) -> str:
    return f"{x} (made at {x.line_info})" if isinstance(x, Tensor) else repr(x)


# Pad --------------------------------------------------------------------------------------------


class PadAttributes(NamedTuple):
    """For each axis the number of elements before and after it, or None."""

    widths: Widths


def _pad_reference(op: Op, x: Array, value: Array) -> Array:
    widths = [width or (0, 0) for width in op.attrs.widths]
    return np.pad(x, widths, constant_values=value.item()) if widths else x


def _pad_transpose(g: Tensor, op: Op, i: int) -> Tensor:
    x = op.args[0]
    inner = {
        g.axes[axis.name]: slice(width[0], width[0] + axis.expression)
        for axis, width in zip(x.axes, op.attrs.widths, strict=True)
        if width is not None
    }
    if i == 0:
        return g[inner]
    zeros = broadcast(number(0.0, g.dtype), x.axes)
    border = _pad(zeros, op.attrs.widths, number(1.0, g.dtype))
    return sum_to(g * border, NO_AXES)


def _pad_infer(args: tuple[Any, ...], attrs: PadAttributes) -> Inferred:
    (x, value), widths = args, attrs.widths
    require(len(widths) == len(x.axes), "{} widths for {}", len(widths), x.axes)
    scalar = value.axes is NO_AXES and value.dtype is x.dtype
    require(scalar, "pad of {} with {}", x.dtype, value)
    axes = [
        axis if width is None else axis.with_length(axis.expression + width[0] + width[1])
        for axis, width in zip(x.axes, widths, strict=True)
    ]
    return axes_of(tuple(axes)), x.dtype, ()


def _pad_map(op: Op, index: Index) -> Map:
    x = op.args[0]
    guards: list[Guarded] = []
    indices = dict(index)
    for axis, width in zip(x.axes, op.attrs.widths, strict=True):
        if width is not None:
            here, low = index[axis.name], width[0]
            guards.append(Guarded(here, low, axis.expression + low))
            indices[axis.name] = here - low
    return GuardedElement(tuple(guards), 0, indices), GuardedElement((), 1, {})


PAD = Primitive(
    "pad",
    "movement",
    "x with a border of one value along some axes.",
    reference=_pad_reference,
    transpose=_pad_transpose,
    attributes=PadAttributes,
    arity=2,
    infer=_pad_infer,
    index_map=_pad_map,
    batch_attributes=lambda attrs, axes: PadAttributes((*attrs.widths, *[None] * len(axes))),
    cost="once",
)


def _pad(x: Tensor, widths: tuple[Any, ...], value: Tensor) -> Tensor:
    return make(PAD, (x, value), (widths,))


@public
def pad(
    x: TensorLike,
    widths: Mapping[AxisLike, int | tuple[int, int]],
    mode: str = "constant",
    value: TensorLike = 0,
    **notes: Unpack[OpKeywords],
) -> Tensor:
    """Return ``x`` with a border along some axes: ``geon.pad(x, {H: (1, 2), W: 1})``.

    ``widths`` gives for each axis the number of elements before and after (one number for both).
    ``mode`` is ``constant`` (filled with the scalar ``value``), ``edge`` (the outermost element
    repeated) or ``reflect`` (mirrored without repeating the outermost). The axes keep their names;
    the lengths grow. Raises ``AxisError`` for a negative width or an unknown mode.
    """
    x = as_tensor(x)
    table: dict[str, tuple[int, int]] = {}
    if not isinstance(widths, dict):
        raise ArgumentError(f"pad takes a dict of widths, such as {{H: (1, 2)}}, not {widths!r}")
    for along, width in by_own_axis(x, widths, "pad").items():
        both = tuple(width) if isinstance(width, (tuple, list)) else (width, width)
        both = tuple([as_int(each) for each in both])
        if len(both) != 2 or any(not isinstance(w, int) or w < 0 for w in both):
            raise AxisError(
                f"pad of {_shown(x)}: the width of {along!r} must be one count >= 0 or two, before "
                f"and after it, not {width}; a slice takes elements away"
            )
        table[along] = both
    if mode == "constant":
        x, fill = put_into("pad", x, value)
        fill = in_dtype(fill, x.dtype)
        result = _pad(x, tuple(table.get(n) for n in x.axes.names), fill) if table else x
    elif mode in ("edge", "reflect"):
        result = pad_by_gather(x, table, mode)
    else:
        raise AxisError(
            f"pad of {_shown(x)}: no mode {mode!r}; give 'constant', 'edge' or 'reflect'"
        )
    return result
