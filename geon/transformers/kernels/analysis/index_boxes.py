"""Regions of a kernel's indices: intervals of axes on which a choice between pieces is decided.

Where they begin and end are lengths. What must hold of open ones for that is noted as sizes that
are not negative; calls for which it does not hold compute the choice for each element.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from ....op_graph.axes.affine import Affine, Remainder, Size
from ....op_graph.axes.index_map import Guard
from ....op_graph.axes.lengths import Length, evaluate, names_of
from ..ir.scalar_code import Clamped, Scalar, Select, indices, inside, walk

ASSUMED = 1 << 20  # open lengths are taken to be so long where an order must be assumed


@dataclass(frozen=True, slots=True)
class Interval:
    """``extent`` indices of an axis from ``low`` on, ``phases`` in each turn of a loop."""

    low: Size
    extent: Size
    phases: int = 1

    @property
    def turns(self) -> Size:
        """How many turns take all of their indices."""
        return self.extent // self.phases

    @property
    def rest(self) -> Interval:
        """The indices behind those turns."""
        taken = self.turns * self.phases
        return Interval(self.low + taken, self.extent - taken)


@dataclass(frozen=True, slots=True)
class Region:
    """A part of what a kernel computes: ``spans`` of axes, and all of each other axis.

    ``cuts`` are intervals of the innermost axis, which are walked one after another, or side by
    side where they are ``unrolled``; none where it is walked as a whole.

    ``boxes`` are parts of what passes of rows go over, one pass each: spans of some of its axes.
    """

    spans: tuple[tuple[str, Interval], ...] = ()
    cuts: tuple[Interval, ...] = ()
    unrolled: bool = False
    boxes: tuple[tuple[tuple[str, Interval], ...], ...] = ()

    def of(self, name: str) -> Interval | None:
        """The interval of an axis, None where it is all of it."""
        return dict(self.spans).get(name)


@dataclass(slots=True)
class Facts:
    """Sizes that are not negative: ``assumed`` ones, which calls must look at, and ``known``.

    ``answers`` are those to what was asked since the last of them became known.
    """

    assumed: list[Size] = field(default_factory=list)
    known: list[Size] = field(default_factory=list)
    answers: dict[Size, bool] = field(default_factory=dict)

    def holds(self, size: Size) -> bool:
        """Whether a size is never negative."""
        found = self.answers.get(size)
        if found is None:
            found = any(_never_negative(size - each) for each in (0, *self.known))
            self.answers[size] = found
        return found

    def assume(self, size: Size) -> None:
        """Take a size as not negative from now on."""
        if not self.holds(size):
            self.assumed.append(size)
            self._learn(size)

    def note(self, size: Size) -> None:
        """Remember what follows from what was assumed."""
        if not self.holds(size):
            self._learn(size)

    def _learn(self, size: Size) -> None:
        self.known.append(size)
        self.answers.clear()

    # Choices ------------------------------------------------------------------------------------

    def decide(self, guard: Guard, ranges: Mapping[Hashable, Size]) -> bool | None:
        """Whether a guard holds for all atoms below their ``ranges``, or for none; else None."""
        least = most = guard.index.constant
        for atom, step in guard.index.terms.items():
            extent = atom.by if isinstance(atom, Remainder) else ranges.get(atom)
            if extent is None:
                return None
            if _never_negative(step):
                most = most + step * (extent - 1)
            elif _never_negative(step * -1):
                least = least + step * (extent - 1)
            else:
                return None
        if self.holds(least - guard.low) and self.holds(guard.high - 1 - most):
            return True
        if self.holds(guard.low - 1 - most) or self.holds(least - guard.high):
            return False
        return self.by_points(guard, ranges)

    def by_points(self, guard: Guard, ranges: Mapping[Hashable, Size]) -> bool | None:
        """The same where lengths are divided: from where to where its one atom may lie."""
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
        """The intervals between 0, the ``points`` that lie inside, and ``extent``, in order."""
        inner = []
        for point in dict.fromkeys(points):
            place = assumed(point)
            if place <= 0:
                self.assume(point * -1)
            elif place >= assumed(extent):
                self.assume(point - extent)
            else:
                inner.append(point)
        bounds = [0, *sorted(inner, key=assumed), extent]
        for low, high in zip(bounds, bounds[1:], strict=False):
            self.assume(high - low)
        for k, low in enumerate(bounds):
            for high in bounds[k + 1 :]:
                self.note(high - low)
        pairs = zip(bounds, bounds[1:], strict=False)
        return [Interval(low, high - low) for low, high in pairs if high - low != 0]


def assumed(size: Size) -> int:
    """A size where open lengths are long."""
    return int(evaluate(size, dict.fromkeys(names_of(size), ASSUMED)))


def _never_negative(size: Size) -> bool:
    """Whether a size is a sum of products of lengths."""
    if not isinstance(size, Length):
        return size >= 0
    return all(
        step >= 0 and all(isinstance(atom, str) for atom, _ in monomial)
        for monomial, step in size.terms
    )


# What there is to decide --------------------------------------------------------------------------


def guards_of(*roots: Scalar) -> Iterator[Guard]:
    """The guards in scalar code."""
    for node in walk(*roots):
        if isinstance(node, Select):
            yield from node.guards
        for index in indices(node):
            yield from _guards_in(index)


def _guards_in(index: Affine) -> Iterator[Guard]:
    for atom in index.terms:
        if isinstance(atom, Clamped):
            yield from atom.guards
        for each in inside(atom):
            yield from _guards_in(each)


def atoms(index: Affine) -> Iterator[Hashable]:
    """The atoms of an index, and those of the indices in them."""
    for atom in index.terms:
        yield atom
        for each in inside(atom):
            yield from atoms(each)


def phases_of(guard: Guard, name: str) -> int:
    """After how many turns of a variable a guard on a remainder holds again; 1 for other guards."""
    for atom in guard.index.terms:
        if isinstance(atom, Remainder) and isinstance(atom.by, int) and len(atom.of.terms) == 1:
            step = atom.of.terms.get(name)
            if isinstance(step, int):
                return atom.by // math.gcd(atom.by, step)
    return 1


def points_of(guard: Guard, atom: Hashable) -> tuple[Size, Size] | None:
    """Where a guard begins and ends to hold along an atom, None where it is not on that alone."""
    terms = guard.index.terms
    step = terms.get(atom)
    if len(terms) != 1 or not isinstance(step, int):
        return None
    low, high = guard.low - guard.index.constant, guard.high - guard.index.constant
    if step > 0:
        return -(-low // step), -(-high // step)
    return -high // -step + 1, -low // -step + 1
