"""How much work one element of a pass is: a number that decides how passes are divided.

It follows from the structure of the kernel alone: the order of sums must not change with what C
calls a function, or how it is written.
"""

from __future__ import annotations

from ..ir.nest import Pass
from ..ir.scalar_code import Apply, Kept, LengthNumber, Number, RandomBits, Wrapped, walk
from .loop_depth import ELEMENT, Depths

EXPENSIVE = 8  # an elementary function, in cheap ops


def weight(step: Pass, depths: Depths) -> int:
    """About how many statements of a processor one element of a pass takes."""
    roots = [*step.reduced, *(store.value for store in step.stores)]
    found = len(step.reductions) + len(step.stores)
    for value in walk(*roots):
        free = isinstance(value, (Number, LengthNumber, Kept, Wrapped))
        if not free and depths.value(value) == ELEMENT:
            costly = isinstance(value, RandomBits) or (
                isinstance(value, Apply) and value.row.cost == "expensive"
            )
            found += EXPENSIVE if costly else 1
    return found
