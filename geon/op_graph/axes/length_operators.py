"""Operators of lengths with numbers, tensors or arrays, which return weak integer tensors."""

from __future__ import annotations

import operator
from collections.abc import Callable
from numbers import Integral
from typing import Any

import numpy as np

# The function that converts a length to a tensor; a module that imports this one registers it.
LENGTH_VALUE: dict[str, Callable[[Any], Any]] = {}

_EXACT: dict[np.ufunc, Callable[..., Any]] = {
    np.add: operator.add,
    np.subtract: operator.sub,
    np.multiply: operator.mul,
    np.floor_divide: operator.floordiv,
    np.remainder: operator.mod,
    np.negative: operator.neg,
    np.positive: operator.pos,
}
_COMPARED: dict[np.ufunc, Callable[..., Any]] = {
    np.equal: operator.eq,
    np.not_equal: operator.ne,
    np.less: operator.lt,
    np.less_equal: operator.le,
    np.greater: operator.gt,
    np.greater_equal: operator.ge,
}


class LengthOperators:
    """Mixin for lengths: operators that return tensors, and NumPy's ufuncs."""

    __slots__ = ()

    def _tensor(self) -> Any:
        """Return the length as a tensor."""
        return LENGTH_VALUE["value"](self)

    def __truediv__(self, other: object) -> Any:
        return self._tensor() / other

    def __rtruediv__(self, other: object) -> Any:
        return other / self._tensor()

    def __pow__(self, other: object) -> Any:
        return self._tensor() ** other

    def __rpow__(self, other: object) -> Any:
        return other ** self._tensor()

    def __abs__(self) -> Any:
        return abs(self._tensor())

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **options: Any) -> Any:
        """Apply Python's operator to integers and lengths; otherwise apply ``ufunc`` to tensors."""
        plain = [_number(value) for value in inputs]
        called = method == "__call__" and not options
        if called and ufunc in _COMPARED and not any(isinstance(v, np.ndarray) for v in plain):
            return _COMPARED[ufunc](*plain)
        if called and ufunc in _EXACT and all(is_exact(value) for value in plain):
            return _EXACT[ufunc](*plain)
        values = [v._tensor() if isinstance(v, LengthOperators) else v for v in inputs]
        return getattr(ufunc, method)(*values, **options)


def _number(value: Any) -> Any:
    """Return a NumPy scalar as a Python number, and any other value unchanged."""
    scalar = isinstance(value, (np.generic, np.ndarray)) and value.ndim == 0
    return value.item() if scalar else value


def is_exact(value: object) -> bool:
    """Return True if an operator on a length and ``value`` gives a length, not a tensor."""
    return isinstance(value, (int, LengthOperators)) or isinstance(value, Integral)
