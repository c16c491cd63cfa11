"""CUDA functions of a loop nest, from loop trees.

The division of work depends on lengths alone. In a sequential loop, one thread per row runs all
iterations in one launch.
"""

from __future__ import annotations

from dataclasses import replace

from ....op_graph.axes.lengths import product
from ...kernels.ir.nest import Nest
from ...kernels.scans.sequential_scan import OrderedLoop
from ...printing.nests.loop_lines import indent
from ...printing.nests.scan_statements import print_ordered
from ..launches.launch_ir import Grid
from ..launches.naming import (
    CudaFunction,
    CudaKernelNames,
    Either,
    MemoryCopy,
    Part,
)
from .cooperative_threads import MAX_WARP_ROW_ELEMENTS, WARP_SIZE
from .split_reductions import SplitReductions, division_of
from .team_text import team_function
from .thread_text import thread_function
from .tree_choice import (
    TeamTree,
    divided_trees,
    is_by_threads,
    team_trees,
    tile_trees,
    tree_of,
)


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
    division = division_of(work)
    if division is None:
        return [*found, *team_parts(work, names)]
    several = divided_parts(work, division, names)
    if division.is_known:
        return [*found, *several]
    return [*found, Either(division.holds, tuple(several), tuple(team_parts(work, names)))]


def thread_parts(nest: Nest, names: CudaKernelNames) -> list[Part]:
    """Return the functions of a nest of independent threads, and of its transposed passes."""
    found: list[Part] = [tree_function(each, names) for each in tile_trees(nest)]
    tree = tree_of(nest, unaligned(nest, names))
    return found if tree is None else [*found, thread_function(tree, names)]


def team_parts(nest: Nest, names: CudaKernelNames) -> list[Part]:
    """Return functions with a team per row; open lengths choose among them at run time."""
    found = [tree_function(each, names) for each in team_trees(nest, unaligned(nest, names))]
    if len(found) == 1:
        return [*found]
    counts = [product(loop.extent for loop in step.loops) for step in nest.passes]
    holds = tuple([MAX_WARP_ROW_ELEMENTS - n for n in counts if not isinstance(n, int)])
    return [Either(holds, (found[0],), (found[1],))]


def divided_parts(nest: Nest, division: SplitReductions, names: CudaKernelNames) -> list[Part]:
    """Return the functions of a nest whose reductions several blocks share."""
    for each in division.parts:
        known = names.numbers.setdefault(str(each), each)
        assert known == each, f"{known} and {each} have one name"
    trees = divided_trees(nest, division, unaligned(nest, names))
    return [tree_function(each, names) for each in trees]


def tree_function(each: TeamTree, names: CudaKernelNames) -> CudaFunction:
    """Return the function of a tree."""
    if each.team.size == 1:
        return thread_function(each.tree, names)
    return team_function(each.tree, each.team, names)


def unaligned(nest: Nest, names: CudaKernelNames) -> set[int]:
    """Return the operands of a nest that may begin between vectors."""
    return {number for number in range(len(nest.operands)) if names.is_apart(number)}


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
