"""Sliding windows along an axis (``unfold``) and their transpose, with a new axis inside each.

Windows are index maps, and so is their inverse, ``unwindow``. Position r of window n reads the
element n * stride + r * dilation - before. Conversely, an element is read at position r by at most
one window. So the derivative of either op is the other one followed by a sum.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple, Unpack

from ...errors import ArgumentError, AxisError
from ...lazy_dataclasses import dataclass
from ..axes.affine import AffineIndex, divide
from ..axes.axes import Axes, Axis, axes_of
from ..axes.index_map import GuardedElement, Index, Map, view_map
from ..axes.index_map import InRange as Inside
from ..axes.lengths import Length
from ..building.constants import as_tensor, number
from ..building.resolve_axes import by_own_axis, has_axes
from ..building.weak import in_dtype, put_into
from ..core.argument_hints import public
from ..core.primitive import Inferred, Primitive, require
from ..core.source_info import user_call
from ..op_graph import NO_AXES, Guard, Op, Tensor, make
from ..values.attribute_types import Name, OneAxis, Size, Step, as_int
from ..values.dtypes import is_number
from .movement import broadcast, sum_over, sum_to

if TYPE_CHECKING:
    from ..building.typing import AxisLike, OpKeywords, TensorLike


class WindowAttributes(NamedTuple):
    """Windows along ``axis``: ``window`` is the axis of positions inside each.

    Windows start ``stride`` elements apart, their positions are ``dilation`` apart, and the first
    window starts ``before`` elements in front of the axis. ``length`` is that of ``axis`` in the
    result.
    """

    axis: Name
    window: OneAxis
    stride: Step
    dilation: Step
    before: Size
    length: Size


@dataclass(frozen=True, init=False)
class Window:
    """The placement of windows along an axis.

    ``axis`` is the new axis of positions inside a window; an integer is its length, and geon names
    it. Windows start ``stride`` elements apart, their positions are ``dilation`` apart. ``pad`` are
    the numbers of elements before and after the axis (one number for both), or ``"valid"`` for
    none, or ``"same"`` for padding that gives one window for each ``stride`` elements, with the odd
    element after. With ``ceil`` a last window that starts inside may end outside.
    """

    axis: Axis | int | str
    stride: int
    dilation: int
    pad: tuple[int, int] | str
    ceil: bool

    @public
    def __init__(
        self,
        axis: Axis | int | str,
        stride: int = 1,
        dilation: int = 1,
        pad: int | tuple[int, int] | str = 0,
        ceil: bool = False,
    ) -> None:
        here = user_call("Window")
        axis, stride, dilation = as_int(axis), as_int(stride), as_int(dilation)
        for what, value in (("stride", stride), ("dilation", dilation)):
            if type(value) is not int or value < 1:
                raise ArgumentError(
                    f"{here}: {what} must be an integer of at least 1, not {value!r}"
                )
        if type(axis) is int and axis < 1:
            raise AxisError(f"{here}: a window has at least one position, not {axis}")
        if not isinstance(axis, (Axis, int, str)) or isinstance(axis, bool):
            raise AxisError(f"{here}: {axis!r} is no axis; write geon.Axis('R', 3)")
        values = (axis, stride, dilation, _widths(pad, here), bool(ceil))
        for name, each in zip(self.__dataclass_fields__, values, strict=True):
            object.__setattr__(self, name, each)


def _widths(pad: Any, here: str) -> tuple[int, int] | str:
    """Return the pad as two counts, or "same"."""
    if isinstance(pad, str):
        is_valid, both = pad in ("valid", "same"), (0, 0)
    else:
        both = tuple(pad) if isinstance(pad, (tuple, list)) else (pad, pad)
        both = tuple([as_int(each) for each in both])
        is_valid = len(both) == 2 and all(type(each) is int and each >= 0 for each in both)
    if not is_valid:
        raise ArgumentError(
            f"{here}: pad must be one count >= 0 or two, before and after, or 'same' or 'valid', "
            f"not {pad!r}"
        )
    return "same" if pad == "same" else both


@dataclass(frozen=True)
class Placed:
    """Windows placed along an axis of ``length`` elements.

    ``count`` is the number of windows and ``before`` the number of padding elements in front.
    ``spare`` is the number of elements beyond those of the first window. ``room`` is negative if
    there is no window.
    """

    axis: Axis
    length: Size
    window: Axis
    stride: int
    dilation: int
    before: Size
    count: Size
    spare: Size
    room: Size

    def attributes(self, length: Size) -> WindowAttributes:
        """Return the attributes of an op with ``length`` elements along the axis."""
        return WindowAttributes(
            self.axis.name, self.window, self.stride, self.dilation, self.before, length
        )


def place(axis: Axis, window: Window, positions: Axis, what: str) -> Placed:
    """Return the placement of windows along ``axis``.

    Raises ``AxisError`` if the padding depends on an open length.
    """
    length, stride = axis.expression, window.stride
    reach = (positions.expression - 1) * window.dilation + 1
    if isinstance(window.pad, str):
        before, after = _same(axis, stride, reach, what)
    else:
        before, after = window.pad
    spare = length + before + after - reach
    count, room = spare // stride + 1, spare
    if window.ceil and window.pad != "same":
        # All windows that start inside or before the axis, up to one that ends beyond the pad.
        least = after + stride - reach
        require(isinstance(least, int), "{} with ceil needs a window of known length", what)
        inside = isinstance(least, int) and least > 0
        if not (isinstance(least, int) and least >= stride):  # else the last one is all padding
            count = -(-(length + before) // stride) if inside else -(-spare // stride) + 1
            room = count - 1
    return Placed(axis, length, positions, stride, window.dilation, before, count, spare, room)


def _same(axis: Axis, stride: int, reach: Size, what: str) -> tuple[Size, Size]:
    length = axis.expression
    total = (-(-length // stride) - 1) * stride + reach - length
    if isinstance(total, int):
        total = max(total, 0)
    elif not isinstance(reach, int) or reach < stride:
        raise AxisError(
            f"{user_call(what)}: with pad='same' windows of {reach} elements that are {stride} "
            f"apart need padding along {axis} that only its length can tell; give the pad as two "
            "counts"
        )
    before = total // 2
    return before, total - before


def guards_of(placed: Placed, x: Op, what: str) -> tuple[Guard, ...]:
    """Return a guard that there is a window; raise ``AxisError`` if there is none."""
    if isinstance(placed.room, int) and placed.room >= 0:
        return ()
    meaning = (
        f"{user_call(what)}: no window of {placed.window} with dilation {placed.dilation} fits "
        f"along {placed.axis} of {x} (made at {x.line_info}); pad the axis, or give a smaller "
        "window"
    )
    if isinstance(placed.room, Length):
        return (Guard("<=", 0, placed.room, meaning),)
    raise AxisError(meaning)


# Primitives -------------------------------------------------------------------------------------


def _axes(x: Op, attrs: WindowAttributes) -> Axes:
    """Return the axes of windows of ``x``, or of ``unwindow`` of it."""
    name, window, length = attrs.axis, attrs.window, attrs.length
    has_axes(x, (name,), "window")
    require(window.name != name, "windows of {} along {}", window, name)
    axes = [axis.with_length(length) if axis.name == name else axis for axis in x.axes]
    if window.name not in x.axes:
        return axes_of((*axes, window))
    have = x.axes[window.name]
    require(have == window, "windows of {} in {}", window, have)
    return axes_of(tuple(axes))


def _is_inside(x: Op, attrs: WindowAttributes) -> bool:
    """Return True if every window is known to lie inside the axis."""
    spare = x.axes[attrs.axis].expression - (attrs.window.expression - 1) * attrs.dilation - 1
    count, most = attrs.length, spare // attrs.stride + 1
    enough = isinstance(most, int) and isinstance(count, int) and count <= most
    return attrs.before == 0 and (count == most or enough)


def _windows_infer(args: tuple[Any, ...], attrs: WindowAttributes) -> Inferred:
    axes = _axes(args[0], attrs)
    require(_is_inside(args[0], attrs), "windows {} outside {}", (*attrs,), args[0])
    return axes, args[0].dtype, ()


def _filled_infer(args: tuple[Any, ...], attrs: WindowAttributes) -> Inferred:
    x, value = args
    scalar = value.axes is NO_AXES and value.dtype is x.dtype
    require(scalar, "windows of {} with {}", x.dtype, value)
    return _axes(x, attrs), x.dtype, ()


def _shown(op: Op, index: Index) -> dict[str, AffineIndex]:
    """Return the index in x that an element of its windows reads."""
    a: WindowAttributes = op.attrs
    at = index[a.axis] * a.stride + index[a.window.name] * a.dilation - a.before
    own = op.args[0].axes.names
    return {n: at if n == a.axis else index[n] for n in own}


def _windows_map(op: Op, index: Index) -> Map:
    return view_map(_shown(op, index))


def _padded_map(op: Op, index: Index) -> Map:
    name, x = op.attrs.axis, op.args[0]
    indices = _shown(op, index)
    guard = Inside(indices[name], 0, x.axes[name].expression)
    return GuardedElement((guard,), 0, indices), GuardedElement((), 1, {})


def _unwindow_map(op: Op, index: Index) -> Map:
    a: WindowAttributes = op.attrs
    y = op.args[0]
    at = index[a.axis] + a.before - index[a.window.name] * a.dilation
    count = y.axes[a.axis].expression
    guards = [Inside(at, 0, (count - 1) * a.stride + 1)]
    if a.stride > 1:
        at, rest = divide(at, a.stride)
        guards.append(Inside(rest, 0, 1))
    indices = {n: at if n == a.axis else index[n] for n in y.axes.names}
    return GuardedElement(tuple(guards), 0, indices), GuardedElement((), 1, {})


def _windows_transpose(g: Tensor, op: Op, i: int) -> Tensor:
    x = op.args[0]
    a: WindowAttributes = op.attrs
    if i == 1:
        return _of_border(g, op)
    back = unwindow(g, a._replace(length=x.axes[a.axis].expression))
    return _together(back, x.axes, a.window.name)


def _unwindow_transpose(g: Tensor, op: Op, i: int) -> Tensor:
    y = op.args[0]
    a: WindowAttributes = op.attrs
    if i == 1:
        return _of_border(g, op)
    back = windows(g, a._replace(length=y.axes[a.axis].expression), number(0, g.dtype))
    return _together(back, y.axes, a.window.name)


def _together(x: Tensor, axes: Axes, window: str) -> Tensor:
    """Return ``x`` over ``axes``, summed over the axis of positions if they lack it."""
    return broadcast(x if window in axes else sum_over(x, (window,)), axes)


def _of_border(g: Tensor, op: Op) -> Tensor:
    """Return the cotangent of the fill value: the sum over all elements outside."""
    zeros = broadcast(number(0, g.dtype), op.args[0].axes)
    border = make(op.primitive, (zeros, number(1, g.dtype)), op.attrs)
    return sum_to(g * border, NO_AXES)


def _samples() -> list[tuple[str, Any, Any]]:
    a, b = Axis("A", 2), Axis("B", 5)
    r, s = Axis("R", 3), Axis("S", 2)
    return [
        ("side by side", [[a, b]], lambda x: window(x, {b: Window(r)})),
        ("with steps", [[b, a]], lambda x: window(x, {b: Window(s, stride=2, dilation=3)})),
        ("of two axes", [[b, a]], lambda x: window(x, {b: Window(r, 2), a: Window(s)})),
    ]


def _padded_samples() -> list[tuple[str, Any, Any]]:
    a, b = Axis("A", 2), Axis("B", 5)
    r, s = Axis("R", 3), Axis("S", 2)
    return [
        ("a border", [[a, b]], lambda x: window(x, {b: Window(r, pad=(2, 1))})),
        ("longer than the axis", [[a, b]], lambda x: window(x, {a: Window(r, 2, 3, pad=4)})),
        (
            "a value outside",
            [[b, a], []],
            lambda x, v: window(x, {b: Window(r, 3, pad=2), a: Window(s, pad=1)}, v),
        ),
    ]


def _unwindow_samples() -> list[tuple[str, Any, Any]]:
    a, b, r = Axis("A", 2), Axis("B", 5), Axis("R", 3)
    of = partial(WindowAttributes, "B", r)
    return [
        ("of windows", [[a, b, r]], lambda y: unwindow(y, of(1, 1, 0, 7))),
        ("with steps", [[r, b, a]], lambda y: unwindow(y, of(2, 3, 1, 12))),
        ("of one position", [[a, b]], lambda y: unwindow(y, of(3, 2, 4, 9))),
    ]


WINDOWS = Primitive(
    "window",
    "movement",
    "The windows of x along an axis, all inside it.",
    transpose=_windows_transpose,
    attributes=WindowAttributes,
    arity=1,
    infer=_windows_infer,
    index_map=_windows_map,
    view=True,
    samples=_samples,
)
PADDED_WINDOWS = Primitive(
    "padded_windows",
    "movement",
    "The windows of x along an axis, with one value where they reach beyond it.",
    transpose=_windows_transpose,
    attributes=WindowAttributes,
    arity=2,
    infer=_filled_infer,
    index_map=_padded_map,
    samples=_padded_samples,
)
UNWINDOW = Primitive(
    "unwindow",
    "movement",
    "For each element of an axis and each window position: the element of that window there, or a "
    "value where there is no such window.",
    transpose=_unwindow_transpose,
    attributes=WindowAttributes,
    arity=2,
    infer=_filled_infer,
    index_map=_unwindow_map,
    samples=_unwindow_samples,
)


def windows(
    x: Tensor, attrs: WindowAttributes, value: Tensor, guards: tuple[Guard, ...] = ()
) -> Tensor:
    """Return the windows given by ``attrs``, padded with ``value`` if some reach outside."""
    if _is_inside(x, attrs):
        return make(WINDOWS, (x,), attrs, guards=guards)
    return make(PADDED_WINDOWS, (x, value), attrs, guards=guards)


def unwindow(y: Tensor, attrs: WindowAttributes) -> Tensor:
    """Return the inverse of windows: ``attrs.length`` elements along the axis, for each position.

    The element is that of ``y`` at the window that has it at this position, or 0 if there is none.
    If ``y`` lacks the axis of positions, it is the same for each position.
    """
    return make(UNWINDOW, (y, number(0, y.dtype)), attrs)


# Public function --------------------------------------------------------------------------------


def check_windows(given: Any, what: str) -> None:
    """Raise ``ArgumentError`` for windows that are no mapping from axes."""
    if not isinstance(given, Mapping):
        raise ArgumentError(
            f"{user_call(what)}: windows are a dict, such as {{H: geon.Window(R, stride=2)}}, not "
            f"{given!r}"
        )


def placements(
    x: Tensor, given: Mapping[AxisLike, Window | Axis | int], what: str
) -> list[tuple[Axis, Window, Axis]]:
    """Return each axis of ``x`` that is ``given``, its window, and the axis of positions."""
    check_windows(given, what)
    lengths = []
    for along, each in by_own_axis(x, given, what).items():
        spec = each if isinstance(each, Window) else Window(each)
        positions = spec.axis
        if not isinstance(positions, Axis):
            count = positions if isinstance(positions, int) else None
            positions = Axis(f"{along} window" if count else str(positions), count)
        lengths.append((x.axes[along], spec, positions))
    return lengths


@public
def window(
    x: TensorLike,
    windows: Mapping[AxisLike, Window | Axis | int],
    value: TensorLike = 0,
    **notes: Unpack[OpKeywords],
) -> Tensor:
    """Return the windows of ``x`` along some axes.

    Use it as ``geon.window(x, {H: geon.Window(R, stride=2)})``. Each axis keeps its name and has as
    many elements as there are windows, (H + before + after - dilation * (R - 1) - 1) // stride + 1
    with ``pad=(before, after)``; the axes of positions come last. Elements outside have the scalar
    ``value``. Raises ``AxisError`` if no window fits, or if ``x`` already has an axis of positions.
    """
    x = as_tensor(x)
    placed = placements(x, windows, "window")
    fill = value if is_number(value) else as_tensor(value)
    return make_windows(x, placed, fill, "window")


def make_windows(
    x: Tensor, placed: list[tuple[Axis, Window, Axis]], value: Any, what: str
) -> Tensor:
    """Return the windows of ``x``, padded with a number or a scalar."""
    result, fill = put_into(what, x, value)
    fill = in_dtype(fill, result.dtype)
    for axis, spec, positions in placed:
        if positions in result.axes:
            raise AxisError(
                f"{user_call(what)}: {x} (made at {x.line_info}) has the axis {positions.name!r} "
                f"already, so windows along {axis.name!r} need another one for their positions"
            )
        at = place(axis, spec, positions, what)
        guards = guards_of(at, x, what)
        result = windows(result, at.attributes(at.count), fill, guards)
    return result
