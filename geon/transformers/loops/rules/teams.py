"""Rules for teams of GPU threads, which share the passes of a row.

The threads of a team take elements of a pass in turn, and each has partial states of its own. In
sums of floats a thread adds at most ``MAX_SERIAL_TERMS`` terms in their dtype, and such partial
sums in float64. States of threads are combined in the order of threads, so that bits depend on
lengths alone. What threads need in several passes stays in their registers where it fits.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Set
from itertools import islice
from typing import NamedTuple

from ....op_graph.axes.affine import AffineIndex, variable
from ....op_graph.rows.elementwise import add
from ....op_graph.values.dtypes import FLOAT32, FLOAT64
from ...kernels.ir.nest import Keep
from ...kernels.ir.scalar_code import Kept, Load, Scalar
from ...kernels.ir.scalar_code import walk as walk_scalars
from ...kernels.nests.unrolled_reductions import MAX_SERIAL_TERMS
from .. import transformations as shape
from ..access import WRITE, accesses, is_straight, own_part, ranges
from ..partial_states import ValueReplacement, fuse, rfactor, widened
from ..simplify import grouped
from ..substitution import Substitution, reindexed
from ..tree import (
    Fold,
    Kind,
    LoopNode,
    PrivateBuffer,
    Role,
    Space,
    Tree,
    Write,
    find,
    fresh,
    loops_of,
    replace,
    replaced,
    values_of,
    walk,
    with_body,
)
from .gpu_threads import ELEMENTS_PER_VECTOR, Threads, is_aligned, is_whole
from .reductions import is_float

MAX_REGISTER_ELEMENTS = MAX_SERIAL_TERMS  # elements of one row array that a thread keeps
MAX_REGISTER_BYTES = FLOAT32.itemsize  # bytes of an element that stays in a register: one register
MAX_SHARED_BYTES = 32 << 10  # bytes of row arrays in the memory that the threads of a team share


# Passes -------------------------------------------------------------------------------------------


def passes(tree: Tree) -> Iterator[str]:
    """Yield the passes of a row."""
    for each in passes_of(tree):
        if each.role is Role.SERIAL:
            yield each.variable


def first_pass(tree: Tree) -> Iterator[str]:
    """Yield the first of the passes of a row."""
    yield from islice(passes(tree), 1)


def passes_of(tree: Tree) -> list[LoopNode]:
    """Return the loops of a row that follow each other: rows hold several statements."""
    body = tree.body
    while len(body) == 1 and isinstance(body[0], LoopNode):
        body = body[0].body
    return [each for each in body if isinstance(each, LoopNode)]


def in_team(tree: Tree, name: str, threads: Threads) -> Tree:
    """Divide the passes of a row among the threads of a team."""
    team = threads.team
    if team == 1 or any(loop.role is Role.THREAD for loop in loops_of(tree.body)):
        return tree
    fitting = [each.variable for each in passes_of(tree) if fills_vectors(each, team)]
    vectors = not threads.beside and any(is_vector(tree, each, threads) for each in fitting)
    arrays = [n for n, buffer in enumerate(tree.buffers) if buffer.space is Space.STACK]
    if vectors:
        tree = with_held_loads(tree, fitting, threads, arrays)
    wide = {each.variable for each in passes_of(tree) if vectors and fills_vectors(each, team)}
    for each in passes_of(tree):
        tree, lane = flattened(tree, each.variable), None
        if each.variable in wide:
            made = shape.split(tree, each.variable, ELEMENTS_PER_VECTOR, Kind.LANES)
            tree, lane = grouped(made.tree, made.inner), made.inner
        tree = divided_pass(tree, each.variable, team, lane)
    tree = placed(tree, arrays, team)
    held = any(tree.buffers[number].space is Space.REGISTER for number in arrays)
    for name in list(few_turns(tree, held)):
        tree = shape.set_role(tree, name, Role.UNROLLED, "registers hold elements of a row")
    return tree


def fills_vectors(loop: LoopNode, team: int) -> bool:
    """Return True if a pass has a known number of whole vectors, and one for every thread."""
    inner = any(isinstance(each, LoopNode) for each in loop.body)
    size = 0 if inner or not isinstance(loop.size, int) else loop.size
    return size >= ELEMENTS_PER_VECTOR * team and is_whole(size)


def is_vector(tree: Tree, name: str, threads: Threads) -> bool:
    """Return True if a pass loads or stores adjacent elements of an operand."""
    found = [each for each in accesses(find(tree, name)[0].body) if each.memory[0] == "operand"]
    return any(
        is_aligned(each.offset, name) and each.memory[1] not in threads.unaligned for each in found
    )


def flattened(tree: Tree, name: str) -> Tree:
    """Make a pass one loop."""
    loop, _ = find(tree, name)
    while len(loop.body) == 1 and isinstance(inner := loop.body[0], LoopNode):
        tree = shape.collapse(tree, name, inner.variable)
        loop, _ = find(tree, name)
    return tree


def divided_pass(tree: Tree, name: str, team: int, lane: str | None = None) -> Tree:
    """Give each thread every ``team``-th iteration of a pass.

    These are elements, or, if ``lane`` is the loop over the elements of a vector, vectors.
    """
    lanes = 1 if lane is None else ELEMENTS_PER_VECTOR
    size = find(tree, name)[0].size
    few = isinstance(size, int) and size * lanes <= MAX_SERIAL_TERMS * team
    made = shape.split(tree, name, team, Kind.LANES, guarded=True)
    tree, rank, around = made.tree, made.inner, name
    totals = states_in(tree, name)
    if totals.states:
        tree = rfactor(tree, name, rank)
    own = states_in(tree, name)
    if own.sums and not few:
        made = shape.split(tree, name, MAX_SERIAL_TERMS // lanes, short=True)
        tree, around = made.tree, made.inner
    for outer in dict.fromkeys((around, name)):
        tree = shape.reorder(tree, outer, rank)
    if own.sums:
        tree = rfactor(tree, around, only=own.sums)
        tree = widened(tree, own.sums | fed(tree, totals.sums), FLOAT64)
    if totals.states:
        first = loop_before(tree, rank)
        tree, rank = fuse(tree, first, rank), first
    if lane is not None:
        guarded = not is_straight(find(tree, lane)[0].body)
        role = Role.UNROLLED if totals.states or guarded else Role.VECTOR
        reason = f"a thread loads and stores {ELEMENTS_PER_VECTOR} elements at once"
        tree = shape.set_role(tree, lane, role, reason)
    return shape.set_role(tree, rank, Role.THREAD, f"{team} threads share a pass")


def loop_before(tree: Tree, name: str) -> str:
    """Return the loop before another one in the same body: that which sets its states."""
    loop, above = find(tree, name)
    body = above[-1].body if above else tree.body
    first = body[body.index(loop) - 1]
    assert isinstance(first, LoopNode), "states of a loop are set in a loop before it"
    return first.variable


def fed(tree: Tree, states: Set[int]) -> set[int]:
    """Return states, those that they are merged into, and those in which they wait for that."""
    found: set[int] = set()
    every = [each for each, _ in walk(tree.body)]
    merges = [each for each in every if isinstance(each, Fold) and each.merges]
    writes = [each for each in every if isinstance(each, Write)]
    moves = [pair for x in merges for pair in zip(x.into, x.elements, strict=True)]
    merged = {x.number for _, x in moves if isinstance(x, Kept)}
    puts = [x for each in writes for x in each.stores if isinstance(x, Keep)]
    moves += [(x.number, x.value) for x in puts if x.number in merged]
    more = set(states)
    while more:
        found |= more
        more = {n for n, x in moves if isinstance(x, Kept) and x.number in found} - found
    return found


def few_turns(tree: Tree, held: bool) -> Iterator[str]:
    """Yield the loops in which a thread has at most ``MAX_SERIAL_TERMS`` elements in registers.

    These are elements of vectors, and, if row arrays are ``held``, all others.
    """
    for loop in loops_of(tree.body):
        for each in loop.body if loop.role is Role.THREAD else ():
            if isinstance(each, LoopNode) and isinstance(each.size, int):
                inner = loops_of(each.body)
                vectors = bool(inner) and all(x.kind is Kind.LANES for x in inner)
                elements = each.size * (ELEMENTS_PER_VECTOR if vectors else 1)
                if (vectors or (held and not inner)) and elements <= MAX_SERIAL_TERMS:
                    yield each.variable


class States(NamedTuple):
    """The private buffers that a loop folds into: all of them, and sums of float elements."""

    states: frozenset[int]
    sums: frozenset[int]


def states_in(tree: Tree, name: str) -> States:
    """Return the private buffers that a loop folds into."""
    folds = [each for each, _ in walk(find(tree, name)[0].body) if isinstance(each, Fold)]
    terms = [each for each in folds if not each.merges]
    sums = [each for each in terms if each.reducer.folds is add and is_float(tree, each)]
    return States(*(frozenset([n for x in found for n in x.into]) for found in (folds, sums)))


# Registers ----------------------------------------------------------------------------------------


def with_held_loads(
    tree: Tree, fitting: Sequence[str], threads: Threads, arrays: Sequence[int]
) -> Tree:
    """Load what several passes read once, before the first of them, if registers hold it."""
    room = 2 * MAX_REGISTER_ELEMENTS
    room -= sum(share(tree.buffers[n].size, threads.team) for n in arrays)
    written = {
        x.memory[1] for x in accesses(tree.body) if x.way == WRITE and x.memory[0] == "operand"
    }
    uses: dict[tuple[object, ...], list[tuple[str, Load]]] = {}
    for name in fitting:
        loop, _ = find(tree, name)
        nodes = walk_scalars(*[value for each, _ in walk(loop.body) for value in values_of(each)])
        for load in [x for x in nodes if isinstance(x, Load) and is_aligned(x.offset, name)]:
            if load.operand not in threads.unaligned | written:
                at = Substitution(tree.code, {name: AffineIndex()}).index(load.offset)
                uses.setdefault((load.operand, at, loop.size), []).append((name, load))
    held: list[list[tuple[str, Load]]] = []
    for same in uses.values():
        (name, load), *others = same
        size = find(tree, name)[0].size
        count = share(size, threads.team)
        small = load.dtype.itemsize <= MAX_REGISTER_BYTES and count <= MAX_REGISTER_ELEMENTS
        if others and small and count <= room:
            room -= count
            held.append(same)
    return loaded_once(tree, fitting[0], held) if held else tree


def share(size: object, team: int) -> int:
    """Return the elements of a known number that each thread has, in whole vectors."""
    assert isinstance(size, int), "passes that registers hold have known lengths"
    return -(-size // (ELEMENTS_PER_VECTOR * team)) * ELEMENTS_PER_VECTOR


def loaded_once(tree: Tree, before: str, held: Sequence[Sequence[tuple[str, Load]]]) -> Tree:
    """Load elements of a row before loop ``before``, those of each of ``held`` in a loop.

    Each of ``held`` are loads of the same elements, with the loops that they are in.
    """
    own: list[LoopNode] = []
    buffers: list[PrivateBuffer] = []
    kept: dict[str, dict[int, Scalar]] = {}  # what replaces loads, by their loops and ids
    for number, uses in enumerate(held, len(tree.buffers)):
        name, load = uses[0]
        loop, at = find(tree, name)[0], fresh(tree, name, [each.variable for each in own])
        first = Substitution(tree.code, {name: variable(at)}).value(load)
        own.append(LoopNode(at, loop.extent, (Write((Keep(number, variable(at), first),)),)))
        assert isinstance(loop.size, int)
        buffers.append(PrivateBuffer(load.dtype, loop.size, Space.STACK))
        for user, again in uses:
            value = tree.code(Kept, number, variable(user), load.dtype)
            kept.setdefault(user, {})[id(again)] = value
    for user, new in kept.items():
        body = ValueReplacement(tree, new).body(find(tree, user)[0].body)
        tree = replaced(tree, user, lambda loop: (with_body(loop, body),))  # noqa: B023
    return replaced(tree, before, lambda loop: (*own, loop), buffers)


def placed(tree: Tree, arrays: Sequence[int], team: int) -> Tree:
    """Place row arrays in registers of the threads that use them, or in memory of the team.

    Where shared memory is too small, they stay in memory that each task has for itself.
    """
    held = [n for n, buffer in enumerate(tree.buffers) if buffer.space is Space.STACK]
    layouts = {n: own_layout(tree, n, team) for n in held}
    counts = [layouts[n].own for n in arrays]
    sizes = [tree.buffers[n].size * tree.buffers[n].dtype.itemsize for n in arrays]
    total = sum(sizes, start=0)
    small = isinstance(total, int) and total <= MAX_SHARED_BYTES
    most = max(counts, default=0)
    if small and most <= MAX_REGISTER_ELEMENTS and sum(counts) <= 2 * MAX_REGISTER_ELEMENTS:
        return in_registers(tree, layouts, team)
    tree = in_registers(tree, {n: layouts[n] for n in held if n not in arrays}, team)
    buffers = [
        replace(buffer, space=Space.SHARED) if number in arrays and small else buffer
        for number, buffer in enumerate(tree.buffers)
    ]
    return replace(tree, buffers=tuple(buffers))


class ThreadLayout(NamedTuple):
    """A buffer divided among threads: adjacent elements of a thread, and all that it has."""

    stride: int
    own: int


def own_layout(tree: Tree, number: int, team: int) -> ThreadLayout:
    """Return how a buffer is divided; it has too many elements if it is no part of registers."""
    found, buffer = set[object](), tree.buffers[number]
    for loop in loops_of(tree.body):
        if loop.role is Role.THREAD:
            inner = ranges([loop, *loops_of(loop.body)])
            uses = [x for x in accesses(loop.body) if x.memory == ("buffer", number)]
            found |= {own_part(each.offset, loop.variable, inner) for each in uses}
    key = found.pop() if len(found) == 1 else None
    fits = isinstance(buffer.size, int) and buffer.dtype.itemsize <= MAX_REGISTER_BYTES
    if not fits or not isinstance(key, tuple) or len(key) != 2:
        return ThreadLayout(1, 2 * MAX_REGISTER_ELEMENTS + 1)
    assert isinstance(buffer.size, int) and isinstance(key[0], int)
    return ThreadLayout(key[0], key[0] * -(-buffer.size // (key[0] * team)))


def in_registers(tree: Tree, layouts: Mapping[int, ThreadLayout], team: int) -> Tree:
    """Lay out buffers by thread: what a thread has is adjacent."""
    ranks = {loop.variable for loop in loops_of(tree.body) if loop.role is Role.THREAD}

    def moved(number: int, offset: AffineIndex) -> AffineIndex:
        stride, own = layouts[number]
        terms = [
            (atom, own if atom in ranks else step // team if step >= stride * team else step)
            for atom, step in offset.terms.items()
        ]
        return AffineIndex(terms, offset.constant)

    body = reindexed(tree, tree.body, frozenset(layouts), moved)
    buffers = [
        replace(buffer, size=layouts[number].own * team, space=Space.REGISTER)
        if number in layouts
        else buffer
        for number, buffer in enumerate(tree.buffers)
    ]
    return replace(tree, body=body, buffers=tuple(buffers))
