"""Handlers: the arrays of networks, and operations on them, for each transformer."""

from .base_handler import Handler
from .debug_handler import DebugArray, DebugHandler
from .numpy_handler import NativeHandler, NumpyHandler, PyCudaHandler

default_handler = NumpyHandler()

__all__ = [
    "DebugArray", "DebugHandler", "Handler", "NativeHandler", "NumpyHandler", "PyCudaHandler",
    "default_handler",
]  # fmt: skip
