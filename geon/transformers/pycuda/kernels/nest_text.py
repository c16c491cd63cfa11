"""CUDA text of a loop nest: one thread per element, or a team of threads per row.

A large reduction over all elements takes two stages: many blocks reduce parts, then one block
combines these in order. The division of work depends on lengths alone. In a sequential loop, one
thread per row runs all iterations in one launch.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ....op_graph.axes.affine import Size
from ....op_graph.axes.lengths import product
from ...kernels.ir.nest import Loop, Nest, Pass
from ...kernels.nests.unrolled_reductions import MAX_SERIAL_TERMS
from ...kernels.scans.sequential_scan import OrderedLoop
from ...loops.gpu_rules import ELEMENTS_PER_VECTOR
from ...printing.nests.nest_statements import print_nest
from ...printing.nests.pass_text import PrintedNest, PrintedPass, RowStore
from ...printing.nests.scan_statements import print_ordered
from ...sizes.scratch import lines as up_to_lines
from ..launches.launch_ir import MIN_PART_TURNS, THREADS_PER_BLOCK, Grid
from ..launches.naming import (
    CudaFunction,
    CudaKernelNames,
    Either,
    MemoryCopy,
    Part,
    indent,
)
from .cooperative_threads import (
    MAX_WARP_ROW_ELEMENTS,
    WARP_SIZE,
    Lines,
    Team,
    arrays_shared,
    finish_sums,
    holding_team,
    places,
    slot_bytes,
    turns,
    turns_of,
    values_of,
)
from .float4 import (
    Fours,
    elements_of,
    fits,
    fours_of,
    turns_by_fours,
)
from .split_reductions import (
    COLUMN_TEAM,
    ELEMENTS_PER_BLOCK,
    MAX_PART_BLOCKS,
    all_functions,
    choose_parts,
    column_functions,
    cut_rows,
    is_known,
    row_functions,
    states,
)
from .split_reductions import holds as cut_holds
from .thread_text import thread_function
from .transpose_tiles import tiled_function
from .tree_choice import is_by_threads, transposed_passes, tree_of

MAX_SCRATCH_BLOCKS = 512  # max. blocks, each with its own slot of scratch memory


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
    return [*found, *_NestWriter(work, names).parts()]


def thread_parts(nest: Nest, names: CudaKernelNames) -> list[Part]:
    """Return the functions of a nest of independent threads; transposed passes have their own."""
    turned = transposed_passes(nest)
    found: list[Part] = [tiled_function(replace(nest, steps=(step,)), names) for step in turned]
    tree = tree_of(nest, {k for k in range(len(nest.operands)) if names.is_apart(k)})
    return found if tree is None else [*found, thread_function(tree, names)]


def parts_bytes(nest: Nest) -> Size:
    """Return the bytes of partial values of a split full reduction; 0 for other nests."""
    if nest.rows or nest.across is not None or not is_divided(nest):
        return 0
    found = [r for step in nest.steps if isinstance(step, Pass) for r in step.reductions]
    return sum(len(reduction.states) for reduction in found) * MAX_PART_BLOCKS * 8


def is_divided(nest: Nest) -> bool:
    """Return True if a nest without rows reduces so much that several blocks share it."""
    if nest.rows or nest.across is not None:
        return False
    passes = [step for step in nest.steps if isinstance(step, Pass)]
    if not any(step.reductions for step in passes):
        return False
    return any(
        not isinstance(n, int) or n > ELEMENTS_PER_BLOCK
        for n in (product(loop.extent for loop in step.loops) for step in passes)
    )


class _NestWriter:
    def __init__(self, nest: Nest, names: CudaKernelNames) -> None:
        self.nest, self.names = nest, names
        self.held, self.cut_rows = holding_team(nest), cut_rows(nest)
        at = "turn" if self.held is not None else ""
        self.fours = self.by_fours()
        loaded = None if self.fours is None else self.fours.texts
        self.printed: PrintedNest = print_nest(nest, names, loaded=loaded, kept_at=at)
        self.numbers = {id(each): n for n, each in enumerate(self.printed.passes)}
        self.extent = names.length
        loops = [*nest.rows, *(loop for step in nest.passes for loop in step.loops)]
        for loop in [*loops, nest.across] if nest.across is not None else loops:
            self.extent(
                loop.extent
            )  # Declares all lengths as parameters before the first function is written.

    def parts(self) -> list[Part]:
        """Return the functions."""
        if is_divided(self.nest):
            return self.in_parts()
        return self.by_rows()

    @property
    def loops(self) -> list[Loop]:
        """Return the loops over rows, including the one over adjacent rows."""
        across = [] if self.nest.across is None else [self.nest.across]
        return [*self.nest.rows, *across]

    def by_fours(self) -> Fours | None:
        """Return the vectorised form of the passes, or None."""
        nest = self.nest
        if nest.across is not None:
            return None
        if is_divided(nest) or (self.cut_rows is not None and is_known(self.cut_rows)):
            return fours_of(nest, self.names, THREADS_PER_BLOCK, partial=True)
        team = self.held or self.known_team()
        if team is None:
            return None
        held = sum(self.held_elements(a.size, team) for a in nest.arrays) if self.held else 0
        return fours_of(nest, self.names, team.size, held=held)

    def held_elements(self, size: Size, team: Team) -> int:
        """Return the number of elements of a row array that one thread holds."""
        assert isinstance(size, int)
        return elements_of(size, team.size) if fits(size, team.size) else turns_of(size, team)

    def counts(self) -> list[Size]:
        """Return the number of elements of each pass of a row."""
        return [product(loop.extent for loop in step.loops) for step in self.nest.passes]

    def known_team(self) -> Team | None:
        """Return the team of a row if known lengths determine it; else None."""
        counts = self.counts()
        known = [n for n in counts if isinstance(n, int)]
        most = max(known, default=1)
        if self.nest.arrays or most > MAX_WARP_ROW_ELEMENTS:
            return Team(THREADS_PER_BLOCK, THREADS_PER_BLOCK)
        if len(known) < len(counts):
            return None
        threads = THREADS_PER_BLOCK if self.nest.rows else 0
        return Team(WARP_SIZE, threads or WARP_SIZE)

    # Rows ---------------------------------------------------------------------------------------

    def by_rows(self) -> list[Part]:
        """Return functions with a team per row; open lengths choose among variants at run time."""
        if self.nest.across is not None:
            whole = self.side_by_side(COLUMN_TEAM)
            parts = choose_parts(self.nest)
            if parts is None:
                return [whole]
            apart = column_functions(self.nest, self.printed, parts, self.names)
            if isinstance(parts.count, int):
                return [*apart]
            return [Either((MIN_PART_TURNS - parts.count,), (whole,), apart)]
        if self.cut_rows is None:
            return self.whole_rows()
        count = self.extent(self.cut_rows.count)
        several = row_functions(
            self.nest, self.printed, self.cut_rows, self.names,
            self.share(count, "parts"), self.turns_of_part,
        )  # fmt: skip
        if is_known(self.cut_rows):
            return [*several]
        return [Either(cut_holds(self.cut_rows), several, tuple(self.whole_rows()))]

    def whole_rows(self) -> list[Part]:
        """Return functions in which one team does all of a row."""
        open_counts = [n for n in self.counts() if not isinstance(n, int)]
        threads = THREADS_PER_BLOCK if self.nest.rows else 0
        block, warp = (
            Team(THREADS_PER_BLOCK, THREADS_PER_BLOCK),
            Team(WARP_SIZE, threads or WARP_SIZE),
        )
        team = self.held or self.known_team()
        if team is not None:
            return [self.each_row(team)]
        holds = tuple([MAX_WARP_ROW_ELEMENTS - n for n in open_counts])
        return [Either(holds, (self.each_row(warp),), (self.each_row(block),))]

    def each_row(self, team: Team) -> CudaFunction:
        """Return the function with one team per row."""
        nest = self.nest
        rows = product(loop.extent for loop in nest.rows)
        arrays, slots = self.arrays(team)
        row = "blockIdx.x"
        if team.rows > 1:
            row = f"blockIdx.x * {team.rows} + threadIdx.x / {team.size}"
        first = "const bool first = rank == 0;"
        lines = [*self.printed.row.lines, *self.printed.ending.lines]
        inner = places(nest.rows, "row", self.extent)
        inner += [] if self.fours is None else self.fours.row
        inner += self.statements(team, lines, again=slots)
        top = [*map(str, self.printed.top.lines)]
        start = [*team.start(), first]
        if slots:
            size = self.extent(rows)
            loop = f"for (int64_t row = blockIdx.x; row < {size}; row += gridDim.x) {{"
            body = [*start, *arrays, *top, loop, *indent(inner), "}"]
            grid = Grid(rows, 1, MAX_SCRATCH_BLOCKS)
            return self.names.function(
                body, grid, THREADS_PER_BLOCK, True, shared=self.shared_bytes(team)
            )
        body = [*start, *arrays]
        if nest.rows:
            body.append(f"const int64_t row = (int64_t){row};")
            if team.rows > 1:
                body.append(f"if (row >= {self.extent(rows)}) return;")
        body += [*top, *inner]
        grid, shared = Grid(rows, team.rows), self.shared_bytes(team)
        return self.names.function(body, grid, team.threads, True, shared=shared)

    def side_by_side(self, team: Team) -> CudaFunction:
        """Return the function in which a block handles some adjacent rows."""
        nest = self.nest
        rows = product(loop.extent for loop in nest.rows)
        assert nest.across is not None
        lanes = nest.across.extent
        blocks = (lanes + team.beside - 1) // team.beside
        size, count = self.extent(lanes), self.extent(blocks)
        body = [
            *team.start(),
            f"const int64_t first_lane = (int64_t)blockIdx.x % ({count}) * {team.beside};",
            f"int64_t lane = threadIdx.x % {team.beside};",
            f"const bool inside = first_lane + lane < {size};",
            "const bool first = inside && rank == 0;",
            # Threads without a row read the first row on the way to the barriers.
            "if (!inside) lane = 0;",
        ]
        if nest.rows:
            body.append(f"const int64_t row = (int64_t)blockIdx.x / ({count});")
            body += places(nest.rows, "row", self.extent)
        body += [*map(str, self.printed.top.lines)]
        body += self.statements(team, self.printed.row.lines, inside=True)
        grid, shared = Grid(rows * blocks), self.shared_bytes(team)
        return self.names.function(body, grid, team.threads, True, shared=shared)

    def shared_bytes(self, team: Team) -> int:
        """Return a block's bytes of shared memory: values that teams exchange, row arrays."""
        arrays = self.nest.arrays
        held = 0
        if self.held is None and arrays and arrays_shared(arrays):
            held = sum(max(int(str(a.size)), 1) * a.itemsize for a in self.printed.arrays)
        return held + team.shared(states(self.nest))

    def arrays(self, team: Team) -> tuple[Lines, bool]:
        """Return the declarations of row arrays, and True if these lie in scratch memory."""
        if not self.nest.arrays:
            return [], False
        made = self.printed.arrays
        if self.held is not None:
            counts = [self.held_elements(a.size, team) for a in made]
            return [f"{a.ctype} {a.name}[{n}];" for a, n in zip(made, counts, strict=True)], False
        if arrays_shared(self.nest.arrays):
            return [
                f"__shared__ {a.ctype} {a.name}[{max(int(str(a.size)), 1)}];" for a in made
            ], False
        each = self.extent(slot_bytes(self.nest.arrays))
        lines = [f"char *const slot = {self.names.scratch()} + (int64_t)blockIdx.x * ({each});"]
        offset: Size = 0
        for a in made:
            at = self.extent(offset)
            lines.append(f"{a.ctype} *const {a.name} = ({a.ctype} *)(slot + {at});")
            offset = offset + up_to_lines(a.size * a.itemsize)
        return lines, True

    def statements(
        self, team: Team, lines: Sequence[object], inside: bool = False, again: bool = False
    ) -> Lines:
        """Return the statements of a row; ``again`` is True if the block has further rows.

        A barrier stands before and after stores that other threads of the team may read.
        """
        found: Lines = []
        met, stored = True, False
        for number, line in enumerate(lines):
            last = number == len(lines) - 1 and not again
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
        return found + (team.meet() if again and stored else [])

    def shared(self, team: Team, made: PrintedPass, inside: bool, last: bool) -> Lines:
        """Return a pass shared by a team, with a barrier at its end unless it is the last one."""
        count = product(loop.extent for loop in made.loops)
        size = self.extent(count)
        high = f"(inside ? {size} : 0)" if inside else size
        values = values_of(made)
        begun = [line for value in values for line in value.begun()]
        few = isinstance(count, int) and count <= MAX_SERIAL_TERMS * team.size
        if self.fours is not None and self.numbers.get(id(made)) in self.fours.passes:
            number = self.numbers[id(made)]
            loop = turns_by_fours(made, number, self.fours, self.nest, self.names, self.extent)
        else:
            held = self.held is not None
            loop = turns(made, self.extent, ("rank", high), team.size, few, held)
        joined = team.joined(values)
        meets = [] if last or joined[-1:] == team.meet() else team.meet()
        return [*begun, *loop, *joined, *finish_sums(made), *meets]

    # All elements -------------------------------------------------------------------------------

    def in_parts(self) -> list[Part]:
        """Return functions that reduce parts of each pass by many blocks, then combine them."""
        team = Team(THREADS_PER_BLOCK, THREADS_PER_BLOCK)
        ending = self.statements(team, self.printed.ending.lines)
        shared = self.shared_bytes(team)
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
        bounds = ("begin", "end")
        return turns_by_fours(made, number, fours, self.nest, self.names, self.extent, bounds)


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
