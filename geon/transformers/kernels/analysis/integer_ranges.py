"""Value ranges of integers in scalar code, and simplifications that follow from them.

A position that is computed from a loop index (mirrored, clamped, or counted from the end) then
needs neither the division nor the sign handling of the general formula.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Any

import numpy as np

from ....op_graph.axes.affine import AffineIndex, Quotient, Remainder, Size
from ....op_graph.values.dtypes import SIGNED, UNSIGNED, DType, kind, name_of
from ..ir.scalar_code import Apply, IndexNumber, Number, Scalar, Wrapped, walk

Bounds = tuple[int, int]  # inclusive minimum and maximum


class Bounded:
    """Value ranges of the integers of one kernel; index atoms lie in [0, ``ranges[atom]``)."""

    def __init__(self, ranges: Mapping[Hashable, Size]) -> None:
        self.ranges = ranges
        self.known: dict[int, Bounds | None] = {}

    def forget(self) -> None:
        """Clear the cache, because ``ranges`` have changed."""
        self.known = {}

    def of(self, value: Scalar) -> Bounds | None:
        """Return the bounds of ``value``, or None if they are unknown or exceed its dtype."""
        for node in walk(value, known=self.known):
            found = self.node(node) if kind(node.dtype) == "i" else None
            self.known[id(node)] = found if found and fits(found, node.dtype) else None
        return self.known[id(value)]

    def node(self, value: Scalar) -> Bounds | None:
        """Return the bounds of a node from those of its operands, without regard to overflow."""
        if isinstance(value, Number):
            return int(value.value), int(value.value)
        if isinstance(value, IndexNumber):
            return index_bounds(value.index, self.ranges)
        if not isinstance(value, Apply) or value.row.name not in FORMULAS:
            return None
        operands = [self.known.get(id(each)) for each in value.args]
        found = [each for each in operands if each is not None]
        return FORMULAS[value.row.name](*found) if len(found) == len(operands) else None

    def plainer(self, row: Any, args: tuple[Scalar, ...], dtype: DType) -> Scalar | None:
        """Return the operand that always equals the primitive's value, or None."""
        if kind(dtype) != "i" or row.name not in PLAINER or args[0].dtype is not dtype:
            return None
        bounds = [self.of(each) for each in args]
        found = [each for each in bounds if each is not None]
        if len(found) < len(bounds):
            return None
        chosen = PLAINER[row.name](*found)
        return None if chosen is None or args[chosen].dtype is not dtype else args[chosen]


def index_bounds(index: AffineIndex, ranges: Mapping[Hashable, Size]) -> Bounds | None:
    """Return the bounds of an index, or None if one of its numbers is not known.

    Atoms lie in [0, ``ranges[atom]``).
    """
    if not isinstance(index.constant, int):
        return None
    least = most = index.constant
    for atom, step in index.terms.items():
        bounds = _atom_bounds(atom, ranges)
        if bounds is None or not isinstance(step, int):
            return None
        ends = step * bounds[0], step * bounds[1]
        least, most = least + min(ends), most + max(ends)
    return least, most


def _atom_bounds(atom: Hashable, ranges: Mapping[Hashable, Size]) -> Bounds | None:
    extent = ranges.get(atom)
    if extent is not None:
        return (0, max(extent - 1, 0)) if isinstance(extent, int) else None
    if isinstance(atom, Remainder) and isinstance(atom.by, int):
        return 0, atom.by - 1
    if isinstance(atom, Quotient) and isinstance(atom.by, int):
        of = index_bounds(atom.of, ranges)
        return None if of is None else (of[0] // atom.by, of[1] // atom.by)
    return None


def is_narrow(index: AffineIndex) -> bool:
    """Return True if ``index`` is one wrapped position along an axis of a 32-bit length.

    Compilers vectorise 32-bit quotients of such indices.
    """
    if len(index.terms) != 1 or index.constant != 0:
        return False
    ((atom, step),) = index.terms.items()
    if step != 1 or not isinstance(atom, Wrapped):
        return False
    return isinstance(atom.length, int) and atom.length < 1 << 31


def fits(bounds: Bounds, dtype: DType) -> bool:
    """Return True if a dtype can represent both bounds."""
    info = np.iinfo(name_of(dtype))
    return info.min <= bounds[0] and bounds[1] <= info.max


def _product(x: Bounds, y: Bounds) -> Bounds:
    ends = [first * second for first in x for second in y]
    return min(ends), max(ends)


def _distance(x: Bounds) -> Bounds:
    least = 0 if x[0] <= 0 <= x[1] else min(abs(x[0]), abs(x[1]))
    return least, max(abs(x[0]), abs(x[1]))


def _remainder(x: Bounds, y: Bounds) -> Bounds | None:
    """Return the bounds of x mod y for positive y; the remainder has the divisor's sign."""
    return (0, min(y[1] - 1, x[1]) if x[0] >= 0 else y[1] - 1) if y[0] > 0 else None


FORMULAS: dict[str, Any] = {
    "add": lambda x, y: (x[0] + y[0], x[1] + y[1]),
    "subtract": lambda x, y: (x[0] - y[1], x[1] - y[0]),
    "multiply": _product,
    "negative": lambda x: (-x[1], -x[0]),
    "absolute": _distance,
    "maximum": lambda x, y: (max(x[0], y[0]), max(x[1], y[1])),
    "minimum": lambda x, y: (min(x[0], y[0]), min(x[1], y[1])),
    "mod": _remainder,
    "cast": lambda x: x,
}
# Number of the operand that equals the value, by the bounds of the operands; None if undecided.
PLAINER: dict[str, Any] = {
    "absolute": lambda x: 0 if x[0] >= 0 else None,
    "maximum": lambda x, y: 0 if x[0] >= y[1] else 1 if y[0] >= x[1] else None,
    "minimum": lambda x, y: 0 if x[1] <= y[0] else 1 if y[1] <= x[0] else None,
    "mod": lambda x, y: 0 if x[0] >= 0 and x[1] < y[0] else None,
}


def is_whole(value: Scalar) -> bool:
    """Return True if a value is an integer or a bool."""
    return kind(value.dtype) != "f"


def keeps_values(cast: Apply) -> bool:
    """Return True if a cast widens an integer or bool without changing its value."""
    (value,) = cast.args
    wider = cast.dtype.itemsize > value.dtype.itemsize
    kept = name_of(cast.dtype) not in UNSIGNED or name_of(value.dtype) not in SIGNED
    return is_whole(value) and is_whole(cast) and wider and kept


def before_widening(value: Scalar) -> Scalar:
    """Return the integer or bool that casts widen to ``value``, without changing its value."""
    while isinstance(value, Apply) and value.row.name == "cast" and keeps_values(value):
        (value,) = value.args
    return value
