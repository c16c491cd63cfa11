"""Loop trees: the loops, statements and buffers of a kernel as immutable data.

Every loop counts from 0 in steps of one. Where a loop begins and how far its iterations are apart
is part of the indices inside of it. Memory is that of the kernel's operands, which ``Load`` and
``Store`` access, and private buffers, which ``Kept`` and ``Keep`` access.

Fields are ``Final``: a type checker refuses to assign them, not each construction, which frozen
dataclasses make six times as slow. Other fields cache what functions return.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from dataclasses import field
from enum import Enum
from operator import is_
from typing import Any, ClassVar, Final, TypeVar

from ...lazy_dataclasses import dataclass
from ...op_graph.axes.affine import (
    AffineIndex,
    Quotient,
    Remainder,
    Size,
    divide,
    variable,
)
from ...op_graph.axes.index_map import InRange
from ...op_graph.op_graph import Op
from ...op_graph.rows.reducers import Reducer
from ...op_graph.values.dtypes import DType, named_dtype
from ..kernels.ir.nest import Keep, Store
from ..kernels.ir.scalar_code import Least, RandomBits, Scalar, ScalarBuilder
from ..kernels.nests.unrolled_reductions import MAX_SERIAL_TERMS

BYTE = named_dtype("uint8")  # dtype of truths in buffers: compilers vectorise loads of bytes


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
class VectorWidth:
    """Vectors of a kernel: bytes of a register, and bytes of each element.

    With ``halves``, vectors of half the length run loops that they fill and full ones do not. If
    ``compiled``, the compiler makes the vectors, but those of states of several values; it may not
    if loops are ``serial``. Stores to operands ``past`` may then pass by the caches. Loops of open
    length in the nest have at most ``most`` iterations, if that is not 0.
    """

    vector_bytes: int
    itemsize: int
    halves: bool = True
    compiled: bool = False
    serial: bool = False
    past: frozenset[int] = frozenset()
    most: int = 0

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


@dataclass(eq=False, slots=True)
class LoopNode:
    """A loop over ``variable`` from 0 up to ``extent``, with the ``reason`` of its form.

    Variables are unique in a tree. If it ``ends`` early, it may end as soon as no further iteration
    changes the truths that it folds. If it ``hides_strides``, the compiler does not know those of
    its loads, and gathers. ``inner`` and ``used`` cache what ``loops_in`` and ``used`` return.
    """

    variable: Final[str]
    extent: Final[AffineIndex]
    body: Final[tuple[Statement, ...]]
    role: Final[Role] = Role.SERIAL
    kind: Final[Kind] = Kind.MAIN
    reason: Final[str] = ""
    ends: Final[bool] = False
    hides_strides: Final[bool] = False
    inner: Any = field(init=False, default=None)
    used: Any = field(init=False, default=None)

    @property
    def size(self) -> Size | None:
        """Return the number of iterations if it depends on no other loop, else None."""
        return None if self.extent.terms else self.extent.constant

    @property
    def form(self) -> tuple[Role, Kind, str, bool, bool]:
        """Return the fields that say how the loop runs, in the order of the constructor."""
        return self.role, self.kind, self.reason, self.ends, self.hides_strides


class Deferring:
    """Base of statements whose ``LATE`` fields may be computed when they are first read.

    ``deferred`` is then a statement and the substitution to be done in these fields of it, else
    None. ``accessed`` and ``used`` cache what ``accesses`` and ``uses`` return.
    """

    __slots__ = ()
    LATE: ClassVar[tuple[str, ...]] = ()
    deferred: Any

    def __getattr__(self, name: str) -> Any:
        if name not in self.LATE:
            raise AttributeError(f"{type(self).__name__} has no attribute {name}")
        source, substitution = self.deferred
        value = substitution.replaced(getattr(source, name))
        setattr(self, name, value)
        return value


@dataclass(eq=False, slots=True)
class Write(Deferring):
    """Stores to operands and buffers; all values are computed before the first store.

    ``streamed`` are the operands whose stores pass by the caches in calls that write much memory.
    """

    LATE: ClassVar[tuple[str, ...]] = ("stores",)
    stores: Final[tuple[Store | Keep, ...]]
    streamed: Final[frozenset[int]] = frozenset()
    deferred: Any = field(init=False, default=None)
    accessed: Any = field(init=False, default=None)
    used: Any = field(init=False, default=None)


@dataclass(eq=False, slots=True)
class Fold(Deferring):
    """Add an element to a reducer's state, which is at ``offset`` of the buffers ``into``.

    ``position`` is the element's position where the reducer needs it. If ``merges``, ``elements``
    are another state, which is combined with this one.
    """

    LATE: ClassVar[tuple[str, ...]] = ("elements", "position")
    reducer: Final[Reducer]
    into: Final[tuple[int, ...]]
    offset: Final[AffineIndex]
    elements: Final[tuple[Scalar, ...]]
    position: Final[Scalar | None] = None
    merges: Final[bool] = False
    deferred: Any = field(init=False, default=None)
    accessed: Any = field(init=False, default=None)
    used: Any = field(init=False, default=None)


@dataclass(eq=False, slots=True)
class Combine:
    """Combine ``count`` adjacent states, from ``start`` of the buffers ``of`` on, by halves.

    The result is combined with the state at ``offset`` of the buffers ``into``.
    """

    reducer: Final[Reducer]
    into: Final[tuple[int, ...]]
    offset: Final[AffineIndex]
    of: Final[tuple[int, ...]]
    start: Final[AffineIndex]
    count: Final[int]


@dataclass(eq=False, slots=True)
class CachePrefetch:
    """Prefetch the cache line at ``offset`` of an operand; ``stores`` if it will be written.

    Calls in which ``room`` is negative do not. ``nbytes``, if not 0, are fetched from there on, as
    far as ``MAX_PREFETCHED_LINES`` reach.
    """

    operand: Final[int]
    offset: Final[AffineIndex]
    stores: Final[bool] = False
    room: Final[Size] = 0
    nbytes: Final[Size] = 0


@dataclass(eq=False, slots=True)
class Draw:
    """Set the first ``count`` elements of buffer ``into`` to random bits of adjacent positions.

    ``bits`` are the first of them. Those at positions before ``end`` may be drawn too.
    """

    into: Final[int]
    bits: Final[RandomBits]
    count: Final[AffineIndex]
    end: Final[AffineIndex]


@dataclass(eq=False, slots=True)
class Choose:
    """Run ``then`` if all ``guards`` hold, else ``otherwise``.

    ``inner`` and ``used`` cache what ``loops_in`` and ``used`` return.
    """

    guards: Final[tuple[InRange, ...]]
    then: Final[tuple[Statement, ...]]
    otherwise: Final[tuple[Statement, ...]]
    inner: Any = field(init=False, default=None)
    used: Any = field(init=False, default=None)


Statement = LoopNode | Write | Fold | Combine | CachePrefetch | Draw | Choose
Body = tuple[Statement, ...]
Memory = tuple[str, int]  # "operand" or "buffer", and its number


@dataclass(eq=False, slots=True)
class Tree:
    """The statements of a kernel.

    ``buffers`` are its private buffers, by number. ``code`` interns its scalar code. ``refusals``
    are the transformations that were tried in vain, each with the reason. ``vectors`` are those
    that it was scheduled for. ``paths`` caches what ``path_to`` returns.
    """

    body: Final[Body]
    operands: Final[tuple[Op, ...]]
    buffers: Final[tuple[PrivateBuffer, ...]]
    code: Final[ScalarBuilder]
    refusals: Final[tuple[str, ...]] = ()
    vectors: Final[VectorWidth | None] = None
    paths: dict[str, list[Any]] = field(init=False, default_factory=dict)


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
    stack = [(each, above) for each in reversed(body)]
    while stack:
        each, around = stack.pop()
        yield each, around
        if isinstance(each, LoopNode):
            within = (*around, each)
            stack += [(inner, within) for inner in reversed(each.body)]
        elif isinstance(each, Choose):
            stack += [(inner, around) for inner in reversed(body_of(each))]


def vector_stores(tree: Tree, operand: int) -> Iterator[tuple[Store, LoopNode]]:
    """Yield the stores of vectors to an operand, each with the loop over its lanes."""
    for each, above in walk(tree.body):
        if isinstance(each, Write) and above and above[-1].role is Role.VECTOR:
            for store in each.stores:
                if isinstance(store, Store) and store.operand == operand:
                    yield store, above[-1]


def loops_of(body: Body) -> list[LoopNode]:
    """Return all loops, outer ones first."""
    return list(loops_named(body).values())


def loops_named(body: Body) -> dict[str, LoopNode]:
    """Return all loops by their variables, outer ones first."""
    found: dict[str, LoopNode] = {}
    for each in body:
        if isinstance(each, LoopNode):
            found[each.variable] = each
        elif not isinstance(each, Choose):
            continue
        found.update(loops_in(each))
    return found


def loops_in(each: LoopNode | Choose) -> dict[str, LoopNode]:
    """Return the loops inside of a loop or a choice by their variables, outer ones first."""
    found: dict[str, LoopNode] | None = each.inner
    if found is None:
        found = each.inner = loops_named(body_of(each))
    return found


def find(tree: Tree, name: str) -> tuple[LoopNode, tuple[LoopNode, ...]]:
    """Return the loop over a variable and the loops around it."""
    path = path_to(tree, name)
    return path[0], tuple([each for each in path[:0:-1] if isinstance(each, LoopNode)])


def path_to(tree: Tree, name: str) -> list[Any]:
    """Return the loop over a variable, and the loops and choices around it, outermost last."""
    found = tree.paths.get(name)
    if found is None:
        found = tree.paths[name] = _path(tree.body, name)
    if not found:
        raise IllegalScheduleError(f"the tree has no loop over {name}")
    return found


def _path(body: Body, name: str) -> list[Any]:
    """Return the path to the loop over a variable in a body, [] if there is none."""
    for each in body:
        if isinstance(each, LoopNode) and each.variable == name:
            return [each]
        if isinstance(each, (LoopNode, Choose)) and name in loops_in(each):
            return [*_path(body_of(each), name), each]
    return []


def body_of(statement: Statement | None) -> Body:
    """Return the statements inside of a loop or a choice."""
    if isinstance(statement, LoopNode):
        return statement.body
    return (*statement.then, *statement.otherwise) if isinstance(statement, Choose) else ()


def replaced(
    tree: Tree, name: str, change: Callable[[LoopNode], Body], buffers: Sequence[PrivateBuffer] = ()
) -> Tree:
    """Return the tree with the loop over a variable replaced, and with further ``buffers``."""
    old, *around = path_to(tree, name)
    new = change(old)
    one = new[0] if len(new) == 1 and isinstance(new[0], LoopNode) else None
    same = one is not None and one.used is old.used is not None  # so loops around use the same

    def inside(body: Body) -> Body:
        if old not in body:
            return body  # the other side of a choice
        at = body.index(old)
        return (*body[:at], *new, *body[at + 1 :])

    for each in around:
        made: LoopNode | Choose
        if isinstance(each, LoopNode):
            made = with_body(each, inside(each.body))
        else:
            made = replace(each, then=inside(each.then), otherwise=inside(each.otherwise))
        made.used = each.used if same else None
        new, old = (made,), each
    buffers = (*tree.buffers, *buffers) if buffers else tree.buffers
    return Tree(inside(tree.body), tree.operands, buffers, tree.code, tree.refusals, tree.vectors)


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
    return unused(stem, loops_named(tree.body).keys() | taken)


def unused(stem: str, used: Set[str]) -> str:
    """Return a variable like another one that is not in use."""
    stem = stem.rstrip("0123456789").rstrip("_")
    return next(name for k in range(len(used) + 1) if (name := f"{stem}_{k}") not in used)


# Changes ------------------------------------------------------------------------------------------

Node = TypeVar("Node")


def replace(node: Node, **fields: Any) -> Node:
    """Return a tree, a statement or a store with other fields; late ones stay deferred."""
    kind: Any = type(node)
    names = kind.__match_args__
    if isinstance(node, Deferring) and node.deferred and fields.keys().isdisjoint(node.LATE):
        given = {name: getattr(node, name) for name in names if name not in node.LATE} | fields
        source, substitution = node.deferred
        return deferring(kind, source, substitution, given)
    made: Node = kind(*[fields[x] if x in fields else getattr(node, x) for x in names])
    return made


def with_form(loop: LoopNode, role: Role, kind: Kind, reason: str) -> LoopNode:
    """Return a loop of another role, kind and reason."""
    made = LoopNode(loop.variable, loop.extent, loop.body, role, kind, reason, *loop.form[3:])
    made.inner, made.used = loop.inner, loop.used
    return made


def with_body(loop: LoopNode, body: Body) -> LoopNode:
    """Return a loop with another body."""
    return LoopNode(loop.variable, loop.extent, body, *loop.form)


def deferring(kind: type[Node], source: Any, substitution: Any, given: Mapping[str, Any]) -> Node:
    """Return a statement with ``given`` fields whose late ones are substituted when first read."""
    made: Any = object.__new__(kind)
    for name, value in given.items():
        setattr(made, name, value)
    made.deferred = source, substitution
    made.accessed = made.used = None
    found: Node = made
    return found


def changed(node: Node, **fields: Any) -> Node:
    """Return a statement or store with other fields, itself if all of them are the same."""
    for name, new in fields.items():
        old = getattr(node, name)
        parts, others = (old, new) if isinstance(old, tuple) else ((old,), (new,))
        if len(parts) != len(others) or not all(map(is_, parts, others)):
            return replace(node, **fields)
    return node


# Arithmetic ---------------------------------------------------------------------------------------


def divided(index: AffineIndex, by: Size) -> tuple[AffineIndex, AffineIndex]:
    """Return the quotient and the remainder of an index; no iteration divides by 0."""
    if by == 0:
        return variable(Quotient(index, by)), variable(Remainder(index, by))
    return divide(index, by)


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
