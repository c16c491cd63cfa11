"""CUDA functions of a loop nest, from loop trees where threads or single teams do its rows.

Columns, and reductions that several blocks share, have forms of their own: many blocks reduce
parts, which are then combined in order. The division of work depends on lengths alone. In a
sequential loop, one thread per row runs all iterations in one launch.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ....op_graph.axes.affine import Size
from ....op_graph.axes.lengths import product
from ...kernels.ir.nest import Nest, Pass
from ...kernels.nests.unrolled_reductions import MAX_SERIAL_TERMS
from ...kernels.scans.sequential_scan import OrderedLoop
from ...loops.gpu_threads import ELEMENTS_PER_VECTOR, is_whole
from ...printing.nests.loop_lines import indent
from ...printing.nests.nest_statements import print_nest
from ...printing.nests.pass_text import PrintedNest, PrintedPass, RowStore
from ...printing.nests.scan_statements import print_ordered
from ..launches.launch_ir import THREADS_PER_BLOCK, Grid, Parts
from ..launches.naming import (
    CudaFunction,
    CudaKernelNames,
    Either,
    MemoryCopy,
    Part,
)
from .cooperative_threads import (
    MAX_WARP_ROW_ELEMENTS,
    SCALAR_BYTES,
    WARP_SIZE,
    Lines,
    Team,
    finish_sums,
    turns,
    values_of,
)
from .float4 import (
    fours_of,
    turns_by_fours,
)
from .split_reductions import (
    MAX_PART_BLOCKS,
    all_functions,
    column_functions,
    division_of,
    row_functions,
    states,
)
from .team_text import team_function
from .thread_text import thread_function
from .transpose_tiles import tiled_function
from .tree_choice import is_by_threads, is_divided, team_trees, transposed_passes, tree_of


def nest_parts(work: Nest, names: CudaKernelNames) -> list[Part]:
    """Return the functions of a nest in execution order."""
    if work.pieces:
        pieces = [part for piece in work.pieces for part in nest_parts(piece, names)]
        if not work.holds:
            return pieces
        whole = nest_parts(replace(work, pieces=()), names)
        return [Either(work.holds, tuple(pieces), tuple(whole))]
    found: list[Part] = []
    if work.fill is not None:
        target, source = (
            names.place_of(work.operands[n]) for n in (work.fill.operand, work.fill.source)
        )
        whole_op = work.operands[work.fill.operand]
        if target != source:
            found.append(MemoryCopy(target, source, whole_op.axes.size * whole_op.dtype.itemsize))
    if is_by_threads(work):
        return [*found, *thread_parts(work, names)]
    if is_divided(work):
        return [*found, *_NestWriter(work, names, None).parts()]
    division = division_of(work)
    if division is None:
        return [*found, *team_parts(work, names)]
    several = _NestWriter(work, names, division.parts).parts()
    if division.is_known:
        return [*found, *several]
    return [*found, Either(division.holds, tuple(several), tuple(team_parts(work, names)))]


def thread_parts(nest: Nest, names: CudaKernelNames) -> list[Part]:
    """Return the functions of a nest of independent threads; transposed passes have their own."""
    turned = transposed_passes(nest)
    found: list[Part] = [tiled_function(replace(nest, steps=(step,)), names) for step in turned]
    tree = tree_of(nest, unaligned(nest, names))
    return found if tree is None else [*found, thread_function(tree, names)]


def team_parts(nest: Nest, names: CudaKernelNames) -> list[Part]:
    """Return functions with a team per row; open lengths choose among them at run time."""
    found = [
        team_function(tree, team, names, states(nest))
        for team, tree in team_trees(nest, unaligned(nest, names))
    ]
    if len(found) == 1:
        return [*found]
    counts = [product(loop.extent for loop in step.loops) for step in nest.passes]
    holds = tuple([MAX_WARP_ROW_ELEMENTS - n for n in counts if not isinstance(n, int)])
    return [Either(holds, (found[0],), (found[1],))]


def unaligned(nest: Nest, names: CudaKernelNames) -> set[int]:
    """Return the operands of a nest that may begin between vectors."""
    return {number for number in range(len(nest.operands)) if names.is_apart(number)}


def parts_bytes(nest: Nest) -> Size:
    """Return the bytes of partial values of a split full reduction; 0 for other nests."""
    if not is_divided(nest):
        return 0
    found = [r for step in nest.steps if isinstance(step, Pass) for r in step.reductions]
    return sum(len(reduction.states) for reduction in found) * MAX_PART_BLOCKS * SCALAR_BYTES


class _NestWriter:
    """Writes reductions of adjacent columns, and those that several blocks share."""

    def __init__(self, nest: Nest, names: CudaKernelNames, cut: Parts | None) -> None:
        self.nest, self.names, self.cut = nest, names, cut
        across = nest.across
        division = division_of(nest)
        fits = division is None or division.is_known or is_whole(division.parts.count)
        self.fours = fours_of(nest, names) if across is None and fits else None
        loaded = None if self.fours is None else self.fours.texts
        self.printed: PrintedNest = print_nest(nest, names, loaded=loaded)
        self.numbers = {id(each): n for n, each in enumerate(self.printed.passes)}
        self.extent = names.length
        loops = [*nest.rows, *(loop for step in nest.passes for loop in step.loops)]
        for loop in loops if across is None else [*loops, across]:
            # Declares all lengths as parameters before the first function is written.
            self.extent(loop.extent)

    def parts(self) -> list[Part]:
        """Return the functions; open lengths choose among variants at run time."""
        if self.nest.across is not None:
            assert self.cut is not None
            return [*column_functions(self.nest, self.printed, self.cut, self.names)]
        if self.cut is None:
            return self.in_parts()
        share = self.share(self.extent(self.cut.count), "parts")
        several = row_functions(
            self.nest, self.printed, self.cut, self.names, share, self.turns_of_part
        )
        return [*several]

    def statements(self, team: Team, lines: Sequence[object], inside: bool = False) -> Lines:
        """Return the statements of a row.

        A barrier stands before and after stores that other threads of the team may read.
        """
        found: Lines = []
        met, stored = True, False
        for number, line in enumerate(lines):
            last = number == len(lines) - 1
            if isinstance(line, PrintedPass):
                found += team.meet() if stored else []
                found += self.shared(team, line, inside, last)
                met, stored = True, False
                continue
            if isinstance(line, RowStore):
                found += [] if met else team.meet()
                stored = True
            met = isinstance(line, RowStore)
            found.append(str(line))
        return found

    def shared(self, team: Team, made: PrintedPass, inside: bool, last: bool) -> Lines:
        """Return a pass shared by a team, with a barrier at its end unless it is the last one."""
        count = product(loop.extent for loop in made.loops)
        size = self.extent(count)
        high = f"(inside ? {size} : 0)" if inside else size
        values = values_of(made)
        begun = [line for value in values for line in value.begun()]
        few = isinstance(count, int) and count <= MAX_SERIAL_TERMS * team.size
        loop = turns(made, self.extent, ("rank", high), team.size, few)
        joined = team.joined(values)
        meets = [] if last or joined[-1:] == team.meet() else team.meet()
        return [*begun, *loop, *joined, *finish_sums(made), *meets]

    # All elements -------------------------------------------------------------------------------

    def in_parts(self) -> list[Part]:
        """Return functions that reduce parts of each pass by many blocks, then combine them."""
        team = Team(THREADS_PER_BLOCK, THREADS_PER_BLOCK)
        ending = self.statements(team, self.printed.ending.lines)
        shared = team.shared(states(self.nest))
        return all_functions(
            self.printed, self.names, self.share, self.turns_of_part, ending, shared
        )

    def share(self, size: str, parts: str = "gridDim.x") -> str:
        """Return the C text of the elements per block, a multiple of four if vectorised."""
        each = f"({size} + {parts} - 1) / {parts}"
        return (
            each
            if self.fours is None
            else (
                f"({each} + {ELEMENTS_PER_VECTOR - 1}) / {ELEMENTS_PER_VECTOR} * "
                f"{ELEMENTS_PER_VECTOR}"
            )
        )

    def turns_of_part(self, made: PrintedPass) -> Lines:
        """Return the loop over a block's part of a pass."""
        fours, number = self.fours, self.numbers[id(made)]
        if fours is None or number not in fours.passes:
            return turns(made, self.extent, ("begin + rank", "end"), THREADS_PER_BLOCK, False)
        return turns_by_fours(made, number, fours, self.names)


def ordered_function(work: OrderedLoop, names: CudaKernelNames) -> CudaFunction:
    """Return the function of a sequential loop."""
    printed = print_ordered(work, names, lambda name: name)
    rows, count = names.length(work.rows), names.length(work.turns)
    part = f"{count} - 1 - turn" if work.reverse else "turn"
    body = [
        f"const int64_t row = (int64_t)blockIdx.x * {WARP_SIZE} + threadIdx.x;",
        f"if (row >= {rows}) return;",
        *printed.top,
        *(f"{ctype} {name};" for ctype, name in printed.carries),
        *printed.first,
        f"for (int64_t turn = 0; turn < {count}; turn++) {{",
        *indent([f"const int64_t part = {part};", *printed.turn]),
        "}",
        *printed.last,
    ]
    return names.function(body, Grid(work.rows, WARP_SIZE), WARP_SIZE, False)
