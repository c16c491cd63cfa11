"""A rule for loops over lanes whose strided loads compilers should gather, and not permute."""

from __future__ import annotations

from collections.abc import Iterator

from ....op_graph.values.dtypes import FLOAT64, HALVES, name_of
from ...kernels.ir.scalar_code import Apply, Load
from ...kernels.ir.scalar_code import walk as walk_scalars
from ..access import is_straight
from ..tree import (
    Kind,
    LoopNode,
    Role,
    Tree,
    VectorWidth,
    loops_of,
    replace,
    replaced,
    values_of,
)

# Of elements that are gathered: gcc permutes few of them in a register.
MIN_GATHERED_BYTES = FLOAT64.itemsize


def permuted_lanes(tree: Tree) -> Iterator[str]:
    """Yield the loops of compilers over lanes that gathers serve better than permutations.

    Permuted loads take 0.4 to 0.9 of the time of gathers, but 1.4 to 2.6 with functions, 1.4 to 1.7
    where a register has one element of interest, and 1.0 to 1.1 for elements of 8 bytes.
    """
    assert tree.vectors is not None
    for loop in loops_of(tree.body):
        lanes = loop.role is Role.SIMD and loop.kind is Kind.LANES and is_straight(loop.body)
        if lanes and is_permuted_badly(loop, tree.vectors.vector_bytes):
            yield loop.variable


def is_permuted_badly(loop: LoopNode, vector_bytes: int) -> bool:
    """Return True if a loop has functions, or loads that gcc permutes more slowly than it gathers.

    A register has ``vector_bytes`` bytes.
    """
    for node in walk_scalars(*[value for each in loop.body for value in values_of(each)]):
        if isinstance(node, Apply) and node.row.cost == "expensive":
            return True
        step = node.offset.step(loop.variable) if isinstance(node, Load) else 0
        if isinstance(step, int) and abs(step) > 1:
            itemsize = node.dtype.itemsize
            far = abs(step) * itemsize >= vector_bytes
            if far or itemsize >= MIN_GATHERED_BYTES or name_of(node.dtype) in HALVES:
                return True
    return False


def gathered(tree: Tree, name: str, vectors: VectorWidth) -> Tree:
    """Mark a loop over lanes whose strides are hidden from the compiler."""
    return replaced(tree, name, lambda loop: (replace(loop, hides_strides=True),))
