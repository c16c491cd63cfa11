"""Dtypes, arrays and lengths of PyTorch, and functions of a program's integers."""

from __future__ import annotations

import operator
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import torch

from ...errors import ArgumentError, DTypeError
from ...op_graph.axes.lengths import Length
from ...op_graph.values.dtypes import ALL_DTYPES, EXTENSIONS, named_dtype
from ..positional.naming import parsed_length
from ..positional.values import Size

# Integers by which NumPy and PyTorch exchange the other dtypes, by their bytes.
WORDS = {1: (np.int8, torch.int8), 2: (np.int16, torch.int16)}


def dtype_of(dtype: torch.dtype, what: str) -> np.dtype[Any]:
    """Return NumPy's dtype for one of PyTorch; raise ``DTypeError`` if geon has none of it."""
    name = str(dtype).removeprefix("torch.")
    if name not in ALL_DTYPES:
        raise DTypeError(f"{what} has the dtype {dtype}; geon has {', '.join(ALL_DTYPES)}")
    return np.dtype(name)


def array_of(tensor: torch.Tensor, what: str) -> np.ndarray[Any, Any]:
    """Return a copy of a tensor's elements."""
    dtype_of(tensor.dtype, what)
    return np.array(shared_array(tensor.cpu().contiguous()))


def shared_array(tensor: torch.Tensor) -> np.ndarray[Any, Any]:
    """Return the memory of a CPU tensor as an array, without a copy."""
    plain = tensor.detach()
    name = str(plain.dtype).removeprefix("torch.")
    if name in EXTENSIONS:  # PyTorch gives NumPy only the dtypes that NumPy has of its own
        words = plain.view(WORDS[plain.dtype.itemsize][1]).numpy()
        return words.view(named_dtype(name))
    found: np.ndarray[Any, Any] = plain.numpy()
    return found


def shared_tensor(array: Any) -> torch.Tensor:
    """Return the memory of an array as a tensor, without a copy."""
    array = np.asarray(array)
    if array.dtype.name in EXTENSIONS:
        words = torch.from_numpy(array.view(WORDS[array.dtype.itemsize][0]))
        return words.view(torch_dtype(array.dtype))
    return torch.from_numpy(array)


def torch_dtype(dtype: np.dtype[Any]) -> torch.dtype:
    """Return PyTorch's dtype for one of NumPy or ml_dtypes."""
    if dtype.name in EXTENSIONS:
        found: torch.dtype = getattr(torch, dtype.name)
        return found
    return torch.from_numpy(np.empty(0, dtype)).dtype


def length_of(size: Any) -> Size:
    """Return a length of a program: an integer, or an expression over names of dimensions."""
    if isinstance(size, int):
        return size
    expression, environment = size.node.expr, size.node.shape_env
    names = {str(each): _dimension_name(each, environment) for each in expression.free_symbols}
    found = parsed_length(str(expression), names)
    if found is None:
        raise ArgumentError(f"a length of the program is {expression}, which geon cannot express")
    return found


def _dimension_name(symbol: Any, environment: Any) -> str:
    """Return the name of the ``torch.export.Dim`` of a symbol, or the symbol's own."""
    names = getattr(environment, "source_name_to_debug_name", {})
    for source in getattr(environment, "var_to_sources", {}).get(symbol, ()):
        found = names.get(source.name if isinstance(source.name, str) else source.name())
        if found:
            return str(found)
    return str(symbol)


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
