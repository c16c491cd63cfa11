"""What part of an operand the loads and stores of a kernel reach, and how they step through it."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass

from ....op_graph.axes.affine import Affine, Quotient, Remainder, Size
from ....op_graph.axes.lengths import evaluate
from ..ir.nest import Loop
from ..ir.scalar_code import NODES, Clamped, Scalar, indices, inside, parts

LINE = 64  # bytes of a line of cache
STILL, UNIT, FAR = "still", "unit", "far"


@dataclass(frozen=True, slots=True)
class Reach:
    """What one load or store reaches: ``elements`` different ones at most, ``bytes`` of lines.

    ``step`` says how neighbours along the innermost loop lie: they adjoin (``unit``), each touches
    a line of its own (``far``), or it is one element (``still``). ``span`` is how far the last
    element lies behind the first, in elements; None where a position is computed. ``scattered``
    says that positions are computed for single elements: neighbours may lie anywhere.
    """

    elements: int
    line_bytes: int
    step: str
    span: int | None
    scattered: bool = False


class Reaches:
    """Reaches of offsets, for loops whose extents are known."""

    def __init__(self, loops: Iterable[Loop], lengths: Mapping[str, int]) -> None:
        self.lengths = lengths
        self.extents = {loop.name: self.number(loop.extent) for loop in loops}

    def number(self, size: Size) -> int:
        """A length as an integer."""
        return int(evaluate(size, self.lengths))

    def of(self, offset: Affine, innermost: str | None, size: int, itemsize: int) -> Reach:
        """The reach of an offset in an operand of ``size`` elements."""
        counts = 1
        strides = []
        for atom, step in offset.terms.items():
            count = self.count(atom)
            counts *= count
            if count > 1:
                # What is at a position that is computed has a line of its own.
                least = LINE // itemsize if isinstance(atom, NODES) else 0
                strides.append((max(abs(self.number(step)), least), count))
        variables = set(named(offset))
        most = _product(self.extents.get(name, 1) for name in variables)
        span = None
        if all(isinstance(atom, str) for atom in offset.terms):
            span = sum(step * (count - 1) for step, count in strides)
        reached = [counts, most, size] + ([] if span is None else [span + 1])
        elements = min(reached)
        apart = min([step for step, _ in strides], default=1)
        each = min(max(apart, 1) * itemsize, LINE)
        scattered = each == LINE and any(isinstance(atom, NODES) for atom in offset.terms)
        lines = min(elements * each, size * itemsize) if scattered else elements * each
        return Reach(elements, lines, self.step(offset, innermost, itemsize), span, scattered)

    def count(self, atom: Hashable) -> int:
        """How many values an atom of an index takes, at most."""
        if isinstance(atom, str):
            return self.extents.get(atom, 1)
        if isinstance(atom, Quotient):
            return max(1, -(-self.values(atom.of) // max(self.number(atom.by), 1)))
        if isinstance(atom, Remainder):
            return min(self.values(atom.of), self.number(atom.by))
        if isinstance(atom, Clamped):
            return self.values(atom.of)
        return _product(self.extents.get(name, 1) for name in set(names_in(atom)))

    def values(self, index: Affine) -> int:
        """How many values an index takes, at most."""
        return _product(self.count(atom) for atom in index.terms)

    def step(self, offset: Affine, innermost: str | None, itemsize: int) -> str:
        """How neighbours along the innermost loop lie."""
        if innermost is None or innermost not in set(named(offset)):
            return STILL
        atoms = [atom for atom in offset.terms if innermost in set(names_in(atom))]
        if any(isinstance(atom, NODES) or _limits(atom, innermost) for atom in atoms):
            return FAR
        slope = self.slope(offset, innermost)
        return UNIT if abs(slope) * itemsize <= LINE // 4 else FAR

    def slope(self, index: Affine, name: str) -> int:
        """What one more of a variable adds to an index, where no division steps over."""
        return sum(
            self.number(step) * self._slope(atom, name) for atom, step in index.terms.items()
        )

    def _slope(self, atom: Hashable, name: str) -> int:
        if isinstance(atom, (Remainder, Clamped)):
            return self.slope(atom.of, name)
        return int(atom == name)

    def union(self, offsets: Iterable[tuple[Affine, Reach]], size: int) -> int:
        """How many different elements several offsets of one operand reach together, at most."""
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
    """Whether an index is held inside where a variable says so: each element then has its place."""
    if not isinstance(atom, Clamped):
        return False
    return any(name in set(named(guard.index)) for guard in atom.guards)


def named(index: Affine) -> Iterator[str]:
    """The loops' variables in an index, those of positions that are computed too."""
    for atom in index.terms:
        yield from names_in(atom)


def names_in(atom: Hashable) -> Iterator[str]:
    """The loops' variables in an atom of an index."""
    if isinstance(atom, str):
        yield atom
    elif isinstance(atom, NODES):
        yield from names_of_value(atom)
    for each in inside(atom):
        yield from named(each)


def names_of_value(value: Scalar) -> Iterator[str]:
    """The loops' variables in scalar code."""
    for index in indices(value):
        yield from named(index)
    for part in parts(value):
        yield from names_of_value(part)


def _product(counts: Iterable[int]) -> int:
    total = 1
    for count in counts:
        total *= count
    return total
