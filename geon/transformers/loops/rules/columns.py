"""Rules for columns: rows that are adjacent in memory, in vectors along them.

A vector has an element of each of its columns. Terms of a column are added in blocks, as those of
rows are, so that the order of additions depends on lengths alone.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import prod

from ....op_graph.axes.affine import Size
from ....op_graph.rows.elementwise import add, multiply, subtract
from ....op_graph.values.dtypes import FLOAT64, HALVES, INT32, name_of
from ...kernels.ir.scalar_code import Apply, Load
from ...kernels.ir.scalar_code import walk as walk_scalars
from ...kernels.nests.unrolled_reductions import MAX_SERIAL_TERMS
from ...sizes.blocks import L2_BYTES, MIN_BLOCKS
from ...sizes.limits import (
    L1_BLOCK_BYTES,
    MIN_RUN_BYTES,
    MIN_SIZE_RATIO,
    MIN_WORK,
    OP_LATENCY_CYCLES,
)
from .. import transformations as shape
from ..access import accesses, most
from ..partial_states import block_level, block_of, fuse, rfactor, total_states, widened
from ..tree import (
    Fold,
    Kind,
    LoopNode,
    Role,
    Tree,
    VectorWidth,
    find,
    loops_of,
    require,
    walk,
)
from ..work import work
from .compiled_folds import (
    MAX_NARROW_BLOCK_TERMS,
    MIN_NARROW_BLOCK_TERMS,
    is_float_sum,
    partial_dtype,
    unwidened,
    with_dtype,
)

# Terms of a column that are folded together: its state is loaded and stored once.
COPIES = OP_LATENCY_CYCLES
MIN_COPIED_TERMS = 2 * COPIES  # minimum known terms of a column for which that pays
LINEAR = (add, subtract, multiply)  # primitives of terms that compilers load side by side
MAX_COLUMN_PARTS = MIN_BLOCKS  # tasks among which the terms of columns are divided,
MIN_COLUMN_PARTS = MIN_BLOCKS // 4  # unless their states leave room for few
MAX_PART_STATES = L2_BYTES // 32  # maximum states of all parts: a quarter of a cache in float64
# Minimum operations of a part per state: combining those of all parts, of two operations each, is
# little beside it.
MIN_STATE_WORK = MIN_SIZE_RATIO * 2 * MAX_COLUMN_PARTS
MIN_BLOCK_BYTES = MIN_RUN_BYTES  # bytes of columns in a task: fewer would be short reads
MAX_BLOCK_BYTES = L1_BLOCK_BYTES  # more would leave the first cache with their states


def adjacent(tree: Tree) -> Iterator[str]:
    """Yield the loop over columns, if there is one."""
    for loop in loops_of(tree.body):
        if loop.kind is Kind.COLUMNS:
            yield loop.variable


def columns(tree: Tree, name: str, vectors: VectorWidth) -> Tree:
    """Compute columns in vectors, in tasks of neighbouring columns or of parts of their terms."""
    loop, above = find(tree, name)
    size, lanes = loop.size, vectors.count
    whole = isinstance(size, int) and size > 0 and size % lanes == 0
    require(whole, f"the iterations of {name} fill no vectors of {lanes}")
    assert isinstance(size, int)
    rows = rows_of(above)
    tree, parts = folded(tree, name, size * rows)
    made = shape.split(tree, name, lanes, Kind.LANES)
    tree, inner, count = shape.set_kind(made.tree, name, Kind.VECTORS), name, size // lanes
    if parts is None:
        block = min(block_vectors(count * rows, vectors), count)
        cut = shape.split(tree, name, block, Kind.VECTORS, short=True)
        tree, inner = shape.set_kind(cut.tree, name, Kind.MAIN), cut.inner
    tree = shape.sink(shape.reorder(tree, inner, made.inner), inner)[0]
    tree, names = shape.sink(tree, made.inner)
    reason = f"{lanes} columns of {vectors.itemsize} bytes fill a register"
    for lane in names:
        tree = shape.set_role(tree, lane, Role.VECTOR, reason)
    return with_roles(copies_together(tree), parts)


def folded(tree: Tree, name: str, count: int | None) -> tuple[Tree, str | None]:
    """Fold the terms of ``count`` columns, in all rows, in blocks and parts.

    Return the loop over parts, None if there are none.
    """
    loop, _ = find(tree, name)
    passes = loops_of(loop.body)
    if any(each.kind is Kind.REST for each in passes):
        return tree, None  # a few terms
    for each in passes:
        if any(isinstance(x, Fold) and not x.merges for x in each.body):
            tree = in_blocks(tree, name, each.variable)
    states = 0 if count is None else states_of(loop, count)
    if not states:
        return tree, None
    assert count is not None
    return in_parts(tree, name, passes[0].variable, count, states)


def copies_together(tree: Tree) -> Tree:
    """Fold the terms of copies together."""
    reason = f"{COPIES} terms are folded together"
    for each in loops_of(tree.body):
        if each.kind is Kind.COPIES and each.role is Role.SERIAL:
            tree = shape.set_role(tree, each.variable, Role.UNROLLED, reason)
    return tree


def with_roles(tree: Tree, parts: str | None) -> Tree:
    """Run the loop over parts, if there is one, as tasks."""
    if parts is None:
        return tree
    return shape.set_role(tree, parts, Role.TASK, "parts of columns have states of their own")


def rows_of(above: tuple[LoopNode, ...]) -> int:
    """Return the number of rows of columns, or ``MAX_PART_STATES`` if it is open."""
    sizes = [loop.size for loop in above]
    known = [size for size in sizes if isinstance(size, int)]
    return prod(known) if len(known) == len(sizes) else MAX_PART_STATES


def block_vectors(count: int, vectors: VectorWidth) -> int:
    """Return how many vectors of columns a task has, of ``count`` in all rows."""
    least, largest = (size // vectors.vector_bytes for size in (MIN_BLOCK_BYTES, MAX_BLOCK_BYTES))
    return max(least, min(count // MIN_BLOCKS, largest), 1)


# Blocks of terms ----------------------------------------------------------------------------------


def in_blocks(tree: Tree, columns: str, name: str) -> Tree:
    """Fold the terms of a pass in blocks, several terms together; ``name`` is its innermost loop.

    Terms of a block are added in their dtype, and sums of blocks in float64. Of columns that are
    apart in memory, as short rows are, only numbers that are loaded, and sums and products of them,
    are folded together: compilers make scalars of other terms that are loaded side by side (0.15 to
    0.5 of the speed, where sums of loads gain 1.3 and products 1.5).
    """
    tree = unwidened(tree, name)
    loop, above = find(tree, name)
    path = [*above[[each.variable for each in above].index(columns) + 1 :], loop]
    outer, folds = list(reversed(path)), [each for each in loop.body if isinstance(each, Fold)]
    sums = {each.into[0] for each in folds if is_float_sum(tree, each)}
    dtypes = {each.into[0]: partial_dtype(tree, each) for each in folds}
    narrow = not sums and INT32 in dtypes.values()
    block = MAX_NARROW_BLOCK_TERMS if narrow else MAX_SERIAL_TERMS
    terms = [each.size for each in outer]
    level, inside = block_level(terms, block)
    few = block_level(terms, MIN_NARROW_BLOCK_TERMS - 1)[0] == len(outer)
    around, many = path[0].variable, level < len(outer) and (bool(sums) or narrow)
    if many:
        count = equal_share(outer[level].size, max(block // inside, 1))
        tree, around = block_of(tree, outer[level].variable, count, outer[max(level - 1, 0)])
        name = around if level == 0 else name
    for dtype in dict.fromkeys(dtypes.values()):
        taken = {number for number, each in dtypes.items() if each is dtype}
        if many and dtype in (None, INT32):
            taken &= sums if dtype is None else taken
            tree = rfactor(tree, around, dtype=dtype, only=taken) if taken else tree
        elif dtype is not None and not (dtype is INT32 and few):
            tree = with_dtype(tree, around, taken, dtype)
    if many and sums:
        tree = widened(tree, total_states(tree, sums), FLOAT64)
    size = loop.size
    together = adjoin(loop, columns, name) or all(is_sum_of_loads(each, name) for each in folds)
    plain = len(folds) == len(loop.body) and together
    several = most(find(tree, name)[0].extent)
    whole = not isinstance(several, int) or several >= COPIES  # a block may have fewer terms
    if plain and whole and (not isinstance(size, int) or size >= MIN_COPIED_TERMS):
        made = shape.split(tree, name, COPIES, Kind.COPIES)
        tree = made.tree if made.rest is None else shape.set_kind(made.tree, made.rest, Kind.BLOCK)
    return tree


def adjoin(loop: LoopNode, columns: str, term: str | None = None) -> bool:
    """Return True if what a loop accesses is adjacent, or the same, in neighbouring columns.

    With ``term``, it is asked of what changes with that loop.
    """
    found = [each.offset for each in accesses(loop.body)]
    return all(x.step(columns) in (0, 1) for x in found if term is None or x.step(term))


def is_sum_of_loads(fold: Fold, term: str) -> bool:
    """Return True if a fold adds a number that is loaded, or sums and products of such numbers.

    Each of them is another one in the next iteration of the loop ``term``. Halves are none.
    """
    if len(fold.into) > 1 or fold.reducer.folds is not add:
        return False
    return all(
        bool(node.offset.step(term)) and name_of(node.dtype) not in HALVES
        if isinstance(node, Load)
        else isinstance(node, Apply) and node.row in LINEAR
        for node in walk_scalars(*fold.elements)
    )


def equal_share(count: Size | None, most: int) -> int:
    """Return the iterations of a block: equal blocks if possible, at most ``most``."""
    if not isinstance(count, int):
        return most
    equal = -(-count // -(-count // most))
    return equal if count % equal == 0 else most


# Parts for tasks ----------------------------------------------------------------------------------


def states_of(loop: LoopNode, columns: int) -> int:
    """Return the number of states of ``columns``, 0 if they are reduced in no or several passes."""
    passes = [each for each in loop.body if isinstance(each, LoopNode)]
    states = {n for x, _ in walk(loop.body) if isinstance(x, Fold) for n in x.into}
    return len(states) * columns if len(passes) == 1 else 0


def in_parts(
    tree: Tree, columns: str, name: str, count: int, states: int
) -> tuple[Tree, str | None]:
    """Divide the terms of ``count`` columns, in all rows, into parts, combined in order.

    ``name`` is the outermost loop over terms. Rows run inside of parts. Return the loop over parts,
    None if columns have too many ``states``, or if all terms are known to be work for one task.
    """
    loop, _ = find(tree, name)
    most = min(MAX_COLUMN_PARTS, MAX_PART_STATES // states)
    terms, each = loop.size, work(loop.body)
    known = max(each, 1) if isinstance(each, int) else MIN_WORK
    minimum = 1 + max(MIN_WORK // (known * count), MIN_STATE_WORK // known)
    if most < MIN_COLUMN_PARTS or (isinstance(terms, int) and terms <= minimum):
        return tree, None
    tree = shape.set_kind(tree, name, Kind.BLOCK)
    made = shape.split_parts(tree, name, most, minimum)
    tree = rfactor(made.tree, name, name)
    loop, above = find(tree, columns)
    at = [isinstance(x, LoopNode) and x.variable == name for x in loop.body].index(True)
    first, behind = loop.body[at - 1], loop.body[at + 1]
    assert isinstance(first, LoopNode) and isinstance(behind, LoopNode), "partial states"
    tree, parts = fuse(tree, first.variable, name), first.variable
    into = [columns, parts, behind.variable]
    if is_apart(loop, made.inner, [each.variable for each in above]):
        into.append(made.inner)
    for row in reversed(above):
        tree = shape.sink(tree, row.variable, into)[0]
    return tree, parts


def is_apart(loop: LoopNode, term: str, rows: list[str]) -> bool:
    """Return True if terms that are folded are further apart in memory than rows are.

    Each of these terms, or blocks of them, is then read for all rows before the next one.
    """
    folds = [each for each, _ in walk(loop.body) if isinstance(each, Fold)]
    for load in [x for x in accesses(tuple(folds)) if x.memory[0] == "operand"]:
        far, *near = (load.offset.step(each) for each in (term, *rows))
        known = [abs(step) for step in near if isinstance(step, int)]
        if far != 0 and isinstance(far, int) and abs(far) <= max(known, default=0):
            return False
    return True
