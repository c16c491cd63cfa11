"""Constants: Python numbers, arrays and nested lists as tensors."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..errors import AxisError, DTypeError
from .axes import Axes, Axis, as_axes
from .dtypes import FLOAT64, DType, as_dtype, check_number, is_number, kind, number_dtype
from .interning import local
from .op_graph import NO_AXES, ComputationOp, Op, Tensor, annotate, intern
from .registry import Primitive

SMALL_BYTES = 256


class Frozen:
    """A large read-only array that is equal to nothing but itself."""

    __slots__ = ("array",)

    def __init__(self, array: np.ndarray[Any, Any]) -> None:
        self.array = array


def _reference(op: Op) -> np.ndarray[Any, Any]:
    return constant_value(op)


CONSTANT = Primitive(
    "constant",
    "leaf",
    "A fixed value: a number, an array or a nested list.",
    reference=_reference,
    attributes=("value", "axes", "dtype", "weak"),
)

_numbers: dict[tuple[Any, ...], Tensor] = {}
NUMBERS_KEPT = 4096


def number(value: bool | int | float, dtype: DType, weak: bool = False) -> Tensor:
    """The scalar constant ``value`` of ``dtype``; ``DTypeError`` when it does not fit."""
    key = (type(value), value, dtype, weak)
    shared = value and local.own is None  # 0.0 and -0.0 are equal keys
    found = _numbers.get(key) if shared else None
    if found is not None:
        return found
    check_number(value, stored_dtype(dtype, weak))
    made = array_constant(np.asarray(value).astype(stored_dtype(dtype, weak)), NO_AXES, weak)
    if shared and not (isinstance(value, float) and math.isnan(value)):
        if len(_numbers) >= NUMBERS_KEPT:
            _numbers.clear()
        _numbers[key] = made
    return made


def array_constant(array: np.ndarray[Any, Any], axes: Axes, weak: bool = False) -> Tensor:
    """A constant over ``axes`` from an array of their shape; the array is copied and frozen."""
    dtype = number_dtype(array.item()) if weak else array.dtype
    copy = np.array(array, stored_dtype(dtype, weak), order="C", copy=True)
    if copy.nbytes <= SMALL_BYTES:
        value: Any = copy.tobytes()
    else:
        copy.setflags(write=False)
        value = Frozen(copy)
    attrs = (value, axes, dtype.name, weak)
    made: Tensor = intern(ComputationOp, CONSTANT, (), attrs, axes, dtype, weak=weak)
    return made


def stored_dtype(dtype: DType, weak: bool) -> DType:
    """The dtype a constant is stored in: a weak float keeps the precision Python gave it."""
    return FLOAT64 if weak and kind(dtype) == "f" else dtype


def constant_value(op: Op) -> np.ndarray[Any, Any]:
    """The array a constant op holds (read-only)."""
    value = op.attrs[0]
    if isinstance(value, Frozen):
        return value.array
    shape = tuple(int(axis.expression) for axis in op.axes)  # type: ignore[arg-type]
    stored = np.frombuffer(value, stored_dtype(op.dtype, op.attrs[3]))
    return stored.reshape(shape).astype(op.dtype, copy=False)


def scalar_value(op: Op) -> bool | int | float | None:
    """The Python number a scalar constant holds; None for any other op."""
    if op.primitive is not CONSTANT or op.axes is not NO_AXES:
        return None
    stored = np.frombuffer(op.attrs[0], stored_dtype(op.dtype, op.attrs[3]))
    value: bool | int | float = stored[0].item()
    return value


def is_constant(op: Op, value: float) -> bool:
    """Whether ``op`` is a scalar constant equal to ``value`` (a zero of either sign is a zero)."""
    return scalar_value(op) == value


def constant(
    value: Any,
    axes: Axes | Axis | list[Axis] | None = None,
    dtype: Any = None,
    *,
    name: str | None = None,
    tags: Any = (),
    follows: Any = (),
) -> Tensor:
    """A constant from a number, an array or a nested list.

    ``axes`` give an array its axes, one for each dimension, with its lengths; an open axis takes
    the array's length. A number with ``axes`` is that number everywhere. A number without a
    ``dtype`` stays weak, as it is in ``x + 1``; floats in a list are float32, integers int64.
    Raises ``AxisError`` when axes are missing or do not fit.
    """
    if is_number(value) and axes is None:
        made = (
            number(value, number_dtype(value), True)
            if dtype is None
            else number(value, as_dtype(dtype))
        )
        return annotate(made, name, tags, follows)
    array = to_array(value, dtype)
    if array.ndim == 0 and axes is not None:
        from .movement import broadcast

        made = broadcast(array_constant(array, NO_AXES), as_axes(axes))
    else:
        made = array_constant(array, fit_axes(array, axes))
    return annotate(made, name, tags, follows)


def to_array(value: Any, dtype: Any = None) -> np.ndarray[Any, Any]:
    """An array or nested list as a NumPy array of one of geon's dtypes.

    Raises ``DTypeError`` for ragged lists, for masked elements, and where ``dtype`` would lose more
    than precision.
    """
    if isinstance(value, np.ma.MaskedArray) and value.mask.any():
        raise DTypeError("an array has masked elements: fill them first, with array.filled(value)")
    try:
        array = np.asarray(value)
    except ValueError as error:
        raise DTypeError(f"{value!r} is no rectangular array of numbers: {error}") from None
    if array.dtype == object:
        raise DTypeError(f"{value!r} is no rectangular array of numbers")
    if dtype is not None:
        return _held(array, as_dtype(dtype))
    if not isinstance(value, (np.ndarray, np.generic)) and array.dtype == np.float64:
        return array.astype(np.float32)
    return array.astype(as_dtype(array.dtype), copy=False)


def _held(array: np.ndarray[Any, Any], dtype: DType) -> np.ndarray[Any, Any]:
    """``array`` in ``dtype``; ``DTypeError`` for a value that it cannot hold."""
    if kind(dtype) == "i" and array.size:
        if array.dtype.kind not in "iub":
            raise DTypeError(
                f"an array of {array.dtype} cannot be {dtype.name}: round it and convert it first, "
                "or leave out dtype and use geon.cast"
            )
        info = np.iinfo(dtype)
        if int(array.min()) < info.min or int(array.max()) > info.max:
            raise DTypeError(
                f"values from {array.min()} to {array.max()} do not fit {dtype.name} "
                f"({info.min} to {info.max}); give a wider dtype"
            )
    with np.errstate(all="ignore"):
        made = array.astype(dtype)
    if kind(dtype) == "f" and not np.isfinite(made).all():
        lost = ~np.isfinite(made) & np.isfinite(array.astype(np.float64))
        if lost.any():
            raise DTypeError(
                f"an array with the value {array[lost].flat[0]} does not fit {dtype.name}; give a "
                "wider dtype"
            )
    return made


def fit_axes(array: np.ndarray[Any, Any], axes: Any) -> Axes:
    """``axes`` with the lengths of ``array``, one for each dimension."""
    if axes is None:
        if array.ndim == 0:
            return NO_AXES
        raise AxisError(
            f"an array of shape {array.shape} needs axes: geon.constant(array, axes=[...])"
        )
    axes = as_axes(axes)
    lengths = [axis.expression for axis in axes]
    fits = len(lengths) == array.ndim and all(
        not isinstance(length, int) or length == size
        for length, size in zip(lengths, array.shape, strict=True)
    )
    if not fits:
        raise AxisError(
            f"an array of shape {array.shape} does not fit the axes {axes}: "
            "give one axis for each dimension, with its length or open"
        )
    return Axes(*(axis.with_length(n) for axis, n in zip(axes, array.shape, strict=True)))


def as_tensor(value: Any, near: Any = None) -> Tensor:
    """``value`` as a tensor: a tensor itself, a number, or an array.

    An array of one or more dimensions takes the axes of the tensor ``near`` it, whose shape it
    must have.
    """
    if isinstance(value, Tensor):
        return value
    if isinstance(value, Op):
        raise DTypeError(f"{value.primitive.name} (made at {value.file_info}) has no value to use")
    if is_number(value):
        return number(value, number_dtype(value), True)
    if not isinstance(value, (np.ndarray, np.generic, list, tuple)):
        raise DTypeError(
            f"{value!r} of type {type(value).__name__} is no tensor, number, array or list"
        )
    array = to_array(value)
    if array.ndim == 0:
        return array_constant(array, NO_AXES)
    if isinstance(near, Tensor) and near.axes.lengths == array.shape:
        return array_constant(array, near.axes)
    there = f" beside {near} (made at {near.file_info})" if isinstance(near, Tensor) else ""
    raise AxisError(
        f"an array of shape {array.shape}{there} has no axes; "
        "name them with geon.constant(array, axes=[...])"
    )
