"""Collapsed rows: one loop over the elements of many short rows that are contiguous in the output.

Subexpressions are classified by the loops that they vary with. A value that is equal in all rows is
a pattern; a value that is constant in a row is repeated for each of its elements; elements that are
not contiguous like the stored ones are gathered into a tile. The rest is computed in vectors.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass, field

from ....op_graph.axes.affine import AffineIndex, Size
from ....op_graph.axes.index_map import InRange
from ..analysis.loop_depth import ELEMENT_DEPTH, ROW_DEPTH, Depths
from ..analysis.op_counts import ELEMENTARY_COST_OPS, operations
from ..ir.nest import Loop, Nest, Pass
from ..ir.scalar_code import (
    Apply,
    IndexNumber,
    LengthNumber,
    Load,
    Number,
    Scalar,
    Select,
    children_of,
    indices,
    inner_indices,
    walk,
)

Guards = tuple[InRange, ...]
Part = Scalar | Guards

# Maximum elements of a row for collapsing, by the bytes of the widest element: a row that fills a
# few vectors is as fast by itself.
MAX_ROW_ELEMENTS = {1: 64, 2: 64, 4: 32, 8: 16}
MAX_REPEATED_ROW_ELEMENTS = {1: 64, 2: 64, 4: 16, 8: 8}  # the same, if values of a row are repeated
MAX_LIGHT_ROW_ELEMENTS = {
    1: 64,
    2: 32,
    4: 16,
    8: 8,
}  # the same, if there is little arithmetic besides, also for transposes
MAX_SCATTERED_ROW_ELEMENTS = {
    1: 16,
    2: 8,
    4: 8,
    8: 3,
}  # the same, if transposed loads have no unit stride
MIN_OPS_PER_TILED_VALUE = 4  # operations per gathered value, below which a nest is light
UNTILED_VALUE_LOADS = 4  # cost of a value computed one by one, in loads of a tile
VECTOR_BYTES = 32  # bytes of a row that fills a vector by itself
MIN_COLLAPSED_ROWS = 32  # minimum number of rows
MIN_GROUPED_ROWS = (
    256  # the same for rows of known length if each group has its pattern: these are fast alone
)


@dataclass(slots=True)
class FlatParts:
    """Classified subexpressions (values and guards) of short rows.

    ``patterns`` are equal in all rows. ``grouped`` are equal in all rows of the lane loop, but vary
    with the outer loops. ``repeated`` are constant in a row. ``turned`` are loads with constant
    strides that are not contiguous like the stores (transposed). ``others`` are evaluated one by
    one. ``scattered`` and ``strays`` tell that loads in ``turned`` have no unit stride across rows,
    or neither across nor along rows. ``chooses`` tells that there are selects. ``operations`` is
    the number of vector operations, ``itemsize`` the bytes of the widest element.
    """

    patterns: list[Part] = field(default_factory=list)
    grouped: list[Part] = field(default_factory=list)
    repeated: list[Scalar] = field(default_factory=list)
    turned: list[Load] = field(default_factory=list)
    others: list[Part] = field(default_factory=list)
    scattered: bool = False
    strays: bool = False
    chooses: bool = False
    operations: int = 0
    itemsize: int = 1

    @property
    def brought(self) -> int:
        """Return the cost of gathering the values that are not loaded or computed in vectors."""
        return len(self.repeated) + len(self.turned) + UNTILED_VALUE_LOADS * len(self.others)

    @property
    def is_light(self) -> bool:
        """Return True if there is little arithmetic per gathered value."""
        return self.operations < MIN_OPS_PER_TILED_VALUE * self.brought

    @property
    def most(self) -> int:
        """Return the maximum elements of a row for which collapsing pays; 0 if it never does."""
        if self.is_light and (self.turned or self.others):
            if self.others or self.repeated or self.strays:
                return 0
            return (MAX_SCATTERED_ROW_ELEMENTS if self.scattered else MAX_LIGHT_ROW_ELEMENTS)[
                self.itemsize
            ]
        if self.operations >= ELEMENTARY_COST_OPS * self.brought + 1:
            return MAX_ROW_ELEMENTS[self.itemsize]
        return (MAX_LIGHT_ROW_ELEMENTS if self.is_light else MAX_REPEATED_ROW_ELEMENTS)[
            self.itemsize
        ]

    def tests(self, row: Size, rows: Size) -> tuple[Size, ...]:
        """Return the sizes that must not be negative for collapsing to pay.

        ``row`` is the number of elements of a row, ``rows`` the number of rows; where each group of
        rows has its own pattern, that of a group. Rows of whole vectors are not collapsed, unless
        there are selects or transposed loads.
        """
        fill = VECTOR_BYTES // self.itemsize
        least = MIN_GROUPED_ROWS if self.grouped and isinstance(row, int) else MIN_COLLAPSED_ROWS
        rest = row - row // fill * fill - 1
        return (
            row - 1,
            self.most - row,
            rows - least,
            *(() if self.chooses or self.turned else (rest,)),
        )


def flat_parts(nest: Nest) -> FlatParts | None:
    """Return the classified subexpressions of a nest that is one loop over short rows, or None."""
    (step, *rest), lanes = nest.steps or (None,), nest.across
    if rest or lanes is None or nest.ending or nest.arrays or not isinstance(step, Pass):
        return None
    if len(step.loops) != 1 or step.reductions or step.keeps or not step.stores:
        return None
    last = step.loops[0]
    if not all(is_run(store.offset.terms, last, lanes.name) for store in step.stores):
        return None
    return _CollapsedRowParts(nest, step, lanes.name).found()


def is_run(terms: Mapping[Hashable, Size], last: Loop, lane: str) -> bool:
    """Return True if an offset traverses the rows of ``last`` contiguously."""
    direct = all(isinstance(atom, str) for atom in terms)
    return direct and terms.get(last.name) == 1 and terms.get(lane) == last.extent


class _CollapsedRowParts:
    def __init__(self, nest: Nest, step: Pass, lane: str) -> None:
        self.step, self.lane, self.last = step, lane, step.loops[0]
        self.depths = Depths.of(nest)
        self.changes: dict[int, frozenset[str]] = {}
        self.parts = FlatParts()
        self.seen: set[int] = set()

    def found(self) -> FlatParts | None:
        """Return the parts of the stored values, or None if a node kind cannot be collapsed."""
        stack = [store.value for store in self.step.stores]
        of_elements = [node for node in walk(*stack) if self.depths.value(node) == ELEMENT_DEPTH]
        if not all(isinstance(node, KINDS) for node in of_elements):
            return None
        sizes = [x.dtype.itemsize for x in [*of_elements, *self.step.stores]]
        self.parts.itemsize = max(size for size in sizes if size in MAX_ROW_ELEMENTS)
        while stack:
            value = stack.pop()
            if id(value) not in self.seen:
                self.seen.add(id(value))
                stack += self.visit(value)
        return self.parts

    def visit(self, value: Scalar) -> Iterable[Scalar]:
        """Classify a value, and return the operands that vectors compute it from."""
        parts, depth = self.parts, self.depths.value(value)
        if depth < ELEMENT_DEPTH:
            parts.repeated += [value] if depth == ROW_DEPTH else []
        elif (found := self.pattern(self.names_of(value))) is not None:
            found.append(value)
        elif isinstance(value, Apply):
            parts.operations += operations(value)
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
        """Classify the guards of a select."""
        self.parts.chooses = True
        depth = max(self.depths.index(guard.index) for guard in guards)
        known = self.parts.patterns, self.parts.grouped, self.parts.others
        if depth == 0 or any(guards in each for each in known):
            return
        found = self.pattern(self.names_in(guard.index for guard in guards))
        (self.parts.others if found is None else found).append(guards)

    def pattern(self, names: frozenset[str]) -> list[Part] | None:
        """Return the list for values that vary with these variables.

        Return None if they do not vary along a row, or vary from one row to the next.
        """
        if self.last.name not in names or self.lane in names:
            return None
        return self.parts.patterns if len(names) == 1 else self.parts.grouped

    def names_of(self, value: Scalar) -> frozenset[str]:
        """Return the variables that a value varies with."""
        for node in walk(value, known=self.changes):
            found = self.names_in(indices(node))
            self.changes[id(node)] = found.union(*[self.changes[id(x)] for x in children_of(node)])
        return self.changes[id(value)]

    def names_in(self, found: Iterable[AffineIndex]) -> frozenset[str]:
        """Return the variables in indices, except those inside of nodes."""
        names, stack = set[str](), list(found)
        while stack:
            for atom in stack.pop().terms:
                names.update([atom] if isinstance(atom, str) else [])
                stack += inner_indices(atom)
        return frozenset(names)


KINDS = (Apply, IndexNumber, LengthNumber, Load, Number, Select)
