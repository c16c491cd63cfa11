"""``NumpyHandler``, ``NativeHandler`` and ``PyCudaHandler``: a handler for each transformer."""

from __future__ import annotations

from .base_handler import Handler


class NumpyHandler(Handler):
    """Computes with NumPy."""

    transformer_name = "numpy"


class NativeHandler(Handler):
    """Computes with compiled C, on the same arrays as ``NumpyHandler``."""

    transformer_name = "native"


class PyCudaHandler(Handler):
    """Computes on a GPU.

    Passes of layers leave their results there. ``net.buffer`` and ``net.get`` copy to the memory of
    the processor what is read. ``net.compile`` keeps parameters on the GPU, too, and is faster.
    """

    transformer_name = "pycuda"
