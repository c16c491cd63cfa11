"""Carries of loops: their first values, and checks that each step keeps axes and dtype."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from ...errors import ArgumentError, AxisError, DTypeError
from ..axes.axes import Axes
from ..axes.lengths import Length
from ..building.constants import as_tensor
from ..building.tree import flat
from ..building.weak import strengthen
from ..core.source_info import current
from ..op_graph import NO_AXES, Op, Tensor
from ..rows.leaves import length_value, placeholder
from ..rows.movement import broadcast
from ..syntax.operators import is_function
from ..values.dtypes import DType


class Carries:
    """What a loop begins with, which is called ``begins``, and what stands for it in any step."""

    def __init__(self, what: str, begins: str, value: Any) -> None:
        found, self.structure = flat(value, begins)
        self.what, self.begins = what, begins
        self.names = [name for name, _ in found]
        self.first = [strong(as_tensor(each)) for _, each in found]
        self.leaves = [inside(what, each.axes, each.dtype) for each in self.first]

    def given(self) -> Any:
        """What a function of any step is given, of the structure of the beginning."""
        return self.structure.filled(iter(self.leaves))

    def after(self, returned: Any, where: str, who: str) -> list[Tensor]:
        """The carries after a step, which are called ``where``, from what ``who`` returned.

        Raises ``ArgumentError`` where it is of another structure, ``AxisError`` where one is over
        other axes, and ``DTypeError`` where one is of another dtype.
        """
        found, structure = flat(returned, where)
        if structure != self.structure:
            raise ArgumentError(
                f"{self.what}: {self.begins} is {self.structure}, and {who} returned {where} that "
                f"are {structure}; return {where} of the structure of {self.begins}"
            )
        return [
            self.settled(name, first, as_tensor(each, near=first), who)
            for (name, each), first in zip(found, self.first, strict=True)
        ]

    def settled(self, where: str, first: Tensor, new: Tensor, who: str) -> Tensor:
        """One of them over the axes of the first one and in its dtype."""
        new = fitted(new, first)
        both = (
            f"{self.what}: {where} begins as {first} {first.dtype.name} (made at "
            f"{first.line_info}) and {who} returns {new} {new.dtype.name} (made at {new.line_info})"
        )
        return alike(
            new,
            first,
            f"{both}: its axes must stay {first.axes}, not become {new.axes}; geon.broadcast "
            f"{self.begins} over the axes that it gets",
            f"{both}: its dtype must stay; geon.cast {self.begins}, or what {who} returns, to the "
            "other",
        )


def inside(what: str, axes: Axes, dtype: DType) -> Tensor:
    """A placeholder that has a value in the steps of a loop alone; messages say so."""
    leaf = placeholder(axes, dtype)
    leaf.info.inside = what
    return leaf


@contextmanager
def stepping(at: Tensor, steps: int | Length) -> Iterator[None]:
    """Draws that are built meanwhile count by ``at``, the number of one of so many steps."""
    around = current.step
    current.step = at if around is None else around * length_value(steps) + at
    try:
        yield
    finally:
        current.step = around


def strong(tensor: Tensor) -> Tensor:
    """A tensor of a dtype of its own."""
    return strengthen(tensor, tensor.dtype) if tensor.weak else tensor


def fitted(new: Tensor, like: Tensor) -> Tensor:
    """A tensor; a Python number in the dtype of what it should be like, and over its axes."""
    if not new.weak:
        return new
    new = strengthen(new, like.dtype)
    return broadcast(new, like.axes) if new.axes is NO_AXES else new


def alike(new: Tensor, like: Tensor, other_axes: str, other_dtype: str) -> Tensor:
    """A tensor in the order of axes of what it should be like.

    Raises ``AxisError`` and ``DTypeError`` with these messages where it is over other axes, or of
    another dtype.
    """
    if not new.axes.same_set(like.axes):
        raise AxisError(other_axes)
    if new.dtype is not like.dtype:
        raise DTypeError(other_dtype)
    return broadcast(new, like.axes)


def needs_function(what: str, name: str, value: Any, example: str, *given: str) -> None:
    """Raise ``ArgumentError`` where the argument ``name`` cannot be called with what is ``given``.

    ``given`` says what each of its arguments is.
    """
    if is_function(value):
        if not can_be_called(value, len(given)):
            raise ArgumentError(
                f"{what}: {name} is called with {' and '.join(given) or 'no arguments'}, and "
                f"{getattr(value, '__qualname__', value)}{inspect.signature(value)} takes others; "
                f"write {example}"
            )
        return
    found = f"{name}={value!r} is"
    if isinstance(value, Op):
        found = f"{name}, {value} (made at {value.line_info}), is a tensor and"
    raise ArgumentError(f"{what}: {found} no function; give one such as {example}")


def can_be_called(function: Any, count: int) -> bool:
    """Whether a function takes so many arguments by position; True where that is not known."""
    try:
        inspect.signature(function).bind(*[None] * count)
    except TypeError:
        return False
    except ValueError:  # a function of C without a signature
        return True
    return True


def shown(value: Any) -> str:
    """A value that a function of the user returned, for messages."""
    return str(value) if isinstance(value, Op) else f"{value!r} of type {type(value).__name__}"
