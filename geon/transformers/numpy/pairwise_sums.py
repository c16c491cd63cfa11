"""Accurate sums and products of floats: blocked summation with float64 totals.

NumPy adds pairwise along contiguous memory, but sequentially along other axes; a BLAS adds the
terms of a product sequentially. Here, short blocks are added in their dtype, and their sums in
float64. Products of float64 are left to the BLAS.

This file imports NumPy and the standard library alone: its text is part of the modules that
``Transformer.write`` makes.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

Array = np.ndarray[Any, np.dtype[Any]]
MAX_SERIAL_TERMS = 32  # terms that are added sequentially: error at most 5e-7 for equal ones
PIECE_ELEMENTS = 1 << 18  # elements per block of work, whose temporaries are a few times that size
MAX_FLOAT32_TERMS = 8192  # terms from which on a product is computed in float64
RUNNING_SUM_ELEMENTS = 1 << 13  # elements of a running sum that are added at a time
VECTOR_PRODUCT_TERMS = (
    1024  # terms per block of a product of vectors: BLAS has at least 16 accumulators for them
)


def add_reduce(x: Array, axis: int | tuple[int, ...], out: Array) -> None:
    """Sum float32 or float64 over ``axis``."""
    axes = (axis,) if isinstance(axis, int) else axis
    terms = math.prod([x.shape[a] for a in axes])
    trailing = min(axes, default=0) >= x.ndim - len(axes)
    if terms <= MAX_SERIAL_TERMS or (trailing and x.flags.c_contiguous):
        np.add.reduce(x, axis=axes, out=out)
    else:
        kept = [a for a in range(x.ndim) if a not in axes]
        _reduce_kept(x.transpose(*kept, *axes), out)


def _reduce_kept(x: Array, out: Array) -> None:
    """Sum over the last axes of ``x``, those that ``out`` lacks; split large ``out``."""
    if out.size > PIECE_ELEMENTS // MAX_SERIAL_TERMS:
        axis = int(np.argmax(out.shape))
        middle = out.shape[axis] // 2
        for half in (slice(None, middle), slice(middle, None)):
            part = (slice(None),) * axis + (half,)
            _reduce_kept(x[part], out[part])
        return
    total = np.zeros(out.shape, np.float64)
    _add_sums(x, total)
    out[...] = total


def _add_sums(x: Array, total: Array) -> None:
    """Add the sums over the last axes of ``x`` to ``total``, block by block of the summed axes."""
    first = total.ndim
    if x.size > PIECE_ELEMENTS and x.size > total.size * MAX_SERIAL_TERMS:
        axis = first + int(np.argmax(x.shape[first:]))
        step = max(
            MAX_SERIAL_TERMS,
            x.shape[axis] * PIECE_ELEMENTS // x.size // MAX_SERIAL_TERMS * MAX_SERIAL_TERMS,
        )
        if step < x.shape[axis]:
            for start in range(0, x.shape[axis], step):
                _add_sums(x[(slice(None),) * axis + (slice(start, start + step),)], total)
            return
    if x.size == 0:
        return
    if math.prod(x.shape[first:]) > 1:
        x = _few_terms(x, first)
    total += np.add.reduce(x, axis=tuple(range(first, x.ndim)), dtype=np.float64)


def _few_terms(x: Array, first: int) -> Array:
    """Return sums of few terms each as float64, along the contiguous axis, else the longest."""
    strides = [abs(s) if n > 1 else 0 for s, n in zip(x.strides, x.shape, strict=True)]
    summed = range(first, x.ndim)
    near = [a for a in summed if x.shape[a] > 1 and strides[a] == x.itemsize]
    axis = near[0] if near else max(summed, key=lambda a: x.shape[a])
    if near and x.shape[axis] >= MAX_SERIAL_TERMS:
        return np.add.reduce(x, axis=axis).astype(np.float64)  # NumPy adds pairwise here
    blocks, rest = divmod(x.shape[axis], MAX_SERIAL_TERMS)
    part = (slice(None),) * axis
    if not blocks:
        return np.add.reduce(x, axis=axis).astype(np.float64)
    whole = x[(*part, slice(None, blocks * MAX_SERIAL_TERMS))]
    shape = (*x.shape[:axis], blocks, MAX_SERIAL_TERMS, *x.shape[axis + 1 :])
    sums = np.add.reduce(whole.reshape(shape, copy=False), axis=axis + 1)
    found = np.add.reduce(sums, axis=axis, dtype=np.float64)
    if rest:
        found += np.add.reduce(x[(*part, slice(blocks * MAX_SERIAL_TERMS, None))], axis=axis)
    return found


def add_accumulate(x: Array, axis: int, out: Array) -> None:
    """Running sums of float32 along ``axis``, accumulated in float64 and rounded."""
    x, out = np.moveaxis(x, axis, 0), np.moveaxis(out, axis, 0)
    if out[:1].size > RUNNING_SUM_ELEMENTS:
        along = 1 + int(np.argmax(out.shape[1:]))
        middle = out.shape[along] // 2
        for half in (slice(None, middle), slice(middle, None)):
            part = (slice(None),) * along + (half,)
            add_accumulate(x[part], 0, out[part])
        return
    step = max(1, RUNNING_SUM_ELEMENTS // max(1, out[:1].size))
    total: Any = None
    for start in range(0, len(x), step):
        sums = np.add.accumulate(x[start : start + step], axis=0, dtype=np.float64)
        if total is not None:
            sums += total
        out[start : start + step] = sums
        total = sums[-1].copy()


def matmul(x: Array, y: Array, out: Array) -> None:
    """Product of (stacks of) float32 matrices, with the shapes of ``np.matmul``."""
    terms = x.shape[-1]
    if terms <= MAX_FLOAT32_TERMS:
        np.matmul(x, y, out=out)
    elif out.size == 1:
        x, y = x.reshape(terms, copy=False), y.reshape(terms, copy=False)
        parts = terms // VECTOR_PRODUCT_TERMS
        whole = slice(None, parts * VECTOR_PRODUCT_TERMS)
        left = x[whole].reshape(parts, 1, VECTOR_PRODUCT_TERMS, copy=False)
        right = y[whole].reshape(parts, VECTOR_PRODUCT_TERMS, 1, copy=False)
        total = 0.0
        for start in range(0, parts, PIECE_ELEMENTS):
            piece = slice(start, start + PIECE_ELEMENTS)
            total += np.add.reduce(np.matmul(left[piece], right[piece]), axis=None, dtype=float)
        out[...] = total + np.float64(
            np.matmul(x[parts * VECTOR_PRODUCT_TERMS :], y[parts * VECTOR_PRODUCT_TERMS :])
        )
    elif x.ndim > 2:
        for place in np.ndindex(x.shape[:-2]):
            _matrices(x[place], y[place], out[place])
    else:
        left = x if x.ndim == 2 else x[None]
        right = y if y.ndim == 2 else y[:, None]
        _matrices(left, right, out.reshape(len(left), right.shape[1], copy=False))


def _matrices(x: Array, y: Array, out: Array) -> None:
    """Product of two matrices in float64, by blocks of the result and of the summed axis."""
    rows, columns = out.shape
    height = max(1, min(rows, 512))
    width = max(1, min(columns, PIECE_ELEMENTS // height))
    depth = max(1, PIECE_ELEMENTS // (height + width))
    for row in range(0, rows, height):
        for column in range(0, columns, width):
            target = out[row : row + height, column : column + width]
            total = np.zeros(target.shape, np.float64)
            for k in range(0, x.shape[1], depth):
                left = x[row : row + height, k : k + depth].astype(np.float64)
                right = y[k : k + depth, column : column + width].astype(np.float64)
                total += left @ right
            target[...] = total
