"""Arrays of a model's file, and the names of its dtypes."""

from __future__ import annotations

import math
import os
import sys
from typing import Any

import numpy as np
import onnx
from onnx import numpy_helper

from .errors import ModelError

# Bits of an element where the file stores raw bytes, which elements share.
BITS = {"int4": 4, "uint4": 4, "float4e2m1": 4, "int2": 2, "uint2": 2}
BITS |= {"float6e2m3": 6, "float6e3m2": 6}
FIELDS = {  # of a tensor without raw bytes: the field with its elements
    "float": "float_data",
    "complex64": "float_data",
    "double": "double_data",
    "complex128": "double_data",
    "int64": "int64_data",
    "uint32": "uint64_data",
    "uint64": "uint64_data",
    "string": "string_data",
}

MAX_DENSE_ELEMENTS = 2**28  # of a sparse tensor, which is stored as an array


def dtype_of(element_type: int, what: str) -> np.dtype[Any]:
    """Return NumPy's dtype of an element type of ONNX; object for texts."""
    try:
        return np.dtype(onnx.helper.tensor_dtype_to_np_dtype(element_type))
    except KeyError:
        raise ModelError(f"{what} has the element type {element_type}, which is none") from None


def element_type_of(dtype: np.dtype[Any]) -> int:
    """Return the element type of ONNX for a dtype of NumPy."""
    return int(onnx.helper.np_dtype_to_tensor_dtype(dtype))


def array_of(
    tensor: onnx.TensorProto, folder: str | None, what: str, raw: memoryview | None = None
) -> np.ndarray[Any, Any]:
    """Return the array of a tensor in the file, texts as ``str``.

    ``raw`` is its ``raw_data`` where the message lacks these. External data are mapped into memory
    from a file in ``folder``. Raises ``ModelError`` if the data do not have the declared size, or
    lie outside of the folder.
    """
    dtype = dtype_of(tensor.data_type, what)
    if any(length < 0 for length in tensor.dims):
        raise ModelError(f"{what} has the shape {list(tensor.dims)}; lengths are at least 0")
    count = math.prod(tensor.dims)
    if tensor.data_location == onnx.TensorProto.EXTERNAL:
        return _external(tensor, dtype, folder, what)
    name = onnx.TensorProto.DataType.Name(tensor.data_type).lower()
    has_raw = raw is not None or tensor.HasField("raw_data")
    if has_raw and dtype.kind != "O":  # texts have a field of their own
        data = tensor.raw_data if raw is None else bytes(raw)  # copies, which nothing can change
        needed = -(-count * BITS[name] // 8) if name in BITS else count * dtype.itemsize
        if len(data) != needed:
            raise ModelError(
                f"{what} has {len(data)} bytes, and its shape {list(tensor.dims)} of {name} needs "
                f"{needed}"
            )
        if name not in BITS:
            flat = np.frombuffer(data, dtype)
            flat = flat if sys.byteorder == "little" else flat.byteswap()
            return flat.reshape(tuple(tensor.dims))
        tensor.raw_data = data
    else:
        found = len(getattr(tensor, FIELDS.get(name, "int32_data")))
        halves = {"complex64": 2 * count, "complex128": 2 * count}
        packed = name in BITS and 8 % BITS[name] == 0  # else an element has a number of its own
        wanted = halves.get(name, -(-count * BITS[name] // 8) if packed else count)
        if found != wanted:
            raise ModelError(
                f"{what} has {found} elements, and its shape {list(tensor.dims)} needs {wanted}"
            )
    array = numpy_helper.to_array(tensor)
    if array.dtype == object:
        texts = [t.decode(errors="replace") if isinstance(t, bytes) else t for t in array.flat]
        array = np.array(texts, object).reshape(array.shape)
    return array


def _external(
    tensor: onnx.TensorProto, dtype: np.dtype[Any], folder: str | None, what: str
) -> np.ndarray[Any, Any]:
    entries = {entry.key: entry.value for entry in tensor.external_data}
    location = entries.get("location", "")
    if folder is None:
        raise ModelError(
            f"{what} is in the file {location!r}, and a model in memory has no folder; load the "
            "model by its path"
        )
    root = os.path.realpath(folder)
    try:
        path = os.path.realpath(os.path.join(root, location))
    except (ValueError, OSError) as error:
        raise ModelError(f"{what} is in the file {location!r}: {error}") from None
    if not location or os.path.commonpath([root, path]) != root:
        raise ModelError(f"{what} is in the file {location!r}, outside of the model's folder")
    if not os.path.isfile(path):
        raise ModelError(f"{what} is in the file {location!r}, and there is no such file")
    name = onnx.TensorProto.DataType.Name(tensor.data_type).lower()
    if name in BITS or dtype.kind == "O":
        raise ModelError(f"{what}: external data of {name} are not supported; store them inside")
    count = math.prod(tensor.dims)
    try:
        offset, length = int(entries.get("offset", 0)), int(entries.get("length", -1))
        size = os.path.getsize(path)
    except (ValueError, OSError) as error:
        raise ModelError(f"{what}: external data in {location!r} cannot be read: {error}") from None
    needed = count * dtype.itemsize
    if offset < 0 or length not in (-1, needed) or offset + needed > size:
        stated = "" if length == -1 else f"; the file says {length}"
        raise ModelError(
            f"{what} needs {needed} bytes from byte {offset} of {location!r}, which has {size}"
            + stated
        )
    if not count:
        return np.empty(tuple(tensor.dims), dtype)
    mapped: np.ndarray[Any, Any] = np.memmap(path, dtype, "r", offset, tuple(tensor.dims))
    return mapped


def dense_array(sparse: onnx.SparseTensorProto, what: str) -> Any:
    """Return the array of a sparse tensor; raise ``ModelError`` if its indices do not fit."""
    values = array_of(sparse.values, None, what)
    indices = array_of(sparse.indices, None, what)
    shape = tuple(sparse.dims)
    if math.prod(shape) > MAX_DENSE_ELEMENTS:
        raise ModelError(f"{what} is sparse and has {math.prod(shape)} elements as an array")
    dense = np.zeros(shape, values.dtype)
    try:
        at = indices if indices.ndim == 1 else np.ravel_multi_index(tuple(indices.T), shape)
        dense.reshape(-1)[at] = values
    except (IndexError, ValueError) as error:
        raise ModelError(f"{what} has indices that do not fit: {error}") from None
    return dense
