"""References to views by patterns: ``{'Hidden*': {'W': x, 'default': y}, 'fallback': z}``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
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
    ``default`` is for what no other key of its dictionary matches; ``fallback`` is used if a value
    does not fit. Raises ``NetworkValidationError`` for a key that matches nothing anywhere.
    """
    if not isinstance(references, Mapping):
        references = {"default": references}
    resolver = _Resolver(what)
    found = resolver.resolve(structure, [references], [], "")
    for key, (matched, place, names) in resolver.keys.values():
        if not matched:
            raise NetworkValidationError(
                f"{what} {place + key!r} matches nothing{' of ' + place[:-1] if place else ''}: "
                f"there are {', '.join(map(repr, names)) or 'no parameters'}"
            )
    return found


class _Resolver:
    """One resolution; ``keys`` says of each key of a dictionary if it matched, and where it was.

    It is by the identity of the dictionary and by the key.
    """

    def __init__(self, what: str) -> None:
        self.what = what
        self.keys: dict[tuple[int, str], tuple[str, tuple[bool, str, list[str]]]] = {}

    def resolve(
        self, structure: Structure, references: Sequence[Any], fallback: Sequence[Any], path: str
    ) -> tuple[Resolved, Resolved]:
        """Return the values and fallbacks for one level, to which these references apply."""
        dictionaries = [each for each in references if isinstance(each, Mapping)]
        plain = [each for each in references if not isinstance(each, Mapping)]
        for each in dictionaries:
            self._note_keys(each, structure, path)
        own = [each["fallback"] for each in dictionaries if "fallback" in each] or list(fallback)
        values: Resolved = {}
        fallbacks: Resolved = {}
        for name, inner in structure.items():
            found = list(plain)
            for each in dictionaries:
                keys = [key for key in each if key not in SPECIAL and fnmatchcase(name, key)]
                if not keys and "default" in each:
                    keys = ["default"]
                found += [each[key] for key in keys]
            if inner is None:
                values[name], fallbacks[name] = found, list(own)
            else:
                values[name], fallbacks[name] = self.resolve(inner, found, own, f"{path}{name}.")
        return values, fallbacks

    def _note_keys(self, references: Mapping[Any, Any], structure: Structure, path: str) -> None:
        for key in references:
            if not isinstance(key, str):
                raise NetworkValidationError(f"{self.what} {key!r}: a key is a name or a pattern")
            matched = key in SPECIAL or any(fnmatchcase(name, key) for name in structure)
            known = self.keys.get((id(references), key))
            if known is None or matched:
                self.keys[id(references), key] = key, (matched, path, list(structure))


def structure_of(views: Any) -> dict[str, dict[str, None]]:
    """Return the names of layers with parameters, and of their parameters."""
    return {
        layer: dict.fromkeys(view.parameters.keys())
        for layer, view in views.items()
        if hasattr(view, "keys") and "parameters" in view.keys() and len(view.parameters)
    }
