"""Symbolic dimensions of a jaxpr, and names of the leaves of its arguments."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax
import numpy as np

from ...errors import ArgumentError
from ..positional.naming import parsed_length
from ..positional.values import Size


def length_of(dimension: Any) -> Size:
    """Return a dimension as an integer, or as a length expression if it is symbolic."""
    if isinstance(dimension, (int, np.integer)):
        return int(dimension)
    found = parsed_length(str(dimension))
    if found is None:
        raise ArgumentError(
            f"the dimension {dimension} of the jaxpr; geon's lengths cannot express it"
        )
    return found


def with_lengths(value: Any) -> Any:
    """Return a parameter of an equation with its symbolic dimensions as length expressions."""
    if isinstance(value, tuple) and not hasattr(value, "_fields"):
        return tuple([with_lengths(each) for each in value])
    return length_of(value) if jax.export.is_symbolic_dim(value) else value


def path_name(path: Sequence[Any]) -> str:
    """Return the place of a leaf in a structure, such as ``layers.0.w``."""
    parts = []
    for entry in path:
        found = next(
            (getattr(entry, n) for n in ("key", "idx", "name") if hasattr(entry, n)), entry
        )
        parts.append(str(found))
    return ".".join(parts)
