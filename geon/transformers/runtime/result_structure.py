"""Structures of results: nested tuples, dictionaries and objects with fields."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import SimpleNamespace
from typing import Any

from ...errors import ArgumentError

Part = Any  # a Layout, or None for a single value


class ResultLayout:
    """A structure with parts, each a nested layout or ``None`` for a single value.

    ``steps`` are the suffixes that name the parts in messages, such as ``['loss']``.
    """

    steps: Sequence[str] = ()

    def __init__(self, parts: Sequence[Part]) -> None:
        self.parts = tuple(parts)

    def made(self, found: list[Any]) -> Any:
        """Build the structure from its parts."""
        raise NotImplementedError

    def taken(self, given: Any, where: str) -> Sequence[Any]:
        """Return the parts of ``given``; raise ``ArgumentError`` if it has another structure."""
        raise NotImplementedError

    def filled(self, values: Iterator[Any]) -> Any:
        """Build the structure from an iterator over its single values."""
        return self.made([next(values) if p is None else p.filled(values) for p in self.parts])

    def mapped(self, values: Iterator[Any], make: Callable[[Any, list[Any]], Any]) -> Any:
        """Build the same with ``make(layout, parts)`` instead of ``made``."""
        found = [next(values) if p is None else p.mapped(values, make) for p in self.parts]
        return make(self, found)

    def flat(self, given: Any, where: str) -> list[Any]:
        """Return the single values of ``given`` in order; None stands for a part without any."""
        found: list[Any] = []
        pieces = [None] * len(self.parts) if given is None else self.taken(given, where)
        for part, piece, step in zip(self.parts, pieces, self.steps, strict=True):
            found += [piece] if part is None else part.flat(piece, where + step)
        return found


class Items(ResultLayout):
    """A tuple, or a named tuple by its ``_make``."""

    def __init__(
        self,
        parts: Sequence[Part],
        make: Callable[[Sequence[Any]], Any] = tuple,
        names: Sequence[str] = (),
    ) -> None:
        super().__init__(parts)
        self.make, self.names = make, names
        self.steps = [f"[{k}]" for k in range(len(parts))]

    def made(self, found: list[Any]) -> Any:
        return self.make(found)

    def taken(self, given: Any, where: str) -> Sequence[Any]:
        """Return the items."""
        if not isinstance(given, (list, tuple)) or len(given) != len(self.parts):
            raise ArgumentError(
                f"{where} was given {_shown(given)} for {len(self.parts)} results; give a list "
                "with an array or None for each"
            )
        return given


class Table(ResultLayout):
    """A dictionary with these keys."""

    def __init__(self, keys: Sequence[Any], parts: Sequence[Part]) -> None:
        super().__init__(parts)
        self.keys = tuple(keys)
        self.steps = [f"[{key!r}]" for key in keys]

    def made(self, found: list[Any]) -> Any:
        return dict(zip(self.keys, found, strict=True))

    def taken(self, given: Any, where: str) -> Sequence[Any]:
        """Return the values by key; None for a missing one."""
        if not isinstance(given, Mapping) or not set(given) <= set(self.keys):
            keys = ", ".join(map(repr, self.keys))
            raise ArgumentError(
                f"{where} was given {_shown(given)} for results with the keys {keys}; give a "
                "dictionary with arrays for these, or some of them"
            )
        return [given.get(key) for key in self.keys]


class Fields(ResultLayout):
    """An object with these fields: a copy of ``like``, or a plain namespace if that is None."""

    def __init__(self, names: Sequence[str], parts: Sequence[Part], like: Any = None) -> None:
        super().__init__(parts)
        self.names, self.like = tuple(names), like
        self.steps = [f".{name}" for name in names]

    def made(self, found: list[Any]) -> Any:
        """Return an object with these values."""
        if self.like is None:
            return SimpleNamespace(**dict(zip(self.names, found, strict=True)))
        thing = copy.copy(self.like)
        for name, value in zip(self.names, found, strict=True):
            object.__setattr__(thing, name, value)  # also works for a frozen dataclass
        return thing

    def taken(self, given: Any, where: str) -> Sequence[Any]:
        """Return the values of the fields."""
        if not all(hasattr(given, name) for name in self.names):
            raise ArgumentError(
                f"{where} was given {_shown(given)} for results with the fields "
                f"{', '.join(self.names)}; give an object with arrays or None in these"
            )
        return [getattr(given, name) for name in self.names]


def _shown(given: Any) -> str:
    if isinstance(given, Mapping):
        return f"a dictionary with the keys {', '.join(map(repr, given))}"
    if isinstance(given, (list, tuple)):
        return f"{len(given)} values"
    return type(given).__name__
