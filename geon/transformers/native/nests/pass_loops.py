"""Emit a pass of a loop nest as C: its loops, in vector lanes or tiles, and its reductions."""

from __future__ import annotations

from ....op_graph.axes.lengths import is_multiple
from ...kernels.ir.nest import Loop
from ...printing.nests.loop_lines import for_loop
from ...printing.nests.pass_text import (
    PositionOfRun,
    PrintedNest,
    PrintedPass,
    PrintedStore,
    turn_of,
)
from ...printing.nests.scalar_statements import MAX_LANES
from ..names.dialect import SIMD, ArrayLanes
from ..names.naming import KernelNames
from ..vectors.nontemporal_stores import Past
from ..vectors.transpose_tiles import TILE_LANES, tile_loops, turns_of, width
from ..vectors.unroll_jam_columns import JAM_FACTOR, joins_turns, turns_together
from .accumulators import BLOCK_BEGIN, BLOCK_END, Accumulation, for_further_turns
from .collapsed_lanes import turns_beside, turns_of_run
from .random_buffer import with_words

DIVIDED = ("begin", "end")  # names of the bounds of a task's part of the divided loop


class Passes:
    """Emits the passes of one nest."""

    def __init__(self, nest: PrintedNest, names: KernelNames, vector_bytes: int) -> None:
        assert isinstance(nest.over, ArrayLanes), "rows side by side are arrays"
        self.nest, self.names, self.vector_bytes, self.over = nest, names, vector_bytes, nest.over
        self.past = Past(None, names)  # non-temporal stores of the current task
        self.whole_parts = False  # parts of a pass are multiples of the unrolled iterations
        self.many_lanes = False  # assume that the open number of lanes is large

    def extent(self, loop: Loop) -> str:
        """Return the extent of a loop as C."""
        return self.names.length(loop.extent)

    def statements(self, lines: list[object], bounds: tuple[str, str] | None = None) -> list[str]:
        """Return the statements of a block, with passes as loops; ``bounds`` limit them."""
        found: list[str] = []
        for line in lines:
            found += self.text(line, bounds) if isinstance(line, PrintedPass) else [str(line)]
        return found

    def text(
        self, made: PrintedPass, bounds: tuple[str, str] | None, partial: bool = False
    ) -> list[str]:
        """Return the loops of a pass.

        ``bounds`` limit the divided loop, if there is one; its reductions are then ``partial``.
        """
        if self.beside(made) != "1":
            return self.one_run(made, bounds, partial)
        if made.states:
            return self.stateful(made, bounds)
        if made.crosses:
            passes = bool(self.chosen(made))
            return tile_loops(made, self.names, self.row_of_tile(made), bounds, passes)
        work = self.accumulation(made)
        elements = self.elements(made)
        outside = [] if made.around is None else made.around.lines
        known = [str(line) for line in outside]
        body = [*known, *self.by_words(made, [*elements, *work.steps()])]
        for k in range(len(made.loops) - 1, -1, -1):
            turns = made.loops[k]
            around = bounds if k == made.divided else None
            low, high = around or ("0", self.extent(turns))
            cut = work.cuts and k == work.level
            ends = (BLOCK_BEGIN, BLOCK_END) if cut else (low, high)
            if k == len(made.loops) - 1 and joins_turns(made):
                filled = work.fills(JAM_FACTOR, cut, None if self.whole_parts else around)
                each = [*elements, *work.steps()]
                run = turns_together(turns.name, *ends, filled, self.over, outside, each, body)
            else:
                ends_early = work.early_end() if work.cuts and k < (work.level or 0) else []
                run = for_loop(turns.name, *ends, [*body, *ends_early])
            body = work.blocks(run, turns.name, around) if cut else run
        return [*work.start(), *body, *work.end(partial)]

    def by_words(self, made: PrintedPass, body: list[str]) -> list[str]:
        """Return the loop over lanes, with its random bits and its non-temporal stores."""
        chosen, lanes = self.chosen(made), self.nest.lanes
        assert lanes is not None

        def plain(low: str, high: str) -> list[str]:
            return self.over.loop(low, high, body)

        def run(low: str, high: str) -> list[str]:
            if not chosen:
                return plain(low, high)
            return self.past.loop(chosen, lanes, (low, high), plain)

        return with_words(made.windows, "lane", ("0", "lanes"), MAX_LANES, run)

    def chosen(self, made: PrintedPass) -> list[PrintedStore]:
        """Return the stores of a pass that may be non-temporal."""
        lanes = made.loops[-1] if made.crosses else self.nest.lanes
        assert lanes is not None
        return self.past.chosen(made, lanes)

    def elements(self, made: PrintedPass) -> list[str]:
        """Return the statements of one element."""
        chosen, lines = self.chosen(made), [*made.body.lines, *made.stores]
        return [str(x) for x in self.past.statements(chosen, lines)]

    def stateful(self, made: PrintedPass, bounds: tuple[str, str] | None) -> list[str]:
        """Return the loops of a pass whose reductions have a state of several scalars in lanes."""
        lines = []
        for state in made.states:
            firsts = zip(state.names, state.ctypes, state.first, strict=True)
            for name, ctype, first in firsts:
                lines.append(f"{ctype} {name}[{MAX_LANES}];")
                lines += for_loop("lane", "0", "lanes", [f"{name}[lane] = {first};"])
        steps = [line for state in made.states for line in state.step]
        each = [str(line) for line in [*made.body.lines, *made.stores, *steps]]
        body = self.by_words(made, each)
        loops = made.loops
        for k in range(len(loops) - 1, -1, -1):
            low, high = bounds if bounds and k == 0 else ("0", self.extent(loops[k]))
            if k == len(loops) - 1 and joins_turns(made):
                filled = bounds is None and is_multiple(loops[k].extent, JAM_FACTOR)
                body = turns_together(loops[k].name, low, high, filled, self.over, [], each, body)
            else:
                body = for_loop(loops[k].name, low, high, body)
        return [*lines, *body]

    def accumulation(self, made: PrintedPass) -> Accumulation:
        """Return the accumulation of a pass's reductions."""
        beside = self.beside(made)
        held = "lanes" if beside == "1" else self.held(made)
        narrows = bool(made.loops)
        return Accumulation(
            made.sums, made.loops, self.over, self.extent, beside, held, made.only_truths, narrows
        )

    def is_run(self, made: PrintedPass) -> bool:
        """Return True if the pass is known to be one contiguous run over a few rows in lanes.

        It is False for non-temporal stores, which are written row by row. It is also False for
        states if the number of rows is open.
        """
        lanes = self.nest.lanes
        if lanes is None or self.many_lanes:
            return False
        if not made.one_run or made.crosses or self.chosen(made):
            return False
        if not isinstance(lanes.extent, int):
            return not made.states
        return 1 < lanes.extent < TILE_LANES

    def beside(self, made: PrintedPass) -> str:
        """Return the number of a run's iterations whose lanes form one loop, as C; "1" for other
        passes.

        It fills whole vectors where the lanes of one iteration are too few.
        """
        if not self.is_run(made):
            return "1"
        lanes, turns = self.nest.lanes, made.loops[0].extent
        assert lanes is not None
        known = None
        if isinstance(lanes.extent, int):
            known = turns_beside(lanes.extent, turns, self.vector_bytes // 4)
        return f"{made.loops[0].name}_beside{made.number or ''}" if known is None else str(known)

    def held(self, made: PrintedPass) -> str:
        """Return the number of lanes of these iterations together, as C."""
        lanes, beside = self.nest.lanes, self.beside(made)
        assert lanes is not None
        known = beside.isdigit() and isinstance(lanes.extent, int)
        return str(int(beside) * lanes.extent) if known else f"lanes * {beside}"

    def one_run(
        self, made: PrintedPass, bounds: tuple[str, str] | None, partial: bool
    ) -> list[str]:
        """Return a pass over few lanes that is one run of elements, with several iterations at
        once.

        With open lengths the number of iterations at once is computed at run time.
        """
        work, beside, held = self.accumulation(made), self.beside(made), self.held(made)
        assert self.nest.lanes is not None
        (loop,) = made.loops
        low, high = bounds or ("0", self.extent(loop))
        begin, end = (BLOCK_BEGIN, BLOCK_END) if work.cuts else (low, high)
        before, met = self.states_of_run(made, held)
        each = [*self.elements(made), *work.steps()]
        if made.states:
            each = [
                line.by(line.beside) if isinstance(line, PositionOfRun) else str(line)
                for line in [*made.body.lines, *made.stores]
            ]
            each += [line for state in made.states for line in state.step]
        single = self.single_turns(loop, beside, bounds is not None and not self.whole_parts)
        over = self.over
        body = turns_of_run(loop.name, (begin, end), beside, held, single, each, over)
        if work.cuts:
            body = work.blocks(body, loop.name, bounds)
        if not beside.isdigit():
            sizes = f"{self.extent(self.nest.lanes)}, {self.extent(loop)}, {self.vector_bytes // 4}"
            self.names.calls(["geon_beside"])
            before.insert(0, f"const int64_t {beside} = geon_beside({sizes});")
        copies = [
            f"{over.at(name, ctype, 'turn + lane')} = {over.at(name, ctype)};"
            for name, ctype in made.of_lanes.items()
        ]
        before += for_further_turns(over, held, copies)
        return [*before, *work.start(), *body, *work.meet(held), *met, *work.end(partial)]

    def single_turns(self, loop: Loop, beside: str, divided: bool) -> str:
        """Return the ``single`` argument of ``turns_of_run``, for the iterations that fill no
        group.

        They have a loop of their own if the number of all lanes is known, or if the lanes of one
        iteration are known and fewer than a vector. Otherwise they share the loop.
        """
        if beside.isdigit():
            filled = not divided and is_multiple(loop.extent, int(beside))
            return "" if filled else "apart"
        lanes = self.nest.lanes
        assert lanes is not None
        few = isinstance(lanes.extent, int) and lanes.extent < self.vector_bytes // 4
        return "apart" if few else "joined"

    def states_of_run(self, made: PrintedPass, held: str) -> tuple[list[str], list[str]]:
        """Return the statements before and after a run that initialise and combine states.

        Each of the ``held`` lanes has a state and the number of its iteration in the group.
        """
        if not made.states:
            return [], []
        before, joined = [], []
        for state in made.states:
            for name, ctype, first in zip(state.names, state.ctypes, state.first, strict=True):
                before.append(f"{ctype} {name}[{MAX_LANES}];")
                before += for_loop("lane", "0", held, [f"{name}[lane] = {first};"])
            joined += state.combine("[lane]", "[turn + lane]")
        ctypes = {line.ctype for line in made.body.lines if isinstance(line, PositionOfRun)}
        if ctypes:
            ctype = max(ctypes)  # the wider type
            turns = turn_of(made.number)
            before.append(f"{ctype} {turns}[{MAX_LANES}];")
            put = f"{turns}[lane] = ({ctype})(lane / lanes);"
            before += for_loop("lane", "0", held, [put])
        return before, for_further_turns(self.over, held, joined)

    def row_of_tile(self, made: PrintedPass) -> list[str]:
        """Return the loop along one row of a tile, for a transposed pass."""
        last, each = made.loops[-1], self.elements(made)

        def run(low: str, high: str) -> list[str]:
            return [SIMD, *for_loop(last.name, low, high, each)]

        bounds = ("tile", "tile_end")
        if made.flat:
            bounds = ("0", f"(lane_end - lane_tile) * {turns_of(made, self.names)}")
        return self.past.row_of_tile(self.chosen(made), last, width(made), bounds, run)
