"""Fourier transforms along a position of a program's values."""

from __future__ import annotations

from collections.abc import Sequence

import geon

from .elementwise import elementwise
from .values import PositionalArray, Size, Value, array, as_array, position


def transform(x: Value, at: int, *, inverse: bool = False) -> PositionalArray:
    """Return the complex transform along a position, of all its elements; one is its own."""
    z = as_array(elementwise(lambda t: t if t.dtype.kind == "c" else geon.as_complex(t), x))
    axis = z.dims[position(at, len(z.dims))]
    if axis is None:
        return z
    made = (geon.fft.ifft if inverse else geon.fft.fft)(z.tensor, axis)
    return array(made, z.dims)


def half_transform(x: Value, at: int) -> PositionalArray:
    """Return the frequencies of a transform from 0 to half of the length."""
    z = as_array(x)
    axis = z.dims[position(at, len(z.dims))]
    if axis is None:
        return transform(x, at)
    if z.dtype.kind == "c":
        made = geon.fft.fft(z.tensor, axis)[{axis: slice(0, axis.expression // 2 + 1)}]
    else:
        made = geon.fft.rfft(z.tensor, axis)
    return _over(made, z)


def real_transform(x: Value, at: int, length: Size) -> PositionalArray:
    """Return the ``length`` real numbers that have these frequencies from 0 to half of it."""
    z = as_array(x)
    axis = z.dims[position(at, len(z.dims))]
    if axis is None:
        return as_array(elementwise(geon.real, x))
    return _over(geon.fft.irfft(z.tensor, axis, length), z)


def several(x: Value, kind: int, lengths: Sequence[Size]) -> Value:
    """Return the transform along the last positions, as many as there are ``lengths``.

    ``kind`` is 0 for the complex transform, 1 for its inverse, 2 for that of real numbers, whose
    last position is halved, and 3 for its inverse.
    """
    others = range(-len(lengths), 0 if kind < 2 else -1)
    made: Value = half_transform(x, -1) if kind == 2 else x
    for at in others:
        made = transform(made, at, inverse=kind in (1, 3))
    return real_transform(made, -1, lengths[-1]) if kind == 3 else made


def _over(made: geon.Tensor, like: PositionalArray) -> PositionalArray:
    """Return a tensor with the positions that its axes have in another array."""
    return array(made, [None if dim is None else made.axes[dim.name] for dim in like.dims])
