"""Tensors that are made of numbers, of lengths and of random bits."""

from __future__ import annotations

from typing import Any

import geon

from ....op_graph.axes.lengths import product
from ...positional import functions
from ...positional.functions import drawn
from ...positional.programs import value_of
from ...positional.values import Value, array, as_array, new_axis
from .common import Builder, Rows, filled, promoted

STREAM_SEED = 0  # of draws that a program makes; PyTorch's own bits are not reproduced


def arange(start: Any, end: Any, step: Any = 1, *, dtype: Any = None, result: Any) -> Value:
    """Return the numbers from ``start`` on in steps of ``step`` up to, without, ``end``."""
    return functions.arange(start, end, step, promoted([start, end, step]))


def random(method: str) -> Builder:
    """Return the builder of random numbers of a distribution of ``geon.Random``."""

    def build(shape: Any, *, dtype: Any = None, result: Any) -> Value:
        draw = getattr(geon.Random(STREAM_SEED), method)
        lengths = shape.shape if isinstance(shape, Value) else shape
        return drawn(lengths, result.dtype, lambda axes, kind: draw(axes, dtype=kind))

    return build


def permutation(length: Any, *, dtype: Any = None) -> Value:
    """Return the numbers below ``length`` in random order."""
    axis = new_axis(length, "number", ())
    draws = geon.Random(STREAM_SEED).uniform([axis], dtype="float64")
    return array(geon.argsort(draws, axis), [axis])


def dropout(x: Value, p: float, train: bool | None = True) -> tuple[Value, Value]:
    """Return ``x`` with random elements 0 and the others scaled, and the mask of the others."""
    if train is False or p == 0:
        return as_array(x), filled(True, x.shape, "bool")
    return functions.dropout(x, p, geon.Random(STREAM_SEED))


def full(shape: Any, number: Any = 0, *_: Any, dtype: Any = None, result: Any) -> Value:
    """Return a number in a shape."""
    return filled(number, shape, result.dtype)


ROWS: Rows = {
    "full": full,
    "full_like": lambda x, number, *, dtype=None, result: full(x.shape, number, result=result),
    # Memory without a value is 0.
    "empty.memory_format": full,
    "empty_strided": lambda shape, strides, *, dtype=None, result: full(shape, result=result),
    "scalar_tensor": lambda x, *, dtype=None, result: value_of(x, result.dtype),
    "arange.start_step": arange,
    "rand": random("uniform"),
    "randn": random("normal"),
    "rand_like": random("uniform"),
    "randn_like": random("normal"),
    "randperm": permutation,
    "native_dropout": dropout,
    "sym_size.int": lambda x, dim: x.shape[dim],
    "sym_numel": lambda x: product(x.shape),
    "sym_stride.int": lambda x, dim: product(x.shape[dim % len(x.shape) + 1 :]),
    "sym_storage_offset": lambda x: 0,
    "sym_is_contiguous": lambda x, *_: True,
}
