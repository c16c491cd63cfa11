"""Transformations that add private buffers: partial states, held values and staged loads."""

from __future__ import annotations

from collections.abc import Collection, Container, Iterator, Mapping, Sequence
from typing import Any

from ...op_graph.axes.affine import AffineIndex, Size, variable
from ...op_graph.axes.index_map import InRange
from ...op_graph.axes.lengths import product
from ...op_graph.rows.elementwise import CAST
from ...op_graph.rows.logic import logical_and, logical_or
from ...op_graph.rows.reducers import ALL_BITS, ANY_BITS
from ...op_graph.values.dtypes import BOOL, DType, kind
from ..kernels.ir.loop_variables import changes_with, variables, variables_of
from ..kernels.ir.nest import Keep
from ..kernels.ir.scalar_code import Apply, Kept, Load, Number, Scalar
from ..kernels.ir.scalar_code import walk as walk_scalars
from .access import (
    ONLY,
    READ,
    WRITE,
    accesses,
    buffer_uses,
    most,
    needs_order,
    only_folds,
    own_part,
    private,
    ranges,
    used_buffers,
    uses,
)
from .substitution import DeferredSubstitution, Substitution, reindexed
from .transformations import require_serial, set_kind, split, tasks_in
from .tree import (
    BYTE,
    Body,
    Choose,
    Combine,
    Fold,
    Kind,
    LoopNode,
    Memory,
    PrivateBuffer,
    Role,
    Space,
    Statement,
    Tree,
    Write,
    changed,
    find,
    fresh,
    loops_of,
    replace,
    replaced,
    require,
    values_of,
    walk,
    with_body,
)

# Reducers of truths that are the numbers 0 and 1: one instruction for numbers of all widths.
NUMBERS = {logical_or: ANY_BITS, logical_and: ALL_BITS}


def rfactor(
    tree: Tree,
    around: str,
    over: str | None = None,
    dtype: DType | None = None,
    only: Container[int] | None = None,
) -> Tree:
    """Fold in partial states, one for each iteration of loop ``over`` inside of loop ``around``.

    They begin before ``around`` and are combined after it: by halves if they are lanes, else in
    order. Without ``over``, ``around`` has one partial state. ``dtype`` is that of partial states
    where it is not that of the total; truths are then folded as numbers. ``only`` are the buffers
    whose states get partial ones.
    """
    outer, above = find(tree, around)
    inner = None if over is None else find(tree, over)[0]
    require_serial_around(above)
    require(inner is None or inner in loops_of((outer,)), f"{over} is not in {around}")
    require(not tasks_in(outer.body), f"{around} holds tasks")
    size: Size | None = 1 if inner is None else most(inner.extent)
    fixed = size is not None and (inner is None or not variables(inner.extent))
    require(fixed, f"the length of {over} changes with other loops")
    assert size is not None
    inside = {loop.variable for loop in loops_of((outer,))}
    body = outer.body if inner is None else inner.body
    folds = [each for each, _ in walk(body) if isinstance(each, (Fold, Combine))]
    taken = [
        each
        for each in folds
        if only_folds(outer, each)
        and not variables(each.offset) & inside
        and (only is None or each.into[0] in only)
    ]
    require(bool(taken), f"nothing is folded in {over} that begins before {around}")
    buffers, begin, end = list(tree.buffers), [], list[Statement]()
    new: dict[int, Fold | Combine] = {}
    merged: list[Fold] = []
    stem = around if over is None else over
    turn = fresh(tree, stem)
    again = fresh(tree, stem, [turn])
    at, before, behind = (
        AffineIndex() if inner is None else variable(name) for name in (stem, turn, again)
    )
    for fold in taken:
        types = [dtype or tree.buffers[number].dtype for number in fold.into]
        parts = tuple(range(len(buffers), len(buffers) + len(types)))
        buffers += [PrivateBuffer(each, size) for each in types]
        reducer = fold.reducer
        if reducer.folds in NUMBERS and dtype is not None:
            reducer = NUMBERS[reducer.folds]
        firsts = reducer.identity(tuple(types))
        for number, value, each in zip(parts, firsts, types, strict=True):
            begin.append(Keep(number, before, tree.code.number(value, each)))
        new[id(fold)] = replace(fold, reducer=reducer, into=parts, offset=at)
        if (
            inner is not None
            and inner.kind is Kind.LANES
            and isinstance(size, int)
            and size & (size - 1) == 0
        ):
            start = AffineIndex()
            end.append(Combine(fold.reducer, fold.into, fold.offset, parts, start, size))
            continue
        states = [
            tree.code.cast(tree.code(Kept, part, behind, each), tree.buffers[number].dtype)
            for part, each, number in zip(parts, types, fold.into, strict=True)
        ]
        merged.append(Fold(fold.reducer, fold.into, fold.offset, tuple(states), merges=True))
    if merged:
        end += each_state(inner, again, tuple(merged))
    first = each_state(inner, turn, (Write(tuple(begin)),))

    def swapped(body: Body) -> Body:
        found: list[Statement] = []
        for each in body:
            if isinstance(each, LoopNode):
                each = changed(each, body=swapped(each.body))
            elif isinstance(each, Choose):
                each = changed(each, then=swapped(each.then), otherwise=swapped(each.otherwise))
            found.append(new.get(id(each), each))
        return tuple(found)

    made = replaced(tree, around, lambda loop: (*first, with_body(loop, swapped(loop.body)), *end))
    return replace(made, buffers=tuple(buffers))


def block_level(sizes: Sequence[Size | None], block: int) -> tuple[int, int]:
    """Return which of some nested loops, innermost first, has more than ``block`` iterations
    together with those inside of it, and the number of those inside.
    """
    inside = 1
    for level, size in enumerate(sizes):
        if not isinstance(size, int) or inside * size > block:
            return level, inside
        inside *= size
    return len(sizes), inside


def block_of(tree: Tree, name: str, count: int, inner: LoopNode) -> tuple[Tree, str]:
    """Make blocks of ``count`` iterations of a loop; one iteration is the loop ``inner`` in it."""
    if count < 2:
        return tree, inner.variable
    cut = split(tree, name, count, find(tree, name)[0].kind, short=True)
    return set_kind(cut.tree, name, Kind.BLOCK), cut.inner


def each_state(over: LoopNode | None, name: str, body: Body) -> Body:
    """Return statements in a loop over the partial states that a loop has."""
    return body if over is None else (LoopNode(name, over.extent, body, kind=over.kind),)


def require_serial_around(above: Sequence[LoopNode]) -> None:
    """Raise ``IllegalScheduleError`` if iterations of a loop around share a new buffer."""
    together = [each.variable for each in above if each.role in (Role.VECTOR, Role.UNROLLED)]
    require(not together, f"iterations of {', '.join(together)} would share a buffer")


def is_plain(loop: LoopNode, fold: Fold | Combine) -> bool:
    """Return True if a loop only folds into the buffers of a fold, in any order."""
    ordered = any(needs_order((loop,), number) for number in fold.into)
    return only_folds(loop, fold) and not ordered


def is_folded_once(tree: Tree, number: int) -> bool:
    """Return True if one statement of a tree folds into a buffer."""
    folds = [each for each, _ in walk(tree.body) if isinstance(each, (Fold, Combine))]
    return sum(number in each.into for each in folds) == 1


def widened(tree: Tree, numbers: Container[int], dtype: DType) -> Tree:
    """Accumulate in another ``dtype``: buffers that are only set, folded and loaded.

    Loads round the value to the former dtype. Truths are folded as numbers.
    """
    change = _WideAccesses(tree, numbers, dtype)
    buffers = [
        replace(each, dtype=dtype) if number in numbers else each
        for number, each in enumerate(tree.buffers)
    ]
    return replace(tree, body=change.body(tree.body), buffers=tuple(buffers))


def total_states(tree: Tree, numbers: Collection[int]) -> set[int]:
    """Return the buffers of states, and those of the states that they are merged into."""
    found = set(numbers)
    for each, _ in walk(tree.body):
        if isinstance(each, Fold) and each.merges:
            kept = {x.number for x in walk_scalars(*each.elements) if isinstance(x, Kept)}
            if kept & found:
                found.update(each.into)
    return found


class _WideAccesses(Substitution):
    """Casts the loads and stores of buffers of another dtype, and what is folded into them.

    Truths that become numbers are folded by bits.
    """

    def __init__(self, tree: Tree, wide: Container[int], dtype: DType) -> None:
        super().__init__(tree.code, {})
        self.wide, self.dtype = wide, dtype

    def node(self, node: Any) -> Any:
        """Return a load from the buffer as a cast, other nodes with their operands replaced."""
        if isinstance(node, Kept) and node.number in self.wide:
            wide = self.code(Kept, node.number, self.index(node.offset), self.dtype)
            return self.code(Apply, CAST, (wide,), (), node.dtype)
        return super().node(node)

    def statement(self, each: Any) -> Any:
        """Return a statement; elements of a fold into the buffer are cast."""
        uses = [use for (_, number), use in buffer_uses(each) if number in self.wide]
        if not uses:
            return each
        folds = isinstance(each, Fold) and not any(READ in use.ways for use in uses)
        made = each if folds else super().statement(each)
        if isinstance(made, Fold) and any(number in self.wide for number in made.into):
            made = replace(made, reducer=NUMBERS.get(made.reducer.folds, made.reducer))
            if made.merges or kind(self.dtype) == "f":  # other steps cast elements themselves
                return replace(made, elements=tuple(map(self.wider, made.elements)))
        return made

    def store(self, store: Any) -> Any:
        """Return a store; one to the buffer casts its value."""
        made = super().store(store)
        if isinstance(made, Keep) and made.number in self.wide:
            value = made.value
            if isinstance(value, Number):
                return replace(made, value=self.code.number(value.value, self.dtype))
            return replace(made, value=self.wider(value))
        return made

    def cast(self, value: Any) -> Any:
        """Return a value in the wider dtype."""
        return self.code.cast(value, self.dtype)

    def wider(self, value: Any) -> Any:
        """Return a value in the wider dtype; a state of that dtype is not rounded on the way."""
        of = value.args[0] if isinstance(value, Apply) and value.row is CAST else None
        return of if isinstance(of, Kept) and of.number in self.wide else self.cast(value)


def promoted(tree: Tree, name: str, numbers: Sequence[int]) -> Tree:
    """Replace an element of each buffer, which an iteration sets, by a register, stored at the end.

    Each iteration of loop ``name`` accesses one element of a buffer, and stores it before it loads
    it.
    """
    loop, above = find(tree, name)
    require_serial_around((*above, loop))
    shared = used_buffers(tuple(tasks_in(loop.body))) & {*numbers}
    require(not shared, f"tasks in {name} share buffers {sorted(shared)}")
    inside = {each.variable for each in loops_of(loop.body)}
    offsets: dict[int, AffineIndex] = {}
    for number in numbers:
        uses = [each for each in accesses(loop.body) if each.memory == ("buffer", number)]
        require(bool(uses) and uses[0].way == WRITE, f"{name} does not set buffer {number} first")
        offset = offsets[number] = uses[0].offset
        one = all(each.offset == offset and each.count == 1 for each in uses)
        fixed = not variables(offset) & inside
        require(one and fixed, f"{name} accesses several elements of buffer {number}")
    held = {number: len(tree.buffers) + k for k, number in enumerate(numbers)}
    types = [tree.buffers[number].dtype for number in numbers]
    registers = [PrivateBuffer(dtype, 1) for dtype in types]
    wider = replace(tree, buffers=(*tree.buffers, *registers))
    body = Substitution(tree.code, {}, held).body(loop.body)
    body = reindexed(wider, body, frozenset(held.values()), lambda *_: AffineIndex())
    states = [
        tree.code(Kept, held[number], AffineIndex(), dtype)
        for number, dtype in zip(numbers, types, strict=True)
    ]
    puts = [Keep(n, offsets[n], state) for n, state in zip(numbers, states, strict=True)]
    end = Write(tuple(puts))
    return replaced(wider, name, lambda loop: (with_body(loop, (*body, end)),))


def hoist(tree: Tree, name: str, values: Sequence[Scalar]) -> Tree:
    """Compute values that change with no loop inside of loop ``name`` before it, in registers."""
    loop, above = find(tree, name)
    require_serial_around(above)
    require(not tasks_in((loop,)), f"{name} runs as tasks")
    require_unconditional(loop)
    inside = {each.variable for each in loops_of((loop,))}
    require(not variables_of(*values) & inside, f"a value changes with {name}")
    require(not sources(*values) & written((loop,)), "memory of a value changes")
    puts = [Keep(len(tree.buffers) + k, AffineIndex(), each) for k, each in enumerate(values)]
    kept = {id(x.value): tree.code(Kept, x.number, x.offset, x.value.dtype) for x in puts}
    buffers = [PrivateBuffer(each.dtype, 1) for each in values]
    begin, body = Write(tuple(puts)), ValueReplacement(tree, kept).body(loop.body)
    return replaced(tree, name, lambda loop: (begin, with_body(loop, body)), buffers)


def require_unconditional(loop: LoopNode) -> None:
    """Raise ``IllegalScheduleError`` if a choice in a loop decides whether values are computed."""
    choices = any(isinstance(each, Choose) for each, _ in walk(loop.body))
    require(not choices, f"{loop.variable} has choices inside")


def guards_around(
    body: Body, value: Scalar, guards: tuple[InRange, ...] = ()
) -> Iterator[tuple[InRange, ...]]:
    """Yield the guards of the choices around each statement that computes a value."""
    for each in body:
        if isinstance(each, LoopNode):
            yield from guards_around(each.body, value, guards)
        elif isinstance(each, Choose):
            yield from guards_around(each.then, value, (*guards, *each.guards))
            others = list(guards_around(each.otherwise, value))
            require(not others, "the value is computed where guards do not hold")
        elif value in walk_scalars(*values_of(each)):
            yield guards


def sources(*values: Scalar) -> set[Memory]:
    """Return the memory that values are computed from."""
    nodes = list(walk_scalars(*values))
    loads = {("operand", node.operand) for node in nodes if isinstance(node, Load)}
    return loads | {("buffer", node.number) for node in nodes if isinstance(node, Kept)}


def written(body: Body) -> set[Memory]:
    """Return the memory that statements change."""
    return {memory for memory, use in uses(body).items() if use != ONLY[READ]}


def hold(tree: Tree, value: Scalar, first: str, later: str) -> Tree:
    """Keep a value that loop ``first`` computes, and load it in loop ``later``.

    The loops follow each other in one body and have the same length.
    """
    one, above = find(tree, first)
    two, _ = find(tree, later)
    require_serial_around(above)
    require(not tasks_in((one, two)), f"{first} or {later} runs as tasks")
    require(one.extent == two.extent, f"{first} and {later} have other lengths")
    require_unconditional(one)
    body = above[-1].body if above else tree.body
    require(one in body and two in body, f"{first} and {later} are not in one body")
    between = body[body.index(one) : body.index(two) + 1]
    require(len(between) > 1, f"{later} is not behind {first}")
    size = most(one.extent)
    require(size is not None, f"{first} has no greatest length")
    assert size is not None
    again = Substitution(tree.code, {first: variable(later)}).value(value)
    inner = {loop.variable for loop in (*loops_of(one.body), *loops_of(two.body))}
    require(not variables_of(value) & inner, "the value changes with inner loops")
    uses = [node for each, _ in walk(two.body) for node in walk_scalars(*values_of(each))]
    require(again in uses, f"{later} does not compute the value")
    require(not sources(value) & written(between), "the value is computed from memory that changes")
    number = len(tree.buffers)
    kept = tree.code(Kept, number, variable(later), value.dtype)
    put = Write((Keep(number, variable(first), value),))
    change = ValueReplacement(tree, {id(again): kept})
    buffer = PrivateBuffer(value.dtype, size, Space.STACK)
    tree = replaced(tree, first, lambda loop: (with_body(loop, (put, *loop.body)),), [buffer])
    return replaced(tree, later, lambda loop: (with_body(loop, change.body(loop.body)),))


def stage(tree: Tree, at: str, load: Load, over: Sequence[str], padding: int = 0) -> Tree:
    """Copy what a load reads in the loops ``over`` to a buffer, in each iteration of ``at``.

    Lines of the buffer have ``padding`` further elements. Guards of the load are those of the copy.
    """
    loop, above = find(tree, at)
    require_serial_around((*above, loop))
    require(not tasks_in(loop.body), f"{at} holds tasks")
    around = set(guards_around(loop.body, load))
    require(len(around) == 1, f"{at} does not hold the load, or has it behind several guards")
    (guards,) = around
    box = [find(tree, name)[0] for name in over]
    inside = {each.variable for each in loops_of(loop.body)}
    require(set(over) == variables(load.offset) & inside, "the load changes with other loops")
    fixed = not any(changes_with(each.extent, inside) for each in box)
    sizes = [size for size in (most(each.extent) for each in box) if size is not None]
    require(fixed and len(sizes) == len(box), "the lengths change with other loops")
    changed = written(tree.body)
    require(("operand", load.operand) not in changed, f"operand {load.operand} is written")
    number, to = len(tree.buffers), AffineIndex()
    names: list[str] = []
    for each, length in zip(box, sizes, strict=True):
        to = to * (length + padding) + variable(each.variable)
        names.append(fresh(tree, each.variable, names))
    env = dict(zip(over, map(variable, names), strict=True))
    copy = Substitution(tree.code, env)
    truth = load.dtype is BOOL  # in memory, truths are bytes
    source = tree.code(Load, load.operand, load.offset, BYTE) if truth else load
    body: Body = (Write((Keep(number, copy.index(to), copy.value(source)),)),)
    body = (Choose(copy.guards(guards), body, ()),) if guards else body
    for name, each in reversed(list(zip(names, box, strict=True))):
        body = (LoopNode(name, each.extent, body),)
    size = product([sizes[0], *(length + padding for length in sizes[1:])])
    kept = tree.code(Kept, number, to, source.dtype)
    read = tree.code.cast(kept, BOOL) if truth else kept
    change = ValueReplacement(tree, {id(load): read})
    buffer = PrivateBuffer(source.dtype, size, Space.STACK)
    return replaced(
        tree, at, lambda loop: (with_body(loop, (*body, *change.body(loop.body))),), [buffer]
    )


class ValueReplacement(Substitution):
    """Replaces values, given by their ids, by others."""

    def __init__(self, tree: Tree, new: Mapping[int, Scalar]) -> None:
        super().__init__(tree.code, {})
        self.new = new

    def node(self, node: Any) -> Any:
        """Return a node with its operands replaced."""
        return self.new[id(node)] if id(node) in self.new else super().node(node)


def fuse(tree: Tree, first: str, second: str) -> Tree:
    """Join two loops that follow each other into the first one.

    What the second one accesses of memory that the first one writes is that of the same iteration.
    """
    one, above = find(tree, first)
    two, _ = find(tree, second)
    require_serial(one, two)
    body = above[-1].body if above else tree.body
    adjacent = any(pair == (one, two) for pair in zip(body, body[1:], strict=False))
    require(adjacent, f"{second} does not follow {first}")
    require(one.extent == two.extent, f"{first} and {second} have other lengths")
    behind = DeferredSubstitution(tree.code, {second: variable(first)}).body(two.body)
    joined = with_body(one, (*one.body, *behind))
    inner = ranges([joined, *loops_of(joined.body)])
    own = {("buffer", number) for name in (first, second) for number in private(tree, name)}
    changing = (written(one.body) | written(behind)) - own
    before, after = accesses(one.body, changing), accesses(behind, changing)
    for memory in changing:
        ours = [each for each in before if each.memory == memory]
        theirs = [each for each in after if each.memory == memory]
        if ours and theirs:
            keys = {own_part(each.offset, first, inner) for each in (*ours, *theirs)}
            same = len(keys) == 1 and None not in keys
            require(same, f"{second} needs other iterations of {first} in {memory[0]} {memory[1]}")
    tree = replaced(tree, second, lambda _: ())
    return replaced(tree, first, lambda _: (joined,))
