"""Simplification of ops whose operands are the same op, such as ``x == x``."""

from __future__ import annotations

from typing import Any

from ..building.constants import as_tensor
from ..building.weak import strengthen
from ..op_graph import Op
from ..rows.movement import broadcast
from ..rows.slicing import take
from ..values.dtypes import kind
from .driver import Rules
from .matching import P, Replacement, Wildcard, over_axes

simpler = Rules("one value twice")

TRUE = frozenset(("equal", "less_equal", "greater_equal"))


@simpler.on("equal", "not_equal", "less", "less_equal", "greater", "greater_equal")
def compared_with_itself(op: Op) -> Op | None:
    """x == x is True and x != x False, and so on, for dtypes without NaN."""
    x, y = op.args
    if x is not y or kind(x.dtype) == "f":
        return None
    return over_axes(strengthen(as_tensor(op.primitive.name in TRUE), op.dtype), op)


c, x = Wildcard("c"), Wildcard("x")
simpler.replace("either_is_the_same", Replacement(P.where(c, x, x), x))
simpler.replace(
    "with_itself",
    *(
        Replacement(getattr(P, name)(x, x), x, lambda op, bound: bound["x"].dtype is op.dtype)
        for name in ("maximum", "minimum", "logical_and", "logical_or", "bitwise_and", "bitwise_or")
    ),
)


@simpler.on("concat")
def joined_with_itself(op: Op) -> Op | None:
    """concat([x, x, ...]) is a broadcast of x if x has length 1 along the axis."""
    first: Any = op.args[0]
    axis = first.axes[op.attrs.axis]
    if axis.expression != 1 or any(arg is not first for arg in op.args):
        return None
    return broadcast(take(first, {axis: 0}), op.axes)


TWICE_RULES = simpler.done()
