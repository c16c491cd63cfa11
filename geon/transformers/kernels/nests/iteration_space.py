"""The axes that the loops of a nest go over: how far, by which names, and which are one loop."""

from __future__ import annotations

from collections.abc import Container, Iterable, Sequence

from ....op_graph.axes.affine import Affine, Size
from ....op_graph.axes.lengths import product
from ..analysis.index_boxes import Interval
from ..analysis.index_uses import Uses
from ..ir.nest import Loop
from ..ir.scalar_code import NODES
from .buffered_loads import PERIOD
from .mixed_radix import digits_of

Groups = list[tuple[str, ...]]  # axes, those of one loop together
NEAR = 16  # elements from one index to the next that still share a line of cache
FEW = 8  # indices that are too few to be taken side by side


def computed(uses: Uses) -> bool:
    """Whether a position in memory is computed."""
    return any(isinstance(atom, NODES) for each in uses.offsets for atom in each.terms)


def goes_up(position: Affine, loops: Sequence[Loop]) -> bool:
    """Whether each turn of loops, the outermost first, has a position behind those before."""
    least: Size = 1
    for loop in reversed(loops):
        step = position.step(loop.name)
        more = isinstance(step, int) and isinstance(least, int) and step > least
        if step != least and not more:
            return False
        least = step * loop.extent
    return all(isinstance(atom, str) for atom in position.terms)


class Space:
    """Axes by name: how many indices are walked, from which on, and the digits of divided ones."""

    def __init__(self, extents: dict[str, Size]) -> None:
        self.extents = extents
        self.low: dict[str, Size] = {}
        self.variable = {name: k for k, name in enumerate(extents)}
        self.digits: dict[str, tuple[str, ...]] = {}

    def narrow(self, name: str, interval: Interval) -> None:
        """Walk no more than an interval of an axis."""
        self.extents[name], self.low[name] = interval.turns, interval.low

    def name(self, axes: tuple[str, ...]) -> str:
        """The variable of the loop over these axes."""
        return f"{'i' if len(axes) == 1 else 'j'}_{self.variable[axes[0]]}"

    def divided(self, order: Sequence[str]) -> tuple[str, ...]:
        """The axes with the digits of divided ones in their places."""
        return tuple([digit for name in order for digit in self.digits.get(name, (name,))])

    def divide(self, order: Sequence[str], uses: Uses) -> bool:
        """Walk axes that are divided by their digits; False where there are none."""
        for name in order:
            lengths = digits_of(uses.indices, self.name((name,)), self.extents[name])
            digits = tuple([f"{name} digit {k}" for k in range(len(lengths))])
            if digits:
                self.digits[name] = digits
                self.extents.update(zip(digits, lengths, strict=True))
                self.variable.update({d: len(self.variable) + k for k, d in enumerate(digits)})
        return bool(self.digits)

    def across(self, order: tuple[str, ...], uses: Uses) -> tuple[str | None, set[str]]:
        """The axis along which a load is adjacent where the last loop would jump through it, and
        the axes that are nearer.

        Its indices are then taken side by side, so that each line of cache is used as a whole. An
        axis that is too short for that leaves it to the one around it.
        """
        names = {self.name((n,)): n for n in order}
        for offset in uses.offsets:
            steps: dict[str, int] = {}
            for atom, step in offset.terms.items():
                if isinstance(atom, str) and atom in names and isinstance(step, int):
                    steps[names[atom]] = step
            last = offset.step(self.name((order[-1],)))
            jump = abs(last) if isinstance(last, int) else NEAR + 1
            near = sorted((n for n, s in steps.items() if 0 < s <= NEAR), key=steps.__getitem__)
            long = [n for n in near if not self.few(n)]
            if long and steps[long[0]] < jump:
                return long[0], set(near[: near.index(long[0])])
            if not long and jump > 1 and near and steps[near[0]] == 1:
                return near[0], set()
        return None, set()

    def nearer(self, around: Groups, row: Size, uses: Uses) -> Groups:
        """Of groups of axes around short rows, the last of which is taken side by side, those that
        share lines of what a load jumps through along that one.

        One after the other for the same lanes, they use a line while it is in a cache. A step as
        long as a ``row``, whose length may be open, is a short one.
        """

        def is_near(step: Size) -> bool:
            return step == row or (isinstance(step, int) and abs(step) <= NEAR)

        found: Groups = []
        for offset in uses.offsets:
            *steps, along = [offset.step(self.name((group[-1],))) for group in around]
            if not is_near(along):
                pairs = zip(around, steps, strict=False)  # but the last
                found += [group for group, step in pairs if step != 0 and is_near(step)]
        return [group for group in around if group in found]

    def few(self, name: str) -> bool:
        """Whether an axis is too short to be taken side by side."""
        extent = self.extents[name]
        return isinstance(extent, int) and extent < FEW

    def merged(self, order: Sequence[str], uses: Uses, apart: Container[str] = ()) -> Groups:
        """Neighbouring axes that every offset walks as one; ``apart`` are some of which parts are
        walked, which are one with none around them.
        """
        groups: Groups = []
        for name in order:
            if groups and name not in apart and self.mergeable(groups[-1][-1], name, uses):
                groups[-1] = (*groups[-1], name)
            else:
                groups.append((name,))
        return groups

    def mergeable(self, outer: str, inner: str, uses: Uses) -> bool:
        """Whether every offset, and every number that is an index, walks two neighbouring axes as
        one.
        """
        return self.adjoin(outer, inner, uses.values, (*uses.offsets, *uses.numbers))

    def adjoin(
        self, outer: str, inner: str, values: Container[object], indices: Iterable[Affine]
    ) -> bool:
        """Whether these indices walk two neighbouring axes as one, and they are none of the
        ``values`` that are needed.
        """
        first, second = self.name((outer,)), self.name((inner,))
        if first in values or second in values:
            return False
        extent = self.extents[inner]
        return all(each.step(first) == each.step(second) * extent for each in indices)

    def lengthened(self, groups: Groups, uses: Uses, enough: int) -> Groups:
        """Groups of which the last, where its loop has not ``enough`` turns, is one with those
        around it, whose loads, numbers and choices are then read ahead.
        """
        *outer, last = groups
        length = product(self.extents[n] for n in last)
        empty = any(self.extents[n] == 0 for group in groups for n in group)
        if empty or not isinstance(length, int) or not 1 < length < enough:
            return groups  # of nothing, no element can be read ahead
        while outer and isinstance(length, int) and length <= PERIOD:
            if computed(uses) or not self.adjoin(outer[-1][-1], last[0], uses.needed, uses.places):
                break
            last = (*outer.pop(), *last)
            length = product(self.extents[n] for n in last)
        return [*outer, last]
