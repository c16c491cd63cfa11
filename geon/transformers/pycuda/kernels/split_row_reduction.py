"""Split row reductions: for few long rows, several blocks reduce parts of each row.

One thread per row then combines the parts in order and runs the statements that follow.
"""

from __future__ import annotations

from collections.abc import Callable

from ....op_graph.axes.affine import Size
from ....op_graph.axes.lengths import product
from ...kernels.ir.nest import Nest, Pass, Store
from ...kernels.nests.unrolled_reductions import MAX_SERIAL_TERMS
from ...printing.nests.parameters import Parameter
from ...printing.nests.pass_text import PrintedNest, PrintedPass
from ..launches.launch_ir import FULL_DEVICE_BLOCKS, THREADS_PER_BLOCK, Grid, Parts
from ..launches.naming import CudaFunction, CudaKernelNames, indent
from .column_reduction import states
from .cooperative_threads import Lines, Team, finish_sums, places, values_of

ELEMENTS_PER_BLOCK = MAX_SERIAL_TERMS * THREADS_PER_BLOCK  # min. elements of a row per block
TEAM = Team(THREADS_PER_BLOCK, THREADS_PER_BLOCK)


def cut_rows(nest: Nest) -> Parts | None:
    """Return how the single pass of a nest's rows is split into parts, or None if it never is."""
    if not nest.rows or nest.across is not None or nest.arrays or nest.pieces:
        return None
    first, *others = nest.steps
    if not isinstance(first, Pass) or not first.reductions or first.stores:
        return None
    if not all(isinstance(step, Store) for step in others):
        return None
    parts = Parts(
        product(loop.extent for loop in first.loops),
        rows_of(nest),
        FULL_DEVICE_BLOCKS,
        ELEMENTS_PER_BLOCK,
    )
    return None if any(isinstance(n, int) and n < 0 for n in holds(parts)) else parts


def rows_of(nest: Nest) -> Size:
    """Return the number of rows."""
    return product(loop.extent for loop in nest.rows)


def holds(parts: Parts) -> tuple[Size, Size]:
    """Return two sizes that are both >= 0 if there is more than one part."""
    return parts.count - parts.least - 1, parts.wanted // 2 - parts.blocks


def is_known(parts: Parts) -> bool:
    """Return True if the choice to split does not depend on open lengths."""
    return all(isinstance(size, int) for size in holds(parts))


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
        *TEAM.start(),
        "const bool first = rank == 0;",
        "const int64_t row = (int64_t)blockIdx.x / parts, part = (int64_t)blockIdx.x % parts;",
        f"const int64_t share = {share}, begin = part * share;",
        f"const int64_t end = begin + share < {count} ? begin + share : {count};",
        *begun,
        *turns(made),
        *TEAM.joined(values),
        *[f"if (first) {place(k, ctype)} = {name};" for k, (name, ctype) in enumerate(held)],
    ]
    numbers = {name: k for k, (name, _) in enumerate(held)}
    each: Lines = []
    for value in values:
        each += [f"const {t} {n}_other = {place(numbers[n], t)};" for n, t in value.parts]
        each += value.combine("_other")
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
    grid, shared = Grid(rows_of(nest), parts=parts), TEAM.shared(states(nest))
    return (
        names.function(finding, grid, THREADS_PER_BLOCK, True, [number], shared=shared),
        names.function(
            joining, Grid(rows_of(nest), THREADS_PER_BLOCK), THREADS_PER_BLOCK, False, [number]
        ),
    )
