"""Resolution of axis arguments: an ``Axis`` or its name to an axis of the tensor.

All functions that take axes of a tensor use it, so all of them accept both. For new axes, where no
tensor can give a name its meaning, ``new_axis`` requires a ``geon.Axis``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

from ...errors import ArgumentError, AxisError
from ..axes.axes import Axes, Axis, as_axes, axes_of
from ..core.source_info import describe, user_call, user_site
from ..op_graph import Op, Tensor

T = TypeVar("T")

# The advice of messages where an axis may be a new one.
NEW = "; geon.Axis(name, length) is a new one"


def own_axis(x: Tensor, axis: Any, what: str) -> Axis:
    """Return the axis of ``x`` with the name of ``axis``, of any length; ``AxisError`` if none."""
    name = axis.name if isinstance(axis, Axis) else axis
    if not isinstance(name, str) or name not in x.axes:
        raise AxisError(_refused(axis, what, x))
    return x.axes[name]


def _names(axis: Any) -> bool:
    return isinstance(axis, (Axis, str))


def named_axes(given: Any, what: str, *tensors: Tensor, cure: str = "") -> Axes:
    """Return ``given`` as ``Axes``: an axis, a name that a tensor has, or a list of these.

    The length of a given ``Axis`` is not compared. Raises ``AxisError``, with a message that ends
    with ``cure``, for a name that none of ``tensors`` has.
    """
    if isinstance(given, Axis):
        return axes_of((given,))
    if isinstance(given, Axes):
        return given
    listed = given if isinstance(given, (list, tuple)) else (given,)
    for item in listed:
        if not isinstance(item, Axis):
            return as_axes([_named(each, what, tensors, cure) for each in listed])
    return axes_of(tuple(listed))


def _named(item: Any, what: str, tensors: tuple[Tensor, ...], cure: str) -> Any:
    if isinstance(item, (Axis, Axes)):
        return item
    if isinstance(item, (list, tuple)):
        return named_axes(item, what, *tensors, cure=cure)
    if isinstance(item, str):
        for x in tensors:
            if item in x.axes:
                return x.axes[item]
    raise AxisError(_refused(item, what, *tensors) + cure)


def _refused(axis: Any, what: str, *tensors: Tensor) -> str:
    """Return a message that says why ``axis`` is no axis of the tensors."""
    shown = " and ".join([f"{x} (made at {x.line_info})" for x in tensors])
    known = ", ".join(dict.fromkeys(name for x in tensors for name in x.axes.names)) or "none"
    has = "it has" if len(tensors) == 1 else "they have"
    here = user_call(what)
    if not _names(axis):
        return (
            f"{here}: {axis!r} is no axis of {shown}: axes go by name, not by position; give a "
            f"geon.Axis or a name: {has} {known}"
        )
    name = axis.name if isinstance(axis, Axis) else axis
    return f"{here}: axis {name!r} is no axis of {shown}; {has} {known}"


def by_own_axis(x: Tensor, given: Mapping[Any, T], what: str) -> dict[str, T]:
    """Return ``given``, a dict keyed by axes of ``x`` or their names, with the names as keys.

    Raises ``ArgumentError`` if it is no dict, and ``AxisError`` for an unknown or repeated axis.
    """
    if isinstance(given, Op):  # registering with xarray's DataTree makes tensors pass as mappings
        raise ArgumentError(
            f"{user_call(what)}: {given} (made at {given.line_info}) stands where a dict from axes "
            "to what is meant along each does"
        )
    if not isinstance(given, Mapping):
        example = x.axes.names[-1] if len(x.axes) else "N"
        raise ArgumentError(
            f"{user_call(what)}: {given!r} stands where a dict from axes of {x} "
            f'(made at {x.line_info}) to what is meant along each does, such as {{"{example}": 2}}'
        )
    resolved: dict[str, T] = {}
    for axis, value in given.items():
        name = axis.name if isinstance(axis, Axis) else axis
        own_axis(x, axis, what)
        if name in resolved:
            raise AxisError(
                f"{user_call(what)}: the axis {name!r} of {x} (made at {x.line_info}) is given "
                f"twice, as {resolved[name]!r} and as {value!r}; give it once"
            )
        resolved[name] = value
    return resolved


def refuse_present(x: Tensor, axis: Axis, what: str, cure: str) -> None:
    """Raise ``AxisError`` if ``x`` has an axis that the result gets; ``cure`` ends the message."""
    if axis in x.axes:
        raise AxisError(
            f"{user_call(what)}: {x} (made at {x.line_info}) has the axis {axis.name!r} already; "
            f"{cure}"
        )


def axis_of(x: Tensor, axis: Any, what: str) -> Axis:
    """Return the axis of ``x`` meant by ``axis``; None means the only axis of ``x``."""
    if axis is None:
        if len(x.axes) != 1:
            example = x.axes.names[-1] if len(x.axes) else "N"
            raise AxisError(
                f"{what}: name the axis of {x} (made at {x.line_info}) it runs along, at "
                f'{describe(user_site())}; write geon.{what}(x, axis="{example}")'
            )
        return x.axes[0]
    return own_axis(x, axis, what)


def has_axes(x: Op, names: tuple[str, ...], what: str) -> None:
    """Raise ``AxisError`` unless ``x`` has an axis of each of these names."""
    own = x.axes.names
    for name in names:
        if name not in own:
            raise AxisError(
                f"{what} over {name!r}, which is no axis of {x} (made at {x.line_info}); it has "
                f"{', '.join(x.axes.names) or 'none'}"
            )
