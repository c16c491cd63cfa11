"""Rules for reductions: values of rows, partial sums in vectors and blocks, and parts for tasks."""

from __future__ import annotations

from collections.abc import Iterator
from math import prod

from ....op_graph.axes.affine import Size
from ....op_graph.rows.elementwise import add
from ....op_graph.values.dtypes import FLOAT64, kind
from ...kernels.ir.loop_variables import variables, variables_of
from ...kernels.ir.nest import folded_row
from ...kernels.ir.scalar_code import Apply, Kept, Load, Scalar, children_of
from ...kernels.ir.scalar_code import walk as walk_scalars
from ...kernels.nests.unrolled_reductions import MAX_SERIAL_TERMS
from ...sizes.blocks import MIN_BLOCKS
from ...sizes.limits import MIN_WORK, OP_LATENCY_CYCLES, SHORT_LOOP_TURNS
from .. import transformations as shape
from ..access import (
    FOLD,
    READ,
    buffer_uses,
    has_direct_indices,
    is_straight,
    most,
    only_folds,
    stores_results,
    used,
)
from ..partial_states import (
    block_level,
    block_of,
    hoist,
    rfactor,
    total_states,
    widened,
)
from ..tree import (
    Combine,
    Fold,
    Kind,
    LoopNode,
    Role,
    Tree,
    VectorWidth,
    find,
    loops_of,
    require,
    values_of,
    walk,
)
from ..vector_loops import in_vectors, lanes_of
from ..work import part_size, work
from .compiled_folds import with_partial_states

# Vectors of states of several values, which wait for each other's results.
LANE_VECTORS = OP_LATENCY_CYCLES
MAX_OPEN_PARTS = MIN_BLOCKS  # tasks of a reduction of open length, each with a partial state
MAX_SPLIT_ROWS = SHORT_LOOP_TURNS  # maximum rows that are each divided among tasks
# Minimum iterations of both loops: outer ones are divided among tasks.
MIN_REORDERED_TERMS = MIN_BLOCKS


# Values of rows -----------------------------------------------------------------------------------


def behind_reductions(tree: Tree) -> Iterator[str]:
    """Yield the outermost loops that load results of reductions."""
    folded = {n for each, _ in walk(tree.body) if isinstance(each, Fold) for n in each.into}
    for loop in loops_of(tree.body) if folded else ():
        inside = [each for each, _ in walk(loop.body) if isinstance(each, Fold)]
        if not folded <= {number for each in inside for number in each.into}:
            yield loop.variable


def hoisted(tree: Tree, name: str, target: object) -> Tree:
    """Compute values of a row that a pass uses before the pass."""
    loop, _ = find(tree, name)
    if not any(READ in use.ways for _, use in buffer_uses(loop)):
        return tree
    inside = {each.variable for each in loops_of((loop,))}
    roots = [value for each, _ in walk(loop.body) for value in values_of(each)]
    of_rows: set[int] = set()  # ids of nodes that are computed from results of reductions
    for node in walk_scalars(*roots):
        if isinstance(node, Kept) or any(id(part) in of_rows for part in children_of(node)):
            of_rows.add(id(node))
    found: dict[int, Scalar] = {}
    waiting, seen = list(roots), set[int]()
    while waiting:
        node = waiting.pop()
        if id(node) in seen or id(node) not in of_rows:
            continue
        seen.add(id(node))
        if isinstance(node, (Apply, Kept)) and not variables_of(node) & inside:
            found[id(node)] = node
        else:
            waiting += children_of(node)
    return hoist(tree, name, list(found.values())) if found else tree


# Vectors ------------------------------------------------------------------------------------------


def folding(tree: Tree) -> Iterator[str]:
    """Yield the innermost loops that fold elements, not states."""
    for loop in loops_of(tree.body):
        folds = any(isinstance(each, Fold) and not each.merges for each in loop.body)
        if loop.role is Role.SERIAL and is_straight(loop.body) and folds:
            yield loop.variable


def summed(tree: Tree, name: str, vectors: VectorWidth) -> Tree:
    """Fold into a vector of partial states, and sums of many floats in blocks.

    The terms of a block are added in their dtype, and sums of blocks in float64. So the error does
    not grow with the number of terms, whose order depends on lengths and the vector width alone.
    """
    loop, above = find(tree, name)
    folds = [each for each in loop.body if isinstance(each, Fold)]
    outer = same_states(tree, name)
    filled = lanes_of(loop.size, vectors.count, vectors.halves) > 0
    block = vectors.block_terms if filled else MAX_SERIAL_TERMS
    level, inside = block_level([each.size for each in outer], block)
    many = level < len(outer)
    sums = [each for each in folds if each.reducer.folds is add and is_float(tree, each)]
    rows = [each.size for each in above if each not in outer]
    few = prod([each for each in rows if isinstance(each, int)]) <= MAX_SPLIT_ROWS
    parts = few and all(isinstance(each, int) for each in rows)  # of blocks, for tasks
    cuts = many and level == 0 and bool(sums or parts)
    around = outer[-1].variable
    if many and sums and level > 0:
        tree, around = block_of(tree, outer[level].variable, block // inside, outer[level - 1])

    def in_lanes(tree: Tree, row: str, lane: str) -> Tree:
        """Fold in a state for each lane; ``row`` counts the vectors of the loop or of its rest."""
        begin = row if around == name else around
        if cuts:
            begin, lanes, turns = row, find(tree, lane)[0].size, find(tree, row)[0].size
            assert isinstance(lanes, int)
            count = block_size(loop.size, block, lanes) // lanes
            if not isinstance(turns, int) or count < turns:
                cut = shape.split(tree, row, count, Kind.VECTORS, short=True)
                tree, begin = shape.set_kind(cut.tree, row, Kind.BLOCK), cut.inner
        return rfactor(tree, begin, lane)

    if filled:
        tree = in_vectors(tree, name, vectors, in_lanes)
    elif sums and many:  # too short for vectors
        if level == 0:
            tree, around = block_of(tree, name, block, loop)
        tree = rfactor(tree, around, only={each.into[0] for each in sums})
    if sums and many:
        tree = widened(tree, total_states(tree, {each.into[0] for each in sums}), FLOAT64)
    for each in loops_of(tree.body):
        if each.kind is Kind.LANES and each.role is Role.SERIAL:
            tree = shape.set_role(tree, each.variable, Role.VECTOR, "a state for each lane")
    return tree


def same_states(tree: Tree, name: str) -> list[LoopNode]:
    """Return a loop that folds, and those around it that fold into the same states."""
    loop, above = find(tree, name)
    folds = [each for each in loop.body if isinstance(each, Fold)]
    outer = [loop]
    for each in reversed(above):
        if not all(shares_state(each, fold) for fold in folds):
            break
        outer.append(each)
    return outer


def is_float(tree: Tree, fold: Fold) -> bool:
    """Return True if a fold's state is a float."""
    return kind(tree.buffers[fold.into[0]].dtype) == "f"


def block_size(size: Size | None, block: int, lanes: int) -> int:
    """Return the iterations of a block: equal blocks if these fill vectors, at most ``block``."""
    if not isinstance(size, int):
        return block
    equal = -(-size // -(-size // block))
    return equal if size % equal == 0 and equal % lanes == 0 else min(block, size)


# Vectors that the compiler makes ------------------------------------------------------------------


def in_one_loop(tree: Tree, name: str, vectors: VectorWidth) -> Tree:
    """Join the loops that fold into the same states where these continue each other in all memory.

    Passes over the same axes keep them apart, although only one of the passes reads another order.
    The innermost loop, which is vectors, may be short then.
    """
    for each in same_states(tree, name)[1:]:
        made = shape.collapse(tree, each.variable, name)
        if not has_direct_indices(find(made, each.variable)[0]):
            break
        tree, name = made, each.variable
    return tree


def in_memory_order(tree: Tree, name: str, vectors: VectorWidth) -> Tree:
    """Fold along adjacent elements: move the loop over them inside of the loop ``name``.

    The axes of a value that is not in memory may have another order than those of its operands. A
    loop that strides through all of its loads takes a cache line for each element, and gathers.
    """
    outer = same_states(tree, name)
    values = [value for each in outer[0].body for value in values_of(each)]
    loads = [node for node in walk_scalars(*values) if isinstance(node, Load)]

    def adjacent(loop: LoopNode) -> int:
        return sum(load.offset.step(loop.variable) in (1, -1) for load in loads)

    best = max(outer, key=adjacent)
    if best is outer[0] or not all(load.offset.step(name) for load in loads):
        return tree
    require(adjacent(outer[0]) == 0, f"some loads of {name} are adjacent")
    for each in (outer[0], best):
        size = each.size
        enough = not isinstance(size, int) or size >= MIN_REORDERED_TERMS
        require(enough, f"{each.variable} has fewer than {MIN_REORDERED_TERMS} iterations")
    for each in reversed(outer[: outer.index(best)]):
        tree = shape.reorder(tree, best.variable, each.variable)
    return tree


def folding_tuples(tree: Tree) -> Iterator[str]:
    """Yield the innermost loops that fold into states of several values."""
    yield from (name for name in folding(tree) if not folds_values(find(tree, name)[0]))


def folds_values(loop: LoopNode) -> bool:
    """Return True if the state of each fold of a loop is one value, which operators fold."""
    return all(folded_row(each.reducer) for each in loop.body if isinstance(each, Fold))


def in_lanes(tree: Tree, name: str, vectors: VectorWidth) -> Tree:
    """Split a loop, and what it leaves, into lanes of a few vectors that get states of their own.

    They are one vector in short loops, since combining them takes as long as folding them.
    """
    while name:
        loop, _ = find(tree, name)
        size = most(loop.extent)
        lanes = LANE_VECTORS * vectors.count
        while isinstance(size, int) and lanes > vectors.count and size < LANE_VECTORS * lanes:
            lanes //= 2
        if size is None or (isinstance(size, int) and size < lanes):
            break
        made = shape.split(tree, name, lanes, Kind.LANES)
        tree, name = shape.set_kind(made.tree, name, Kind.VECTORS), made.rest or ""
        if not isinstance(loop.size, int):
            break
    return tree


def compiled_states(tree: Tree, name: str, vectors: VectorWidth) -> Tree:
    """Fold in states that the compiler makes vectors of: of fitting widths, or one for each lane.

    States of several values without lanes stay single.
    """
    loop, outer = find(tree, name)[0], same_states(tree, name)
    if folds_values(loop):
        return with_partial_states(tree, outer, vectors.block_terms)
    if loop.kind is not Kind.LANES:
        return tree
    tree = rfactor(tree, outer[-1].variable, name)
    return shape.set_role(tree, name, Role.SIMD, "a state for each lane")


# Tasks --------------------------------------------------------------------------------------------


def nested_reductions(tree: Tree) -> Iterator[str]:
    """Yield the outermost loops that reduce, around others; columns have parts of their own."""
    if all(loop.kind is not Kind.COLUMNS for loop in loops_of(tree.body)):
        for name in long_reductions(tree):
            if not is_straight(find(tree, name)[0].body):
                yield name


def long_reductions(tree: Tree) -> Iterator[str]:
    """Yield the outermost loops that reduce, of the whole nest or of a few rows.

    Rows that also store elements are tasks themselves.
    """
    for each in tree.body:
        if isinstance(each, LoopNode):
            inner = [x for x in each.body if isinstance(x, LoopNode)] if len(each.body) > 1 else []
            few = isinstance(each.size, int) and each.size <= MAX_SPLIT_ROWS
            few = few and not any(map(stores_results, inner))
            for loop in [each, *(inner if few else [])]:
                folds = any(FOLD in use.ways for use in used(loop).values())
                if folds and any(shares_state(loop, x) for x, _ in walk(loop.body)):
                    yield loop.variable


def shares_state(loop: LoopNode, statement: object) -> bool:
    """Return True if a statement folds into a state that begins before a loop."""
    if not isinstance(statement, (Fold, Combine)):
        return False
    return only_folds(loop, statement) and loop.variable not in variables(statement.offset)


def divided(tree: Tree, name: str, vectors: VectorWidth) -> Tree:
    """Reduce parts of a loop, which can be tasks, and combine them in order."""
    loop, _ = find(tree, name)
    size, each = loop.size, work(loop.body, name)
    require(size is not None, f"the length of {name} changes with other loops")
    require(loop.kind is not Kind.REST or isinstance(size, int), f"{name} is a rest")
    if isinstance(size, int) and isinstance(each, int):
        count = part_size(size, each)
        require(count < size, f"{size * each} operations of {name} are work for one task")
        tree = shape.split(tree, name, count, loop.kind, short=True).tree
    else:
        fewest = 1 + MIN_WORK // each if isinstance(each, int) else 1
        tree = shape.split_parts(tree, name, MAX_OPEN_PARTS, fewest).tree
    tree = rfactor(shape.set_kind(tree, name, Kind.BLOCK), name, name)
    return shape.set_role(tree, name, Role.TASK, "parts have partial states of their own")
