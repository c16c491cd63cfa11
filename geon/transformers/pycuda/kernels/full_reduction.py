"""Two-stage reductions over all elements: many blocks reduce parts, one block combines these."""

from __future__ import annotations

from collections.abc import Callable

from ....op_graph.axes.lengths import product
from ...kernels.nests.unrolled_reductions import MAX_SERIAL_TERMS
from ...printing.nests.pass_text import PrintedNest, PrintedPass
from ..launches.launch_ir import THREADS_PER_BLOCK, Grid
from ..launches.naming import CudaKernelNames, Part, indent
from .cooperative_threads import Lines, Team, Value, finish_sums, values_of

ELEMENTS_PER_BLOCK = (
    MAX_SERIAL_TERMS * THREADS_PER_BLOCK
)  # elements per block, unless that needs more than PARTS blocks
MAX_PART_BLOCKS = 1024  # max. blocks that reduce parts
TEAM = Team(THREADS_PER_BLOCK, THREADS_PER_BLOCK)


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
    start = [*TEAM.start(), "const bool first = rank == 0;"]
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
            *TEAM.joined(values),
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
        end += [*TEAM.joined(values), *finish_sums(line)] if values else []
    found.append(names.function([*end, *ending], Grid(1), THREADS_PER_BLOCK, True, shared=shared))
    return found


def _together(values: list[Value], places: dict[str, str], size: str) -> Lines:
    """Return the loop in which each thread combines some of the partial values."""
    inner: Lines = []
    for value in values:
        inner += [f"const {t} {n}_other = ({places[n]})[part];" for n, t in value.parts]
        inner += value.combine("_other")
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
