"""``OrderedLoop``: a scan whose body reads elements at its own index only, as one kernel.

Each row, an element of the carries, runs all iterations by itself, with its carries in registers.
An ensemble of small systems is processed row by row; vector lanes are neighbouring rows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ....lazy_dataclasses import dataclass
from ....op_graph.axes.affine import AffineIndex, Size, variable
from ....op_graph.axes.axes import Axes
from ....op_graph.axes.index_map import Index
from ....op_graph.core.traversal import is_bound
from ....op_graph.op_graph import NO_AXES, Op, post_order
from ....op_graph.regions.scan_op import ScanAttributes
from ....op_graph.values.dtypes import DType
from ..ir.nest import Store
from ..ir.scalar_code import Load, Running, Scalar, indices, walk
from ..nests.inlining import Elements, OperandInliner

TURN, ROW = "the turn", "the row"  # offset variables: iteration number, row number
ONE = variable(ROW)


@dataclass(frozen=True, eq=False, slots=True)
class ScanCarry:
    """A carry: ``first`` before all iterations, ``value`` after one, ``store`` of the last."""

    first: Scalar
    value: Scalar
    dtype: DType
    store: Store | None


@dataclass(frozen=True, eq=False, slots=True)
class OrderedLoop:
    """``turns`` iterations of all ``carries`` for each of ``rows``, with ``stores`` in each.

    Scalar code has the carries as ``Running`` parts by number. Offsets have the variables ``TURN``
    and ``ROW``. ``operands`` are as in a nest.
    """

    op: Op
    rows: Size
    turns: Size
    reverse: bool
    carries: tuple[ScanCarry, ...]
    stores: tuple[Store, ...]
    operands: tuple[Op, ...]


class OtherPlaces(Exception):
    """Raised for a body that reads elements at other indices than its own."""


def of_rows(region: Op, results: Sequence[Op], operands: OperandInliner) -> OrderedLoop | None:
    """Return the scan as one kernel with a row for each element of a carry.

    Return None if the body depends on elements at other indices.
    """
    a: ScanAttributes = region.attrs
    roots = a.body.results
    rows = max([op.axes for op in roots], key=len, default=NO_AXES)
    if any(op.axes is not NO_AXES and op.axes is not rows for op in roots):
        return None
    if rows.size == 0:
        return None  # there is no element, and broadcast scalars have no memory to view
    if rows.size != 1 and any(op.axes is NO_AXES for op in roots):
        return None  # a scalar carry must be computed once, not per row
    if not all(is_element(op) for op in post_order(roots)):
        return None
    try:
        return _Maker(region, a, rows, results, operands).made()
    except OtherPlaces:
        return None


def is_element(op: Op) -> bool:
    """Return True if each element of an op depends on single elements of its arguments."""
    row = op.primitive
    if row.name in ("parameter", "iota") or is_bound(op):
        return True
    plain = row.kind == "elementwise" or (row.index_map is not None and len(op.args) == 1)
    return plain and not row.has_side_effect


class _Maker:
    def __init__(
        self,
        region: Op,
        a: ScanAttributes,
        rows: Axes,
        results: Sequence[Op],
        operands: OperandInliner,
    ) -> None:
        self.region, self.a, self.rows, self.operands = region, a, rows, operands
        self.results = {op.attrs.number: op for op in results}
        self.elements = Elements(operands)
        self.index: dict[str, AffineIndex] = {name: variable(name) for name in rows.names}
        for number, parameter in enumerate(a.body.parameters[:-1]):
            self.elements.known[parameter] = self.parameter(number, parameter)

    def made(self) -> OrderedLoop:
        """Return the kernel."""
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
            carries.append(ScanCarry(first, value, result.dtype, last))
        turns = self.a.axis.expression
        loop = OrderedLoop(
            self.region, self.rows.size, turns, self.a.reverse, tuple(carries), tuple(stores),
            tuple(self.operands.numbers),
        )  # fmt: skip
        return self.merged(loop)

    def merged(self, loop: OrderedLoop) -> OrderedLoop:
        """Return the loop; raise ``OtherPlaces`` if it needs indices of single row axes."""
        if len(self.rows) > 1:
            values = [carry.value for carry in loop.carries] + [s.value for s in loop.stores]
            values += [carry.first for carry in loop.carries]
            found = [index for value in walk(*values) for index in indices(value)]
            if any(name in index.terms for index in found for name in self.rows.names):
                raise OtherPlaces
        return loop

    def parameter(self, number: int, parameter: Op) -> Callable[[Index], Scalar]:
        """Return the element accessor of a body parameter: a carry or an operand."""

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
        """Return True if an operand with the axes of the rows is read at the row number.

        Arguments are then contiguous in the order of their axes.
        """
        own = len(self.rows) > 1 and op.axes is self.rows
        return own and all(index[name] == each for name, each in self.index.items())

    def read(self, arg: Op, index: Index) -> Scalar:
        """Return the element of an argument; by row number if it has the axes of the rows."""
        if self.walks(arg, index):
            return self.load(arg, self.row())
        return self.elements.value(arg, index)

    def load(self, arg: Op, offset: AffineIndex) -> Scalar:
        """Return a load from an argument that is contiguous in the order of its axes."""
        held = self.operands.base.get(arg, arg)  # a full view, such as a rename, has a base
        assert held.axes.size == arg.axes.size, f"{arg} shows a part of {held}"
        return self.elements.code(Load, self.operands.number(held), offset, arg.dtype)

    def store(self, op: Op, like: Op, value: Scalar, stacked: bool) -> Store:
        """Return the store of a value into a result."""
        return Store(self.operands.number(op), self.offset(like, stacked), value, op.dtype)

    def offset(self, like: Op, stacked: bool) -> AffineIndex:
        """Return the offset of an element in a value like ``like``."""
        found = variable(TURN) * like.axes.size if stacked else AffineIndex()
        return found + (AffineIndex() if like.axes is NO_AXES else self.row())

    def row(self) -> AffineIndex:
        """Return the row number: the variable of the only axis, or ``ROW``."""
        return variable(self.rows.names[0]) if len(self.rows) == 1 else ONE
