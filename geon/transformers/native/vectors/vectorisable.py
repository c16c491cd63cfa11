"""Decide which nests are vectors: over adjacent rows, or along the last loops of passes.

A compiler does not need to vectorise them and takes half of the time. Every operation must have a
vector text, and each vectorised loop must fill whole vectors.
"""

from __future__ import annotations

from collections.abc import Container, Sequence

from ....op_graph.values.dtypes import kind
from ...kernels.analysis.footprint import is_direct
from ...kernels.analysis.loop_depth import ELEMENT_DEPTH, Depths
from ...kernels.ir.nest import Loop, Nest, Pass, Store
from ...kernels.ir.scalar_code import (
    Apply,
    IndexNumber,
    LengthNumber,
    Load,
    Number,
    Scalar,
    Select,
    indices,
    operands_of,
    walk,
)
from ...loops.rules.column_lanes import MIN_LONG_COLUMNS
from ...loops.vector_loops import lanes_of
from .nontemporal_stores import stores, values
from .vector_ops import has_vector, is_number, rows_of, vectors, widened

FOLDS = ("add", "multiply")  # folds of floats with the same text for vectors and scalars


def folded_itemsize(nest: Nest, vector_bytes: int) -> int | None:
    """Return the bytes of an element if a nest folds and stores numbers that fill vectors."""
    puts = [store for step in nest.passes for store in step.stores] or stores(nest)
    if nest.arrays or not nest.passes or not puts:
        return None
    itemsize = puts[0].dtype.itemsize
    several = vector_bytes % itemsize == 0 and vector_bytes > itemsize
    return itemsize if several and all(is_folded(x, itemsize) for x in nest.passes) else None


def are_rows(nest: Nest, count: int, itemsize: int) -> bool:
    """Return True if all passes can be vectors of ``count`` elements along their last loops."""
    return all(are_elements(nest, each, count, itemsize) for each in nest.passes)


def is_filled(loop: Loop, count: int) -> bool:
    """Return True if a loop has a known, nonzero number of whole vectors."""
    return isinstance(loop.extent, int) and loop.extent > 0 and loop.extent % count == 0


def is_folded(step: Pass, itemsize: int) -> bool:
    """Return True if all reductions of a pass fold numbers of ``itemsize`` bytes in vectors."""
    return not step.keeps and all(
        each.folds in rows_of(each.states[0])
        and is_number(each.states[0], itemsize)
        and all(element.dtype == each.states[0] for element in each.elements)
        for each in step.reductions
    )


def adds_floats(step: Pass) -> bool:
    """Return True if a pass has only reductions with the same text for vectors and scalars."""
    return all(each.folds in FOLDS and kind(each.states[0]) == "f" for each in step.reductions)


def adjoin(puts: Sequence[Store], loop: str, itemsize: int) -> bool:
    """Return True if stores are contiguous along a loop and have elements of ``itemsize`` bytes."""
    return all(
        is_direct(store.offset)
        and store.offset.step(loop) == 1
        and is_number(store.dtype, itemsize)
        and store.value.dtype == store.dtype
        for store in puts
    )


def is_choice(node: Select, loop: str, itemsize: int) -> bool:
    """Return True if a selection is the same for a whole vector along a loop."""
    same = all(is_direct(index) and index.step(loop) == 0 for index in indices(node))
    return same and is_number(node.dtype, itemsize)


def are_columns(nest: Nest, count: int, itemsize: int) -> bool:
    """Return True if all values and stores of a nest can be vectors of ``count`` adjacent rows.

    Few columns fill vectors with several of their terms, which is another form.
    """
    lanes = nest.across
    assert lanes is not None
    if not all(map(adds_floats, nest.passes)) or not is_filled(lanes, count):
        return False
    if not nest.rows and lanes.extent < MIN_LONG_COLUMNS:
        return False
    fit = have_vectors(list(walk(*values(nest))), lanes.name, itemsize, clamps=True)
    return fit and adjoin(stores(nest), lanes.name, itemsize)


WIDENED_ITEMSIZE = 4  # bytes of numbers to which narrow integers are widened by one instruction
KNOWN = (Apply, IndexNumber, LengthNumber, Load, Number, Select)  # allowed as scalars


def are_elements(nest: Nest, step: Pass, count: int, itemsize: int) -> bool:
    """Return True if a pass's element values and stores can be vectors along its last loop."""
    if not step.loops or not lanes_of(step.loops[-1].extent, count):
        return False
    depths = Depths.of(nest)
    nodes = [node for node in walk(*step.computed) if depths.value(node) == ELEMENT_DEPTH]
    inner = step.loops[-1].name
    fit = have_vectors(nodes, inner, itemsize, widens=itemsize == WIDENED_ITEMSIZE)
    return fit and adjoin(step.stores, inner, itemsize)


def are_stored(stores: Sequence[Store], inner: Loop, depths: Depths, itemsize: int) -> bool:
    """Return True if a product's epilogue can be emitted as vectors along a column loop."""
    nodes = [
        node for node in walk(*[x.value for x in stores]) if depths.value(node) == ELEMENT_DEPTH
    ]
    return have_vectors(nodes, inner.name, itemsize) and adjoin(stores, inner.name, itemsize)


def have_vectors(
    nodes: Sequence[Scalar],
    inner: str,
    itemsize: int,
    *,
    clamps: bool = False,
    widens: bool = False,
) -> bool:
    """Return True if all nodes can be vectors along a loop, or are the same for a whole vector.

    With ``widens``, adjacent elements that are only cast to floats may be narrower ones.
    """
    wide = vectors(nodes, inner)
    if widens:
        nodes = without_widening(nodes, wide, inner, itemsize)

    def fits(node: Scalar) -> bool:
        if isinstance(node, Select):
            return is_choice(node, inner, itemsize)
        if id(node) in wide:
            return has_vector(node, wide, inner, itemsize, chooses=True, clamps=clamps)
        return isinstance(node, KNOWN) and all(is_direct(index) for index in indices(node))

    return all(map(fits, nodes))


def without_widening(
    nodes: Sequence[Scalar], wide: Container[int], inner: str, itemsize: int
) -> list[Scalar]:
    """Return the nodes that are no casts of adjacent narrow elements to floats, and not only read
    by such casts."""
    loads = {id(node): widened(node, itemsize) for node in nodes if kind(node.dtype) == "f"}
    casts = {
        key
        for key, load in loads.items()
        if load is not None
        and key in wide
        and is_direct(load.offset)
        and load.offset.step(inner) == 1
    }
    others = [node for node in nodes if id(node) not in casts]
    read = {id(part) for node in others for part in operands_of(node)}
    within = {id(loads[key]) for key in casts} - read
    return [node for node in others if id(node) not in within]
