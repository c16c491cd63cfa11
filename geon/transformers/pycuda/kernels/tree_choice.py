"""Choose the nests that run as loop trees: those whose threads are independent."""

from __future__ import annotations

from collections.abc import Set
from dataclasses import replace

from ....op_graph.axes.lengths import product
from ...kernels.ir.nest import Nest, Pass
from ...loops.gpu_rules import OperandAlignment, schedule
from ...loops.tree import Tree
from ...printing.nests.transposed_passes import across_loads, crosses
from ..launches.naming import is_by_elements

MAX_THREAD_ROW_ELEMENTS = 4  # max. elements of a row that one thread handles alone
MAX_THREAD_COLUMN_ELEMENTS = 8  # the same of a column: neighbouring threads load neighbours


def is_by_threads(nest: Nest) -> bool:
    """Return True if threads are independent: a nest only stores, or its rows are short."""
    if is_by_elements(nest):
        return True
    most = MAX_THREAD_ROW_ELEMENTS if nest.across is None else MAX_THREAD_COLUMN_ELEMENTS
    counts = [product(loop.extent for loop in step.loops) for step in nest.passes]
    return not nest.arrays and all(isinstance(n, int) and n <= most for n in counts)


def transposed_passes(nest: Nest) -> list[Pass]:
    """Return the passes that load along one axis and store along another, through tiles."""
    across = nest.across
    if across is None or not is_by_elements(nest):
        return []
    return [x for x in nest.passes if crosses(x, across.name) and across_loads(x, across.name)]


def tree_of(nest: Nest, unaligned: Set[int] = frozenset()) -> Tree | None:
    """Return the scheduled tree of a nest of independent threads, without transposed passes.

    Operands ``unaligned`` may begin between vectors. Return None for other nests.
    """
    if not is_by_threads(nest):
        return None
    turned = transposed_passes(nest)
    steps = tuple([step for step in nest.steps if step not in turned])
    if not steps:
        return None
    return schedule(replace(nest, steps=steps), OperandAlignment(frozenset(unaligned)))


def trees_of(work: Nest) -> list[Tree | None]:
    """Return the tree of each piece of a nest, None for pieces that have another form."""
    return [tree_of(piece) for piece in work.pieces or (work,)]
