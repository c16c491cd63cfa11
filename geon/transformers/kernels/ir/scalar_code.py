"""Scalar code: what one element of a kernel's results is, as data.

A few kinds of frozen node, made by ``Code``, which gives one node for equal code: what is needed
twice is one node with two users. Indices are affine expressions over the loops' variables; an atom
of one may be a node (a position that is computed) or a ``Clamped`` index. Costs, keys and text are
functions of these values.
"""

from __future__ import annotations

from collections.abc import Container, Hashable, Iterator
from dataclasses import dataclass
from typing import Any, TypeVar

from ....op_graph.axes.affine import Affine, Quotient, Remainder, Size
from ....op_graph.axes.index_map import Guard
from ....op_graph.core.primitive import Primitive
from ....op_graph.rows.elementwise import CAST
from ....op_graph.values.dtypes import INT64, DType, resolve


class Node:
    """What is found of a node once, beside its fields: those that it stands on, by ``below``."""

    __slots__ = ("under",)
    under: tuple[Scalar, ...]


@dataclass(frozen=True, eq=False, slots=True)
class Load(Node):
    """The element at ``offset`` of the kernel's operand number ``operand``."""

    operand: int
    offset: Affine
    dtype: DType


@dataclass(frozen=True, eq=False, slots=True)
class Number(Node):
    """A constant."""

    value: Any
    dtype: DType


@dataclass(frozen=True, eq=False, slots=True)
class LengthNumber(Node):
    """An open length as a value."""

    length: Size
    dtype: DType


@dataclass(frozen=True, eq=False, slots=True)
class IndexNumber(Node):
    """An index as a value."""

    index: Affine
    dtype: DType


@dataclass(frozen=True, eq=False, slots=True)
class Apply(Node):
    """An elementwise row of scalars; a cast's target is ``dtype``."""

    row: Primitive
    args: tuple[Scalar, ...]
    attrs: tuple[Any, ...]
    dtype: DType


@dataclass(frozen=True, eq=False, slots=True)
class Select(Node):
    """``value`` where all ``guards`` hold, else ``other``; both can be computed everywhere."""

    guards: tuple[Guard, ...]
    value: Scalar
    other: Scalar

    @property
    def dtype(self) -> DType:
        """That of what is chosen."""
        return self.value.dtype


@dataclass(frozen=True, eq=False, slots=True)
class Wrapped(Node):
    """A position along ``length`` elements, which counts from their end where it is negative."""

    position: Scalar
    length: Size

    @property
    def dtype(self) -> DType:
        """A position is an int64."""
        return INT64


@dataclass(frozen=True, eq=False, slots=True)
class RandomBits(Node):
    """Bits of draw number ``draw`` of a stream: those of its element number ``position``.

    ``op_graph.random.philox`` defines these bits. The stream's ``seed``, ``draw`` and the number
    of the ``call`` are uint64 scalars; the draw has ``size`` elements.
    """

    seed: Scalar
    draw: Scalar
    call: Scalar
    position: Affine
    size: Size
    dtype: DType


@dataclass(frozen=True, eq=False, slots=True)
class Reduced(Node):
    """Scalar ``part`` of the state that reduction ``number`` of the kernel ended with."""

    number: int
    part: int
    dtype: DType


@dataclass(frozen=True, eq=False, slots=True)
class Running(Node):
    """Scalar ``part`` of a state that a reduction is at; of the ``other`` one where two meet."""

    part: int
    other: bool
    dtype: DType


@dataclass(frozen=True, eq=False, slots=True)
class Kept(Node):
    """The element at ``offset`` of row array ``number``, which an earlier pass has filled."""

    number: int
    offset: Affine
    dtype: DType


@dataclass(frozen=True, eq=False, slots=True)
class Contracted(Node):
    """The finished sum of the kernel's contraction."""

    dtype: DType


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
    """An atom of an index: ``of`` where all ``guards`` hold, else 0, so that it can be read."""

    of: Affine
    guards: tuple[Guard, ...]


class Code:
    """Makes the scalar code of one kernel: equal code is one node."""

    def __init__(self) -> None:
        self._made: dict[Hashable, Any] = {}

    def __call__(self, kind: type[Kind], *fields: Any) -> Kind:
        """The node of this kind with these fields."""
        key = (kind, *fields)
        found = self._made.get(key)
        if found is None:
            found = self._made[key] = kind(*fields)
        return found

    def apply(self, row: Any, *operands: Any) -> Apply:
        """An elementwise row of operands that have the dtypes it takes."""
        _, dtype, _ = resolve(row.rule, tuple([(each.dtype, False) for each in operands]))
        return self(Apply, row, operands, (), dtype)

    def cast(self, x: Any, dtype: DType) -> Any:
        """``x`` in another dtype."""
        return x if x.dtype is dtype else self(Apply, CAST, (x,), (), dtype)

    def number(self, value: Any, dtype: DType) -> Number:
        """A constant; numbers of other bits are other constants, 0.0 and -0.0 too."""
        key = (Number, repr(value), dtype)
        found = self._made.get(key)
        if found is None:
            found = self._made[key] = Number(value, dtype)
        return found


def parts(value: Scalar) -> tuple[Scalar, ...]:
    """The scalars that a node computes with, those in its indices not among them."""
    if isinstance(value, Apply):
        return value.args
    if isinstance(value, Select):
        return value.value, value.other
    if isinstance(value, RandomBits):
        return value.seed, value.draw, value.call
    return (value.position,) if isinstance(value, Wrapped) else ()


def indices(value: Scalar) -> tuple[Affine, ...]:
    """The indices that stand in a node."""
    if isinstance(value, (Load, Kept)):
        return (value.offset,)
    if isinstance(value, RandomBits):
        return (value.position,)
    if isinstance(value, IndexNumber):
        return (value.index,)
    return tuple(guard.index for guard in value.guards) if isinstance(value, Select) else ()


def inside(atom: Hashable) -> tuple[Affine, ...]:
    """The indices that stand in an atom of an index."""
    if isinstance(atom, (Quotient, Remainder)):
        return (atom.of,)
    if isinstance(atom, Clamped):
        return (atom.of, *(guard.index for guard in atom.guards))
    return ()


def below(value: Scalar) -> tuple[Scalar, ...]:
    """The nodes that a node stands on, those in its indices among them."""
    try:
        found: tuple[Scalar, ...] = value.under
    except AttributeError:
        found = (*parts(value), *[node for index in indices(value) for node in positions(index)])
        object.__setattr__(value, "under", found)
    return found


def walk(*roots: Scalar, known: Container[int] = ()) -> Iterator[Scalar]:
    """Every node below these, once, what it stands on first; none below those ``known`` by id."""
    seen: set[int] = set()
    stack: list[Any] = list(reversed(roots))
    while stack:
        value = stack.pop()
        if value is None:  # all that the next one stands on was met
            yield stack.pop()
            continue
        if id(value) in seen or id(value) in known:
            continue
        seen.add(id(value))
        under = below(value)
        if not under:
            yield value
            continue
        stack += (value, None)
        stack += reversed(under)


def positions(index: Affine) -> Iterator[Scalar]:
    """The nodes that are atoms of an index."""
    for atom in index.terms:
        if isinstance(atom, NODES):
            yield atom
        for each in inside(atom):
            yield from positions(each)


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
