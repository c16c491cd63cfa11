"""Transformations of loops: pure functions from tree to tree that keep what is computed.

Each checks that it may, and raises ``IllegalScheduleError`` with the reason otherwise. A body that
is copied gets loops of its own and copies of the buffers that are private to it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Container, Iterator, Sequence
from typing import NamedTuple

from ...op_graph.axes.affine import AffineIndex, Size, variable
from ...op_graph.axes.index_map import InRange
from ..kernels.ir.loop_variables import changes_with, variables
from ..kernels.ir.scalar_code import Least
from .access import (
    READ,
    WRITE,
    accesses,
    is_straight,
    is_unrolled,
    most,
    private,
    require_independent,
    shared_buffers,
    used,
    used_buffers,
)
from .simplify import simplified
from .substitution import BufferLayout, DeferredSubstitution
from .tree import (
    Body,
    Choose,
    Combine,
    Fold,
    IllegalScheduleError,
    Kind,
    LoopNode,
    PrivateBuffer,
    Role,
    Space,
    Statement,
    Tree,
    constant,
    divided,
    find,
    fresh,
    least,
    loops_in,
    loops_named,
    loops_of,
    replace,
    replaced,
    require,
    unused,
    walk,
    with_body,
    with_form,
)


class Split(NamedTuple):
    """A tree with a loop split: the variables of the loop in each block and of the rest."""

    tree: Tree
    inner: str
    rest: str | None


def split(
    tree: Tree,
    name: str,
    by: Size,
    kind: Kind = Kind.BLOCK,
    *,
    short: bool = False,
    guarded: bool = False,
) -> Split:
    """Split a loop into blocks of ``by`` iterations; it then counts the blocks.

    What fills no block is a loop of kind REST behind it, or, if ``short``, a shorter last block,
    or, if ``guarded``, a last block of which only the first iterations do something.
    """
    loop, _ = find(tree, name)
    require_serial(loop)
    require(by != 0, f"{name} has blocks without an iteration")
    inner, outer = fresh(tree, name), variable(name)
    place = AffineIndex([(name, by), (inner, 1)])
    body = DeferredSubstitution(tree.code, {name: place}).body(loop.body)
    block = LoopNode(inner, constant(by), body, kind=kind)
    blocks, left = blocks_of(loop.extent, by)
    if (short or guarded) and left != AffineIndex():
        ends = ends_of(loop.extent)
        blocks = least([quotient(each + (by - 1), by) for each in ends])
        if short:
            rests = [each - outer * by for each in ends]
            block = replace(block, extent=least([constant(by), *rests]))
        else:
            size = loop.size
            require(size is not None, f"the length of {name} changes with other loops")
            assert size is not None
            guards: tuple[InRange, ...] = (InRange(place, 0, size),)
            if len(body) == 1 and isinstance(body[0], Choose) and not body[0].otherwise:
                guards, body = (*guards, *body[0].guards), body[0].then
            block = with_body(block, (Choose(guards, body, ()),))
    require(blocks != AffineIndex(), f"{name} has fewer than {by} iterations")
    main = replace(loop, extent=blocks, body=(block,))
    main.used = used(loop)
    if short or guarded or left == AffineIndex():
        return Split(replaced(tree, name, lambda _: (main,)), inner, None)
    rest = fresh(tree, name, [inner])
    env = {name: variable(rest) + blocks * by}
    copy, tree = copied(tree, loop.body, private(tree, name), env, [inner, rest])
    behind = LoopNode(rest, left, copy, kind=Kind.REST)
    return Split(replaced(tree, name, lambda _: (main, behind)), inner, rest)


def blocks_of(extent: AffineIndex, by: Size) -> tuple[AffineIndex, AffineIndex]:
    """Return the number of whole blocks of ``by`` iterations, and of the iterations behind them."""
    if not extent.terms:
        blocks: Size = extent.constant // by
        return constant(blocks), constant(extent.constant - blocks * by)
    ends = ends_of(extent)
    if len(ends) > 1:
        parts = [divided(each, by) for each in ends]
        if not any(left != AffineIndex() for _, left in parts):
            return least([blocks for blocks, _ in parts]), AffineIndex()
    return divided(extent, by)


def ends_of(extent: AffineIndex) -> tuple[AffineIndex, ...]:
    """Return the indices of which an extent is the least, or the extent alone."""
    for atom in extent.terms:
        if isinstance(atom, Least) and extent == variable(atom):
            return atom.of
    return (extent,)


def quotient(index: AffineIndex, by: Size) -> AffineIndex:
    """Return the whole quotient of an index."""
    return divided(index, by)[0] if index.terms else constant(index.constant // by)


def split_parts(tree: Tree, name: str, count: int, minimum: int) -> Split:
    """Split a loop into at most ``count`` parts of at least ``minimum`` iterations.

    It then counts the parts. The last part is shorter, and parts of an open length are longer than
    that by at most a share of ``count``.
    """
    size = find(tree, name)[0].size
    require(size is not None, f"the length of {name} changes with other loops")
    assert size is not None
    by = size // count + minimum
    if isinstance(size, int):
        by = max(minimum, -(-size // count))
    made = split(tree, name, by, short=True)
    bound = least([constant(count), find(made.tree, name)[0].extent])
    return made._replace(
        tree=replaced(made.tree, name, lambda loop: (replace(loop, extent=bound),))
    )


def split_evenly(tree: Tree, name: str, count: Size) -> Split:
    """Split a loop into ``count`` parts of equal length, of which the last ones may do less.

    It then counts the parts. They are fewer where the last ones would be known to do nothing.
    """
    size = find(tree, name)[0].size
    require(size is not None, f"the length of {name} changes with other loops")
    require(size != 0, f"{name} has no iterations")
    assert size is not None
    made = split(tree, name, (size + (count - 1)) // count, guarded=True)
    if isinstance(find(made.tree, name)[0].size, int):
        return made
    parts = replaced(made.tree, name, lambda loop: (replace(loop, extent=constant(count)),))
    return made._replace(tree=parts)


def require_serial(*loops: LoopNode) -> None:
    """Raise ``IllegalScheduleError`` if a loop has a role: roles are given last."""
    for loop in loops:
        require(loop.role is Role.SERIAL, f"{loop.variable} is {loop.role.value} already")


def copied(
    tree: Tree,
    body: Body,
    own: Sequence[int],
    env: dict[str, AffineIndex],
    taken: Sequence[str] = (),
) -> tuple[Body, Tree]:
    """Return a copy of statements with ``env`` replaced, and the tree with its further buffers.

    Its loops have fresh variables, and the buffers ``own`` are copied.
    """
    env, used = dict(env), loops_named(tree.body).keys() | taken
    for loop in loops_of(body):
        name = unused(loop.variable, used)
        env[loop.variable] = variable(name)
        used.add(name)
    numbers = {number: len(tree.buffers) + k for k, number in enumerate(own)}
    more = [tree.buffers[number] for number in own]
    tree = replace(tree, buffers=(*tree.buffers, *more))
    return DeferredSubstitution(tree.code, env, numbers).body(body), tree


def set_role(tree: Tree, name: str, role: Role, reason: str = "") -> Tree:
    """Set the role of a loop, with the ``reason``.

    Iterations of tasks, threads, simd loops and vectors must be independent; what tasks share with
    other statements becomes scratch memory, of which each has its own part. A vector holds straight
    code, and a simd loop also unrolled copies. A vector and an unrolled loop have a known length;
    what is private to them gets an element per iteration. Iterations of a simd loop may fold into
    one state.
    """
    loop, above = find(tree, name)
    if role in (Role.VECTOR, Role.UNROLLED):
        require(isinstance(loop.size, int), f"{name} has no known length")
    if role in (Role.SIMD, Role.VECTOR):
        near = is_unrolled(loop) if role is Role.SIMD else is_straight(loop.body)
        require(near, f"{name} has loops inside")
    own = [n for n in private(tree, name) if tree.buffers[n].space is not Space.SCRATCH]
    if role in (Role.TASK, Role.THREAD, Role.SIMD, Role.VECTOR):
        require_independent(tree, name, folds=role is Role.SIMD, own=own)
    elif role is Role.UNROLLED and len(loop.body) > 1:
        require_independent(tree, name, folds=True, ordered=True, own=own)
    if role in (Role.VECTOR, Role.UNROLLED):
        tree = expand(tree, name, own, adjacent=role is Role.VECTOR) if own else tree
    if role is Role.VECTOR:
        body = find(tree, name)[0].body
        inside = accesses(body, {("buffer", number) for number in used_buffers(body)})
        apart = [each.memory[1] for each in inside if each.offset.step(name) not in (0, 1)]
        require(not apart, f"elements of {name} are apart in buffers {apart}")
    if role is Role.TASK:
        buffers = list(tree.buffers)
        shared = used_buffers(loop.body) - {*own}
        shared -= {n for n in shared if buffers[n].space is Space.SCRATCH}
        outside = any(each.role is Role.TASK for each in above)
        require(not (shared and outside), f"tasks of {name} share memory of one task")
        for each in shared:
            buffers[each] = replace(buffers[each], space=Space.SCRATCH)
        tree = replace(tree, buffers=tuple(buffers))
    return replaced(tree, name, lambda loop: (with_form(loop, role, loop.kind, reason),))


def set_kind(tree: Tree, name: str, kind: Kind) -> Tree:
    """Set the kind of a loop."""
    if find(tree, name)[0].kind is kind:
        return tree
    return replaced(tree, name, lambda loop: (with_form(loop, loop.role, kind, loop.reason),))


def collapse(tree: Tree, outer: str, inner: str) -> Tree:
    """Join two perfectly nested loops into the outer one, whose length may change with others."""
    loop, _ = find(tree, outer)
    nested, _ = find(tree, inner)
    require_serial(loop, nested)
    require(loop.body == (nested,), f"{inner} is not all that is in {outer}")
    count = nested.size
    require(count is not None, f"the length of {inner} changes with other loops")
    assert count is not None
    extent = least([each * count for each in ends_of(loop.extent)])
    index, rest = divided(variable(outer), count)
    body = DeferredSubstitution(tree.code, {outer: index, inner: rest}).body(nested.body)
    joined = replace(loop, extent=extent, body=body)
    joined.used = used(loop)
    return replaced(tree, outer, lambda _: (joined,))


def reorder(tree: Tree, outer: str, inner: str) -> Tree:
    """Swap two perfectly nested loops."""
    loop, _ = find(tree, outer)
    nested, _ = find(tree, inner)
    require_serial(loop, nested)
    require(loop.body == (nested,), f"{inner} is not all that is in {outer}")
    require(not changes_with(nested.extent, {outer}), f"the length of {inner} changes with {outer}")
    swapped = with_body(nested, (with_body(loop, nested.body),))
    swapped.used = used(loop)
    made = replaced(tree, outer, lambda _: (swapped,))
    try:
        require_independent(tree, outer, folds=True)
        require_independent(tree, inner, folds=True)
    except IllegalScheduleError:
        require_independent(made, inner)  # each iteration then takes its elements in order
    return made


def expand(
    tree: Tree,
    name: str,
    numbers: Sequence[int],
    space: Space | None = None,
    adjacent: bool = False,
) -> Tree:
    """Give private buffers of a loop an element for each iteration.

    This is their innermost dimension if the loop is over lanes or if it is to be ``adjacent``, as
    elements of a vector are. Otherwise it is the outermost one, which leaves vectors as they are.
    """
    loop, _ = find(tree, name)
    own = private(tree, name)
    require(all(each in own for each in numbers), f"a buffer is not private to {name}")
    if adjacent or loop.kind is Kind.LANES:
        lanes = {each.variable for each in loops_of(loop.body) if each.role is Role.VECTOR}
        inside = accesses(loop.body, {("buffer", number) for number in numbers})
        along = {each.memory[1] for each in inside if variables(each.offset) & lanes}
        require(not along, f"vectors inside of {name} are along buffers {along}")
    buffers = enlarged(tree, loop, numbers, space)
    layouts = layouts_at(tree, loop, numbers, name, adjacent)
    body = DeferredSubstitution(tree.code, {}, layouts=layouts).body(loop.body)
    return replace(replaced(tree, name, lambda loop: (with_body(loop, body),)), buffers=buffers)


def enlarged(
    tree: Tree, loop: LoopNode, numbers: Sequence[int], space: Space | None
) -> tuple[PrivateBuffer, ...]:
    """Return the buffers of a tree with those of ``numbers`` enlarged for each iteration."""
    size = most(loop.extent)
    require(size is not None, f"{loop.variable} has no greatest length")
    assert size is not None
    combined = [
        each
        for each, _ in walk(loop.body)
        if isinstance(each, Combine) and not set(each.of).isdisjoint(numbers)
    ]
    require(not combined, "states in lanes are adjacent")
    for each, _ in walk(loop.body):
        if isinstance(each, (Fold, Combine)):
            alone = set(each.into) & set(numbers)
            whole = not alone or alone == set(each.into)
            require(whole, f"buffers {each.into} are one state, of which {alone} would be enlarged")
    buffers = list(tree.buffers)
    for number in numbers:
        old = buffers[number]
        buffers[number] = replace(old, size=old.size * size, space=space or old.space)
    return tuple(buffers)


def layouts_at(
    tree: Tree, loop: LoopNode, numbers: Sequence[int], at: str, adjacent: bool = False
) -> dict[int, BufferLayout]:
    """Return the layouts of buffers with an element for each iteration of a loop, number ``at``."""
    index, size = variable(at), most(loop.extent)
    assert size is not None
    if adjacent or loop.kind is Kind.LANES:
        return dict.fromkeys(numbers, BufferLayout(size, index))
    return {number: BufferLayout(1, index * tree.buffers[number].size) for number in numbers}


def distribute(tree: Tree, name: str) -> tuple[Tree, list[str]]:
    """Split a loop into one loop for each statement of its body.

    Return the tree and the variables of the loops. What was private gets an element for each
    iteration where several statements use it.
    """
    loop, _ = find(tree, name)
    require_serial(loop, *tasks_in(loop.body))
    require_independent(tree, name)
    if len(loop.body) == 1:
        return tree, [name]
    uses = Counter([number for each in loop.body for number in used_buffers((each,))])
    between = [number for number in shared_buffers(tree, name) if uses[number] > 1]
    tree = expand(tree, name, between, Space.STACK) if between else tree
    loop, _ = find(tree, name)
    found: list[LoopNode] = []
    for each in loop.body:
        own = fresh(tree, name, [other.variable for other in found]) if found else name
        body = DeferredSubstitution(tree.code, {name: variable(own)}).body((each,))
        found.append(replace(loop, variable=own, body=body))
    return replaced(tree, name, lambda _: tuple(found)), [each.variable for each in found]


def fission(tree: Tree, name: str, inner: str, *, adjacent: bool = False) -> tuple[Tree, str]:
    """Run a loop of the body of loop ``name`` before the others, in a loop of its own.

    Return the tree and the variable of that loop. What both use gets an element for each iteration
    in scratch memory, those of one after another being ``adjacent`` or as far apart as it is large.
    """
    loop, _ = find(tree, name)
    require_serial(loop, *tasks_in(loop.body))
    first = [each for each in loop.body if isinstance(each, LoopNode) and each.variable == inner]
    require(len(first) == 1, f"{inner} is not in {name}")
    require_movable(loop.body, first[0])
    require_independent(tree, name)
    mine = used_buffers(tuple(first))
    theirs = used_buffers(tuple([each for each in loop.body if each is not first[0]]))
    both = [number for number in private(tree, name) if number in mine & theirs]
    tree = expand(tree, name, both, Space.SCRATCH, adjacent) if both else tree
    loop, own = find(tree, name)[0], fresh(tree, name)
    at = [isinstance(each, LoopNode) and each.variable == inner for each in loop.body].index(True)
    change = DeferredSubstitution(tree.code, {name: variable(own)})
    before = replace(loop, variable=own, body=change.body((loop.body[at],)))
    rest = with_body(loop, (*loop.body[:at], *loop.body[at + 1 :]))
    return replaced(tree, name, lambda _: (before, rest)), own


def require_movable(body: Body, loop: LoopNode) -> None:
    """Raise ``IllegalScheduleError`` if a loop needs what statements before it in a body do.

    Stores to one operand are of different elements: each element of a result is stored once.
    """
    before, after = list(accesses(body[: body.index(loop)])), list(accesses((loop,)))
    for memory in {each.memory for each in before} & {each.memory for each in after}:
        ways = {each.way for each in (*before, *after) if each.memory == memory}
        apart = ways == {READ} or (ways == {WRITE} and memory[0] == "operand")
        require(apart, f"{loop.variable} needs {memory[0]} {memory[1]} of statements before it")


def tasks_in(body: Body) -> list[LoopNode]:
    """Return the loops inside of a body whose iterations are tasks."""
    return [loop for loop in loops_of(body) if loop.role is Role.TASK]


INNERMOST = (Kind.COPIES, Kind.LANES)  # kinds of loops inside of all others, in this order


def sink(tree: Tree, name: str, into: Container[str] | None = None) -> tuple[Tree, list[str]]:
    """Move a loop into the loops ``into``, by default into all loops inside of it.

    But for lanes, it then stays outside of lanes, and but for copies, outside of copies. Return the
    tree and the variables of the copies of the loop.
    """
    loop, _ = find(tree, name)
    within = INNERMOST[INNERMOST.index(loop.kind) + 1 :] if loop.kind in INNERMOST else INNERMOST

    def takes(each: LoopNode) -> bool:
        return each.kind not in within if into is None else each.variable in into

    inner = [each for each in loops_in(loop).values() if takes(each)]
    require_serial(loop, *inner, *tasks_in(loop.body))
    require(
        not any(changes_with(each.extent, {name}) for each in inner),
        f"the length of a loop inside changes with {name}",
    )
    require(
        not any(isinstance(each, (Choose, Combine)) for each, _ in walk(loop.body)),
        f"{name} has choices or combined lanes inside",
    )
    own = private(tree, name)
    require_independent(tree, name, own=own)
    if not inner:
        return tree, [name]
    uses = Counter([number for group in groups(loop.body, takes) for number in used_buffers(group)])
    shared = [each for each in shared_buffers(tree, name) if uses[each] > 1] if own else []
    buffers = enlarged(tree, loop, shared, Space.STACK) if shared else tree.buffers
    names: list[str] = []
    taken = set(loops_named(tree.body))

    def around(body: Body) -> LoopNode:
        at = unused(name, taken) if names else name
        names.append(at)
        taken.add(at)
        env = {} if at == name else {name: variable(at)}
        layouts = layouts_at(tree, loop, shared, at) if shared else None
        body = DeferredSubstitution(tree.code, env, layouts=layouts).body(body)
        return replace(loop, variable=at, body=body)

    def sunk(body: Body) -> Body:
        found: list[Statement] = []
        for group in groups(body, takes, deep=False):
            first = group[0]
            if isinstance(first, LoopNode) and takes(first):
                found.append(with_body(first, sunk(first.body)))
            else:
                found.append(around(group))
        return tuple(found)

    return replace(replaced(tree, name, lambda _: sunk(loop.body)), buffers=buffers), names


def groups(body: Body, takes: Callable[[LoopNode], bool], *, deep: bool = True) -> Iterator[Body]:
    """Yield statements that follow each other, without loops that are taken and what is in them.

    Unless ``deep``, yield these loops, one by one; else what is inside of them.
    """
    straight: list[Statement] = []
    for each in body:
        if not isinstance(each, LoopNode) or not takes(each):
            straight.append(each)
            continue
        if straight:
            yield tuple(straight)
            straight = []
        if deep:
            yield from groups(each.body, takes)
        else:
            yield (each,)
    if straight:
        yield tuple(straight)


def unroll(tree: Tree, name: str, by: int, reason: str = "") -> Tree:
    """Compute ``by`` iterations of a loop together."""
    made = split(tree, name, by, Kind.COPIES)
    return set_role(made.tree, made.inner, Role.UNROLLED, reason)


def unrolled(tree: Tree, name: str) -> Tree:
    """Replace a loop of known length by copies of its body."""
    loop, _ = find(tree, name)
    size = loop.size
    require(isinstance(size, int), f"{name} has no known length")
    assert isinstance(size, int)
    if size == 1:
        body = DeferredSubstitution(tree.code, {name: AffineIndex()}).body(loop.body)
        return replaced(tree, name, lambda _: body)
    own, found, taken = private(tree, name), list[Statement](), list[str]()
    for k in range(size):
        copy, tree = copied(tree, loop.body, own, {name: constant(k)}, taken)
        taken += [each.variable for each in loops_of(copy)]
        found += copy
    return simplified(replaced(tree, name, lambda _: tuple(found)))


def jam(tree: Tree, name: str, by: int, reason: str = "") -> Tree:
    """Compute ``by`` iterations of a loop together in each of the innermost loops inside."""
    made = split(tree, name, by, Kind.COPIES)
    tree, names = sink(made.tree, made.inner)
    for each in names:
        tree = set_role(tree, each, Role.UNROLLED, reason)
    return tree


def partition(tree: Tree, name: str, points: Sequence[int]) -> Tree:
    """Split a loop at ``points`` into loops that follow each other, and decide guards in each."""
    loop, _ = find(tree, name)
    require_serial(loop)
    size = loop.size
    require(isinstance(size, int), f"{name} has no known length")
    assert isinstance(size, int)
    ends = [0, *sorted({point for point in points if 0 < point < size}), size]
    own, found, taken = private(tree, name), list[LoopNode](), list[str]()
    for low, high in zip(ends, ends[1:], strict=False):
        if low == 0:
            found.append(replace(loop, extent=constant(high)))
            continue
        piece = fresh(tree, name, taken)
        taken.append(piece)
        copy, tree = copied(tree, loop.body, own, {name: variable(piece) + low}, taken)
        taken += [each.variable for each in loops_of(copy)]
        found.append(replace(loop, variable=piece, extent=constant(high - low), body=copy))
    return simplified(replaced(tree, name, lambda _: tuple(found)))


def specialise(tree: Tree, guards: tuple[InRange, ...]) -> Tree:
    """Add a copy of a tree, for transformations of its own, which runs where ``guards`` hold."""
    require(not any(variables(guard.index) for guard in guards), "guards are of lengths alone")
    copy, tree = copied(tree, tree.body, range(len(tree.buffers)), {})
    return replace(tree, body=(Choose(guards, copy, tree.body),))
