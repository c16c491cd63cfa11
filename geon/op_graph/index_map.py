"""Index maps: which element of which argument an element of an op is.

A row that only moves elements says with one index map all that layouts, kernels and tests ask of
it. It is a function of an op and the index of a result's element (axis name to affine expression)
that gives pieces: the element is that of the first piece whose guards all hold. Those of the last
piece hold wherever no others do.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from .affine import Affine, Size

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
