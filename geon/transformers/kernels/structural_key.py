"""Structural keys of kernels: equal for kernels that differ only in their operands.

Kernels with one structure have one source text, so it is printed and compiled once. Names of axes
and ops are not part of the key. Operands are represented by their numbers, nodes of scalar code by
the order in which they are first visited.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable

from ...op_graph.axes.affine import AffineIndex, Quotient, Remainder
from ...op_graph.axes.index_map import InRange
from .ir.nest import Fill, Keep, Loop, Nest, Pass, RowArray, Store
from .ir.scalar_code import (
    NODES,
    Apply,
    Clamped,
    Contracted,
    IndexNumber,
    Kept,
    LengthNumber,
    Load,
    Number,
    RandomBits,
    Reduced,
    Running,
    Scalar,
    Select,
    Wrapped,
    walk,
)
from .products.contraction import Contraction
from .products.row_blocking import Blocked, Extremes, Step, whole_sizes
from .scans.sequential_scan import OrderedLoop


def structure(work: Nest | Contraction | Blocked | OrderedLoop) -> Hashable:
    """Return a hashable key that is equal for kernels of one structure."""
    if isinstance(work, Blocked):
        steps = tuple([step_structure(step) for step in work.steps])
        places = tuple([tuple([(p.number, p.inner) for p in each]) for each in work.places])
        whole = tuple([tuple(whole_sizes(step)) for step in work.whole])
        dtypes = tuple([op.dtype for op in work.operands])
        return Blocked, work.cut, steps, places, whole, dtypes
    return _KeyWriter().of(work)


def step_structure(step: Step) -> Hashable:
    """Return a hashable key that is equal for steps of one structure."""
    if not isinstance(step, Extremes):
        return _KeyWriter().of(step)
    dtypes = tuple([op.dtype for op in step.operands])
    return Extremes, step.op.primitive.name, step.lines, step.length, step.offset, dtypes


def first_occurrences(places: Iterable[Hashable]) -> tuple[int, ...]:
    """Return, for each memory location of a kernel, the position of its first occurrence.

    Kernels of one structure have one text if their operands alias in the same way. None, for an
    absent location, has position -1.
    """
    first: dict[Hashable, int] = {None: -1}
    return tuple([first.setdefault(place, k) for k, place in enumerate(places)])


class _KeyWriter:
    def __init__(self) -> None:
        self.numbers: dict[int, int] = {}
        self.nodes: list[Hashable] = []

    def of(self, work: Nest | Contraction | OrderedLoop) -> Hashable:
        """Return the structure of a whole kernel."""
        body: Hashable
        if isinstance(work, Nest):
            body = self.nest(work)
        elif isinstance(work, OrderedLoop):
            body = self.ordered(work)
        else:
            body = self.contraction(work)
        return type(work), body, tuple(self.nodes), tuple([op.dtype for op in work.operands])

    def contraction(self, work: Contraction) -> Hashable:
        """Return the key of a contraction, including its pieces."""
        groups = (work.batch, work.rows, work.columns, work.summed)
        return (
            tuple([self.loops(loops) for loops in groups]),
            self.value(work.left),
            self.value(work.right),
            work.dtype,
            tuple([self.step(store) for store in work.stores]),
            work.unit,
            tuple([self.contraction(piece) for piece in work.pieces]),
        )

    def ordered(self, work: OrderedLoop) -> Hashable:
        """Return the key of an ordered loop."""
        carries = [
            (
                self.value(carry.first),
                self.value(carry.value),
                carry.dtype,
                carry.store and self.step(carry.store),
            )
            for carry in work.carries
        ]
        stores = tuple([self.step(store) for store in work.stores])
        return work.rows, work.turns, work.reverse, tuple(carries), stores

    def nest(self, nest: Nest) -> Hashable:
        """Return the key of a nest, including its pieces."""
        return (
            self.loops(nest.rows),
            nest.across and self.loops((nest.across,)),
            tuple([self.step(step) for step in nest.steps]),
            tuple([self.step(step) for step in nest.ending]),
            tuple([self.array(array) for array in nest.arrays]),
            nest.fill and self.fill(nest, nest.fill),
            tuple([self.nest(piece) for piece in nest.pieces]),
            nest.holds,
            nest.short and self.nest(nest.short),
            nest.shortness,
            nest.most,
        )

    def fill(self, nest: Nest, fill: Fill) -> Hashable:
        """Return the key of the initial copy, with its size: no loop of the nest shows it."""
        return fill.operand, fill.source, nest.operands[fill.operand].axes.size

    def loops(self, loops: Iterable[Loop]) -> Hashable:
        """Return the names and extents of loops."""
        return tuple([(loop.name, loop.extent) for loop in loops])

    def array(self, array: RowArray) -> Hashable:
        """Return the key of a row array."""
        return array.size, array.dtype

    def step(self, step: Pass | Store | Keep) -> Hashable:
        """Return the key of a pass, a store or a keep."""
        if isinstance(step, Store):
            return step.operand, self.index(step.offset), self.value(step.value), step.dtype
        if isinstance(step, Keep):
            return step.number, self.index(step.offset), self.value(step.value)
        reductions = [
            (
                each.number,
                each.reducer,
                each.states,
                tuple([self.value(x) for x in each.elements]),
                each.position and self.value(each.position),
            )
            for each in step.reductions
        ]
        further: tuple[Store | Keep, ...] = (*step.stores, *step.keeps)
        inner = tuple([self.step(each) for each in further])
        return self.loops(step.loops), tuple(reductions), inner, step.divided

    def value(self, value: Scalar) -> int:
        """Return the number of a node; number the nodes below it first."""
        for node in walk(value, known=self.numbers):
            self.numbers[id(node)] = len(self.numbers)
            self.nodes.append(self.node(node))
        return self.numbers[id(value)]

    def node(self, value: Scalar) -> Hashable:
        """Return the key of a node whose operands are numbered."""
        kind = type(value)
        if isinstance(value, Load):
            return kind, value.operand, self.index(value.offset), value.dtype
        if isinstance(value, Number):
            return kind, repr(value.value), value.dtype
        if isinstance(value, LengthNumber):
            return kind, value.length, value.dtype
        if isinstance(value, IndexNumber):
            return kind, self.index(value.index), value.dtype
        if isinstance(value, Apply):
            args = tuple([self.numbers[id(arg)] for arg in value.args])
            return kind, value.row.name, args, value.attrs, value.dtype
        if isinstance(value, Select):
            chosen = self.numbers[id(value.value)], self.numbers[id(value.other)]
            return kind, self.guards(value.guards), chosen
        if isinstance(value, Wrapped):
            return kind, self.numbers[id(value.position)], value.length
        if isinstance(value, RandomBits):
            stream = tuple([self.numbers[id(x)] for x in (value.seed, value.draw, value.call)])
            return kind, stream, self.index(value.position), value.size, value.dtype
        if isinstance(value, Kept):
            return kind, value.number, self.index(value.offset), value.dtype
        if isinstance(value, Reduced):
            return kind, value.number, value.part, value.dtype
        if isinstance(value, Running):
            return kind, value.part, value.dtype
        assert isinstance(value, Contracted)
        return kind, value.dtype

    def guards(self, guards: Iterable[InRange]) -> Hashable:
        """Return the key of guards."""
        return tuple([(self.index(each.index), each.low, each.high) for each in guards])

    def index(self, index: AffineIndex) -> Hashable:
        """Return the key of an affine index, its terms in order."""
        terms = [(self.atom(atom), step) for atom, step in index.terms.items()]
        return tuple(terms), index.constant

    def atom(self, atom: Hashable) -> Hashable:
        """Return the key of an atom of an affine index."""
        if isinstance(atom, (Quotient, Remainder)):
            return type(atom), self.index(atom.of), atom.by
        if isinstance(atom, Clamped):
            return Clamped, self.index(atom.of), self.guards(atom.guards)
        return ("node", self.value(atom)) if isinstance(atom, NODES) else atom
