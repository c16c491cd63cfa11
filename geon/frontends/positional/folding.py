"""Arithmetic on host values, with elements that may be length expressions."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from ...op_graph.axes.lengths import Length
from .values import HostArray, Value, host

MAX_FOLDED_ELEMENTS = 4096  # elements of a result that is computed when the model is imported


class _UndecidedError(Exception):
    """The result for length expressions depends on the lengths of a call."""


def is_at_least(length: Any, bound: int) -> bool:
    """Return True if a length is at least ``bound`` for all values of its open names."""
    if not isinstance(length, Length):
        return bool(length >= bound)
    # Open lengths and quotients of nonnegative ones are at least 0.
    simple = all(isinstance(atom, str) for monomial, _ in length.terms for atom, _ in monomial)
    if not (simple or all(_is_whole(atom) for m, _ in length.terms for atom, _ in m)):
        return False
    least = 0
    for monomial, coefficient in length.terms:
        if not monomial:
            least = coefficient
        elif coefficient < 0:
            return False
    return least >= bound


def _is_whole(atom: Any) -> bool:
    return isinstance(atom, str) or (
        is_at_least(atom.numerator, 0) and is_at_least(atom.denominator, 0)
    )


def _sign(x: Any, y: Any) -> int:
    """Return the sign of ``x - y``, if it is the same for all lengths."""
    difference = x - y
    for sign, bound in ((1, difference - 1), (-1, -difference - 1)):
        if is_at_least(bound, 0):
            return sign
    if not isinstance(difference, Length):
        return 0
    raise _UndecidedError


def _at_least_equal(x: Any, y: Any) -> bool:
    if is_at_least(x - y, 0):
        return True
    if is_at_least(y - x - 1, 0):
        return False
    raise _UndecidedError


def _truncated(x: Any, y: Any) -> Any:
    if not (is_at_least(x, 0) and is_at_least(y, 0)):
        raise _UndecidedError
    return x // y


def _remainder(x: Any, y: Any) -> Any:
    if not (is_at_least(x, 0) and is_at_least(y, 0)):
        raise _UndecidedError
    return x - x // y * y


def _chosen(condition: Any, x: Any, y: Any) -> Any:
    return x if condition else y


def _divided(x: Any, y: Any) -> Any:
    if x.dtype.kind not in "iu":
        return np.divide(x, y)
    quotient = np.abs(x) // np.where(y == 0, 1, np.abs(y))
    return np.where(y == 0, 0, quotient * np.sign(x) * np.sign(y)).astype(x.dtype)


# The function of NumPy on known arrays, and the function of integers and lengths on elements.
FOLDS: dict[str, tuple[Callable[..., Any], Callable[..., Any] | None]] = {
    "absolute": (np.absolute, None),
    "add": (np.add, operator.add),
    "ceil": (np.ceil, None),
    "divide": (np.divide, None),
    "equal": (np.equal, lambda x, y: _sign(x, y) == 0),
    "floor": (np.floor, None),
    "floordivide": (np.floor_divide, _truncated),
    "greater": (np.greater, lambda x, y: not _at_least_equal(y, x)),
    "greater_equal": (np.greater_equal, _at_least_equal),
    "less": (np.less, lambda x, y: not _at_least_equal(x, y)),
    "less_equal": (np.less_equal, lambda x, y: _at_least_equal(y, x)),
    "logical_and": (np.logical_and, None),
    "logical_not": (np.logical_not, None),
    "logical_or": (np.logical_or, None),
    "maximum": (np.maximum, lambda x, y: x if _at_least_equal(x, y) else y),
    "minimum": (np.minimum, lambda x, y: y if _at_least_equal(x, y) else x),
    "mod": (np.mod, _remainder),
    "multiply": (np.multiply, operator.mul),
    "negative": (np.negative, operator.neg),
    "remainder": (np.fmod, _remainder),
    "sqrt": (np.sqrt, None),
    "subtract": (np.subtract, operator.sub),
    "truncated_divide": (_divided, _truncated),
    "where": (np.where, _chosen),
}


def fold(name: str, values: tuple[Value, ...]) -> HostArray | None:
    """Return the result of an elementwise function on host values; None if it needs tensors."""
    if name not in FOLDS or not all(isinstance(value, HostArray) for value in values):
        return None
    arrays = [value.array for value in values if isinstance(value, HostArray)]
    if any(value.dtype == object for value in values):
        return None
    if np.broadcast(*arrays).size > MAX_FOLDED_ELEMENTS:
        return None
    whole, element = FOLDS[name]
    is_bool = name in ("equal", "greater", "greater_equal", "less", "less_equal")
    with np.errstate(all="ignore"):
        if not any(value.is_symbolic for value in values if isinstance(value, HostArray)):
            found = np.asarray(whole(*arrays))
            return HostArray(found, found.dtype)
        if element is None:
            return None
        try:
            mapped = np.frompyfunc(element, len(arrays), 1)(*[a.astype(object) for a in arrays])
        except _UndecidedError:
            return None
    dtype = np.dtype(bool) if is_bool else values[-1].dtype
    result = np.empty(np.shape(mapped), object)
    result[...] = mapped
    return host(result, dtype)


def cast(value: HostArray, dtype: Any) -> HostArray | None:
    """Return a host value in another dtype; None if its elements are lengths and it is a float."""
    if value.is_symbolic:
        kept = np.dtype(dtype).kind in "iu"
        return HostArray(value.array, np.dtype(dtype)) if kept else None
    if value.dtype == object or value.array.size > MAX_FOLDED_ELEMENTS:
        return None
    return None if value.array.dtype.kind not in "biuf" else _cast_known(value, dtype)


def _cast_known(value: HostArray, dtype: Any) -> HostArray | None:
    """Cast as ``geon.cast`` does where NumPy's cast has the same meaning."""
    target = np.dtype(dtype)
    if value.array.dtype.kind == "f" and target.kind in "iu":
        bounds = np.iinfo(target)
        finite = np.nan_to_num(value.array.astype(np.float64), nan=0.0)
        if finite.size and not (finite.min() > bounds.min and finite.max() < bounds.max):
            return None
    with np.errstate(all="ignore"):
        return HostArray(value.array.astype(target), target)
