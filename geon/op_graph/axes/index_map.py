"""Index maps: the element of an argument that each element of a view reads.

A row that only moves elements says with one index map all that layouts, kernels and tests ask of
it. It is a function of an op and the index of a result's element (axis name to affine expression)
that gives pieces: the element is that of the first piece whose guards all hold. The last piece has
no guards, and where a guard of a piece does not hold, its later guards and its index mean nothing.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass

from .affine import Affine, Quotient, Remainder, Size, variable

Index = Mapping[str, Affine]


@dataclass(frozen=True, slots=True)
class Guard:
    """The condition ``low <= index < high``."""

    index: Affine
    low: Size
    high: Size


@dataclass(frozen=True, slots=True)
class Piece:
    """The element of argument ``arg`` at ``index``, where all ``guards`` hold."""

    guards: tuple[Guard, ...]
    arg: int
    index: Index


@dataclass(frozen=True, slots=True)
class Position:
    """An atom of an affine index: the integer that argument ``arg`` holds at ``index``.

    Below zero it counts from the end of an axis of ``length`` elements.
    """

    arg: int
    index: tuple[tuple[str, Affine], ...]
    length: Size


Map = tuple[Piece, ...]


def viewed(index: Index) -> Map:
    """The map of a view: the element of the first argument at ``index``."""
    return (Piece((), 0, index),)


def identity(names: Iterable[str]) -> dict[str, Affine]:
    """The index of an element: each axis is its own variable."""
    return {name: variable(name) for name in names}


def atoms(index: Affine) -> Iterator[Hashable]:
    """Every atom of an affine expression, those inside divisions and positions too."""
    for atom in index.terms:
        yield atom
        if isinstance(atom, (Quotient, Remainder)):
            yield from atoms(atom.of)
        elif isinstance(atom, Position):
            for _, at in atom.index:
                yield from atoms(at)
