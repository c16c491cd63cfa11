"""Functions of xarray's arrays, compiled: ``compile``."""

from .compiled import Compiled, compile

__all__ = ["Compiled", "compile"]
