"""Reductions of rows that adjoin in memory, where these are few and each goes over much.

Blocks take parts of what a row goes over; then a thread for each row puts the parts together in
their order, and does what follows.
"""

from __future__ import annotations

from ...op_graph.affine import Size
from ...op_graph.lengths import product
from ..kernels.types import Nest, Pass, Store
from ..printing.nests import PrintedNest, PrintedPass
from ..printing.parameters import Parameter
from .launches import LEAST, WANTED, Grid, Parts
from .naming import Function, KernelNames, indented
from .teams import WARP, Lines, Team, ended, places, turns, values_of

TEAM = Team(8, 256, WARP)  # threads that share a row in a block
THREADS = 256
STATE = 8  # bytes that a scalar of a state takes


def cut(nest: Nest) -> Parts | None:
    """How the one pass of a nest is cut into parts; None where it is not."""
    first, *others = nest.steps
    if nest.across is None or nest.arrays or not isinstance(first, Pass):
        return None
    if not first.reductions or first.stores or not all(isinstance(s, Store) for s in others):
        return None
    count = product(loop.extent for loop in first.loops)
    if isinstance(count, int) and count <= LEAST:
        return None
    return Parts(count, blocks_of(nest))


def blocks_of(nest: Nest) -> Size:
    """How many blocks the rows of a nest take."""
    assert nest.across is not None
    side = (nest.across.extent + TEAM.beside - 1) // TEAM.beside
    return product(loop.extent for loop in nest.rows) * side


def states(nest: Nest) -> int:
    """How many scalars the states of a nest's reductions have."""
    return sum(len(r.states) for step in nest.passes for r in step.reductions)


def most_bytes(nest: Nest) -> int:
    """Never less than the bytes of all parts, where there is more than one."""
    return states(nest) * WANTED * TEAM.beside * STATE


def column_functions(
    nest: Nest, printed: PrintedNest, parts: Parts, names: KernelNames
) -> tuple[Function, Function]:
    """The function that finds parts, and the one that puts them together."""
    lanes = nest.across
    assert lanes is not None
    scratch, extent = names.scratch(), names.length
    (made,) = (line for line in printed.row.lines if isinstance(line, PrintedPass))
    values = values_of(made)
    held = [part for value in values for part in value.parts]
    side = (lanes.extent + TEAM.beside - 1) // TEAM.beside
    width, count = extent(side), extent(parts.count)
    lines = extent(product(loop.extent for loop in nest.rows) * side * TEAM.beside)
    number = Parameter("parts", "int64_t", parts, False)

    def place(index: int, ctype: str, part: str) -> str:
        """Where a part's value of a line lies."""
        return f"(({ctype} *){scratch})[({index} * parts + {part}) * ({lines}) + line]"

    start: Lines = [
        *TEAM.start(),
        "const int64_t block = (int64_t)blockIdx.x / parts, part = (int64_t)blockIdx.x % parts;",
        f"const int64_t first_lane = block % ({width}) * {TEAM.beside};",
        f"int64_t lane = threadIdx.x % {TEAM.beside};",
        f"const int64_t line = block * {TEAM.beside} + lane;",
        f"const bool inside = first_lane + lane < {extent(lanes.extent)};",
        "if (!inside) lane = 0;",
        f"const int64_t share = ({count} + parts - 1) / parts, begin = part * share;",
        f"const int64_t stop = begin + share < {count} ? begin + share : {count};",
    ]
    rows: Lines = []
    if nest.rows:
        rows = [f"const int64_t row = block / ({width});", *places(nest.rows, "row", extent)]
    top = [*map(str, printed.top.lines)]
    at = printed.row.lines.index(made)
    known = [*map(str, printed.row.lines[:at])]
    body = [
        *start,
        *rows,
        *top,
        *known,
        *[text for value in values for text in value.begun()],
        *turns(made, extent, ("begin + rank", "(inside ? stop : 0)"), TEAM.size, False),
        *TEAM.joined(values),
        *[
            f"if (rank == 0) {place(k, ctype, 'part')} = {name};"
            for k, (name, ctype) in enumerate(held)
        ],
    ]
    find = names.function(body, Grid(blocks_of(nest), 1, parts=parts), THREADS, True, [number])
    joined: Lines = []
    numbers = {name: k for k, (name, _) in enumerate(held)}
    for value in values:
        joined += [f"const {t} {n}_other = {place(numbers[n], t, 'part')};" for n, t in value.parts]
        joined += value.combine("_other")
    after = [
        f"const int64_t at = (int64_t)blockIdx.x * {THREADS} + threadIdx.x;",
        f"const int64_t block = at / {TEAM.beside}, line = at;",
        f"const int64_t first_lane = block % ({width}) * {TEAM.beside};",
        f"const int64_t lane = at % {TEAM.beside};",
        f"if (at >= {lines} || first_lane + lane >= {extent(lanes.extent)}) return;",
        "const bool first = true;",
        *rows,
        *top,
        *known,
        *[text for value in values for text in value.begun()],
        "for (int64_t part = 0; part < parts; part++) {",
        *indented(joined),
        "}",
        *ended(made),
        *map(str, printed.row.lines[at + 1 :]),
    ]
    end_grid = Grid(blocks_of(nest) * TEAM.beside, THREADS)
    return find, names.function(after, end_grid, THREADS, False, [number])
