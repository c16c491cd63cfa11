"""``OrderedLoop``: a scan whose body computes elements of the same place, as one kernel.

Each row of it, an element of the carries, goes through all turns by itself, its carries in
registers. So an ensemble of small systems is taken row by row; vectors are of neighbouring rows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ....op_graph.axes.affine import Affine, Size, variable
from ....op_graph.axes.axes import Axes
from ....op_graph.axes.index_map import Index
from ....op_graph.core.traversal import is_bound
from ....op_graph.op_graph import NO_AXES, Op, post_order
from ....op_graph.regions.scan_op import ScanAttributes
from ....op_graph.values.dtypes import DType
from ..ir.nest import Store
from ..ir.scalar_code import Load, Running, Scalar, indices, walk
from ..nests.inlining import Elements, Operands

TURN, ROW = "the turn", "the row"  # the variables of offsets
ONE = variable(ROW)


@dataclass(frozen=True, eq=False, slots=True)
class Carried:
    """A carry: its value before all turns, what it is after one, and where the last is stored."""

    first: Scalar
    value: Scalar
    dtype: DType
    store: Store | None


@dataclass(frozen=True, eq=False, slots=True)
class OrderedLoop:
    """``turns`` of all ``carries`` for each of so many ``rows``; ``stores`` are run in each turn.

    Scalar code has the carries as ``Running`` parts by number, and offsets the variables ``TURN``
    and ``ROW``. ``operands`` are as in a nest.
    """

    op: Op
    rows: Size
    turns: Size
    reverse: bool
    carries: tuple[Carried, ...]
    stores: tuple[Store, ...]
    operands: tuple[Op, ...]


class OtherPlaces(Exception):
    """A body that reads other places than its own."""


def of_rows(region: Op, results: Sequence[Op], operands: Operands) -> OrderedLoop | None:
    """The scan as one kernel whose rows are all elements of a carry; None where its body is more
    than elements of one place.
    """
    a = ScanAttributes(region.attrs)
    roots = a.body.results
    rows = max([op.axes for op in roots], key=len, default=NO_AXES)
    if any(op.axes is not NO_AXES and op.axes is not rows for op in roots):
        return None
    if rows.size == 0:
        return None  # there is no element, and what is one everywhere has no memory to show
    if rows.size != 1 and any(op.axes is NO_AXES for op in roots):
        return None  # what is not of a row is computed once
    if not all(is_element(op) for op in post_order(roots)):
        return None
    try:
        return _Maker(region, a, rows, results, operands).made()
    except OtherPlaces:
        return None


def is_element(op: Op) -> bool:
    """Whether an element of an op is made of elements alone."""
    row = op.primitive
    if row.name in ("parameter", "iota") or is_bound(op):
        return True
    plain = row.kind == "elementwise" or (row.index_map is not None and len(op.args) == 1)
    return plain and not row.acts


class _Maker:
    def __init__(
        self, region: Op, a: ScanAttributes, rows: Axes, results: Sequence[Op], operands: Operands
    ) -> None:
        self.region, self.a, self.rows, self.operands = region, a, rows, operands
        self.results = {op.attrs[0]: op for op in results}
        self.elements = Elements(operands)
        self.index: dict[str, Affine] = {name: variable(name) for name in rows.names}
        for number, parameter in enumerate(a.body.parameters[:-1]):
            self.elements.known[parameter] = self.parameter(number, parameter)

    def made(self) -> OrderedLoop:
        """The kernel."""
        body, carries, stores = self.a.body, [], []
        for k, result in enumerate(body.results):
            value = self.elements.value(result, self.index)
            if k >= self.a.carries:
                stores.append(self.store(self.results[k], result, value, True))
                continue
            first = self.read(self.region.args[k], self.index)
            last = None
            if k in self.results:
                running = self.elements.code(Running, k, False, result.dtype)
                last = self.store(self.results[k], result, running, False)
            carries.append(Carried(first, value, result.dtype, last))
        turns = self.a.axis.expression
        loop = OrderedLoop(
            self.region, self.rows.size, turns, self.a.reverse, tuple(carries), tuple(stores),
            tuple(self.operands.numbers),
        )  # fmt: skip
        return self.merged(loop)

    def merged(self, loop: OrderedLoop) -> OrderedLoop:
        """The loop, where all its indices are of rows as one axis."""
        if len(self.rows) > 1:
            values = [carry.value for carry in loop.carries] + [s.value for s in loop.stores]
            values += [carry.first for carry in loop.carries]
            found = [index for value in walk(*values) for index in indices(value)]
            if any(name in index.terms for index in found for name in self.rows.names):
                raise OtherPlaces
        return loop

    def parameter(self, number: int, parameter: Op) -> Callable[[Index], Scalar]:
        """What says the element of a parameter: of a carry, that of the row."""

        def element(index: Index) -> Scalar:
            if number < self.a.carries:
                if any(index[name] != self.index[name] for name in parameter.axes.names):
                    raise OtherPlaces
                return self.elements.code(Running, number, False, parameter.dtype)
            arg = self.region.args[number]
            if number >= self.a.before_captures:
                return self.read(arg, index)
            if self.walks(parameter, index):
                return self.load(arg, self.offset(parameter, True))
            return self.read(arg, {**index, self.a.axis.name: variable(TURN)})

        return element

    def walks(self, op: Op, index: Index) -> bool:
        """Whether what lies as ``op`` does, over several axes, is read as these one after another.

        Arguments are then in the order of their axes.
        """
        own = len(self.rows) > 1 and op.axes is self.rows
        return own and all(index[name] == each for name, each in self.index.items())

    def read(self, arg: Op, index: Index) -> Scalar:
        """The element of an argument; of one that lies as rows do, by the number of the row."""
        if self.walks(arg, index):
            return self.load(arg, self.row())
        return self.elements.value(arg, index)

    def load(self, arg: Op, offset: Affine) -> Scalar:
        """An element of memory, of an argument that lies in the order of its axes."""
        held = self.operands.base.get(arg, arg)  # a view of all, such as a rename, shows another's
        assert held.axes.size == arg.axes.size, f"{arg} shows a part of {held}"
        return self.elements.code(Load, self.operands.number(held), offset, arg.dtype)

    def store(self, op: Op, like: Op, value: Scalar, stacked: bool) -> Store:
        """What puts a value into a result."""
        return Store(self.operands.number(op), self.offset(like, stacked), value, op.dtype)

    def offset(self, like: Op, stacked: bool) -> Affine:
        """Where an element like that of ``like`` lies."""
        found = variable(TURN) * like.axes.size if stacked else Affine()
        return found + (Affine() if like.axes is NO_AXES else self.row())

    def row(self) -> Affine:
        """The number of the row, by what indices of elements have."""
        return variable(self.rows.names[0]) if len(self.rows) == 1 else ONE
