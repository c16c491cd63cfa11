"""Vector types of emitted C."""

from __future__ import annotations

from collections.abc import Sequence

from .vector_ops import vector_type

ZEROS = ("0", "0.0f", "0.0")


class Vectors:
    """Vector types of ``count`` elements of ``itemsize`` bytes, along the loops ``variables``."""

    def __init__(self, count: int, itemsize: int, variables: Sequence[str]) -> None:
        self.count, self.itemsize, self.variables = count, itemsize, variables
        self.word = f"int{8 * itemsize}_t"  # element type of a mask

    def of(self, count: int) -> Vectors:
        """Return the types of vectors of ``count`` elements along the same loops."""
        return Vectors(count, self.itemsize, self.variables)

    def type(self, ctype: str) -> str:
        """Return the type of vectors of ``ctype``."""
        return vector_type(self.element(ctype), self.count)

    def element(self, ctype: str) -> str:
        """Return the element type of such vectors: masks are as wide as numbers."""
        return self.word if ctype == "_Bool" else ctype

    def place(self, ctype: str, element: str) -> str:
        """Return the vector that begins at an element of memory."""
        return f"GEON_AT({self.type(ctype)}, {element})"

    def spread(self, ctype: str, text: str) -> str:
        """Return a scalar of ``ctype`` broadcast to a vector."""
        if text in ZEROS:
            return f"({self.type(ctype)}){{0}}"
        return f"GEON_EACH({self.type(ctype)}, ({ctype}){text})"
