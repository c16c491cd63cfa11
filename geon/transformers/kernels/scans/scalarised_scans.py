"""Scalarised scans: scans of small tensors as one kernel, with each element a carry of its own.

A recurrence of 4x4 matrices becomes a loop over some dozens of scalars in registers. One axis may
be long: an ensemble of independent systems.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import product as every

from ....lazy_dataclasses import dataclass
from ....op_graph.axes.affine import AffineIndex, Size, strides, variable
from ....op_graph.axes.axes import Axes
from ....op_graph.axes.index_map import Index, InRange
from ....op_graph.core.region_body import Body
from ....op_graph.op_graph import NO_AXES, Op, post_order
from ....op_graph.regions.scan_op import ScanAttributes
from ....op_graph.rows.elementwise import add, multiply
from ...sizes.blocks import L1_BYTES
from ...sizes.limits import AVX512_BYTES, LONG_LOOP_TURNS
from ..analysis.op_counts import ELEMENTARY_STATEMENTS
from ..ir.nest import Store
from ..ir.scalar_code import Running, Scalar
from ..nests.inlining import Elements, OperandInliner
from .sequential_scan import ROW, TURN, OrderedLoop, OtherPlaces, ScanCarry, is_element

MAX_SCALARISED_LENGTH = AVX512_BYTES // 4  # maximum length of a scalarised axis
# Maximum elements per row that are carried or stored in an iteration: as float32 they stay in the
# first cache for all rows in lanes.
MAX_CARRIED_ELEMENTS = L1_BYTES // (4 * LONG_LOOP_TURNS)


@dataclass(frozen=True, slots=True)
class TurnBounds:
    """Maximum number of statements of an iteration of one row; they bound the C compiler's time.

    ``single`` is for a loop of one row, ``lanes`` for one with rows in vector lanes.
    """

    single: int
    lanes: int


def scalarise_scan(
    region: Op, results: Sequence[Op], operands: OperandInliner, bounds: TurnBounds
) -> OrderedLoop | None:
    """Return the scan with these results, scalarised.

    Return None if an iteration exceeds ``bounds``, or if the body has ops other than products,
    sums, elementwise ops and views.
    """
    a: ScanAttributes = region.attrs
    roots = a.body.results
    long = {axis.name for op in roots for axis in op.axes if not _is_small(axis.expression)}
    if len(long) > 1 or any(name not in op.axes for name in long for op in roots):
        return None
    row = next(iter(long), None)
    carried = sum(_elements(op, row) or 0 for op in roots)
    count = turn_statements(a.body, a.carries, row)
    most = bounds.single if row is None else bounds.lanes
    if count is None or count > most or carried > MAX_CARRIED_ELEMENTS:
        return None
    try:
        return _Unrolled(region, a, row, results, operands).made()
    except OtherPlaces:
        return None


def _is_small(size: Size) -> bool:
    return isinstance(size, int) and size <= MAX_SCALARISED_LENGTH


def turn_statements(body: Body, carries: int, row: str | None) -> int | None:
    """Return the predicted scalar statements of an iteration of one row.

    They are a load per element read, a product and a sum per term, and ``ELEMENTARY_STATEMENTS``
    per elementary
    function. Return None if the body has an op that cannot be scalarised, or a tensor that is not
    small.
    """
    found = 0
    loads = dict.fromkeys(body.parameters[carries:], 0)
    for op in post_order(body.results):
        if op.primitive.name == "parameter":
            continue
        count = _elements(op, row)
        if count is None or not (is_element(op) or _joins(op) or _adds(op)):
            return None
        for name in _summed(op):
            size = op.args[0].axes[name].expression
            if not isinstance(size, int) or size > MAX_SCALARISED_LENGTH:
                return None
            count *= size
        for arg in op.args:
            if arg in loads:
                loads[arg] += count
        if _adds(op):
            found += count * len(op.args)
        elif op.primitive.kind == "elementwise":
            found += count * (ELEMENTARY_STATEMENTS if op.primitive.cost == "expensive" else 1)
    for parameter, read in loads.items():
        held = _elements(parameter, row)
        found += read if held is None else min(read, held)
    return found


def _joins(op: Op) -> bool:
    """Return True if each element of an op is an element of one of its arguments."""
    return op.primitive.index_map is not None and not op.primitive.has_side_effect


def _adds(op: Op) -> bool:
    """Return True if an op is a sum or product that accumulates in its own float dtype."""
    if op.primitive.name not in ("dot", "sum"):
        return False
    return op.dtype.kind == "f" and all(arg.dtype is op.dtype for arg in op.args)


def _summed(op: Op) -> tuple[str, ...]:
    """Return the axes that an op sums over."""
    if op.primitive.name == "dot":
        return op.attrs.over
    if op.primitive.name == "sum":
        return tuple([name for name in op.args[0].axes.names if name not in op.axes])
    return ()


def _elements(op: Op, row: str | None) -> int | None:
    """Return the number of elements of an op per row; None if unknown."""
    size = op.axes.without([row] if row is not None and row in op.axes else []).size
    return size if isinstance(size, int) else None


def _decided(guard: InRange) -> bool | None:
    """Return True or False for a guard on a constant index, else None."""
    at, low, high = guard.index.constant, guard.low, guard.high
    if guard.index.terms:
        return None
    if not (isinstance(at, int) and isinstance(low, int) and isinstance(high, int)):
        return None
    return low <= at < high


class _Unrolled:
    def __init__(
        self,
        region: Op,
        a: ScanAttributes,
        row: str | None,
        results: Sequence[Op],
        operands: OperandInliner,
    ) -> None:
        self.region, self.a, self.row, self.operands = region, a, row, operands
        self.results = {op.attrs.number: op for op in results}
        self.elements = Elements(operands, _decided)
        roots = a.body.results
        axes = max([op.axes for op in roots], key=len, default=NO_AXES)
        self.at = variable(axes.names[0] if len(axes) == 1 else ROW)
        self.rows: Size = 1
        if row is not None:
            self.rows = next(op.axes[row].expression for op in roots if row in op.axes)
        self.sums: dict[tuple[int, tuple[AffineIndex, ...]], Scalar] = {}
        self.first: list[int] = []  # the number of the first element of each carry
        count = 0
        for op in roots[: a.carries]:
            self.first.append(count)
            count += len(list(self.places(op.axes)))
        for number, parameter in enumerate(a.body.parameters[:-1]):
            self.elements.known[parameter] = self.parameter(number, parameter)
        for made in post_order(roots):
            if _adds(made):
                self.elements.known[made] = self.sum(made)

    def made(self) -> OrderedLoop:
        """Return the kernel."""
        carries, stores = [], []
        for k, root in enumerate(self.a.body.results):
            for number, index in enumerate(self.places(root.axes)):
                value = self.elements.value(root, index)
                if k >= self.a.carries:
                    stores.append(self.store(k, root, index, value))
                    continue
                begins = self.elements.value(self.region.args[k], index)
                last = None
                if k in self.results:
                    running = self.elements.code(Running, self.first[k] + number, False, root.dtype)
                    last = self.store(k, root, index, running)
                carries.append(ScanCarry(begins, value, root.dtype, last))
        return OrderedLoop(
            self.region, self.rows, self.a.axis.expression, self.a.reverse, tuple(carries),
            tuple(stores), tuple(self.operands.numbers),
        )  # fmt: skip

    def places(self, axes: Axes) -> Iterator[dict[str, AffineIndex]]:
        """Yield the indices of all elements of a row over these axes, in order."""
        names = [name for name in axes.names if name != self.row]
        lengths = [axes[name].expression for name in names]
        for found in every(*(range(n) for n in lengths if isinstance(n, int))):
            index = {name: AffineIndex((), k) for name, k in zip(names, found, strict=True)}
            yield {name: self.at if name == self.row else index[name] for name in axes.names}

    def parameter(self, number: int, parameter: Op) -> Callable[[Index], Scalar]:
        """Return the element accessor of a body parameter: a carry or an operand."""

        def element(index: Index) -> Scalar:
            if number < self.a.carries:
                place = self.place(parameter.axes, index)
                return self.elements.code(
                    Running, self.first[number] + place, False, parameter.dtype
                )
            at = {name: index[name] for name in parameter.axes.names}
            if number < self.a.before_captures:
                at[self.a.axis.name] = variable(TURN)
            return self.elements.value(self.region.args[number], at)

        return element

    def place(self, axes: Axes, index: Index) -> int:
        """Return the number of an element within a row; raise ``OtherPlaces`` outside."""
        found = 0
        for name in axes.names:
            at = index[name]
            if name == self.row:
                if at != self.at:
                    raise OtherPlaces
            else:
                length = axes[name].expression
                if at.terms or not isinstance(at.constant, int) or not isinstance(length, int):
                    raise OtherPlaces
                if not 0 <= at.constant < length:
                    raise OtherPlaces
                found = found * length + at.constant
        return found

    def sum(self, op: Op) -> Callable[[Index], Scalar]:
        """Return the element accessor of a sum or product."""
        names = _summed(op)
        axes = op.args[0].axes.only(names)

        def element(index: Index) -> Scalar:
            key = id(op), tuple([index[name] for name in op.axes.names])
            if key not in self.sums:
                self.sums[key] = self.total(op, axes, index)
            return self.sums[key]

        return element

    def total(self, op: Op, axes: Axes, index: Index) -> Scalar:
        """Return the sum of the terms of one element."""
        found: Scalar | None = None
        for at in self.places(axes):
            here = {**index, **at}
            parts = [self.elements.value(arg, here) for arg in op.args]
            term = parts[0]
            if len(parts) == 2:
                term = self.elements.code.apply(multiply, *parts)
            found = term if found is None else self.elements.code.apply(add, found, term)
        return self.elements.code.number(0.0, op.dtype) if found is None else found

    def store(self, number: int, root: Op, index: Index, value: Scalar) -> Store:
        """Return the store of an element into a result, whose layout is the order of its axes."""
        steps = strides(tuple([axis.expression for axis in root.axes]))
        offset = AffineIndex()
        for name, step in zip(root.axes.names, steps, strict=True):
            offset = offset + index[name] * step
        if number >= self.a.carries:
            offset = offset + variable(TURN) * root.axes.size
        return Store(self.operands.number(self.results[number]), offset, value, root.dtype)
