"""How a pass of a loop nest accumulates its reductions, as C.

A sum of floats is taken in blocks: the terms of a block are added in the sum's own dtype, the sums
of blocks in float64. So its error does not grow with the number of terms, and the order of
additions follows from lengths (and the width of vectors) alone. Other reductions have no such
error: they keep one running value, but for sums of narrow integers, which 32 bits hold for a block.
Folds of truths alone look at theirs block by block, and end where no further element can change
them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ....op_graph.axes.affine import Size
from ....op_graph.axes.lengths import is_multiple, product
from ...kernels.ir.nest import Loop
from ...printing.nests.pass_text import Accumulator
from ...printing.scalars import c_expressions
from ..names.dialect import ArrayLanes
from ..names.loop_lines import indented
from ..vectors.vector_ops import vector_type

# The most terms that are added one after another in a sum's own dtype. 32 equal terms are off by
# 5e-7 in float32 at most; their blocks cost nothing that can be measured where memory is the limit.
CHAIN = 32
# Truths between two looks at whether they are decided, of one row and of each of some side by side.
TRUTHS = 4096
TRUTHS_OF_LANE = 64
# Terms of 16 bits whose sum 32 bits hold, and so few that this is not worth a block.
NARROW = 1 << 15
FEW_NARROW = 16

# How OpenMP names the folding of a row whose partial values a loop keeps in vector lanes.
SIGNS = {
    "add": "+",
    "multiply": "*",
    "maximum": "max",
    "minimum": "min",
    "logical_or": "|",
    "logical_and": "&",
}
SETTLED = {"logical_or": "!=", "logical_and": "=="}  # how a truth that stays compares to 0
Lines = list[str]
BLOCK_BEGIN, BLOCK_END = "BLOCK_BEGIN", "BLOCK_END"  # stand for the bounds of a block


class Accumulation:
    """The reductions of one pass.

    ``loops`` are those of the pass, outermost first; with ``lanes`` each row of a block of rows has
    accumulators of its own; ``width`` is how many float32 a vector holds, 1 where compilers may
    make none. ``extent`` writes the length of a loop as C. Of a pass that is one run, so many turns
    of its loop, as C, are taken ``beside`` each other, with accumulators for ``held`` lanes. A pass
    of ``truths`` does nothing but fold them. Where it ``narrows``, sums of narrow integers are
    taken in 32 bits. So many ``times`` as a vector has accumulators are there where the compiler
    computes vectors abreast. Where statements are of so many elements as are ``taken`` at once,
    accumulators are vectors of these.
    """

    def __init__(
        self,
        sums: Sequence[Accumulator],
        loops: Sequence[Loop],
        lanes: ArrayLanes | None,
        width: int,
        extent: Callable[[Loop], str],
        beside: str = "1",
        held: str = "lanes",
        truths: bool = False,
        narrows: bool = True,
        times: int = 1,
        taken: int = 1,
    ) -> None:
        self.sums, self.loops, self.lanes, self.extent = sums, loops, lanes, extent
        self.beside, self.truths, self.taken = beside, truths, taken
        self.lane_loop = "" if lanes is None else lanes.head(held)
        self.block = CHAIN * width if lanes is None else CHAIN
        if self.truths:
            self.block = TRUTHS if lanes is None else TRUTHS_OF_LANE
        floats = any(map(is_float_sum, sums))
        extremes = any(total.spoiled for total in sums)
        # clang makes no vectors of a loop that finds an extreme of floats, which NaN may be.
        self.serial = floats and extremes and lanes is None and width > 1
        self.times = times if floats and not extremes else 1
        terms = product(loop.extent for loop in loops)
        few = isinstance(terms, int) and terms < FEW_NARROW
        narrow = [] if few or not narrows else [t for t in sums if t.narrow is not None]
        if narrow and not floats:
            self.block = NARROW
        self.whole_runs = lanes is not None or truths or (bool(narrow) and not floats)
        self.level = self.block_level([loop.extent for loop in loops])
        if self.level is None and narrow:
            self.level = 0
        self.narrow = {t.name for t in narrow}
        wide = [t for t in sums if is_float_sum(t)] if self.level is not None else []
        self.blocked = {t.name for t in wide}
        self.cuts = bool(wide or narrow) or (self.truths and self.level is not None)

    def block_level(self, extents: Sequence[Size]) -> int | None:
        """The loop that is cut into blocks; None where one block holds all terms.

        It is the innermost one where a row is summed along its vectors, since what the vectors of
        one run of it hold is added to one number.
        """
        known, most = 1, CHAIN if self.serial else self.block
        for level in range(len(extents) - 1, -1, -1):
            extent = extents[level]
            if not isinstance(extent, int) or known * extent > most:
                return level if self.whole_runs else len(extents) - 1
            known *= extent
        return None

    def inner(self) -> int:
        """How many terms one turn of the loop that is cut has."""
        terms = 1
        for loop in self.loops[(self.level or 0) + 1 :]:
            assert isinstance(loop.extent, int)
            terms *= loop.extent
        return terms

    def turns(self) -> int:
        """How many turns of the loop that is cut make a block.

        Blocks of a known length are equal, so that a compiler knows how long each is, and vectors
        fill them.
        """
        assert self.level is not None
        most = max(1, self.block // self.inner())
        extent = self.loops[self.level].extent
        if not isinstance(extent, int) or extent <= most:
            return most
        count = -(-extent // most)
        equal = -(-extent // count)
        return equal if extent % equal == 0 and equal % self.taken == 0 else most

    def fills(self, number: int, cut: bool, bounds: tuple[str, str] | None) -> bool:
        """Whether the turns of each run of the innermost loop are known to be a multiple of a
        number.
        """
        extent = self.loops[-1].extent
        if bounds is not None or not is_multiple(extent, number):
            return False
        if not cut or (isinstance(extent, int) and extent <= self.turns()):
            return True
        return self.turns() % number == 0

    # Text ---------------------------------------------------------------------------------------

    def clause(self) -> str:
        """What tells the compiler that partial values of these may be kept in vector lanes."""
        if self.lanes is not None or self.taken > 1:
            return ""
        found = [f"reduction({SIGNS[t.row]}:{self.held_in(t)})" for t in self.sums]
        found += [f"reduction(|:{t.spoiled})" for t in self.sums if t.spoiled]
        return " " + " ".join(found) if found else ""

    def held_in(self, total: Accumulator) -> str:
        """The name of what takes the terms of a reduction."""
        if self.taken > 1:
            return f"{total.name}_each"
        return f"{total.name}_block" if total.name in self.narrow else total.name

    def first(self, total: Accumulator, value: str) -> str:
        """The statement that declares what takes the terms of a reduction of vectors."""
        ctype = vector_type(total.ctype, self.taken)
        start = f"GEON_EACH({ctype}, {value})"
        return f"{ctype} {self.held_in(total)} = {start};"

    def folded(self, total: Accumulator) -> str:
        """What the elements of such a vector are together."""
        kind = vector_type(total.ctype, self.taken)
        return f"{kind}_{total.row}({self.held_in(total)})"

    def around_turns(self) -> tuple[Lines, Lines]:
        """The statements before and after some turns of one vector of lanes, whose values are in
        registers meanwhile: ``steps`` are ``held`` then.
        """
        if self.lanes is None or self.lanes.vectors is None:
            return [], []
        before, after = [], []
        for total in self.sums:
            place = self.of_lane(total.name, total.ctype)
            before.append(f"{self.lanes.vectors.type(total.ctype)} {total.name}_held = {place};")
            after.append(f"{place} = {total.name}_held;")
        return before, after

    def steps(self, held: bool = False) -> Lines:
        """The statements on one element; lanes may be ``held`` in registers."""
        if held and self.around_turns()[0]:
            return [f"{t.name}_held = {t.step(f'{t.name}_held', t.text)};" for t in self.sums]
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
        """The statements before the loops."""
        found: Lines = []
        for total in self.sums:
            if total.name in self.blocked:
                found += self.declared("double", wide(total), "0")
                found += [] if self.lanes is None else [self.lanes.array(total.ctype, total.name)]
                continue
            if self.taken > 1:
                found.append(self.first(total, total.first))
                continue
            found += self.declared(total.ctype, total.name, total.first)
            if total.name in self.narrow and self.lanes is not None:
                found.append(self.lanes.array("int32_t", self.held_in(total)))
            if total.spoiled:
                found += self.declared("int", total.spoiled, "0")
        return found

    def declared(self, ctype: str, name: str, value: str) -> Lines:
        """A variable that begins as ``value``, one for each lane."""
        if self.lanes is None:
            return [f"{ctype} {name} = {value};"]
        put = f"{self.lanes.at(name, ctype)} = {self.lanes.each(ctype, value)};"
        return [self.lanes.array(ctype, name), f"{self.lane_loop} {put}"]

    def of_lane(self, name: str, ctype: str) -> str:
        """A variable, that of the lane at hand where there are lanes."""
        return name if self.lanes is None else self.lanes.at(name, ctype)

    def blocks(self, run: Lines, variable: str, bounds: tuple[str, str] | None) -> Lines:
        """The loop that is cut, block by block.

        ``run`` are its lines from ``BLOCK_BEGIN`` to ``BLOCK_END``; ``bounds`` those of its part,
        where it is divided.
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
        elif known is not None and known <= (self.fewest() if self.serial else turns):
            begin, end, head, tail = low, high, ["{"], []
        else:
            step = self.step()
            stop = f"{begin} + {step}"
            if known is None or known % turns or step != str(turns):
                stop = f"{stop} < {high} ? {stop} : {high}"
            head = [f"for (int64_t {begin} = {low}; {begin} < {high}; {begin} += {step}) {{"]
            tail = [f"const int64_t {end} = {stop};"]
        text = [line.replace(BLOCK_BEGIN, begin).replace(BLOCK_END, end) for line in run]
        body = [*tail, *self.before_block(), *text, *self.after_block()]
        return [*head, *("    " + line if line[:1] != "#" else line for line in body), "}"]

    def step(self) -> str:
        """How many turns make a block, as C: as many as the compiler has accumulators for."""
        turns = self.turns()
        if self.times > 1:
            return f"GEON_BY_COMPILER({self.times * turns}, {turns})"
        return f"GEON_BY_COMPILER({turns}, {self.fewest()})" if self.serial else str(turns)

    def fewest(self) -> int:
        """How many turns make a block where no vectors are made."""
        return max(1, CHAIN // self.inner())

    def before_block(self) -> Lines:
        """The statements before a block."""
        found = []
        for total in self.sums:
            held, narrow = self.held_in(total), total.name in self.narrow
            if narrow or total.name in self.blocked:
                ctype = "int32_t" if narrow else total.ctype
                if self.lanes is not None:
                    zero = self.lanes.each(ctype, "0")
                    found.append(f"{self.lane_loop} {self.lanes.at(held, ctype)} = {zero};")
                elif self.taken > 1:
                    found.append(self.first(total, "0.0f"))
                else:
                    found.append(f"{ctype} {held} = 0;")
        return found

    def after_block(self) -> Lines:
        """The statements after a block."""
        found = []
        for total in self.sums:
            if total.name in self.blocked or total.name in self.narrow:
                narrow, held = total.name in self.narrow, self.held_in(total)
                into = total.name if narrow else wide(total)
                if self.lanes is None:
                    found.append(f"{into} += {self.folded(total) if self.taken > 1 else held};")
                    continue
                ctype = total.ctype if narrow else "double"
                added = self.lanes.converted("int32_t" if narrow else total.ctype, ctype, held)
                found.append(f"{self.lane_loop} {self.lanes.at(into, ctype)} += {added};")
        return found + self.early_end()

    def early_end(self) -> Lines:
        """The statements that leave a loop whose truths are all decided."""
        if not self.truths:
            return []
        each = [f"{self.of_lane(t.name, t.ctype)} {SETTLED[t.row]} 0" for t in self.sums]
        if self.lanes is None:
            return [f"if ({' && '.join(each)}) break;"]
        return [
            f"{self.sums[0].ctype} open = 0;",
            "#pragma omp simd reduction(|:open)",
            f"{self.lane_loop} open |= !({' & '.join(f'({one})' for one in each)});",
            "if (!open) break;",
        ]

    def meet(self, held: str) -> Lines:
        """The statements that bring what turns beside each other gave to the first one's lanes."""
        found: Lines = []
        if self.lanes is None:
            return found

        def both(name: str, ctype: str) -> tuple[str, str]:
            assert self.lanes is not None
            return self.lanes.at(name, ctype), self.lanes.at(name, ctype, "turn + lane")

        for total in self.sums:
            if total.name in self.blocked:
                own, other = both(wide(total), "double")
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
        """The statements after the loops: sums in their dtype, and a NaN that was met wins.

        Of a ``partial`` value more is to come: it stays as it is.
        """
        found = []
        for total in self.sums:
            if total.name in self.blocked and not partial:
                if self.lanes is not None:
                    found.append(self.lanes.narrowed(total.ctype, total.name, wide(total)))
                else:
                    found.append(
                        f"const {total.ctype} {total.name} = ({total.ctype}){wide(total)};"
                    )
            if self.taken > 1 and total.name not in self.blocked:
                found.append(f"const {total.ctype} {total.name} = {self.folded(total)};")
            if total.spoiled:
                nan = c_expressions.literal(float("nan"), total.dtype)
                if self.lanes is not None:
                    flag = self.of_lane(total.spoiled, "int")
                    held = self.of_lane(total.name, total.ctype)
                    found.append(f"{self.lanes.head()} if ({flag}) {held} = {nan};")
                else:
                    found.append(f"if ({total.spoiled}) {total.name} = {nan};")
        return found


def is_float_sum(total: Accumulator) -> bool:
    """Whether rounding makes the result of a reduction depend on how its terms are grouped."""
    return total.row == "add" and total.dtype in ("float32", "float64")


def wide(total: Accumulator) -> str:
    """The name of the sum of the sums of blocks."""
    return f"{total.name}_wide"


def for_further_turns(lanes: ArrayLanes, held: str, statements: Lines) -> Lines:
    """Statements for each lane of the turns beside the first one, with which there are ``held``."""
    if not statements:
        return []
    head = f"for (int64_t turn = lanes; turn < {held}; turn += lanes) {{"
    return [head, *indented(lanes.loop("0", "lanes", statements, pragma=False)), "}"]
