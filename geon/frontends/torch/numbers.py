"""Dtypes and arrays of PyTorch, and functions of a program's integers."""

from __future__ import annotations

import operator
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import torch

from ...errors import DTypeError
from ...op_graph.axes.lengths import Length
from ...op_graph.values.dtypes import ALL_DTYPES


def dtype_of(dtype: torch.dtype, what: str) -> np.dtype[Any]:
    """Return NumPy's dtype for one of PyTorch; raise ``DTypeError`` if geon has none of it."""
    name = str(dtype).removeprefix("torch.")
    if name not in ALL_DTYPES:
        raise DTypeError(f"{what} has the dtype {dtype}; geon has {', '.join(ALL_DTYPES)}")
    return np.dtype(name)


def array_of(tensor: torch.Tensor, what: str) -> np.ndarray[Any, Any]:
    """Return a copy of a tensor's elements."""
    dtype = dtype_of(tensor.dtype, what)
    plain = tensor.detach().cpu().contiguous()
    if dtype.name == "bfloat16":  # NumPy has no such dtype of its own
        return plain.view(torch.int16).numpy().view(dtype).copy()
    return np.array(plain.numpy())


def _as_float(length: Any) -> Any:
    return length if isinstance(length, Length) else float(length)


@cache
def number_operators() -> dict[Any, Callable[..., Any]]:
    """Return what a program does with integers, and with tuples of results, outside of tensors."""
    plain = (
        operator.add, operator.sub, operator.mul, operator.floordiv, operator.mod, operator.neg,
        operator.pow, operator.eq, operator.ne, operator.lt, operator.le, operator.gt, operator.ge,
        operator.truediv, operator.getitem, min, max,
    )  # fmt: skip
    return {
        **{function: function for function in plain},
        torch.sym_float: _as_float,
        torch.sym_int: int,
        torch.sym_max: max,
        torch.sym_min: min,
    }
