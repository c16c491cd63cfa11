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
    does not fit. Raises ``NetworkValidationError`` for a key that matches nothing.
    """
    if not isinstance(references, Mapping):
        references = {"default": references}
    values: Resolved = {}
    fallbacks: Resolved = {}
    _resolve(structure, [references], [], values, fallbacks, "", what)
    return values, fallbacks


def _resolve(
    structure: Structure,
    references: Sequence[Any],
    fallback: Sequence[Any],
    values: Resolved,
    fallbacks: Resolved,
    path: str,
    what: str,
) -> None:
    """Fill ``values`` and ``fallbacks`` for one level, to which these references apply."""
    dictionaries = [each for each in references if isinstance(each, Mapping)]
    plain = [each for each in references if not isinstance(each, Mapping)]
    for each in dictionaries:
        for key in each:
            if not isinstance(key, str):
                raise NetworkValidationError(f"{what} {key!r}: a key is a name or a pattern")
            if key not in SPECIAL and not any(fnmatchcase(name, key) for name in structure):
                place = f" of {path[:-1]}" if path else ""
                raise NetworkValidationError(
                    f"{what} {path + key!r} matches nothing{place}: there are "
                    f"{', '.join(map(repr, structure)) or 'no parameters'}"
                )
    own = [each["fallback"] for each in dictionaries if "fallback" in each] or list(fallback)
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
            values[name], fallbacks[name] = {}, {}
            _resolve(inner, found, own, values[name], fallbacks[name], f"{path}{name}.", what)


def structure_of(views: Any) -> dict[str, dict[str, None]]:
    """Return the names of layers with parameters, and of their parameters."""
    return {
        layer: dict.fromkeys(view.parameters.keys())
        for layer, view in views.items()
        if hasattr(view, "keys") and "parameters" in view.keys() and len(view.parameters)
    }
