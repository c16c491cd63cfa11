"""Casts, also to and from texts and dtypes that geon has no tensors of."""

from __future__ import annotations

from typing import Any

import numpy as np

from ....errors import DTypeError
from ....op_graph.values.dtypes import DTYPES, DType
from ...positional.programs import cast
from ...positional.small_dtypes import cast_small, is_small, wide
from ...positional.values import HostArray, host, known
from ..table import row


def cast_like(x: Any, like: Any, /, *, saturate: int = 1, round_mode: str = "up") -> Any:
    """Return elements in the dtype of ``like``."""
    return cast_value(x, like.dtype, saturate, round_mode)


def cast_value(x: Any, to: DType, saturate: int = 1, round_mode: str = "up") -> Any:
    """Return elements in a dtype; raise ``DTypeError`` where geon has no tensors of it.

    ``round_mode`` is that of a cast to powers of 2; others round to the nearest number.
    """
    if x.dtype == to:
        return x
    x = wide(x)
    if object in (x.dtype, to):
        return _texts(x, to)
    if is_small(to):
        powers = to.name == "float8_e8m0fnu"
        return cast_small(x, to, bool(saturate), round_mode if powers else "nearest")
    for each in (x.dtype, to):
        if each.name not in DTYPES:
            raise DTypeError(f"a cast from {x.dtype} to {to}: geon has no tensors of {each}")
    return cast(x, to)


def _texts(x: Any, dtype: DType) -> HostArray:
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


def bit_cast(x: Any, /, *, to: DType) -> Any:
    """Return the same bits in another dtype of the same size; those of floats must be known."""
    if x.dtype.kind in "biu" and to.kind in "iu" and x.dtype.itemsize == to.itemsize:
        return cast(x, to)
    data = known(x, f"the bits of {x.dtype} as {to}")
    return host(np.ascontiguousarray(data).view(to).reshape(data.shape))


ROWS = [
    row("BitCast", bit_cast),
    row("Cast", cast_value),
    row("CastLike", cast_like),
]
