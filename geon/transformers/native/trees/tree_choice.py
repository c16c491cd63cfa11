"""Choose the trees of nests: of vectors along their loops, or of loops of the compiler."""

from __future__ import annotations

from ....op_graph.values.dtypes import FLOAT32, name_of
from ...kernels.ir.nest import Nest, Pass
from ...kernels.ir.scalar_code import Apply
from ...kernels.ir.scalar_code import walk as walk_scalars
from ...loops.access import is_straight
from ...loops.rules.cpu import may_stream, schedule, streamed
from ...loops.rules.streaming_copies import MAX_STREAMED_STORES
from ...loops.tree import Fold, Kind, LoopNode, Role, Tree, VectorWidth, loops_of, vector_stores
from ...loops.vector_loops import lanes_of
from ...printing.scalars.c_expressions import is_serial
from ..vectors.nontemporal_stores import Passing
from ..vectors.vector_functions import function_itemsize
from ..vectors.vector_ops import is_number
from ..vectors.vectorisable import adjoin, are_columns, are_rows, folded_itemsize, have_vectors

MIN_ITEMSIZE = FLOAT32.itemsize  # bytes of the narrowest elements that have vector types


def tree_of(nest: Nest, vector_bytes: int, passing: Passing | None, *, jams: bool = True) -> Tree:
    """Return the scheduled tree of a nest, of vectors or of loops that the compiler vectorises."""
    tree = vector_tree(nest, vector_bytes, passing, jams=jams)
    if tree is not None:
        return tree
    vectors = VectorWidth(
        vector_bytes,
        reduced_itemsize(nest),
        compiled=True,
        serial=any(map(is_serial_pass, nest.passes)),
        past=frozenset() if passing is None else passing.operands,
        most=nest.most,
    )
    return schedule(nest, vectors)


def vector_tree(
    nest: Nest, vector_bytes: int, passing: Passing | None, *, jams: bool = True
) -> Tree | None:
    """Return the tree of a nest that runs in vectors, or of columns, or None if it has none.

    Every long pass stores or folds vectors along its last loop. Rows that are not jammed must fill
    whole vectors: compilers do the rests of others better.
    """
    itemsize = function_itemsize(nest, vector_bytes)
    if itemsize is not None:
        vectors = VectorWidth(vector_bytes, itemsize, halves=False)
        tree = schedule(nest, vectors, jams=jams, fetches=True)
        streams = None if passing is None else with_streams(tree, passing, vectors)
        return streams or tree
    if nest.arrays or not nest.passes:
        return None
    if nest.across is not None or any(step.reductions for step in nest.passes):
        itemsize = folded_itemsize(nest, vector_bytes)
        fit = are_rows if nest.across is None else are_columns
        if itemsize is None or not fit(nest, vector_bytes // itemsize, itemsize):
            return None
        vectors = VectorWidth(vector_bytes, itemsize)
        tree = schedule(nest, vectors)
        if nest.across is not None and not all(map(is_vectorised, loops_of(tree.body))):
            return None
        return tree if passing is None else with_streams(tree, passing, vectors)
    if not all(isinstance(step, Pass) and only_stores(step) for step in nest.steps):
        return None
    itemsize = nest.passes[0].stores[0].dtype.itemsize
    if vector_bytes % itemsize or vector_bytes == itemsize:
        return None
    vectors = VectorWidth(vector_bytes, itemsize)
    long = [x for x in nest.passes if lanes_of(x.loops[-1].extent, vectors.count)]
    if not all(are_vectors(step, itemsize) for step in long):
        return None
    tree = schedule(nest, vectors, jams=jams)
    loops = loops_of(tree.body)
    if not any(loop.role is Role.VECTOR for loop in loops):
        return None
    jammed = any(loop.role is Role.UNROLLED for loop in loops)
    if not jammed and any(loop.kind is Kind.REST or is_short(loop, vectors) for loop in loops):
        return None
    return tree if passing is None else with_streams(tree, passing, vectors)


def reduced_itemsize(nest: Nest) -> int:
    """Return the bytes of the widest value that a nest reduces."""
    found = [each.states[0].itemsize for step in nest.passes for each in step.reductions]
    return max([MIN_ITEMSIZE, *found])


def is_serial_pass(step: Pass) -> bool:
    """Return True if the compiler may make no vectors of a pass."""
    nodes = walk_scalars(*step.computed)
    applied = [node for node in nodes if isinstance(node, Apply)]
    return any(is_serial(x.row.name, [name_of(y.dtype) for y in x.args]) for x in applied if x.args)


def with_streams(tree: Tree, passing: Passing, vectors: VectorWidth) -> Tree | None:
    """Return the tree with stores that pass by the caches.

    Return None if the kernel is known to be large and some of its vectors lie across lines, or if
    it has an open length and stores elements that have no vectors.
    """
    if len(passing.operands) > MAX_STREAMED_STORES:
        return tree
    whole = frozenset(
        k
        for k in passing.operands
        if all(is_number(store.dtype, vectors.itemsize) for store, _ in vector_stores(tree, k))
    )
    large = isinstance(passing.stored, int)
    if whole != passing.operands and not large:
        return None
    across = not all(may_stream(tree, k, vectors) for k in whole)
    return None if large and across else streamed(tree, whole, vectors)


def is_vectorised(loop: LoopNode) -> bool:
    """Return True if a loop over elements that it folds, not states, is over lanes or a rest.

    A loop over single columns is not.
    """
    if loop.kind is not Kind.MAIN or not is_straight(loop.body):
        return loop.kind is not Kind.COLUMNS
    return all(not isinstance(each, Fold) or each.merges for each in loop.body)


def is_short(loop: LoopNode, vectors: VectorWidth) -> bool:
    """Return True if a loop over lanes fills half of a register only, or runs scalars."""
    half = loop.role is Role.VECTOR and loop.size != vectors.count
    return half or (
        loop.role is Role.SERIAL and not any(isinstance(x, LoopNode) for x in loop.body)
    )


def only_stores(step: Pass) -> bool:
    """Return True if a pass has loops and only stores."""
    return bool(step.loops and step.stores) and not step.reductions and not step.keeps


def are_vectors(step: Pass, itemsize: int) -> bool:
    """Return True if a pass can store vectors of elements of ``itemsize`` bytes."""
    inner = step.loops[-1].name
    nodes = list(walk_scalars(*[store.value for store in step.stores]))
    return (
        have_vectors(nodes, inner, itemsize)
        and adjoin(step.stores, inner, itemsize)
        and all(is_number(store.value.dtype, itemsize) for store in step.stores)
    )
