"""Trees of values: dictionaries, lists, tuples and dataclasses flattened to lists and rebuilt."""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from ...errors import ArgumentError
from ..op_graph import Op

Make = Callable[[list[Any]], Any]

EFFECT = object()  # stands where a structure has an effect, which is no value


@dataclasses.dataclass(frozen=True)
class Structure:
    """How values are joined: ``kind`` says by what, ``steps`` name the ``parts``.

    One without a kind is a single value. Two of the same kind, steps and parts are equal: an
    ``effect`` is where another one may have None.
    """

    kind: str = ""
    steps: tuple[str, ...] = ()
    parts: tuple[Structure, ...] = ()
    make: Make = dataclasses.field(default=list, compare=False)
    effect: bool = dataclasses.field(default=False, compare=False)

    def filled(self, values: Iterator[Any], effect: Any = None) -> Any:
        """Such a thing, of these values in order, with ``effect`` where it has effects."""
        if not self.kind:
            return next(values)
        if self.effect:
            return effect
        return self.make([part.filled(values, effect) for part in self.parts])

    def joined(self, other: Structure) -> Structure:
        """This one, with effects where this or an equal one has them."""
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
    """The single values of a structure with their names, which begin with ``where``.

    None is a structure without values, and so is the mark of an effect.
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
    """The kind of a structure, its parts by name, and what makes one of parts; else None."""
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
        object.__setattr__(made, name, part)  # a frozen dataclass is filled too
    return made


def mapped(value: Any, change: Callable[[Op], Any], what: str) -> Any:
    """Return the same structure with ``change`` of each op in it; other values stay as they are.

    Raises ``ArgumentError``, which calls it ``what``, for a structure that contains itself.
    """
    named, structure = flat(value, what)
    return structure.filled(change(v) if isinstance(v, Op) else v for _, v in named)
