"""Structural keys of kernels: equal for kernels that differ only in their operands.

Kernels with one structure have one source text, so it is printed and compiled once. Names of axes
and ops are not part of the key. Operands are represented by their numbers, nodes of scalar code by
the order in which they are first visited.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import Any

from ...op_graph.axes.affine import AffineIndex, Quotient, Remainder
from ...op_graph.axes.index_map import InRange
from ...op_graph.op_graph import Op
from .ir.nest import Call, Fill, Keep, Loop, Nest, Pass, Reduction, Region, RowArray, Store
from .ir.scalar_code import NODES, Clamped, Number, Scalar, walk
from .kernel_lowering import Work
from .products.contraction import Contraction
from .products.row_blocking import Blocked, Extremes, StepOperand, whole_sizes
from .scans.sequential_scan import OrderedLoop, ScanCarry

PARTS = frozenset({
    Nest, Pass, Reduction, Store, Keep, RowArray, Fill, Contraction, OrderedLoop, ScanCarry,
    Extremes, StepOperand, InRange, Quotient, Remainder, Clamped,
})  # fmt: skip
SCALARS = frozenset(NODES)


def structure(work: Work) -> Hashable:
    """Return a hashable key that is equal for kernels of one structure. Regions share none."""
    writer = _KeyWriter()
    return writer.kernel(work), tuple(writer.nodes)


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

    def kernel(self, work: Work) -> Hashable:
        """Return the key of a whole kernel, with what none of its parts shows."""
        if isinstance(work, Call):
            values = tuple([(x.dtype, x.axes) for x in (work.op, *work.op.args)])
            return work.op.primitive.name, work.op.attrs, values
        if isinstance(work, Region):
            return work
        if isinstance(work, Blocked):
            whole = tuple([tuple(whole_sizes(step)) for step in work.whole])
            return work.cut, whole, *map(self.key, (work.steps, work.places, work.operands))
        filled = work.fill if isinstance(work, Nest) else None
        return self.key(work), filled and work.operands[filled.operand].axes.size

    def key(self, part: Any) -> Hashable:
        """Return the key of a part of a kernel: that of all its fields."""
        kind = type(part)
        if kind in SCALARS:
            return self.number(part)
        if kind is AffineIndex:
            terms = [(self.key(atom), step) for atom, step in part.terms.items()]
            return tuple(terms), part.constant
        if kind is tuple:
            return tuple([self.key(each) for each in part])
        if kind is Loop:
            return part.name, part.extent
        if kind in PARTS:
            name = part.op.primitive.name if kind is Extremes else None
            return name, self.fields(part)
        return part.dtype if isinstance(part, Op) else part

    def fields(self, part: Any) -> Hashable:
        """Return the kind of a part, and the keys of its fields."""
        kind = type(part)
        return kind, *[self.key(getattr(part, name)) for name in kind.__match_args__]

    def number(self, value: Scalar) -> int:
        """Return the number of a node; number the nodes below it first."""
        for node in walk(value, known=self.numbers):
            self.numbers[id(node)] = len(self.numbers)
            literal = repr(node.value) if isinstance(node, Number) else None  # 0.0 is not -0.0
            self.nodes.append(self.fields(node) if literal is None else (literal, node.dtype))
        return self.numbers[id(value)]
