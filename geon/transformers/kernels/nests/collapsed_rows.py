"""Short rows that adjoin in what is stored, walked as one loop over the elements of many rows.

What an element is computed of is then told apart by what it changes with: what is the same in all
rows is a pattern of them, what a row has is repeated for each of its elements, and elements that
do not lie as those that are stored are brought beside each other. All else is in vectors.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass, field

from ....op_graph.axes.affine import Affine, Size
from ....op_graph.axes.index_map import Guard
from ..analysis.loop_depth import ELEMENT, ROW, Depths
from ..analysis.work_estimate import EXPENSIVE
from ..ir.nest import Loop, Nest, Pass
from ..ir.scalar_code import (
    Apply,
    IndexNumber,
    LengthNumber,
    Load,
    Number,
    Scalar,
    Select,
    below,
    indices,
    inside,
    walk,
)

Guards = tuple[Guard, ...]
Part = Scalar | Guards

# Elements of a row up to which rows are walked as one, by the bytes of the widest: a row that fills
# a few vectors is as fast by itself.
MOST = {1: 64, 2: 64, 4: 32, 8: 16}
REPEATING = {1: 64, 2: 64, 4: 16, 8: 8}  # the same where what a row has is repeated,
LIGHT = {1: 64, 2: 32, 4: 16, 8: 8}  # and where little else is done;
TURNING = {1: 64, 2: 32, 4: 16, 8: 8}  # where little is done but that rows become columns,
SCATTERED = {1: 16, 2: 8, 4: 8, 8: 3}  # or those of open length that lie apart are put together:
WORTH = 4  # operations for each value that is brought into a tile
SINGLE = 4  # loads of a tile that cost as much as a value computed element by element
VECTOR = 32  # bytes of a row that is a vector by itself
ROWS = 32  # rows that are worth it;
GROUP = 256  # those of known length where each group has its pattern: by themselves they are fast


@dataclass(slots=True)
class FlatParts:
    """What the elements of short rows are computed of: values, and guards of choices.

    ``patterns`` are the same in all rows, ``grouped`` in all that are side by side, but not in what
    is around them; ``repeated`` are the same in one row. ``turned`` are loads of steps along rows,
    ``others`` all that is computed element by element.
    """

    patterns: list[Part] = field(default_factory=list)
    grouped: list[Part] = field(default_factory=list)
    repeated: list[Scalar] = field(default_factory=list)
    turned: list[Load] = field(default_factory=list)
    others: list[Part] = field(default_factory=list)
    scattered: bool = False  # whether some of ``turned`` do not adjoin in columns,
    strays: bool = False  # and some of these in rows neither
    chooses: bool = False
    operations: int = 0  # those that vectors do
    itemsize: int = 1  # of the widest element

    @property
    def brought(self) -> int:
        """What it costs to bring what no row of vectors reads."""
        return len(self.repeated) + len(self.turned) + SINGLE * len(self.others)

    @property
    def is_light(self) -> bool:
        """Whether little is done with what is brought."""
        return self.operations < WORTH * self.brought

    @property
    def most(self) -> int:
        """The elements of a row up to which rows are worth walking as one."""
        if self.is_light and (self.turned or self.others):
            if self.others or self.repeated or self.strays:
                return 0
            return (SCATTERED if self.scattered else TURNING)[self.itemsize]
        if self.operations >= EXPENSIVE * self.brought + 1:
            return MOST[self.itemsize]
        return (LIGHT if self.is_light else REPEATING)[self.itemsize]

    def tests(self, row: Size, rows: Size) -> tuple[Size, ...]:
        """What is not negative where so many rows are worth walking as one, of so many elements.

        Rows of whole vectors are not, but where elements are chosen or rows become columns. Where
        each group of rows has its pattern, ``rows`` are those of one group.
        """
        fill = VECTOR // self.itemsize
        least = GROUP if self.grouped and isinstance(row, int) else ROWS
        rest = row - row // fill * fill - 1
        return (
            row - 1,
            self.most - row,
            rows - least,
            *(() if self.chooses or self.turned else (rest,)),
        )


def flat_parts(nest: Nest) -> FlatParts | None:
    """What a nest of short rows side by side is computed of; None where it is no single loop."""
    (step, *rest), lanes = nest.steps or (None,), nest.across
    if rest or lanes is None or nest.ending or nest.arrays or not isinstance(step, Pass):
        return None
    if len(step.loops) != 1 or step.reductions or step.keeps or not step.stores:
        return None
    last = step.loops[0]
    if not all(is_run(store.offset.terms, last, lanes.name) for store in step.stores):
        return None
    return _Parts(nest, step, lanes.name).found()


def is_run(terms: Mapping[Hashable, Size], last: Loop, lane: str) -> bool:
    """Whether an offset has the elements of rows of ``last`` one after another."""
    direct = all(isinstance(atom, str) for atom in terms)
    return direct and terms.get(last.name) == 1 and terms.get(lane) == last.extent


class _Parts:
    def __init__(self, nest: Nest, step: Pass, lane: str) -> None:
        self.step, self.lane, self.last = step, lane, step.loops[0]
        self.depths = Depths.of(nest)
        self.changes: dict[int, frozenset[str]] = {}
        self.parts = FlatParts()
        self.seen: set[int] = set()

    def found(self) -> FlatParts | None:
        """The parts of what is stored; None where there are others than these."""
        stack = [store.value for store in self.step.stores]
        of_elements = [node for node in walk(*stack) if self.depths.value(node) == ELEMENT]
        if not all(isinstance(node, KINDS) for node in of_elements):
            return None
        sizes = [x.dtype.itemsize for x in [*of_elements, *self.step.stores]]
        self.parts.itemsize = max(size for size in sizes if size in MOST)
        while stack:
            value = stack.pop()
            if id(value) not in self.seen:
                self.seen.add(id(value))
                stack += self.visit(value)
        return self.parts

    def visit(self, value: Scalar) -> Iterable[Scalar]:
        """Note what a value is; those that it is computed of in vectors."""
        parts, depth = self.parts, self.depths.value(value)
        if depth < ELEMENT:
            parts.repeated += [value] if depth == ROW else []
        elif (found := self.pattern(self.names_of(value))) is not None:
            found.append(value)
        elif isinstance(value, Apply):
            parts.operations += EXPENSIVE if value.row.cost == "expensive" else 1
            return value.args
        elif isinstance(value, Select):
            self.choice(value.guards)
            return value.value, value.other
        elif not isinstance(value, Load) or not all(isinstance(x, str) for x in value.offset.terms):
            parts.others.append(value)
        elif not is_run(value.offset.terms, self.last, self.lane):
            parts.turned.append(value)
            if value.offset.step(self.lane) != 1:
                parts.scattered = True
                parts.strays = parts.strays or value.offset.step(self.last.name) != 1
        return ()

    def choice(self, guards: Guards) -> None:
        """Note how it is known what is chosen."""
        self.parts.chooses = True
        depth = max(self.depths.index(guard.index) for guard in guards)
        known = self.parts.patterns, self.parts.grouped, self.parts.others
        if depth == 0 or any(guards in each for each in known):
            return
        found = self.pattern(self.names_in(guard.index for guard in guards))
        (self.parts.others if found is None else found).append(guards)

    def pattern(self, names: frozenset[str]) -> list[Part] | None:
        """Where that belongs which changes with these variables: along a row, and not from one to
        its neighbour; None where it is no such pattern.
        """
        if self.last.name not in names or self.lane in names:
            return None
        return self.parts.patterns if len(names) == 1 else self.parts.grouped

    def names_of(self, value: Scalar) -> frozenset[str]:
        """The variables that a value changes with."""
        for node in walk(value, known=self.changes):
            found = self.names_in(indices(node))
            self.changes[id(node)] = found.union(*[self.changes[id(x)] for x in below(node)])
        return self.changes[id(value)]

    def names_in(self, found: Iterable[Affine]) -> frozenset[str]:
        """The variables that stand in indices, those of nodes in them left out."""
        names, stack = set[str](), list(found)
        while stack:
            for atom in stack.pop().terms:
                names.update([atom] if isinstance(atom, str) else [])
                stack += inside(atom)
        return frozenset(names)


KINDS = (Apply, IndexNumber, LengthNumber, Load, Number, Select)
