"""NumPy evaluation of index maps: the reference of every view."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ...errors import IndexRangeError
from ..axes.affine import AffineIndex, Quotient, Remainder
from ..axes.index_map import Position, identity

Array = np.ndarray[Any, Any]


def eval_index_map(op: Any, *arrays: Array) -> Array:
    """Return the value of an op with integer lengths, from the index map of its primitive.

    Raises ``IndexRangeError`` for a run-time index out of range.
    """
    assert op.primitive.index_map is not None
    shape = [int(axis.expression) for axis in op.axes]
    count = math.prod(shape)
    values = np.indices(shape).reshape(len(shape), count)
    work = _Evaluation(arrays, dict(zip(op.axes.names, values, strict=True)))
    out = np.empty(count, arrays[0].dtype)
    left = np.arange(count)
    for piece in op.primitive.index_map(op, identity(op.axes.names)):
        chosen = left
        for guard in piece.guards:
            at = work.values(guard.index, chosen)
            chosen = chosen[(guard.low <= at) & (at < guard.high)]
        names = op.args[piece.arg].axes.names
        index = tuple([work.values(piece.index[name], chosen) for name in names])
        out[chosen] = arrays[piece.arg][index]
        left = np.setdiff1d(left, chosen, assume_unique=True)
    return out.reshape(shape)


class _Evaluation:
    """Evaluates affine indices; ``variables`` has the index along each axis of every element."""

    def __init__(self, arrays: Sequence[Array], variables: Mapping[str, Array]) -> None:
        self.arrays, self.variables = arrays, variables

    def values(self, index: AffineIndex, chosen: Array) -> Array:
        """Return the value of ``index`` at each of the ``chosen`` elements."""
        total = np.full(len(chosen), index.constant)
        for atom, step in index.terms.items():
            total = total + self._atom(atom, chosen) * step
        return total

    def _atom(self, atom: Any, chosen: Array) -> Array:
        if isinstance(atom, Quotient):
            return self.values(atom.of, chosen) // atom.by
        if isinstance(atom, Remainder):
            return self.values(atom.of, chosen) % atom.by
        if not isinstance(atom, Position):
            return self.variables[atom][chosen]
        index = tuple([self.values(at, chosen) for _, at in atom.index])
        indices = np.broadcast_to(self.arrays[atom.arg][index], len(chosen))
        if ((indices < -atom.length) | (indices >= atom.length)).any():
            raise IndexRangeError(f"a position is outside an axis of {atom.length} elements")
        return np.where(indices < 0, indices + atom.length, indices)
