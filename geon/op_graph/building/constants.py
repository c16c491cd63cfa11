"""Constants: conversion of Python numbers, arrays and nested lists to tensors."""

from __future__ import annotations

import math
import reprlib
from itertools import chain
from typing import TYPE_CHECKING, Any, NamedTuple, Unpack

import numpy as np

from ...errors import AxisError, DTypeError
from ..axes.axes import Axes, Axis, as_axes
from ..axes.length_operators import LENGTH_VALUE
from ..axes.lengths import Length
from ..core.argument_hints import public
from ..core.primitive import PRIMITIVES, Inferred, Primitive, require
from ..core.source_info import current, describe, user_call, user_site
from ..op_graph import NO_AXES, ComputationOp, Op, Tensor, intern, make
from ..syntax.operators import is_function
from ..values.arrays import RAGGED, array_of, is_array, misfit, refuse_kind, rounded
from ..values.attribute_types import Content, DTypeName, Flag, Frozen, SomeAxes
from ..values.dtypes import (
    BOOL,
    DEFAULTS,
    DType,
    Number,
    as_dtype,
    check_number,
    common_dtype,
    exact_dtype,
    is_number,
    kind,
    name_of,
    named_dtype,
    number_dtype,
)
from ..values.labels import by_name, dim_names, refuse_list
from .coordinates import keep_coordinates, let_xarray_defer

if TYPE_CHECKING:
    from .typing import DTypeLike, NewAxes, OpKeywords, TensorLike

MAX_INLINE_BYTES = 256  # constants up to this size are interned by value


class ConstantAttributes(NamedTuple):
    """The ``value`` in the stored dtype; its axes and dtype; ``weak`` if of Python numbers."""

    value: Content
    axes: SomeAxes
    dtype: DTypeName
    weak: Flag


def _reference(op: Op) -> np.ndarray[Any, Any]:
    return constant_value(op)


def _infer(args: tuple[Any, ...], attrs: ConstantAttributes) -> Inferred:
    value, axes, dtype = attrs.value, attrs.axes, named_dtype(attrs.dtype)
    stored = stored_dtype(dtype, attrs.weak)
    require(all(type(n) is int for n in axes.lengths), "a constant over {}, which are open", axes)
    size = axes.size * stored.itemsize
    if isinstance(value, Frozen):
        array = value.array
        require(array.shape == axes.lengths, "an array of shape {} over {}", array.shape, axes)
        require(array.dtype == stored, "an array of {} as {}", array.dtype, stored)
        require(size > MAX_INLINE_BYTES, "{} bytes, which are few, in an array", size)
    else:
        require(size <= MAX_INLINE_BYTES, "{} bytes, which are many, outside an array", size)
        require(len(value) == size, "{} bytes for {} over {}", len(value), dtype, axes)
        require(dtype is not BOOL or not value.strip(b"\0\1"), "a bool that is neither 0 nor 1")
    return axes, dtype, ()


CONSTANT = Primitive(
    "constant",
    "leaf",
    "A fixed value: a number, an array or a nested list.",
    reference=_reference,
    attributes=ConstantAttributes,
    arity=0,
    infer=_infer,
    known=True,
)

_numbers: dict[tuple[Any, ...], Tensor] = {}
MAX_CACHED_NUMBERS = 4096  # maximum cached scalar constants


def number(value: Number, dtype: DType, weak: bool = False) -> Tensor:
    """Return the scalar constant ``value`` of ``dtype``; ``DTypeError`` if it does not fit."""
    key = (type(value), value, dtype, weak)
    shared = value and current.own is None  # zeros are not cached: 0.0 and -0.0 are equal keys
    known = _numbers.get(key) if shared else None
    if known is not None:
        return known
    check_number(value, stored_dtype(dtype, weak))
    array = np.asarray(value)
    if array.dtype == object:  # an integer beyond 64 bits, of a float or complex dtype
        array = np.asarray(float(value))  # type: ignore[arg-type]  # no complex number is an object
    result = array_constant(rounded(array, stored_dtype(dtype, weak)), NO_AXES, weak)
    if shared and not (isinstance(value, float) and math.isnan(value)):
        if len(_numbers) >= MAX_CACHED_NUMBERS:
            _numbers.clear()
        _numbers[key] = result
    return result


def array_constant(array: np.ndarray[Any, Any], axes: Axes, weak: bool = False) -> Tensor:
    """Return a constant over ``axes`` from an array of their shape.

    The array is copied and frozen, unless it lies in ``bytes``, which nothing changes.
    """
    dtype = DEFAULTS[kind(array.dtype)] if weak else array.dtype
    stored = stored_dtype(dtype, weak)
    is_frozen = array.dtype is stored and _lies_in_bytes(array)
    copy = array if is_frozen else np.array(array, stored, order="C", copy=True)
    if copy.nbytes <= MAX_INLINE_BYTES:
        value: Any = copy.tobytes()
    else:
        copy.setflags(write=False)
        value = Frozen(copy)
    attrs = (value, axes, name_of(dtype), weak)
    result: Tensor = intern(ComputationOp, CONSTANT, (), attrs, axes, dtype, weak=weak)
    return result


def _lies_in_bytes(array: np.ndarray[Any, Any]) -> bool:
    """Return True for a row-major, aligned array whose elements are those of a ``bytes`` object."""
    base: Any = array
    while isinstance(base, np.ndarray):
        base = base.base
    flags = array.flags
    return isinstance(base, bytes) and flags.c_contiguous and flags.aligned and not flags.writeable


def stored_dtype(dtype: DType, weak: bool) -> DType:
    """Return the dtype in which a constant is stored: float64 for a weak float."""
    return exact_dtype(dtype) if weak else dtype


def constant_value(op: Op) -> np.ndarray[Any, Any]:
    """Return the read-only array of a constant op, in the op's dtype."""
    array = _stored(op).astype(op.dtype, copy=False)
    array.setflags(write=False)
    return array


def _stored(op: Op) -> np.ndarray[Any, Any]:
    """Return the array of a constant op in the precision in which it was given."""
    value = op.attrs.value
    if isinstance(value, Frozen):
        return value.array
    shape = tuple(int(axis.expression) for axis in op.axes)
    return np.frombuffer(value, stored_dtype(op.dtype, op.attrs.weak)).reshape(shape)


def is_weak_constant(op: Op) -> bool:
    """Return True if ``op`` is a constant made of Python numbers."""
    return op.primitive is CONSTANT and op.weak


def convert_weak(op: Op, dtype: DType, weak: bool = False) -> Tensor:
    """Return the weak constant ``op`` in ``dtype``; ``DTypeError`` if a number does not fit."""
    value = scalar_value(op)
    if value is not None:
        return number(value, dtype, weak)
    array = _stored(op)
    wanted = stored_dtype(dtype, weak)
    finite = array[np.isfinite(array)]
    if finite.size and np.iscomplexobj(finite):
        check_number(finite[np.argmax(np.abs(finite))].item(), wanted)
    elif finite.size:
        check_number(finite.min().item(), wanted)
        check_number(finite.max().item(), wanted)
    with np.errstate(all="ignore"):
        return array_constant(array.astype(wanted), op.axes, weak)


def scalar_value(op: Op) -> bool | int | float | None:
    """Return the Python number of a scalar constant; None for any other op.

    A complex constant has one if its imaginary part is 0.
    """
    if op.primitive is not CONSTANT or op.axes is not NO_AXES:
        return None
    stored = np.frombuffer(op.attrs.value, stored_dtype(op.dtype, op.attrs.weak))
    value: Any = stored[0].item()
    if isinstance(value, complex):
        return None if value.imag else value.real
    return value  # type: ignore[no-any-return]  # an element of a real array


def is_constant(op: Op, value: float) -> bool:
    """Return True if ``op`` is a scalar constant equal to ``value``; 0.0 and -0.0 are equal."""
    return scalar_value(op) == value


@public
def constant(
    value: TensorLike,
    axes: NewAxes | None = None,
    dtype: DTypeLike | None = None,
    **notes: Unpack[OpKeywords],
) -> Tensor:
    """Return a constant from a number, an array of any library, or a nested list.

    ``axes`` are the axes of an array, one for each dimension, with its lengths; an open axis takes
    the array's length. Labelled data, such as xarray's, are matched with ``axes`` by the names of
    their dims; without ``axes`` they get axes of these names. A number with ``axes`` is broadcast
    over them. Python numbers without a ``dtype``, also in lists, stay weak, as they are in ``x +
    1``: they take the dtype of the other operand, and are float32 and int64 where there is none.
    Raises ``AxisError`` if axes are missing or do not fit, and ``DTypeError`` for values that
    ``dtype`` cannot hold.
    """
    try:
        result = _constant(value, axes, dtype)
    except DTypeError as error:
        raise DTypeError(f"{user_call('constant')}: {error}") from None
    return result


def _constant(value: Any, axes: Any, dtype: Any) -> Tensor:
    if is_number(value) and axes is None:
        own = number_dtype(value) if dtype is None else as_dtype(dtype)
        check_number(value, stored_dtype(own, dtype is None), "give a wider dtype")
        return number(value, own, dtype is None)
    let_xarray_defer()
    dims, given = dim_names(value), value
    if dims is not None:
        axes = _own_axes(dims, value) if axes is None else as_axes(axes)
        what = user_call("constant")
        value = by_name(value, axes.names if dims and axes else (), what, AxisError)
    array, weak = to_array(value, dtype)
    if array.ndim == 0 and axes is not None:
        result = array_constant(array, NO_AXES, weak)
        if len(as_axes(axes)):
            result = make(PRIMITIVES["broadcast"], (result,), (as_axes(axes),))
    else:
        result = array_constant(array, fit_axes(array, axes, "constant"), weak)
    if dims is not None:
        keep_coordinates(result, given)
    return result


def _own_axes(dims: tuple[Any, ...], value: Any) -> Axes | None:
    """Return the axes that correspond to the dims of labelled data; None for a scalar."""
    if not all(isinstance(name, str) for name in dims):
        raise AxisError(
            f"the dims {dims} are not all strings, as names of axes are; give them names with "
            f"{'.rename_axis' if hasattr(value, 'iloc') else '.rename'}"
            "(...), or axes with geon.constant(data.values, axes=[...])"
        )
    return Axes(*map(Axis, dims, np.shape(value))) if dims else None


def to_array(value: Any, dtype: Any = None) -> tuple[np.ndarray[Any, Any], bool]:
    """Return a number, array or nested list as a NumPy array, and whether it is weak.

    The array has one of geon's dtypes. Python numbers, and lists of only such numbers, are weak.
    NumPy arrays and scalars keep their dtype, and give it to the Python numbers in a list with
    them. Raises ``DTypeError`` for ragged lists, for masked elements, for integers that no dtype
    holds, and if ``dtype`` would lose more than precision.
    """
    refuse_list(value, "a tensor", AxisError)
    if isinstance(value, (list, tuple)):
        try:
            array = np.asarray(value)
        except ValueError as error:
            shown = reprlib.repr(value)
            raise DTypeError(
                f"{shown} is no rectangular array of numbers: {RAGGED} ({error})"
            ) from None
        listed: list[Any] | None = _elements(value)
    else:
        array = array_of(value, "a tensor", DTypeError)
        listed = [value] if is_number(value) else None
        if listed is None:
            refuse_kind(array, "a tensor", None, DTypeError)
    is_numbers = listed is not None and all(map(is_number, listed))
    if listed and is_numbers and array.dtype.kind in "ufO":
        array = _large(value, listed, array, dtype)
    if array.dtype == object:
        raise DTypeError(f"{value!r} is no rectangular array of numbers")
    if isinstance(value, (list, tuple)):  # such as one of strings
        refuse_kind(array, "a tensor", None, DTypeError)
    if dtype is not None:
        return _array_in_dtype(array, as_dtype(dtype)), False
    if is_numbers and array.dtype != np.uint64:
        return array, True
    own = as_dtype(array.dtype) if listed is None else _dtype_of(listed, array.dtype)
    return array.astype(own, copy=False), False


def _large(
    value: Any, listed: list[Any], array: np.ndarray[Any, Any], dtype: Any
) -> np.ndarray[Any, Any]:
    """Return a list of large Python numbers as an array of a dtype that holds them.

    ``array`` is NumPy's conversion of the list. Integers beyond int64 become uint64, or floats if
    ``dtype`` is a float.
    """
    whole = float not in set(map(type, listed))
    if whole and min(listed) >= 0 and not max(listed) >> 64:
        return np.asarray(value, np.uint64)
    if not whole and array.dtype != object:
        return array
    if whole and (dtype is None or kind(as_dtype(dtype)) not in "fc"):
        ends = " and ".join(dict.fromkeys(map(reprlib.repr, (min(listed), max(listed)))))
        raise DTypeError(
            f"no integer dtype holds {ends} of {reprlib.repr(value)}; give dtype='float64', which "
            "rounds to 53 bits, or smaller numbers"
        )
    try:
        return np.asarray(value, np.float64)
    except OverflowError:
        worst = reprlib.repr(max(listed, key=abs))
        raise DTypeError(f"the number {worst} is too large for every dtype; scale it") from None


def _elements(value: Any) -> list[Any]:
    """Return the elements of a nested list, or the value itself."""
    level = [value]
    while level and isinstance(level[0], (list, tuple)):
        level = list(chain.from_iterable(level))
    return level


def _dtype_of(listed: list[Any], default: DType) -> DType:
    """Return the dtype that NumPy scalars and arrays give a list; ``default`` if it has none."""
    own = {value.dtype for value in listed if isinstance(value, (np.ndarray, np.generic))}
    numbers = {number_dtype(value) for value in listed if is_number(value)}
    if not own:
        return as_dtype(default)
    weak = [(dtype, True) for dtype in numbers]
    return common_dtype([*((as_dtype(dtype), False) for dtype in own), *weak])


def _array_in_dtype(array: np.ndarray[Any, Any], dtype: DType) -> np.ndarray[Any, Any]:
    """Return ``array`` in ``dtype``; raise ``DTypeError`` for a value that it cannot hold.

    It is a copy, unless the array lies in ``bytes``.
    """
    if array.dtype is dtype and _lies_in_bytes(array):
        return array
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
                f"({info.min} to {info.max}); give a wider dtype, such as {array.dtype.name}"
            )
    if array.dtype.kind == "c" and kind(dtype) != "c":
        raise DTypeError(
            f"an array of {array.dtype} cannot be {dtype.name}; take its .real and its .imag"
        )
    with np.errstate(all="ignore"):
        result = rounded(array, dtype)
    if kind(dtype) in "fc" and array.dtype != result.dtype and not np.isfinite(result).all():
        lost = ~np.isfinite(result) & np.isfinite(array.astype(exact_dtype(dtype)))
        if lost.any():
            raise DTypeError(
                f"an array with the value {array[lost].flat[0]} does not fit {dtype.name}; give a "
                "wider dtype"
            )
    return result


def fit_axes(array: np.ndarray[Any, Any], axes: Any, what: str) -> Axes:
    """Return ``axes`` with the lengths of ``array``, one for each dimension.

    ``what`` is the use of the array, for the ``AxisError`` if they do not fit.
    """
    if axes is None:
        if array.ndim == 0:
            return NO_AXES
        raise AxisError(
            f"{user_call(what)}: an array of shape {array.shape} needs axes: geon.constant(array, "
            "axes=[...]), or geon.Variable([...], initial_value=array)"
        )
    own: Axes = as_axes(axes)
    lengths = [axis.expression for axis in own]
    matches = len(lengths) == array.ndim and all(
        not isinstance(length, int) or length == size
        for length, size in zip(lengths, array.shape, strict=True)
    )
    if not matches:
        raise AxisError(
            f"{user_call(what)}: an array of shape {array.shape} does not fit the axes {own}: "
            f"{misfit(own.names, lengths, array.shape)}"
        )
    if lengths == [*array.shape]:
        return own
    return Axes(*(axis.with_length(n) for axis, n in zip(own, array.shape, strict=True)))


def _first_op(value: Any) -> Op | None:
    """Return the first op in a list or tuple, or in nested ones; None if there is none."""
    if isinstance(value, Op):
        return value
    if not isinstance(value, (list, tuple)):
        return None
    return next((op for op in map(_first_op, value) if op is not None), None)


def as_tensor(value: Any, near: Any = None) -> Tensor:
    """Return ``value`` as a tensor: a tensor itself, a number, or an array.

    An array of one or more dimensions takes the axes of the tensor ``near``, whose shape it must
    have. Labelled data have axes of the names of their dims.
    """
    if isinstance(value, Tensor):
        return value
    if isinstance(value, Op):
        raise DTypeError(f"{value.primitive.name} (made at {value.line_info}) has no value to use")
    if is_number(value):
        return number(value, number_dtype(value), True)
    if isinstance(value, Length):
        result: Tensor = LENGTH_VALUE["value"](value)
        return result
    if dim_names(value) is not None:
        return constant(value)
    if not isinstance(value, (np.ndarray, np.generic, list, tuple)) and not is_array(value):
        cure = "; a function that returns nothing gives None" if value is None else ""
        if is_function(value):
            cure = "; call it, and take what it returns"
        raise DTypeError(
            f"{value!r} of type {type(value).__name__} is no tensor, number, array or list, at "
            f"{describe(user_site())}{cure}"
        )
    inner = _first_op(value)
    if inner is not None:
        raise DTypeError(
            f"a {type(value).__name__} with {inner} (made at {inner.line_info}) is no tensor, at "
            f"{describe(user_site())}; geon.stack(tensors, axis) makes one of several"
        )
    array, weak = to_array(value)
    if array.ndim == 0:
        return array_constant(array, NO_AXES, weak)
    if isinstance(near, Tensor) and near.axes.lengths == array.shape:
        return array_constant(array, near.axes, weak)
    there = f" beside {near} (made at {near.line_info})" if isinstance(near, Tensor) else ""
    raise AxisError(
        f"an array of shape {array.shape}{there} has no axes at {describe(user_site())}; "
        "name them with geon.constant(array, axes=[...])"
    )


def shown_number(op: Op) -> str:
    """Return the number of a scalar constant as Python writes it."""
    return repr(_stored(op).item())
