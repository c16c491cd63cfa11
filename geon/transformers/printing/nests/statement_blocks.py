"""Blocks of statements, one per nesting depth, with the names of computed values."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any


class Known(str):
    """The statement of a value that is invariant in the innermost loop, and computed before it.

    ``ctype`` and ``name`` are those of the value.
    """

    name: str
    ctype: str

    def __new__(cls, ctype: str, name: str, text: str) -> Known:
        """Return the statement that defines ``name`` as ``text``."""
        made = super().__new__(cls, f"const {ctype} {name} = {text};")
        made.name, made.ctype = name, ctype
        return made


def known_truth(name: str, conditions: str) -> Known:
    """Return the statement that defines ``name`` as -1 if the conditions hold, else 0.

    gcc 12 turns a bool in the innermost loop into a branch, which prevents vectorisation; it treats
    a mask as a number.
    """
    return Known("int32_t", name, f"-({conditions})")


class StatementBlock:
    """Statements of one nesting depth: 0 once, 1 per row, 2 per element.

    Inner blocks see the names of outer ones. ``around`` is the block for positions and guards that
    are invariant in the innermost loop ``inner``.
    """

    def __init__(
        self,
        outer: StatementBlock | None = None,
    ) -> None:
        self.outer = outer
        self.depth: int = 0 if outer is None else outer.depth + 1
        self.lines: list[Any] = []
        self.names: dict[Hashable, str] = {}
        self.around: StatementBlock | None = None
        self.is_around = False
        self.is_innermost = False  # of a loop tree: in a loop without loops inside
        self.inner = ""

    def inside(self, loop: str) -> StatementBlock:
        """Return a block of the same depth inside the innermost loop; this one is around it."""
        block = StatementBlock(self)
        block.depth, block.around, block.inner = self.depth, self, loop
        self.is_around = True
        return block

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
