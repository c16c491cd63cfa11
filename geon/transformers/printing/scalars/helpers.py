"""Helper functions that C text calls, in the order in which a compiler must see them.

The printer of a text knows the helpers that it calls (``c_expressions.calls``). The calls of a
helper itself are read from its definition, which is written by hand.
"""

from __future__ import annotations

import re
from collections import ChainMap
from collections.abc import Callable, Iterable, Mapping
from functools import cache

from .c_functions import FUNCTIONS

_NAME = re.compile(r"geon_\w+")


@cache
def helpers() -> Mapping[str, str]:
    """Return the definitions of all helper functions, by name."""
    from ..elementary.definitions import (
        ELEMENTARY,  # imported late, because a program from the cache needs none
    )

    return ChainMap(*ELEMENTARY.maps, FUNCTIONS)


@cache
def called_by(name: str) -> tuple[str, ...]:
    """Return the helpers that a helper's definition calls, in the order of its text."""
    found = dict.fromkeys(_NAME.findall(helpers()[name]))
    return tuple(other for other in found if other != name and other in helpers())


def shared_text(name: str, text: str) -> str:
    """Return the text that all targets share."""
    return text


def definitions(calls: Iterable[str], instead: Callable[[str, str], str] = shared_text) -> str:
    """Return the definitions of the called helpers, each once and after those it calls.

    ``instead(name, text)`` returns a target's own text of a helper, from its name and the shared
    text.
    """
    found: dict[str, str] = {}
    waiting: list[tuple[str, bool]] = [(name, False) for name in reversed([*calls])]
    while waiting:
        name, called_are_there = waiting.pop()
        if name in found:
            continue
        if called_are_there:
            found[name] = instead(name, helpers()[name])
            continue
        waiting.append((name, True))
        waiting += [(other, False) for other in reversed(called_by(name))]
    return "\n".join(found.values())
