"""Discrete Fourier transforms along named axes, as in ``numpy.fft``: ``geon.fft.fft(x, N)``."""

import sys as _sys
from typing import NoReturn as _NoReturn

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


def __getattr__(name: str) -> _NoReturn:
    from .op_graph.syntax.foreign_names import missing_function
    from .op_graph.syntax.submodule_names import FFT

    raise missing_function(_sys.modules[__name__], name, FFT)
