"""SymPy expressions as geon graphs and back: ``geon.from_sympy`` and ``geon.to_sympy``."""

from .reader import from_sympy
from .writer import to_sympy

__all__ = ["from_sympy", "to_sympy"]
