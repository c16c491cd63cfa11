"""What emitted NumPy programs call while they run.

This file imports NumPy, the standard library and geon's errors alone: its text, without the imports
of geon, is part of the modules that ``Transformer.write`` makes.
"""

from __future__ import annotations

import signal
import threading

import numpy as np

from ...errors import FeedError, IndexRangeError, NonFiniteError
from ...op_graph.philox import random_bits

__all__ = ["random_bits"]

# Memory -----------------------------------------------------------------------------------------


def new_arena(size, alignment=64):
    """``size`` bytes of aligned memory."""
    raw = np.empty(size + alignment, np.uint8)
    start = -raw.ctypes.data % alignment
    return raw[start : start + size]


def carve(arena, offset, shape, dtype):
    """The array of ``shape`` and ``dtype`` at ``offset`` bytes of the arena."""
    count = 1
    for length in shape:
        count *= length
    size = count * np.dtype(dtype).itemsize
    return arena[offset : offset + size].view(dtype).reshape(shape)


# Feeding ----------------------------------------------------------------------------------------


def _kind(dtype):
    return {"b": 0, "i": 1, "u": 1}.get(dtype.kind, 2)


def scalar_range(dtype):
    """The Python numbers that ``dtype`` holds without a look at the array: (type, low, high)."""
    if dtype.kind in "iu":
        info = np.iinfo(dtype)
        return (int,), int(info.min), int(info.max)
    if dtype.kind == "f":
        # Half a unit past the largest finite value still rounds to it.
        return (float, int), -float(np.finfo(dtype).max), float(np.finfo(dtype).max)
    return (), 0, -1


def make_feed(dtype, dims, label):
    """A function that takes a user's value to an array of ``dtype`` with ``len(dims)`` dimensions.

    Integers in ``dims`` are lengths to have; others are taken from the data. A contiguous array of
    the dtype is used as it is. ``FeedError`` names ``label``, what was given and what is needed.
    """
    ndim = len(dims)
    fixed = [(position, n) for position, n in enumerate(dims) if isinstance(n, int)]
    types, low, high = scalar_range(dtype) if ndim == 0 else ((), 0, -1)
    array = np.array

    def feed(value):
        if value.__class__ in types and low <= value <= high:
            return array(value, dtype)
        made = value
        if made.__class__ is not np.ndarray or made.dtype != dtype:
            made = convert(value, dtype, label)
        if made.ndim != ndim or any(made.shape[k] != n for k, n in fixed):
            raise FeedError(
                f"{label} was given an array of shape {made.shape}; it needs {shown(dims)}"
            )
        if not made.flags.c_contiguous or not made.flags.aligned:
            made = np.ascontiguousarray(made).reshape(made.shape)
        return made

    return feed


def shown(dims):
    """Dimensions as text, open ones by their expression."""
    return "(" + ", ".join(str(n) for n in dims) + ("," if len(dims) == 1 else "") + ")"


def convert(value, dtype, label):
    """``value`` as an array of ``dtype``; ``FeedError`` where that would lose more than precision."""
    try:
        given = np.asarray(value)
    except Exception as error:
        raise FeedError(f"{label} was given {type(value).__name__}, which is no array: {error}") from error
    if given.dtype == dtype:
        return given
    if given.dtype.kind in "OSUMmc" or (given.dtype.kind == "V" and given.dtype.itemsize != 2):
        raise FeedError(
            f"{label} was given an array of dtype {given.dtype}; it needs {dtype}: convert it first"
        )
    if _kind(given.dtype) > _kind(dtype):
        raise FeedError(
            f"{label} was given {given.dtype} values; it needs {dtype}: round and convert them first"
        )
    with np.errstate(all="ignore"):
        made = given.astype(dtype)
    if _kind(dtype) == 1 and given.size and _kind(given.dtype) == 1:
        info = np.iinfo(dtype)
        if int(given.min()) < info.min or int(given.max()) > info.max:
            raise FeedError(
                f"{label} was given integers from {given.min()} to {given.max()}; {dtype} holds "
                f"{info.min} to {info.max}"
            )
    elif _kind(dtype) == 2 and given.dtype.itemsize > dtype.itemsize:
        lost = ~np.isfinite(made) & np.isfinite(given.astype(np.float64))
        if lost.any():
            worst = given.reshape(-1)[int(np.argmax(lost.reshape(-1)))]
            raise FeedError(f"{label} was given {worst}, which is too large for {dtype}")
    return made


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


# Calls ------------------------------------------------------------------------------------------


class Gate:
    """Many readers or one writer: calls that write variables exclude all others."""

    def __init__(self):
        self._condition = threading.Condition()
        self._readers = 0
        self._writer = None
        self._depth = 0

    def enter_read(self):
        with self._condition:
            while self._writer is not None and self._writer != threading.get_ident():
                self._condition.wait()
            self._readers += 1

    def leave_read(self):
        with self._condition:
            self._readers -= 1
            if not self._readers:
                self._condition.notify_all()

    def enter_write(self):
        me = threading.get_ident()
        with self._condition:
            if self._writer == me:
                self._depth += 1
                return
            while self._writer is not None or self._readers:
                self._condition.wait()
            self._writer = me
            self._depth = 1

    def leave_write(self):
        with self._condition:
            self._depth -= 1
            if not self._depth:
                self._writer = None
                self._condition.notify_all()


class Writing:
    """A block that writes variables: alone, and Ctrl-C waits for its end."""

    def __init__(self, gate):
        self.gate = gate

    def __enter__(self):
        # The handler first: an interrupt between the two would leave the gate shut.
        self.previous, self.pending = None, None
        if threading.current_thread() is threading.main_thread():
            handler = signal.getsignal(signal.SIGINT)
            if callable(handler):
                self.previous = handler
                signal.signal(signal.SIGINT, self._note)
        self.gate.enter_write()
        return self

    def _note(self, number, frame):
        self.pending = (number, frame)

    def __exit__(self, *_):
        if self.previous is not None:
            signal.signal(signal.SIGINT, self.previous)
        self.gate.leave_write()
        if self.pending is not None:
            self.previous(*self.pending)
        return False
