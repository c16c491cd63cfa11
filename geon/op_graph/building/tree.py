"""Trees of values: dictionaries, lists, tuples and dataclasses flattened to lists and rebuilt."""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from ...errors import ArgumentError
from ..op_graph import Op

Make = Callable[[list[Any]], Any]

EFFECT = object()  # marks the position of an effect, which has no value, in a structure


@dataclasses.dataclass(frozen=True)
class Structure:
    """The shape of a tree of values.

    ``kind`` is the type of the container, or "" for a single value. ``steps`` are the keys or
    indices of its ``parts``. ``make`` builds a container from its parts. ``effect`` is true at the
    position of an effect, which may be None in an equal structure. Two structures are equal if
    kind, steps and parts are.
    """

    kind: str = ""
    steps: tuple[str, ...] = ()
    parts: tuple[Structure, ...] = ()
    make: Make = dataclasses.field(default=list, compare=False)
    effect: bool = dataclasses.field(default=False, compare=False)

    def filled(self, values: Iterator[Any], effect: Any = None) -> Any:
        """Return a tree of this structure with ``values`` in order and ``effect`` in effects."""
        if not self.kind:
            return next(values)
        if self.effect:
            return effect
        return self.make([part.filled(values, effect) for part in self.parts])

    def joined(self, other: Structure) -> Structure:
        """Return this structure, with effects where it or the equal ``other`` has them."""
        parts = [one.joined(two) for one, two in zip(self.parts, other.parts, strict=True)]
        effect = self.effect or other.effect
        return dataclasses.replace(self, parts=tuple(parts), effect=effect)

    def __str__(self) -> str:
        if not self.kind or self.effect:
            return "an effect" if self.effect else "a tensor"
        inner = [f"{step}: {part}" for step, part in zip(self.steps, self.parts, strict=True)]
        return f"{self.kind}({', '.join(inner)})"


SINGLE = Structure()
NO_VALUE = Structure("None", (), (), lambda parts: None, effect=True)


def flat(value: Any, where: str) -> tuple[list[tuple[str, Any]], Structure]:
    """Return the single values of a tree with their names, and its structure.

    The names begin with ``where``. None is a structure without values, and so is the mark of an
    effect.
    """
    found: list[tuple[str, Any]] = []
    return found, _taken(value, where, found, ())


def _taken(
    value: Any, where: str, found: list[tuple[str, Any]], inside: tuple[int, ...]
) -> Structure:
    if value is EFFECT:
        return NO_VALUE
    opened = None if isinstance(value, Op) else _opened(value)
    if opened is None:
        found.append((where, value))
        return SINGLE
    if id(value) in inside:
        raise ArgumentError(f"{where} contains itself; give a structure that ends")
    kind, named, make = opened
    inside = (*inside, id(value))
    listed = list(named)
    parts = [_taken(part, where + step, found, inside) for step, part in listed]
    return Structure(kind, tuple([step for step, _ in listed]), tuple(parts), make)


def _opened(value: Any) -> tuple[str, Iterable[tuple[str, Any]], Make] | None:
    """Return the kind of a container, its named parts, and a function that rebuilds it.

    None if ``value`` is a single value.
    """
    if value is None:
        return "None", (), lambda parts: None
    if isinstance(value, dict):
        named = [(f"[{key!r}]", part) for key, part in value.items()]
        return type(value).__name__, named, lambda parts: _dict_like(value, parts)
    if isinstance(value, (list, tuple)):
        named = [(f"[{k}]", part) for k, part in enumerate(value)]
        make = getattr(type(value), "_make", type(value))
        return type(value).__name__, named, make
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        names = [each.name for each in dataclasses.fields(value)]
        named = [(f".{name}", getattr(value, name)) for name in names]
        return type(value).__name__, named, lambda parts: _with(value, names, parts)
    return None


def _dict_like(like: dict[Any, Any], parts: list[Any]) -> dict[Any, Any]:
    items = dict(zip(like, parts, strict=True))
    if type(like) is dict:
        return items
    made = copy.copy(like)
    made.update(items)
    return made


def _with(like: Any, names: list[str], parts: list[Any]) -> Any:
    made = copy.copy(like)
    for name, part in zip(names, parts, strict=True):
        object.__setattr__(made, name, part)  # works for frozen dataclasses too
    return made


def map_ops(value: Any, change: Callable[[Op], Any], what: str) -> Any:
    """Return the same structure with ``change`` applied to each op; other values are unchanged.

    Raises ``ArgumentError``, with ``what`` as the value's name, for a structure that contains
    itself.
    """
    named, structure = flat(value, what)
    return structure.filled(change(v) if isinstance(v, Op) else v for _, v in named)
