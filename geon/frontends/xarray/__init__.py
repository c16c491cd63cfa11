"""``compile``: compiled functions of xarray arrays."""

from .compiled import Compiled, compile

__all__ = ["Compiled", "compile"]
