"""Choose loops whose vectors the compiler computes side by side.

An elementary function is a chain of dependent operations. Out-of-order execution looks ahead over
so many of them that it finds little of the next vector's chain, so code that interleaves the
operations of several vectors takes less time for the same work.
"""

from __future__ import annotations

from collections.abc import Callable

from ..kernels.ir.scalar_code import Apply, Load, Select
from . import transformations as shape
from .access import is_straight, most
from .tree import Kind, LoopNode, Tree, VectorWidth, Write, loops_of
from .work import varying

INTERLEAVED_VECTORS = 4  # independent vectors, which hide the latency of each step
MIN_INTERLEAVED_BYTES = 32  # minimum bytes of vectors: AVX2 has those of all numbers
MAX_INTERLEAVED_NODES = 96  # maximum nodes of an element; above, one vector has enough parallelism
MIN_LOOP_BLOCKS = 2  # minimum blocks of vectors of a loop for which a second loop pays off


def interleaved(tree: Tree, vectors: VectorWidth, is_serial: Callable[[Apply], bool]) -> Tree:
    """Split loops with elementary functions into blocks of vectors, and the rest.

    ``is_serial`` tells the values that the compiler does not vectorise.
    """
    if vectors.vector_bytes < MIN_INTERLEAVED_BYTES:
        return tree
    for loop in loops_of(tree.body):
        width = item_bytes(loop, is_serial) if is_straight(loop.body) else 0
        by, size = INTERLEAVED_VECTORS * vectors.vector_bytes // (width or 1), most(loop.extent)
        if width and not (isinstance(size, int) and size < MIN_LOOP_BLOCKS * by):
            tree = shape.split(tree, loop.variable, by, Kind.COPIES).tree
    return tree


def item_bytes(loop: LoopNode, is_serial: Callable[[Apply], bool]) -> int:
    """Return the bytes of the widest value of a loop that should be interleaved, else 0."""
    writes = [each for each in loop.body if isinstance(each, Write)]
    nodes = [node for each in writes for node in varying(each, {loop.variable})]
    applied = [node for node in nodes if isinstance(node, Apply)]
    costly = any(node.row.cost == "expensive" for node in applied)
    if not costly or len(nodes) > MAX_INTERLEAVED_NODES or any(map(is_serial, applied)):
        return 0
    loads = [node for node in nodes if isinstance(node, Load)]
    if any(isinstance(node, Select) for node in nodes) or not all(
        all(isinstance(atom, str) for atom in load.offset.terms)
        and load.offset.step(loop.variable) in (0, 1)
        for load in loads
    ):
        return 0
    widest = max(4, *(node.dtype.itemsize for node in nodes))
    return widest if widest in (4, 8) else 0
