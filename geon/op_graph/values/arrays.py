"""Conversion of foreign arrays to NumPy, by ``__array__`` or DLPack, with checks.

This file imports only NumPy and geon's errors, because ``Transformer.write`` copies its text into
the modules that it writes.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

import numpy as np

from ...errors import AxisError, DTypeError, FeedError

Array = np.ndarray[Any, Any]
# Dtypes that NumPy has from ml_dtypes, by the names that they have there.
EXTENSIONS = ("bfloat16", "float8_e4m3fn", "float8_e5m2")
Refusal = type[AxisError] | type[DTypeError] | type[FeedError]
HOST_DLPACK_DEVICES = (
    1,
    3,
)  # DLPack device types of memory that the CPU reads: kDLCPU and kDLCUDAHost


def is_array(value: Any) -> bool:
    """Return True if another library's value can be read as an array."""
    kind = type(value)
    return (
        hasattr(kind, "__array__")
        or hasattr(kind, "__array_interface__")
        or hasattr(kind, "__dlpack__")
        or hasattr(kind, "__cuda_array_interface__")
    )


def array_of(value: Any, what: str, error: Refusal = FeedError) -> Array:
    """Return a value as a NumPy array, without a copy if the CPU can read its memory.

    Raises ``error``, with a message that begins with ``what``, if the value is no array, if it has
    masked elements, and if it is in device memory that its library does not copy.
    """
    if value.__class__ is np.ndarray:
        return value
    if value.__class__ in PYTHON:
        try:
            return np.asarray(value)
        except Exception as failed:
            raise _no_array(value, what, error, failed) from failed
    refuse_masked(value, what, error)
    if value is None or isinstance(value, (dict, set)):
        raise error(
            f"{what} was given {'None' if value is None else f'a {type(value).__name__}'}, which "
            "is no array; give values one by one, in order or by name"
        )
    kind = type(value)
    shows = hasattr(kind, "__array__") or hasattr(kind, "__array_interface__")
    if not shows and hasattr(kind, "__dlpack__"):
        return _exchanged(value, what, error)
    if not shows and hasattr(kind, "__cuda_array_interface__"):
        raise error(f"{what} was given {kind.__name__}, whose memory is a GPU's: {ON_DEVICE}")
    try:
        return np.asarray(value)
    except Exception as failed:
        if _on_device(value):
            return _exchanged(value, what, error)
        raise _no_array(value, what, error, failed) from failed


PYTHON = (list, tuple, int, float, bool, complex)


def _no_array(value: Any, what: str, error: Refusal, failed: Exception) -> Exception:
    start = f"{what} was given {type(value).__name__}"
    if isinstance(value, (list, tuple)):
        return error(f"{start} of lists that are no array: {RAGGED} ({failed})")
    if hasattr(value, "data_vars"):
        names = ", ".join(map(repr, value.data_vars)) or "none"
        return error(f"{start}, which is no array but has some by name; take one of them: {names}")
    return error(f"{start}, which is no array: {failed}")


RAGGED = (
    "the lists in it must have one length: fill the shorter ones, and say with a mask what counts"
)


ON_DEVICE = (
    'a computation of geon.make_transformer("pycuda") is fed with it as it is; elsewhere copy it '
    "first, for example with .cpu(), .get() or .copy_to_host()"
)


def _on_device(value: Any) -> bool:
    """Return True if a value that DLPack can exchange is in memory that the CPU cannot read."""
    device = getattr(value, "__dlpack_device__", None)
    return device is not None and int(device()[0]) not in HOST_DLPACK_DEVICES


def _exchanged(value: Any, what: str, error: Refusal) -> Array:
    """Return the array by DLPack, copied to the host if its library can copy it."""
    try:
        if _on_device(value):
            return np.from_dlpack(value, device="cpu", copy=True)
        return np.from_dlpack(value)
    except Exception as failed:
        cure = f": {ON_DEVICE}" if _on_device(value) else ""
        raise error(
            f"{what} was given {type(value).__name__}, which is no array that NumPy can read by "
            f"DLPack ({failed}){cure}"
        ) from failed


def is_masked(value: Any) -> bool:
    """Return True if a value is a NumPy array with a mask."""
    loaded = sys.modules.get("numpy.ma")  # masked arrays exist only if this module is loaded
    return loaded is not None and isinstance(value, loaded.MaskedArray)


def refuse_masked(value: Any, what: str, error: Refusal) -> None:
    """Raise ``error`` for an array with masked elements, whose mask would be ignored."""
    if not is_masked(value):
        return
    hidden: Any = np.argwhere(value.mask) if np.ndim(value.mask) else ()
    if len(hidden):
        raise error(
            f"{what} was given an array of shape {value.shape} with masked elements, "
            f"{len(hidden)} of them, the first at {_shown_index(hidden[0])}: fill them first, with "
            "array.filled(value), or give array.data and the mask as another tensor"
        )


def refuse_kind(array: Array, what: str, wanted: Any, error: Refusal) -> None:
    """Raise ``error`` for an array whose dtype is not numeric, such as objects, texts or dates.

    Complex numbers are refused too, unless ``wanted`` is None or complex.

    ``wanted`` is the dtype that is needed, or None for any.
    """
    kind = array.dtype.kind
    if kind == "c" and (wanted is None or np.dtype(wanted).kind == "c"):
        return
    if kind not in CURES and (kind != "V" or array.dtype.name in EXTENSIONS):
        return
    cure = CURES.get(kind, "take the numbers out of it")
    problem, needed = "", "its values must be numbers" if wanted is None else f"it needs {wanted}"
    if kind == "O":
        odd = _no_number(array)
        if odd is not None:
            problem = f" with {odd[0]!r} at {_shown_index(odd[1])}"
            cure = _cure_of_objects(array)
        if wanted is not None and np.dtype(wanted).kind in "iub":
            cure = cure.replace("'float64'", f"'{wanted}'")
    raise error(
        f"{what} was given an array of dtype {array.dtype}{problem}; {needed}: {cure} first"
    )


CURES = {
    "O": "convert it with .astype('float64')",
    "S": "give each text a number, as np.unique(array, return_inverse=True) does,",
    "U": "give each text a number, as np.unique(array, return_inverse=True) does,",
    "T": "give each text a number, as np.unique(array, return_inverse=True) does,",
    "M": "make it numbers, such as (dates - dates[0]) / np.timedelta64(1, 'D'),",
    "m": "make it numbers, such as array / np.timedelta64(1, 'D'),",
    "c": "take its .real and its .imag",
}


def _cure_of_objects(array: Array) -> str:
    """Return the advice for an array of objects that are not all numbers."""
    if not all(isinstance(element, str) for element in array.reshape(-1).tolist()):
        return "put numbers in the place of what is none, and convert it with .astype('float64')"
    try:
        array.astype(np.float64)
    except ValueError:
        return CURES["U"]
    return CURES["O"]  # texts that are numbers


def _no_number(array: Array) -> tuple[Any, Any] | None:
    """Return the first element of an array of objects that is no number, and its index."""
    for position, element in enumerate(array.reshape(-1).tolist()):
        if not isinstance(element, (int, float, complex, np.number, np.bool_)):
            return element, np.unravel_index(position, array.shape)
    return None


def _shown_index(index: Any) -> str:
    """Return an index as messages show it."""
    return str(tuple(map(int, index)))


def misfit(names: Sequence[str], dims: Sequence[Any], shape: Sequence[int]) -> str:
    """Return a message that says which axes do not fit data of this shape, and what to give."""
    if len(shape) != len(dims):
        return "one dimension for each axis, in their order"
    wrong = [
        f"axis {name} has length {length} and dimension {k} of the data {size}"
        for k, (name, length, size) in enumerate(zip(names, dims, shape, strict=True))
        if isinstance(length, int) and length != size
    ]
    is_transposed = (
        sorted(shape) == sorted(dims) if all(isinstance(n, int) for n in dims) else False
    )
    cure = "transpose the data" if is_transposed else "give data of these lengths"
    return f"{'; '.join(wrong)}; {cure}, dimensions in the order of the axes"


def rounded(array: Array, dtype: np.dtype[Any]) -> Array:
    """Return ``array`` in ``dtype``, as NumPy converts it, but rounded once.

    ml_dtypes rounds float64 to float32 and then to float8. Rounding to odd first makes the second
    rounding that of the exact value (Boldo and Melquiond, "When double rounding is odd", 2005).
    """
    if dtype.itemsize > 1 or array.dtype != np.float64 or not dtype.name.startswith("float8"):
        return array.astype(dtype)
    with np.errstate(over="ignore", invalid="ignore"):
        near = np.asarray(array.astype(np.float32))
        error = np.abs(near.astype(np.float64)) - np.abs(array)
        less, inexact = np.asarray(error > 0), np.asarray((error > 0) | (error < 0))
        odd: Array = near.view(np.uint32) - less.astype(np.uint32) | inexact.astype(np.uint32)
        return odd.view(np.float32).astype(dtype)
