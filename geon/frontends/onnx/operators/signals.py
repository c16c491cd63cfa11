"""Fourier transforms of signals and of their frames, and mel weights."""

from __future__ import annotations

import numpy as np

import geon

from ....errors import ArgumentError
from ....op_graph.values.dtypes import DType
from ...positional.elementwise import elementwise
from ...positional.fourier import half_transform, real_transform, transform
from ...positional.indexing import gather, select
from ...positional.movement import concat, pad
from ...positional.reshaping import unsqueeze
from ...positional.values import Size, Value, host, position
from ..table import row


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
    dft_length: Size | None = None,
    axis: int = -2,
    /,
    *,
    inverse: int = 0,
    onesided: int = 0,
) -> Value:
    """Return the discrete Fourier transform along a known axis, by default the last but one."""
    at = position(axis, len(x.shape))
    own = x.shape[at]
    if dft_length is None:
        dft_length = 2 * (own - 1) if inverse and onesided else own
    return fourier(x, dft_length, at, bool(inverse), bool(onesided))


def short_time_fourier(
    x: Value,
    frame_step: int,
    window: Value | None = None,
    frame_length: Size | None = None,
    /,
    *,
    onesided: int = 1,
) -> Value:
    """Return the Fourier transforms of frames of a signal (N, T, 1 or 2), times a window."""
    size, whole = frame_length, x.shape[1]
    if size is None:
        size = whole if window is None else window.shape[0]
    if not isinstance(size, int) or not isinstance(whole, int):
        raise ArgumentError(f"frames of {x}: the lengths of signal and frames must be known")
    starts = np.arange((whole - size) // frame_step + 1) * frame_step
    frames = gather(x, host(starts[:, None] + np.arange(size)), 1)
    if window is not None:
        frames = elementwise(geon.multiply, frames, unsqueeze(window, [1]))
    return fourier(frames, size, 2, False, bool(onesided))


def mel_weights(
    num_mel_bins: int,
    dft_length: int,
    sample_rate: int,
    lower_edge_hertz: float,
    upper_edge_hertz: float,
    /,
    *,
    output_datatype: DType,
) -> Value:
    """Return the triangular weights that map a spectrum to mel bands, from known numbers."""
    first, last = [2595 * np.log10(1 + edge / 700) for edge in (lower_edge_hertz, upper_edge_hertz)]
    mels = first + np.arange(num_mel_bins + 2) * (last - first) / (num_mel_bins + 2)
    corner = (((dft_length + 1) * 700 * (10 ** (mels / 2595) - 1)) // sample_rate).astype(np.int64)
    left, centre, right = corner[:-2], corner[1:-1], corner[2:]
    j = np.arange(dft_length // 2 + 1)[:, None]
    rising = (j - left) / np.maximum(centre - left, 1)
    falling = (right - j) / np.maximum(right - centre, 1)
    weights = np.where((j >= left) & (j <= centre), rising, 0)
    weights = np.where((j >= centre) & (j < right), falling, weights)
    weights = np.where((j == centre) & (left == centre), 1, weights)
    return host(weights, output_datatype)


ROWS = [
    row("DFT", dft, attributes={"axis": 2}),
    row("STFT", short_time_fourier),
    row("MelWeightMatrix", mel_weights),
]
