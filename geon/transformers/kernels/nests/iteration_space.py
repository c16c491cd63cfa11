"""Iteration space of a nest: extents, loop variables and merging of its axes."""

from __future__ import annotations

from collections.abc import Container, Iterable, Sequence

from ....op_graph.axes.affine import AffineIndex, Size
from ....op_graph.axes.lengths import product
from ...sizes.blocks import CACHE_LINE_BYTES
from ...sizes.limits import AVX2_BYTES
from ..analysis.index_boxes import Interval
from ..analysis.index_uses import Uses
from ..analysis.loop_depth import MAX_PERIOD_TURNS
from ..ir.nest import Loop
from ..ir.scalar_code import NODES
from .mixed_radix import digits_of

Groups = list[tuple[str, ...]]  # the axes of each loop
MAX_NEAR_STRIDE_ELEMENTS = CACHE_LINE_BYTES // 4  # maximum stride of neighbours in one cache line
MIN_LANES = AVX2_BYTES // 4  # minimum extent of an axis for vector lanes


def has_computed_position(uses: Uses) -> bool:
    """Return True if a memory offset depends on a computed position."""
    return any(isinstance(atom, NODES) for each in uses.offsets for atom in each.terms)


def goes_up(position: AffineIndex, loops: Sequence[Loop]) -> bool:
    """Return True if ``position`` increases with each iteration of ``loops`` (outermost first)."""
    least: Size = 1
    for loop in reversed(loops):
        step = position.step(loop.name)
        more = isinstance(step, int) and isinstance(least, int) and step > least
        if step != least and not more:
            return False
        least = step * loop.extent
    return all(isinstance(atom, str) for atom in position.terms)


class IterationSpace:
    """Axes by name: extents, start indices, loop variables, and digits of divided axes."""

    def __init__(self, extents: dict[str, Size]) -> None:
        self.extents = extents
        self.low: dict[str, Size] = {}
        self.variable = {name: k for k, name in enumerate(extents)}
        self.digits: dict[str, tuple[str, ...]] = {}

    def narrow(self, name: str, interval: Interval) -> None:
        """Restrict an axis to an interval."""
        self.extents[name], self.low[name] = interval.turns, interval.low

    def name(self, axes: tuple[str, ...]) -> str:
        """Return the variable of the loop over these axes."""
        return f"{'i' if len(axes) == 1 else 'j'}_{self.variable[axes[0]]}"

    def divided(self, order: Sequence[str]) -> tuple[str, ...]:
        """Return the axes with divided ones replaced by their digits."""
        return tuple([digit for name in order for digit in self.digits.get(name, (name,))])

    def divide(self, order: Sequence[str], uses: Uses) -> bool:
        """Iterate divided axes by their digits; return False if there are none."""
        for name in order:
            lengths = digits_of(uses.indices, self.name((name,)), self.extents[name])
            digits = tuple([f"{name} digit {k}" for k in range(len(lengths))])
            if digits:
                self.digits[name] = digits
                self.extents.update(zip(digits, lengths, strict=True))
                self.variable.update({d: len(self.variable) + k for k, d in enumerate(digits)})
        return bool(self.digits)

    def across(self, order: tuple[str, ...], uses: Uses) -> tuple[str | None, set[str]]:
        """Return the axis to put into vector lanes, or None, and the axes closer in memory.

        It is an axis along which a load is contiguous while the innermost loop would stride through
        it. Its indices are processed together, so that cache lines are used in full. Axes shorter
        than ``MIN_LANES`` are skipped in favour of longer ones around them.
        """
        names = {self.name((n,)): n for n in order}
        for offset in uses.offsets:
            steps: dict[str, int] = {}
            for atom, step in offset.terms.items():
                if isinstance(atom, str) and atom in names and isinstance(step, int):
                    steps[names[atom]] = step
            last = offset.step(self.name((order[-1],)))
            jump = abs(last) if isinstance(last, int) else MAX_NEAR_STRIDE_ELEMENTS + 1
            near = sorted(
                (n for n, s in steps.items() if 0 < s <= MAX_NEAR_STRIDE_ELEMENTS),
                key=steps.__getitem__,
            )
            long = [n for n in near if not self.few(n)]
            if long and steps[long[0]] < jump:
                return long[0], set(near[: near.index(long[0])])
            if not long and jump > 1 and near and steps[near[0]] == 1:
                return near[0], set()
        return None, set()

    def few(self, name: str) -> bool:
        """Return True if an axis is too short for vector lanes."""
        extent = self.extents[name]
        return isinstance(extent, int) and extent < MIN_LANES

    def merged(self, order: Sequence[str], uses: Uses, apart: Container[str] = ()) -> Groups:
        """Merge neighbouring axes that every offset traverses as one.

        Axes in ``apart`` are restricted to intervals and are not merged with outer ones.
        """
        groups: Groups = []
        for name in order:
            if groups and name not in apart and self.mergeable(groups[-1][-1], name, uses):
                groups[-1] = (*groups[-1], name)
            else:
                groups.append((name,))
        return groups

    def mergeable(self, outer: str, inner: str, uses: Uses) -> bool:
        """Return True if every offset and index value traverses two neighbouring axes as one."""
        return self.adjoin(outer, inner, uses.values, (*uses.offsets, *uses.numbers))

    def adjoin(
        self, outer: str, inner: str, values: Container[object], indices: Iterable[AffineIndex]
    ) -> bool:
        """Return True if ``indices`` traverse two axes as one and neither is in ``values``."""
        first, second = self.name((outer,)), self.name((inner,))
        if first in values or second in values:
            return False
        extent = self.extents[inner]
        return all(each.step(first) == each.step(second) * extent for each in indices)

    def lengthened(self, groups: Groups, uses: Uses, enough: int) -> Groups:
        """Merge a last group of fewer than ``enough`` iterations with those around it.

        Their loads, index values and guards are then buffered.
        """
        *outer, last = groups
        length = product(self.extents[n] for n in last)
        empty = any(self.extents[n] == 0 for group in groups for n in group)
        if empty or not isinstance(length, int) or not 1 < length < enough:
            return groups  # buffering would read an element of an empty operand
        while outer and isinstance(length, int) and length <= MAX_PERIOD_TURNS:
            if has_computed_position(uses) or not self.adjoin(
                outer[-1][-1], last[0], uses.needed, uses.places
            ):
                break
            last = (*outer.pop(), *last)
            length = product(self.extents[n] for n in last)
        return [*outer, last]
