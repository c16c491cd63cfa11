"""Vector types of emitted C: vectors of contiguous elements, and of rows in lanes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ...printing.nests.scalar_statements import MAX_LANES
from ..names.dialect import ArrayLanes
from ..names.loop_lines import indent, stepped_loop
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


@dataclass(frozen=True, slots=True)
class LaneValue:
    """An array over lanes: its declaration, and the statement that sets a vector of it, in a loop
    over lanes with this ``head``.
    """

    declaration: str
    head: str
    statement: str

    def __str__(self) -> str:
        return f"{self.declaration} {self.head} {self.statement}"


class VectorLanes(ArrayLanes):
    """Rows in lanes, kept in C arrays; ``lane`` is the first index of the current vector."""

    def __init__(self, vectors: Vectors) -> None:
        self.vectors = vectors
        self.arrays: dict[str, str] = {}  # array names by the texts of their current vectors

    def held(self, name: str, ctype: str) -> str:
        """Return the current vector of the array ``name``."""
        text = self.at(name, ctype)
        self.arrays[text] = name
        return text

    def let(self, ctype: str, name: str, text: str) -> list[Any]:
        """Return the declaration of ``name`` and the loop that sets it to ``text``."""
        statement = f"{self.at(name, ctype)} = {text};"
        return [LaneValue(self.array(ctype, name), self.head(), statement)]

    def array_of(self, text: str) -> str | None:
        """Return the array whose current vector is ``text``, or None."""
        return self.arrays.get(text)

    def array(self, ctype: str, name: str, size: int = MAX_LANES) -> str:
        """Return the declaration of an array over lanes, aligned to cache lines."""
        return f"{self.vectors.element(ctype)} {name}[{size}] GEON_IN_LINES;"

    def at(self, name: str, ctype: str, index: str = "lane") -> str:
        """Return the vector of array ``name`` at ``index``, by default the current one."""
        return self.vectors.place(ctype, f"{name}[{index}]")

    def each(self, ctype: str, text: str) -> str:
        """Return a scalar of ``ctype`` broadcast to a vector."""
        return self.vectors.spread(ctype, text)

    def converted(self, ctype: str, to: str, name: str) -> str:
        """Return the current vector of ``name``, converted to type ``to``."""
        if ctype == to:
            return self.at(name, ctype)
        return f"GEON_AS({self.vectors.type(to)}, {self.at(name, ctype)})"

    def narrowed(self, ctype: str, name: str, wide: str) -> str:
        """Return the statement that converts the float64 array ``wide`` to the ``ctype`` array
        ``name``.
        """
        value = self.converted("double", ctype, wide)
        return f"{self.head()} {self.at(name, ctype)} = {value};"

    def head(self, high: str = "lanes", low: str = "0") -> str:
        """Return the head of a loop over vectors of lanes, for one statement."""
        return f"for (int64_t lane = {low}; lane < {high}; lane += {self.vectors.count})"

    def loop(self, low: str, high: str, body: list[str], pragma: bool = True) -> list[str]:
        """Return a loop over vectors of lanes."""
        return stepped_loop("lane", self.vectors.count, body, low, high)


def values_together(run: Sequence[LaneValue]) -> list[str]:
    """Return the statements of consecutive values in one loop, as each loop adds compile time."""
    declared, made = [each.declaration for each in run], [each.statement for each in run]
    if len(made) == 1:
        return [*declared, f"{run[0].head} {made[0]}"]
    return [*declared, f"{run[0].head} {{", *indent(made), "}"]
