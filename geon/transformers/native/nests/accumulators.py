"""Emit the accumulation of a pass's reductions as C.

A sum of floats is accumulated in blocks: terms of a block are added in the sum's dtype, block sums
in float64. So the error does not grow with the number of terms, and the order of additions depends
only on lengths. Other reductions have no rounding error and keep one running
value, except that sums of narrow integers accumulate in 32 bits within a block. A pass that only
reduces booleans tests after each block whether all results are decided, and then stops.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ....op_graph.axes.affine import Size
from ....op_graph.axes.lengths import is_multiple, product
from ...kernels.ir.nest import Loop
from ...kernels.nests.unrolled_reductions import MAX_SERIAL_TERMS
from ...printing.nests.loop_lines import indent
from ...printing.nests.pass_text import Accumulator
from ...printing.scalars import c_expressions
from ..names.dialect import ArrayLanes

TRUTHS_PER_LANE_CHECK = 64  # booleans of each row in lanes between two tests for an early exit
# Maximum 16-bit terms whose sum fits into 32 bits, and the fewest for which blocks pay off.
MAX_NARROW_BLOCK_TERMS = 1 << 15
MIN_NARROW_BLOCK_TERMS = 16

SETTLED = {"logical_or": "!=", "logical_and": "=="}  # a decided value compares so to 0
Lines = list[str]
BLOCK_BEGIN, BLOCK_END = "BLOCK_BEGIN", "BLOCK_END"  # placeholders of the bounds of a block


class Accumulation:
    """The accumulators of one pass and the C statements that update them.

    ``sums`` are the reductions. ``loops`` are the loops of the pass, outermost first. ``lanes`` are
    rows in lanes, each with its own accumulators; None for a single row. ``width`` is the number of
    float32 in a vector, 1 if the compiler may not vectorise. ``extent`` returns the extent of a
    loop as C. ``beside`` is the number of iterations in the lanes of a collapsed run, as C.
    ``held`` is the number of lanes that have accumulators then, as C. ``truths`` is True if the
    pass only reduces booleans. ``narrows`` allows sums of narrow integers to accumulate in 32 bits.
    ``times`` is the factor of additional accumulators if the compiler interleaves vectors.
    """

    def __init__(
        self,
        sums: Sequence[Accumulator],
        loops: Sequence[Loop],
        lanes: ArrayLanes,
        extent: Callable[[Loop], str],
        beside: str = "1",
        held: str = "lanes",
        truths: bool = False,
        narrows: bool = True,
    ) -> None:
        self.sums, self.loops, self.lanes, self.extent = sums, loops, lanes, extent
        self.beside, self.truths = beside, truths
        self.lane_loop = lanes.head(held)
        self.block = TRUTHS_PER_LANE_CHECK if self.truths else MAX_SERIAL_TERMS
        floats = any(map(is_float_sum, sums))
        terms = product(loop.extent for loop in loops)
        few = isinstance(terms, int) and terms < MIN_NARROW_BLOCK_TERMS
        narrow = [] if few or not narrows else [t for t in sums if t.narrow is not None]
        if narrow and not floats:
            self.block = MAX_NARROW_BLOCK_TERMS
        self.level = self.block_level([loop.extent for loop in loops])
        if self.level is None and narrow:
            self.level = 0
        self.narrow = {t.name for t in narrow}
        wide = [t for t in sums if is_float_sum(t)] if self.level is not None else []
        self.blocked = {t.name for t in wide}
        self.cuts = bool(wide or narrow) or (self.truths and self.level is not None)

    def block_level(self, extents: Sequence[Size]) -> int | None:
        """Return the level of the loop that is cut into blocks, None if one block has all terms."""
        known = 1
        for level in range(len(extents) - 1, -1, -1):
            extent = extents[level]
            if not isinstance(extent, int) or known * extent > self.block:
                return level
            known *= extent
        return None

    def inner(self) -> int:
        """Return the number of terms in one iteration of the loop that is cut."""
        terms = 1
        for loop in self.loops[(self.level or 0) + 1 :]:
            assert isinstance(loop.extent, int)
            terms *= loop.extent
        return terms

    def turns(self) -> int:
        """Return the number of iterations of the cut loop in one block.

        Blocks of a known extent have equal sizes if possible, so that the compiler knows each trip
        count and vectors fill it.
        """
        assert self.level is not None
        most = max(1, self.block // self.inner())
        extent = self.loops[self.level].extent
        if not isinstance(extent, int) or extent <= most:
            return most
        count = -(-extent // most)
        equal = -(-extent // count)
        return equal if extent % equal == 0 else most

    def fills(self, number: int, cut: bool, bounds: tuple[str, str] | None) -> bool:
        """Return True if each run of the innermost loop has a multiple of ``number`` iterations."""
        extent = self.loops[-1].extent
        if bounds is not None or not is_multiple(extent, number):
            return False
        if not cut or (isinstance(extent, int) and extent <= self.turns()):
            return True
        return self.turns() % number == 0

    # Text ---------------------------------------------------------------------------------------

    def held_in(self, total: Accumulator) -> str:
        """Return the name of the variable that accumulates a reduction's terms."""
        return f"{total.name}_block" if total.name in self.narrow else total.name

    def steps(self) -> Lines:
        """Return the statements that accumulate one element."""
        found = []
        for total in self.sums:
            place = self.of_lane(self.held_in(total), total.ctype)
            if total.name in self.narrow:
                found.append(f"{place} += {total.narrow};")
                continue
            if total.spoiled:
                sign = ">" if total.row == "maximum" else "<"
                found.append(f"{place} = {total.text} {sign} {place} ? {total.text} : {place};")
                flag = self.of_lane(total.spoiled, "int")
                found.append(f"{flag} |= {total.text} != {total.text};")
                continue
            found.append(f"{place} = {total.step(place, total.text)};")
        return found

    def start(self) -> Lines:
        """Return the declarations of accumulators before the loops."""
        found: Lines = []
        for total in self.sums:
            if total.name in self.blocked:
                found += self.declared("double", wide_name(total), "0")
                found.append(self.lanes.array(total.ctype, total.name))
                continue
            found += self.declared(total.ctype, total.name, total.first)
            if total.name in self.narrow:
                found.append(self.lanes.array("int32_t", self.held_in(total)))
            if total.spoiled:
                found += self.declared("int", total.spoiled, "0")
        return found

    def declared(self, ctype: str, name: str, value: str) -> Lines:
        """Declare an array over lanes with initial ``value``."""
        put = f"{self.lanes.at(name, ctype)} = {self.lanes.each(ctype, value)};"
        return [self.lanes.array(ctype, name), f"{self.lane_loop} {put}"]

    def of_lane(self, name: str, ctype: str) -> str:
        """Return the current lane's element of an array."""
        return self.lanes.at(name, ctype)

    def blocks(self, run: Lines, variable: str, bounds: tuple[str, str] | None) -> Lines:
        """Return the loop over blocks of the cut loop.

        ``run`` are the lines of one block, from ``BLOCK_BEGIN`` to ``BLOCK_END``. ``bounds`` limit
        the loop if the work is divided.
        """
        assert self.level is not None
        loop, turns = self.loops[self.level], self.turns()
        low, high = bounds or ("0", self.extent(loop))
        begin, end = f"{variable}_block", f"{variable}_end"
        known = loop.extent if isinstance(loop.extent, int) and bounds is None else None
        if self.beside != "1":
            step = f"{self.block} * {self.beside}"
            head = [f"for (int64_t {begin} = {low}; {begin} < {high}; {begin} += {step}) {{"]
            stop = f"{begin} + {step} < {high} ? {begin} + {step} : {high}"
            tail = [f"const int64_t {end} = {stop};"]
        elif known is not None and known <= turns:
            begin, end, head, tail = low, high, ["{"], []
        else:
            stop = f"{begin} + {turns}"
            if known is None or known % turns:
                stop = f"{stop} < {high} ? {stop} : {high}"
            head = [f"for (int64_t {begin} = {low}; {begin} < {high}; {begin} += {turns}) {{"]
            tail = [f"const int64_t {end} = {stop};"]
        text = [line.replace(BLOCK_BEGIN, begin).replace(BLOCK_END, end) for line in run]
        body = [*tail, *self.before_block(), *text, *self.after_block()]
        return [*head, *("    " + line if line[:1] != "#" else line for line in body), "}"]

    def before_block(self) -> Lines:
        """Return the statements that reset the accumulators of a block."""
        found = []
        for total in self.sums:
            held, narrow = self.held_in(total), total.name in self.narrow
            if narrow or total.name in self.blocked:
                ctype = "int32_t" if narrow else total.ctype
                zero = self.lanes.each(ctype, "0")
                found.append(f"{self.lane_loop} {self.lanes.at(held, ctype)} = {zero};")
        return found

    def after_block(self) -> Lines:
        """Return the statements that add a block's sums to the totals."""
        found = []
        for total in self.sums:
            if total.name in self.blocked or total.name in self.narrow:
                narrow, held = total.name in self.narrow, self.held_in(total)
                into = total.name if narrow else wide_name(total)
                ctype = total.ctype if narrow else "double"
                added = self.lanes.converted("int32_t" if narrow else total.ctype, ctype, held)
                found.append(f"{self.lane_loop} {self.lanes.at(into, ctype)} += {added};")
        return found + self.early_end()

    def early_end(self) -> Lines:
        """Return the statement that leaves the loop if all booleans are decided."""
        if not self.truths:
            return []
        each = [f"{self.of_lane(t.name, t.ctype)} {SETTLED[t.row]} 0" for t in self.sums]
        return [
            f"{self.sums[0].ctype} open = 0;",
            "#pragma omp simd reduction(|:open)",
            f"{self.lane_loop} open |= !({' & '.join(f'({one})' for one in each)});",
            "if (!open) break;",
        ]

    def meet(self, held: str) -> Lines:
        """Return the statements that combine the lanes of unrolled iterations."""
        found: Lines = []

        def both(name: str, ctype: str) -> tuple[str, str]:
            return self.lanes.at(name, ctype), self.lanes.at(name, ctype, "turn + lane")

        for total in self.sums:
            if total.name in self.blocked:
                own, other = both(wide_name(total), "double")
                found.append(f"{own} += {other};")
                continue
            own, other = both(total.name, total.ctype)
            if total.spoiled:
                sign = ">" if total.row == "maximum" else "<"
                found.append(f"{own} = {other} {sign} {own} ? {other} : {own};")
                own, other = both(total.spoiled, "int")
                found.append(f"{own} |= {other};")
                continue
            found.append(f"{own} = {total.step(own, other)};")
        return for_further_turns(self.lanes, held, found)

    def end(self, partial: bool = False) -> Lines:
        """Return the statements after the loops: convert sums to their dtype and propagate a NaN.

        Sums of a ``partial`` pass are not converted: other parts follow.
        """
        found = []
        for total in self.sums:
            if total.name in self.blocked and not partial:
                found.append(self.lanes.narrowed(total.ctype, total.name, wide_name(total)))
            if total.spoiled:
                nan = c_expressions.literal(float("nan"), total.dtype)
                flag = self.of_lane(total.spoiled, "int")
                held = self.of_lane(total.name, total.ctype)
                found.append(f"{self.lanes.head()} if ({flag}) {held} = {nan};")
        return found


def is_float_sum(total: Accumulator) -> bool:
    """Return True for a sum of floats, whose rounding depends on the grouping of terms."""
    return total.row == "add" and total.dtype in ("float32", "float64")


def wide_name(total: Accumulator) -> str:
    """Return the name of the float64 sum of block sums."""
    return f"{total.name}_wide"


def for_further_turns(lanes: ArrayLanes, held: str, statements: Lines) -> Lines:
    """Return a loop that runs ``statements`` in the lanes of all unrolled iterations but the first.

    ``held`` is the number of lanes of all iterations.
    """
    if not statements:
        return []
    head = f"for (int64_t turn = lanes; turn < {held}; turn += lanes) {{"
    return [head, *indent(lanes.loop("0", "lanes", statements, pragma=False)), "}"]
