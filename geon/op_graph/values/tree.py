"""Trees of values: dictionaries, lists, tuples and dataclasses flattened to lists and rebuilt."""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from types import SimpleNamespace
from typing import Any

from ...errors import ArgumentError

# ``Transformer.write`` copies this text to where annotations are evaluated, so none names a class
# before its definition.
Part = Any  # a Structure
Make = Callable[[Part, list[Any]], Any]


def is_mapping(value: Any) -> bool:
    """Return True for a dictionary and its like, and False for a tensor.

    Tensors pass as subclasses of ``Mapping`` once they are registered with xarray's ``DataTree``.
    """
    return isinstance(value, Mapping) and hasattr(type(value), "keys")


def mapped(value: Any, of: Callable[[Any], Any]) -> Any:
    """Return nested lists, tuples, dictionaries and slices with ``of`` applied to their items."""
    if value.__class__ is list or isinstance(value, tuple):
        return getattr(type(value), "_make", type(value))([mapped(item, of) for item in value])
    if is_mapping(value):
        return {key: mapped(item, of) for key, item in value.items()}
    if value.__class__ is slice:
        return slice(*[mapped(v, of) for v in (value.start, value.stop, value.step)])
    return of(value)


class Place(int):
    """The position of a value in a list, in the place of the value."""


def filled(structure: Any, values: Sequence[Any]) -> Any:
    """Return nested containers with each ``Place`` replaced by the value at its position."""
    return mapped(structure, lambda v: values[v] if v.__class__ is Place else v)


def _build(structure: Part, parts: list[Any]) -> Any:
    return structure.build(parts)


class Structure:
    """The shape of a tree of values: a container of parts, which are structures.

    ``keys`` are the keys, indices or field names of the ``parts``. ``like`` is a container that is
    copied; None for the plain one of its kind. ``effect`` is true at the position of an effect,
    which may be None in an equal structure. Two structures are equal if the types of their
    containers, keys and parts are.
    """

    step = "[{!r}]"  # format of the suffix that names a part in messages

    def __init__(
        self,
        keys: Sequence[Any] = (),
        parts: Sequence[Part] = (),
        like: Any = None,
        effect: bool = False,
    ) -> None:
        self.keys, self.parts, self.like, self.effect = tuple(keys), tuple(parts), like, effect

    @property
    def steps(self) -> list[str]:
        """Return the suffixes that name the parts in messages, such as ``['loss']``."""
        return [self.step.format(key) for key in self.keys]

    @property
    def kind(self) -> str:
        """Return the name of the container's type."""
        return "None" if self.like is None else type(self.like).__name__

    @property
    def shallow(self) -> bool:
        """Return True if every part is a single value."""
        return all(part is SINGLE for part in self.parts)

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, Structure)
            and (self.kind, self.steps) == (other.kind, other.steps)
            and self.parts == other.parts
        )

    def __str__(self) -> str:
        if self.effect:
            return "an effect"
        named = zip(self.steps, self.parts, strict=True)
        return f"{self.kind}({', '.join([f'{step}: {part}' for step, part in named])})"

    def build(self, parts: list[Any]) -> Any:
        """Build the container from its parts."""
        return None

    def parts_of(self, given: Any, where: str) -> Sequence[Any]:
        """Return the parts of ``given``; raise ``ArgumentError`` if it has another structure."""
        return ()

    def filled(self, values: Iterator[Any], effect: Any = None, make: Make = _build) -> Any:
        """Return a tree of this structure with ``values`` in order and ``effect`` in effects.

        ``make`` builds each container, from its structure and its parts.
        """
        if self.effect:
            return effect
        return make(self, [part.filled(values, effect, make) for part in self.parts])

    def flat(self, given: Any, where: str) -> list[Any]:
        """Return the single values of ``given`` in order; None stands for a part without any."""
        given_parts = [None] * len(self.parts) if given is None else self.parts_of(given, where)
        every = zip(self.parts, given_parts, self.steps, strict=True)
        return [value for part, piece, step in every for value in part.flat(piece, where + step)]

    def paths(self) -> list[tuple[Any, ...]]:
        """Return the keys from this container to each single value, in order."""
        if self.effect:
            return []
        every = zip(self.keys, self.parts, strict=True)
        return [(key, *path) for key, part in every for path in part.paths()]

    def joined(self, other: Part) -> Part:
        """Return this structure, with effects where it or the equal ``other`` has them."""
        result = copy.copy(self)
        result.parts = tuple([a.joined(b) for a, b in zip(self.parts, other.parts, strict=True)])
        result.effect = self.effect or other.effect
        return result


class Single(Structure):
    """A single value."""

    kind = ""

    def __str__(self) -> str:
        return "a tensor"

    def filled(self, values: Iterator[Any], effect: Any = None, make: Make = _build) -> Any:
        return next(values)

    def flat(self, given: Any, where: str) -> list[Any]:
        return [given]

    def paths(self) -> list[tuple[Any, ...]]:
        return [()]

    def joined(self, other: Part) -> Part:
        return self


SINGLE = Single()


class Items(Structure):
    """A list, or a tuple, which a named tuple is; a tuple without ``like``."""

    def build(self, parts: list[Any]) -> Any:
        """Return a list or tuple of these values."""
        kind: Any = tuple if self.like is None else type(self.like)
        return getattr(kind, "_make", kind)(parts)

    def parts_of(self, given: Any, where: str) -> Sequence[Any]:
        """Return the items."""
        if not isinstance(given, (list, tuple)) or len(given) != len(self.parts):
            raise ArgumentError(
                f"{where} was given {_shown(given)} for {len(self.parts)} results; give a list "
                "with an array or None for each"
            )
        return given


class Table(Structure):
    """A dictionary."""

    def build(self, parts: list[Any]) -> Any:
        """Return a dictionary with these values."""
        items = dict(zip(self.keys, parts, strict=True))
        if self.like is None or type(self.like) is dict:
            return items
        table = copy.copy(self.like)
        table.update(items)
        return table

    def parts_of(self, given: Any, where: str) -> Sequence[Any]:
        """Return the values by key; None for a missing one."""
        if not isinstance(given, Mapping) or not set(given) <= set(self.keys):
            keys = ", ".join(map(repr, self.keys))
            raise ArgumentError(
                f"{where} was given {_shown(given)} for results with the keys {keys}; give a "
                "dictionary with arrays for these, or some of them"
            )
        return [given.get(key) for key in self.keys]


class Fields(Structure):
    """An object with fields; a plain namespace without ``like``."""

    step = ".{}"

    def build(self, parts: list[Any]) -> Any:
        """Return an object with these values."""
        named = zip(self.keys, parts, strict=True)
        if self.like is None:
            return SimpleNamespace(**dict(named))
        thing = copy.copy(self.like)
        for name, value in named:
            object.__setattr__(thing, name, value)  # also works for a frozen dataclass
        return thing

    def parts_of(self, given: Any, where: str) -> Sequence[Any]:
        """Return the values of the fields."""
        if not all(hasattr(given, name) for name in self.keys):
            raise ArgumentError(
                f"{where} was given {_shown(given)} for results with the fields "
                f"{', '.join(self.keys)}; give an object with arrays or None in these"
            )
        return [getattr(given, name) for name in self.keys]


def _shown(given: Any) -> str:
    if isinstance(given, Mapping):
        return f"a dictionary with the keys {', '.join(map(repr, given))}"
    if isinstance(given, (list, tuple)):
        return f"{len(given)} values"
    return type(given).__name__


def structure_of(
    value: Any,
    where: str,
    leaf: Callable[[Any, str], Structure],
    plain: bool = False,
    inside: tuple[int, ...] = (),
) -> Structure:
    """Return the structure of a tree, after ``leaf`` was called with each value in order.

    ``leaf`` takes a value that is no container and its name, which begins with ``where``, and
    returns its structure. With ``plain``, structures build plain tuples and dictionaries, and only
    named tuples and dataclasses like those of the tree. Raises ``ArgumentError`` for a tree that
    contains itself; ``inside`` are the ids of the containers around ``value``.
    """
    form: type[Structure]
    keys: Sequence[Any]
    parts: Iterable[Any]
    if isinstance(value, dict):
        form, keys, parts = Table, list(value), value.values()
    elif isinstance(value, (list, tuple)):
        form, keys, parts = Items, range(len(value)), value
    elif dataclasses.is_dataclass(value) and not isinstance(value, type):
        form, keys = Fields, [field.name for field in dataclasses.fields(value)]
        parts = [getattr(value, name) for name in keys]
    else:
        return leaf(value, where)
    if id(value) in inside:
        raise ArgumentError(f"{where} contains itself; give a structure that ends")
    inside = (*inside, id(value))
    steps = [where + form.step.format(key) for key in keys]
    structures = [
        structure_of(x, at, leaf, plain, inside) for x, at in zip(parts, steps, strict=True)
    ]
    copied = not plain or form is Fields or hasattr(type(value), "_make")
    return form(keys, structures, value if copied else None)


EFFECT = object()  # marks the position of an effect, which has no value, in a structure
NO_VALUE = Structure(effect=True)


def flat(value: Any, where: str) -> tuple[list[tuple[str, Any]], Structure]:
    """Return the single values of a tree with their names, and its structure.

    The names begin with ``where``. None is a structure without values, and so is the mark of an
    effect.
    """
    values: list[tuple[str, Any]] = []

    def leaf(value: Any, name: str) -> Structure:
        if value is None or value is EFFECT:
            return Structure() if value is None else NO_VALUE
        values.append((name, value))
        return SINGLE

    return values, structure_of(value, where, leaf)
