"""Checks of arguments that several parts of neon take."""

from __future__ import annotations

import math
from numbers import Integral, Real
from typing import Any

from ...errors import ArgumentError


def at_least_one(what: str, name: str, value: Any) -> None:
    """Raise ``ArgumentError`` for an argument that is no integer of at least 1."""
    if not whole(value) or value < 1:
        raise ArgumentError(f"{what}: {name}={value!r}; give an integer of at least 1")


def at_least_zero(what: str, name: str, value: Any) -> None:
    """Raise ``ArgumentError`` for an argument that is no integer of at least 0."""
    if not whole(value) or value < 0:
        raise ArgumentError(f"{what}: {name}={value!r}; give an integer of at least 0")


def not_negative(what: str, name: str, value: Any) -> None:
    """Raise ``ArgumentError`` for an argument that is no finite number of at least 0."""
    if not finite(value) or value < 0:
        raise ArgumentError(f"{what}: {name}={value!r}; give a finite number of at least 0")


def above_zero(what: str, name: str, value: Any) -> None:
    """Raise ``ArgumentError`` for an argument that is no finite number above 0."""
    if not finite(value) or value <= 0:
        raise ArgumentError(f"{what}: {name}={value!r}; give a finite number above 0")


def share(what: str, name: str, value: Any) -> None:
    """Raise ``ArgumentError`` for an argument that is no number of at least 0 and less than 1."""
    if not finite(value) or not 0 <= value < 1:
        raise ArgumentError(
            f"{what}: {name}={value!r}; give a number of at least 0 and less than 1"
        )


def whole(value: Any) -> bool:
    """Whether a value is an integer of Python or NumPy."""
    return isinstance(value, Integral) and not isinstance(value, bool)


def finite(value: Any) -> bool:
    """Whether a value is a finite number of Python or NumPy."""
    return isinstance(value, Real) and not isinstance(value, bool) and math.isfinite(value)
