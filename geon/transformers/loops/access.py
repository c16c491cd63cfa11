"""Accesses of statements to memory, and tests whether iterations of a loop are independent."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from ...op_graph.axes.affine import AffineIndex, Quotient, Remainder, Size
from ...op_graph.axes.lengths import exact_quotient, is_never_negative, least_unless_zero
from ..kernels.ir.nest import Keep, Store
from ..kernels.ir.scalar_code import (
    Clamped,
    Kept,
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
    Fold,
    Least,
    LoopNode,
    Tree,
    Write,
    find,
    loops_of,
    require,
    values_of,
    variables,
    walk,
)

READ, WRITE, FOLD = "reads", "writes", "folds"
Memory = tuple[str, int]  # "operand" or "buffer", and its number


@dataclass(frozen=True, slots=True)
class Access:
    """An access to the element at ``offset`` of ``memory``; ``way`` is READ, WRITE or FOLD.

    ``count`` elements follow each other from there.
    """

    memory: Memory
    offset: AffineIndex
    way: str
    count: int = 1


def accesses(body: Body) -> Iterator[Access]:
    """Yield the accesses of statements in order."""
    for each in body:
        if isinstance(each, (LoopNode, Write, Fold)):
            if each.accessed is None:
                found = accesses(each.body) if isinstance(each, LoopNode) else _of_statement(each)
                object.__setattr__(each, "accessed", tuple(found))
            yield from each.accessed
        elif isinstance(each, Choose):
            yield from accesses((*each.then, *each.otherwise))
        elif isinstance(each, Combine):
            for number in each.of:
                yield Access(("buffer", number), each.start, WRITE, each.count)
            for number in each.into:
                yield Access(("buffer", number), each.offset, FOLD)


def _of_statement(each: Write | Fold) -> Iterator[Access]:
    for node in walk_scalars(*values_of(each)):
        if isinstance(node, Load):
            yield Access(("operand", node.operand), node.offset, READ)
        elif isinstance(node, Kept):
            yield Access(("buffer", node.number), node.offset, READ)
    if isinstance(each, Write):
        for store in each.stores:
            yield Access(memory_of(store), store.offset, WRITE)
        return
    for number in each.into:
        yield Access(("buffer", number), each.offset, FOLD)


def memory_of(store: Store | Keep) -> Memory:
    """Return the memory that a store writes."""
    if isinstance(store, Store):
        return "operand", store.operand
    return "buffer", store.number


def used_buffers(body: Body) -> set[int]:
    """Return the numbers of the buffers that statements access."""
    return {each.memory[1] for each in accesses(body) if each.memory[0] == "buffer"}


def operands_in(tree: Tree) -> list[int]:
    """Return the numbers of the operands that a tree accesses, in order of the first access."""
    found = [each.memory[1] for each in accesses(tree.body) if each.memory[0] == "operand"]
    return list(dict.fromkeys(found))


def sizes_in(tree: Tree) -> Iterator[Size]:
    """Yield the sizes in the extents, indices, guards and values of a tree."""
    for each, _ in walk(tree.body):
        if isinstance(each, LoopNode):
            yield from sizes_of(each.extent)
        if isinstance(each, CachePrefetch):
            yield from (each.room, *sizes_of(each.offset))
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
        for each in atom.of if isinstance(atom, Least) else inner_indices(atom):
            yield from sizes_of(each)
        for guard in atom.guards if isinstance(atom, Clamped) else ():
            yield from (guard.low, guard.high)


def private(tree: Tree, name: str) -> list[int]:
    """Return the buffers that each iteration of a loop writes before it reads them, and that
    nothing outside of the loop accesses.
    """
    loop, _ = find(tree, name)
    first: dict[Memory, str] = {}
    for each in accesses(loop.body):
        first.setdefault(each.memory, each.way)
    begun = [memory for memory, way in first.items() if memory[0] == "buffer" and way == WRITE]
    if not begun:
        return []
    inside, uses = (Counter([x.memory for x in accesses(body)]) for body in (loop.body, tree.body))
    return [memory[1] for memory in begun if inside[memory] == uses[memory]]


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


def largest(index: AffineIndex, extents: Mapping[Hashable, Size]) -> int | None:
    """Return an upper bound of an index over loops of known ``extents``, None if there is none."""
    bound = index.constant
    for atom, step in index.terms.items():
        high: Size | None = extents.get(atom, 0) - 1
        if isinstance(atom, Quotient):
            whole = largest(atom.of, extents)
            high = whole // atom.by if whole is not None and isinstance(atom.by, int) else None
        elif isinstance(atom, Remainder):
            high = atom.by - 1
        if not isinstance(high, int) or high < 0 or not isinstance(step, int) or step < 0:
            return None
        bound = bound + step * high
    return bound if isinstance(bound, int) else None


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
        elif own is None or exact_quotient(step, stride * own) is None:
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
    whole = size == 1 or size == stride
    positive = isinstance(stride, int) or least_unless_zero(stride) > 0
    return (stride, 0, *outside.items()) if apart and whole and positive else None


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
    private_memory = {("buffer", k) for k in (private(tree, name) if own is None else own)}
    found = [each for each in accesses(loop.body) if each.memory not in private_memory]
    written = {each.memory for each in found if each.way != READ}
    inner = ranges([loop, *loops_of(loop.body)])
    extents: dict[Hashable, AffineIndex]
    extents = {each.variable: each.extent for each in loops_of(loop.body)}
    for memory in sorted(written):
        here = [each for each in found if each.memory == memory]
        what = f"{memory[0]} {memory[1]}"
        if memory[0] == "operand":
            writes = {each.offset for each in here if each.way == WRITE}
            reads = {footprint(each.offset, extents) for each in here if each.way == READ}
            stored = {footprint(offset, extents) for offset in writes}
            changes = all(name in variables(offset) for offset in writes)
            require(changes, f"iterations of {name} store the same elements of {what}")
            require(reads <= stored, f"iterations of {name} read what others store in {what}")
            continue
        if folds and all(each.way == FOLD for each in here):
            need = not ordered and needs_order(loop.body, memory[1])
            require(not need, f"{what} takes its elements in order")
            continue
        single = all(each.count == 1 for each in here)
        keys = {own_part(each.offset, name, inner) for each in here} if single else {None}
        require(len(keys) == 1 and None not in keys, f"iterations of {name} share {what}")


def footprint(offset: AffineIndex, extents: Mapping[Hashable, AffineIndex]) -> Hashable:
    """Return a key of the elements at ``offset`` in one iteration of a loop.

    It is equal for offsets that differ in the names of loops of equal ``extents`` inside of it.
    """
    terms = Counter((extents.get(atom, atom), step) for atom, step in offset.terms.items())
    return frozenset(terms.items()), offset.constant


def needs_order(body: Body, number: int) -> bool:
    """Return True if a buffer is the state of a reducer that takes elements in ascending order."""
    folds = [each for each, _ in walk(body) if isinstance(each, Fold) and number in each.into]
    return any(each.reducer.step is each.reducer.further for each in folds)


def is_straight(body: Body) -> bool:
    """Return True if a body consists of writes, folds and prefetches."""
    return all(isinstance(each, (Write, Fold, CachePrefetch)) for each in body)
