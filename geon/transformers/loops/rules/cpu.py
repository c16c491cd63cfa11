"""Rules that schedule trees for CPUs, in the order in which they are applied.

A rule looks once at each loop that it may concern. It names the reason of the form that it gives a
loop; a transformation that is refused is recorded with its reason and changes nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ....op_graph.axes.affine import AffineIndex
from ....op_graph.axes.lengths import is_multiple, product
from ...kernels.ir.nest import Nest, Store
from ...kernels.ir.scalar_code import Load, Scalar
from ...kernels.ir.scalar_code import walk as walk_scalars
from ...sizes.blocks import MIN_BLOCKS
from ...sizes.limits import LONG_LOOP_TURNS, MAX_FUNCTION_NODES, MIN_TASK_WORK, MIN_WORK
from .. import transformations as shape
from ..access import FOLD, is_straight, stores_results, used, used_buffers
from ..from_nest import from_nest
from ..tree import (
    Body,
    Choose,
    Fold,
    Kind,
    LoopNode,
    Role,
    Statement,
    Tree,
    VectorWidth,
    Write,
    find,
    loops_of,
    replace,
    replaced,
    require,
    values_of,
    vector_stores,
    walk,
    with_body,
)
from ..vector_loops import in_vectors
from ..work import work
from .column_lanes import columns_in_lanes
from .columns import adjacent, columns
from .compiled_folds import compilable, deciding, ended, in_any_order
from .forwarded_copies import forwarded
from .gathered_lanes import gathered, permuted_lanes
from .interleaved_loops import computing, interleaved, storing
from .reductions import (
    behind_reductions,
    compiled_states,
    divided,
    folding,
    folding_tuples,
    hoisted,
    in_lanes,
    in_memory_order,
    in_one_loop,
    long_reductions,
    nested_reductions,
    summed,
)
from .schedule_rule import ScheduleRule, applied
from .shared_lines import blocks_outside, rows_of_blocks
from .streaming_copies import copied, writing
from .transposed_tiles import crossed_columns, in_tiles

JAM_FACTORS = (4, 5, 3, 2)  # unroll factors, the first that divides all; registers hold their sums
MIN_LOADED_VECTORS = 6  # minimum vector loads per element: with fewer, memory is the bottleneck
MAX_LOAD_SHARE = 0.75  # maximum ratio of loads after and before sharing
# Maximum nodes per element: code size grows with nodes times unroll factor.
MAX_JAM_NODES = MAX_FUNCTION_NODES // 2
# Minimum iterations of the two innermost row loops, for enough work.
MIN_JAM_POSITIONS = LONG_LOOP_TURNS
MIN_PARALLEL_ROWS = MIN_BLOCKS  # rows that occupy all threads
# Rows that are tasks enough: those inside of them, if open in number, would cost each a division.
MIN_DIVIDED_ROWS = LONG_LOOP_TURNS * MIN_BLOCKS
# Vectors of a row that is divided among tasks, and of each part, at 32 operations a vector.
MIN_SPLIT_VECTORS, STRETCH_VECTORS = MIN_WORK // 32, MIN_TASK_WORK // 32


def schedule(nest: Nest, vectors: VectorWidth, *, jams: bool = True, fetches: bool = False) -> Tree:
    """Return the tree of a nest, scheduled for a CPU with such vectors.

    With ``fetches``, passes that compute elementary functions prefetch what is needed after them.
    """
    tree = from_nest(nest, fetches=fetches, ahead=vectors.compiled and nest.across is None)
    tree = replace(tree, vectors=vectors)
    rules = COMPILED_RULES if nest.across is None else COMPILED_COLUMN_RULES
    for rule in rules if vectors.compiled else RULES:
        if rule.apply is not jammed or jams:
            tree = applied(rule, tree, vectors)
    return tree


# Vectors ------------------------------------------------------------------------------------------


def innermost(tree: Tree) -> Iterator[str]:
    """Yield the loops that only store."""
    for loop in loops_of(tree.body):
        folds = any(isinstance(each, Fold) for each in loop.body)
        if loop.kind is Kind.MAIN and is_straight(loop.body) and not folds:
            yield loop.variable


def vectorised(tree: Tree, name: str, vectors: VectorWidth) -> Tree:
    """Compute the elements of a loop by vectors, and the rest of a known length by shorter ones."""
    return in_vectors(tree, name, vectors, lambda tree, row, lane: tree)


def single(tree: Tree) -> Iterator[str]:
    """Yield the loops with one iteration."""
    for loop in loops_of(tree.body):
        if loop.size == 1 and loop.role is Role.SERIAL:
            yield loop.variable


def removed(tree: Tree, name: str, vectors: VectorWidth) -> Tree:
    """Replace a loop with one iteration by its body."""
    return shape.unrolled(tree, name)


# Unroll and jam -----------------------------------------------------------------------------------


def around_innermost(tree: Tree) -> Iterator[str]:
    """Yield the loops around loops over vectors that only store."""
    for loop in loops_of(tree.body):
        inner = [each for each in loop.body if isinstance(each, LoopNode)]
        folds = any(FOLD in use.ways for use in used(loop).values())
        if not folds and any(
            isinstance(x, LoopNode) and x.role is Role.VECTOR for y in inner for x in y.body
        ):
            yield loop.variable


def jammed(tree: Tree, name: str, vectors: VectorWidth) -> Tree:
    """Compute neighbouring rows together where they share most of their loads.

    Windows of neighbouring positions overlap, and rows share parameters. Common loads then stay in
    registers.
    """
    loop, above = find(tree, name)
    size, places = loop.size, product([each.size or 1 for each in (*above[-1:], loop)])
    require(size is not None, f"the length of {name} changes with other loops")
    enough = not isinstance(places, int) or places >= MIN_JAM_POSITIONS
    require(enough, f"there are fewer than {MIN_JAM_POSITIONS} rows around {name}")
    assert size is not None
    by = next((n for n in JAM_FACTORS if is_multiple(size, n)), JAM_FACTORS[0])
    require(not isinstance(size, int) or size >= by, f"{name} has fewer than {by} iterations")
    nodes = longest(loop)
    require(len(nodes) <= MAX_JAM_NODES, f"an element has more than {MAX_JAM_NODES} nodes")
    lanes = {each.variable for each in loops_of(loop.body) if each.role is Role.VECTOR}
    loads = [x for x in nodes if isinstance(x, Load) and any(x.offset.step(v) for v in lanes)]
    require(len(loads) >= MIN_LOADED_VECTORS, f"an element loads {len(loads)} vectors only")
    shared = {shifted(load, name, turn) for load in loads for turn in range(by)}
    few = len(shared) <= MAX_LOAD_SHARE * by * len(loads)
    require(few, f"{by} rows of {name} load {len(shared)} vectors, not fewer")
    reason = f"{by} rows load {len(shared)} vectors instead of {by * len(loads)}"
    tree = shape.jam(tree, name, by, reason)
    for each in loops_of(tree.body):
        if each.kind is Kind.COPIES and is_straight(each.body):  # a few elements without vectors
            tree = shape.set_role(tree, each.variable, Role.SERIAL)
    return tree


def shifted(load: Load, name: str, turn: int) -> tuple[int, AffineIndex]:
    """Return the operand and the offset of a load after ``turn`` iterations of a loop."""
    return load.operand, load.offset + load.offset.step(name) * turn


def longest(loop: LoopNode) -> Sequence[Scalar]:
    """Return the nodes of the statement that has the most of them in vectors inside of a loop."""
    inner = [each for each, above in walk(loop.body) if above and above[-1].role is Role.VECTOR]
    return max([list(walk_scalars(*values_of(each))) for each in inner], key=len)


# Tasks --------------------------------------------------------------------------------------------


def with_rests(tree: Tree) -> Iterator[str]:
    """Yield the loops that hold rows, and behind them rows that fill no block."""
    for loop in reversed(loops_of(tree.body)):
        if any(is_rows(each) and each.kind is Kind.REST for each in loop.body):  # type: ignore[union-attr]
            yield loop.variable


def is_rows(statement: object) -> bool:
    """Return True if a statement is a loop over rows: around other loops, and not over vectors."""
    if not isinstance(statement, LoopNode) or statement.role is not Role.SERIAL:
        return False
    inner = [each for each in statement.body if isinstance(each, LoopNode)]
    rows = any(each.kind is not Kind.COPIES or not is_straight(each.body) for each in inner)
    return rows and statement.kind not in (Kind.VECTORS, Kind.BLOCK)


def distributed(tree: Tree, name: str, vectors: VectorWidth) -> Tree:
    """Give the rows that fill no block loops of their own, so that all rows can be tasks."""
    return shape.distribute(tree, name)[0]


def outermost(tree: Tree) -> Iterator[str]:
    """Yield the outermost loops."""
    for body in bodies(tree.body):
        yield from (each.variable for each in body if isinstance(each, LoopNode))


def bodies(body: Body) -> Iterator[Body]:
    """Yield the statements of a tree, and those of its choices, which no loop is around."""
    yield body
    for each in body:
        if isinstance(each, Choose):
            yield from (*bodies(each.then), *bodies(each.otherwise))


def as_tasks(tree: Tree, name: str, vectors: VectorWidth) -> Tree:
    """Divide the rows among tasks, and also the elements of a few long rows."""
    loop, _ = find(tree, name)
    rest = loop.kind is Kind.REST
    few = is_straight(loop.body) and (rest or not stores_results(loop))
    few = few or (rest and all(getattr(each, "role", None) is Role.SIMD for each in loop.body))
    block = loop.kind is Kind.BLOCK  # the only one of its loop
    if loop.role is not Role.SERIAL or few or block or shape.tasks_in(loop.body):
        return tree  # a few elements are no work for a task
    if len(tree.body) > 1 and isinstance(loop.size, int):
        each = work(loop.body, name)
        if isinstance(each, int) and loop.size * each < MIN_WORK:
            return tree
    while is_rows(loop) and len(loop.body) == 1 and is_rows(loop.body[0]):
        (inner,) = loop.body
        assert isinstance(inner, LoopNode)
        many = isinstance(loop.size, int) and loop.size >= MIN_DIVIDED_ROWS
        if many and not isinstance(inner.size, int):
            break
        tree = shape.collapse(tree, name, inner.variable)
        loop, _ = find(tree, name)
    tree, name = in_stretches(tree, name, vectors)
    return shape.set_role(tree, name, Role.TASK, "iterations store elements of their own")


def in_stretches(tree: Tree, name: str, vectors: VectorWidth) -> tuple[Tree, str]:
    """Divide the elements of rows that are long and too few for all threads.

    Elements behind the whole vectors of rows get a loop over rows of their own. Return the tree and
    the variable of the loop over all parts, or ``name`` if the rows stay whole.
    """
    loop, _ = find(tree, name)
    rows, (row, *others) = loop.size, loop.body
    few = is_rows(loop) and isinstance(rows, int) and rows < MIN_PARALLEL_ROWS
    if not few or not isinstance(row, LoopNode) or row.role is not Role.SERIAL:
        return tree, name
    each = vectors.count if is_straight(row.body) else 1  # iterations that fill a vector
    if isinstance(row.size, int) and row.size < MIN_SPLIT_VECTORS * each:
        return tree, name
    if others:
        if used_buffers(loop.body) or not all(map(is_rest, others)):
            return tree, name
        tree = shape.set_kind(tree, name, Kind.REST)
        tree, name = shape.fission(tree, name, row.variable)
        tree = shape.set_kind(tree, name, loop.kind)
    tree = shape.split(tree, row.variable, STRETCH_VECTORS * each, short=True).tree
    return shape.collapse(tree, name, row.variable), name


def is_rest(statement: Statement) -> bool:
    """Return True if a statement stores what is behind the whole vectors of a row."""
    if isinstance(statement, LoopNode):
        short = statement.kind is Kind.REST or statement.role is Role.VECTOR
        return short and all(map(is_rest, statement.body))
    return isinstance(statement, Write)


RULES: tuple[ScheduleRule[VectorWidth], ...] = (
    ScheduleRule("values of rows", behind_reductions, hoisted),
    ScheduleRule("columns", adjacent, columns),
    ScheduleRule("one loop", folding, in_one_loop),
    ScheduleRule("parts of rows", nested_reductions, divided),
    ScheduleRule("partial sums", folding, summed),
    ScheduleRule("vectors", innermost, vectorised),
    ScheduleRule("jam", around_innermost, jammed),
    ScheduleRule("single iterations", single, removed),
    ScheduleRule("distribute", with_rests, distributed),
    ScheduleRule("parts", long_reductions, divided),
    ScheduleRule("tasks", outermost, as_tasks),
)


# Rules of nests whose vectors the compiler makes.
COMPILED_RULES: tuple[ScheduleRule[VectorWidth], ...] = (
    ScheduleRule("values of rows", behind_reductions, hoisted),
    ScheduleRule("one loop", folding, in_one_loop),
    ScheduleRule("memory order", folding, in_memory_order),
    ScheduleRule("lanes", folding_tuples, in_lanes),
    ScheduleRule("parts", long_reductions, divided),
    ScheduleRule("partial states", folding, compiled_states),
    ScheduleRule("single iterations", single, removed),
    ScheduleRule("copies without a buffer", storing, forwarded),
    ScheduleRule("copies past the caches", writing, copied),
    ScheduleRule("interleaved vectors", computing, interleaved),
    ScheduleRule("shared lines", rows_of_blocks, blocks_outside),
    ScheduleRule("tasks", outermost, as_tasks),
    ScheduleRule("loops of compilers", compilable, in_any_order),
    ScheduleRule("gathers", permuted_lanes, gathered),
)


# Rules of nests of columns whose vectors the compiler makes.
COMPILED_COLUMN_RULES: tuple[ScheduleRule[VectorWidth], ...] = (
    ScheduleRule("values of rows", behind_reductions, hoisted),
    ScheduleRule("tiles", crossed_columns, in_tiles),
    ScheduleRule("columns", adjacent, columns_in_lanes),
    ScheduleRule("decided truths", deciding, ended),
    ScheduleRule("single iterations", single, removed),
    ScheduleRule("tasks", outermost, as_tasks),
    ScheduleRule("gathers", permuted_lanes, gathered),
)


# Non-temporal stores ------------------------------------------------------------------------------


def streamed(tree: Tree, operands: frozenset[int], vectors: VectorWidth) -> Tree:
    """Mark the stores to ``operands`` in tasks that may pass by the caches: of whole registers.

    All of an operand's registers lie at multiples of their bytes if its memory does, and the open
    lengths in their offsets are such multiples, which a call checks.
    """
    found = {k for k in operands if may_stream(tree, k, vectors)}
    if not found:
        return tree

    def marked(loop: LoopNode) -> tuple[LoopNode]:
        body = [
            replace(each, streamed=frozenset(found)) if isinstance(each, Write) else each
            for each in loop.body
        ]
        return (with_body(loop, tuple(body)),)

    for loop in loops_of(tree.body):
        above = find(tree, loop.variable)[1]
        whole = loop.role is Role.VECTOR and loop.size == vectors.count
        if whole and any(each.role is Role.TASK for each in above):
            tree = replaced(tree, loop.variable, marked)
    return tree


def may_stream(tree: Tree, operand: int, vectors: VectorWidth) -> bool:
    """Return True if there are stores of whole registers, all at multiples of their bytes."""
    whole = [
        (store, lane) for store, lane in vector_stores(tree, operand) if lane.size == vectors.count
    ]
    return bool(whole) and all(is_aligned(*each, vectors.count) for each in whole)


def is_aligned(store: Store, lane: LoopNode, count: int) -> bool:
    """Return True if the known parts of a store's offset are multiples of ``count`` elements."""
    steps = [step for atom, step in store.offset.terms.items() if atom != lane.variable]
    known = [step for step in (*steps, store.offset.constant) if isinstance(step, int)]
    return all(step % count == 0 for step in known)
