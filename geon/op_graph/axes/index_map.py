"""Index maps: which element of an argument each element of a result reads.

A primitive that only moves elements has one index map, which layouts, kernels and tests use. It is
a function of an op and the index of a result element (a mapping from axis name to affine
expression). It returns pieces: the result element is that of the first piece whose guards all hold.
The last piece has no guards. If a guard of a piece does not hold, its later guards and its index
are meaningless.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING

from ...lazy_dataclasses import dataclass
from .affine import AffineIndex, Quotient, Remainder, Size, variable

if TYPE_CHECKING:
    from ..op_graph import Op

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


def atoms(index: AffineIndex, positions: bool = True) -> Iterator[Hashable]:
    """Yield every atom of an affine expression, also those in divisions and in ``positions``."""
    for atom in index.terms:
        yield atom
        if isinstance(atom, (Quotient, Remainder)):
            yield from atoms(atom.of, positions)
        elif positions and isinstance(atom, Position):
            for _, at in atom.index:
                yield from atoms(at)


# Primitives whose result is their first argument, elementwise.
SAME_PLACE = ("custom", "print", "checked", "converged", "remat", "segmented", "after")
COMBINING = ("elementwise", "reduction", "ordered", "contraction", "matrix")
EVERY = AffineIndex([(object(), 1)])  # stands for all indices along an axis


def reads(op: Op, index: Index) -> Map:
    """Return the elements that the element of ``op`` at ``index`` is computed from.

    For a primitive with an index map it is one of them, else it combines them. None are returned
    for a primitive of which they are unknown.
    """
    row = op.primitive
    if row.index_map is not None:
        return row.index_map(op, index)
    if row.name in SAME_PLACE:
        return (GuardedElement((), 0, index),)
    if row.kind not in COMBINING and row.name != "scatter":
        return ()
    mixed: tuple[str, ...] = ()
    if row.kind == "matrix":
        mixed = op.attrs.rows, op.attrs.columns
    elif row.kind == "ordered" or row.name == "scatter":
        mixed = (op.attrs.axis,)
    return tuple(
        GuardedElement(
            (), k, {n: EVERY if n in mixed else index.get(n, EVERY) for n in arg.axes.names}
        )
        for k, arg in enumerate(op.args)
    )
