"""Index maps: which element of an argument each element of a result reads.

A primitive that only moves elements has one index map, which layouts, kernels and tests use. It is
a function of an op and the index of a result element (a mapping from axis name to affine
expression). It returns pieces: the result element is that of the first piece whose guards all hold.
The last piece has no guards. If a guard of a piece does not hold, its later guards and its index
are meaningless.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass

from .affine import AffineIndex, Quotient, Remainder, Size, variable

Index = Mapping[str, AffineIndex]


@dataclass(frozen=True, slots=True)
class InRange:
    """The condition ``low <= index < high``."""

    index: AffineIndex
    low: Size
    high: Size


@dataclass(frozen=True, slots=True)
class GuardedElement:
    """The element of argument ``arg`` at ``index``, for indices where all ``guards`` hold."""

    guards: tuple[InRange, ...]
    arg: int
    index: Index


@dataclass(frozen=True, slots=True)
class Position:
    """An atom of an affine index: the integer value of argument ``arg`` at ``index``.

    A negative value counts from the end of an axis of ``length`` elements.
    """

    arg: int
    index: tuple[tuple[str, AffineIndex], ...]
    length: Size


Map = tuple[GuardedElement, ...]


def view_map(index: Index) -> Map:
    """Return the map of a view: the element of the first argument at ``index``."""
    return (GuardedElement((), 0, index),)


def identity(names: Iterable[str]) -> dict[str, AffineIndex]:
    """Return the index in which each axis is its own variable."""
    return {name: variable(name) for name in names}


def atoms(index: AffineIndex) -> Iterator[Hashable]:
    """Yield every atom of an affine expression, also those inside divisions and positions."""
    for atom in index.terms:
        yield atom
        if isinstance(atom, (Quotient, Remainder)):
            yield from atoms(atom.of)
        elif isinstance(atom, Position):
            for _, at in atom.index:
                yield from atoms(at)
