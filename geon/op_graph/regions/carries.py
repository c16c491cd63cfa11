"""Carries of loops: what one begins with, and that it keeps its axes and its dtype."""

from __future__ import annotations

from typing import Any

from ...errors import AxisError, DTypeError
from ..constants import as_tensor
from ..movement import broadcast
from ..op_graph import NO_AXES, Op, Tensor
from ..weak import strengthen


def first_carry(value: Any) -> Tensor:
    """A first carry in a dtype of its own."""
    tensor = as_tensor(value)
    return strong(tensor)


def strong(tensor: Tensor) -> Tensor:
    """A tensor of a dtype of its own."""
    return strengthen(tensor, tensor.dtype) if tensor.weak else tensor


def settled(what: str, where: str, carry: Tensor, new: Tensor, who: str = "step") -> Tensor:
    """A new carry, which ``who`` returns, over the axes of the first one and in its dtype.

    Raises ``AxisError`` and ``DTypeError`` where it is over other axes, or of another dtype.
    """
    if new.weak:
        new = strengthen(new, carry.dtype)
        if new.axes is NO_AXES:
            new = broadcast(new, carry.axes)
    both = (
        f"{what}: {where} begins as {carry} {carry.dtype.name} (made at {carry.file_info}) and "
        f"{who} returns {new} {new.dtype.name} (made at {new.file_info})"
    )
    if not new.axes.same_set(carry.axes):
        cure = "geon.broadcast init over the axes that it gets"
        raise AxisError(f"{both}: its axes must stay {carry.axes}, not become {new.axes}; {cure}")
    if new.dtype is not carry.dtype:
        raise DTypeError(
            f"{both}: its dtype must stay; geon.cast init, or what {who} returns, to the other"
        )
    return broadcast(new, carry.axes)


def shown(value: Any) -> str:
    """A value that a function of the user returned, for messages."""
    return str(value) if isinstance(value, Op) else f"{value!r} of type {type(value).__name__}"
