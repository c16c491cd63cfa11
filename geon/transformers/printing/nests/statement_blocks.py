"""Blocks of statements, one per nesting depth, with the names of computed values."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any


class StatementBlock:
    """Statements of one nesting depth: 0 once, 1 per row, 2 per element.

    Inner blocks see the names of outer ones.
    """

    def __init__(
        self,
        outer: StatementBlock | None = None,
    ) -> None:
        self.outer = outer
        self.depth: int = 0 if outer is None else outer.depth + 1
        self.lines: list[Any] = []
        self.names: dict[Hashable, str] = {}
        self.is_innermost = False  # of a loop tree: in a loop without loops inside

    def find(self, key: Hashable) -> str | None:
        """Return the name of the value computed under ``key``, here or further out, or None."""
        block: StatementBlock | None = self
        while block is not None:
            if key in block.names:
                return block.names[key]
            block = block.outer
        return None

    def at(self, depth: int) -> StatementBlock:
        """Return this block, or the one around it of at most this depth."""
        block = self
        while block.depth > depth and block.outer is not None:
            block = block.outer
        return block
