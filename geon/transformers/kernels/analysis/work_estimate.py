"""Estimated work per element of a pass; it decides how passes are split.

It depends on the structure of the kernel alone: the order of summation must not change with the
text of a C function.
"""

from __future__ import annotations

from ..ir.nest import Pass
from ..ir.scalar_code import Apply, Kept, LengthNumber, Number, RandomBits, Wrapped, walk
from .loop_depth import ELEMENT_DEPTH, Depths

ELEMENTARY_COST_OPS = 8  # cost of an elementary function, in cheap operations


def weight(step: Pass, depths: Depths) -> int:
    """Return the approximate number of machine operations per element of a pass."""
    roots = [*step.reduced, *(store.value for store in step.stores)]
    found = len(step.reductions) + len(step.stores)
    for value in walk(*roots):
        free = isinstance(value, (Number, LengthNumber, Kept, Wrapped))
        if not free and depths.value(value) == ELEMENT_DEPTH:
            costly = isinstance(value, RandomBits) or (
                isinstance(value, Apply) and value.row.cost == "expensive"
            )
            found += ELEMENTARY_COST_OPS if costly else 1
    return found
