"""Casts, also to and from texts and dtypes that geon has no tensors of."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx

from ....errors import DTypeError
from ....op_graph.values.dtypes import DTYPES
from ...positional.programs import cast
from ...positional.small_dtypes import cast_small, is_small, wide
from ...positional.values import HostArray, host, known
from ..table import row
from ..tensors import dtype_of


def cast_to(x: Any, /, *, to: int, saturate: int = 1, round_mode: str = "up") -> Any:
    """Return elements in the dtype with the number ``to``."""
    return cast_value(x, dtype_of(to, "the attribute 'to'"), bool(saturate), round_mode)


def cast_to_named(x: Any, /, *, to: str) -> Any:
    """Return elements in the dtype with the name ``to``."""
    return cast_to(x, to=onnx.TensorProto.DataType.Value(to.upper()))


def cast_like(x: Any, like: Any, /, *, saturate: int = 1, round_mode: str = "up") -> Any:
    """Return elements in the dtype of ``like``."""
    return cast_value(x, like.dtype, bool(saturate), round_mode)


def cast_value(x: Any, dtype: np.dtype[Any], saturate: bool = True, round_mode: str = "up") -> Any:
    """Return elements in a dtype; raise ``DTypeError`` where geon has no tensors of it.

    ``round_mode`` is that of a cast to powers of 2; others round to the nearest number.
    """
    if x.dtype == dtype:
        return x
    x = wide(x)
    if object in (x.dtype, dtype):
        return _texts(x, dtype)
    if is_small(dtype):
        powers = dtype.name == "float8_e8m0fnu"
        return cast_small(x, dtype, saturate, round_mode if powers else "nearest")
    for each in (x.dtype, dtype):
        if each.name not in DTYPES:
            raise DTypeError(f"a cast from {x.dtype} to {dtype}: geon has no tensors of {each}")
    return cast(x, dtype)


def _texts(x: Any, dtype: np.dtype[Any]) -> HostArray:
    """Cast known numbers to texts, or known texts to numbers."""
    given = known(x, "a tensor that becomes texts")
    if dtype.kind != "O":
        numbers = [float(text) for text in given.flat] if dtype.kind not in "iu" else given
        return host(np.asarray(numbers).reshape(given.shape).astype(dtype))
    if x.dtype.kind == "b":
        given = given.astype(np.int64)
    texts = [str(number) for number in given.flat]
    found = np.empty(len(texts), object)
    found[:] = texts
    return HostArray(found.reshape(given.shape), dtype)


def bit_cast(x: Any, /, *, to: int) -> Any:
    """Return the same bits in another dtype of the same size; those of floats must be known."""
    dtype = dtype_of(to, "the attribute 'to'")
    if x.dtype.kind in "biu" and dtype.kind in "iu" and x.dtype.itemsize == dtype.itemsize:
        return cast(x, dtype)
    data = known(x, f"the bits of {x.dtype} as {dtype}")
    return host(np.ascontiguousarray(data).view(dtype).reshape(data.shape))


ROWS = [
    row("BitCast", bit_cast),
    row("Cast", cast_to, 6),
    row("Cast", cast_to_named, 1, 5),
    row("CastLike", cast_like),
]
