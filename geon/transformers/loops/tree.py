"""Loop trees: the loops, statements and buffers of a kernel as frozen data.

Every loop counts from 0 in steps of one. Where a loop begins and how far its iterations are apart
is part of the indices inside of it. Memory is that of the kernel's operands, which ``Load`` and
``Store`` access, and private buffers, which ``Kept`` and ``Keep`` access.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Any

from ...op_graph.axes.affine import (
    AffineIndex,
    Quotient,
    Remainder,
    Size,
    divide,
    variable,
    weighted_sum,
)
from ...op_graph.axes.index_map import InRange
from ...op_graph.op_graph import Op
from ...op_graph.rows.reducers import Reducer
from ...op_graph.values.dtypes import DType
from ..kernels.ir.nest import Keep, Store
from ..kernels.ir.scalar_code import (
    NODES,
    Apply,
    Clamped,
    IndexNumber,
    Kept,
    Load,
    RandomBits,
    Scalar,
    ScalarBuilder,
    Select,
    Wrapped,
    indices,
    inner_indices,
)
from ..kernels.ir.scalar_code import walk as walk_scalars
from ..kernels.nests.unrolled_reductions import MAX_SERIAL_TERMS


class Role(Enum):
    """The ways in which the iterations of a loop run."""

    SERIAL = "serial"  # one after another
    TASK = "task"  # in any order, on any thread; on a GPU, on a thread or team of threads each
    THREAD = "thread"  # in any order, on the threads of a team, each of which keeps its registers
    SIMD = "simd"  # in any order, in vectors that the compiler makes
    VECTOR = "vector"  # each statement for all iterations at once, as one vector
    UNROLLED = "unrolled"  # each statement for all iterations before the next statement


class Kind(Enum):
    """Origin of a loop, by which rules recognise it."""

    MAIN = "main"  # a loop of the nest, or its whole blocks
    COLUMNS = "columns"  # the rows of a nest that are adjacent in memory
    VECTORS = "vectors"  # the whole vectors of a row
    REST = "rest"  # the iterations that fill no block
    LANES = "lanes"  # the elements of a vector
    COPIES = "copies"  # the iterations of a block that run together
    DIGIT = "digit"  # a short axis of a buffered value, of known length
    BLOCK = "block"  # the iterations of a block of a sum, or of a tile


class Space(Enum):
    """Memory of a private buffer."""

    REGISTER = "register"
    STACK = "stack"
    SHARED = "shared"  # shared by the threads of a team
    SCRATCH = "scratch"  # shared by all tasks


@dataclass(frozen=True, slots=True)
class Least:
    """An atom of a loop's extent: the least of some indices."""

    of: tuple[AffineIndex, ...]

    def __str__(self) -> str:
        return f"min({', '.join(map(str, self.of))})"


@dataclass(frozen=True, slots=True)
class VectorWidth:
    """Vectors of a kernel: bytes of a register, and bytes of each element.

    With ``halves``, vectors of half the length run loops that they fill and full ones do not. If
    ``compiled``, the compiler makes the vectors, but those of states of several values; it may not
    if loops are ``serial``. Stores to operands ``past`` may then pass by the caches.
    """

    vector_bytes: int
    itemsize: int
    halves: bool = True
    compiled: bool = False
    serial: bool = False
    past: frozenset[int] = frozenset()

    @property
    def count(self) -> int:
        """Return the number of elements of a vector."""
        return self.vector_bytes // self.itemsize

    @property
    def block_terms(self) -> int:
        """Return the maximum terms of a sum that are added in their own dtype, in all lanes."""
        return MAX_SERIAL_TERMS * (1 if self.serial else self.vector_bytes // 4)


@dataclass(frozen=True, slots=True)
class PrivateBuffer:
    """A private buffer of ``size`` elements; ``of_rows`` if it is an array of the nest."""

    dtype: DType
    size: Size
    space: Space = Space.REGISTER
    of_rows: bool = False


@dataclass(frozen=True, eq=False, slots=True)
class LoopNode:
    """A loop over ``variable`` from 0 up to ``extent``, with the ``reason`` of its form.

    Variables are unique in a tree. If it ``ends`` early, it may end as soon as no further iteration
    changes the truths that it folds.
    """

    variable: str
    extent: AffineIndex
    body: tuple[Statement, ...]
    role: Role = Role.SERIAL
    kind: Kind = Kind.MAIN
    reason: str = ""
    ends: bool = False
    accessed: Any = field(init=False, default=None)  # cache of ``accesses``

    @property
    def size(self) -> Size | None:
        """Return the number of iterations if it depends on no other loop, else None."""
        return None if self.extent.terms else self.extent.constant


@dataclass(frozen=True, eq=False, slots=True)
class Write:
    """Stores to operands and buffers; all values are computed before the first store.

    ``streamed`` are the operands whose stores pass by the caches in calls that write much memory.
    """

    stores: tuple[Store | Keep, ...]
    streamed: frozenset[int] = frozenset()
    accessed: Any = field(init=False, default=None)


@dataclass(frozen=True, eq=False, slots=True)
class Fold:
    """Add an element to a reducer's state, which is at ``offset`` of the buffers ``into``.

    ``position`` is the element's position where the reducer needs it. If ``merges``, ``elements``
    are another state, which is combined with this one.
    """

    reducer: Reducer
    into: tuple[int, ...]
    offset: AffineIndex
    elements: tuple[Scalar, ...]
    position: Scalar | None = None
    merges: bool = False
    accessed: Any = field(init=False, default=None)


@dataclass(frozen=True, eq=False, slots=True)
class Combine:
    """Combine ``count`` adjacent states, from ``start`` of the buffers ``of`` on, by halves.

    The result is combined with the state at ``offset`` of the buffers ``into``.
    """

    reducer: Reducer
    into: tuple[int, ...]
    offset: AffineIndex
    of: tuple[int, ...]
    start: AffineIndex
    count: int


@dataclass(frozen=True, eq=False, slots=True)
class CachePrefetch:
    """Prefetch the cache line at ``offset`` of an operand; ``stores`` if it will be written.

    Calls in which ``room`` is negative do not. ``nbytes``, if not 0, are fetched from there on, as
    far as ``MAX_PREFETCHED_LINES`` reach.
    """

    operand: int
    offset: AffineIndex
    stores: bool = False
    room: Size = 0
    nbytes: Size = 0


@dataclass(frozen=True, eq=False, slots=True)
class Draw:
    """Set the first ``count`` elements of buffer ``into`` to random bits of adjacent positions.

    ``bits`` are the first of them. Those at positions before ``end`` may be drawn too.
    """

    into: int
    bits: RandomBits
    count: AffineIndex
    end: AffineIndex


@dataclass(frozen=True, eq=False, slots=True)
class Choose:
    """Run ``then`` if all ``guards`` hold, else ``otherwise``."""

    guards: tuple[InRange, ...]
    then: tuple[Statement, ...]
    otherwise: tuple[Statement, ...]


Statement = LoopNode | Write | Fold | Combine | CachePrefetch | Draw | Choose
Body = tuple[Statement, ...]
Offset = tuple[str, int, AffineIndex]  # "operand" or "buffer", its number, an index into it


@dataclass(frozen=True, eq=False, slots=True)
class Tree:
    """The statements of a kernel.

    ``buffers`` are its private buffers, by number. ``code`` interns its scalar code. ``refusals``
    are the transformations that were tried in vain, each with the reason. ``vectors`` are those
    that it was scheduled for.
    """

    body: Body
    operands: tuple[Op, ...]
    buffers: tuple[PrivateBuffer, ...]
    code: ScalarBuilder
    refusals: tuple[str, ...] = ()
    vectors: VectorWidth | None = None


class IllegalScheduleError(Exception):
    """A transformation would change what a tree computes; the message is the reason."""


def require(truth: bool, reason: str) -> None:
    """Raise ``IllegalScheduleError`` unless a condition of a transformation holds."""
    if not truth:
        raise IllegalScheduleError(reason)


# Walks --------------------------------------------------------------------------------------------


def walk(
    body: Body, above: tuple[LoopNode, ...] = ()
) -> Iterator[tuple[Any, tuple[LoopNode, ...]]]:
    """Yield each statement in order with the loops around it, outermost first."""
    for each in body:
        yield each, above
        if isinstance(each, LoopNode):
            yield from walk(each.body, (*above, each))
        elif isinstance(each, Choose):
            yield from walk(each.then, above)
            yield from walk(each.otherwise, above)


def loops_of(body: Body) -> list[LoopNode]:
    """Return all loops, outer ones first."""
    found: list[LoopNode] = []
    for each in body:
        if isinstance(each, LoopNode):
            found.append(each)
            found += loops_of(each.body)
        elif isinstance(each, Choose):
            found += loops_of((*each.then, *each.otherwise))
    return found


def find(tree: Tree, name: str) -> tuple[LoopNode, tuple[LoopNode, ...]]:
    """Return the loop over a variable and the loops around it."""
    path = _path(tree.body, name)
    require(bool(path), f"the tree has no loop over {name}")
    return path[0], tuple(reversed(path[1:]))


def _path(body: Body, name: str) -> list[LoopNode]:
    """Return the loop over a variable and those around it, outermost last; [] if there is none."""
    for each in body:
        if isinstance(each, LoopNode):
            if each.variable == name:
                return [each]
            found = _path(each.body, name)
            if found:
                return [*found, each]
        elif isinstance(each, Choose):
            found = _path((*each.then, *each.otherwise), name)
            if found:
                return found
    return []


def replaced(
    tree: Tree, name: str, change: Callable[[LoopNode], Body], buffers: Sequence[PrivateBuffer] = ()
) -> Tree:
    """Return the tree with the loop over a variable replaced, and with further ``buffers``."""

    def body(statements: Body) -> Body:
        for k, each in enumerate(statements):
            new: Body = (each,)
            if isinstance(each, Choose):
                new = (changed(each, then=body(each.then), otherwise=body(each.otherwise)),)
            elif isinstance(each, LoopNode) and each.variable == name:
                new = change(each)
            elif isinstance(each, LoopNode) and (inner := body(each.body)) is not each.body:
                new = (replace(each, body=inner),)
            if new != (each,):
                return (*statements[:k], *new, *statements[k + 1 :])
        return statements

    return replace(tree, body=body(tree.body), buffers=(*tree.buffers, *buffers))


def values_of(statement: Statement) -> tuple[Scalar, ...]:
    """Return the scalar code of a statement."""
    if isinstance(statement, Write):
        return tuple([store.value for store in statement.stores])
    if isinstance(statement, Fold):
        position = () if statement.position is None else (statement.position,)
        return (*statement.elements, *position)
    if isinstance(statement, Draw):
        return (statement.bits,)
    return ()


def fresh(tree: Tree, stem: str, taken: Sequence[str] = ()) -> str:
    """Return a variable that no loop of the tree has; ``taken`` are others that are in use."""
    used = {loop.variable for loop in loops_of(tree.body)} | set(taken)
    stem = stem.rstrip("0123456789").rstrip("_")
    return next(name for k in range(len(used) + 1) if (name := f"{stem}_{k}") not in used)


# Indices and substitution -------------------------------------------------------------------------


def variables(index: AffineIndex) -> set[str]:
    """Return the loop variables that an index changes with, also inside its atoms."""
    found: set[str] = set()
    for atom in index.terms:
        if isinstance(atom, str):
            found.add(atom)
        elif isinstance(atom, Least):
            found |= set().union(*map(variables, atom.of))
        elif isinstance(atom, NODES):
            found |= variables_of(atom)
        else:
            found |= set().union(*map(variables, inner_indices(atom)))
    return found


def variables_of(*values: Scalar) -> set[str]:
    """Return the loop variables that values change with by the indices in them."""
    found: set[str] = set()
    for node in walk_scalars(*values):
        for index in indices(node):  # the walk also visits the nodes that are atoms
            direct = [atom for atom in index.terms if not isinstance(atom, NODES)]
            found |= variables(AffineIndex([(atom, 1) for atom in direct]))
    return found


class Substitution:
    """Replaces variables by indices, and private buffers by others, in statements."""

    def __init__(
        self,
        code: ScalarBuilder,
        env: Mapping[str, AffineIndex],
        buffers: Mapping[int, int] | None = None,
    ) -> None:
        self.code, self.env, self.buffers = code, env, buffers or {}
        self.known: dict[int, Any] = {}

    def index(self, index: AffineIndex) -> AffineIndex:
        """Return an index with variables replaced."""
        if all(isinstance(atom, str) and atom not in self.env for atom in index.terms):
            return index
        parts = [(self.atom(atom), step) for atom, step in index.terms.items()]
        return weighted_sum(parts, index.constant)

    def atom(self, atom: Any) -> AffineIndex:
        """Return an atom with variables replaced, as an index."""
        if isinstance(atom, str):
            return self.env.get(atom, variable(atom))
        if isinstance(atom, Least):
            options = [self.index(each) for each in atom.of]
            same = all(map(is_same, options, atom.of))
            return variable(atom) if same else least(options)
        if isinstance(atom, (Quotient, Remainder)):
            return divided(self.index(atom.of), atom.by)[isinstance(atom, Remainder)]
        if isinstance(atom, Clamped):
            return variable(Clamped(self.index(atom.of), self.guards(atom.guards)))
        return variable(self.value(atom))

    def guards(self, guards: tuple[InRange, ...]) -> tuple[InRange, ...]:
        """Return guards with variables replaced."""
        return tuple([replace(guard, index=self.index(guard.index)) for guard in guards])

    def value(self, value: Any) -> Any:
        """Return scalar code with variables and buffers replaced."""
        for node in walk_scalars(value, known=self.known):
            self.known[id(node)] = self.node(node)
        return self.known[id(value)]

    def node(self, node: Any) -> Any:
        """Return a node whose children have been replaced: itself where nothing in it is."""
        known, code = self.known, self.code
        if isinstance(node, Apply):
            args = tuple([known[id(each)] for each in node.args])
            same = all(map(is_same, args, node.args))
            return node if same else code(Apply, node.row, args, node.attrs, node.dtype)
        if isinstance(node, (Load, Kept)):
            number = node.operand if isinstance(node, Load) else node.number
            if isinstance(node, Kept):
                number = self.buffers.get(number, number)
            offset = self.index(node.offset)
            same = offset is node.offset and (isinstance(node, Load) or number == node.number)
            return node if same else code(type(node), number, offset, node.dtype)
        if isinstance(node, IndexNumber):
            index = self.index(node.index)
            return node if index is node.index else code(IndexNumber, index, node.dtype)
        if isinstance(node, Select):
            sides = known[id(node.value)], known[id(node.other)]
            return code(Select, self.guards(node.guards), *sides)
        if isinstance(node, Wrapped):
            return code(Wrapped, known[id(node.position)], node.length)
        if isinstance(node, RandomBits):
            stream = [known[id(each)] for each in (node.seed, node.draw, node.call)]
            position = self.index(node.position)
            return code(RandomBits, *stream, position, node.size, node.dtype)
        return node

    def body(self, statements: Body) -> Body:
        """Return statements with variables, also of loops in them, and buffers replaced."""
        return tuple([self.statement(each) for each in statements])

    def statement(self, each: Any) -> Any:
        """Return a statement with variables and buffers replaced."""
        if isinstance(each, LoopNode):
            name = self.atom(each.variable)
            renamed = next(atom for atom in name.terms if isinstance(atom, str))
            body, extent = self.body(each.body), self.index(each.extent)
            return changed(each, variable=renamed, extent=extent, body=body)
        if isinstance(each, Write):
            return changed(each, stores=tuple([self.store(store) for store in each.stores]))
        if isinstance(each, Fold):
            elements = tuple([self.value(element) for element in each.elements])
            position = None if each.position is None else self.value(each.position)
            offset, into = self.index(each.offset), self.numbers(each.into)
            return changed(each, into=into, offset=offset, elements=elements, position=position)
        if isinstance(each, Combine):
            into, of = self.numbers(each.into), self.numbers(each.of)
            offset, start = self.index(each.offset), self.index(each.start)
            return changed(each, into=into, of=of, offset=offset, start=start)
        if isinstance(each, CachePrefetch):
            return changed(each, offset=self.index(each.offset))
        if isinstance(each, Draw):
            (number,), bits = self.numbers((each.into,)), self.value(each.bits)
            count, end = self.index(each.count), self.index(each.end)
            return changed(each, into=number, bits=bits, count=count, end=end)
        then, otherwise = self.body(each.then), self.body(each.otherwise)
        return changed(each, guards=self.guards(each.guards), then=then, otherwise=otherwise)

    def store(self, store: Store | Keep) -> Store | Keep:
        """Return a store with variables and buffers replaced."""
        offset, value = self.index(store.offset), self.value(store.value)
        if isinstance(store, Store):
            return changed(store, offset=offset, value=value)
        (number,) = self.numbers((store.number,))
        return changed(store, number=number, offset=offset, value=value)

    def numbers(self, numbers: tuple[int, ...]) -> tuple[int, ...]:
        """Return the numbers of buffers after replacement."""
        return tuple([self.buffers.get(number, number) for number in numbers])


def changed(node: Any, **fields: Any) -> Any:
    """Return a statement or store with other fields, itself if all of them are the same."""
    for name, new in fields.items():
        old = getattr(node, name)
        parts, others = (old, new) if isinstance(old, tuple) else ((old,), (new,))
        if len(parts) != len(others) or not all(map(is_same, parts, others)):
            return replace(node, **fields)
    return node


def divided(index: AffineIndex, by: Size) -> tuple[AffineIndex, AffineIndex]:
    """Return the quotient and the remainder of an index; no iteration divides by 0."""
    if by == 0:
        return variable(Quotient(index, by)), variable(Remainder(index, by))
    return divide(index, by)


def is_same(one: object, other: object) -> bool:
    """Return True if two objects are one."""
    return one is other


def least(options: Sequence[AffineIndex]) -> AffineIndex:
    """Return the least of some indices, without those that others are known to be below."""
    kept: list[AffineIndex] = []
    for each in options:
        if any(is_known_above(each, other) for other in kept):
            continue
        kept = [other for other in kept if not is_known_above(other, each)] + [each]
    return kept[0] if len(kept) == 1 else variable(Least(tuple(kept)))


def is_known_above(index: AffineIndex, other: AffineIndex) -> bool:
    """Return True if an index is at least ``other`` by a constant difference."""
    gap = index - other
    return not gap.terms and isinstance(gap.constant, int) and gap.constant >= 0


def constant(size: Size) -> AffineIndex:
    """Return a size as an index."""
    return AffineIndex((), size)
