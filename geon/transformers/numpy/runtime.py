"""What emitted NumPy programs call while they run.

This file imports NumPy, the standard library and geon's errors alone: its text, without the imports
of geon, is part of the modules that ``Transformer.write`` makes.
"""

from __future__ import annotations

import math

import numpy as np

from ...errors import IndexRangeError, NonFiniteError
from ...op_graph.philox import random_bits

__all__ = ["random_bits"]

# Memory -----------------------------------------------------------------------------------------


def carve(arena, offsets, numbers, shape, dtype):
    """The arrays of ``shape`` and ``dtype`` that the buffers of these numbers hold."""
    size = math.prod(shape) * np.dtype(dtype).itemsize
    starts = [offsets[number] for number in numbers]
    return [arena[start : start + size].view(dtype).reshape(shape) for start in starts]


# Rows that need more than one ufunc -------------------------------------------------------------


def _blocks(out, *operands):
    """Views of bounded size over ``out`` and the operands broadcast to it, for work by block."""
    shape = out.shape
    operands = [np.broadcast_to(x, shape) for x in operands]
    if out.size == 0:
        return
    flags = ["external_loop", "buffered", "zerosize_ok"]
    roles = [["writeonly"]] + [["readonly"]] * len(operands)
    with np.nditer([out, *operands], flags, roles, buffersize=8192) as blocks:
        yield from blocks


def to_integer(x, out):
    """Floats truncated to integers, held at the ends of the range; NaN becomes 0."""
    info = np.iinfo(out.dtype)
    for target, block in _blocks(out, x):
        wide = np.trunc(np.nan_to_num(block.astype(np.float64), nan=0.0))
        high, low = wide >= float(info.max), wide <= float(info.min)
        wide[high | low] = 0
        target[...] = wide.astype(out.dtype)
        target[high] = info.max
        target[low] = info.min


def left_shift(x, count, out):
    """x << count; 0 where count is negative or at least the width."""
    bits = 8 * out.dtype.itemsize
    for target, a, n in _blocks(out, x, count):
        outside = (n < 0) | (n >= bits)
        target[...] = np.where(outside, 0, np.left_shift(a, np.where(outside, 0, n)))


def right_shift(x, count, out):
    """x >> count keeping the sign; 0 or -1 where count is negative or at least the width."""
    bits = 8 * out.dtype.itemsize
    for target, a, n in _blocks(out, x, count):
        outside = (n < 0) | (n >= bits)
        shifted = np.right_shift(a, np.where(outside, 0, n))
        target[...] = np.where(outside, np.where(a < 0, -1, 0).astype(a.dtype), shifted)


def integer_power(x, exponent, out):
    """Integers to integer powers; a negative power is 0 unless the base is 1 or -1."""
    if out.dtype.kind == "u":
        np.power(x, exponent, out=out)
        return
    for target, a, n in _blocks(out, x, exponent):
        inverse = np.where(np.abs(a) == 1, np.where(n % 2 == 0, 1, a), 0)
        target[...] = np.where(n < 0, inverse, np.power(a, np.maximum(n, 0)))


def iota(out):
    """0, 1, 2, ... into the only dimension of ``out``."""
    if len(out):
        out.fill(1)
        out[0] = 0
        np.add.accumulate(out, out=out)


def top_k(x, axis, k, out):
    """Positions of the k largest, largest first, NaN above all, equal elements in order."""
    backwards = np.argsort(np.flip(x, axis), axis=axis, kind="stable")
    order = np.flip(backwards, axis)
    np.subtract(x.shape[axis] - 1, np.take(order, np.arange(k), axis=axis), out=out)


def check_positions(index, length, kernel):
    """Raise ``IndexRangeError`` when a position lies outside an axis of ``length``."""
    if index.size:
        low, high = int(index.min()), int(index.max())
        if low < -length or high >= length:
            raise _at(kernel, IndexRangeError(
                f"positions from {low} to {high} where the length is {length}; they must lie in "
                f"{-length} to {length - 1}"
            ))  # fmt: skip


def check_finite(x, kernel):
    """Raise ``NonFiniteError`` when ``x`` holds NaN or an infinity."""
    finite = np.isfinite(x)
    if not finite.all():
        count = int(x.size - finite.sum())
        raise _at(kernel, NonFiniteError(f"{count} of {x.size} values are not finite"))


def _at(kernel, error):
    """An error that knows its kernel, for whoever can name it."""
    error.kernel = kernel
    return error


def show(label, x):
    """Print a value as ``geon.print`` promises."""
    print(f"{label} = {x}")
