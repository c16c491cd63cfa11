"""Emit a pass of a loop nest as C: its loops, in vector lanes or tiles, and its reductions."""

from __future__ import annotations

import functools
from collections.abc import Callable

from ....op_graph.axes.affine import Size
from ....op_graph.axes.lengths import is_multiple, product
from ...kernels.ir.nest import Loop
from ...printing.nests.loop_lines import for_loop, indent
from ...printing.nests.pass_text import (
    NarrowPosition,
    PositionOfRun,
    PrintedNest,
    PrintedPass,
    PrintedStore,
    lanes_start,
    turn_of,
)
from ...printing.nests.scalar_statements import MAX_LANES
from ..names.dialect import SIMD, ArrayLanes
from ..names.naming import KernelNames
from ..vectors.interleave import INTERLEAVED_VECTORS, MIN_VECTOR_BYTES, choose_interleaving
from ..vectors.nontemporal_stores import Past
from ..vectors.transpose_tiles import TILE_LANES, tile_loops, turns_of, width
from ..vectors.unroll_jam_columns import JAM_FACTOR, joins_turns, turns_together
from .accumulators import BLOCK_BEGIN, BLOCK_END, Accumulation, for_further_turns
from .buffered_loads import with_stages
from .collapsed_lanes import turns_beside, turns_of_run
from .gather_prefetch import asked_ahead
from .multiple_hint import masked_count
from .random_buffer import with_words

MIN_LANE_STATE_VECTORS = (
    8  # vectors in a row below which a state for each lane costs more than it saves
)
MIN_UNROLLED_STATE_VECTORS = (
    256  # vectors in a row from which on INTERLEAVED_VECTORS vectors of states are used
)
DIVIDED = ("begin", "end")  # names of the bounds of a task's part of the divided loop


def of_lane(position: NarrowPosition) -> str:
    """Return the declaration of an index of the current lane."""
    return f"const int32_t {position.name} = (int32_t)({position.start}) + (int32_t)lane;"


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
        self,
        made: PrintedPass,
        bounds: tuple[str, str] | None,
        partial: bool = False,
        flat: bool = False,
    ) -> list[str]:
        """Return the loops of a pass.

        ``bounds`` limit the divided loop, if there is one; its reductions are then ``partial``. A
        ``flat`` pass is one loop whose parts fill whole vectors.
        """
        lanes = self.nest.lanes is not None
        if self.beside(made) != "1":
            return self.one_run(made, bounds, partial)
        if made.states:
            return self.stateful(made, bounds, partial)
        if made.crosses:
            passes = bool(self.chosen(made))
            return tile_loops(made, self.names, self.row_of_tile(made), bounds, passes)
        work = self.accumulation(made)
        elements = self.elements(made)
        body = [*elements, *work.steps()]
        pragma = f"#pragma omp simd{work.clause()}"
        if flat and bounds is not None:
            return self.flat(made, bounds, body)
        outside = [] if made.around is None else made.around.lines
        known = [str(line) for line in outside]
        if lanes:
            body = [*known, *self.by_words(made, "lane", ("0", "lanes"), MAX_LANES, pragma, body)]
        for k in range(len(made.loops) - 1, -1, -1):
            turns = made.loops[k]
            around = bounds if k == made.divided else None
            low, high = around or ("0", self.extent(turns))
            cut = work.cuts and k == work.level
            ends = (BLOCK_BEGIN, BLOCK_END) if cut else (low, high)
            if not lanes and k == len(made.loops) - 1:
                most = work.turns() if cut else turns.extent
                run = self.by_words(made, turns.name, ends, most, pragma, body)
            elif lanes and k == len(made.loops) - 1 and joins_turns(made):
                filled = work.fills(JAM_FACTOR, cut, None if self.whole_parts else around)
                each = [*elements, *work.steps()]
                run = turns_together(turns.name, *ends, filled, self.over, outside, each, body)
            else:
                ends_early = work.early_end() if work.cuts and k < (work.level or 0) else []
                ahead = asked_ahead(made, turns.name, ends[1], self.names.length)
                if not lanes and k == len(made.loops) - 2:
                    ahead += known
                run = for_loop(turns.name, *ends, [*ahead, *body, *ends_early])
            body = work.blocks(run, turns.name, around) if cut else run
        if not made.loops and not lanes:
            body = ["{", *indent(body), "}"]
        return [*work.start(), *body, *work.end(partial)]

    def by_words(
        self,
        made: PrintedPass,
        variable: str,
        bounds: tuple[str, str],
        extent: Size,
        pragma: str,
        body: list[str],
    ) -> list[str]:
        """Return the innermost loop of a pass, of at most ``extent`` iterations, with its random
        bits and its non-temporal stores.
        """

        lanes, divided = self.nest.lanes is not None, bounds == DIVIDED
        chosen = self.chosen(made)

        def plain(low: str, high: str) -> list[str]:
            wide = choose_interleaving(made, self.vector_bytes)
            if lanes:
                return self.over.loop(low, high, body)
            if wide is None:
                return [pragma, *for_loop(variable, low, high, body)]
            return wide.loop(variable, (low, high), extent, pragma, body)

        def run(low: str, high: str) -> list[str]:
            if not chosen:
                return plain(low, high)
            inner, ends = self.inner(made), (low, high)
            return self.past.loop(chosen, inner, ends, plain, divided=divided, apart=lanes)

        return self.ahead(made, variable, bounds, extent, run)

    def ahead(
        self,
        made: PrintedPass,
        variable: str,
        bounds: tuple[str, str],
        extent: Size,
        loop: Callable[[str, str], list[str]],
    ) -> list[str]:
        """Return the innermost ``loop`` of a pass, of at most ``extent`` iterations, after the
        random bits and buffered loads that it reads.
        """
        words = functools.partial(with_words, made.windows, variable, extent=extent, loop=loop)
        return with_stages(
            made.stages, variable, bounds, extent, lambda low, high: words(bounds=(low, high))
        )

    def flat(self, made: PrintedPass, bounds: tuple[str, str], body: list[str]) -> list[str]:
        """Return a part of a pass that is one loop and fills whole vectors."""
        (loop,) = made.loops

        def run(low: str, high: str) -> list[str]:
            count = masked_count(f"{high} - {low}", loop.extent, self.at_once(made))
            lines = [f"const int64_t {loop.name} = {low} + turn;", *body]
            wide, ends = choose_interleaving(made, self.vector_bytes), ("0", "turns")
            if wide is None:
                turns = [SIMD, *for_loop("turn", *ends, lines)]
            else:
                turns = wide.blocks("turn", ends, SIMD, lines)
            return [f"const int64_t turns = {count};", *turns]

        def part(low: str, high: str) -> list[str]:
            ends = (low, high)
            return self.past.loop(self.chosen(made), loop, ends, run, divided=True, whole=True)

        return with_stages(made.stages, loop.name, bounds, loop.extent, part)

    def at_once(self, made: PrintedPass) -> int:
        """Return the iterations of a flat pass that are computed at once: a vector, or interleaved
        vectors.
        """
        lanes = self.vector_bytes // 4
        wide = choose_interleaving(made, self.vector_bytes)
        return lanes if wide is None else wide.block

    def inner(self, made: PrintedPass) -> Loop:
        """Return the innermost loop of a pass that has one, or the loop over lanes."""
        lanes = None if made.crosses else self.nest.lanes
        return made.loops[-1] if lanes is None else lanes

    def chosen(self, made: PrintedPass) -> list[PrintedStore]:
        """Return the stores of a pass that may be non-temporal."""
        if self.nest.lanes is None and not made.loops:
            return []
        return self.past.chosen(made, self.inner(made))

    def elements(self, made: PrintedPass) -> list[str]:
        """Return the statements of one element."""
        chosen, lines = self.chosen(made), [*made.body.lines, *made.stores]
        return [str(x) for x in self.past.statements(chosen, lines)]

    def stateful(
        self, made: PrintedPass, bounds: tuple[str, str] | None, partial: bool
    ) -> list[str]:
        """Return the loops of a pass whose reductions have a state of several scalars.

        Each vector lane has its own state; at the end they are combined into the first one.
        """
        lanes = self.nest.lanes is not None
        count = str(MAX_LANES if lanes else self.state_lanes(made))
        used = "lanes" if lanes else count
        lines = []
        for state in made.states:
            firsts = zip(state.names, state.ctypes, state.first, strict=True)
            for name, ctype, first in firsts:
                lines.append(f"{ctype} {name}[{count}];")
                start = [f"{name}[lane] = {first};"]
                lines += (
                    for_loop("lane", "0", used, start) if used != "1" else [f"{name}[0] = {first};"]
                )
        steps = [line for state in made.states for line in state.step]
        by_lanes = not lanes and count != "1" and bool(made.loops)
        body = [
            of_lane(line) if by_lanes and isinstance(line, NarrowPosition) else str(line)
            for line in [*made.body.lines, *made.stores, *steps]
        ]
        loops, each = list(made.loops), body
        if lanes:
            body = self.by_words(made, "lane", ("0", "lanes"), MAX_LANES, SIMD, body)
        elif by_lanes:
            inner = loops.pop()
            low, high = bounds if bounds and not loops else ("0", self.extent(inner))
            turn = functools.partial(self.by_lanes, inner, count=count, body=body)
            body = self.ahead(made, inner.name, (low, high), inner.extent, turn)
        for k in range(len(loops) - 1, -1, -1):
            low, high = bounds if bounds and k == 0 else ("0", self.extent(loops[k]))
            if lanes and k == len(loops) - 1 and joins_turns(made):
                filled = bounds is None and is_multiple(loops[k].extent, JAM_FACTOR)
                body = turns_together(loops[k].name, low, high, filled, self.over, [], each, body)
            elif lanes or count != "1" or k < len(loops) - 1:
                body = for_loop(loops[k].name, low, high, body)
            else:
                turn = functools.partial(for_loop, loops[k].name, body=body)
                body = self.ahead(made, loops[k].name, (low, high), loops[k].extent, turn)
        if not lanes:
            own = [] if by_lanes else ["const int64_t lane = 0;"]
            body = ["{", *indent([*own, *body]), "}"]  # names are used in other passes too
        met = []
        if not lanes and count != "1":
            joined = [line for state in made.states for line in state.combine("[0]", "[lane]")]
            met = for_loop("lane", "1", count, joined)
        return [*lines, *body, *met]

    def by_lanes(self, turns: Loop, low: str, high: str, count: str, body: list[str]) -> list[str]:
        """Return a loop over blocks of ``count`` elements, one for each lane, and a loop over the
        rest.

        The constant trip count of the inner loop halves the time.
        """
        first = lanes_start(turns.name)
        inside = [f"const int64_t {turns.name} = {first} + lane;", *body]
        return [
            f"int64_t {first} = {low};",
            f"for (; {first} + {count} <= {high}; {first} += {count}) {{",
            *indent([SIMD, *for_loop("lane", "0", count, inside)]),
            "}",
            SIMD,
            *for_loop("lane", "0", f"{high} - {first}", inside),
        ]

    def state_lanes(self, made: PrintedPass) -> int:
        """Return the number of independent states of a row; 1 if rows are short."""
        width = self.vector_bytes // 4
        size = product(each.extent for each in made.loops)
        if made.body.serial or (isinstance(size, int) and size < MIN_LANE_STATE_VECTORS * width):
            return 1
        long = isinstance(size, int) and size >= MIN_UNROLLED_STATE_VECTORS * width
        return INTERLEAVED_VECTORS * width if long else width

    def accumulation(self, made: PrintedPass) -> Accumulation:
        """Return the accumulation of a pass's reductions."""
        lanes = self.nest.lanes is not None
        converts = made.body.converts and self.vector_bytes < MIN_VECTOR_BYTES
        serial = made.body.serial or converts
        width = 1 if serial else self.vector_bytes // 4
        beside = self.beside(made)
        held = "lanes" if beside == "1" else self.held(made)
        truths = made.only_truths
        return Accumulation(
            made.sums,
            made.loops,
            self.over if lanes else None,
            width,
            self.extent,
            beside,
            held,
            truths,
            narrows=bool(made.loops),
            times=1 if serial else self.at_once(made) // width,
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
