"""Boxes of loop indices (products of intervals) in which guards are decided at compile time.

Interval bounds are lengths. Conditions on open lengths under which the boxes are valid are recorded
as sizes that must not be negative; a call that violates one evaluates the guards per element.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Iterator, Mapping
from dataclasses import field

from ....lazy_dataclasses import dataclass
from ....op_graph.axes.affine import Remainder, Size
from ....op_graph.axes.index_map import InRange
from ....op_graph.axes.lengths import evaluate, is_never_negative, names_of
from ...sizes.limits import NOMINAL_LENGTH
from ..ir.scalar_code import Clamped, Scalar, Select, atoms, indices, walk

# Elements of open axes when an order of bounds must be assumed: more than constants have.
LONG_LENGTH = NOMINAL_LENGTH**2


@dataclass(frozen=True, slots=True)
class Interval:
    """``extent`` indices of an axis from ``low`` on; a loop iteration covers ``phases`` of them."""

    low: Size
    extent: Size
    phases: int = 1

    @property
    def turns(self) -> Size:
        """Return the number of iterations that cover ``phases`` indices each."""
        return self.extent // self.phases

    @property
    def rest(self) -> Interval:
        """Return the remaining indices after those iterations."""
        taken = self.turns * self.phases
        return Interval(self.low + taken, self.extent - taken)


@dataclass(frozen=True, slots=True)
class IndexBox:
    """Part of a kernel's index space: ``spans`` of some axes, and all other axes in full.

    ``cuts`` are intervals of the innermost axis, each with its own loop; empty if one loop covers
    the axis. ``unrolled`` is True if the cuts are emitted without loops. ``boxes`` restrict the
    passes of a row, one pass per box: each box gives intervals of some axes of the pass.
    """

    spans: tuple[tuple[str, Interval], ...] = ()
    cuts: tuple[Interval, ...] = ()
    unrolled: bool = False
    boxes: tuple[tuple[tuple[str, Interval], ...], ...] = ()

    def of(self, name: str) -> Interval | None:
        """Return the interval of an axis, or None if the region covers all of it."""
        return dict(self.spans).get(name)


@dataclass(slots=True)
class Facts:
    """Sizes that are known not to be negative.

    ``nominal_length`` are the sizes that must be checked at each call; ``known`` also has their
    consequences. ``answers`` caches ``holds`` until another size becomes known.
    """

    assumed: list[Size] = field(default_factory=list)
    known: list[Size] = field(default_factory=list)
    answers: dict[Size, bool] = field(default_factory=dict)

    def holds(self, size: Size) -> bool:
        """Return True if ``size`` is provably not negative."""
        found = self.answers.get(size)
        if found is None:
            found = any(is_never_negative(size - each) for each in (0, *self.known))
            self.answers[size] = found
        return found

    def assume(self, size: Size) -> None:
        """Assume from now on that ``size`` is not negative, with a check at each call."""
        if not self.holds(size):
            self.assumed.append(size)
            self._learn(size)

    def note(self, size: Size) -> None:
        """Record that ``size`` is not negative, as a consequence of earlier assumptions."""
        if not self.holds(size):
            self._learn(size)

    def _learn(self, size: Size) -> None:
        self.known.append(size)
        self.answers.clear()

    # Decisions of guards ------------------------------------------------------------------------

    def decide(self, guard: InRange, ranges: Mapping[Hashable, Size]) -> bool | None:
        """Return True if a guard holds for all atoms in ``ranges``, False if for none, or None."""
        least = most = guard.index.constant
        for atom, step in guard.index.terms.items():
            extent = atom.by if isinstance(atom, Remainder) else ranges.get(atom)
            if extent is None:
                return None
            if is_never_negative(step):
                most = most + step * (extent - 1)
            elif is_never_negative(step * -1):
                least = least + step * (extent - 1)
            else:
                return None
        if self.holds(least - guard.low) and self.holds(guard.high - 1 - most):
            return True
        if self.holds(guard.low - 1 - most) or self.holds(least - guard.high):
            return False
        return self.by_points(guard, ranges)

    def by_points(self, guard: InRange, ranges: Mapping[Hashable, Size]) -> bool | None:
        """Decide a guard on a single atom by that atom's bounds; lengths may be divided."""
        for atom, extent in ranges.items():
            points = points_of(guard, atom)
            if points is not None:
                low, high = points
                if self.holds(low * -1) and self.holds(high - extent):
                    return True
                if self.holds(low - extent) or self.holds(high * -1):
                    return False
        return None

    def intervals(self, extent: Size, points: Iterable[Size]) -> list[Interval]:
        """Return the intervals between 0, the ``points`` inside, and ``extent``, ascending.

        Record the assumed order of the points.
        """
        inner = []
        for point in dict.fromkeys(points):
            place = nominal_length(point)
            if place <= 0:
                self.assume(point * -1)
            elif place >= nominal_length(extent):
                self.assume(point - extent)
            else:
                inner.append(point)
        bounds = [0, *sorted(inner, key=nominal_length), extent]
        for low, high in zip(bounds, bounds[1:], strict=False):
            self.assume(high - low)
        for k, low in enumerate(bounds):
            for high in bounds[k + 1 :]:
                self.note(high - low)
        pairs = zip(bounds, bounds[1:], strict=False)
        return [Interval(low, high - low) for low, high in pairs if high - low != 0]


def nominal_length(size: Size) -> int:
    """Return ``size`` with every open length set to ``LONG_LENGTH``."""
    return int(evaluate(size, dict.fromkeys(names_of(size), LONG_LENGTH)))


# Guards -------------------------------------------------------------------------------------------


def guards_of(*roots: Scalar) -> Iterator[InRange]:
    """Yield the guards in scalar code."""
    for node in walk(*roots):
        if isinstance(node, Select):
            yield from node.guards
        for index in indices(node):
            for atom in atoms(index):
                yield from atom.guards if isinstance(atom, Clamped) else ()


def phases_of(guard: InRange, name: str) -> int:
    """Return the period, in iterations, of a guard on a remainder; 1 for other guards."""
    for atom in guard.index.terms:
        if isinstance(atom, Remainder) and isinstance(atom.by, int) and len(atom.of.terms) == 1:
            step = atom.of.terms.get(name)
            if isinstance(step, int):
                return atom.by // math.gcd(atom.by, step)
    return 1


def points_of(guard: InRange, atom: Hashable) -> tuple[Size, Size] | None:
    """Return the half-open range of ``atom`` in which ``guard`` holds.

    Return None if the guard depends on anything else, or its coefficient is not an integer.
    """
    terms = guard.index.terms
    step = terms.get(atom)
    if len(terms) != 1 or not isinstance(step, int):
        return None
    low, high = guard.low - guard.index.constant, guard.high - guard.index.constant
    if step > 0:
        return -(-low // step), -(-high // step)
    return -high // -step + 1, -low // -step + 1
