"""Feeding: convert a user's value to an array of the placeholder's dtype and axes, or raise."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ...errors import FeedError
from ...op_graph.values.arrays import array_of, misfit, refuse_kind, rounded
from ...op_graph.values.labels import by_name
from .memory import Memory

Array = np.ndarray[Any, np.dtype[Any]]

MAX_SHOWN_DIGITS = 30  # max. digits of a number that a message shows
CONTIGUOUS_AND_ALIGNED = 0x0001 | 0x0100  # NumPy's flags of an array that is contiguous and aligned


def _kind(dtype: np.dtype[Any]) -> int:
    return {"b": 0, "i": 1, "u": 1, "c": 3}.get(dtype.kind, 2)


def scalar_range(dtype: np.dtype[Any]) -> tuple[tuple[type, ...], float, float]:
    """Return types and range of Python numbers that ``dtype`` accepts: (types, low, high)."""
    if dtype.kind in "iu":
        info = np.iinfo(dtype)
        return (int,), int(info.min), int(info.max)
    if dtype.kind == "f" and dtype.isbuiltin == 1:  # NumPy has no finfo of other floats
        # Half a unit past the largest finite value still rounds to it.
        return (float, int), -float(np.finfo(dtype).max), float(np.finfo(dtype).max)
    return (), 0, -1


def make_feed(
    dtype: np.dtype[Any], names: Sequence[str], dims: Sequence[Any], label: str
) -> Callable[[Any], Array]:
    """Return a function from a user's value to an array of ``dtype`` with ``len(dims)`` dimensions.

    Labelled data are transposed to the order of ``names``, the axes' names; bare arrays are matched
    by position. Integers in ``dims`` are required lengths; others are taken from the data. A
    contiguous array of the dtype is used without a copy. ``FeedError`` names ``label``, what was
    given and what is needed.
    """
    ndim = len(dims)
    fixed = [(position, n) for position, n in enumerate(dims) if isinstance(n, int)]
    types, low, high = scalar_range(dtype) if ndim == 0 else ((), 0, -1)
    array = np.array

    def feed(value: Any) -> Array:
        if value.__class__ in types and low <= value <= high:  # type: ignore[operator]  # a number
            return array(value, dtype)
        made: Array = value
        if made.__class__ is not np.ndarray or made.dtype != dtype:
            made = convert(by_name(value, names, label), dtype, label)
        if made.ndim != ndim or any(made.shape[k] != n for k, n in fixed):
            raise FeedError(
                f"{label} was given an array of shape {made.shape}; it needs "
                f"{describe_dims(dims)}: "
                f"{misfit(names, dims, made.shape)}"
            )
        if made.flags.num & CONTIGUOUS_AND_ALIGNED != CONTIGUOUS_AND_ALIGNED:
            made = np.require(made, requirements=["C", "A"]).reshape(made.shape)
        return made

    return feed


def make_feed_of(
    memory: Memory, dtype: np.dtype[Any], names: Sequence[str], dims: Sequence[Any], label: str
) -> Callable[[Any], Any]:
    """Return the same function for any memory; values in a device's memory are not copied.

    ``FeedError`` if such a value has another dtype or shape.
    """
    feed = make_feed(dtype, names, dims, label)
    if memory.on_host:
        return feed

    def fed(value: Any) -> Any:
        found = memory.shown(value)
        if found is None:
            return feed(value)
        fits = len(found.shape) == len(dims) and all(
            n == size or not isinstance(n, int) for n, size in zip(dims, found.shape, strict=True)
        )
        if found.dtype != dtype or not fits:
            raise FeedError(
                f"{label} was given {found.dtype} values of shape {found.shape} on a device; it "
                f"needs {dtype} of shape {describe_dims(dims)}: convert them first"
            )
        return found

    return fed


def describe_dims(dims: Sequence[Any]) -> str:
    """Return dimensions as text, open ones by their expression."""
    return "(" + ", ".join(str(n) for n in dims) + ("," if len(dims) == 1 else "") + ")"


def convert(value: Any, dtype: np.dtype[Any], label: str) -> Array:
    """Return ``value`` as an array of ``dtype``; raise ``FeedError`` for more than rounding.

    A value with NumPy's array interface, the buffer protocol or ``__dlpack__`` is not copied if it
    has the dtype.
    """
    given = array_of(value, label)
    if given.dtype == dtype:
        return given
    if isinstance(value, (list, tuple, int)):
        if not given.size:
            return given.astype(dtype)  # without elements, the array has no dtype of its own
        given = _numbers(value, given, dtype, label)
    refuse_kind(given, label, dtype, FeedError)
    if _kind(given.dtype) > _kind(dtype):
        cure = "compare them with something" if _kind(dtype) == 0 else "round and convert them"
        raise FeedError(f"{label} was given {given.dtype} values; it needs {dtype}: {cure} first")
    with np.errstate(all="ignore"):
        made = rounded(given, dtype)
    if _kind(dtype) == 1 and given.size and _kind(given.dtype) == 1:
        _within(int(given.min()), int(given.max()), dtype, label)
    elif _kind(dtype) >= 2 and given.dtype.itemsize >= dtype.itemsize:
        lost = ~np.isfinite(made) & np.isfinite(given)
        if lost.any():
            worst = given.reshape(-1)[int(np.argmax(lost.reshape(-1)))]
            raise FeedError(
                f"{label} was given {worst}, which is too large for {dtype}: scale the data, or "
                "give it a wider dtype"
            )
    return made


def _written(number: Any) -> str:
    """Return a number as text for messages; for a long one, its magnitude."""
    size = abs(number) if isinstance(number, int) else 0
    if size < 10**MAX_SHOWN_DIGITS:
        return str(number)
    # without str(): Python refuses to convert very long integers
    digits = size.bit_length() * 30103 // 100000
    return f"about {'-' if number < 0 else ''}10**{digits}"


def _within(low: int, high: int, dtype: np.dtype[Any], label: str) -> None:
    info = np.iinfo(dtype)
    if low < info.min or high > info.max:
        signed = -(2**63) <= low and high < 2**63
        wider = (
            "give it a wider dtype" if signed or 0 <= low and high < 2**64 else "make it a float"
        )
        raise FeedError(
            f"{label} was given integers from {_written(low)} to {_written(high)}; {dtype} holds "
            f"{info.min} to {info.max}: clip them, or {wider}"
        )


def _numbers(value: Any, given: Array, dtype: np.dtype[Any], label: str) -> Array:
    """Return Python numbers exactly, if NumPy converts integers to floats or objects.

    ``given`` is NumPy's conversion of ``value``. The result is uint64 or int64, or float64 if
    ``dtype`` is a float.
    """
    if given.dtype != object and (given.dtype != np.float64 or _kind(dtype) != 1):
        return given
    exact = np.asarray(value, object)
    listed = exact.reshape(-1).tolist()
    whole = all(isinstance(each, (int, np.integer)) for each in listed)
    if whole and _kind(dtype) == 1:
        low, high = int(min(listed)), int(max(listed))
        _within(low, high, dtype, label)
        return exact.astype(np.uint64 if low >= 0 else np.int64)
    if _kind(dtype) >= 2 and all(isinstance(each, (int, float, np.number)) for each in listed):
        try:
            return exact.astype(np.float64)
        except OverflowError:
            worst = _written(max(listed, key=abs))
            raise FeedError(
                f"{label} was given {worst}, which is too large for {dtype}: scale the data"
            ) from None
    return given
