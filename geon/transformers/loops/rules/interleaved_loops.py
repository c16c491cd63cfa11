"""Choose loops whose vectors the compiler computes side by side.

An elementary function is a chain of dependent operations. Out-of-order execution looks ahead over
so many of them that it finds little of the next vector's chain, so code that interleaves the
operations of several vectors takes less time for the same work.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ....op_graph.values.dtypes import FLOAT64
from ...kernels.ir.scalar_code import Apply, Load, Scalar, Select
from ...sizes.limits import AVX2_BYTES, MAX_FUNCTION_NODES, OP_LATENCY_CYCLES
from .. import transformations as shape
from ..access import most
from ..partial_states import rfactor
from ..tree import Fold, Kind, Tree, VectorWidth, Write, find, loops_of, require
from ..work import varying

INTERLEAVED_VECTORS = OP_LATENCY_CYCLES  # independent vectors, which hide the latency of each step
# Minimum bytes of the widest value of a loop that folds, whose states are loaded and stored in each
# block: sums of tanh take 1.06 of the time in float32 and 0.92 in float64.
MIN_FOLDED_BYTES = FLOAT64.itemsize
# Maximum nodes of an element; above, one vector has enough parallelism.
MAX_INTERLEAVED_NODES = MAX_FUNCTION_NODES // INTERLEAVED_VECTORS
MIN_LOOP_BLOCKS = 2  # minimum blocks of vectors of a loop for which a second loop pays off


def storing(tree: Tree) -> Iterator[str]:
    """Yield the innermost loops that only store."""
    for loop in loops_of(tree.body):
        if loop.kind is not Kind.DIGIT and all(isinstance(each, Write) for each in loop.body):
            yield loop.variable


def computing(tree: Tree) -> Iterator[str]:
    """Yield the innermost loops that store, or fold elements."""
    for loop in loops_of(tree.body):
        computes = all(
            isinstance(each, Write) or (isinstance(each, Fold) and not each.merges)
            for each in loop.body
        )
        if computes and loop.kind is not Kind.DIGIT:
            yield loop.variable


def interleaved(tree: Tree, name: str, vectors: VectorWidth) -> Tree:
    """Split a loop with elementary functions into blocks of vectors, and the rest.

    What it folds has a state for each element of a block.
    """
    loop, _ = find(tree, name)
    nodes = [
        node
        for each in loop.body
        if isinstance(each, (Write, Fold))
        for node in varying(each, {name})
    ]
    if not any(isinstance(node, Apply) and node.row.cost == "expensive" for node in nodes):
        return tree
    require(not vectors.serial, "there are values that the compiler does not vectorise")
    enough = vectors.vector_bytes >= AVX2_BYTES
    require(enough, f"vectors have fewer than {AVX2_BYTES} bytes")
    width, size = item_bytes(nodes, name), most(loop.extent)
    require(width > 0, f"{name} has no chain of operations that is long and alone")
    folds = any(isinstance(each, Fold) for each in loop.body)
    require(not folds or width >= MIN_FOLDED_BYTES, f"states of {name} are of few bytes")
    by = INTERLEAVED_VECTORS * vectors.vector_bytes // width
    short = isinstance(size, int) and size < MIN_LOOP_BLOCKS * by
    require(not short, f"{name} has fewer than {MIN_LOOP_BLOCKS * by} iterations")
    made = shape.split(tree, name, by, Kind.LANES)
    tree = rfactor(made.tree, name, made.inner) if folds else made.tree
    return shape.set_kind(tree, made.inner, Kind.COPIES)


def item_bytes(nodes: Sequence[Scalar], name: str) -> int:
    """Return the bytes of the widest value of a loop that should be interleaved, else 0."""
    loads = [node for node in nodes if isinstance(node, Load)]
    offsets = [load.offset for load in loads]
    direct = all(isinstance(atom, str) for offset in offsets for atom in offset.terms)
    adjoin = all(offset.step(name) in (0, 1) for offset in offsets)
    chooses = any(isinstance(node, Select) for node in nodes)
    if len(nodes) > MAX_INTERLEAVED_NODES or chooses or not (direct and adjoin):
        return 0
    widest = max([4, *(node.dtype.itemsize for node in nodes)])
    return widest if widest in (4, 8) else 0
