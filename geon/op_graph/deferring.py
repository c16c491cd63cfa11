"""Operators of labelled data leave ``data + tensor`` to the tensor, as they leave it to their own.

pandas asks the right operand for ``__pandas_priority__``. xarray asks whether it is one of its
``DataTree``s, which has the operators of every smaller thing: tensors are registered as such, by
Python's virtual subclasses. ``import geon`` loads neither.
"""

from __future__ import annotations

import sys

from .op_graph import Tensor

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
