"""Store elements where they belong that a loop would only copy from a buffer."""

from __future__ import annotations

from ....op_graph.axes.affine import variable
from ...kernels.ir.loop_variables import changes_with
from ...kernels.ir.nest import Keep, Store
from ...kernels.ir.scalar_code import Kept, Load
from .. import transformations as shape
from ..access import used_buffers
from ..substitution import Substitution
from ..tree import (
    Kind,
    LoopNode,
    Statement,
    Tree,
    VectorWidth,
    Write,
    find,
    loops_of,
    replaced,
    require,
    with_body,
)

TRANSPOSED_ITEMSIZES = (1, 2, 4, 8)  # of elements that have functions to transpose and repeat them


def forwarded(tree: Tree, name: str, vectors: VectorWidth) -> Tree:
    """Remove a loop that copies a buffer; the loops before it store to memory in its place.

    Stores that pass by the caches need the loop.
    """
    loop, above = find(tree, name)
    put = only_store(loop)
    if put is None or not isinstance(put, Store) or put.operand in vectors.past:
        return tree
    number = put.value.number if isinstance(put.value, Kept) else -1
    body = above[-1].body if above else tree.body
    pairs = zip(body, body[1:], strict=False)
    filling = next((first for first, each in pairs if each is loop), None)
    if not isinstance(filling, LoopNode) or not isinstance(put.value, Kept):
        return tree
    # An open number of equal elements is written to a buffer by vectors, also beyond its end.
    require(spread_row(filling) is None, "elements are repeated in vectors")
    inner = (filling, *loops_of(filling.body))[-1]
    keep = only_store(inner)
    users = sum(number in used_buffers((each,)) for each in body)
    require(put.value.offset == variable(name), "a copy in another order")
    require(users == 2 and isinstance(keep, Keep) and keep.number == number, "other uses of a copy")
    assert isinstance(keep, Keep)
    require(isinstance(keep.value, Load) and keep.value.dtype == put.dtype, "a copy that converts")
    change = Substitution(tree.code, {name: keep.offset})
    store = Store(put.operand, change.index(put.offset), keep.value, put.dtype)

    def direct(loop: LoopNode) -> tuple[Statement, ...]:
        return (with_body(loop, (Write((store,)),)),)

    tree = replaced(replaced(tree, name, lambda _: ()), inner.variable, direct)
    return tree if inner is filling else shape.set_kind(tree, filling.variable, Kind.BLOCK)


def only_store(loop: LoopNode) -> Store | Keep | None:
    """Return the only store of a loop's body, or None."""
    write = loop.body[0] if len(loop.body) == 1 else None
    return write.stores[0] if isinstance(write, Write) and len(write.stores) == 1 else None


def spread_row(loop: LoopNode) -> tuple[Keep, Load, LoopNode] | None:
    """Return the store, the load and the inner loop of two loops that repeat adjacent elements.

    They fill rows of open length one after another. Other loops are short, or computed in vectors.
    """
    inner = loop.body[0] if len(loop.body) == 1 else None
    if not isinstance(inner, LoopNode) or inner.kind is not Kind.DIGIT:
        return None
    keep, names = only_store(inner), (loop.variable, inner.variable)
    if isinstance(inner.size, int) or not isinstance(keep, Keep):
        return None
    load, row = keep.value, variable(names[0]) * inner.extent.constant + variable(names[1])
    if not isinstance(load, Load) or load.dtype.itemsize not in TRANSPOSED_ITEMSIZES:
        return None
    nested = [variable(atom) for atom in load.offset.terms if not isinstance(atom, str)]
    direct = not any(changes_with(each, names) for each in nested)
    follow = [load.offset.step(name) for name in names] == [1, 0] and keep.offset == row
    return (keep, load, inner) if direct and follow else None
