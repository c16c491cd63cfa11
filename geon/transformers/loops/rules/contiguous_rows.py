"""Rule for stores of short rows that follow each other in memory: one loop over their elements.

Loops over a few elements of one row fill no vectors. Values of a row, or of a position in it, are
copied to buffers with an element for each one that is stored, and what a block of rows loads and
stores is then one run of memory.
"""

from __future__ import annotations

from collections.abc import Sequence

from ....op_graph.axes.affine import AffineIndex, Size, variable
from ...kernels.ir.loop_variables import variables_in
from ...kernels.ir.nest import Keep, Store
from ...kernels.ir.scalar_code import Apply, Kept, Load, Scalar, indices
from ...kernels.ir.scalar_code import walk as walk_scalars
from ...sizes.limits import LONG_LOOP_TURNS
from ..access import most
from ..partial_states import ValueReplacement
from ..substitution import Substitution
from ..tree import (
    Kind,
    Least,
    LoopNode,
    PrivateBuffer,
    Role,
    Space,
    Tree,
    VectorWidth,
    Write,
    constant,
    find,
    fresh,
    least,
    replaced,
    require,
    values_of,
)

PADDED = "values of rows; a row overwrites what is beyond the end of the one before"
# Maximum elements of a row: buffers of a block stay in the first cache.
MAX_ROW_ELEMENTS = LONG_LOOP_TURNS


def row_bound(loop: LoopNode, vectors: VectorWidth) -> int:
    """Return the maximum iterations of a loop over the elements of a row, 0 if it is not known."""
    return loop.size if isinstance(loop.size, int) else vectors.most


def is_contiguous(loop: LoopNode, rows: str, vectors: VectorWidth) -> bool:
    """Return True if what a loop stores in short ``rows`` is one run of memory, which pays.

    What it loads is such a run too, or changes with the row or the position in it only. Rows that
    fill registers have loops of their own, and those of cheap values also if they fill one.
    """
    bound = row_bound(loop, vectors)
    if not 0 < bound <= MAX_ROW_ELEMENTS or len(loop.body) != 1:
        return False
    (write,) = loop.body
    if not isinstance(write, Write):
        return False
    stores = [store for store in write.stores if isinstance(store, Store)]
    if len(stores) < len(write.stores):
        return False
    nodes, known = list(walk_scalars(*values_of(write))), isinstance(loop.size, int)
    count = vectors.vector_bytes // max([store.dtype.itemsize for store in stores])
    likely = bound if known else bound // 2
    if (known and bound % count == 0) or (likely >= count - 1 and not any(map(is_costly, nodes))):
        return False
    names = {rows, loop.variable}
    whole = (loop.size, 1)
    for node in nodes:
        for index in indices(node):
            nested = [atom for atom in index.terms if not isinstance(atom, str)]
            steps = (index.step(rows), index.step(loop.variable))
            apart = isinstance(node, (Load, Kept)) and (0 in steps or steps == whole)
            if any(variables_in(atom) & names for atom in nested) or not (apart or steps == (0, 0)):
                return False
    offsets = [store.offset for store in stores]
    return all((x.step(rows), x.step(loop.variable)) == whole for x in offsets)


def is_costly(node: Scalar) -> bool:
    """Return True if a value is computed by a function, which short vectors waste."""
    return isinstance(node, Apply) and node.row.cost == "expensive"


def in_one_run(tree: Tree, rows: str, name: str, vectors: VectorWidth) -> Tree:
    """Store the elements of all ``rows`` of a block in one loop; ``name`` is that over a row."""
    loop, inner = find(tree, rows)[0], find(tree, name)[0]
    require(loop.body == (inner,), f"{name} is not all that is in {rows}")
    require(is_contiguous(inner, rows, vectors), f"what {name} stores is not one run of memory")
    count, size = most(loop.extent), inner.size
    assert isinstance(count, int) and size is not None
    values = [
        node
        for node in walk_scalars(*values_of(inner.body[0]))
        if isinstance(node, (Load, Kept)) and is_spread(node, rows, name)
    ]
    room = padded(row_bound(inner, vectors), values, vectors)
    row, turn = fresh(tree, rows), fresh(tree, name)
    first, at = fresh(tree, name, [turn]), variable(rows) * size + variable(name)
    of_row = Substitution(tree.code, {rows: variable(row), name: variable(turn)})
    of_first = Substitution(tree.code, {name: variable(first)})
    begins, keeps, new, buffers = list[Keep](), list[Keep](), dict[int, Scalar](), [*tree.buffers]
    for node in values:
        value = of_row.value(node)
        if node.offset.step(name):  # the end of a padded row is not in the memory of operands
            begins.append(Keep(len(buffers), variable(first), of_first.value(node)))
            value = tree.code(Kept, len(buffers), variable(turn), node.dtype)
            buffers.append(PrivateBuffer(node.dtype, room, Space.STACK))
        keeps.append(Keep(len(buffers), of_row.index(at), value))
        new[id(node)] = tree.code(Kept, len(buffers), at, node.dtype)
        buffers.append(PrivateBuffer(node.dtype, count * room, Space.STACK))
    fill = LoopNode(turn, constant(room), (Write(tuple(keeps)),), Role.SIMD, Kind.BLOCK, PADDED)
    filled = LoopNode(row, loop.extent, (fill,), kind=loop.kind) if keeps else None
    begun = LoopNode(first, inner.extent, (Write(tuple(begins)),)) if begins else None
    body = ValueReplacement(tree, new).body(inner.body)
    body = Substitution(tree.code, {rows: AffineIndex(), name: variable(rows)}).body(body)
    joined = LoopNode(rows, times(loop.extent, size), body, kind=loop.kind)
    made = tuple([each for each in (begun, filled, joined) if each is not None])
    return replaced(tree, rows, lambda _: made, buffers[len(tree.buffers) :])


def padded(size: int, values: Sequence[Load | Kept], vectors: VectorWidth) -> int:
    """Return the elements that are stored of a row of values, of which the next row overwrites
    those beyond its end: they fill registers, or a part of one that is a power of two.
    """
    width = vectors.vector_bytes // max([node.dtype.itemsize for node in values], default=1)
    return -(-size // width) * width if size > width else 1 << (size - 1).bit_length()


def is_spread(node: Load | Kept, rows: str, name: str) -> bool:
    """Return True if a value changes with the row or the position in it, and not with both."""
    return (node.offset.step(rows) == 0) != (node.offset.step(name) == 0)


def times(extent: AffineIndex, size: Size) -> AffineIndex:
    """Return a product of an extent, which may be a minimum."""
    (atom, step), *others = extent.terms.items() or [(None, 0)]
    if not isinstance(atom, Least) or others or step != 1 or extent.constant != 0:
        return extent * size
    return least([each * size for each in atom.of])
