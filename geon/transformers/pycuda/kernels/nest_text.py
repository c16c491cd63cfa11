"""CUDA functions of a loop nest, from loop trees.

The division of work depends on lengths alone. In a sequential loop, one thread per row runs all
iterations in one launch.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from ...kernels.ir.nest import Fill
from ...kernels.scans.sequential_scan import OrderedLoop
from ...lowering.planning.kernel_forms import Place
from ...printing.nests.loop_lines import indent
from ...printing.nests.scan_statements import print_ordered
from ..launches.launch_ir import Copy, Grid
from ..launches.naming import CudaFunction, CudaKernelNames, Part, copied
from .cooperative_threads import WARP_SIZE
from .team_text import team_function
from .thread_text import thread_function
from .tree_choice import TeamTree


def fill_parts(form: Fill, names: CudaKernelNames) -> list[Part]:
    """Return the copy of an operand, unless it is computed in its place."""
    whole = names.operands[form.operand]

    def place(number: int) -> Place:
        return names.place_of(names.operands[number])

    if not is_copied(form, place):
        return []
    size = whole.axes.size * whole.dtype.itemsize
    return [copied(Copy(place(form.operand), place(form.source), size), names.chosen)]


def is_copied(form: Fill, place: Callable[[int], Place]) -> bool:
    """Return True unless an operand is computed in the ``place`` of what it is filled from."""
    return place(form.operand) != place(form.source)


def tree_function(form: TeamTree, names: CudaKernelNames) -> CudaFunction:
    """Return the function of a tree."""
    for name, parts in form.numbers.items():
        known = names.numbers.setdefault(name, parts)
        assert known == parts, f"{known} and {parts} have one name"
    if form.team.size == 1:
        return thread_function(form.tree, names)
    return team_function(form, names)


class OrderedRows(NamedTuple):
    """A thread for each row runs all iterations of a sequential loop."""

    work: OrderedLoop


def ordered_function(form: OrderedRows, names: CudaKernelNames) -> CudaFunction:
    """Return the function of a sequential loop."""
    work = form.work
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
