"""Runtime functions that emitted NumPy programs call.

This file imports NumPy, the standard library and geon's errors alone: its text, without the imports
of geon, is part of the modules that ``Transformer.write`` makes.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from ...errors import GeonError, SizeError
from ...op_graph.random.philox import random_bits as random_bits
from ...op_graph.values.arrays import rounded
from ..runtime.loop_steps import at_step as at_step
from ..runtime.rwlock import stop_if_interrupted
from ..runtime.value_errors import not_finite, outside, unfactorised
from .matrices import cholesky as cholesky
from .matrices import eigh as eigh
from .matrices import eigvalsh as eigvalsh
from .matrices import lu as lu
from .matrices import lu_solve as lu_solve
from .matrices import qr as qr
from .matrices import svd as svd
from .matrices import triangular_solve as triangular_solve
from .pairwise_sums import add_accumulate as add_accumulate
from .pairwise_sums import add_reduce as add_reduce
from .pairwise_sums import matmul as matmul

Array = np.ndarray[Any, np.dtype[Any]]

# Memory -----------------------------------------------------------------------------------------


def arena_views(
    arena: Array, offsets: Sequence[int], numbers: Sequence[int], shape: tuple[int, ...], dtype: Any
) -> list[Array]:
    """Return the arrays of ``shape`` and ``dtype`` in the buffers of these numbers."""
    size = math.prod(shape) * np.dtype(dtype).itemsize
    starts = [offsets[number] for number in numbers]
    return [arena[start : start + size].view(dtype).reshape(shape) for start in starts]


def broadcast(x: Array, shape: tuple[int, ...]) -> Array:
    """Return ``x`` broadcast to a shape; raise ``SizeError`` if NumPy cannot represent its size."""
    if math.prod(shape) * x.itemsize >= 2**63:
        raise SizeError(
            f"a value of shape {shape} has more bytes than a 64-bit size can say, though it is "
            "only looked at; use smaller lengths"
        )
    return np.broadcast_to(x, shape)


# Loops ------------------------------------------------------------------------------------------


def to_and_fro(pairs: Sequence[tuple[Array, Array]], count: int) -> Iterator[tuple[Array, ...]]:
    """Yield, for each of ``count`` steps, the arrays that receive the carries.

    They alternate so that the last step writes the first of each pair.
    """
    ways = [tuple([pair[k] for pair in pairs]) for k in (0, 1)]
    for step in range(count):
        stop_if_interrupted()
        yield ways[(count - 1 - step) % 2]


def turns(pairs: Sequence[tuple[Array, Array]], limit: int | None) -> Iterator[tuple[Array, ...]]:
    """Yield, for each step, the arrays that receive the carries, alternating in each pair.

    Without a limit, there is no end.
    """
    ways = [tuple([pair[k] for pair in pairs]) for k in (0, 1)]
    step = 0
    while limit is None or step < limit:
        stop_if_interrupted()
        yield ways[step % 2]
        step += 1


def steps_of(count: Array, most: int) -> int:
    """Return the number of steps of a counted loop: ``count``, clamped to 0 and ``most``."""
    return min(max(int(count), 0), most)


def each(steps: range) -> Iterator[int]:
    """Yield these steps, until an interrupt."""
    for step in steps:
        stop_if_interrupted()
        yield step


def put_carries(carries: Sequence[Array], results: Sequence[Array | None]) -> None:
    """Copy carries to results that are not None, unless they were computed there."""
    for carry, result in zip(carries, results, strict=True):
        if result is not None and carry is not result:
            np.copyto(result, carry)


# Primitives that move elements --------------------------------------------------------------------


def view(x: Array, starts: Sequence[int], steps: Sequence[int], shape: tuple[int, ...]) -> Array:
    """Return the view of ``x`` from the element at ``starts`` on, with these strides in bytes."""
    first = x[tuple([slice(start, None) for start in starts])]
    # as_strided knows no float8.
    plain = first.view(np.uint8) if first.dtype.itemsize == 1 else first
    return np.lib.stride_tricks.as_strided(plain, shape, steps).view(first.dtype)


def grid(shape: tuple[int, ...]) -> tuple[Array, ...]:
    """Return the indices along each axis of a shape, which broadcast to it."""
    return np.indices(shape, sparse=True)


def wrapped(positions: Array, length: int) -> Array:
    """Return indices with negative ones counted from the end."""
    return np.where(positions < 0, positions + length, positions)


def put_piece(out: Array, x: Array, inside: Array, index: tuple[Any, ...]) -> None:
    """Set ``out`` to the elements of ``x`` at ``index`` where ``inside`` is true."""
    chosen = np.broadcast_to(inside, out.shape)
    out[chosen] = x[tuple([np.broadcast_to(at, out.shape)[chosen] for at in index])]


# Primitives that need more than one ufunc ---------------------------------------------------------


def _blocks(out: Array, *operands: Array) -> Iterator[Any]:
    """Yield blocks of bounded size of ``out`` and of the operands broadcast to it."""
    shape = out.shape
    arrays = [out, *(np.broadcast_to(x, shape) for x in operands)]
    if out.size == 0:
        return
    roles: Any = [["writeonly"], *[["readonly"]] * len(operands)]
    with np.nditer(arrays, ["external_loop", "buffered"], roles, buffersize=8192) as blocks:
        yield from blocks


def to_integer(x: Array, out: Array) -> None:
    """Truncate floats to integers, saturating at the ends of the range; NaN becomes 0."""
    info = np.iinfo(out.dtype)
    for target, block in _blocks(out, x):
        wide = np.trunc(np.nan_to_num(block.astype(np.float64), nan=0.0))
        high, low = wide >= float(info.max), wide <= float(info.min)
        wide[high | low] = 0
        target[...] = wide.astype(out.dtype)
        target[high] = info.max
        target[low] = info.min


def to_float8(x: Array, out: Array) -> None:
    """Round float64 to float8 once."""
    for target, block in _blocks(out, x):
        target[...] = rounded(block, out.dtype)


def sigmoid(x: Array, out: Array) -> None:
    """Compute 1 / (1 + exp(-x)) by the exponential that cannot overflow."""
    for target, a in _blocks(out, x):
        small = np.exp(-np.abs(a))
        np.divide(np.where(a > 0, a.dtype.type(1), small), 1 + small, out=target)


def weighted_product(weight: Array, x: Array, out: Array) -> None:
    """Compute weight * x; 0 where weight is 0, also for an infinite or NaN x."""
    for target, w, a in _blocks(out, weight, x):
        np.multiply(w, np.where(w == 0, a.dtype.type(0), a), out=target)


def left_shift(x: Array, count: Array, out: Array) -> None:
    """Compute x << count; 0 where count is negative or at least the width."""
    bits = 8 * out.dtype.itemsize
    for target, a, n in _blocks(out, x, count):
        outside = (n < 0) | (n >= bits)
        target[...] = np.where(outside, 0, np.left_shift(a, np.where(outside, 0, n)))


def right_shift(x: Array, count: Array, out: Array) -> None:
    """Compute x >> count, keeping the sign; 0 or -1 where count is negative or too large."""
    bits = 8 * out.dtype.itemsize
    for target, a, n in _blocks(out, x, count):
        outside = (n < 0) | (n >= bits)
        shifted = np.right_shift(a, np.where(outside, 0, n))
        target[...] = np.where(outside, np.where(a < 0, -1, 0).astype(a.dtype), shifted)


def integer_power(x: Array, exponent: Array, out: Array) -> None:
    """Raise integers to integer powers; a negative power is 0 unless the base is 1 or -1."""
    if out.dtype.kind == "u":
        np.power(x, exponent, out=out)
        return
    for target, a, n in _blocks(out, x, exponent):
        inverse = np.where(np.abs(a) == 1, np.where(n % 2 == 0, 1, a), 0)
        target[...] = np.where(n < 0, inverse, np.power(a, np.maximum(n, 0)))


def iota(out: Array) -> None:
    """Write 0, 1, 2, ... into the only dimension of ``out``."""
    if len(out):
        out.fill(1)
        out[0] = 0
        np.add.accumulate(out, out=out)


def top_k(x: Array, axis: int, k: int, largest: bool, out: Array) -> None:
    """Indices of the k largest elements, largest first, NaN above all, equal elements in order.

    If not ``largest`` they are those of the k smallest elements, smallest first.
    """
    if not largest:
        order = np.argsort(x, axis=axis, kind="stable")
        np.copyto(out, np.take(order, np.arange(k), axis=axis))
        return
    backwards = np.argsort(np.flip(x, axis), axis=axis, kind="stable")
    order = np.flip(backwards, axis)
    np.subtract(x.shape[axis] - 1, np.take(order, np.arange(k), axis=axis), out=out)


def fourier(x: Array, out: Array, axis: int, form: str, inverse: bool, n: int) -> None:
    """Write a Fourier transform along an axis, without a factor, to ``out``.

    ``form`` is "c2c", "r2c" or "c2r"; complex numbers are pairs along the last axis.
    """
    source = x if form == "r2c" else x.view(np.result_type(x.dtype, np.complex64))[..., 0]
    target = out if form == "c2r" else out.view(np.result_type(out.dtype, np.complex64))[..., 0]
    if not (source.size and target.size):
        target[...] = 0
    elif form == "r2c":
        np.fft.rfft(source, axis=axis, out=target)
    elif form == "c2r":
        np.fft.irfft(source, n, axis=axis, norm="forward", out=target)
    elif inverse:
        np.fft.ifft(source, axis=axis, norm="forward", out=target)
    else:
        np.fft.fft(source, axis=axis, out=target)


def check_positions(index: Array, length: int, kernel: int, lowest: int | None = None) -> None:
    """Raise ``IndexRangeError`` if an index lies outside an axis of ``length``.

    Negative indices count from the end of the axis, unless ``lowest`` is the smallest valid index.
    """
    if index.size:
        low, high = int(index.min()), int(index.max())
        first = -length if lowest is None else lowest
        if low < first or high >= length:
            raise _at(kernel, outside(low, high, first, length))


def check_matrices(failed: Array, batch: Sequence[tuple[str, int]], kernel: int) -> None:
    """Raise ``LinearAlgebraError`` if a matrix failed; ``failed`` is over the axes of ``batch``."""
    if failed.any():
        raise _at(kernel, unfactorised(int(np.argmax(failed)), batch))


def check_finite(x: Array, kernel: int) -> None:
    """Raise ``NonFiniteError`` if ``x`` contains NaN or an infinity."""
    finite = np.isfinite(x)
    if not finite.all():
        wrong = x[~finite]
        raise _at(kernel, not_finite(wrong.size, x.size, wrong[0]))


def check_numbers(x: Array, kernel: int) -> None:
    """Raise ``NonFiniteError`` if ``x`` contains NaN; infinities come from the user's constants."""
    wrong = np.isnan(x)
    if wrong.any():
        raise _at(kernel, not_finite(int(wrong.sum()), x.size, x[wrong][0]))


def _at(kernel: int, error: GeonError) -> GeonError:
    """Set the kernel number of an error, for code that can name its op."""
    error.kernel = kernel  # type: ignore[attr-defined]  # read where the graph is known
    return error


def show(label: str, x: Array, dtype: str | None = None) -> None:
    """Print a value as ``geon.print`` specifies; ``dtype`` is that of pairs along the last axis."""
    shown = x if dtype is None else np.ascontiguousarray(x).view(dtype)[..., 0]
    print(f"{label} = {shown}")
