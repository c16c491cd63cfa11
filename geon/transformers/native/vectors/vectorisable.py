"""Which nests are text of vectors: those over rows side by side, or along the last loops of passes.

Compilers that are given vectors have none to find, and take half of the time for such a kernel. All
that is computed must have a row of vectors, and each loop over them be filled.
"""

from __future__ import annotations

from collections.abc import Sequence

from ....op_graph.values.dtypes import name_of
from ...kernels.analysis.loop_depth import ELEMENT, ROW, Depths
from ...kernels.ir.nest import Loop, Nest, Pass, Store
from ...kernels.ir.scalar_code import (
    Apply,
    IndexNumber,
    LengthNumber,
    Load,
    Number,
    Reduced,
    Scalar,
    Select,
    indices,
    walk,
)
from ...printing.nests.transposed_passes import crosses, is_direct
from .lanes import Vectors
from .nontemporal_stores import stores, values
from .vector_ops import has_vector, is_number, vectors

FOLDS = ("add", "multiply")  # of floats, which vectors take as numbers do


def vectored(nest: Nest, vector_bytes: int) -> Vectors | None:
    """The vectors that the text of a nest is of; None where it is of numbers."""
    puts = [store for step in nest.passes for store in step.stores] or stores(nest)
    if nest.flat or nest.arrays or not nest.passes or not puts:
        return None
    itemsize = puts[0].dtype.itemsize
    if vector_bytes % itemsize or vector_bytes == itemsize:
        return None
    count = vector_bytes // itemsize
    if not all(is_folded(step, itemsize) for step in nest.passes):
        return None
    if nest.across is not None:
        fits = is_filled(nest.across, count) and are_lanes(nest, nest.across.name, itemsize)
        return Vectors(count, itemsize, (nest.across.name,)) if fits else None
    inner = {step.loops[-1].name for step in nest.passes if step.loops}
    others = {loop.name for step in nest.passes for loop in step.loops[:-1]}
    others |= {loop.name for loop in nest.rows}
    if inner & others or not all(are_elements(nest, each, count, itemsize) for each in nest.passes):
        return None
    return Vectors(count, itemsize, tuple(inner))


def is_filled(loop: Loop, count: int) -> bool:
    """Whether a loop is known to have turns for whole vectors, and how many these are."""
    return isinstance(loop.extent, int) and loop.extent > 0 and loop.extent % count == 0


def is_folded(step: Pass, itemsize: int) -> bool:
    """Whether a pass reduces nothing but by sums and products of floats of so many bytes."""
    return not step.keeps and all(
        each.folds in FOLDS
        and name_of(each.states[0]) in ("float32", "float64")
        and each.states[0].itemsize == itemsize
        and all(element.dtype == each.states[0] for element in each.elements)
        for each in step.reductions
    )


def adjoin(puts: Sequence[Store], loop: str, itemsize: int) -> bool:
    """Whether stores are of numbers of so many bytes that adjoin along a loop."""
    return all(
        is_direct(store.offset)
        and store.offset.step(loop) == 1
        and is_number(store.dtype, itemsize)
        and store.value.dtype == store.dtype
        for store in puts
    )


def is_choice(node: Select, loop: str, itemsize: int) -> bool:
    """Whether a choice is the same one for all of a vector along a loop."""
    same = all(is_direct(index) and index.step(loop) == 0 for index in indices(node))
    return same and is_number(node.dtype, itemsize)


def are_lanes(nest: Nest, lane: str, itemsize: int) -> bool:
    """Whether vectors of rows side by side have all that a nest computes and stores."""
    nodes, depths = list(walk(*values(nest))), Depths.of(nest)
    of_rows = {id(node) for node in nodes if depths.value(node) == ROW}
    wide = vectors(nodes, lane, of_rows)

    def fits(node: Scalar) -> bool:
        if isinstance(node, Reduced):
            return is_number(node.dtype, itemsize)
        if isinstance(node, Select):
            return id(node) not in of_rows and is_choice(node, lane, itemsize)
        if isinstance(node, IndexNumber) and id(node) in of_rows:
            return False
        if isinstance(node, Load) and id(node) in of_rows and node.offset.step(lane) == 0:
            return is_direct(node.offset) and is_number(node.dtype, itemsize)
        return has_vector(node, wide, lane, itemsize, chooses=True)

    if any(crosses(step, lane) for step in nest.passes) or not all(map(fits, nodes)):
        return False
    return adjoin(stores(nest), lane, itemsize)


KNOWN = (Apply, IndexNumber, LengthNumber, Load, Number, Select)  # that are the same for a vector


def are_elements(nest: Nest, step: Pass, count: int, itemsize: int) -> bool:
    """Whether vectors along its last loop have all that a pass computes of elements and stores."""
    if not step.loops or not is_filled(step.loops[-1], count):
        return False
    depths = Depths.of(nest)
    nodes = [node for node in walk(*step.computed) if depths.value(node) == ELEMENT]
    inner = step.loops[-1].name
    return have_vectors(nodes, inner, itemsize) and adjoin(step.stores, inner, itemsize)


def are_stored(stores: Sequence[Store], inner: Loop, depths: Depths, itemsize: int) -> bool:
    """Whether vectors along a loop over columns have all that is stored of a product's sums."""
    nodes = [node for node in walk(*[x.value for x in stores]) if depths.value(node) == ELEMENT]
    return have_vectors(nodes, inner.name, itemsize) and adjoin(stores, inner.name, itemsize)


def have_vectors(nodes: Sequence[Scalar], inner: str, itemsize: int) -> bool:
    """Whether vectors along a loop have what is computed of elements, or it is the same for all of
    a vector.
    """
    wide = vectors(nodes, inner)

    def fits(node: Scalar) -> bool:
        if isinstance(node, Select):
            return is_choice(node, inner, itemsize)
        if id(node) in wide:
            return has_vector(node, wide, inner, itemsize, chooses=True)
        return isinstance(node, KNOWN) and all(is_direct(index) for index in indices(node))

    return all(map(fits, nodes))
