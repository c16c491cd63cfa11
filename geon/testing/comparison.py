"""Comparison of values up to rounding, and error messages for differences."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..op_graph.values.dtypes import as_dtype, kind

Array = np.ndarray[Any, Any]

# Relative to the element and to the floor: for sums in another order, and functions that are
# accurate to a few units in the last place.
TOLERANCES = {"float64": 1e-11, "float32": 2e-5, "float16": 4e-3, "bfloat16": 3e-2}
TOLERANCES |= {"complex128": TOLERANCES["float64"], "complex64": TOLERANCES["float32"]}


def widest(value: Any) -> Array:
    """Return floats as float64, and complex numbers as complex128."""
    array = np.asarray(value)
    return array.astype(np.complex128 if array.dtype.kind == "c" else np.float64)


def close(actual: Any, expected: Any, dtype: Any = None, floor: float | None = None) -> Array:
    """Return for each element whether both values differ by no more than rounding in ``dtype``.

    Integers and truth values must be equal; NaN equals NaN, and an infinity itself. The tolerance
    is relative to the modulus of the element and to ``floor``, by default the largest finite
    magnitude of ``expected``, because sums cancel. ``dtype`` is that of ``expected`` unless given.
    Raises ``ValueError`` for different shapes.
    """
    left, right = np.asarray(actual), np.asarray(expected)
    if left.shape != right.shape:
        raise ValueError(f"the shapes {left.shape} and {right.shape} differ")
    dtype = as_dtype(right.dtype if dtype is None else dtype)
    if kind(dtype) not in "fc":
        return np.asarray(left == right)
    left, right = widest(left), widest(right)
    finite = np.isfinite(right)
    if floor is None:
        floor = float(np.abs(right[finite]).max(initial=0.0))
    with np.errstate(all="ignore"):
        near = np.abs(left - right) <= TOLERANCES[dtype.name] * (np.abs(right) + floor)
    same = (left == right) | (np.isnan(left) & np.isnan(right))
    return np.asarray(same | (near & finite & np.isfinite(left)))


def same_bits(actual: Any, expected: Any) -> Array:
    """Return for each element whether both values have equal bits; all NaNs are equal."""
    left, right = np.asarray(actual), np.asarray(expected)
    if right.dtype.kind == "c":
        return same_bits(left.real, right.real) & same_bits(left.imag, right.imag)
    if kind(as_dtype(right.dtype)) != "f":
        return np.asarray(left == right)
    signs = np.signbit(left) == np.signbit(right)
    return np.asarray(((left == right) & signs) | (np.isnan(left) & np.isnan(right)))


def worst(actual: Any, expected: Any, fine: Array) -> tuple[int, ...]:
    """Return the index of the element with the largest difference among those not ``fine``."""
    left, right = widest(actual), widest(expected)
    with np.errstate(all="ignore"):
        error = np.where(fine, -1.0, np.nan_to_num(np.abs(left - right), nan=np.inf))
    return tuple(int(k) for k in np.unravel_index(int(np.argmax(error)), error.shape))


def assert_close(
    actual: Any,
    expected: Any,
    dtype: Any = None,
    *,
    floor: float | None = None,
    exact: bool = False,
    what: str = "the value",
) -> None:
    """Raise ``AssertionError`` if values differ by more than rounding, or their shapes differ.

    See ``close``; with ``exact``, every bit must be equal. The message has ``what``, the worst
    element and the number of differing ones.
    """
    left, right = np.asarray(actual), np.asarray(expected)
    if left.shape != right.shape:
        raise AssertionError(f"{what} has the shape {left.shape}, expected {right.shape}")
    fine = same_bits(left, right) if exact else close(left, right, dtype, floor)
    if not fine.all():
        at = worst(left, right, fine)
        raise AssertionError(
            f"{what} is {left[at]!r} at {at}, expected {right[at]!r}; {int((~fine).sum())} of "
            f"{fine.size} elements differ"
        )
