"""Fourier transforms of signals and of their frames, and mel weights."""

from __future__ import annotations

import numpy as np

import geon

from ....errors import ArgumentError
from ...positional.elementwise import elementwise
from ...positional.fourier import half_transform, real_transform, transform
from ...positional.indexing import gather, select
from ...positional.movement import concat, pad
from ...positional.reshaping import unsqueeze
from ...positional.values import (
    Size,
    Value,
    host,
    known,
    known_list,
    position,
)
from ..table import row
from ..tensors import dtype_of


def fourier(x: Value, length: Size, at: int, inverse: bool, onesided: bool) -> Value:
    """Return the discrete Fourier transform along a position; the last one is (real, imaginary).

    The result of ``onesided`` is the first half, and with ``inverse`` it is real, from that half.
    """
    used = length // 2 + 1 if onesided and inverse else length
    own, last = x.shape[at], len(x.shape) - 1
    if own != used:
        widths: list[tuple[Size, Size]] = [(0, 0)] * len(x.shape)
        widths[at] = (0, used - own)
        x = pad(x, widths, "constant", 0)
    parts = [select(x, last, k) for k in range(2 if x.shape[-1] == 2 else 1)]
    z = parts[0] if len(parts) == 1 else elementwise(geon.as_complex, *parts)
    if onesided:
        made = real_transform(z, at, length) if inverse else half_transform(z, at)
    else:
        made = transform(z, at, inverse=inverse)
    results = [elementwise(geon.real, made)]
    if not (onesided and inverse):
        results.append(elementwise(geon.imag, made))
    narrow = [elementwise(lambda r: geon.cast(r, x.dtype), r) for r in results]
    return concat([unsqueeze(r, [last]) for r in narrow], last)


def dft(
    x: Value,
    length: Value | None = None,
    axis: Value | None = None,
    /,
    *,
    inverse: int = 0,
    onesided: int = 0,
) -> Value:
    """Return the discrete Fourier transform along a known axis, by default the last but one."""
    along = -2 if axis is None else int(known_list(axis, "the axis")[0])
    at = position(along, len(x.shape))
    own = x.shape[at]
    count = 2 * (own - 1) if inverse and onesided else own
    if length is not None:
        (count,) = known_list(length, "dft_length")
    return fourier(x, count, at, bool(inverse), bool(onesided))


def short_time_fourier(
    x: Value,
    step: Value,
    window: Value | None = None,
    length: Value | None = None,
    /,
    *,
    onesided: int = 1,
) -> Value:
    """Return the Fourier transforms of frames of a signal (N, T, 1 or 2), times a window."""
    (hop,) = known_list(step, "frame_step")
    if length is not None:
        (size,) = known_list(length, "frame_length")
    else:
        size = x.shape[1] if window is None else window.shape[0]
    whole = x.shape[1]
    if not isinstance(size, int) or not isinstance(whole, int):
        raise ArgumentError(f"frames of {x}: the lengths of signal and frames must be known")
    starts = np.arange((whole - size) // hop + 1) * hop
    frames = gather(x, host(starts[:, None] + np.arange(size)), 1)
    if window is not None:
        frames = elementwise(geon.multiply, frames, unsqueeze(window, [1]))
    return fourier(frames, size, 2, False, bool(onesided))


def mel_weights(
    bins: Value,
    length: Value,
    rate: Value,
    low: Value,
    high: Value,
    /,
    *,
    output_datatype: int = 1,
) -> Value:
    """Return the triangular weights that map a spectrum to mel bands, from known numbers."""
    count, size, sample, *edges = [
        known(v, "a number of mel weights").reshape(()).item()
        for v in (bins, length, rate, low, high)
    ]
    first, last = [2595 * np.log10(1 + edge / 700) for edge in edges]
    mels = first + np.arange(count + 2) * (last - first) / (count + 2)
    corner = (((size + 1) * 700 * (10 ** (mels / 2595) - 1)) // sample).astype(np.int64)
    left, centre, right = corner[:-2], corner[1:-1], corner[2:]
    j = np.arange(size // 2 + 1)[:, None]
    rising = (j - left) / np.maximum(centre - left, 1)
    falling = (right - j) / np.maximum(right - centre, 1)
    weights = np.where((j >= left) & (j <= centre), rising, 0)
    weights = np.where((j >= centre) & (j < right), falling, weights)
    weights = np.where((j == centre) & (left == centre), 1, weights)
    return host(weights, dtype_of(output_datatype, "the attribute 'output_datatype'"))


ROWS = [
    row("DFT", dft, attributes={"axis": 2}),
    row("STFT", short_time_fourier),
    row("MelWeightMatrix", mel_weights),
]
