"""Structures of tensors: lists, tuples, dictionaries, dataclasses, and these in each other."""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Callable
from typing import Any

from ..errors import ArgumentError
from .op_graph import Op


def mapped(value: Any, change: Callable[[Op], Any], what: str) -> Any:
    """The same structure with ``change`` of each op in it; what is no op stays as it is.

    Raises ``ArgumentError``, which calls it ``what``, for a structure that contains itself.
    """
    return _mapped(value, change, what, ())


def _mapped(value: Any, change: Callable[[Op], Any], what: str, inside: tuple[int, ...]) -> Any:
    if isinstance(value, Op):
        return change(value)
    if id(value) in inside:
        raise ArgumentError(f"{what} contain a structure that contains itself; give one that ends")
    inside = (*inside, id(value))
    if isinstance(value, dict):
        items = {key: _mapped(part, change, what, inside) for key, part in value.items()}
        return items if type(value) is dict else _filled(value, items)
    if isinstance(value, (list, tuple)):
        found = [_mapped(part, change, what, inside) for part in value]
        make = getattr(value, "_make", None)  # of a named tuple
        return type(value)(found) if make is None else make(found)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        thing = copy.copy(value)
        for field in dataclasses.fields(value):
            part = _mapped(getattr(value, field.name), change, what, inside)
            object.__setattr__(thing, field.name, part)  # a frozen one is filled too
        return thing
    return value


def _filled(like: dict[Any, Any], items: dict[Any, Any]) -> dict[Any, Any]:
    made = copy.copy(like)
    made.update(items)
    return made
