"""Short rows that adjoin in what is stored, walked as one loop over the elements of many rows.

What an element is computed of is then told apart by what it changes with: what is the same in all
rows is a pattern of them, what a row has is repeated for each of its elements, and elements that
do not lie as those that are stored are brought beside each other. All else is in vectors.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass, field

from ...op_graph.affine import Affine, Size
from ...op_graph.index_map import Guard
from .depths import ELEMENT, ROW, Depths
from .scalar import (
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
from .types import Loop, Nest, Pass
from .weights import EXPENSIVE

Guards = tuple[Guard, ...]
Part = Scalar | Guards

# Elements of a row up to which rows are walked as one, by the bytes of the widest: a row that fills
# a few vectors is as fast by itself.
MOST = {1: 64, 2: 64, 4: 32, 8: 16}
REPEATING = {1: 64, 2: 64, 4: 16, 8: 8}  # the same where what a row has is repeated,
LIGHT = {1: 64, 2: 32, 4: 16, 8: 8}  # and where little else is done;
TURNING = {1: 64, 2: 32, 4: 16, 8: 8}  # where little is done but that rows become columns:
WORTH = 4  # operations for each value that is brought into a tile
SINGLE = 4  # loads of a tile that cost as much as a value computed element by element
VECTOR = 32  # bytes of a row that is a vector by itself
ROWS = 32  # rows that are worth it


@dataclass(slots=True)
class FlatParts:
    """What the elements of short rows are computed of: values, and guards of choices.

    ``patterns`` are the same in all rows, ``repeated`` the same in one; ``turned`` are loads of
    steps along rows, ``others`` all that is computed element by element.
    """

    patterns: list[Part] = field(default_factory=list)
    repeated: list[Scalar] = field(default_factory=list)
    turned: list[Load] = field(default_factory=list)
    others: list[Part] = field(default_factory=list)
    scattered: bool = False  # whether some of ``turned`` do not adjoin in columns
    chooses: bool = False
    operations: int = 0  # those that vectors do
    itemsize: int = 1  # of the widest element

    @property
    def most(self) -> int:
        """The elements of a row up to which rows are worth walking as one."""
        brought = len(self.repeated) + len(self.turned) + SINGLE * len(self.others)
        heavy = self.operations >= WORTH * brought
        if not heavy and (self.turned or self.others):
            return 0 if self.scattered or self.others or self.repeated else TURNING[self.itemsize]
        if self.operations >= EXPENSIVE * brought + 1:
            return MOST[self.itemsize]
        return (REPEATING if heavy else LIGHT)[self.itemsize]

    def tests(self, row: Size, rows: Size) -> tuple[Size, ...]:
        """What is not negative where so many rows are worth walking as one, of so many elements.

        Rows of whole vectors are not, but where elements are chosen or rows become columns.
        """
        fill = VECTOR // self.itemsize
        rest = row - row // fill * fill - 1
        return (
            row - 2,
            self.most - row,
            rows - ROWS,
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
        elif self.is_pattern(value):
            parts.patterns.append(value)
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
            parts.scattered = parts.scattered or value.offset.step(self.lane) != 1
        return ()

    def choice(self, guards: Guards) -> None:
        """Note how it is known what is chosen."""
        self.parts.chooses = True
        depth = max(self.depths.index(guard.index) for guard in guards)
        if depth == 0 or guards in self.parts.patterns or guards in self.parts.others:
            return
        found = self.names_in(guard.index for guard in guards)
        same = found == {self.last.name}
        (self.parts.patterns if same else self.parts.others).append(guards)

    def is_pattern(self, value: Scalar) -> bool:
        """Whether a value changes along a row, and is the same in all of them."""
        for node in walk(value, known=self.changes):
            found = self.names_in(indices(node))
            self.changes[id(node)] = found.union(*[self.changes[id(x)] for x in below(node)])
        return self.changes[id(value)] == {self.last.name}

    def names_in(self, found: Iterable[Affine]) -> frozenset[str]:
        """The variables that stand in indices, those of nodes in them left out."""
        names, stack = set[str](), list(found)
        while stack:
            for atom in stack.pop().terms:
                names.update([atom] if isinstance(atom, str) else [])
                stack += inside(atom)
        return frozenset(names)


KINDS = (Apply, IndexNumber, LengthNumber, Load, Number, Select)
