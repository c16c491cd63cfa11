"""Tensors that are made of numbers, of lengths and of random bits."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import geon

from ....op_graph.axes.lengths import Length, product
from ...positional.elementwise import elementwise, expand
from ...positional.picking import numbers
from ...positional.programs import cast
from ...positional.values import Size, Value, array, as_array, new_axis
from .common import filled, promoted, sizes, value_of

STREAM_SEED = 0  # of draws that a program makes; PyTorch's own bits are not reproduced


def full(shape: Any, number: Any, *, dtype: Any = None, result: Any) -> Value:
    """Return a number in a shape."""
    return filled(number, sizes(shape), result.dtype)


def full_like(x: Value, number: Any, *, dtype: Any = None, result: Any) -> Value:
    """Return a number in the shape of ``x``."""
    return filled(number, x.shape, result.dtype)


def zeros(shape: Any, *_: Any, dtype: Any = None, result: Any) -> Value:
    """Return zeros in a shape: memory without a value is 0."""
    return filled(0, sizes(shape), result.dtype)


def scalar(number: Any, *, dtype: Any = None, result: Any) -> Value:
    """Return a number as a tensor without dimensions."""
    return value_of(number, result.dtype)


def arange(start: Any, end: Any, step: Any = 1, *, dtype: Any = None, result: Any) -> Value:
    """Return the numbers from ``start`` on in steps of ``step`` up to, without, ``end``."""
    length: Size
    if any(isinstance(bound, Length) for bound in (start, end, step)):
        length = -((start - end) // step)
    else:
        length = max(int(np.ceil((end - start) / step)), 0)
    wide = promoted([start, end, step])
    found = cast(numbers(length), wide)
    scaled = found if step == 1 else elementwise(geon.multiply, found, value_of(step, wide))
    moved = scaled if start == 0 else elementwise(geon.add, scaled, value_of(start, wide))
    return moved if isinstance(length, Length) or length != 1 else expand(moved, [1])


def drawn(method: str) -> Callable[..., Value]:
    """Return the builder of random numbers of a distribution of ``geon.Random``."""

    def build(shape: Any, *, dtype: Any = None, result: Any) -> Value:
        lengths = sizes(shape)
        axes: list[geon.Axis] = []
        for k, length in enumerate(lengths):
            axes.append(new_axis(length, f"d{k}", [axis.name for axis in axes]))
        kind = result.dtype if result.dtype.itemsize > 2 else "float32"
        tensor = getattr(geon.Random(STREAM_SEED), method)(axes, dtype=kind)
        return array(tensor, axes)

    return build


def drawn_like(method: str) -> Callable[..., Value]:
    """Return the builder of random numbers in the shape of a tensor."""

    def build(x: Value, *, dtype: Any = None, result: Any) -> Value:
        return drawn(method)(x.shape, result=result)

    return build


def permutation(length: Any, *, dtype: Any = None, result: Any) -> Value:
    """Return the numbers below ``length`` in random order."""
    axis = new_axis(length, "number", ())
    draws = geon.Random(STREAM_SEED).uniform([axis], dtype="float64")
    return array(geon.argsort(draws, axis), [axis])


def dropout(x: Value, p: float, train: bool | None = True) -> tuple[Value, Value]:
    """Return ``x`` with random elements 0 and the others scaled, and the mask of the others."""
    given = as_array(x)
    if train is False or p == 0:
        return given, filled(True, x.shape, "bool")
    kept = geon.Random(STREAM_SEED).bernoulli(given.tensor.axes, p=1 - p, dtype="bool")
    scale = 0.0 if p == 1 else 1 / (1 - p)
    tensor = geon.cast(geon.where(kept, given.tensor * scale, 0), given.dtype)
    return array(tensor, given.dims), array(kept, given.dims)


def size(x: Value, dim: int) -> Size:
    """Return the length of a dimension."""
    return x.shape[dim]


def numel(x: Value) -> Size:
    """Return the number of elements."""
    return product(x.shape)


def stride(x: Value, dim: int) -> Size:
    """Return the distance of elements along a dimension of a contiguous tensor."""
    return product(x.shape[dim % len(x.shape) + 1 :])


def triangle(is_below: bool) -> Callable[..., Value]:
    """Return the builder of the elements of matrices on one side of a diagonal; 0 elsewhere."""

    def build(x: Value, diagonal: int = 0) -> Value:
        rows, columns = numbers(x.shape[-2], 2, 0), numbers(x.shape[-1], 2, 1)

        def keep(i: geon.Tensor, j: geon.Tensor) -> geon.Tensor:
            return (j - i <= diagonal) if is_below else (j - i >= diagonal)

        mask = elementwise(keep, rows, columns)
        return elementwise(lambda m, t: geon.where(m, t, geon.cast(0, t.dtype)), mask, x)

    return build


ROWS: dict[str, Callable[..., Any]] = {
    "full": full,
    "full_like": full_like,
    "empty.memory_format": zeros,
    "empty_strided": zeros,
    "scalar_tensor": scalar,
    "arange.start_step": arange,
    "rand": drawn("uniform"),
    "randn": drawn("normal"),
    "rand_like": drawn_like("uniform"),
    "randn_like": drawn_like("normal"),
    "randperm": permutation,
    "native_dropout": dropout,
    "sym_size.int": size,
    "sym_numel": numel,
    "sym_stride.int": stride,
    "sym_storage_offset": lambda x: 0,
    "sym_is_contiguous": lambda x, *_: True,
    "tril": triangle(True),
    "triu": triangle(False),
}
