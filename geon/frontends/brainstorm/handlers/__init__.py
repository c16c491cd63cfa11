"""Handlers: the arrays of networks, and operations on them, for each transformer."""

import sys

from . import numpy_handler
from .base_handler import Handler
from .debug_handler import DebugArray, DebugHandler
from .numpy_handler import NativeHandler, NumpyHandler, PyCudaHandler

pycuda_handler = sys.modules[f"{__name__}.pycuda_handler"] = numpy_handler  # Brainstorm's module
default_handler = NumpyHandler()

__all__ = [
    "DebugArray", "DebugHandler", "Handler", "NativeHandler", "NumpyHandler", "PyCudaHandler",
    "default_handler",
]  # fmt: skip
