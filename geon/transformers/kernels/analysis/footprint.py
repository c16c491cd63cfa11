"""Footprints of loads and stores: elements and cache lines touched, stride of iterations."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Mapping

from ....lazy_dataclasses import dataclass
from ....op_graph.axes.affine import AffineIndex, Quotient, Remainder, Size
from ....op_graph.axes.lengths import evaluate
from ...sizes.blocks import CACHE_LINE_BYTES
from ..ir.loop_variables import variables, variables_in
from ..ir.nest import Loop
from ..ir.scalar_code import NODES, Clamped

STILL, UNIT, FAR = "still", "unit", "far"


@dataclass(frozen=True, slots=True)
class Reach:
    """Footprint of one load or store.

    ``elements`` bounds the number of distinct elements touched. ``line_bytes`` bounds the bytes of
    the cache lines touched. ``step`` is the access pattern along the innermost loop: ``unit`` for
    adjacent elements, ``far`` where each iteration touches another cache line, ``still`` for one
    element. ``span`` is the distance from the first element to the last, in elements; None where a
    position is computed. ``scattered`` is True where positions are computed per element, so that
    neighbouring iterations may touch any element.
    """

    elements: int
    line_bytes: int
    step: str
    span: int | None
    scattered: bool = False


class Reaches:
    """Computes footprints of offsets, for loops whose extents are known numbers."""

    def __init__(self, loops: Iterable[Loop], lengths: Mapping[str, int]) -> None:
        self.lengths = lengths
        self.extents = {loop.name: self.number(loop.extent) for loop in loops}

    def number(self, size: Size) -> int:
        """Return a length as an integer."""
        return int(evaluate(size, self.lengths))

    def turns(self, loops: Iterable[Loop]) -> int:
        """Return the number of iterations of nested loops."""
        return math.prod(self.extents[loop.name] for loop in loops)

    def of(self, offset: AffineIndex, innermost: str | None, size: int, itemsize: int) -> Reach:
        """Return the footprint of an offset in an operand of ``size`` elements."""
        counts = 1
        strides = []
        for atom, step in offset.terms.items():
            count = self.count(atom)
            counts *= count
            if count > 1:
                # Assume that each computed position touches a cache line of its own.
                least = CACHE_LINE_BYTES // itemsize if isinstance(atom, NODES) else 0
                strides.append((max(abs(self.number(step)), least), count))
        most = math.prod(self.extents.get(name, 1) for name in variables(offset))
        span = None
        if all(isinstance(atom, str) for atom in offset.terms):
            span = sum(step * (count - 1) for step, count in strides)
        reached = [counts, most, size] + ([] if span is None else [span + 1])
        elements = min(reached)
        apart = min([step for step, _ in strides], default=1)
        each = min(max(apart, 1) * itemsize, CACHE_LINE_BYTES)
        scattered = each == CACHE_LINE_BYTES and any(
            isinstance(atom, NODES) for atom in offset.terms
        )
        lines = min(elements * each, size * itemsize) if scattered else elements * each
        return Reach(elements, lines, self.step(offset, innermost, itemsize), span, scattered)

    def count(self, atom: Hashable) -> int:
        """Return an upper bound of the number of values that an atom of an index takes."""
        if isinstance(atom, str):
            return self.extents.get(atom, 1)
        if isinstance(atom, Quotient):
            return max(1, -(-self.values(atom.of) // max(self.number(atom.by), 1)))
        if isinstance(atom, Remainder):
            return min(self.values(atom.of), self.number(atom.by))
        if isinstance(atom, Clamped):
            return self.values(atom.of)
        return math.prod(self.extents.get(name, 1) for name in variables_in(atom))

    def values(self, index: AffineIndex) -> int:
        """Return an upper bound of the number of values that an index takes."""
        return math.prod(self.count(atom) for atom in index.terms)

    def step(self, offset: AffineIndex, innermost: str | None, itemsize: int) -> str:
        """Return the pattern along the innermost loop: ``STILL``, ``UNIT`` or ``FAR``."""
        if innermost is None or innermost not in variables(offset):
            return STILL
        atoms = [atom for atom in offset.terms if innermost in variables_in(atom)]
        if any(isinstance(atom, NODES) or _limits(atom, innermost) for atom in atoms):
            return FAR
        slope = self.slope(offset, innermost)
        return UNIT if abs(slope) * itemsize <= CACHE_LINE_BYTES // 4 else FAR

    def slope(self, index: AffineIndex, name: str) -> int:
        """Return the stride of an index in a variable, apart from jumps of divisions."""
        return sum(
            self.number(step) * self._slope(atom, name) for atom, step in index.terms.items()
        )

    def _slope(self, atom: Hashable, name: str) -> int:
        if isinstance(atom, (Remainder, Clamped)):
            return self.slope(atom.of, name)
        return int(atom == name)

    def union(self, offsets: Iterable[tuple[AffineIndex, Reach]], size: int) -> int:
        """Return an upper bound of the distinct elements that offsets of one operand touch."""
        groups: dict[Hashable, list[tuple[int, Reach]]] = {}
        for offset, reach in offsets:
            key = frozenset(offset.terms.items())
            groups.setdefault(key, []).append((self.number(offset.constant), reach))
        total = 0
        for found in groups.values():
            each = sum({at: reach.elements for at, reach in found}.values())
            span = found[0][1].span
            if span is not None:
                starts = [at for at, _ in found]
                each = min(each, span + 1 + max(starts) - min(starts))
            total += each
        return min(total, size)


def _limits(atom: Hashable, name: str) -> bool:
    """Return True if a guard of the atom depends on the variable: it then clamps per iteration."""
    if not isinstance(atom, Clamped):
        return False
    return any(name in variables(guard.index) for guard in atom.guards)


def is_direct(offset: AffineIndex) -> bool:
    """Return True if an offset depends on loop variables only."""
    return all(isinstance(atom, str) for atom in offset.terms)
