"""Checks of arguments that several parts of neon take."""

from __future__ import annotations

from typing import Any

from ...errors import ArgumentError


def at_least_one(what: str, name: str, value: Any) -> None:
    """Raise ``ArgumentError`` for an argument that is no integer of at least 1."""
    if type(value) is not int or value < 1:
        raise ArgumentError(f"{what}: {name}={value!r}; give an integer of at least 1")
