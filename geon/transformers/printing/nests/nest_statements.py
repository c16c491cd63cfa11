"""Statements of a loop nest: the text of each pass, without its loops."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from ....op_graph.values.dtypes import name_of
from ...kernels.analysis.loop_depth import Depths
from ...kernels.analysis.op_counts import weight
from ...kernels.ir.nest import Keep, Loop, Nest, Pass, RowArray, Store
from ...kernels.ir.scalar_code import Load
from ...kernels.nests.collapsed_rows import flat_parts
from ...kernels.nests.random_runs import RandomRun, runs
from ..scalars import c_expressions
from .pass_text import (
    PrintedArray,
    PrintedNest,
    PrintedPass,
    PrintedStore,
    PrintedWindow,
    RowStore,
    first_turn,
)
from .reductions import NestNames, ReductionPrinter
from .scalar_statements import ScalarPrinter
from .statement_blocks import StatementBlock
from .tile_loads import TilePrinter
from .transposed_passes import across_loads, crosses, is_direct, is_flat


def print_nest(
    nest: Nest,
    names: NestNames,
    loaded: Mapping[Load, str] | None = None,
) -> PrintedNest:
    """Return the statements of a nest.

    ``loaded`` has the texts of elements that were loaded before.
    """
    return _NestPrinter(nest, names, loaded or {}).printed()


class _NestPrinter:
    def __init__(
        self,
        nest: Nest,
        names: NestNames,
        loaded: Mapping[Load, str],
    ) -> None:
        self.nest, self.names, self.loaded = nest, names, loaded
        self.depths = Depths.of(nest)
        self.scalars = ScalarPrinter(names, self.depths)
        self.top = StatementBlock()
        self.row = StatementBlock(self.top, names.lanes if nest.across is not None else None)
        self.ending = StatementBlock()
        self.arrays: dict[int, PrintedArray] = {}
        if nest.across is not None and names.lanes.hides:
            self.scalars.apart = nest.across.name
        self.divided = not nest.rows and nest.across is None
        self.parts = flat_parts(nest) if nest.flat else None
        self.reductions = ReductionPrinter(self.scalars, names)
        self.tiled = TilePrinter(self.scalars, names, self.depths, self.top, self.parts)

    def printed(self) -> PrintedNest:
        """Return all blocks."""
        nest = self.nest
        for block, steps in ((self.row, nest.steps), (self.ending, nest.ending)):
            last = self.last_stores(block, steps)
            stores: list[Store] = []
            for step in steps[: len(steps) - len(last)]:
                if isinstance(step, Store):
                    stores.append(step)
                    continue
                self.store_rows(block, stores)
                block.lines.append(self.print_pass(block, step))
                stores = []
            self.store_rows(block, stores)
            self.store_together(block, last)
        assert self.divided or not nest.ending, "only what is divided ends"
        arrays = [self.arrays[array.number] for array in nest.arrays]
        blocks = (self.top, self.row, self.ending)
        return PrintedNest(
            nest.rows,
            nest.across,
            *blocks,
            arrays,
            self.names.lanes,
            nest.inside,
            hides=self.scalars.hides,
        )

    def last_stores(self, block: StatementBlock, steps: Sequence[Pass | Store]) -> Sequence[Store]:
        """Return the stores after the last pass if one loop over lanes can do them all."""
        if block.lanes is None or not block.lanes.together:
            return ()
        passes = [k for k, step in enumerate(steps) if isinstance(step, Pass)]
        last = steps[max(passes, default=-1) + 1 :]
        return [step for step in last if isinstance(step, Store)]

    def store_together(self, row: StatementBlock, stores: Sequence[Store]) -> None:
        """Print stores of row values in one loop over lanes, with the values that only they need.

        A separate array over lanes per value costs several times as much. Values that do not
        vectorise keep a loop of their own.
        """
        each = StatementBlock(row)
        each.depth, each.called = row.depth, []
        printed = [str(self.store(each, store)) for store in stores]
        if each.serial:
            self.store_rows(row, stores)
        elif printed:
            self.names.calls(each.called)
            row.lines += self.names.lanes.all([*each.lines, *printed])

    def store_rows(self, block: StatementBlock, stores: Sequence[Store]) -> None:
        """Print stores of row values one after another.

        All loads precede the first store, which may overwrite their memory.
        """
        lines = [str(self.store(block, store)) for store in stores]
        lanes, side_by_side = self.names.lanes, block.lanes is not None
        block.lines += [RowStore(lanes.stored(line, side_by_side)) for line in lines]

    def store(self, block: StatementBlock, store: Store, inner: Sequence[str] = ()) -> PrintedStore:
        """Return a store; statements that it needs are added to ``block``.

        ``inner`` are the variables of the innermost loops, the last one first.
        """
        value = self.scalars.value(block, store.value)
        offset = self.scalars.index(block, store.offset)
        dtype, operand = name_of(store.dtype), self.names.operand(store.operand)
        ctype = "uint8_t" if dtype == "bool" else c_expressions.C_TYPES[dtype]
        size = store.dtype.itemsize
        place = f"{operand}[{offset}]"
        plain = PrintedStore(place, value, ctype, store.operand, size)
        if not inner or store.offset.step(inner[0]) != 1 or not is_direct(store.offset):
            return plain
        first, spelled = first_turn(inner[0]), self.scalars.spelled
        index = f"{self.scalars.variable(inner[0])} - {first}"
        apart = store.offset.step(inner[1]) if len(inner) > 1 else 0
        self.scalars.spelled = {**spelled, inner[0]: first}
        start = f"{operand} + {self.scalars.index(block, store.offset)}"
        self.scalars.spelled = spelled
        return replace(plain, start=start, index=index, apart=apart)

    def print_pass(self, row: StatementBlock, step: Pass) -> PrintedPass:
        """Return the text of one pass."""
        lanes, across = self.names.lanes, self.nest.across
        around = self.around(row, step)
        body = StatementBlock(row) if around is None else around.inside(self.inner_loop(step).name)
        for load, name in self.loaded.items():
            body.names[load] = name
        made = PrintedPass(step.loops, body, weight(step, self.depths))
        made.around, made.divided, made.most = around, step.divided, self.nest.most
        if lanes.tiles and across is not None and crosses(step, across.name):
            self.across_memory(row, made, step, across.name)
        self.scalars.words = {}
        if lanes.windows and not made.crosses:  # tiles are not in the order of positions
            made.windows = [self.window(row, each) for each in runs(self.nest, step, self.depths)]
        self.reduce(row, made, step)
        self.put(made, step)
        return made

    def across_memory(self, row: StatementBlock, made: PrintedPass, step: Pass, lane: str) -> None:
        """Print the tiles of a pass that stores across memory."""
        made.crosses = True
        flat = self.parts is not None or is_flat(step, lane, self.depths, self.nest.most)
        made.flat = self.names.lanes.flat and flat
        self.tiled.turn(made, step, lane)
        loads = across_loads(step, lane)
        made.copies = [id(store.value) for store in step.stores] == [id(x) for x in loads]
        if made.flat:
            self.tiled.repeat(row, made, step, lane)

    def reduce(self, row: StatementBlock, made: PrintedPass, step: Pass) -> None:
        """Print the reductions of a pass."""
        for reduction in step.reductions:
            if reduction.folds is not None:
                made.sums.append(self.reductions.accumulator(made.body, reduction, row.lanes))
                continue
            if row.lanes is None and step.loops:
                self.reductions.narrow_position(made.body, reduction, step.loops[-1].name)
            made.states.append(self.reductions.state(made.body, reduction, row))

    def put(self, made: PrintedPass, step: Pass) -> None:
        """Print the stores and keeps of a pass."""
        inner, across = self.innermost(step, made.crosses), self.nest.across
        spelled = self.scalars.spelled
        if made.flat and across is not None:
            self.scalars.spelled = {across.name: f"{across.name}_tile"}
        for store in step.stores:
            made.stores.append(self.store(made.body, store, inner))
        self.scalars.spelled = spelled
        for keep in step.keeps:
            value = self.scalars.value(made.body, keep.value)
            self.array(self.nest.arrays[keep.number])
            self.keep(made.body, keep, value)

    def around(self, row: StatementBlock, step: Pass) -> StatementBlock | None:
        """Return the block for positions and guards that are invariant in the innermost loop.

        The loop over lanes counts as innermost. Compilers do not hoist such positions, and would
        emit gathers for contiguous loads.
        """
        across, loops = self.nest.across, len(step.loops)
        if not self.names.lanes.fetches or any(each.folds is None for each in step.reductions):
            return None
        if across is None:
            return None
        return StatementBlock(row) if loops and not crosses(step, across.name) else None

    def inner_loop(self, step: Pass) -> Loop:
        """Return the innermost loop of a pass: the loop over lanes if there is one."""
        return step.loops[-1] if self.nest.across is None else self.nest.across

    def innermost(self, step: Pass, crosses: bool) -> list[str]:
        """Return the variables of the innermost loops, last one first; two if there are lanes."""
        last = [loop.name for loop in step.loops[-1:]]
        if self.nest.across is None:
            return last
        lane = [self.nest.across.name]
        return [*last, *lane] if crosses else [*lane, *last]

    def keep(self, body: StatementBlock, keep: Keep, value: str) -> None:
        """Print the store of a value into a row array."""
        place = self.scalars.kept_place(body, keep.number, keep.offset)
        body.lines.append(f"{place} = {value};")

    def window(self, row: StatementBlock, run: RandomRun) -> PrintedWindow:
        """Return the buffer of random bits of a run, from which elements read theirs."""
        node, name = run.node, self.scalars.fresh("w")
        stream = [self.scalars.value(row, each) for each in (node.seed, node.draw, node.call)]
        base = self.scalars.index(row, run.base)
        end = self.names.lanes.number
        end = f"{base} + {end}" if run.end is None else self.scalars.index(row, run.end)
        self.scalars.words[node] = f"{name}_at[{run.variable} - {run.variable}_words]"
        ctype = c_expressions.C_TYPES[name_of(node.dtype)]
        return PrintedWindow(name, ctype, node.dtype.itemsize // 4, base, end, tuple(stream))

    def array(self, array: RowArray) -> None:
        """Name a row array."""
        name = self.scalars.fresh("w")
        ctype = c_expressions.C_TYPES[name_of(array.dtype)]
        self.arrays[array.number] = PrintedArray(name, ctype, array.size, array.dtype.itemsize)
        self.scalars.kept[array.number] = name
