"""Rules for columns in loops over them, of which compilers make vectors.

Terms and columns that follow each other in memory are one run. A few columns then fill vectors with
several of their terms, each with a state for itself.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, Sequence

from ....op_graph.axes.affine import Size, variable
from ....op_graph.axes.index_map import InRange
from ....op_graph.rows.elementwise import add
from ...kernels.ir.nest import Keep, Store
from ...kernels.ir.scalar_code import IndexNumber, Kept, Load, Scalar, indices
from ...kernels.ir.scalar_code import walk as walk_scalars
from ...sizes.limits import LONG_LOOP_TURNS
from .. import transformations as shape
from ..access import has_direct_indices, is_straight, most
from ..partial_states import ValueReplacement, hoist, rfactor
from ..substitution import Substitution
from ..tree import (
    Fold,
    IllegalScheduleError,
    Kind,
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
    loops_of,
    replace,
    replaced,
    require,
    values_of,
    with_body,
)
from .columns import (
    COPIES,
    MAX_BLOCK_BYTES,
    MAX_PART_STATES,
    MIN_COLUMN_PARTS,
    adjoin,
    block_vectors,
    copies_together,
    folded,
    rows_of,
    with_roles,
)
from .contiguous_rows import in_one_run, is_contiguous, is_costly
from .streaming_copies import past_caches

MAX_OPEN_BLOCK_BYTES = MAX_BLOCK_BYTES // 2  # bytes of columns in a task, of an open number of them
# Columns from which a loop over them is long enough: fewer have runs of terms.
MIN_LONG_COLUMNS = LONG_LOOP_TURNS
MAX_PASS_COLUMNS = MAX_PART_STATES // MIN_COLUMN_PARTS  # columns whose passes have parts
# Sides of a tile, which stays in the first cache.
MAX_CROSSED_COLUMNS = MAX_CROSSED_TERMS = LONG_LOOP_TURNS
MIN_RUNS = COPIES  # minimum runs of a pass for which states for several terms pay


def columns_in_lanes(tree: Tree, name: str, vectors: VectorWidth) -> Tree:
    """Compute columns in loops over them, of which the compiler makes vectors.

    Tasks have neighbouring columns, or parts of the terms of a few columns.
    """
    tree, name = with_adjacent_rows(tree, name)
    loop, above = find(tree, name)
    size = loop.size
    require(size is not None, f"the length of {name} changes with other loops")
    assert size is not None
    runs = runs_of(loop, vectors)
    passes = sum(isinstance(each, LoopNode) for each in loop.body)
    several = passes > 1 and not above and adjoin(loop, name)  # short rows stay in cache lines
    if isinstance(size, int) and (runs or (several and size <= MAX_PASS_COLUMNS)):
        return by_passes(tree, name, runs, vectors)
    if runs:
        guards = [InRange(constant(size), 1, MIN_LONG_COLUMNS)]
        guards += long_passes(tree, runs) if above else []
        tree = shape.specialise(tree, tuple(guards))
        copy = next(each for each in loops_of(tree.body) if each.kind is Kind.COLUMNS)
        tree = by_passes(tree, copy.variable, runs_of(copy, vectors), vectors)
    tree, parts = in_lanes(tree, name, vectors, blocks=True)
    return with_roles(tree, parts)


def with_adjacent_rows(tree: Tree, name: str) -> tuple[Tree, str]:
    """Join columns with the rows around them that continue them in all memory.

    Few columns of many rows, such as short rows of a matrix for each row of another axis, are then
    many columns. Return the tree and the loop over columns.
    """
    while above := find(tree, name)[1]:
        row = above[-1].variable
        for outer, inner in ((row, name), (name, row)):
            try:
                made = tree if outer == row else shape.reorder(tree, row, name)
                made = shape.set_kind(shape.collapse(made, outer, inner), outer, Kind.COLUMNS)
            except IllegalScheduleError:
                return tree, name
            if has_direct_indices(find(made, outer)[0]):
                tree, name = made, outer
                break
        else:
            return tree, name
    return tree, name


def long_passes(tree: Tree, runs: Mapping[str, int]) -> list[InRange]:
    """Return the guards that passes of open length have several runs: these begin in each row."""
    terms = {find(tree, name)[0].size: MIN_RUNS * count for name, count in runs.items()}
    return [
        InRange(constant(size), fewest, size + 1)
        for size, fewest in terms.items()
        if size is not None and not isinstance(size, int)
    ]


def by_passes(tree: Tree, name: str, runs: Mapping[str, int], vectors: VectorWidth) -> Tree:
    """Compute all columns in each pass before the next one, and in ``runs`` of their terms.

    Passes read whole rows of memory, and each is divided among tasks.
    """
    size, parts = find(tree, name)[0].size, list[str]()
    tree, names = in_runs(tree, name, runs)
    if not isinstance(size, int):
        assert size is not None
        counts = {1, *runs.values()}
        tree = bounded(tree, names, {size * n: (MIN_LONG_COLUMNS - 1) * n for n in counts})
    for each in names:
        tree, part = in_lanes(tree, each, vectors, blocks=False)
        parts += [] if part is None else [part]
    for each in parts:
        tree = with_roles(tree, each)
    return tree


def bounded(tree: Tree, names: Sequence[str], bounds: Mapping[Size, int]) -> Tree:
    """Return the tree with known upper bounds of open lengths: of loops, and sizes of buffers."""
    buffers = [replace(each, size=bounds.get(each.size, each.size)) for each in tree.buffers]
    tree = replace(tree, buffers=tuple(buffers))

    def shorter(loop: LoopNode) -> tuple[LoopNode]:
        assert loop.size is not None
        extent = least([constant(bounds[loop.size]), constant(loop.size)])
        return (replace(loop, extent=extent),)

    for name in names:
        tree = replaced(tree, name, shorter)
    return tree


def in_lanes(
    tree: Tree, name: str, vectors: VectorWidth, *, blocks: bool
) -> tuple[Tree, str | None]:
    """Move a loop over columns into the loops over terms, where compilers make vectors of it.

    With ``blocks``, tasks have neighbouring columns. Return the loop over parts of terms, if any.
    """
    loop, above = find(tree, name)
    size = most(loop.extent)
    require(size is not None, f"the length of {name} changes with other loops")
    assert size is not None
    rows, inner = rows_of(above), name
    tree, parts = folded(tree, name, size * rows if isinstance(size, int) else None)
    crossed = any(stores_across(each, name) for each in loops_of(loop.body))
    if parts is None and (blocks or crossed):
        block = MAX_OPEN_BLOCK_BYTES // vectors.itemsize
        if crossed:
            block = MAX_CROSSED_COLUMNS
        elif isinstance(size, int):
            block = block_vectors(size * rows // vectors.count, vectors) * vectors.count
        if not isinstance(size, int) or size > block:
            cut = shape.split(tree, name, block, short=True)
            tree, inner = shape.set_kind(cut.tree, name, Kind.MAIN), cut.inner
    tree = shape.set_kind(tree, inner, Kind.LANES)
    tree, along = stored_along(tree, inner, vectors)
    within = loops_of(find(tree, inner)[0].body)
    into = [x.variable for x in within if x.kind is not Kind.COPIES and x.variable not in along]
    tree, names = shape.sink(tree, inner, into)
    tree = copies_together(tree)
    for lanes in names:
        runs = any(is_contiguous(x, lanes, vectors) for x in loops_of(find(tree, lanes)[0].body))
        tree, apart = shape.distribute(tree, lanes) if runs else (tree, [lanes])
        for each in apart:
            tree = in_any_order(tree, each, along, vectors)
    return tree, parts


def in_any_order(tree: Tree, name: str, along: Container[str], vectors: VectorWidth) -> Tree:
    """Let the compiler make vectors of a loop over columns, or of one of ``along`` in it."""
    stored = next((x for x in loops_of(find(tree, name)[0].body) if x.variable in along), None)
    inner, reason = name, "adjacent columns"
    if stored is not None and is_contiguous(stored, name, vectors):
        tree, reason = in_one_run(tree, name, stored.variable, vectors), "rows follow each other"
    elif stored is not None:
        inner, reason = stored.variable, "elements are adjacent where they are stored"
    tree = past_caches(tree, name, vectors) if inner == name else tree
    return shape.set_role(tree, inner, Role.SIMD, reason)


def stored_along(tree: Tree, name: str, vectors: VectorWidth) -> tuple[Tree, list[str]]:
    """Cut passes that store across columns ``name`` into the terms of tiles.

    Return the loops in which elements are stored that are adjacent in memory.
    """
    loop, found = find(tree, name)[0], list[str]()
    size = most(loop.extent)
    for each in loops_of(loop.body):
        if not stores_across(each, name):
            continue
        if is_contiguous(each, name, vectors):
            found.append(each.variable)
        else:
            cut = shape.split(tree, each.variable, MAX_CROSSED_TERMS, short=True)
            values = list(walk_scalars(*[value for x in each.body for value in values_of(x)]))
            costly = any(map(is_costly, values))
            few = costly and isinstance(size, int) and size < vectors.count
            short = costly and isinstance(each.size, int) and each.size < vectors.count
            direct = few or loop.size is None or not (short or reads_across(each, name, values))
            tree, along = (cut.tree, cut.inner) if direct else stored_later(cut.tree, cut.inner)
            found.append(along)
    return tree, found


def reads_across(loop: LoopNode, columns: str, values: Iterable[Scalar]) -> bool:
    """Return True if what a loop loads is adjacent along columns, and not along the loop."""
    loads = [node for node in values if isinstance(node, Load)]
    return any(
        node.offset.step(columns) == 1 and node.offset.step(loop.variable) not in (0, 1)
        for node in loads
    )


def stored_later(tree: Tree, name: str) -> tuple[Tree, str]:
    """Compute what a loop stores to buffers, and store it in a loop of its own.

    Return the tree and that loop.
    """
    loop, _ = find(tree, name)
    (write,) = loop.body
    bound, later = most(loop.extent), fresh(tree, name)
    assert isinstance(write, Write) and bound is not None
    change = Substitution(tree.code, {name: variable(later)})
    keeps, stores = list[Keep](), list[Store]()
    for number, store in enumerate(write.stores, len(tree.buffers)):
        assert isinstance(store, Store)
        keeps.append(Keep(number, variable(name), store.value))
        kept = tree.code(Kept, number, variable(later), store.value.dtype)
        stores.append(replace(store, offset=change.index(store.offset), value=kept))
    buffers = [PrivateBuffer(each.value.dtype, bound, Space.STACK) for each in write.stores]
    first = with_body(loop, (Write(tuple(keeps)),))
    extent = change.index(loop.extent)
    behind = replace(loop, variable=later, extent=extent, body=(Write(tuple(stores)),))
    return replaced(tree, name, lambda _: (first, behind), buffers), later


def stores_across(loop: LoopNode, columns: str) -> bool:
    """Return True if what a loop stores is adjacent along it, and not along columns."""
    puts = [put for each in loop.body if isinstance(each, Write) for put in each.stores]
    stores = [put for put in puts if isinstance(put, Store)]
    if len(loop.body) > 1 or not stores or not is_straight(loop.body):
        return False
    return all(put.offset.step(loop.variable) == 1 != put.offset.step(columns) for put in stores)


# Runs ---------------------------------------------------------------------------------------------


def runs_of(columns: LoopNode, vectors: VectorWidth) -> dict[str, int]:
    """Return how many terms of all columns are one run, by the loops over terms that have runs."""
    counts = {
        each.variable: terms_of_run(columns, each, vectors)
        for each in columns.body
        if isinstance(each, LoopNode)
    }
    return {name: count for name, count in counts.items() if count}


def terms_of_run(columns: LoopNode, loop: LoopNode, vectors: VectorWidth) -> int:
    """Return how many terms of all columns are one run that fills vectors; 0 if none are.

    All that a pass reads and stores in it follows each other in memory, or is of a column. The
    number does not depend on that of columns, so that sums have the same bits if that is open.
    """
    size = columns.size
    if size is None or (isinstance(size, int) and not 1 < size < MIN_LONG_COLUMNS):
        return 0
    if not is_straight(loop.body):
        return 0
    for each in loop.body:
        puts = each.stores if isinstance(each, Write) else ()
        offsets = [put.offset for put in puts if isinstance(put, Store)]
        if any(isinstance(put, Keep) for put in puts):
            return 0
        for node in walk_scalars(*values_of(each)):
            if isinstance(node, Load):
                offsets.append(node.offset)
            elif any(set(index.terms) - {loop.variable} for index in indices(node)):
                return 0
        for offset in offsets:
            if not all(isinstance(atom, str) for atom in offset.terms):
                return 0
            near, far = offset.step(columns.variable), offset.step(loop.variable)
            if far != 0 and (near != 1 or far != size):
                return 0
    few = isinstance(loop.size, int) and loop.size < MIN_RUNS * vectors.count
    return 0 if few or vectors.count == 1 else vectors.count


def in_runs(tree: Tree, name: str, runs: Mapping[str, int]) -> tuple[Tree, list[str]]:
    """Make one loop of columns and ``runs``: several terms of each loop over terms.

    Each statement of a column gets a loop over columns of its own. Return these loops.
    """
    for terms, count in runs.items():
        made = shape.split(tree, terms, count)
        tree, loop = made.tree, find(made.tree, made.inner)[0]
        if any(isinstance(each, Fold) for each in loop.body):
            tree = rfactor(tree, terms, made.inner)
        tree = shape.reorder(tree, terms, made.inner)
        tree = hoisted_values(tree, terms, made.inner)
    loops = [x for x in find(tree, name)[0].body if isinstance(x, LoopNode)]
    into = [x.variable for x in loops if is_run(x)]
    tree, names = shape.sink(shape.set_kind(tree, name, Kind.LANES), name, into)
    found = list[str]()
    for each in names:
        around = find(tree, each)[1][-1:]
        if around and around[0].variable in into:
            tree = shape.collapse(tree, around[0].variable, each)
            found.append(around[0].variable)
        else:
            tree, parts = shape.distribute(tree, each)
            found += parts
    return tree, found


def is_run(loop: LoopNode) -> bool:
    """Return True if a loop is over the terms of a run, not over states of a column."""
    merges = any(isinstance(each, Fold) and each.merges for each in loop.body)
    return loop.kind is Kind.BLOCK and not merges


def hoisted_values(tree: Tree, name: str, terms: str) -> Tree:
    """Compute what changes not at all or only with ``terms`` before a loop over runs.

    A position in the loop is the sum of that of its run and that of the term in it.
    """
    loop, _ = find(tree, name)
    nodes = list(walk_scalars(*[value for each in loop.body for value in values_of(each)]))
    fixed: list[Scalar] = []
    sums: dict[int, Scalar] = {}
    for node in nodes:
        if isinstance(node, (Load, Kept)) and not node.offset.step(name):
            fixed.append(node)
        elif isinstance(node, IndexNumber) and node.index.step(name) and node.index.step(terms):
            near = variable(terms) * node.index.step(terms)
            first, term = (tree.code(IndexNumber, x, node.dtype) for x in (node.index - near, near))
            sums[id(node)] = tree.code.apply(add, first, term)
            fixed.append(term)
    if sums:
        body = ValueReplacement(tree, sums).body(loop.body)
        tree = replaced(tree, name, lambda loop: (with_body(loop, body),))
    return hoist(tree, name, fixed) if fixed else tree
