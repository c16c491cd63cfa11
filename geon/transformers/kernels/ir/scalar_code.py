"""Scalar IR: immutable nodes that compute one element of a kernel's results.

``ScalarBuilder`` interns nodes, so equal code is one node; a common subexpression is a node with
two users.
Indices are affine expressions over loop variables. An atom of an index may be a node (a computed
position) or a ``Clamped`` index. Costs, keys and text are functions of these values.
"""

from __future__ import annotations

from collections.abc import Container, Hashable, Iterator
from typing import Any, Final, TypeVar

from ....lazy_dataclasses import dataclass
from ....op_graph.axes.affine import AffineIndex, Quotient, Remainder, Size
from ....op_graph.axes.index_map import InRange
from ....op_graph.core.primitive import Primitive
from ....op_graph.rows.elementwise import CAST
from ....op_graph.values.dtypes import INT64, DType, resolve


class ScalarNode:
    """Base of nodes: caches in ``under`` the nodes that ``children_of`` returns."""

    __slots__ = ("under",)
    under: tuple[Scalar, ...]


@dataclass(eq=False, slots=True)
class Load(ScalarNode):
    """The element at ``offset`` of the kernel's operand number ``operand``."""

    operand: Final[int]
    offset: Final[AffineIndex]
    dtype: Final[DType]


@dataclass(eq=False, slots=True)
class Number(ScalarNode):
    """A constant."""

    value: Final[Any]
    dtype: Final[DType]


@dataclass(eq=False, slots=True)
class LengthNumber(ScalarNode):
    """An open length as a value."""

    length: Final[Size]
    dtype: Final[DType]


@dataclass(eq=False, slots=True)
class IndexNumber(ScalarNode):
    """An index as a value."""

    index: Final[AffineIndex]
    dtype: Final[DType]


@dataclass(eq=False, slots=True)
class Apply(ScalarNode):
    """An elementwise primitive applied to scalars; the target of a cast is ``dtype``."""

    row: Final[Primitive]
    args: Final[tuple[Scalar, ...]]
    attrs: Final[tuple[Any, ...]]
    dtype: Final[DType]


@dataclass(eq=False, slots=True)
class Select(ScalarNode):
    """``value`` where all ``guards`` hold, else ``other``; both are safe to evaluate everywhere."""

    guards: Final[tuple[InRange, ...]]
    value: Final[Scalar]
    other: Final[Scalar]

    @property
    def dtype(self) -> DType:
        """Return the dtype of the alternatives."""
        return self.value.dtype


@dataclass(eq=False, slots=True)
class Wrapped(ScalarNode):
    """A position along ``length`` elements; negative positions count from the end."""

    position: Final[Scalar]
    length: Final[Size]

    @property
    def dtype(self) -> DType:
        """Return int64, the dtype of positions."""
        return INT64


@dataclass(eq=False, slots=True)
class RandomBits(ScalarNode):
    """Random bits of element number ``position`` of draw ``draw`` of a stream.

    ``op_graph.random.philox`` defines these bits. ``seed``, ``draw`` and ``call``, the number of
    the call, are uint64 scalars. The draw has ``size`` elements.
    """

    seed: Final[Scalar]
    draw: Final[Scalar]
    call: Final[Scalar]
    position: Final[AffineIndex]
    size: Final[Size]
    dtype: Final[DType]


@dataclass(eq=False, slots=True)
class Reduced(ScalarNode):
    """Scalar ``part`` of the final state of reduction ``number`` of the kernel."""

    number: Final[int]
    part: Final[int]
    dtype: Final[DType]


@dataclass(eq=False, slots=True)
class Running(ScalarNode):
    """Scalar ``part`` of a running reduction state; with ``other``, of the second of two states."""

    part: Final[int]
    other: Final[bool]
    dtype: Final[DType]


@dataclass(eq=False, slots=True)
class Kept(ScalarNode):
    """The element at ``offset`` of row array ``number``, which an earlier pass has stored."""

    number: Final[int]
    offset: Final[AffineIndex]
    dtype: Final[DType]


@dataclass(eq=False, slots=True)
class Contracted(ScalarNode):
    """The finished sum of the kernel's contraction."""

    dtype: Final[DType]


Scalar = (
    Load
    | Number
    | LengthNumber
    | IndexNumber
    | Apply
    | Select
    | Wrapped
    | RandomBits
    | Reduced
    | Running
    | Kept
    | Contracted
)
Kind = TypeVar("Kind")


@dataclass(frozen=True, slots=True)
class Clamped:
    """An atom of an index: ``of`` where all ``guards`` hold, else 0, so that it is safe to load."""

    of: AffineIndex
    guards: tuple[InRange, ...]


@dataclass(frozen=True, slots=True)
class Least:
    """An atom of a loop's extent: the least of some indices."""

    of: tuple[AffineIndex, ...]

    def __str__(self) -> str:
        return f"min({', '.join(map(str, self.of))})"


class ScalarBuilder:
    """Builds and interns the scalar code of one kernel: equal code is one node."""

    def __init__(self) -> None:
        self._made: dict[Hashable, Any] = {}

    def __call__(self, kind: type[Kind], *fields: Any) -> Kind:
        """Return the node of this kind with these fields."""
        key = (kind, *fields)
        found = self._made.get(key)
        if found is None:
            found = self._made[key] = kind(*fields)
        return found

    def apply(self, row: Any, *operands: Any) -> Apply:
        """Return an elementwise primitive applied to operands of the dtypes it takes."""
        _, dtype, _ = resolve(row.rule, tuple([(each.dtype, False) for each in operands]))
        return self(Apply, row, operands, (), dtype)

    def cast(self, x: Any, dtype: DType) -> Any:
        """Return ``x`` cast to ``dtype``."""
        return x if x.dtype is dtype else self(Apply, CAST, (x,), (), dtype)

    def number(self, value: Any, dtype: DType) -> Number:
        """Return a constant; constants are distinguished by ``repr``, so 0.0 and -0.0 differ."""
        key = (Number, repr(value), dtype)
        found = self._made.get(key)
        if found is None:
            found = self._made[key] = Number(value, dtype)
        return found


def operands_of(value: Scalar) -> tuple[Scalar, ...]:
    """Return the scalar operands of a node, without those inside its indices."""
    if isinstance(value, Apply):
        return value.args
    if isinstance(value, Select):
        return value.value, value.other
    if isinstance(value, RandomBits):
        return value.seed, value.draw, value.call
    return (value.position,) if isinstance(value, Wrapped) else ()


def indices(value: Scalar) -> tuple[AffineIndex, ...]:
    """Return the indices in a node."""
    kind = type(value)
    if kind is Apply or kind is Number:  # most nodes
        return ()
    if isinstance(value, (Load, Kept)):
        return (value.offset,)
    if isinstance(value, RandomBits):
        return (value.position,)
    if isinstance(value, IndexNumber):
        return (value.index,)
    return tuple(guard.index for guard in value.guards) if isinstance(value, Select) else ()


def inner_indices(atom: Hashable) -> tuple[AffineIndex, ...]:
    """Return the indices inside an atom of an index."""
    if isinstance(atom, (Quotient, Remainder)):
        return (atom.of,)
    if isinstance(atom, Clamped):
        return (atom.of, *(guard.index for guard in atom.guards))
    return atom.of if isinstance(atom, Least) else ()


def children_of(value: Scalar) -> tuple[Scalar, ...]:
    """Return the nodes that a node depends on, including those inside its indices."""
    try:
        found: tuple[Scalar, ...] = value.under
    except AttributeError:
        found = (
            *operands_of(value),
            *[node for index in indices(value) for node in positions(index)],
        )
        value.under = found
    return found


def walk(*roots: Scalar, known: Container[int] = ()) -> Iterator[Scalar]:
    """Yield each node below ``roots`` once, operands first; skip nodes with ids in ``known``."""
    seen: set[int] = set()
    stack: list[Any] = list(reversed(roots))
    while stack:
        value = stack.pop()
        if value is None:  # marker: all operands of the next node were yielded
            yield stack.pop()
            continue
        number = id(value)
        if number in seen or number in known:
            continue
        seen.add(number)
        try:
            under = value.under
        except AttributeError:
            under = children_of(value)
        if not under:
            yield value
            continue
        stack += (value, None, *under[::-1])


def atoms(index: AffineIndex) -> Iterator[Hashable]:
    """Yield the atoms of an index and, recursively, those of the indices inside of them."""
    for atom in index.terms:
        yield atom
        for each in inner_indices(atom):
            yield from atoms(each)


def positions(index: AffineIndex) -> list[Scalar]:
    """Return the nodes that are atoms of an index."""
    return [atom for atom in atoms(index) if isinstance(atom, NODES)]


NODES = (
    Load,
    Number,
    LengthNumber,
    IndexNumber,
    Apply,
    Select,
    Wrapped,
    RandomBits,
    Reduced,
    Running,
    Kept,
    Contracted,
)
