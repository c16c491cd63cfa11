"""Keys of arguments: parts that are equal only for equal structures of equal values."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

PLAIN = frozenset((str, type(None), np.dtype, type, type(Ellipsis)))
NUMBERS = frozenset((float, int, bool))
MAX_ITEMS = 64  # items of a list of numbers from which on it is not searched


def add_parts(key: list[Any], values: Iterable[Any], leaf: Callable[[Any], Any]) -> None:
    """Append the parts of nested lists, tuples, dictionaries and slices to ``key``.

    Numbers are told apart by type and sign of zero. ``leaf`` returns the part of any other value,
    and of a list of more than ``MAX_ITEMS`` numbers.
    """
    for value in values:
        kind = value.__class__
        if kind in PLAIN:
            key.append(value)
        elif kind in NUMBERS:
            key.append((kind, value or str(value)))
        elif kind is list or isinstance(value, tuple):
            if len(value) > MAX_ITEMS and value[0].__class__ in NUMBERS:
                key.append(leaf(value))
            else:
                key.append((kind, len(value)))
                add_parts(key, value, leaf)
        elif kind is dict:
            key.append((kind, len(value)))
            add_parts(key, value, leaf)
            add_parts(key, value.values(), leaf)
        elif kind is slice:
            key.append(kind)
            add_parts(key, (value.start, value.stop, value.step), leaf)
        elif isinstance(value, np.generic):
            key.append((value.dtype, value.tobytes()))
        else:
            key.append(leaf(value))
