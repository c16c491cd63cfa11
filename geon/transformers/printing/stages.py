"""Loads that are read ahead of a loop, in an order of their own, as text of the C family."""

from __future__ import annotations

from dataclasses import dataclass

from ...op_graph.affine import variable
from ...op_graph.dtypes import name_of
from ..kernels.staged import Staged
from .c_expressions import C_TYPES
from .scalars import Block, ScalarPrinter


@dataclass(frozen=True, slots=True)
class PrintedStage:
    """An array called ``name`` of ``ctype`` that elements are read into before a loop.

    ``source`` is the element at variable ``first``, and at those of ``digits`` inside it, which
    have lengths; where it is one ``run`` of neighbours, that is the pointer to their first. One
    turn of ``first`` stands for ``period`` turns of the loop.
    """

    name: str
    ctype: str
    source: str
    run: str | None
    first: str
    digits: tuple[tuple[str, int], ...]
    period: int


def print_stage(scalars: ScalarPrinter, row: Block, stage: Staged) -> PrintedStage:
    """How a load is read ahead of the innermost loop of a pass."""
    load, name = stage.load, scalars.fresh("g")
    dtype, operand = name_of(load.dtype), scalars.names.operand(load.operand)
    source = f"{operand}[{scalars.index(row, stage.offset)}]"
    run = None
    if stage.digits:
        last = stage.digits[-1][0]
        if stage.offset.step(last) == 1:
            start = stage.offset - variable(last)
            run = f"{operand} + {scalars.index(row, start)}"
    ctype = "uint8_t" if dtype == "bool" else C_TYPES[dtype]
    return PrintedStage(name, ctype, source, run, stage.first, stage.digits, stage.period)


def staged_text(stage: PrintedStage, load: Staged, at: str) -> str:
    """The element of the turn ``at`` of the loop as it is read from its array."""
    flag = " != 0" if name_of(load.load.dtype) == "bool" else ""
    text = f"{stage.name}[{at} - {stage.name}_from]{flag}"
    return f"({text})" if flag else text
