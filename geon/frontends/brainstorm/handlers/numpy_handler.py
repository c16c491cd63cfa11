"""Handlers of each transformer, on arrays in the memory of the processor."""

from __future__ import annotations

from .base_handler import Handler


class NumpyHandler(Handler):
    """Computes with NumPy."""

    transformer_name = "numpy"


class NativeHandler(Handler):
    """Computes with compiled C, on the same arrays as ``NumpyHandler``."""

    transformer_name = "native"


class PyCudaHandler(Handler):
    """Computes on a GPU; arrays are in the memory of the processor, and copied for each pass.

    ``net.compile`` keeps parameters on the GPU and is the faster way to use it.
    """

    transformer_name = "pycuda"
