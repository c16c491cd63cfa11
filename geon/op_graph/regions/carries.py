"""Carries of loops: their initial values, and checks that each step keeps axes and dtypes."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from ...errors import ArgumentError, AxisError, DTypeError
from ..axes.axes import Axes
from ..axes.lengths import Length
from ..building.constants import as_tensor
from ..building.weak import strengthen
from ..core.source_info import current
from ..op_graph import NO_AXES, Op, Tensor
from ..rows.leaves import length_value, placeholder
from ..rows.movement import broadcast
from ..syntax.operators import is_function
from ..values.dtypes import DType, kind
from ..values.tree import flat


class Carries:
    """The initial carries of a loop, and the placeholders for them inside of a step.

    ``what`` is the description of the loop in messages, and ``begins`` the name of the argument
    with the initial values. ``names``, ``first`` and ``leaves`` are their names, tensors and
    placeholders.
    """

    def __init__(self, what: str, begins: str, value: Any) -> None:
        values, self.structure = flat(value, begins)
        self.what, self.begins = what, begins
        self.names = [name for name, _ in values]
        self.first = [strong(as_tensor(each)) for _, each in values]
        self.leaves = [loop_placeholder(what, each.axes, each.dtype) for each in self.first]

    def given(self) -> Any:
        """Return the argument of the step function: the placeholders in the structure."""
        return self.structure.filled(iter(self.leaves))

    def after(self, returned: Any, where: str, who: str) -> list[Tensor]:
        """Return the carries after a step, from what ``who`` returned.

        ``where`` is their name in messages. Raises ``ArgumentError`` for another structure,
        ``AxisError`` if one is over other axes, and ``DTypeError`` if one has another dtype.
        """
        values, structure = flat(returned, where)
        if structure != self.structure:
            raise ArgumentError(
                f"{self.what}: {self.begins} is {self.structure}, and {who} returned {where} that "
                f"are {structure}; return {where} of the structure of {self.begins}"
            )
        return [
            self.settled(name, first, as_tensor(each, near=first), who)
            for (name, each), first in zip(values, self.first, strict=True)
        ]

    def settled(self, where: str, first: Tensor, new: Tensor, who: str) -> Tensor:
        """Return one carry with the axis order of its initial value; check axes and dtype."""
        new = fit_to(new, first)
        both = (
            f"{self.what}: {where} begins as {first} {first.dtype.name} (made at "
            f"{first.line_info}) and {who} returns {new} {new.dtype.name} (made at {new.line_info})"
        )
        return match_axes_and_dtype(
            new,
            first,
            f"{both}: its axes must stay {first.axes}, not become {new.axes}; geon.broadcast "
            f"{self.begins} over the axes that it gets",
            f"{both}: its dtype must stay; geon.cast {self.begins}, or what {who} returns, to the "
            "other",
        )


def loop_placeholder(what: str, axes: Axes, dtype: DType) -> Tensor:
    """Return a placeholder that has a value only inside of a loop step; messages name the loop."""
    leaf = placeholder(axes, dtype)
    leaf.info.inside = what
    return leaf


@contextmanager
def stepping(at: Tensor, steps: int | Length) -> Iterator[None]:
    """Number the random draws built in this context by the step number ``at`` of a loop.

    ``steps`` is the number of steps; nested loops number their draws by all step numbers.
    """
    around = current.step
    current.step = at if around is None else around * length_value(steps) + at
    try:
        yield
    finally:
        current.step = around


def strong(tensor: Tensor) -> Tensor:
    """Return the tensor with a fixed dtype instead of a weak one."""
    return strengthen(tensor, tensor.dtype) if tensor.weak else tensor


def as_scalar(what: str, shown: str, value: Any, kinds: str, cure: str) -> Tensor:
    """Return ``value`` as a scalar tensor of one of the dtype ``kinds``.

    Raises ``DTypeError`` for another: ``shown`` names the value, and ``cure`` is the advice.
    """
    tensor = as_tensor(value)
    if tensor.axes is not NO_AXES or kind(tensor.dtype) not in kinds:
        wanted = {"b": "bool", "i": "integer", "fi": "float"}[kinds]
        raise DTypeError(
            f"{what}: {shown}{tensor} {tensor.dtype.name} (made at {tensor.line_info}) is no "
            f"{wanted} scalar{cure}"
        )
    return tensor


def fit_to(new: Tensor, like: Tensor) -> Tensor:
    """Return ``new``; if it is weak (a Python number), cast and broadcast it to match ``like``."""
    if not new.weak:
        return new
    new = strengthen(new, like.dtype)
    return broadcast(new, like.axes) if new.axes is NO_AXES else new


def match_axes_and_dtype(new: Tensor, like: Tensor, other_axes: str, other_dtype: str) -> Tensor:
    """Return ``new`` with the axis order of ``like``.

    Raises ``AxisError`` with the message ``other_axes`` if the axes differ, and ``DTypeError`` with
    ``other_dtype`` if the dtype differs.
    """
    if not new.axes.same_set(like.axes):
        raise AxisError(other_axes)
    if new.dtype is not like.dtype:
        raise DTypeError(other_dtype)
    return broadcast(new, like.axes)


def needs_function(what: str, name: str, value: Any, example: str, *given: str) -> None:
    """Raise ``ArgumentError`` if the argument ``name`` is no function of ``len(given)`` arguments.

    ``given`` are descriptions of the arguments and ``example`` is an expression to suggest.
    """
    if is_function(value):
        if not can_be_called(value, len(given)):
            raise ArgumentError(
                f"{what}: {name} is called with {' and '.join(given) or 'no arguments'}, and "
                f"{getattr(value, '__qualname__', value)}{inspect.signature(value)} takes others; "
                f"write {example}"
            )
        return
    shown = f"{name}={value!r} is"
    if isinstance(value, Op):
        shown = f"{name}, {value} (made at {value.line_info}), is a tensor and"
    raise ArgumentError(f"{what}: {shown} no function; give one such as {example}")


def can_be_called(function: Any, count: int) -> bool:
    """Return True if ``function`` takes ``count`` positional arguments, or if that is unknown."""
    try:
        inspect.signature(function).bind(*[None] * count)
    except TypeError:
        return False
    except ValueError:  # a C function without a signature
        return True
    return True


def describe_returned(value: Any) -> str:
    """Return text for messages about a value that a user's function returned."""
    return str(value) if isinstance(value, Op) else f"{value!r} of type {type(value).__name__}"
