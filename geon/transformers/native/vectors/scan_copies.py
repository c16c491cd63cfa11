"""Transposing copies of the elements that an ordered loop loads and stores with a stride, as C.

The lanes of a vector are neighbouring rows. If the elements of a row are adjacent in memory, those
of one column are not, and each load of an iteration is a gather. gcc interleaves vectors for runs
of two, three or four elements; for others it emits scalar code or gathers, and compiles slowly. So
an iteration begins by transposing the elements that its rows load into arrays over rows, and ends
by transposing such arrays into the elements that they store.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from ....lazy_dataclasses import dataclass
from ....op_graph.axes.affine import AffineIndex
from ....op_graph.values.dtypes import name_of
from ...kernels.analysis.footprint import is_direct
from ...kernels.ir.nest import Store
from ...kernels.ir.scalar_code import Load, Select, walk
from ...kernels.scans.sequential_scan import TURN, OrderedLoop
from ...kernels.scans.slp import Packed
from ...kernels.scans.slp_cost import choose_packing
from ...loops.rules.forwarded_copies import TRANSPOSED_ITEMSIZES
from ...printing.nests.loop_lines import for_loop
from ...printing.nests.scan_statements import OrderedPrinter, row_of
from ...printing.nests.statement_blocks import StatementBlock
from ...printing.scalars.c_expressions import C_TYPES
from ..names.naming import KernelNames

MAX_INTERLEAVED_ELEMENTS = 4  # of a run that gcc interleaves in vectors, as fast as a transposition
MAX_GAP_ELEMENTS = MAX_INTERLEAVED_ELEMENTS  # steps between two elements that one run has


@dataclass(frozen=True, slots=True)
class StridedRun:
    """``width`` adjoining elements of each row, from ``offset`` on, as the array ``name``."""

    name: str
    operand: int
    offset: AffineIndex
    width: int
    ctype: str
    itemsize: int


@dataclass(frozen=True, slots=True)
class ScanCopies:
    """The copies of a loop: ``before`` all turns, before each one and ``after`` it; ``texts`` are
    those of the elements of the row at hand.
    """

    before: tuple[StridedRun, ...]
    turn: tuple[StridedRun, ...]
    after: tuple[StridedRun, ...]
    texts: Mapping[Load | Store, str]

    @property
    def runs(self) -> tuple[StridedRun, ...]:
        """All runs."""
        return (*self.before, *self.turn, *self.after)

    def declared(self, rows: int) -> list[str]:
        """The declarations of all arrays, over so many rows."""
        return [f"{run.ctype} {run.name}[{run.width}][{rows}];" for run in self.runs]


class ScanForm(NamedTuple):
    """How a scan runs: with ``copies`` of what its rows read and store, None without.

    ``packed`` are the iterations of one row in vectors; None if they are scalars, or if it always
    has several rows.
    """

    copies: ScanCopies | None
    packed: Packed | None


def scan_form(work: OrderedLoop, vector_bytes: int) -> ScanForm:
    """Return how a scan runs on a processor with registers of ``vector_bytes``.

    An open number of rows with copies has a function for a single row too.
    """
    if work.rows == 1:
        return ScanForm(None, choose_packing(work, vector_bytes))
    found = copies(work)
    if found is None or isinstance(work.rows, int):
        return ScanForm(found, None)
    return ScanForm(found, choose_packing(replace(work, rows=1), vector_bytes))


def copies(work: OrderedLoop) -> ScanCopies | None:
    """Return the copies of a loop over rows.

    None where its vectors load and store what adjoins or is interleaved, where an offset depends on
    a value that is computed, and where a guard may keep a row from loading an element.
    """
    row = row_of(work)
    values = [carry.value for carry in work.carries] + [store.value for store in work.stores]
    nodes = list(walk(*values))
    loads = [node for node in nodes if isinstance(node, Load)]
    own = [load for load in loads if load.offset.step(row) != 0]
    elements: list[Load | Store] = [*loads, *work.stores]
    if any(isinstance(node, Select) for node in nodes):
        return None
    if not all(
        is_direct(each.offset) and each.dtype.itemsize in TRANSPOSED_ITEMSIZES for each in elements
    ):
        return None
    texts: dict[Load | Store, str] = {}
    before = [load for load in own if load.offset.step(TURN) == 0]
    turn = [load for load in own if load.offset.step(TURN) != 0]
    made = ScanCopies(
        _runs("b", before, MAX_GAP_ELEMENTS, texts),
        _runs("s", turn, MAX_GAP_ELEMENTS, texts),
        _runs("o", work.stores, 1, texts),
        texts,
    )
    strided = [run for run in made.runs if run.offset.step(row) != 1]
    return made if any(run.width > MAX_INTERLEAVED_ELEMENTS for run in strided) else None


def _runs(
    letter: str, elements: Sequence[Load | Store], gap: int, texts: dict[Load | Store, str]
) -> tuple[StridedRun, ...]:
    """Return the runs of elements that lie no more than ``gap`` apart, and note their texts."""
    groups: dict[object, list[Load | Store]] = {}
    for each in elements:
        constant = each.offset.constant
        alone = None if isinstance(constant, int) else constant
        terms = frozenset(each.offset.terms.items())
        groups.setdefault((each.operand, terms, alone, each.dtype), []).append(each)
    runs: list[StridedRun] = []
    for group in groups.values():
        group.sort(key=_place)
        parts = [[group[0]]]
        for last, each in zip(group, group[1:], strict=False):
            if _place(each) - _place(last) > gap:
                parts.append([])
            parts[-1].append(each)
        for part in parts:
            name, begin = f"{letter}{len(runs)}", _place(part[0])
            texts.update({each: f"{name}[{_place(each) - begin}][lane]" for each in part})
            width = _place(part[-1]) - begin + 1
            first = part[0]
            ctype, size = C_TYPES[name_of(first.dtype)], first.dtype.itemsize
            runs.append(StridedRun(name, first.operand, first.offset, width, ctype, size))
    return tuple(runs)


def _place(element: Load | Store) -> int:
    """Return the constant of an element's offset, 0 where it is no known number."""
    constant = element.offset.constant
    return constant if isinstance(constant, int) else 0


def copied(
    work: OrderedLoop,
    names: KernelNames,
    runs: Sequence[StridedRun],
    rows: int,
    stores: bool = False,
) -> list[str]:
    """Return the statements that copy runs of ``lanes`` rows from ``begin`` on into their arrays
    over ``rows``, or from these to memory where they are of ``stores``.
    """
    row = row_of(work)
    lines: list[str] = []
    printer = OrderedPrinter(work, names)
    printer.spelled = {**printer.spelled, row: "begin"}
    for run in runs:
        place = printer.index(StatementBlock(StatementBlock(StatementBlock())), run.offset)
        memory = f"&{names.operand(run.operand)}[{place}]"
        step = names.length(run.offset.step(row))
        function = f"geon_transpose_{run.itemsize}_squares"
        names.calls([function])
        memory, array = f"{memory}, {step}", f"{run.name}, {rows}"
        pair = (f"{array}, {memory}", f"{run.width}, lanes")
        if not stores:
            pair = f"{memory}, {array}", f"lanes, {run.width}"
        lines.append(f"{function}({', '.join(pair)});")
    return lines


def filled(runs: Sequence[StridedRun]) -> list[str]:
    """Return the loop that gives the lanes from ``lanes`` on what the last row has."""
    each = [f"for (int64_t k = 0; k < {r.width}; k++) {r.name}[k][lane] = {r.name}[k][lanes - 1];"
            for r in runs]  # fmt: skip
    return for_loop("lane", "lanes", "filled", each) if runs else []
