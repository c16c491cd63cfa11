"""Coordinates of labelled data that became constants or first values, and xarray's operators.

xarray's operators ask whether the other operand is a ``DataTree``, which has the operators of every
smaller type: tensors are registered as virtual subclasses, so that ``data + tensor`` is left to the
tensor. pandas asks for ``__pandas_priority__``. ``import geon`` loads neither library.
"""

from __future__ import annotations

import sys
from typing import Any

from ..op_graph import Tensor


def coordinates_of(data: Any) -> Any:
    """The coordinates of an array of xarray as a dataset of its own; None where there are none."""
    coords: Any = getattr(data, "coords", None)
    if not hasattr(coords, "to_dataset") or not len(coords):
        return None
    return coords.to_dataset()


def keep_coordinates(op: Tensor, data: Any) -> None:
    """Note the coordinates of ``data`` on the op that was made of it.

    Equal constants are one op: it has the coordinates on which all that it was made of agree.
    """
    found = coordinates_of(data)
    if found is None:
        return
    notes = op.notes()
    if notes.coordinates is None:
        notes.coordinates = found
    else:
        before = notes.coordinates
        other = [name for name in before.coords if not same_coordinate(name, before, found)]
        notes.coordinates = before.drop_vars(other)


def same_coordinate(name: Any, one: Any, two: Any) -> bool:
    """Whether two of xarray's datasets or arrays have the same coordinate of that name."""
    if name not in two.coords:
        return False
    first, second = one.coords[name].variable, two.coords[name].variable
    return set(first.dims) == set(second.dims) and bool(first.equals(second.transpose(*first.dims)))


_registered: list[type] = []


def let_xarray_defer() -> None:
    """Let the operators of xarray's arrays return NotImplemented for tensors, where it is loaded.

    Leaves and constant arrays call it: what is computed has one of them below it.
    """
    if "xarray" in sys.modules and not _registered:
        xarray = sys.modules["xarray"]
        senior = getattr(xarray, "DataTree", None) or getattr(xarray, "Dataset", None)
        if senior is not None:  # it may be half loaded
            senior.register(Tensor)
            _registered.append(senior)
