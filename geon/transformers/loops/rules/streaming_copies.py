"""Compute stored elements in buffers and copy these to memory past the caches.

A cache line that is written as a whole by non-temporal stores is not read first, so that a sum of
two arrays moves three arrays instead of four. Elements that the compiler stores are computed in a
buffer in the first-level cache, and a loop that only copies writes them. Calls that write little
store elements where they belong, without the copy. Loops that store may also fold what they store.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ....op_graph.axes.affine import variable
from ....op_graph.axes.index_map import InRange
from ....op_graph.rows.elementwise import maximum, minimum
from ....op_graph.values.dtypes import kind
from ...kernels.ir.nest import Keep, Store
from ...kernels.ir.scalar_code import Kept
from ...sizes.limits import L1_BLOCK_BYTES, L1_WAYS, LONG_LOOP_TURNS, MIN_WORK
from .. import transformations as shape
from ..access import most, stores_results, used
from ..substitution import Substitution
from ..tree import (
    Choose,
    Fold,
    IllegalScheduleError,
    Kind,
    LoopNode,
    PrivateBuffer,
    Space,
    Statement,
    Tree,
    VectorWidth,
    Write,
    constant,
    find,
    fresh,
    loops_of,
    replace,
    replaced,
    require,
    with_body,
)
from ..work import work

# Bytes of the buffers of all stores of a loop, unless it is blocked before. With 1 KiB, loops take
# 1.3 of the time in calls that store through the caches, from the second one; with 4 KiB, where a
# buffer and what it is copied to are in one part of the first cache, up to 2 in those past them.
STREAMED_BLOCK_BYTES = L1_BLOCK_BYTES
MAX_BLOCK_TURNS = STREAMED_BLOCK_BYTES // 2  # iterations of a loop up to which it is one block
# Minimum iterations of a loop for which non-temporal stores pay.
MIN_STREAMED_TURNS = LONG_LOOP_TURNS
# Maximum operations for each stored byte: buffers cost a kernel that arithmetic bounds more than
# the traffic that they save (x + y 0.66 of the time, tanh 0.88, 15 products and an exp 1.15).
MAX_STREAMED_WORK = 4
PASSES = "passes"  # variable of a task: 1 in calls whose marked stores pass by the caches, else 0
MAX_STREAMED_STORES = L1_WAYS  # maximum buffered stores of a loop: 256 bytes of each in a block


def writing(tree: Tree) -> Iterator[str]:
    """Yield the innermost loops that store, and may also fold elements."""
    for loop in loops_of(tree.body):
        if loop.kind is not Kind.DIGIT and is_writing(loop) and stores_results(loop):
            yield loop.variable


def is_writing(loop: LoopNode) -> bool:
    """Return True if all statements of a loop store or fold elements."""
    return all(
        isinstance(each, Write) or (isinstance(each, Fold) and not each.merges)
        for each in loop.body
    )


def in_any_blocks(tree: Tree, loop: LoopNode) -> bool:
    """Return True if the folds of a loop have the same results in blocks of any size."""
    folds = [each for each in loop.body if isinstance(each, Fold)]
    return all(
        kind(tree.buffers[number].dtype) != "f" or each.reducer.folds in (maximum, minimum)
        for each in folds
        for number in each.into
    )


def is_small(loop: LoopNode, tree: Tree) -> bool:
    """Return True if an outermost loop beside others is known to be too little work for tasks."""
    total = work((loop,)) if len(tree.body) > 1 else MIN_WORK
    return isinstance(total, int) and total < MIN_WORK


def is_long(loop: LoopNode) -> bool:
    """Return True if a loop may be longer than one block."""
    size = most(loop.extent)
    return not isinstance(size, int) or size > MAX_BLOCK_TURNS


def streamed_stores(loop: LoopNode, operands: frozenset[int]) -> list[Store]:
    """Return the stores of an innermost loop that are copied: adjacent ones, if it is long enough.

    A loop that computes much has none.
    """
    size = most(loop.extent)
    short = isinstance(size, int) and size < MIN_STREAMED_TURNS
    if short or not is_writing(loop):
        return []
    stores = stores_of(loop)
    total = sum(store.dtype.itemsize for store in stores)
    each = work((replace(loop, extent=constant(1)),))
    if not isinstance(each, int) or each > MAX_STREAMED_WORK * total:
        return []
    found = [
        store
        for store in stores
        if store.operand in operands
        and store.offset.step(loop.variable) == 1
        and all(isinstance(atom, str) for atom in store.offset.terms)
    ]
    return found if len(found) <= MAX_STREAMED_STORES else []


def stores_of(loop: LoopNode) -> list[Store]:
    """Return the stores to operands in the body of a loop."""
    writes = [each for each in loop.body if isinstance(each, Write)]
    return [store for each in writes for store in each.stores if isinstance(store, Store)]


def apart_from_short(tree: Tree, loop: LoopNode, above: Sequence[LoopNode]) -> Tree:
    """Add a form without blocks to a tree, for rows of open length that are short.

    Blocks and the decision how they are stored would cost each of these rows as much as its copy.
    """
    size = loop.size
    if not above or size is None or isinstance(size, int) or isinstance(tree.body[0], Choose):
        return tree
    return shape.specialise(tree, (InRange(constant(size), 0, MIN_STREAMED_TURNS),))


def copied(tree: Tree, name: str, vectors: VectorWidth) -> Tree:
    """Compute in buffers what a loop stores past the caches, and copy that block by block."""
    loop, above = find(tree, name)
    if used(loop).keys().isdisjoint([("operand", number) for number in vectors.past]):
        return tree
    if not any(store.operand in vectors.past for store in stores_of(loop)):
        return tree
    require(bool(above) or is_long(loop), f"{name} is no work for tasks")
    require(not is_small((*above, loop)[0], tree), f"{name} is little work")
    streamed = streamed_stores(loop, vectors.past)
    require(bool(streamed), f"{name} is short, or computes much")
    fits = not is_long(loop) or in_any_blocks(tree, loop)
    require(fits, f"blocks of {name} would add or multiply floats in another order")
    # Blocks are multiples of the shortest one that pays, so that whole vectors fill them.
    turns = STREAMED_BLOCK_BYTES // sum(store.dtype.itemsize for store in streamed)
    turns = max(turns // MIN_STREAMED_TURNS, 1) * MIN_STREAMED_TURNS
    tree = apart_from_short(tree, loop, above)
    places = [stores_of(loop).index(store) for store in streamed]
    if is_long(loop):
        made = shape.split(tree, name, turns, short=True)
        tree, name = made.tree, made.inner
        loop, _ = find(tree, name)
    size = most(loop.extent)
    assert isinstance(size, int)
    chosen = [stores_of(loop)[place] for place in places]
    first, at = len(tree.buffers), variable(name)
    numbers = {id(store): first + k for k, store in enumerate(chosen)}

    def put(store: Store | Keep) -> Store | Keep:
        number = numbers.get(id(store))
        return store if number is None else Keep(number, at, store.value)

    body: list[Statement] = [
        replace(each, stores=tuple(map(put, each.stores))) if isinstance(each, Write) else each
        for each in loop.body
    ]
    found, taken = [with_body(loop, tuple(body))], [name]
    for store in chosen:
        taken.append(fresh(tree, name, taken))
        copy = Substitution(tree.code, {name: variable(taken[-1])})
        number = numbers[id(store)]
        kept = tree.code(Kept, number, variable(taken[-1]), store.dtype)
        moved = Store(store.operand, copy.index(store.offset), kept, store.dtype)
        write = Write((moved,), frozenset((store.operand,)))
        found.append(LoopNode(taken[-1], loop.extent, (write,)))
    buffers = [PrivateBuffer(store.dtype, size, Space.STACK) for store in chosen]
    return replaced(tree, name, lambda _: tuple(found), buffers)


def past_caches(tree: Tree, name: str, vectors: VectorWidth) -> Tree:
    """Return the tree with a loop whose stores may pass by the caches, if it has such stores."""
    try:
        return copied(tree, name, vectors)
    except IllegalScheduleError:
        return tree
