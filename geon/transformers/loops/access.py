"""Accesses of statements to memory, and tests whether iterations of a loop are independent."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from itertools import permutations
from typing import Final, NamedTuple

from ...lazy_dataclasses import dataclass
from ...op_graph.axes.affine import AffineIndex, Quotient, Remainder, Size
from ...op_graph.axes.lengths import Length, exact_quotient, is_never_negative, least_unless_zero
from ..kernels.ir.loop_variables import changes_with
from ..kernels.ir.nest import Keep, Store
from ..kernels.ir.scalar_code import (
    Clamped,
    Kept,
    Least,
    LengthNumber,
    Load,
    Select,
    Wrapped,
    indices,
    inner_indices,
)
from ..kernels.ir.scalar_code import walk as walk_scalars
from .tree import (
    Body,
    CachePrefetch,
    Choose,
    Combine,
    Draw,
    Fold,
    LoopNode,
    Memory,
    Role,
    Statement,
    Tree,
    Write,
    body_of,
    find,
    loops_in,
    loops_of,
    path_to,
    require,
    values_of,
    walk,
)

READ, WRITE, FOLD = "reads", "writes", "folds"


@dataclass(slots=True)
class Access:
    """An access to the element at ``offset`` of ``memory``; ``way`` is READ, WRITE or FOLD.

    ``count`` elements follow each other from there.
    """

    memory: Final[Memory]
    offset: Final[AffineIndex]
    way: Final[str]
    count: Final[int] = 1


class MemoryUse(NamedTuple):
    """How statements use some memory: the first way in which they access it, and all ways."""

    first: str
    ways: frozenset[str]


ONLY = {way: MemoryUse(way, frozenset([way])) for way in (READ, WRITE, FOLD)}
MemoryUses = Mapping[Memory, MemoryUse]  # in the order of first accesses

SIZES = (int, Length)
Term = tuple[Hashable, Size]  # the iterations of a loop, or an atom of an index, and its stride
Footprint = tuple[frozenset[tuple[Term, int]], Size]  # terms, each as often as it occurs; constant


def accesses(body: Body, memories: Collection[Memory] | None = None) -> list[Access]:
    """Return the accesses of statements in order, by default to all memory."""
    found: list[Access] = []
    for each in body:
        if isinstance(each, LoopNode):
            if memories is None or not used(each).keys().isdisjoint(memories):
                found += accesses(each.body, memories)
        elif isinstance(each, Choose):
            found += accesses((*each.then, *each.otherwise), memories)
        elif memories is None:
            found += _of_statement(each)
        elif not used(each).keys().isdisjoint(memories):
            found += [x for x in _of_statement(each, memories) if x.memory in memories]
    return found


def _of_statement(each: Statement, memories: Collection[Memory] | None = None) -> Iterable[Access]:
    """Return the accesses of a statement; those to other memory may be among them."""
    if isinstance(each, Write):
        return _of_values(each, memories)
    if isinstance(each, Fold):
        into = [Access(("buffer", number), each.offset, FOLD) for number in each.into]
        return [*_of_values(each, memories), *into]
    if isinstance(each, Combine):
        of = [Access(("buffer", number), each.start, WRITE, each.count) for number in each.of]
        return [*of, *[Access(("buffer", number), each.offset, FOLD) for number in each.into]]
    if isinstance(each, Draw):
        return [*_reads(each), Access(("buffer", each.into), AffineIndex(), WRITE)]
    return ()


def _reads(each: Statement) -> Iterator[Access]:
    """Yield the accesses of the values of a statement."""
    for node in walk_scalars(*values_of(each)):
        if isinstance(node, Load):
            yield Access(("operand", node.operand), node.offset, READ)
        elif isinstance(node, Kept):
            yield Access(("buffer", node.number), node.offset, READ)


def _of_values(each: Write | Fold, memories: Collection[Memory] | None) -> Iterable[Access]:
    """Return the accesses of the values of a statement, and of the stores of a write."""
    if each.deferred is None or each.accessed is not None:
        return _given_values(each)
    source, change = each.deferred
    found = [
        Access(memory, change.element(access), access.way)
        for access in _given_values(source)
        for memory in (change.memory(access.memory),)
        if memories is None or memory in memories
    ]
    if memories is None:
        each.accessed = found
    return found


def _given_values(each: Write | Fold) -> Sequence[Access]:
    """Return the accesses of values, and of the stores of a write, that are not deferred."""
    found: list[Access] | None = each.accessed
    if found is None:
        found = list(_reads(each))
        for store in each.stores if isinstance(each, Write) else ():
            found.append(Access(memory_of(store), store.offset, WRITE))
        each.accessed = found
    return found


def uses(body: Body) -> MemoryUses:
    """Return how statements use memory, by memory."""
    if len(body) == 1:
        return used(body[0])
    return joined([pair for each in body for pair in used(each).items()])


def joined(pairs: Iterable[tuple[Memory, MemoryUse]]) -> MemoryUses:
    """Return how memory is used, by memory, given uses of it one after another."""
    found: dict[Memory, MemoryUse] = {}
    for memory, use in pairs:
        old = found.get(memory)
        if old is None:
            found[memory] = use
        elif not use.ways <= old.ways:
            found[memory] = MemoryUse(old.first, old.ways | use.ways)
    return found


def used(each: Statement) -> MemoryUses:
    """Return how a statement uses memory, by memory."""
    found: MemoryUses | None = getattr(each, "used", None)
    if found is None:
        if isinstance(each, (LoopNode, Choose)):
            found = uses(body_of(each))
        else:
            found = joined(_uses_in(each))
        if isinstance(each, (LoopNode, Choose, Write, Fold)):
            each.used = found
    return found


def _uses_in(each: Statement) -> Iterator[tuple[Memory, MemoryUse]]:
    """Yield how a statement without others in it uses memory: offsets are not computed for it."""
    if isinstance(each, (Write, Fold)) and each.deferred is not None and each.accessed is None:
        source, change = each.deferred
        for access in _given_values(source):
            yield change.memory(access.memory), ONLY[access.way]
        for number in each.into if isinstance(each, Fold) else ():
            yield ("buffer", number), ONLY[FOLD]
        return
    for access in _of_statement(each):
        yield access.memory, ONLY[access.way]


def stores_results(loop: LoopNode) -> bool:
    """Return True if a loop stores results of the kernel."""
    return any(kind == "operand" and WRITE in use.ways for (kind, _), use in used(loop).items())


def memory_of(store: Store | Keep) -> Memory:
    """Return the memory that a store writes."""
    if isinstance(store, Store):
        return "operand", store.operand
    return "buffer", store.number


def buffer_uses(each: Statement) -> list[tuple[Memory, MemoryUse]]:
    """Return the uses of private buffers in a statement."""
    return [(memory, use) for memory, use in used(each).items() if memory[0] == "buffer"]


def used_buffers(body: Body) -> set[int]:
    """Return the numbers of the buffers that statements access."""
    return {number for kind, number in uses(body) if kind == "buffer"}


def operands_in(tree: Tree) -> list[int]:
    """Return the numbers of the operands that a tree accesses, in order of the first access."""
    return [number for kind, number in uses(tree.body) if kind == "operand"]


def sizes_in(tree: Tree) -> Iterator[Size]:
    """Yield the sizes in the extents, indices, guards and values of a tree."""
    for each, _ in walk(tree.body):
        if isinstance(each, LoopNode):
            yield from sizes_of(each.extent)
        if isinstance(each, CachePrefetch):
            yield from (each.room, each.nbytes, *sizes_of(each.offset))
        if isinstance(each, Draw):
            yield from (*sizes_of(each.count), *sizes_of(each.end))
        for access in accesses((each,)) if not isinstance(each, (LoopNode, Choose)) else ():
            yield from sizes_of(access.offset)
        for guard in each.guards if isinstance(each, Choose) else ():
            yield from (guard.low, guard.high, *sizes_of(guard.index))
        for node in walk_scalars(*values_of(each)):
            for index in indices(node):
                yield from sizes_of(index)
            for guard in node.guards if isinstance(node, Select) else ():
                yield from (guard.low, guard.high)
            if isinstance(node, (LengthNumber, Wrapped)):
                yield node.length


def sizes_of(index: AffineIndex) -> Iterator[Size]:
    """Yield the sizes in an index, also inside of its atoms."""
    yield index.constant
    for atom, step in index.terms.items():
        yield step
        if isinstance(atom, (Quotient, Remainder)):
            yield atom.by
        for each in inner_indices(atom):
            yield from sizes_of(each)
        for guard in atom.guards if isinstance(atom, Clamped) else ():
            yield from (guard.low, guard.high)


def private(tree: Tree, name: str) -> list[int]:
    """Return the buffers that each iteration of a loop writes before it reads them, and that
    nothing outside of the loop accesses.
    """
    loop, *around = path_to(tree, name)
    begun = [memory for memory, use in buffer_uses(loop) if use.first == WRITE]
    for each in (*around, tree) if begun else ():
        body = each.body if isinstance(each, Tree) else body_of(each)
        outside = [used(other) for other in body if other is not loop]
        begun = [memory for memory in begun if not any(memory in uses for uses in outside)]
        loop = each
    return [memory[1] for memory in begun]


def ranges(loops: Sequence[LoopNode]) -> dict[str, Size]:
    """Return the largest number of iterations of loops, where it is known or a length."""
    found: dict[str, Size] = {}
    for loop in loops:
        size = most(loop.extent)
        if size is not None:
            found[loop.variable] = size
    return found


def most(extent: AffineIndex) -> Size | None:
    """Return an upper bound of a loop's extent that depends on no variable, or None."""
    if not extent.terms:
        return extent.constant
    (atom, step), *others = extent.terms.items()
    if others or step != 1 or extent.constant != 0:
        return None
    if isinstance(atom, Remainder):
        return atom.by - 1
    if isinstance(atom, Quotient):
        whole = most(atom.of)
        return None if whole is None else whole // atom.by
    if isinstance(atom, Least):
        sizes = [each.constant for each in atom.of if not each.terms]
        known = [size for size in sizes if isinstance(size, int)]
        return min(known) if known else next(iter(sizes), None)
    return None


def is_natural(index: AffineIndex) -> bool:
    """Return True if an index is known to be at least 0, as the variables of loops are."""
    return is_never_negative(index.constant) and all(
        is_never_negative(step)
        and (
            isinstance(atom, (str, Remainder))
            or (isinstance(atom, Quotient) and is_natural(atom.of))
        )
        for atom, step in index.terms.items()
    )


def own_part(offset: AffineIndex, name: str, extents: Mapping[str, Size]) -> Hashable | None:
    """Return a key of the parts of memory that iterations of a loop have for themselves.

    Accesses with equal keys touch disjoint parts in different iterations. ``extents`` are those of
    the loop and of the loops inside of it. Return None if parts are not known to be disjoint.
    """
    stride = offset.step(name)
    if not isinstance(stride, int):
        return own_block(offset, name, extents)
    if stride <= 0 or not isinstance(offset.constant, int):
        return None
    own, far = extents.get(name), list[tuple[int, Size]]()
    near, outside = offset.constant % stride, {}
    for atom, step in offset.terms.items():
        if atom == name:
            continue
        if not isinstance(atom, str):
            return None
        if atom not in extents:
            outside[atom] = step  # the same in all iterations
            continue
        extent = extents[atom]
        if isinstance(step, int) and isinstance(extent, int) and 0 <= step < stride:
            near += step * max(extent - 1, 0)
        elif own is None or step != stride * own and exact_quotient(step, stride * own) is None:
            if not isinstance(step, int):
                return None
            far.append((step, extent))
    steps = sorted(far)
    sizes = [stride if own is None else stride * own, *(step * size for step, size in steps)]
    above = all(
        isinstance(n, int) and n <= step for n, (step, _) in zip(sizes, steps, strict=False)
    )
    if not above or near >= stride:
        return None
    return (stride, offset.constant // stride, *outside.items(), *steps)


def own_block(offset: AffineIndex, name: str, extents: Mapping[str, Size]) -> Hashable | None:
    """Return the key of ``own_part`` for a stride that is an open length.

    What is accessed in an iteration is then a block of that many elements: the loops inside go
    through it element by element.
    """
    stride, own = offset.step(name), extents[name]
    terms = [(atom, step) for atom, step in offset.terms.items() if atom != name]
    outside = {atom: step for atom, step in terms if atom not in extents}
    inner = {step: extents[str(atom)] for atom, step in terms if atom in extents}
    if offset.constant != 0 or not all(isinstance(atom, str) for atom, _ in terms):
        return None
    size: Size = 1
    while size in inner:
        size = size * inner.pop(size)
    apart = all(exact_quotient(step, stride * own) is not None for step in inner)
    # Loops inside of one that has iterations go through at least one element, so a block of as many
    # elements as they go through is not empty.
    positive = least_unless_zero(stride) > 0 or is_never_negative(stride - 1)
    whole = size == stride or size == 1 and positive
    return (stride, 0, *outside.items()) if apart and whole else None


def require_independent(
    tree: Tree,
    name: str,
    *,
    folds: bool = False,
    ordered: bool = False,
    own: Sequence[int] | None = None,
) -> None:
    """Raise ``IllegalScheduleError`` if iterations of a loop depend on each other.

    With ``folds``, states that iterations share may be folded, unless their reducer needs elements
    in order and these are not ``ordered``. ``own`` are the ``private`` buffers, if known. Results
    of a kernel store each element once, and may share memory with operands that are read at the
    same element.
    """
    loop, _ = find(tree, name)
    inside = {("buffer", k) for k in (private(tree, name) if own is None else own)}
    written = {
        memory for memory, use in used(loop).items() if use != ONLY[READ] and memory not in inside
    }
    found = accesses(loop.body, written)
    inner: dict[str, Size] = {}
    for memory in sorted(written):
        here = [each for each in found if each.memory == memory]
        what = f"{memory[0]} {memory[1]}"
        if memory[0] == "operand":
            writes = {each.offset for each in here if each.way == WRITE}
            changes = all(changes_with(offset, {name}) for offset in writes)
            require(changes, f"iterations of {name} store the same elements of {what}")
            inner_loops = loops_in(loop)
            reads = {footprint(x.offset, inner_loops) for x in here if x.way == READ}
            stores = {footprint(offset, inner_loops) for offset in writes} if reads else set()
            if not with_rests(reads) <= stores | with_rests(stores):
                inner = inner or ranges([loop, *loops_in(loop).values()])
                own_elements = are_apart(here, name, inner)
                require(own_elements, f"iterations of {name} read what others store in {what}")
            continue
        if folds and all(each.way == FOLD for each in here):
            need = not ordered and needs_order(loop.body, memory[1])
            apart = not need or are_apart(here, name, inner)
            require(apart, f"{what} takes its elements in order")
            continue
        inner = inner or ranges([loop, *loops_in(loop).values()])
        require(are_apart(here, name, inner), f"iterations of {name} share {what}")


def are_apart(found: Sequence[Access], name: str, extents: Mapping[str, Size]) -> bool:
    """Return True if accesses to one memory touch disjoint parts in the iterations of a loop.

    ``extents`` are those of the loop and of the loops inside of it.
    """
    if not all(each.count == 1 for each in found):
        return False
    keys = {own_part(each.offset, name, extents) for each in found}
    return len(keys) == 1 and None not in keys


def shared_buffers(tree: Tree, name: str) -> list[int]:
    """Return the private buffers of a loop of which iterations access the same elements."""
    loop, _ = find(tree, name)
    own = {("buffer", number) for number in private(tree, name)}
    found, inner = accesses(loop.body, own), ranges([loop, *loops_in(loop).values()])
    return [
        number
        for kind, number in sorted(own)
        if not are_apart([x for x in found if x.memory == (kind, number)], name, inner)
    ]


def footprint(offset: AffineIndex, loops: Mapping[str, LoopNode]) -> Footprint:
    """Return a key of the elements at an offset in one iteration of the loop around ``loops``.

    Equal keys are of equal elements, whatever loops are called, and whether they are in blocks.
    """
    terms: Counter[Term] = Counter()
    for atom, step in offset.terms.items():
        loop = loops.get(atom) if isinstance(atom, str) else None
        length = atom if loop is None else loop.extent if loop.size is None else loop.size
        if length != 1:
            terms[length, step] += 1
    return _collapsed(terms), offset.constant


def with_rests(found: set[Footprint]) -> set[Footprint]:
    """Return footprints of the same elements: those of blocks and of the rest behind are one."""
    for first, rest in permutations(found, 2):
        both = _with_rest(first, rest)
        if both is not None:
            return with_rests(found - {first, rest} | {both})
    return found


def _collapsed(terms: Counter[Term]) -> frozenset[tuple[Term, int]]:
    """Return terms with loops over blocks joined with those over what is in a block."""
    for (outer, far), (inner, near) in permutations(terms, 2):
        if isinstance(outer, SIZES) and isinstance(inner, SIZES) and far == near * inner:
            both: Counter[Term] = Counter([(outer, far), (inner, near)])
            return _collapsed(terms - both + Counter([(outer * inner, near)]))
    return frozenset(terms.items())


def _with_rest(first: Footprint, rest: Footprint) -> Footprint | None:
    """Return the key of the elements of both if ``rest`` has those behind ``first``, else None."""
    blocks, behind = (Counter(dict(terms)) for terms, _ in (first, rest))
    loops, rests = list((blocks - behind).elements()), list((behind - blocks).elements())
    if len(loops) != 1 or len(rests) > 1:
        return None
    ((length, step),) = loops
    ((more, near),) = rests or [(1, step)]
    if near != step or not isinstance(length, SIZES) or not isinstance(more, SIZES):
        return None
    if rest[1] != first[1] + step * length:
        return None
    return _collapsed((blocks & behind) + Counter([(length + more, step)])), first[1]


def needs_order(body: Body, number: int) -> bool:
    """Return True if a buffer is the state of a reducer that takes elements in ascending order."""
    memory = ("buffer", number)
    for each in body:
        if isinstance(each, Fold) and number in each.into:
            if each.reducer.step is each.reducer.further:
                return True
        elif isinstance(each, (LoopNode, Choose)) and memory in used(each):
            if needs_order(body_of(each), number):
                return True
    return False


def has_direct_indices(loop: LoopNode) -> bool:
    """Return True if all indices inside of a loop are sums of multiples of loop variables."""
    values = [value for each, _ in walk(loop.body) for value in values_of(each)]
    found = [index for node in walk_scalars(*values) for index in indices(node)]
    found += [each.offset for each in accesses(loop.body)]
    found += [each.extent for each in loops_of(loop.body)]
    return all(isinstance(atom, str) for index in found for atom in index.terms)


def is_straight(body: Body) -> bool:
    """Return True if a body consists of writes, folds and prefetches."""
    return all(isinstance(each, (Write, Fold, CachePrefetch)) for each in body)


def is_unrolled(loop: LoopNode) -> bool:
    """Return True if an unrolled loop holds straight code, vectors or other such loops."""
    return all(
        is_straight((each,))
        or (isinstance(each, LoopNode) and each.role in (Role.VECTOR, Role.UNROLLED)
            and is_unrolled(each))
        for each in loop.body
    )  # fmt: skip


def only_folds(loop: LoopNode, fold: Fold | Combine) -> bool:
    """Return True if a loop only folds into the buffers of a fold."""
    uses = used(loop)
    found = [use for k in fold.into if (use := uses.get(("buffer", k))) is not None]
    return all(use == ONLY[FOLD] for use in found)
