"""Emit a pass of a loop nest as C: its loops, in vector lanes or tiles."""

from __future__ import annotations

from ...kernels.ir.nest import Loop
from ...printing.nests.loop_lines import for_loop
from ...printing.nests.pass_text import PrintedNest, PrintedPass, PrintedStore
from ...printing.nests.scalar_statements import MAX_LANES
from ..names.dialect import SIMD, ArrayLanes
from ..names.naming import KernelNames
from ..vectors.nontemporal_stores import Past
from ..vectors.transpose_tiles import tile_loops, turns_of, width
from .random_buffer import with_words


class Passes:
    """Emits the passes of one nest."""

    def __init__(self, nest: PrintedNest, names: KernelNames, vector_bytes: int) -> None:
        assert isinstance(nest.over, ArrayLanes), "rows side by side are arrays"
        self.nest, self.names, self.vector_bytes, self.over = nest, names, vector_bytes, nest.over
        self.past = Past(None, names)  # non-temporal stores of the current task

    def extent(self, loop: Loop) -> str:
        """Return the extent of a loop as C."""
        return self.names.length(loop.extent)

    def statements(self, lines: list[object], bounds: tuple[str, str] | None = None) -> list[str]:
        """Return the statements of a block, with passes as loops; ``bounds`` limit them."""
        found: list[str] = []
        for line in lines:
            found += self.text(line, bounds) if isinstance(line, PrintedPass) else [str(line)]
        return found

    def text(self, made: PrintedPass, bounds: tuple[str, str] | None) -> list[str]:
        """Return the loops of a pass; ``bounds`` limit the divided loop, if there is one."""
        if made.crosses:
            passes = bool(self.chosen(made))
            return tile_loops(made, self.names, self.row_of_tile(made), bounds, passes)
        outside = [] if made.around is None else made.around.lines
        body = [*map(str, outside), *self.by_words(made, self.elements(made))]
        for k in range(len(made.loops) - 1, -1, -1):
            loop = made.loops[k]
            divided = bounds if k == made.divided else None
            body = for_loop(loop.name, *(divided or ("0", self.extent(loop))), body)
        return body

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

    def row_of_tile(self, made: PrintedPass) -> list[str]:
        """Return the loop along one row of a tile, for a transposed pass."""
        last, each = made.loops[-1], self.elements(made)

        def run(low: str, high: str) -> list[str]:
            return [SIMD, *for_loop(last.name, low, high, each)]

        bounds = ("tile", "tile_end")
        if made.flat:
            bounds = ("0", f"(lane_end - lane_tile) * {turns_of(made, self.names)}")
        return self.past.row_of_tile(self.chosen(made), last, width(made), bounds, run)
