"""Vectors as C: of elements that adjoin in memory, and of rows side by side, in loops over them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ...printing.nests.scalar_statements import LANES
from ..names.dialect import ArrayLanes
from ..names.loop_lines import indented, stepped
from .vector_ops import vector_type

ZEROS = ("0", "0.0f", "0.0")


class Vectors:
    """Vectors of ``count`` elements of so many bytes along loops of these ``variables``."""

    def __init__(self, count: int, itemsize: int, variables: Sequence[str]) -> None:
        self.count, self.variables = count, variables
        self.word = f"int{8 * itemsize}_t"  # of a truth

    def type(self, ctype: str) -> str:
        """The type of vectors of values of ``ctype``."""
        return vector_type(self.element(ctype), self.count)

    def element(self, ctype: str) -> str:
        """The type of an element of such vectors: truths are as wide as numbers."""
        return self.word if ctype == "_Bool" else ctype

    def place(self, ctype: str, element: str) -> str:
        """The vector that begins at an element of memory."""
        return f"GEON_AT({self.type(ctype)}, {element})"

    def spread(self, ctype: str, text: str) -> str:
        """A number of ``ctype`` as a vector."""
        if text in ZEROS:
            return f"({self.type(ctype)}){{0}}"
        return f"GEON_EACH({self.type(ctype)}, ({ctype}){text})"


@dataclass(frozen=True, slots=True)
class LaneValue:
    """An array over lanes: its declaration, and the statement that gives a vector of it a value, in
    a loop over lanes that has this ``head``.
    """

    declaration: str
    head: str
    statement: str

    def __str__(self) -> str:
        return f"{self.declaration} {self.head} {self.statement}"


class VectorLanes(ArrayLanes):
    """Arrays over lanes, of which so many as a vector has are at hand from ``lane`` on."""

    def __init__(self, vectors: Vectors) -> None:
        self.vectors = vectors
        self.arrays: dict[str, str] = {}  # by the texts of their values at hand

    def held(self, name: str, ctype: str) -> str:
        """The values called ``name`` of the rows that are at hand."""
        text = self.at(name, ctype)
        self.arrays[text] = name
        return text

    def let(self, ctype: str, name: str, text: str) -> list[Any]:
        """What makes ``name`` the value ``text`` of each row."""
        statement = f"{self.at(name, ctype)} = {text};"
        return [LaneValue(self.array(ctype, name), self.head(), statement)]

    def array_of(self, text: str) -> str | None:
        """The array whose values at hand are called ``text``; None where it is none."""
        return self.arrays.get(text)

    def array(self, ctype: str, name: str, size: int = LANES) -> str:
        """The statement that declares an array over lanes, whose vectors are in one line each."""
        return f"{self.vectors.element(ctype)} {name}[{size}] GEON_IN_LINES;"

    def at(self, name: str, ctype: str, index: str = "lane") -> str:
        """A vector of an array of ``ctype`` over lanes, that at hand."""
        return self.vectors.place(ctype, f"{name}[{index}]")

    def each(self, ctype: str, text: str) -> str:
        """A number of ``ctype`` as the value of lanes."""
        return self.vectors.spread(ctype, text)

    def converted(self, ctype: str, to: str, name: str) -> str:
        """What an array of ``ctype`` has of the lanes at hand, as values of a wider type."""
        if ctype == to:
            return self.at(name, ctype)
        return f"GEON_AS({self.vectors.type(to)}, {self.at(name, ctype)})"

    def narrowed(self, ctype: str, name: str, wide: str) -> str:
        """The statement that makes an array of ``ctype`` what another one has in float64."""
        value = self.converted("double", ctype, wide)
        return f"{self.head()} {self.at(name, ctype)} = {value};"

    def head(self, high: str = "lanes", low: str = "0") -> str:
        """The head of a loop over lanes, before one statement."""
        return f"for (int64_t lane = {low}; lane < {high}; lane += {self.vectors.count})"

    def loop(self, low: str, high: str, body: list[str], pragma: bool = True) -> list[str]:
        """A loop over lanes."""
        return stepped("lane", self.vectors.count, body, low, high)


def values_together(run: Sequence[LaneValue]) -> list[str]:
    """The statements of values one after another: one loop, as each takes a compiler long."""
    declared, made = [each.declaration for each in run], [each.statement for each in run]
    if len(made) == 1:
        return [*declared, f"{run[0].head} {made[0]}"]
    return [*declared, f"{run[0].head} {{", *indented(made), "}"]
