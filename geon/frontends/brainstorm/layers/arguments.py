"""``Argument``: what an argument of a layer accepts; and those that several layers have."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ..handlers.operations import ACTIVATIONS, activation

REQUIRED: Any = object()


@dataclass(frozen=True)
class Argument:
    """An argument of a layer: a member of its class, and with its value one of the layer.

    ``valid`` returns True for what it accepts, and ``needed`` says that in messages. ``made``
    returns the member from the value.
    """

    needed: str
    valid: Callable[[Any], bool]
    default: Any
    made: Callable[[Any], Any]


def is_length(value: Any) -> bool:
    """Return True for an integer of at least 1."""
    return isinstance(value, int) and not isinstance(value, bool) and value >= 1


def is_number(value: Any, low: float = -float("inf"), high: float = float("inf")) -> bool:
    """Return True for a number from ``low`` to ``high``."""
    return isinstance(value, (int, float)) and low <= value <= high


def _pair(value: Any) -> Any:
    return (value, value) if isinstance(value, int) else value


def _is_pair(value: Any) -> bool:
    value = _pair(value)
    return isinstance(value, (list, tuple)) and len(value) == 2 and all(map(is_length, value))


def argument(
    needed: str,
    valid: Callable[[Any], bool],
    default: Any = REQUIRED,
    made: Callable[[Any], Any] = lambda value: value,
) -> Any:
    """Return an ``Argument``, which is a member of the class as the value is one of the layer."""
    return Argument(needed, valid, default, made)


SIZE = argument("it needs an integer of at least 1", is_length)


def number(default: Any = REQUIRED) -> Any:
    """Return an argument that is any number."""
    return argument("it needs a number", is_number, default)


def activation_of(default: str) -> Any:
    """Return an argument that is the name of an activation function, and becomes the function."""
    names = [*ACTIVATIONS, "linear"]
    needed = f"there are {', '.join(map(repr, names))}"
    return argument(needed, lambda name: name in names, default, activation)


def pair(default: Any = REQUIRED) -> Any:
    """Return an argument that is two integers of at least 1, or one for both."""
    needed = "it needs two integers of at least 1, for height and width"
    return argument(needed, _is_pair, default, lambda value: tuple(_pair(value)))
