"""Split column reductions: few output columns, adjacent in memory, each over many elements.

Blocks reduce parts of the reduced extent. Then one thread per column combines the partial values in
order and runs the statements that follow.
"""

from __future__ import annotations

from ....op_graph.axes.affine import Size
from ....op_graph.axes.lengths import product
from ...kernels.ir.nest import Nest, Pass, Store
from ...printing.nests.parameters import Parameter
from ...printing.nests.pass_text import PrintedNest, PrintedPass
from ..launches.launch_ir import FULL_DEVICE_BLOCKS, MIN_PART_TURNS, THREADS_PER_BLOCK, Grid, Parts
from ..launches.naming import CudaFunction, CudaKernelNames, indent
from .cooperative_threads import (
    SCALAR_BYTES,
    WARP_SIZE,
    Lines,
    Team,
    finish_sums,
    places,
    turns,
    values_of,
)

TEAM = Team(8, 256, WARP_SIZE)  # 8 threads per column, 32 adjacent columns per block


def choose_parts(nest: Nest) -> Parts | None:
    """Return how the single pass of a nest is split into parts, or None if it is not split."""
    first, *others = nest.steps
    if nest.across is None or nest.arrays or not isinstance(first, Pass):
        return None
    if not first.reductions or first.stores or not all(isinstance(s, Store) for s in others):
        return None
    count = product(loop.extent for loop in first.loops)
    if isinstance(count, int) and count <= MIN_PART_TURNS:
        return None
    return Parts(count, blocks_of(nest))


def blocks_of(nest: Nest) -> Size:
    """Return the number of blocks for all columns of a nest, per part."""
    assert nest.across is not None
    side = (nest.across.extent + TEAM.beside - 1) // TEAM.beside
    return product(loop.extent for loop in nest.rows) * side


def states(nest: Nest) -> int:
    """Return the number of scalars in the states of all reductions of a nest."""
    return sum(len(r.states) for step in nest.passes for r in step.reductions)


def most_bytes(nest: Nest) -> int:
    """Return an upper bound of the bytes of all partial values, if there are several parts."""
    return states(nest) * FULL_DEVICE_BLOCKS * TEAM.beside * SCALAR_BYTES


def column_functions(
    nest: Nest, printed: PrintedNest, parts: Parts, names: CudaKernelNames
) -> tuple[CudaFunction, CudaFunction]:
    """Return the function that computes partial values and the one that combines them."""
    work = _ColumnWriter(nest, printed, parts, names)
    return work.finding(), work.joining()


class _ColumnWriter:
    def __init__(
        self, nest: Nest, printed: PrintedNest, parts: Parts, names: CudaKernelNames
    ) -> None:
        lanes = nest.across
        assert lanes is not None
        self.nest, self.parts, self.names = nest, parts, names
        self.lanes, self.scratch = lanes.extent, names.scratch()
        (self.made,) = (line for line in printed.row.lines if isinstance(line, PrintedPass))
        self.values = values_of(self.made)
        side = (self.lanes + TEAM.beside - 1) // TEAM.beside
        self.width, self.count = names.length(side), names.length(parts.count)
        rows = product(loop.extent for loop in nest.rows)
        self.lines = names.length(rows * side * TEAM.beside)
        self.number = Parameter("parts", "int64_t", parts, False)
        at = printed.row.lines.index(self.made)
        self.known = [*map(str, printed.top.lines), *map(str, printed.row.lines[:at])]
        self.after = [*map(str, printed.row.lines[at + 1 :])]

    def place(self, index: int, ctype: str, part: str) -> str:
        """Return the C lvalue of partial value ``index`` of the current column."""
        return f"(({ctype} *){self.scratch})[({index} * parts + {part}) * ({self.lines}) + line]"

    def begun(self) -> Lines:
        """Return the statements of a column before its first element."""
        rows: Lines = []
        if self.nest.rows:
            row = f"const int64_t row = block / ({self.width});"
            rows = [row, *places(self.nest.rows, "row", self.names.length)]
        first = [text for value in self.values for text in value.begun()]
        return [*rows, *self.known, *first]

    def finding(self) -> CudaFunction:
        """Return the function that reduces parts of columns; a block has adjacent columns."""
        extent, count = self.names.length, self.count
        held = [part for value in self.values for part in value.parts]
        body = [
            *TEAM.start(),
            "const int64_t block = (int64_t)blockIdx.x / parts, "
            "part = (int64_t)blockIdx.x % parts;",
            f"const int64_t first_lane = block % ({self.width}) * {TEAM.beside};",
            f"int64_t lane = threadIdx.x % {TEAM.beside};",
            f"const int64_t line = block * {TEAM.beside} + lane;",
            f"const bool inside = first_lane + lane < {extent(self.lanes)};",
            "if (!inside) lane = 0;",
            f"const int64_t share = ({count} + parts - 1) / parts, begin = part * share;",
            f"const int64_t stop = begin + share < {count} ? begin + share : {count};",
            *self.begun(),
            *turns(self.made, extent, ("begin + rank", "(inside ? stop : 0)"), TEAM.size, False),
            *TEAM.joined(self.values),
            *[
                f"if (rank == 0) {self.place(k, ctype, 'part')} = {name};"
                for k, (name, ctype) in enumerate(held)
            ],
        ]
        grid = Grid(blocks_of(self.nest), 1, parts=self.parts)
        shared = TEAM.shared(states(self.nest))
        return self.names.function(
            body, grid, THREADS_PER_BLOCK, True, [self.number], shared=shared
        )

    def joining(self) -> CudaFunction:
        """Return the function that combines the parts of each column, one thread per column."""
        joined: Lines = []
        held = [name for value in self.values for name, _ in value.parts]
        numbers = {name: k for k, name in enumerate(held)}
        for value in self.values:
            for name, ctype in value.parts:
                there = self.place(numbers[name], ctype, "part")
                joined.append(f"const {ctype} {name}_other = {there};")
            joined += value.combine("_other")
        lanes = self.names.length(self.lanes)
        body = [
            f"const int64_t at = (int64_t)blockIdx.x * {THREADS_PER_BLOCK} + threadIdx.x;",
            f"const int64_t block = at / {TEAM.beside}, line = at;",
            f"const int64_t first_lane = block % ({self.width}) * {TEAM.beside};",
            f"const int64_t lane = at % {TEAM.beside};",
            f"if (at >= {self.lines} || first_lane + lane >= {lanes}) return;",
            "const bool first = true;",
            *self.begun(),
            "for (int64_t part = 0; part < parts; part++) {",
            *indent(joined),
            "}",
            *finish_sums(self.made),
            *self.after,
        ]
        grid = Grid(blocks_of(self.nest) * TEAM.beside, THREADS_PER_BLOCK)
        return self.names.function(body, grid, THREADS_PER_BLOCK, False, [self.number])
