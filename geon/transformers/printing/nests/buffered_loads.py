"""C text of buffered loads: values that are read into an array before a loop."""

from __future__ import annotations

from dataclasses import dataclass

from ....op_graph.axes.affine import variable
from ....op_graph.values.dtypes import BOOL, name_of
from ...kernels.ir.scalar_code import Load
from ...kernels.nests.buffered_loads import Staged
from ..scalars.c_expressions import C_TYPES
from .scalar_statements import ScalarPrinter
from .statement_blocks import StatementBlock


@dataclass(frozen=True, slots=True)
class PrintedStage:
    """Array ``name`` of ``ctype`` that a loop over digits fills before the main loop.

    ``before`` are the statements before an element. ``source`` is the text of an element, at
    variable ``first`` of the outer digit and those of ``digits``, with lengths. ``run`` is the
    pointer to the first element if the elements of the innermost digit are contiguous, else None.
    One iteration of ``first`` stands for ``period`` iterations of the main loop. If ``every`` is
    not 0, the element is 0 except where ``every`` divides ``first`` plus ``shift``.
    """

    name: str
    ctype: str
    before: tuple[str, ...]
    source: str
    run: str | None
    first: str
    digits: tuple[tuple[str, int], ...]
    period: int
    every: int
    shift: str


def print_stage(scalars: ScalarPrinter, row: StatementBlock, stage: Staged) -> PrintedStage:
    """Return the text that fills a buffer before the innermost loop of a pass."""
    value, name, block = stage.value, scalars.fresh("g"), StatementBlock(row)
    run = None
    if isinstance(value, tuple):
        found = [text for guard in stage.guards for text in scalars.guard(block, guard)]
        source = " && ".join(found) or "1"
    elif isinstance(value, Load):
        offset, operand = stage.index, scalars.names.operand(value.operand)
        source = f"{operand}[{scalars.index(block, offset)}]"
        adjoins = stage.digits and offset.step(last := stage.digits[-1][0]) == 1
        if adjoins and not block.lines:
            run = f"{operand} + {scalars.index(block, offset - variable(last))}"
    else:
        text = f"({scalars.index(block, stage.index)})"
        source = scalars.cast(row, "int64", name_of(value.dtype), text)
    ctype = "uint8_t" if stage.dtype is BOOL else C_TYPES[name_of(stage.dtype)]
    before = tuple(map(str, block.lines))
    shift = scalars.index(row, stage.index) if stage.every else ""
    digits = stage.first, stage.digits, stage.period
    return PrintedStage(name, ctype, before, source, run, *digits, stage.every, shift)


def staged_text(stage: PrintedStage, ahead: Staged, at: str) -> str:
    """Return the text of the buffered element at iteration ``at`` of the loop."""
    text = f"{stage.name}[{at} - {stage.name}_from]"
    return f"({text} != 0)" if ahead.dtype is BOOL else text
