"""Discrete Fourier transforms along named axes, as in ``numpy.fft``: ``geon.fft.fft(x, N)``."""

from .op_graph.functions.fourier import (
    convolve,
    fft,
    fftfreq,
    fftn,
    fftshift,
    ifft,
    ifftn,
    ifftshift,
    irfft,
    irfftn,
    rfft,
    rfftfreq,
    rfftn,
)

__all__ = [
    "convolve", "fft", "fftfreq", "fftn", "fftshift", "ifft", "ifftn", "ifftshift", "irfft",
    "irfftn", "rfft", "rfftfreq", "rfftn",
]  # fmt: skip
