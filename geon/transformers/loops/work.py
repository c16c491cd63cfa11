"""Estimate the work of a tree's statements, and choose how many of them one task runs."""

from __future__ import annotations

from ...op_graph.axes.affine import Size
from ..kernels.analysis.op_counts import operations
from ..kernels.ir.loop_variables import changes_with
from ..kernels.ir.scalar_code import (
    Scalar,
    children_of,
    indices,
)
from ..kernels.ir.scalar_code import walk as walk_scalars
from ..sizes.blocks import MIN_BLOCKS
from ..sizes.limits import MAX_TASK_WORK, MIN_TASK_WORK, MIN_WORK
from .access import most
from .tree import Body, Fold, Write, values_of, walk

MAX_PARTS = MIN_BLOCKS**2  # maximum parts of a reduction, each with a partial state


def work(body: Body, around: str = "") -> Size:
    """Return the approximate number of machine operations of statements.

    ``around`` is the variable of the loop of which they are the body.
    """
    total: Size = 0
    for each, above in walk(body):
        times: Size = 1
        for loop in above:
            size = most(loop.extent)
            times = times * (1 if size is None else size)
        if isinstance(each, (Write, Fold)):
            inner = {loop.variable for loop in above[-2:]} or {around}
            count = len(each.stores) if isinstance(each, Write) else len(each.into)
            total = total + times * (count + sum(map(operations, varying(each, inner))))
    return total


def varying(statement: Write | Fold, inner: set[str]) -> list[Scalar]:
    """Return the values of a statement that change with some variables."""
    found: dict[int, Scalar] = {}
    for node in walk_scalars(*values_of(statement)):
        own = any(changes_with(index, inner) for index in indices(node))
        if own or any(id(part) in found for part in children_of(node)):
            found[id(node)] = node
    return list(found.values())


def part_size(size: int, each: int) -> int:
    """Return how many of ``size`` iterations one task runs if ``each`` is the work of one.

    It depends on no number of threads, so that partial states do not.
    """
    if size * each < MIN_WORK:
        return size
    least, largest = 1 + MIN_TASK_WORK // each, 1 + MAX_TASK_WORK // each
    count = max(min(max(-(-size // MIN_BLOCKS), least), largest), -(-size // MAX_PARTS))
    return -(-size // -(-size // count))  # parts of equal size
