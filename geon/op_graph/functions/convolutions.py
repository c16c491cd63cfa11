"""Convolution over any axes and its transpose, as contractions of windows and filters.

The names of axes give their roles. Positions inside a window are an axis of the filters. Other axes
that both operands have are summed, unless ``over`` leaves them out (groups, depthwise channels).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Unpack

from ...errors import AxisError
from ..axes.axes import Axis
from ..axes.lengths import Length
from ..building.constants import as_tensor
from ..building.elementwise_build import meet
from ..building.resolve_axes import by_own_axis, named_axes
from ..building.weak import in_dtype, put_into
from ..core.argument_hints import public
from ..core.source_info import user_call
from ..op_graph import Guard, Tensor, make
from ..rows.contraction import dot
from ..rows.windows import UNWINDOW, Window, WindowAttributes, make_windows, place, placements

if TYPE_CHECKING:
    from ..building.typing import AxesLike, AxisLike, OpKeywords, TensorLike


@public
def convolution(
    x: TensorLike,
    w: TensorLike,
    windows: Mapping[AxisLike, Window | Axis | str],
    over: AxesLike | None = None,
    **notes: Unpack[OpKeywords],
) -> Tensor:
    """Convolve ``x`` with filters ``w``: ``convolution(x, w, {H: Window(R), W: Window(S)})``.

    It sums over the axes of positions, which ``w`` has, and over the axes ``over``; by default
    these are all other axes that both have. Shared axes that are not summed are matched: ``over=C``
    keeps groups separate, ``over=[]`` also channels. The result has the remaining axes of ``x``,
    then those that only ``w`` has. Filters are not flipped. Raises ``AxisError`` if ``w`` lacks an
    axis of positions, or no window fits.
    """
    x, w = as_tensor(x, near=w), as_tensor(w, near=x)
    placed = _filters(x, w, windows, "convolution")
    result = make_windows(x, placed, 0, "convolution")
    return dot(result, w, _summed(x, w, placed, over, "convolution"))


@public
def transposed_convolution(
    x: TensorLike,
    w: TensorLike,
    windows: Mapping[AxisLike, Window | Axis | str],
    over: AxesLike | None = None,
    *,
    lengths: Mapping[AxisLike, int | Length] | None = None,
    **notes: Unpack[OpKeywords],
) -> Tensor:
    """Return the transpose of a convolution with these windows: elements are spread by filters.

    ``x`` has the axes of that convolution's result, so ``over`` are the axes that the convolution
    adds (all that both have, if not given). The number of elements of the result along H is (H - 1)
    * stride + dilation * (R - 1) + 1 - before - after, or given by ``lengths``. With a stride,
    several lengths give the same number of windows; any other length raises ``AxisError``.
    """
    x, w = as_tensor(x, near=w), as_tensor(w, near=x)
    what = "transposed_convolution"
    given = {} if lengths is None else by_own_axis(x, lengths, what)
    placed = _filters(x, w, windows, what)
    result = x
    for axis, spec, positions in placed:
        attrs, guards = _unwindow_attributes(x, axis, spec, positions, given.get(axis.name), what)
        result, zero = put_into(what, result, 0)
        result = make(UNWINDOW, (result, in_dtype(zero, result.dtype)), attrs, guards=guards)
    return dot(result, w, _summed(x, w, placed, over, what))


def _unwindow_attributes(
    x: Tensor,
    axis: Axis,
    spec: Window,
    positions: Axis,
    length: int | Length | None,
    what: str,
) -> tuple[WindowAttributes, tuple[Guard, ...]]:
    """Return the attributes of the ``unwindow`` op that spreads ``x`` along an axis, and guards."""
    if length is None:
        reach = (positions.expression - 1) * spec.dilation + 1
        if isinstance(spec.pad, str):
            length = axis.expression * spec.stride
        else:
            length = (axis.expression - 1) * spec.stride + reach - spec.pad[0] - spec.pad[1]
    meaning = (
        f"{user_call(what)}: along {axis} of {x} (made at {x.line_info}) there would be {length} "
        f"elements from windows of {positions}; give less padding, or more of them"
    )
    if isinstance(length, int) and length < 1:
        raise AxisError(meaning)
    guards = [Guard("<=", 1, length, meaning)] if isinstance(length, Length) else []
    at = place(axis.with_length(length), spec, positions, what)
    guards += meet(what, axis.name, (axis.expression, x), (at.count, x))
    return at.attributes(length), tuple(guards)


def _filters(
    x: Tensor, w: Tensor, windows: Mapping[Any, Any], what: str
) -> list[tuple[Axis, Window, Axis]]:
    """Return axes, windows, and the filters' axes of positions; ``AxisError`` if they lack one."""
    result = []
    for axis, spec, positions in placements(x, windows, what):
        if isinstance(spec.axis, int) or positions not in w.axes:
            requested = repr(spec.axis) if isinstance(spec.axis, int) else repr(positions.name)
            raise AxisError(
                f"{user_call(what)}: {requested}, the positions of windows along {axis.name!r}, is "
                f"no axis of the filters {w} (made at {w.line_info}); they have "
                f"{', '.join(w.axes.names) or 'none'}"
            )
        own = w.axes[positions.name]
        if isinstance(spec.axis, Axis):
            meet(what, own.name, (own.expression, w), (positions.expression, w))
        result.append((axis, spec, own))
    return result


def _summed(
    x: Tensor,
    w: Tensor,
    placed: list[tuple[Axis, Window, Axis]],
    over: AxesLike | None,
    what: str,
) -> list[Axis]:
    """Return the axes over which a convolution sums."""
    positions = [each for _, _, each in placed]
    if over is not None:
        return [*named_axes(over, what, x, w), *positions]
    walked = [axis.name for axis, _, _ in placed]
    return [axis for axis in x.axes if axis in w.axes and axis.name not in walked] + positions
