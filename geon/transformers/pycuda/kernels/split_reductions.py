"""Reductions that several blocks share: of all elements, of few long rows, of few columns.

Blocks reduce parts of the reduced extent. Then the partial values are combined in order, and the
statements that follow run: one block does so for all elements, one thread for each row or column.
The division depends on lengths alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple

from ....op_graph.axes.affine import Size
from ....op_graph.axes.lengths import product
from ...kernels.ir.nest import Nest, Pass, Store
from ...kernels.nests.unrolled_reductions import MAX_SERIAL_TERMS
from ...printing.nests.loop_lines import indent
from ...printing.nests.parameters import Parameter
from ...printing.nests.pass_text import PrintedNest, PrintedPass
from ..launches.launch_ir import FULL_DEVICE_BLOCKS, THREADS_PER_BLOCK, Grid, Parts
from ..launches.naming import CudaFunction, CudaKernelNames, Part
from .cooperative_threads import (
    SCALAR_BYTES,
    WARP_SIZE,
    Lines,
    Team,
    Value,
    finish_sums,
    places,
    turns,
    values_of,
)

# Elements of a part of all elements or of a row; there are fewer, longer parts if that needs more
# than ``MAX_PART_BLOCKS`` or ``FULL_DEVICE_BLOCKS`` blocks.
ELEMENTS_PER_BLOCK = MAX_SERIAL_TERMS * THREADS_PER_BLOCK
MAX_PART_BLOCKS = 1024  # max. blocks that reduce parts of all elements
BLOCK_TEAM = Team(THREADS_PER_BLOCK, THREADS_PER_BLOCK)
COLUMN_TEAM = Team(8, 256, WARP_SIZE)  # 8 threads per column, 32 adjacent columns per block


def states(nest: Nest) -> int:
    """Return the number of scalars in the states of all reductions of a nest."""
    return sum(len(r.states) for step in nest.passes for r in step.reductions)


def combined(values: Iterable[Value], place: Callable[[str, str], str]) -> Lines:
    """Return the statements that combine one part of each value with what there is so far.

    ``place`` returns the C lvalue of a state's partial value, given the state's name and C type.
    """
    found: Lines = []
    for value in values:
        found += [f"const {t} {n}_other = {place(n, t)};" for n, t in value.parts]
        found += value.combine("_other")
    return found


# All elements -------------------------------------------------------------------------------------


def all_functions(
    printed: PrintedNest,
    names: CudaKernelNames,
    share: Callable[[str], str],
    turns: Callable[[PrintedPass], Lines],
    ending: Lines,
    shared: int,
) -> list[Part]:
    """Return a function per pass that computes partial values, and the one that combines them.

    ``share`` returns the C text of the number of elements per block, ``turns`` the loop over them.
    The last function also runs the statements ``ending``.
    """
    scratch = names.scratch()
    top = [*map(str, printed.top.lines)]
    start = [*BLOCK_TEAM.start(), "const bool first = rank == 0;"]
    found: list[Part] = []
    end: Lines = [*start, *top]
    offset = 0
    for line in printed.row.lines:
        if not isinstance(line, PrintedPass):
            end.append(str(line))
            continue
        count = product(loop.extent for loop in line.loops)
        size, values = names.length(count), values_of(line)
        held = [(name, ctype) for value in values for name, ctype in value.parts]
        at = [
            f"({ctype} *)({scratch} + {offset + 8 * MAX_PART_BLOCKS * k})"
            for k, (_, ctype) in enumerate(held)
        ]
        offset += 8 * MAX_PART_BLOCKS * len(held)
        body = [
            *start,
            f"const int64_t share = {share(size)};",
            "const int64_t begin = (int64_t)blockIdx.x * share;",
            f"const int64_t end = begin + share < {size} ? begin + share : {size};",
            *top,
            *[text for value in values for text in value.begun()],
            *turns(line),
            *BLOCK_TEAM.joined(values),
        ]
        body += [
            f"if (first) ({place})[blockIdx.x] = {name};"
            for (name, _), place in zip(held, at, strict=True)
        ]
        grid = Grid(count, ELEMENTS_PER_BLOCK, MAX_PART_BLOCKS)
        found.append(names.function(body, grid, THREADS_PER_BLOCK, True, shared=shared))
        end += [text for value in values for text in value.begun()]
        places_of = {name: place for (name, _), place in zip(held, at, strict=True)}
        end += _together(values, places_of, size) if values else []
        end += [*BLOCK_TEAM.joined(values), *finish_sums(line)] if values else []
    found.append(names.function([*end, *ending], Grid(1), THREADS_PER_BLOCK, True, shared=shared))
    return found


def _together(values: list[Value], places: dict[str, str], size: str) -> Lines:
    """Return the loop in which each thread combines some of the partial values."""
    inner = combined(values, lambda name, _: f"({places[name]})[part]")
    blocks = f"({size} + {ELEMENTS_PER_BLOCK - 1}) / {ELEMENTS_PER_BLOCK}"
    return [
        "{",
        f"    const int64_t blocks = {blocks};",
        f"    const int64_t parts = blocks < {MAX_PART_BLOCKS} ? blocks : {MAX_PART_BLOCKS};",
        f"    for (int64_t part = rank; part < parts; part += {THREADS_PER_BLOCK}) {{",
        *indent(indent(inner)),
        "    }",
        "}",
    ]


# Rows ---------------------------------------------------------------------------------------------


class Division(NamedTuple):
    """The parts of each row or column of a nest; it is divided if no size in ``holds`` is negative.

    The sizes are known or depend on open lengths.
    """

    parts: Parts
    holds: tuple[Size, ...]

    @property
    def is_known(self) -> bool:
        """Return True if it does not depend on open lengths whether a nest is divided."""
        return all(isinstance(size, int) for size in self.holds)


def division_of(nest: Nest) -> Division | None:
    """Return how the single pass of a nest's rows or columns is divided; None if it never is."""
    if not (nest.rows or nest.across) or nest.arrays or nest.pieces:
        return None
    first, *others = nest.steps
    if not isinstance(first, Pass) or not first.reductions or first.stores:
        return None
    if not all(isinstance(step, Store) for step in others):
        return None
    count, rows = product(loop.extent for loop in first.loops), rows_of(nest)
    if nest.across is None:
        parts = Parts(count, rows, FULL_DEVICE_BLOCKS, ELEMENTS_PER_BLOCK)
        holds: tuple[Size, ...] = (count - parts.least - 1, parts.wanted // 2 - rows)
    else:
        parts = Parts(count, blocks_of(nest))
        holds = (count - parts.least - 1,)
    never = any(isinstance(size, int) and size < 0 for size in holds)
    return None if never else Division(parts, holds)


def rows_of(nest: Nest) -> Size:
    """Return the number of rows."""
    return product(loop.extent for loop in nest.rows)


def row_functions(
    nest: Nest,
    printed: PrintedNest,
    parts: Parts,
    names: CudaKernelNames,
    share: str,
    turns: Callable[[PrintedPass], Lines],
) -> tuple[CudaFunction, CudaFunction]:
    """Return the function that reduces parts of ``share`` elements and the one that combines them.

    ``turns`` returns the loop over a part.
    """
    (made,) = printed.passes
    number = Parameter("parts", "int64_t", parts, False)
    at = printed.row.lines.index(made)
    values = values_of(made)
    held = [part for value in values for part in value.parts]
    count, rows = names.length(parts.count), names.length(rows_of(nest))
    scratch = names.scratch()
    begun = [
        *places(nest.rows, "row", names.length),
        *map(str, printed.top.lines),
        *map(str, printed.row.lines[:at]),
        *[text for value in values for text in value.begun()],
    ]

    def place(index: int, ctype: str) -> str:
        return f"(({ctype} *){scratch})[({index} * parts + part) * ({rows}) + row]"

    finding = [
        *BLOCK_TEAM.start(),
        "const bool first = rank == 0;",
        "const int64_t row = (int64_t)blockIdx.x / parts, part = (int64_t)blockIdx.x % parts;",
        f"const int64_t share = {share}, begin = part * share;",
        f"const int64_t end = begin + share < {count} ? begin + share : {count};",
        *begun,
        *turns(made),
        *BLOCK_TEAM.joined(values),
        *[f"if (first) {place(k, ctype)} = {name};" for k, (name, ctype) in enumerate(held)],
    ]
    numbers = {name: k for k, (name, _) in enumerate(held)}
    each = combined(values, lambda name, ctype: place(numbers[name], ctype))
    joining = [
        f"const int64_t row = (int64_t)blockIdx.x * {THREADS_PER_BLOCK} + threadIdx.x;",
        f"if (row >= {rows}) return;",
        "const bool first = true;",
        *begun,
        "for (int64_t part = 0; part < parts; part++) {",
        *indent(each),
        "}",
        *finish_sums(made),
        *map(str, printed.row.lines[at + 1 :]),
    ]
    grid, shared = Grid(rows_of(nest), parts=parts), BLOCK_TEAM.shared(states(nest))
    return (
        names.function(finding, grid, THREADS_PER_BLOCK, True, [number], shared=shared),
        names.function(
            joining, Grid(rows_of(nest), THREADS_PER_BLOCK), THREADS_PER_BLOCK, False, [number]
        ),
    )


# Columns ------------------------------------------------------------------------------------------


def blocks_of(nest: Nest) -> Size:
    """Return the number of blocks for all columns of a nest, per part."""
    assert nest.across is not None
    side = (nest.across.extent + COLUMN_TEAM.beside - 1) // COLUMN_TEAM.beside
    return product(loop.extent for loop in nest.rows) * side


def most_bytes(nest: Nest) -> int:
    """Return an upper bound of the bytes of all partial values, if there are several parts."""
    return states(nest) * FULL_DEVICE_BLOCKS * COLUMN_TEAM.beside * SCALAR_BYTES


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
        side = (self.lanes + COLUMN_TEAM.beside - 1) // COLUMN_TEAM.beside
        self.width, self.count = names.length(side), names.length(parts.count)
        rows = product(loop.extent for loop in nest.rows)
        self.lines = names.length(rows * side * COLUMN_TEAM.beside)
        self.number = Parameter("parts", "int64_t", parts, False)
        at = printed.row.lines.index(self.made)
        self.known = [*map(str, printed.top.lines), *map(str, printed.row.lines[:at])]
        self.after = [*map(str, printed.row.lines[at + 1 :])]

    def place(self, index: int, ctype: str) -> str:
        """Return the C lvalue of partial value ``index`` of the current column and part."""
        return f"(({ctype} *){self.scratch})[({index} * parts + part) * ({self.lines}) + line]"

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
            *COLUMN_TEAM.start(),
            "const int64_t block = (int64_t)blockIdx.x / parts, "
            "part = (int64_t)blockIdx.x % parts;",
            f"const int64_t first_lane = block % ({self.width}) * {COLUMN_TEAM.beside};",
            f"int64_t lane = threadIdx.x % {COLUMN_TEAM.beside};",
            f"const int64_t line = block * {COLUMN_TEAM.beside} + lane;",
            f"const bool inside = first_lane + lane < {extent(self.lanes)};",
            "if (!inside) lane = 0;",
            f"const int64_t share = ({count} + parts - 1) / parts, begin = part * share;",
            f"const int64_t stop = begin + share < {count} ? begin + share : {count};",
            *self.begun(),
            *turns(
                self.made, extent, ("begin + rank", "(inside ? stop : 0)"), COLUMN_TEAM.size, False
            ),
            *COLUMN_TEAM.joined(self.values),
            *[
                f"if (rank == 0) {self.place(k, ctype)} = {name};"
                for k, (name, ctype) in enumerate(held)
            ],
        ]
        grid = Grid(blocks_of(self.nest), 1, parts=self.parts)
        shared = COLUMN_TEAM.shared(states(self.nest))
        return self.names.function(
            body, grid, THREADS_PER_BLOCK, True, [self.number], shared=shared
        )

    def joining(self) -> CudaFunction:
        """Return the function that combines the parts of each column, one thread per column."""
        held = [name for value in self.values for name, _ in value.parts]
        numbers = {name: k for k, name in enumerate(held)}
        joined = combined(self.values, lambda name, t: self.place(numbers[name], t))
        lanes = self.names.length(self.lanes)
        body = [
            f"const int64_t at = (int64_t)blockIdx.x * {THREADS_PER_BLOCK} + threadIdx.x;",
            f"const int64_t block = at / {COLUMN_TEAM.beside}, line = at;",
            f"const int64_t first_lane = block % ({self.width}) * {COLUMN_TEAM.beside};",
            f"const int64_t lane = at % {COLUMN_TEAM.beside};",
            f"if (at >= {self.lines} || first_lane + lane >= {lanes}) return;",
            "const bool first = true;",
            *self.begun(),
            "for (int64_t part = 0; part < parts; part++) {",
            *indent(joined),
            "}",
            *finish_sums(self.made),
            *self.after,
        ]
        grid = Grid(blocks_of(self.nest) * COLUMN_TEAM.beside, THREADS_PER_BLOCK)
        return self.names.function(body, grid, THREADS_PER_BLOCK, False, [self.number])
