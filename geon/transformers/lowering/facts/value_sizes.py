"""Sizes of values in bytes, as expressions over open lengths or at a nominal length."""

from __future__ import annotations

from functools import lru_cache

from ....op_graph.axes.lengths import Length, evaluate, names_of
from ....op_graph.op_graph import Op
from ...sizes.limits import NOMINAL_LENGTH


def bytes_of(op: Op) -> int | Length:
    """Return the bytes of a value."""
    return _bytes(op.axes.size, op.dtype.itemsize)


@lru_cache(maxsize=4096)
def _bytes(size: int | Length, itemsize: int) -> int | Length:
    return size * itemsize


def nominal(size: int | Length) -> int:
    """Return a size with each open length set to ``NOMINAL_LENGTH``."""
    return evaluate(size, dict.fromkeys(names_of(size), NOMINAL_LENGTH))
