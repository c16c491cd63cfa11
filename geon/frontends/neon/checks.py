"""Argument checks shared by parts of neon."""

from __future__ import annotations

import math
import os
from numbers import Integral, Real
from pathlib import Path
from typing import Any

from ...errors import ArgumentError
from ...op_graph.core.source_info import user_call
from ...op_graph.random.streams import BitStream
from ...op_graph.syntax.operators import is_function

# Python's own types are tested before abstract ones, which take some microseconds.


def at_least_one(what: str, name: str, value: Any) -> None:
    """Raise ``ArgumentError`` unless the argument is an integer of at least 1."""
    if not is_integer(value) or value < 1:
        raise ArgumentError(f"{user_call(what)}: {name}={value!r}; give an integer of at least 1")


def at_least_zero(what: str, name: str, value: Any) -> None:
    """Raise ``ArgumentError`` unless the argument is an integer of at least 0."""
    if not is_integer(value) or value < 0:
        raise ArgumentError(f"{user_call(what)}: {name}={value!r}; give an integer of at least 0")


def not_negative(what: str, name: str, value: Any) -> None:
    """Raise ``ArgumentError`` unless the argument is a finite number of at least 0."""
    if not finite(value) or value < 0:
        raise ArgumentError(
            f"{user_call(what)}: {name}={value!r}; give a finite number of at least 0"
        )


def above_zero(what: str, name: str, value: Any) -> None:
    """Raise ``ArgumentError`` unless the argument is a finite number above 0."""
    if not finite(value) or value <= 0:
        raise ArgumentError(f"{user_call(what)}: {name}={value!r}; give a finite number above 0")


def a_finite_number(what: str, name: str, value: Any) -> None:
    """Raise ``ArgumentError`` unless the argument is a finite number."""
    if not finite(value):
        raise ArgumentError(f"{user_call(what)}: {name}={value!r}; give a finite number")


def share(what: str, name: str, value: Any) -> None:
    """Raise ``ArgumentError`` unless the argument is a number of at least 0 and less than 1."""
    if not finite(value) or not 0 <= value < 1:
        raise ArgumentError(
            f"{user_call(what)}: {name}={value!r}; give a number of at least 0 and less than 1"
        )


def a_function(what: str, name: str, value: Any) -> None:
    """Raise ``ArgumentError`` unless the argument is a function of a tensor, and no class."""
    if not is_function(value) or isinstance(value, type):
        raise ArgumentError(
            f"{user_call(what)}: {name}={value!r} is no function of a tensor; give one such as "
            "geon.relu"
        )


def a_number(what: str, name: str, value: Any) -> None:
    """Raise ``ArgumentError`` unless the argument is a number; NaN is one."""
    if not isinstance(value, Real):
        raise ArgumentError(f"{user_call(what)}: {name}={value!r}; give a number")


def path(what: str, name: str, value: Any) -> Path:
    """Return the argument as a path; raise ``ArgumentError`` if it is none."""
    if not isinstance(value, (str, os.PathLike)):
        raise ArgumentError(
            f"{user_call(what)}: {name}={value!r}; give a path, as a text or a pathlib.Path"
        )
    return Path(value)


def made_folder(what: str, folder: Path) -> None:
    """Create a folder and its parents; raise ``ArgumentError`` if that fails."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ArgumentError(
            f"{user_call(what)}: the folder {folder} cannot be made ({error.strerror}); give "
            "another path"
        ) from None


def stream(what: str, value: Any) -> None:
    """Raise ``ArgumentError`` unless the argument is a stream of random numbers."""
    if not isinstance(value, BitStream):
        raise ArgumentError(
            f"{user_call(what)}: random={value!r} is no stream of random numbers; give one, "
            'such as geon.Random(0, name="random")'
        )


def is_integer(value: Any) -> bool:
    """Return True for an integer of Python or NumPy."""
    return isinstance(value, (int, Integral)) and not isinstance(value, bool)


def finite(value: Any) -> bool:
    """Return True for a finite number of Python or NumPy."""
    number = isinstance(value, (int, float, Real)) and not isinstance(value, bool)
    return number and math.isfinite(value)
