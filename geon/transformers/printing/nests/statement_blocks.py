"""Blocks of statements: what a nesting depth computes, and what is called there."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any

from ..scalars.dialect import Lanes, Strips


@dataclass(frozen=True, slots=True)
class StripCall:
    """A function of all elements of a strip at once; ``result`` is what it writes to."""

    function: str
    result: str
    operands: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.function}({', '.join([self.result, *self.operands])});"


class Known(str):
    """The statement of a value of ``ctype`` called ``name`` that is known outside of the innermost
    loop, and computed there; inside it is ``named``, or not.
    """

    name: str
    ctype: str
    named: bool

    def __new__(cls, ctype: str, name: str, text: str, named: bool = True) -> Known:
        """The statement that ``name`` is the value of a text."""
        made = super().__new__(cls, f"const {ctype} {name} = {text};")
        made.name, made.ctype, made.named = name, ctype, named
        return made


def known_truth(name: str, conditions: str) -> Known:
    """The statement that ``name`` is whether the conditions hold.

    gcc 12 makes a branch of a truth in the innermost loop, which has no vectors then; a word of
    ones or zeros it takes for a number.
    """
    return Known("int32_t", name, f"-({conditions})")


class Block:
    """Statements of one nesting depth: 0 once, 1 for each row, 2 for each element.

    Inner blocks see outer ones' names. Where ``lanes`` is set, rows are computed side by side, and
    the block has a value of each. Where ``strip`` is set, it has a value of each element of a
    strip: ``arrays`` are the declarations of these, some lines are a ``StripCall``, and ``runs``
    say where the elements of a value lie one after another, as functions of strips read them.
    Positions and truths that do not change with the innermost loop ``inner``, which that over lanes
    is, are computed in ``around``.
    """

    def __init__(
        self,
        outer: Block | None = None,
        lanes: Lanes | None = None,
        strip: Strips | None = None,
    ) -> None:
        self.outer, self.lanes, self.strip = outer, lanes, strip
        self.arrays: list[str] = []
        self.runs: dict[Hashable, str] = {}
        self.depth: int = 0 if outer is None else outer.depth + 1
        self.lines: list[Any] = []
        self.names: dict[Hashable, str] = {}
        self.serial = False  # whether compilers may make no vectors of it
        self.converts = False  # or only of 32 bytes, for the conversions that it needs
        self.called: list[str] | None = None  # helpers that only this block calls, if it is written
        self.around: Block | None = None
        self.is_around = False
        self.inner = ""

    def inside(self, loop: str) -> Block:
        """A block of the same depth, inside of the innermost loop, which this one is around."""
        block = Block(self)
        block.depth, block.around, block.inner = self.depth, self, loop
        self.is_around = True
        return block

    def find(self, key: Hashable) -> str | None:
        """The name of what was computed under ``key``, here or further out."""
        block: Block | None = self
        while block is not None:
            if key in block.names:
                return block.names[key]
            block = block.outer
        return None

    def at(self, depth: int) -> Block:
        """This block, or the one around it of at most this depth."""
        block = self
        while block.depth > depth and block.outer is not None:
            block = block.outer
        return block
