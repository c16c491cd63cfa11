"""Labelled arrays as inputs: their dimensions are matched to axes by name.

An xarray array is recognised by its attributes ``dims`` (a tuple of names) and ``__array__``, a
pandas table by ``axes`` (a list of indexes, which may have names) and ``iloc``. This file imports
only NumPy and geon's errors, because ``Transformer.write`` copies its text into the modules that it
writes.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from typing import Any

import numpy as np

from ...errors import AxisError, FeedError
from .arrays import array_of, is_masked


def dim_names(value: Any) -> tuple[Any, ...] | None:
    """Return the names of the dimensions of labelled data; None for anything else.

    An unnamed index of a pandas table gives None, and an index of several levels gives the tuple of
    their names. A table without any names is not labelled.
    """
    if value.__class__ is np.ndarray:
        return None
    dims = getattr(value, "dims", None)
    if isinstance(dims, tuple) and hasattr(value, "__array__"):
        return dims
    axes = getattr(value, "axes", None)
    if isinstance(axes, list) and hasattr(value, "iloc"):
        names = tuple(map(_index_name, axes))
        return names if any(name is not None for name in names) else None
    return None


def _index_name(index: Any) -> Any:
    levels = tuple(index.names)
    if len(levels) == 1:
        return levels[0]
    return levels if any(name is not None for name in levels) else None


def by_name(
    value: Any, names: Sequence[str], what: str, error: type[AxisError | FeedError] = FeedError
) -> Any:
    """Return a labelled array with its dimensions in the order of ``names``; others unchanged.

    A single unnamed dimension is matched to the one axis that no other dimension names. Raises
    ``error``, with a message that begins with ``what``, if the names differ, and for a list of
    labelled or masked arrays, whose first dimension has no name.
    """
    dims = dim_names(value)
    if dims is None:
        refuse_list(value, what, error)
        return value
    array = array_of(value, what, error)
    if dims == tuple(names):
        return array
    lacking = [name for name in names if name not in dims]
    if dims.count(None) == len(lacking) == 1:
        dims = tuple([lacking[0] if dim is None else dim for dim in dims])
    if len(dims) != len(names) or set(dims) != set(names):
        raise error(f"{what} was given {mismatch(value, dims, array.shape, names)}")
    return array.transpose([dims.index(name) for name in names])


def mismatch(value: Any, dims: Sequence[Any], shape: Sequence[int], names: Sequence[str]) -> str:
    """Return a message that says how data with these dims fail to match the axes, with advice."""
    unknown = [dim for dim in dims if dim not in names]
    lacking = [name for name in names if name not in dims]
    wrong = []
    if unknown:
        wrong.append(f"there is no axis {_quoted(unknown)}")
    if lacking:
        wrong.append(f"the data have no dim {_quoted(lacking)}")
    if not wrong:
        wrong.append("a dim is there twice")
    if hasattr(value, "iloc"):
        cure = TABLE_CURE
        if any(isinstance(dim, tuple) for dim in dims):
            cure = "an index of several levels is one dimension: .to_xarray() makes them dims"
    elif len(unknown) == len(lacking) > 0:
        cure = f"give them these names with .rename({dict(zip(unknown, lacking, strict=True))})"
    else:
        cure = "make them so with .rename({...}), .isel({...}) or .expand_dims({...})"
    return (
        f"{labels(dims, shape)} for the axes ({', '.join(names)}), which are matched by name: "
        f"{' and '.join(wrong)}; {cure}, or give .values to have them taken by position"
    )


TABLE_CURE = (
    "name the index and the columns after the axes, with .rename_axis(index=...) and "
    ".rename_axis(columns=...)"
)


def labels(dims: Sequence[Any], shape: Sequence[int]) -> str:
    """Return the dims of labelled data with their lengths, for a message."""
    both = ", ".join(f"{dim}:{size}" for dim, size in zip(dims, shape, strict=True))
    return f"data with the dims ({both})"


def refuse_list(value: Any, what: str, error: type[AxisError | FeedError]) -> None:
    """Raise ``error`` for a (nested) list that holds labelled or masked arrays."""
    if value.__class__ not in (list, tuple):
        return
    level = value
    while level and not isinstance(level[0], (int, float)):  # a number's siblings are scalars
        types = set(map(type, level))
        for kind in types:
            if (hasattr(kind, "dims") and hasattr(kind, "__array__")) or (
                hasattr(kind, "iloc") and any(map(dim_names, level))
            ):
                raise error(
                    f"{what} was given a list of {kind.__name__}, whose first dimension has no "
                    "name: join them under one, for example with xarray.concat or pandas.concat, "
                    "or give the .values of each to have them taken by position"
                )
        if any(map(is_masked, level)):
            raise error(
                f"{what} was given a list of masked arrays: join them with np.ma.stack, and fill "
                "what is masked with .filled(value)"
            )
        if not types <= {list, tuple}:
            return
        level = list(chain.from_iterable(level))


def _quoted(names: Sequence[Any]) -> str:
    return " or ".join(map(repr, names))
