"""Tile loads: transposed loads, repeated row values and scalar code of passes across memory."""

from __future__ import annotations

from collections.abc import Iterable

from ....op_graph.values.dtypes import name_of
from ...kernels.analysis.loop_depth import Depths
from ...kernels.ir.nest import Pass
from ...kernels.nests.collapsed_rows import FlatParts, Part
from ...kernels.nests.collapsible_lanes import values_of_lanes
from ..scalars import c_expressions
from .pass_text import (
    PrintedPass,
    PrintedTiles,
    TurnedLoad,
)
from .reductions import NestNames
from .scalar_statements import ScalarPrinter
from .statement_blocks import StatementBlock
from .transposed_passes import across_loads, flat_loads


class TilePrinter:
    """Makes the passes of a nest read from tiles.

    ``parts`` are the classified subexpressions of a flat nest; ``top`` is the block around its
    rows.
    """

    def __init__(
        self,
        scalars: ScalarPrinter,
        names: NestNames,
        depths: Depths,
        top: StatementBlock,
        parts: FlatParts | None,
    ) -> None:
        self.scalars, self.names, self.depths, self.top = scalars, names, depths, top
        self.parts = parts

    def turn(self, made: PrintedPass, step: Pass, lane: str) -> None:
        """Make a pass across memory read loads that are contiguous along lanes from tiles."""
        last = step.loops[-1].name
        start = {lane: f"{lane}_tile", last: "0" if made.flat else "tile"}
        if self.parts is not None:
            loads = self.parts.turned
        else:
            loads = flat_loads(step, lane, self.depths) if made.flat else across_loads(step, lane)
        for load in loads:
            name, dtype = self.scalars.fresh("tile"), name_of(load.dtype)
            self.scalars.spelled = start
            source = self.scalars.index(made.body, load.offset)
            self.scalars.spelled = {}
            ctype = "uint8_t" if dtype == "bool" else c_expressions.C_TYPES[dtype]
            pointer = f"{self.names.operand(load.operand)} + {source}"
            steps = [self.names.length(load.offset.step(each)) for each in (last, lane)]
            made.turned.append(TurnedLoad(name, ctype, load.dtype.itemsize, pointer, *steps))
            flag = " != 0" if dtype == "bool" else ""
            place = f"[{last}]" if made.flat else f"[{lane} - {lane}_tile][{last} - tile]"
            made.body.names[load] = f"{name}{place}{flag}"

    def repeat(self, row: StatementBlock, made: PrintedPass, step: Pass, lane: str) -> None:
        """Make a flat pass read values of rows from tiles that repeat them for each element."""
        parts = self.parts
        values = values_of_lanes(step, self.depths) if parts is None else parts.repeated
        for node in dict.fromkeys(values):
            name, dtype = self.scalars.fresh("tile"), name_of(node.dtype)
            text, lanes = self.scalars.value(row, node), self.names.lanes
            ctype = c_expressions.C_TYPES[dtype]
            if lanes.array_of(text) is None:
                text = self.scalars.let(row, node, ctype, text)
            ctype = "uint8_t" if dtype == "bool" else ctype  # loads of bytes vectorise
            start = f"{lanes.array_of(text)} + {lane}_tile"
            made.turned.append(TurnedLoad(name, ctype, node.dtype.itemsize, start, "0"))
            read = f"{name}[{step.loops[-1].name}]"
            made.body.names[node] = f"({read} != 0)" if dtype == "bool" else read
        if parts is not None:
            last = step.loops[-1].name
            made.patterns = self.tiles(StatementBlock(self.top), made.body, parts.patterns, last)
            made.grouped = self.tiles(StatementBlock(row), made.body, parts.grouped, last)
            made.others = self.tiles(StatementBlock(row), made.body, parts.others, last)

    def tiles(
        self, block: StatementBlock, body: StatementBlock, parts: Iterable[Part], last: str
    ) -> PrintedTiles:
        """Return tiles of values that do not vectorise; ``body`` reads them by ``last``."""
        made = PrintedTiles()
        self.scalars.spelled = {last: "turn"}
        for part in parts:
            name, dtype = self.scalars.fresh("tile"), "bool"
            if isinstance(part, tuple):
                text = self.scalars.flag(block, part)
            else:
                text, dtype = self.scalars.value(block, part), name_of(part.dtype)
            is_truth, read = dtype == "bool", f"{name}[{last}]"
            ctype = "uint8_t" if is_truth else c_expressions.C_TYPES[dtype]
            made.tiles.append((name, ctype, text))
            body.names[part] = f"({read} != 0)" if is_truth else read
        self.scalars.spelled = {}
        made.lines = [str(line) for line in block.lines]
        return made
