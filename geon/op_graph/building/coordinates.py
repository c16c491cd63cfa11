"""Coordinates of labelled data that became constants or initial values, and xarray's operators.

xarray's operators test whether the other operand is a ``DataTree``, the type to which all smaller
types defer. Tensors are registered as virtual subclasses of it, so that ``data + tensor`` calls the
tensor's operator. pandas looks at ``__pandas_priority__`` instead. ``import geon`` loads neither
library.
"""

from __future__ import annotations

import sys
from typing import Any

from ..op_graph import Tensor


def coordinates_of(data: Any) -> Any:
    """Return the coordinates of an xarray array as a dataset; None if it has none."""
    coords: Any = getattr(data, "coords", None)
    if not hasattr(coords, "to_dataset") or not len(coords):
        return None
    return coords.to_dataset()


def keep_coordinates(op: Tensor, data: Any) -> None:
    """Store the coordinates of ``data`` in the notes of the op that was made from it.

    Equal constants are one op: it keeps the coordinates on which all its sources agree.
    """
    coordinates = coordinates_of(data)
    if coordinates is None:
        return
    notes = op.notes()
    if notes.coordinates is None:
        notes.coordinates = coordinates
    else:
        before = notes.coordinates
        other = [name for name in before.coords if not same_coordinate(name, before, coordinates)]
        notes.coordinates = before.drop_vars(other)


def same_coordinate(name: Any, one: Any, two: Any) -> bool:
    """Return True if two xarray datasets or arrays have the same coordinate of that name."""
    if name not in two.coords:
        return False
    first, second = one.coords[name].variable, two.coords[name].variable
    return set(first.dims) == set(second.dims) and bool(first.equals(second.transpose(*first.dims)))


_registered: list[type] = []


def let_xarray_defer() -> None:
    """Make the operators of xarray's arrays return NotImplemented for tensors, if xarray is loaded.

    The functions that create leaves and constant arrays call it: every tensor has one of these
    below.
    """
    if "xarray" in sys.modules and not _registered:
        xarray = sys.modules["xarray"]
        senior = getattr(xarray, "DataTree", None) or getattr(xarray, "Dataset", None)
        if senior is not None:  # None while xarray is still being imported
            senior.register(Tensor)
            _registered.append(senior)
