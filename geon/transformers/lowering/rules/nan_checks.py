"""NaN checks: finds the infinities that constants bring into values, such as the -inf of a mask.

``check="nan"`` reports values that are not finite. Where a constant brings infinities in, it
reports only NaN: for ops that move or select these values, and for arithmetic that leaves them
infinite. Ops that make them finite, such as exp, end this, and so do sums.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping

import numpy as np

from ....op_graph.building.constants import constant_value
from ....op_graph.op_graph import Op
from ....op_graph.values.dtypes import kind

CARRYING = ("movement", "indexing", "ordered")
NONE: frozenset[float] = frozenset()


def infinities(ops: Iterable[Op]) -> dict[Op, frozenset[float]]:
    """Return, for each op, the infinities that constants bring into it; arguments before users."""
    found: dict[Op, frozenset[float]] = {}
    for op in ops:
        signs = _signs(op, found)
        if signs:
            found[op] = signs
    return found


def _signs(op: Op, found: Mapping[Op, frozenset[float]]) -> frozenset[float]:
    row = op.primitive
    if row.name == "constant":
        return _written(op)
    brought = frozenset[float]().union(*[found.get(arg, NONE) for arg in op.args])
    if not brought or kind(op.dtype) != "f":
        return NONE
    if row.kind in CARRYING or (row.kind == "elementwise" and (row.is_selection or op.attrs)):
        return brought
    return _computed(op, found) if row.kind == "elementwise" else NONE


def _written(op: Op) -> frozenset[float]:
    """Return the infinities in a constant."""
    if kind(op.dtype) != "f":
        return NONE
    value = np.asarray(constant_value(op), np.float64)
    return frozenset([sign for sign in (math.inf, -math.inf) if (value == sign).any()])


def _computed(op: Op, found: Mapping[Op, frozenset[float]]) -> frozenset[float]:
    """Return the infinities that an elementwise op makes of infinities and finite numbers."""
    assert op.primitive.reference is not None
    made = set()
    for place, arg in enumerate(op.args):
        for sign in found.get(arg, NONE):
            for other in (1.0, -1.0):
                values = [np.float64(other)] * len(op.args)
                values[place] = np.float64(sign)
                with np.errstate(all="ignore"):
                    made.add(float(op.primitive.reference(*values)))
    return frozenset([value for value in made if math.isinf(value)])
