"""Rules for passes that load along one axis and store along another, through tiles on the stack.

A tile holds what a block of columns loads for some elements of their rows, transposed: its lines
are then as adjacent as what the pass stores.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from ....op_graph.axes.affine import Remainder, variable
from ....op_graph.axes.index_map import InRange
from ....op_graph.values.dtypes import FLOAT32
from ...kernels.analysis.index_boxes import Facts
from ...kernels.ir.nest import Store
from ...kernels.ir.scalar_code import Kept, Load
from ...kernels.ir.scalar_code import walk as walk_scalars
from ...sizes.blocks import CACHE_LINE_BYTES
from ...sizes.limits import (
    AVX512_BYTES,
    LONG_LOOP_TURNS,
    MAX_TASK_WORK,
    MIN_RUN_BYTES,
    PAGE_BYTES,
)
from .. import transformations as shape
from ..access import is_straight
from ..partial_states import stage
from ..tree import (
    Body,
    Choose,
    Fold,
    Kind,
    LoopNode,
    Role,
    Tree,
    VectorWidth,
    Write,
    constant,
    find,
    loops_of,
    replaced,
    values_of,
    walk,
    with_body,
)
from .streaming_copies import MIN_STREAMED_TURNS, PASSES, past_caches
from .tiles import crossing

TILE_COLUMNS = LONG_LOOP_TURNS  # columns of a tile
# Bytes of a line of a tile, so that most cache lines are stored as a whole.
TILE_ROW_BYTES = MIN_RUN_BYTES
# Of a line: lines of equal parts of memory map to one cache set.
TILE_PADDING_ELEMENTS = CACHE_LINE_BYTES // 8
# Bytes of a row from which on it is stored without a tile.
MIN_TRANSPOSED_LINE_BYTES = TILE_ROW_BYTES // 2
# Of adjacent rows, which are stored without a tile as well.
MAX_ADJACENT_ELEMENTS = 2 * AVX512_BYTES // 4
# Of a row in a task that needs no tiles: each is loaded and stored, in as many columns as in tiles.
STRAIGHT_ELEMENTS = MAX_TASK_WORK // (2 * TILE_COLUMNS)
# Bytes of its elements: rows of smaller blocks fill no cache line.
MIN_TRANSPOSED_ITEM_BYTES = FLOAT32.itemsize
# Bytes after which lines of memory meet in one set of a cache, by those of a register; a tile then
# holds them. In registers of 64 bytes, blocks are as long as lines.
CACHE_SET_BYTES = {AVX512_BYTES: PAGE_BYTES}
MIN_CACHE_SET_BYTES = PAGE_BYTES // 4


def crossed_columns(tree: Tree) -> Iterator[str]:
    """Yield the loop over columns if its passes only store, and one of them across memory."""
    for loop in loops_of(tree.body):
        if loop.kind is Kind.COLUMNS and any(map(is_crossed, passes_in(loop))):
            if not any(isinstance(each, Fold) for each, _ in walk(loop.body)):
                yield loop.variable


def passes_in(columns: LoopNode) -> list[tuple[LoopNode, LoopNode, Write]]:
    """Return each pass of columns that is nested loops around one statement that only stores.

    A pass is given by the loop over columns, its innermost loop and the statement.
    """
    found = []
    for each in columns.body:
        while isinstance(each, LoopNode) and len(each.body) == 1 and not is_straight(each.body):
            each = each.body[0]
        if isinstance(each, LoopNode) and len(each.body) == 1 and isinstance(each.body[0], Write):
            found.append((columns, each, each.body[0]))
    return found


def is_crossed(step: tuple[LoopNode, LoopNode, Write]) -> bool:
    """Return True if a pass stores along its innermost loop, and across columns."""
    columns, last, write = step
    return all(
        isinstance(put, Store)
        and all(isinstance(atom, str) for atom in put.offset.terms)
        and put.offset.step(last.variable) == 1 != put.offset.step(columns.variable)
        for put in write.stores
    )


def in_tiles(tree: Tree, name: str, vectors: VectorWidth) -> Tree:
    """Compute the passes of columns that store across memory in tiles.

    Copies of long rows need no tiles; where lengths are open, a call decides for all of them.
    """
    tree, names = shape.distribute(tree, name)
    crossed = {each: passes_in(find(tree, each)[0]) for each in names}
    known = {
        each: straight_guards(found[0][2], each, found[0][1], vectors)
        for each, found in crossed.items()
        if found and all(map(is_crossed, found))
    }
    guards = dict.fromkeys(guard for each in known.values() for guard in each or ())
    straight = {each: holds is not None for each, holds in known.items()}
    if guards:
        tree = shape.specialise(tree, tuple(guards))
        (choice,) = tree.body
        assert isinstance(choice, Choose)
        for copy, other in zip(loops_of(choice.then), loops_of(choice.otherwise), strict=True):
            each = next((x for x in (copy.variable, other.variable) if x in known), None)
            if each is not None:
                straight[copy.variable] = known[each] is not None
                straight[other.variable] = known[each] == ()
    for each, direct in straight.items():
        tree = in_blocks(tree, each, vectors, straight=direct)
    return tree


def in_blocks(tree: Tree, name: str, vectors: VectorWidth, *, straight: bool) -> Tree:
    """Divide columns and the elements of their rows into blocks, which are tiles.

    Those of a copy that goes ``straight`` are tiles only in calls that pass by the caches. Whole
    rows that adjoin in memory adjoin in a tile, too, which is then copied as it is.
    """
    start, (loop, above) = tree, find(tree, name)
    ((_, innermost, write),) = passes_in(loop)
    last = innermost.variable
    for each in loops_of(loop.body):
        if each.variable != last:
            tree = shape.reorder(tree, name, each.variable)
    extents = [loop.size, *(each.size for each in (*above, *loops_of(loop.body)))]
    wide, past = width(write, name, innermost), vectors
    if all(isinstance(each, int) for each in extents):
        past = aligned(write, name, wide, vectors)
    else:
        past = replace(vectors, past=frozenset())  # open ones are often small
    adjoin = straight and innermost.size == wide and write.stores[0].offset.step(name) == wide
    long = adjoin or not isinstance(innermost.size, int) or innermost.size >= MIN_STREAMED_TURNS
    streams = long and bool(past.past & {x.operand for x in write.stores if isinstance(x, Store)})
    tree = shape.set_kind(tree, name, Kind.MAIN)
    tree, near, _ = shape.split(tree, name, TILE_COLUMNS, short=True)
    for row in reversed(above):
        if is_nearer(write, row.variable, name):
            tree = shape.reorder(tree, row.variable, name)
    if straight and not streams:
        wide = STRAIGHT_ELEMENTS
    tree, far, _ = shape.split(tree, last, wide, short=True)
    tree = shape.reorder(tree, near, last)
    if straight and not streams:
        return tree
    whole = find(tree, last)[0].body
    padding = 0 if adjoin else TILE_PADDING_ELEMENTS
    while loads := crossing(find(tree, last)[0], near, far):
        tree = stage(tree, last, loads[0], [near, far], padding=padding)
    if adjoin:
        return as_stored(tree, near, far)
    in_tiles_only, tree = tree, past_caches(tree, far, past)
    if straight and tree is in_tiles_only:  # no store passes by the caches
        return in_blocks(start, name, replace(vectors, past=frozenset()), straight=True)
    tree = shape.set_role(tree, far, Role.SIMD, "elements are adjacent where they are stored")
    return chosen(tree, last, whole) if straight else tree


def as_stored(tree: Tree, near: str, far: str) -> Tree:
    """Copy a tile past the caches in one loop: its lines adjoin, and so do the rows of the result.

    In other calls the tile is the memory of these rows.
    """
    tree = shape.collapse(tree, near, far)
    loop, _ = find(tree, near)
    (write,) = loop.body
    assert isinstance(write, Write)
    (store,) = write.stores
    assert isinstance(store, Store) and isinstance(store.value, Kept)
    assert store.value.offset == variable(near)
    copy = with_body(loop, (replace(write, streamed=frozenset((store.operand,))),))
    return replaced(tree, near, lambda _: (copy,))


def chosen(tree: Tree, name: str, otherwise: Body) -> Tree:
    """Run the body of a loop in calls that pass by the caches, and other statements else."""
    copy, tree = shape.copied(tree, otherwise, (), {})

    def choose(loop: LoopNode) -> tuple[LoopNode]:
        body = Choose((InRange(variable(PASSES), 1, 2),), loop.body, copy)
        return (with_body(loop, (body,)),)

    return replaced(tree, name, choose)


def aligned(write: Write, columns: str, wide: int, vectors: VectorWidth) -> VectorWidth:
    """Return the vectors with the stores that pass by the caches in mostly whole cache lines.

    Rows begin at lines, or those of tiles are long or adjacent.
    """
    found = set[int]()
    for store in write.stores:
        assert isinstance(store, Store)
        itemsize, apart = store.dtype.itemsize, store.offset.step(columns)
        begins = isinstance(apart, int) and apart * itemsize % CACHE_LINE_BYTES == 0
        if begins or wide * itemsize >= TILE_ROW_BYTES or apart == wide:
            found.add(store.operand)
    return replace(vectors, past=vectors.past & found)


def width(write: Write, columns: str, last: LoopNode) -> int:
    """Return the elements of a line of a tile: all of a row if they are few."""
    loads = crossing(last, columns, last.variable)
    stored = [store.value for store in write.stores]
    itemsize = sum(each.dtype.itemsize for each in loads or stored)
    wide, size = max(TILE_ROW_BYTES // itemsize // TILE_COLUMNS, 1) * TILE_COLUMNS, last.size
    return size if isinstance(size, int) and 0 < size <= 2 * wide else wide


def straight_guards(
    write: Write, columns: str, last: LoopNode, vectors: VectorWidth
) -> tuple[InRange, ...] | None:
    """Return when a pass is a copy that is faster without tiles: None for never, () for always.

    Its rows are long, and the lines of a block do not meet in one set of a cache.
    """
    (store, *others), loads = write.stores, crossing(last, columns, last.variable)
    if others or not isinstance(store, Store) or loads != [store.value]:
        return None
    itemsize, size, (load,) = store.dtype.itemsize, last.size, loads
    if size is None or itemsize < MIN_TRANSPOSED_ITEM_BYTES:
        return None
    if isinstance(size, int) and store.offset.step(columns) == size <= MAX_ADJACENT_ELEMENTS:
        return ()
    sets = CACHE_SET_BYTES.get(vectors.vector_bytes, MIN_CACHE_SET_BYTES) // itemsize
    apart = load.offset.step(last.variable), store.offset.step(columns)
    guards = [InRange(constant(size), MIN_TRANSPOSED_LINE_BYTES // itemsize, 1 << 62)]
    for step in apart:
        rest = step % sets if isinstance(step, int) else Remainder(constant(step), sets)
        index = variable(rest) if isinstance(rest, Remainder) else constant(rest)
        guards.append(InRange(index, 1, sets))
    known = [Facts().decide(guard, {}) for guard in guards]
    if False in known:
        return None
    return tuple([guard for guard, holds in zip(guards, known, strict=True) if holds is None])


def is_nearer(write: Write, row: str, columns: str) -> bool:
    """Return True if elements of rows are nearer in memory than those of columns in a load."""
    loads = [node for node in walk_scalars(*values_of(write)) if isinstance(node, Load)]
    steps = [[x.offset.step(each) for each in (row, columns)] for x in loads]
    return any(
        isinstance(one, int) and isinstance(other, int) and 0 < one < other for one, other in steps
    )
