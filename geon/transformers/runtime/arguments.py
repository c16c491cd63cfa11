"""Arrangement of a call's positional and keyword arguments, one value per placeholder."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ...errors import ArgumentError


def arrange(
    names: Sequence[str | None], count: int, args: Sequence[Any], keywords: Mapping[str, Any]
) -> list[Any]:
    """Return positional and keyword arguments as one value for each placeholder, in order."""
    if len(args) > count:
        raise ArgumentError(
            f"{describe_needed(names)}, and {len(args)} were given; give one for each"
        )
    values = list(args)
    rest = names[len(args) :]
    for name in keywords:
        if list(names).count(name) > 1:
            places = [f"#{k + 1}" for k, other in enumerate(names) if other == name]
            raise ArgumentError(
                f"{name!r} is the name of several placeholders, {' and '.join(places)}: give them "
                "by position, or another name= each"
            )
        if name not in names:
            raise ArgumentError(
                f"there is no placeholder named {name!r}; {describe_needed(names)}: give "
                "those without a "
                "name by position"
            )
        if name not in rest:
            raise ArgumentError(
                f"placeholder {name!r} was given twice, by position and by name; give it once"
            )
    for position, missing in enumerate(rest, len(args)):
        if missing is None or missing not in keywords:
            label = repr(missing) if missing is not None else f"number {position + 1}"
            raise ArgumentError(
                f"placeholder {label} was not given; {describe_needed(names)}, and "
                f"{len(args) + len(keywords)} were given; give one for each"
            )
        values.append(keywords[missing])
    return values


def describe_needed(names: Sequence[str | None]) -> str:
    """Return text for messages: how many values a call needs."""
    shown = ", ".join(name or f"#{k + 1}" for k, name in enumerate(names)) or "none"
    count = len(names)
    return f"{count} value{' is' if count == 1 else 's are'} needed ({shown})"
