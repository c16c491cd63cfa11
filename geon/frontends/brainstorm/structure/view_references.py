"""References to views by patterns: ``{'Hidden*': {'W': x, 'default': y}, 'fallback': z}``."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any

from ..errors import NetworkValidationError

SPECIAL = ("default", "fallback")
Structure = Mapping[str, Any]
Resolved = dict[str, Any]


def resolve_references(
    structure: Structure, references: Any, what: str = "reference"
) -> tuple[Resolved, Resolved]:
    """Return the values and the fallbacks that references give to each view.

    ``structure`` is nested mappings of names. Both results have its form, with a list of values in
    place of each view: one for each pattern that matched. Keys of ``references`` are names, or
    patterns with ``*``, at each level; a value that is no dictionary is for all below it.
    ``default`` is for what nothing else gives a value, also in dictionaries below its own that have
    none; ``fallback`` is used if a value does not fit. Raises ``NetworkValidationError`` for a key
    that matches nothing.
    """
    values: Resolved = {}
    fallbacks: Resolved = {}
    references = references if isinstance(references, Mapping) else {"default": references}
    keys: dict[tuple[int, str], tuple[bool, str]] = {}
    _resolve(structure, [Applied(references)], values, fallbacks, "", what, keys)
    for matched, message in keys.values():
        if not matched:
            raise NetworkValidationError(message)
    return values, fallbacks


class _Nothing:
    """Stands for a value that a reference does not give."""


@dataclass(frozen=True, eq=False)
class Applied:
    """A reference that applies to a name, with the default and the fallback of those around it."""

    value: Any = _Nothing
    default: Any = _Nothing
    fallback: Any = _Nothing

    def below(self, name: str) -> list[Applied]:
        """Return the references that apply to a name in the structure."""
        if not isinstance(self.value, Mapping):
            return [self]
        default = self.value.get("default", self.default)
        fallback = self.value.get("fallback", self.fallback)
        keys = [key for key in self.value if key not in SPECIAL and fnmatchcase(name, key)]
        if not keys and "default" in self.value:
            keys = ["default"]
        found = [Applied(self.value[key], default, fallback) for key in keys]
        return found or [Applied(_Nothing, default, fallback)]


def _resolve(
    structure: Structure,
    references: Sequence[Applied],
    values: Resolved,
    fallbacks: Resolved,
    path: str,
    what: str,
    keys: dict[tuple[int, str], tuple[bool, str]],
) -> None:
    """Fill ``values`` and ``fallbacks`` for one level, to which these references apply.

    ``keys`` notes for each key, by the identity of its dictionary, if it matches anywhere.
    """
    for each in references:
        for key in each.value if isinstance(each.value, Mapping) else ():
            if not isinstance(key, str):
                raise NetworkValidationError(f"{what} {key!r}: a key is a name or a pattern")
            matched = key in SPECIAL or any(fnmatchcase(name, key) for name in structure)
            place = f" of {path[:-1]}" if path else ""
            message = (
                f"{what} {path + key!r} matches nothing{place}: there are "
                f"{', '.join(map(repr, structure)) or 'no parameters'}"
            )
            known = keys.get((id(each.value), key), (False, message))
            keys[id(each.value), key] = known[0] or matched, known[1]
    for name, inner in structure.items():
        found = [below for each in references for below in each.below(name)]
        if inner is None:
            given = _once(each.value for each in found)
            values[name] = given or _once(each.default for each in found)
            fallbacks[name] = _once(each.fallback for each in found)
        else:
            values[name], fallbacks[name] = {}, {}
            _resolve(inner, found, values[name], fallbacks[name], f"{path}{name}.", what, keys)


def _once(values: Iterable[Any]) -> list[Any]:
    """Return the values that are given, each object once."""
    return list({id(value): value for value in values if value is not _Nothing}.values())


def structure_of(views: Any) -> dict[str, dict[str, None]]:
    """Return the names of layers with parameters, and of their parameters."""
    return {
        layer: dict.fromkeys(view.parameters.keys())
        for layer, view in views.items()
        if hasattr(view, "keys") and "parameters" in view.keys() and len(view.parameters)
    }
