"""Statements of an ordered loop: before all iterations, in each, and after them."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from ....lazy_dataclasses import dataclass
from ....op_graph.op_graph import NO_AXES
from ....op_graph.values.dtypes import name_of
from ...kernels.analysis.loop_depth import ELEMENT_DEPTH, Depths
from ...kernels.ir.nest import Store
from ...kernels.ir.scalar_code import Load, Scalar
from ...kernels.scans.sequential_scan import ROW, TURN, OrderedLoop
from ..scalars.c_expressions import C_TYPES
from .scalar_statements import MemoryNames, ScalarPrinter
from .statement_blocks import StatementBlock

NO_COPIES: Mapping[Load | Store, str] = {}


@dataclass(frozen=True, slots=True)
class PrintedOrdered:
    """Statements of an ordered loop.

    ``top`` runs once, ``first`` before the iterations of a row, ``turn`` in each iteration,
    ``last`` after them. ``carries`` are the types and names of the carries.
    """

    top: list[str]
    first: list[str]
    turn: list[str]
    last: list[str]
    carries: list[tuple[str, str]]


def row_of(work: OrderedLoop) -> str:
    """Return the variable of rows in an ordered loop's offsets."""
    axes = max([op.axes for op in work.op.bodies[0].results], key=len, default=NO_AXES)
    return axes.names[0] if len(axes) == 1 else ROW


class OrderedPrinter(ScalarPrinter):
    """Prints the scalar code of a sequential scan for row ``row`` and index ``part`` of stacks.

    ``copies`` are the texts of loads and stores that are copied around the present iteration.
    """

    copies = NO_COPIES

    def __init__(self, work: OrderedLoop, names: MemoryNames) -> None:
        row = row_of(work)
        super().__init__(names, Depths({TURN: ELEMENT_DEPTH, row: ELEMENT_DEPTH}, 0))
        self.spelled = {TURN: "part", row: "row"}

    def computed(self, block: StatementBlock, value: Scalar) -> str:
        """Return the expression of a value, which may be a copied load."""
        copy = self.copies.get(value) if isinstance(value, Load) else None
        return super().computed(block, value) if copy is None else copy


def print_ordered(
    work: OrderedLoop,
    names: MemoryNames,
    held: Callable[[str], str],
    copies: Mapping[Load | Store, str] = NO_COPIES,
    out_of_line: frozenset[str] = frozenset(),
) -> PrintedOrdered:
    """Return the statements of a sequential scan, for row ``row`` and part ``part`` of stacks.

    ``held`` gives the text of a carry of the current row by its name. ``copies`` are the texts of
    loads and stores in an iteration, and ``out_of_line`` the helpers that it does not inline.
    """
    printer = OrderedPrinter(work, names)
    ctypes = [C_TYPES[name_of(carry.dtype)] for carry in work.carries]
    carries = [f"c{k}" for k in range(len(work.carries))]
    top, begin, turn, end = StatementBlock(), [], [], []
    first = _inside(top)
    for name, carry in zip(carries, work.carries, strict=True):
        begin.append(f"{held(name)} = {printer.value(first, carry.first)};")
    printer.running = {(k, False): held(name) for k, name in enumerate(carries)}
    printer.copies, printer.out_of_line = copies, out_of_line
    inner = _inside(top)
    for store in work.stores:
        turn.append(store_statement(printer, names, inner, store, copies.get(store)))
    texts = [printer.value(inner, carry.value) for carry in work.carries]
    for k, (name, ctype, text) in enumerate(zip(carries, ctypes, texts, strict=True)):
        inner.lines.append(f"const {ctype} next{k} = {text};")
        turn.append(f"{held(name)} = next{k};")
    printer.copies, printer.out_of_line = NO_COPIES, frozenset()
    after = _inside(top)
    for carry in work.carries:
        if carry.store is not None:
            end.append(store_statement(printer, names, after, carry.store))
    return PrintedOrdered(
        list(map(str, top.lines)),
        [*map(str, first.lines), *begin],
        [*map(str, inner.lines), *turn],
        [*map(str, after.lines), *end],
        list(zip(ctypes, carries, strict=True)),
    )


def _inside(top: StatementBlock) -> StatementBlock:
    """Return a block for statements per element."""
    return StatementBlock(StatementBlock(top))


def store_statement(
    printer: ScalarPrinter,
    names: MemoryNames,
    block: StatementBlock,
    store: Store,
    copy: str | None = None,
) -> str:
    """Return the statement that stores a value, into its ``copy`` if it has one."""
    text = printer.value(block, store.value)
    if copy is not None:
        return f"{copy} = {text};"
    return f"{names.operand(store.operand)}[{printer.index(block, store.offset)}] = {text};"
