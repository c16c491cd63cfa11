"""Views that only move elements: broadcast, rename, reorder, flip, flatten, unflatten."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple, Unpack

import numpy as np

from ...errors import ArgumentError, AxisError
from ..axes.affine import ravel, unravel
from ..axes.axes import Axes, Axis, as_axes, axes_of, new_axis
from ..axes.index_map import Index, Map, view_map
from ..axes.lengths import product
from ..building.constants import as_tensor
from ..building.elementwise_build import broadcast_over, meet
from ..building.resolve_axes import NEW, by_own_axis, has_axes, named_axes, own_axis
from ..core.argument_hints import public
from ..core.primitive import PRIMITIVES, Inferred, Primitive, require
from ..core.source_info import user_call
from ..op_graph import Guard, Op, Tensor, make
from ..values.attribute_types import Name, Names, OneAxis, SomeAxes
from .elementwise import infer_same

if TYPE_CHECKING:
    from ..building.typing import AxesLike, AxisLike, NewAxes, OpKeywords, TensorLike

Array = np.ndarray[Any, Any]


class OverAxes(NamedTuple):
    """The axes of the result, in order."""

    axes: SomeAxes


class FlipAttributes(NamedTuple):
    """The names of the axes along which the order is reversed, sorted."""

    flipped: Names


class FlattenAttributes(NamedTuple):
    """The names of the axes that are ``merged``, and the ``axis`` that replaces them."""

    merged: Names
    axis: OneAxis


class UnflattenAttributes(NamedTuple):
    """The name of the axis that is ``split``, and the ``axes`` that replace it."""

    split: Name
    axes: SomeAxes


def shape_of(op: Op) -> tuple[int, ...]:
    """Return the shape of an op whose lengths are integers."""
    return tuple(int(axis.expression) for axis in op.axes)


def _broadcast_reference(op: Op, x: Array) -> Array:
    return np.broadcast_to(align_dimensions(x, op.args[0].axes, op.axes), shape_of(op))


def align_dimensions(x: Array, have: Axes, want: Axes) -> Array:
    """Return ``x`` over ``have`` with dimensions in the order of ``want``, 1 for missing axes."""
    order = [have.index(name) for name in want.names if name in have]
    index = tuple(slice(None) if name in have else None for name in want.names)
    return x.transpose(order)[index]


def _broadcast_transpose(g: Tensor, op: Op, i: int) -> Tensor:
    return sum_to(g, op.args[0].axes)


def _broadcast_infer(args: tuple[Any, ...], attrs: OverAxes) -> Inferred:
    x, axes = args[0], attrs.axes
    guards: list[Guard] = []
    for axis in x.axes:
        wanted = axes.get(axis.name)
        if wanted is None:
            raise AxisError(
                f"{x} (made at {x.line_info}) has the axis {axis.name!r}, which is not among "
                f"{axes}; reduce it first, for example geon.sum(x, reduction_axes={axis.name})"
            )
        if wanted is not axis:
            guards += meet("broadcast", axis.name, (axis.expression, x), (wanted.expression, x))
    return axes, x.dtype, tuple(guards)


def _reorder_infer(args: tuple[Any, ...], attrs: OverAxes) -> Inferred:
    require(len(attrs.axes) == len(args[0].axes), "{} as {}", args[0].axes, attrs.axes)
    return _broadcast_infer(args, attrs)


def _rename_infer(args: tuple[Any, ...], attrs: OverAxes) -> Inferred:
    x, axes = args[0], attrs.axes
    require(len(axes) == len(x.axes), "{} as {}", x.axes, axes)
    guards: list[Guard] = []
    for have, want in zip(x.axes, axes, strict=True):
        guards += meet("cast_axes", want.name, (have.expression, x), (want.expression, x))
    return axes, x.dtype, tuple(guards)


def _flip_infer(args: tuple[Any, ...], attrs: FlipAttributes) -> Inferred:
    has_axes(args[0], attrs.flipped, "flip")
    return infer_same(args, attrs)


def _flatten_infer(args: tuple[Any, ...], attrs: FlattenAttributes) -> Inferred:
    x, names, merged = args[0], attrs.merged, attrs.axis
    has_axes(x, names, "flatten")
    require(names != (), "flatten of no axes")
    first = x.axes.index(names[0])
    neighbours = x.axes.names[first : first + len(names)] == names
    require(neighbours, "flatten of {}, which are not neighbours", names)
    size = product(x.axes[n].expression for n in names)
    guards = meet("flatten", merged.name, (size, x), (merged.expression, x))
    rest = list(x.axes)
    rest[first : first + len(names)] = [merged]
    return axes_of(tuple(rest)), x.dtype, tuple(guards)


def _unflatten_infer(args: tuple[Any, ...], attrs: UnflattenAttributes) -> Inferred:
    x, name, axes = args[0], attrs.split, attrs.axes
    has_axes(x, (name,), "unflatten")
    guards = meet("unflatten", name, (x.axes[name].expression, x), (axes.size, x))
    at = x.axes.index(name)
    new = list(x.axes)
    new[at : at + 1] = axes
    return axes_of(tuple(new)), x.dtype, tuple(guards)


def _batch_over(attrs: OverAxes, axes: Axes) -> OverAxes:
    return OverAxes(Axes(attrs.axes, [axis for axis in axes if axis not in attrs.axes]))


def _broadcast_map(op: Op, index: Index) -> Map:
    return view_map({name: index[name] for name in op.args[0].axes.names})


def _rename_map(op: Op, index: Index) -> Map:
    pairs = zip(op.args[0].axes.names, op.axes.names, strict=True)
    return view_map({old: index[new] for old, new in pairs})


def _flip_map(op: Op, index: Index) -> Map:
    indices = dict(index)
    for name in op.attrs.flipped:
        indices[name] = index[name] * -1 + (op.axes[name].expression - 1)
    return view_map(indices)


def _flatten_map(op: Op, index: Index) -> Map:
    have = op.args[0].axes
    a: FlattenAttributes = op.attrs
    parts = unravel(index[a.axis.name], [have[name].expression for name in a.merged])
    indices = {**index, **dict(zip(a.merged, parts, strict=True))}
    return view_map({name: indices[name] for name in have.names})


def _unflatten_map(op: Op, index: Index) -> Map:
    have = op.args[0].axes
    a: UnflattenAttributes = op.attrs
    position = ravel([index[name] for name in a.axes.names], a.axes.lengths)
    return view_map({name: position if name == a.split else index[name] for name in have.names})


BROADCAST = Primitive(
    "broadcast",
    "movement",
    "x repeated along the axes it lacks, in the order asked for.",
    reference=_broadcast_reference,
    transpose=_broadcast_transpose,
    attributes=OverAxes,
    arity=1,
    infer=_broadcast_infer,
    index_map=_broadcast_map,
    view=True,
    batch_attributes=_batch_over,
)
REORDER = Primitive(
    "reorder",
    "movement",
    "x with its axes in another order.",
    reference=_broadcast_reference,
    transpose=lambda g, op, i: broadcast(g, op.args[0].axes),
    attributes=OverAxes,
    arity=1,
    infer=_reorder_infer,
    index_map=_broadcast_map,
    view=True,
    batch_attributes=_batch_over,
)
RENAME = Primitive(
    "rename",
    "movement",
    "x under other axis names, matched by position.",
    reference=lambda op, x: x,
    transpose=lambda g, op, i: cast_axes(g, op.args[0].axes),
    attributes=OverAxes,
    arity=1,
    infer=_rename_infer,
    index_map=_rename_map,
    view=True,
    batch_attributes=_batch_over,
)
FLIP = Primitive(
    "flip",
    "movement",
    "x with the order along some axes reversed.",
    reference=lambda op, x: np.flip(x, tuple(map(op.axes.index, op.attrs.flipped))),
    transpose=lambda g, op, i: flip(g, [op.axes[name] for name in op.attrs.flipped]),
    attributes=FlipAttributes,
    arity=1,
    infer=_flip_infer,
    index_map=_flip_map,
    view=True,
)
FLATTEN = Primitive(
    "flatten",
    "movement",
    "Neighbouring axes of x merged into one, row-major.",
    reference=lambda op, x: x.reshape(shape_of(op)),
    transpose=lambda g, op, i: _unflatten(g, op.attrs.axis, op.args[0].axes.only(op.attrs.merged)),
    attributes=FlattenAttributes,
    arity=1,
    infer=_flatten_infer,
    index_map=_flatten_map,
    view=True,
    cost="once",
)
UNFLATTEN = Primitive(
    "unflatten",
    "movement",
    "An axis of x split into several, row-major.",
    reference=lambda op, x: x.reshape(shape_of(op)),
    transpose=lambda g, op, i: _flatten(g, op.attrs.axes.names, op.args[0].axes[op.attrs.split]),
    attributes=UnflattenAttributes,
    arity=1,
    infer=_unflatten_infer,
    index_map=_unflatten_map,
    view=True,
)


@public
def broadcast(x: TensorLike, axes: AxesLike, **notes: Unpack[OpKeywords]) -> Tensor:
    """Return ``x`` over exactly ``axes``, which must include its own; repeated along the others.

    Raises ``AxisError`` if ``axes`` lack one of x's or give it another length.
    """
    x = as_tensor(x)
    return broadcast_over(x, named_axes(axes, "broadcast", x, cure=NEW))


@public
def reorder(x: TensorLike, axes: AxesLike, **notes: Unpack[OpKeywords]) -> Tensor:
    """Return ``x`` with its axes in the order of ``axes``, which must be the same set."""
    x = as_tensor(x)
    axes = named_axes(axes, "reorder", x)
    if not x.axes.same_set(axes):
        missing = [str(axis) for axis in x.axes if axis.name not in axes.names]
        more = [str(axis) for axis in axes if axis.name not in x.axes.names]
        wrong = [f"without {', '.join(missing)}"] if missing else []
        wrong += [f"with {', '.join(more)}"] if more else []
        cure = "name each of its axes once: geon.sum takes one away" if missing else ""
        raise AxisError(
            f"{user_call('reorder')}: {axes} are not the axes of {x} (made at {x.line_info}), "
            f"{' and '.join(wrong)}; {cure or 'geon.broadcast adds axes'}"
        )
    order = axes_of(tuple([own_axis(x, axis, "reorder") for axis in axes]))
    return broadcast(x, order)


@public
def expand(x: TensorLike, axis: Axis, position: int = 0, **notes: Unpack[OpKeywords]) -> Tensor:
    """Return ``x`` repeated along a new ``axis``, inserted at ``position`` among its axes.

    Raises ``ArgumentError`` for a position that is no integer.
    """
    x = as_tensor(x)
    order = list(x.axes)
    if not hasattr(position, "__index__") or isinstance(position, Op):
        raise ArgumentError(
            f"{user_call('expand')}: position={position!r} is no integer; give the number of axes "
            f"of {x} (made at {x.line_info}) that stand before the new one"
        )
    order.insert(position, new_axis(axis, "expand"))
    return broadcast(x, Axes(order))


@public
def cast_axes(x: TensorLike, axes: NewAxes, **notes: Unpack[OpKeywords]) -> Tensor:
    """Return ``x`` with its axes replaced by ``axes``, matched by position; lengths must agree."""
    tensor, axes = as_tensor(x), as_axes(axes)
    if len(axes) != len(tensor.axes):
        raise AxisError(
            f"cast_axes: {tensor} (made at {tensor.line_info}) has {len(tensor.axes)} axes, {axes} "
            f"are {len(axes)}"
        )
    if axes is not tensor.axes:
        tensor = make(RENAME, (tensor,), (axes,))
    return tensor


@public
def rename(
    x: TensorLike, names: Mapping[AxisLike, Axis | str], **notes: Unpack[OpKeywords]
) -> Tensor:
    """Return ``x`` with some axes renamed: ``geon.rename(h, {H: H.prime})``; lengths stay.

    If a new name is given as an axis of fixed length, the length must agree.
    """
    x = as_tensor(x)
    if not isinstance(names, dict) or not all(isinstance(to, (Axis, str)) for to in names.values()):
        raise ArgumentError(f"rename takes a dict from axes to axes or names, not {names!r}")
    new = by_own_axis(x, names, "rename")
    for old, to in new.items():
        if isinstance(to, Axis):
            have = x.axes[old].expression
            meet("rename", to.name, (have, x), (to.expression, x))
    axes = []
    for axis in x.axes:
        to = new.get(axis.name, axis)
        fixed = isinstance(to, Axis) and isinstance(to.expression, int)
        axes.append(to if fixed else axis.named(to if isinstance(to, str) else to.name))
    named = [axis.name for axis in axes]
    twice = next((k for k, name in enumerate(named) if name in named[:k]), None)
    if twice is not None:
        first = x.axes.names[named.index(named[twice])]
        raise AxisError(
            f"{user_call('rename')}: axis {named[twice]!r} is there twice in "
            f"({', '.join(map(str, axes))}), as {first!r} and {x.axes.names[twice]!r} of {x} (made "
            f"at {x.line_info}); give geon.rename another name, such as {named[twice]}.prime"
        )
    return cast_axes(x, Axes(axes))


@public
def flip(x: TensorLike, axes: AxesLike, **notes: Unpack[OpKeywords]) -> Tensor:
    """Return ``x`` with the order along ``axes`` reversed."""
    result = as_tensor(x)
    names = tuple(
        sorted(own_axis(result, axis, "flip").name for axis in named_axes(axes, "flip", result))
    )
    if names:
        result = make(FLIP, (result,), (names,))
    return result


@public
def flatten(
    x: TensorLike,
    axes: AxesLike | None = None,
    axis: Axis | None = None,
    **notes: Unpack[OpKeywords],
) -> Tensor:
    """Return ``x`` with ``axes`` (default: all) merged row-major into one, in place of the first.

    The axes are merged in the order given. ``axis`` names the result: its length is checked, and an
    open one takes that length. Otherwise its name is theirs joined by ``_``.
    """
    x = as_tensor(x)
    given = x.axes if axes is None else named_axes(axes, "flatten", x)
    group = Axes(*(own_axis(x, a, "flatten") for a in given))
    merged = Axis("_".join(group.names) or "flat", group.size)
    if axis is not None:
        axis = new_axis(axis, "flatten")
        if axis.open_name == axis.name:
            axis = merged.named(axis.name)
        meet("flatten", axis.name, (merged.expression, x), (axis.expression, x))
        merged = axis
    if not len(group):
        return expand(x, merged)
    order: list[Axis] = []
    for old in x.axes:
        if old.name == next(n for n in x.axes.names if n in group):
            order += group
        elif old not in group:
            order.append(old)
    return _flatten(reorder(x, Axes(order)), group.names, merged)


def _flatten(x: Tensor, names: tuple[str, ...], axis: Axis) -> Tensor:
    return make(FLATTEN, (x,), (names, axis))


@public
def unflatten(x: TensorLike, axis: AxisLike, axes: NewAxes, **notes: Unpack[OpKeywords]) -> Tensor:
    """Return ``x`` with ``axis`` split row-major into ``axes``, whose size must be its length."""
    x = as_tensor(x)
    return _unflatten(x, own_axis(x, axis, "unflatten"), as_axes(axes))


def _unflatten(x: Tensor, axis: Axis, axes: Axes) -> Tensor:
    return make(UNFLATTEN, (x,), (axis.name, axes))


def sum_over(x: Tensor, names: tuple[str, ...]) -> Tensor:
    """Return the sum over the axes of these names, which ``x`` has; for rules."""
    return make(PRIMITIVES["sum"], (x,), (names,))


def sum_to(x: Tensor, axes: Axes) -> Tensor:
    """Return ``x`` summed to ``axes``, in their order: the transpose of a broadcast."""
    if x.axes is axes:
        return x
    extra = tuple(name for name in x.axes.names if name not in axes)
    return broadcast(sum_over(x, extra) if extra else x, axes)
