"""Checks of arguments that several parts of neon take."""

from __future__ import annotations

import math
import os
from numbers import Integral, Real
from pathlib import Path
from typing import Any

from ...errors import ArgumentError
from ...op_graph.random.streams import Random
from ...op_graph.syntax.operators import is_function

# Types of Python's own come before abstract ones, which take some microseconds to tell.


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


def a_finite_number(what: str, name: str, value: Any) -> None:
    """Raise ``ArgumentError`` for an argument that is no finite number."""
    if not finite(value):
        raise ArgumentError(f"{what}: {name}={value!r}; give a finite number")


def share(what: str, name: str, value: Any) -> None:
    """Raise ``ArgumentError`` for an argument that is no number of at least 0 and less than 1."""
    if not finite(value) or not 0 <= value < 1:
        raise ArgumentError(
            f"{what}: {name}={value!r}; give a number of at least 0 and less than 1"
        )


def a_function(what: str, name: str, value: Any) -> None:
    """Raise ``ArgumentError`` for an argument that is no function of a tensor, or a class."""
    if not is_function(value) or isinstance(value, type):
        raise ArgumentError(
            f"{what}: {name}={value!r} is no function of a tensor; give one such as geon.relu"
        )


def a_number(what: str, name: str, value: Any) -> None:
    """Raise ``ArgumentError`` for an argument that is no number; NaN is one."""
    if not isinstance(value, Real):
        raise ArgumentError(f"{what}: {name}={value!r}; give a number")


def path(what: str, name: str, value: Any) -> Path:
    """A path; raise ``ArgumentError`` for an argument that is none."""
    if not isinstance(value, (str, os.PathLike)):
        raise ArgumentError(f"{what}: {name}={value!r}; give a path, as a text or a pathlib.Path")
    return Path(value)


def made_folder(what: str, folder: Path) -> None:
    """Make a folder and those it is in; ``ArgumentError`` where it cannot be made."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ArgumentError(
            f"{what}: the folder {folder} cannot be made ({error.strerror}); give another path"
        ) from None


def stream(what: str, value: Any) -> None:
    """Raise ``ArgumentError`` for an argument that is no stream of random numbers."""
    if not isinstance(value, Random):
        raise ArgumentError(
            f"{what}: random={value!r} is no stream of random numbers; give one, such as "
            'geon.Random(0, name="random")'
        )


def whole(value: Any) -> bool:
    """Whether a value is an integer of Python or NumPy."""
    return isinstance(value, (int, Integral)) and not isinstance(value, bool)


def finite(value: Any) -> bool:
    """Whether a value is a finite number of Python or NumPy."""
    number = isinstance(value, (int, float, Real)) and not isinstance(value, bool)
    return number and math.isfinite(value)
