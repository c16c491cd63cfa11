"""``Axis``, a frozen (name, length); ``Axes``, ordered sets of them; ``Guard`` on lengths."""

from __future__ import annotations

import re
import threading
import weakref
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from ...errors import AxisError, GuardError
from ..core.argument_hints import public
from ..core.source_info import user_call
from ..names import checked_name
from .length_defaults import default_lengths, set_default
from .lengths import Length, may_equal, product, substitute_names

# Matches strings that look like an expression or a number, not like an open name.
_EXPRESSION = re.compile(r"[\d\s.]*|[\w\s.()]*[-+*/%][-\w\s.()+*/%]*")


class Axis:
    """A frozen (name, length).

    ``length`` is a non-negative integer, an integer expression over open names, or left out.
    Without it the axis is open, and its length is the expression ``name``. Axes match by name.

    Setting ``axis.length`` on an open axis gives its open name a default length, which holds
    everywhere; the axis stays open, and None removes the default. Defaults are for axes whose
    length no data determine: data of another length contradict the default and are refused.
    ``geon.lengths`` sets defaults for a block.
    """

    __slots__ = ("__weakref__", "_hash", "expression", "name")

    _hash: int
    name: str
    expression: int | Length

    @public
    def __init__(self, name: str, length: int | Length | str | None = None) -> None:
        if not isinstance(name, str) or not name:
            raise AxisError(f"an axis needs a name that is a non-empty string, not {name!r}")
        if not (type(name) is str and name.isascii()):
            name = checked_name(name)
        object.__setattr__(self, "name", name)
        object.__setattr__(self, "expression", _expression(name, length))
        object.__setattr__(self, "_hash", hash((name, self.expression)))

    def __setattr__(self, attribute: str, value: object) -> None:
        if attribute != "length":
            raise AttributeError(f"an axis is immutable: {attribute!r} of {self} cannot be set")
        object.__setattr__(self, attribute, value)

    def __delattr__(self, attribute: str) -> None:
        raise AttributeError(f"an axis is immutable: {attribute!r} of {self} cannot be deleted")

    @property
    def length(self) -> int | Length:
        """The integer length; for an open axis its default if one is set, else an expression."""
        if isinstance(self.expression, int):
            return self.expression
        defaults = default_lengths()
        if self.expression.names() <= defaults.keys():
            return self.expression.evaluate(defaults)
        return self.expression

    @length.setter
    def length(self, length: int | None) -> None:
        if self.open_name is None:
            raise AxisError(
                f"the length of axis {self} is fixed and cannot be set to {length!r}; "
                f"make an open axis with geon.Axis({self.name!r}) or a new Axis with that length"
            )
        set_default(self.open_name, length)

    @property
    def open_name(self) -> str | None:
        """The open name if the length is just one open name; otherwise None."""
        if isinstance(self.expression, Length) and len(self.expression.terms) == 1:
            monomial, coefficient = self.expression.terms[0]
            if coefficient == 1 and len(monomial) == 1 and monomial[0][1] == 1:
                atom = monomial[0][0]
                return atom if isinstance(atom, str) else None
        return None

    @property
    def prime(self) -> Axis:
        """An axis of the same length named ``name'``, for square weights."""
        return Axis(self.name + "'", self.expression)

    def named(self, name: str) -> Axis:
        """Return an axis of the same length with another name."""
        return Axis(name, self.expression)

    def with_length(self, length: int | Length) -> Axis:
        """Return an axis of the same name with another length."""
        return Axis(self.name, length)

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if not isinstance(other, Axis):
            return NotImplemented  # lets a tensor's own == handle it
        return self.name == other.name and self.expression == other.expression

    def __hash__(self) -> int:
        return self._hash

    def __reduce__(self) -> tuple[type[Axis], tuple[str, int | Length]]:
        return Axis, (self.name, self.expression)

    def __str__(self) -> str:
        if isinstance(self.expression, Length) and self.open_name == self.name:
            return self.name
        return f"{self.name}:{self.expression}"

    def __repr__(self) -> str:
        if self.open_name == self.name:
            return f"Axis({self.name!r})"
        return f"Axis({self.name!r}, {self.expression!s})"


def _expression(name: str, length: int | Length | str | None) -> int | Length:
    if length is None:
        return Length.of(name)
    if isinstance(length, str):
        if _EXPRESSION.fullmatch(length):
            raise AxisError(
                f"the length of axis {name!r} cannot be {length!r}: a string is the name of an "
                'open length; write expressions with lengths, such as 2 * geon.Axis("N").length'
            )
        return Length.of(length)
    if isinstance(length, Length):
        return length
    try:
        integer = length.__index__()
    except AttributeError:
        integer = -1
    if integer < 0 or isinstance(length, bool):
        raise AxisError(
            f"the length of axis {name!r} must be an integer of at least 0 or a length expression, "
            f"not {length!r}"
        )
    return integer


class Axes:
    """An ordered set of axes with distinct names; interned, so equal ones are one object.

    ``Axes(a, b)``, ``Axes([a, b])``, ``Axes((a, b))`` and ``Axes()`` are all accepted. Indexing is
    by position or by name. ``names`` and ``lengths`` (integers, or expressions over open names) are
    in order, ``size`` is the product of the lengths. Raises ``AxisError`` for a duplicate name.
    """

    __slots__ = ("__weakref__", "_axes", "_positions", "lengths", "names", "size")

    _table: weakref.WeakValueDictionary[tuple[Axis, ...], Axes] = weakref.WeakValueDictionary()
    _lock = threading.RLock()

    names: tuple[str, ...]
    lengths: tuple[int | Length, ...]
    size: int | Length
    _axes: tuple[Axis, ...]
    _positions: dict[str, int]

    def __new__(cls, *axes: Axes | Axis | Iterable[Axis | Axes]) -> Axes:
        return axes_of(tuple(_flatten(axes)))

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError("Axes are immutable; build new ones")

    def __delattr__(self, name: str) -> None:
        raise AttributeError("Axes are immutable; build new ones")

    def __reduce__(self) -> tuple[type[Axes], tuple[Axis, ...]]:
        return Axes, self._axes

    def __copy__(self) -> Axes:
        return self

    def __deepcopy__(self, memo: object) -> Axes:
        return self

    def __iter__(self) -> Iterator[Axis]:
        return iter(self._axes)

    def __len__(self) -> int:
        return len(self._axes)

    def __getitem__(self, key: int | str) -> Axis:
        if isinstance(key, str):
            if key not in self._positions:
                raise KeyError(f"no axis {key!r} among {', '.join(self.names) or 'none'}")
            key = self._positions[key]
        return self._axes[key]

    def __contains__(self, item: object) -> bool:
        """Return True if an axis of that name (an ``Axis`` or a string) is among them."""
        return (item.name if isinstance(item, Axis) else item) in self._positions

    def index(self, axis: Axis | str) -> int:
        """Return the position of the axis of that name; raise ``AxisError`` if there is none."""
        name = axis.name if isinstance(axis, Axis) else axis
        if name not in self._positions:
            listed = ", ".join([repr(known) for known in self.names]) or "none"
            raise AxisError(f"no axis {name!r} among {self}; ask for one that is there: {listed}")
        return self._positions[name]

    def get(self, name: str) -> Axis | None:
        """Return the axis of that name, or None."""
        position = self._positions.get(name)
        return None if position is None else self._axes[position]

    def without(self, names: Iterable[Axis | str]) -> Axes:
        """Return the axes whose names are not among these, in order."""
        gone = {name.name if isinstance(name, Axis) else name for name in names}
        return axes_of(tuple([axis for axis in self._axes if axis.name not in gone]))

    def only(self, names: Iterable[Axis | str]) -> Axes:
        """Return the axes whose names are among these, in the order of ``self``."""
        kept = {name.name if isinstance(name, Axis) else name for name in names}
        return axes_of(tuple([axis for axis in self._axes if axis.name in kept]))

    def same_set(self, other: Axes) -> bool:
        """Return True if both have the same names, in any order."""
        return self is other or self._positions.keys() == other._positions.keys()

    def __str__(self) -> str:
        return f"({', '.join(map(str, self._axes))})"

    def __repr__(self) -> str:
        return f"Axes({', '.join(map(repr, self._axes))})"


def _flatten(items: Iterable[Axes | Axis | Iterable[Axis | Axes]]) -> Iterator[Axis]:
    for item in items:
        if isinstance(item, Axis):
            yield item
        elif isinstance(item, Axes):
            yield from item
        elif isinstance(item, (list, tuple)):
            yield from _flatten(item)
        else:
            raise AxisError(
                f"{user_call('axes')} are made of geon.Axis values, not of {item!r}; an axis has a "
                f"name: write {_example(item)}"
            )


def _example(item: Any) -> str:
    """Return advice for a message about a value that is no axis."""
    if isinstance(item, str):
        return f"geon.Axis({item!r}), or geon.Axis({item!r}, 5) where its length is known"
    if isinstance(item, (int, Length)) and not isinstance(item, bool):
        return f'geon.Axis("A", {item}), or geon.Axis("A") where data say its length'
    return 'geon.Axis("A", 5), or geon.Axis("A") where data say its length'


def axes_of(flat: tuple[Axis, ...]) -> Axes:
    """Return the interned ``Axes`` of a tuple that contains only ``Axis`` values."""
    known = Axes._table.get(flat)
    if known is not None:
        return known
    positions: dict[str, int] = {}
    for position, axis in enumerate(flat):
        if axis.name in positions:
            raise AxisError(
                f"axis {axis.name!r} is there twice in ({', '.join(map(str, flat))}); rename "
                f"one, for example with {axis.name}.prime or geon.rename"
            )
        positions[axis.name] = position
    with Axes._lock:
        known = Axes._table.get(flat)
        if known is None:
            known = object.__new__(Axes)
            object.__setattr__(known, "_axes", flat)
            object.__setattr__(known, "names", tuple(positions))
            object.__setattr__(known, "_positions", positions)
            lengths = tuple([axis.expression for axis in flat])
            object.__setattr__(known, "lengths", lengths)
            object.__setattr__(known, "size", product(lengths))
            Axes._table[flat] = known
    return known


def as_axes(axes: Axes | Axis | Iterable[Axis | Axes]) -> Axes:
    """Return ``axes`` as ``Axes``: from ``Axes``, one ``Axis``, or a list or tuple of them."""
    return axes if isinstance(axes, Axes) else Axes(axes)


def axes_may_equal(left: Axes, right: Axes) -> bool:
    """Return True if both have the same names, in any order, and lengths that may be equal."""
    return left is right or (
        left.same_set(right)
        and all(may_equal(axis.expression, right[axis.name].expression) for axis in left)
    )


def new_axis(axis: Any, what: str) -> Axis:
    """Return ``axis``, an argument of ``what``; raise ``AxisError`` if it is no ``Axis``."""
    if not isinstance(axis, Axis):
        raise AxisError(f"{user_call(what)}: {axis!r} is no axis; write {_example(axis)}")
    return axis


class Guard:
    """An assumption about lengths that only data can confirm, checked before each call.

    It is ``left == right``, or ``left <= right`` if ``relation`` is ``<=``. ``meaning`` is the
    start of the error message.
    """

    __slots__ = ("left", "meaning", "relation", "right")

    def __init__(
        self, relation: str, left: int | Length, right: int | Length, meaning: str
    ) -> None:
        self.relation, self.left, self.right, self.meaning = relation, left, right, meaning

    def holds(self, left: int, right: int) -> bool:
        """Return True if the assumption holds for these two integers."""
        return left == right if self.relation == "==" else left <= right

    def refuse_broken(self, lengths: Mapping[str, int], given: str) -> None:
        """Raise ``GuardError`` if the assumption is false for ``lengths``.

        ``given`` describes the lengths in the message.
        """
        left, right = substitute_names(self.left, lengths), substitute_names(self.right, lengths)
        if isinstance(left, int) and isinstance(right, int) and not self.holds(left, right):
            raise GuardError(
                f"{self.meaning}\nwith {given}: {self.left} {self.relation} {self.right} is "
                f"needed, and {left} {self.relation} {right} is false"
            )
