"""Resizing, rolling and diagonals."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple, Unpack

from ...errors import ArgumentError, AxisError
from ..axes.axes import Axes, Axis, axes_of, new_axis
from ..axes.index_map import Index, Map, view_map
from ..axes.lengths import Length
from ..building.constants import as_tensor, number
from ..building.elementwise_build import meet
from ..building.resolve_axes import by_own_axis, has_axes, named_axes, own_axis, refuse_present
from ..building.weak import in_dtype, like, strengthen
from ..core.argument_hints import public
from ..core.primitive import Inferred, Primitive, require
from ..core.source_info import user_call
from ..op_graph import Guard, Op, Tensor, make
from ..rows.accumulation import floating, widen
from ..rows.concatenation import concat
from ..rows.elementwise import equal, maximum, minimum, where
from ..rows.indexing import _gather
from ..rows.leaves import iota, length_value
from ..rows.movement import broadcast, rename, reorder
from ..values.attribute_types import Names, OneAxis, as_int
from ..values.dtypes import INT64
from .composites import weighted

if TYPE_CHECKING:
    from ..building.typing import AxesLike, AxisLike, OpKeywords, TensorLike


@public
def resize(
    x: TensorLike,
    lengths: Mapping[AxisLike, int | Length | Axis],
    mode: str = "linear",
    align: str = "centers",
    **notes: Unpack[OpKeywords],
) -> Tensor:
    """Return ``x`` resampled to other lengths along some axes: ``geon.resize(x, {H: 64, W: 64})``.

    ``mode`` is ``linear`` (between the two neighbouring elements) or ``nearest``. ``align`` gives
    the coordinates of elements: ``centers`` aligns the whole extents, with samples at the centres
    of elements; ``corners`` (with ``linear``) aligns the first and last elements; ``starts`` (with
    ``nearest``) samples at the starts of elements. Coordinates are exact, because they are computed
    in integers. Linear gives float32 for integers and bool. Raises ``AxisError`` for a length below
    1 and for an axis without elements, and ``ArgumentError`` for another mode.
    """
    result = as_tensor(x)
    known = {"linear": ("centers", "corners"), "nearest": ("centers", "starts")}
    if not isinstance(mode, str) or align not in known.get(mode, ()):
        raise ArgumentError(
            f"{user_call('resize')}: no mode {mode!r} with align={align!r}; give 'linear' with "
            "'centers' or 'corners', or 'nearest' with 'centers' or 'starts'"
        )
    if mode == "linear":
        result = floating(result)
    for along, length in by_own_axis(result, lengths, "resize").items():
        length = length.expression if isinstance(length, Axis) else as_int(length)
        if not isinstance(length, Length) and (type(length) is not int or length < 1):
            raise AxisError(
                f"{user_call('resize')}: {along!r} of {result} (made at {result.line_info}) cannot "
                f"have length {length!r}; give an integer of at least 1"
            )
        axis = result.axes[along]
        longer = axis.with_length(length)
        guards = _some(result, axis)
        if mode == "nearest":
            result = _gather(
                result, strengthen(_nearest(axis, longer, align), INT64), along, guards
            )
        else:
            result = _between(result, axis, longer, align, guards)
    return result


def _some(x: Tensor, axis: Axis) -> tuple[Guard, ...]:
    """Return the guard that an open axis has an element; raise ``AxisError`` if it has none."""
    size = axis.expression
    if isinstance(size, int) and size:
        return ()
    meaning = (
        f"{user_call('resize')}: the axis {axis} of {x} (made at {x.line_info}) has no element "
        "that another length could show; give it at least one"
    )
    if isinstance(size, int):
        raise AxisError(meaning)
    return (Guard("<=", 1, size, meaning),)


def _nearest(axis: Axis, longer: Axis, align: str) -> Tensor:
    old, new = length_value(axis.expression), length_value(longer.expression)
    if align == "starts":
        return iota(longer) * old // new
    return (2 * iota(longer) + 1) * old // (2 * new)


def _between(x: Tensor, axis: Axis, longer: Axis, align: str, guards: tuple[Guard, ...]) -> Tensor:
    """Interpolate each element between its two neighbours, at a quotient of integers."""
    old, new = length_value(axis.expression), length_value(longer.expression)
    position: Any = iota(longer)
    if align == "corners":
        whole = maximum(new - 1, 1)
        position = position * (old - 1)
    else:
        whole = 2 * new
        position = maximum((2 * position + 1) * old - new, 0)
    low = position // whole
    high = minimum(low + 1, old - 1)
    wide = widen(x)
    part = like(position - low * whole, wide) / in_dtype(whole, wide.dtype)
    first, second = (
        widen(_gather(x, strengthen(at, INT64), axis.name, guards)) for at in (low, high)
    )
    # At the coordinate of an element, the other one has weight 0 and may be infinite.
    between = weighted(1 - part, first) + weighted(part, second)
    return in_dtype(reorder(between, first.axes), x.dtype)


@public
def roll(x: TensorLike, shifts: Mapping[AxisLike, int], **notes: Unpack[OpKeywords]) -> Tensor:
    """Return ``x`` shifted cyclically along some axes.

    ``geon.roll(x, {T: 1})`` has at t the element from t - 1. Along an open axis the shift must not
    exceed the length, which is checked before a call (``GuardError``).
    """
    result = as_tensor(x)
    for along, shift in by_own_axis(result, shifts, "roll").items():
        shift = as_int(shift)
        if type(shift) is not int:
            raise ArgumentError(
                f"{user_call('roll')}: the shift along {along!r} must be an integer, not {shift!r}"
            )
        length = result.axes[along].expression
        if isinstance(length, int):
            shift = shift % length if length else 0
        if shift:
            ends = result[{along: slice(-shift, None)}], result[{along: slice(None, -shift)}]
            result = concat(ends, along)
    return result


# The diagonal -----------------------------------------------------------------------------------


class DiagonalAttributes(NamedTuple):
    """The names of the axes whose indices are equal, and the ``axis`` of the result."""

    axes: Names
    axis: OneAxis


def _diagonal_infer(args: tuple[Any, ...], attrs: DiagonalAttributes) -> Inferred:
    x, names, axis = args[0], attrs.axes, attrs.axis
    has_axes(x, names, "diagonal")
    require(len(names) > 1, "diagonal of {}", names)
    guards = []
    for name in names:
        guards += meet("diagonal", name, (x.axes[name].expression, x), (axis.expression, x))
    rest = [axis if each.name == names[0] else each for each in x.axes]
    kept = [each for each in rest if each is axis or each.name not in names]
    return axes_of(tuple(kept)), x.dtype, tuple(guards)


def _diagonal_map(op: Op, index: Index) -> Map:
    a: DiagonalAttributes = op.attrs
    return view_map({n: index[a.axis.name if n in a.axes else n] for n in op.args[0].axes.names})


def _diagonal_transpose(g: Tensor, op: Op, i: int) -> Tensor:
    """Return the cotangent on the diagonal and 0 elsewhere."""
    x = op.args[0]
    a: DiagonalAttributes = op.attrs
    first = x.axes[a.axes[0]]
    cotangent = rename(g, {a.axis: first.name}) if a.axis.name != first.name else g
    result = broadcast(cotangent, x.axes)
    zero = number(0, g.dtype)
    for name in a.axes[1:]:
        on = equal.apply(iota(first), iota(x.axes[name]))
        result = where.apply(on, result, zero)
    return broadcast(result, x.axes)


DIAGONAL = Primitive(
    "diagonal",
    "movement",
    "The elements of x at equal indices of some axes, along one.",
    transpose=_diagonal_transpose,
    attributes=DiagonalAttributes,
    arity=1,
    infer=_diagonal_infer,
    index_map=_diagonal_map,
    view=True,
    samples=lambda: [
        (
            "of two axes",
            [[Axis("A", 3), Axis("B", 2), Axis("C", 3)]],
            lambda x: diagonal(x, ["C", "A"]),
        ),
        (
            "of three",
            [[Axis("A", 3), Axis("B", 3), Axis("C", 3)]],
            lambda x: diagonal(x, ["A", "B", "C"], Axis("D")),
        ),
    ],
)


@public
def diagonal(
    x: TensorLike, axes: AxesLike, axis: Axis | None = None, **notes: Unpack[OpKeywords]
) -> Tensor:
    """Return the elements of ``x`` at equal indices of two or more ``axes``, in place of the first.

    The lengths of the axes must agree. ``axis`` is the axis of the diagonal; by default it is the
    first of them. Raises ``AxisError`` for fewer than two axes.
    """
    x = as_tensor(x)
    group = Axes(*[own_axis(x, each, "diagonal") for each in named_axes(axes, "diagonal", x)])
    if len(group) < 2:
        raise AxisError(
            f"{user_call('diagonal')}: give two axes of {x} (made at {x.line_info}) or more, not "
            f"{group}"
        )
    first = group[0]
    if axis is None:
        axis = first
    else:
        axis = new_axis(axis, "diagonal")
        if axis.open_name == axis.name:
            axis = first.named(axis.name)
        if axis.name != first.name and axis not in group:
            refuse_present(x, axis, "diagonal", "give another one")
    return make(DIAGONAL, (x,), (group.names, axis))
