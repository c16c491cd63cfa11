"""Parameters of draws and distributions: conversion to tensors, and checks of constant values."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, NoReturn

import numpy as np

from ...errors import ArgumentError, DTypeError
from ..axes.axes import Axes
from ..building.constants import as_tensor, constant_value
from ..core.source_info import user_call
from ..op_graph import Tensor
from ..rows.elementwise import cast
from ..rows.movement import broadcast
from ..values.dtypes import DType, as_dtype, is_number, kind

Array = np.ndarray[Any, Any]


class Requirement(NamedTuple):
    """A condition on a parameter, which NaN does not meet, and the words for what meets it."""

    holds: Callable[[Array], Array]
    words: str


POSITIVE = Requirement(lambda x: x > 0, "a number above 0")
AT_LEAST_ZERO = Requirement(lambda x: x >= 0, "a number of at least 0")
DEVIATION = Requirement(lambda x: x >= 0, "a standard deviation of at least 0")
PROBABILITY = Requirement(lambda x: (x >= 0) & (x <= 1), "a probability from 0 to 1")
CHANCE = Requirement(lambda x: (x > 0) & (x <= 1), "a probability above 0 and at most 1")
WHOLE = Requirement(lambda x: (x >= 0) & (x == np.floor(x)), "a whole number of at least 0")
ANY = Requirement(lambda x: ~np.isnan(x), "a number")


def parameter(
    what: str,
    name: str,
    value: Any,
    axes: Axes,
    dtype: DType | None,
    requirement: Requirement | None = None,
) -> Any:
    """Return a number unchanged, and a tensor broadcast to ``axes`` and cast to ``dtype``.

    Raises ``ArgumentError`` if a number or a constant does not meet ``requirement``; ``what`` is
    the name of the function for the message, and ``name`` that of its argument.
    """
    result = value
    if not is_number(value):
        result = broadcast(as_tensor(value), axes)
        result = result if dtype is None else cast(result, dtype)
    if requirement is not None:
        check(what, name, value, requirement)
    return result


def check(what: str, name: str, value: Any, requirement: Requirement) -> None:
    """Raise ``ArgumentError`` if a number or a constant does not meet ``requirement``."""
    known = known_values(value)
    if known is None:
        return
    if known.dtype.kind == "c" or not np.all(requirement.holds(known)):
        refuse(what, f"{name} = {value}", requirement.words)


def refuse(what: str, given: str, cure: str) -> NoReturn:
    """Raise ``ArgumentError`` about an argument of ``what``."""
    raise ArgumentError(f"{user_call(what)}: {given}; give {cure}")


def known_values(value: Any) -> Array | None:
    """Return the values of a parameter that is a number or a constant; None for others."""
    while isinstance(value, Tensor) and value.primitive.name in ("broadcast", "cast"):
        value = value.args[0]
    if not isinstance(value, Tensor):
        return np.asarray(value)
    return constant_value(value) if value.primitive.name == "constant" else None


def float_dtype(dtype: Any, what: str) -> DType:
    """Return ``dtype`` of a draw of floats; raise ``DTypeError`` for another kind."""
    result = as_dtype(dtype)
    if kind(result) != "f":
        raise DTypeError(f"{what} draws floats, not {result.name}; geon.cast them")
    return result
