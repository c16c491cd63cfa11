"""Simplification of contractions: broadcast operands are not materialised."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator

from ..axes.axes import Axis
from ..axes.lengths import product
from ..building.constants import as_tensor, scalar_value
from ..building.weak import strengthen
from ..op_graph import Op, Tensor
from ..rows.contraction import contract_two
from ..rows.elementwise import greater, where
from ..rows.leaves import length_value
from ..rows.movement import broadcast, sum_over
from ..values.dtypes import kind
from .driver import Rules
from .matching import is_of, over_axes, tensor

simpler = Rules("simpler contractions")


def of_terms(total: Tensor, factor: Tensor, axes: Iterable[Axis]) -> Tensor:
    """Return ``total``, a sum along ``axes`` that contains ``factor``, or 0 for no terms.

    The guard is needed because ``factor`` may be an infinity or NaN, or negative, which would leave
    NaN or -0 where an empty sum is 0.
    """
    size = product(axis.expression for axis in axes)
    value = scalar_value(factor)
    plain = value is not None and 0 <= value < math.inf
    if kind(total.dtype) != "f" or plain or (isinstance(size, int) and size > 0):
        return total
    nothing = strengthen(as_tensor(0), total.dtype)
    return where.apply(greater.apply(length_value(size), as_tensor(0)), total, nothing)


def _repeated_factors(op: Op) -> Iterator[tuple[Op, Tensor, Op]]:
    """Yield each operand that is a broadcast, the broadcast tensor, and the other operand."""
    for one, other in (op.args, op.args[::-1]):
        if is_of(one, "broadcast"):
            yield one, tensor(one.args[0]), other


def _contracted(op: Op, one: Op, new: Tensor, other: Op, names: tuple[str, ...]) -> Tensor:
    """Return the contraction ``op`` over ``names``, with ``new`` for its operand ``one``."""
    left, right = (new, other) if one is op.args[0] else (other, new)
    return over_axes(contract_two(left, right, names), op)


@simpler.on("dot")
def dot_of_broadcast(op: Op) -> Op | None:
    """dot(broadcast(x), y) -> broadcast(dot(x, y)) for axes that are not summed."""
    for one, x, other in _repeated_factors(op):
        kept = [axis for axis in one.axes if axis in x.axes or axis.name in op.attrs.over]
        if len(kept) < len(one.axes):
            return _contracted(op, one, broadcast(x, kept), other, op.attrs.over)
    return None


@simpler.on("dot")
def dot_of_repeated_factor(op: Op) -> Op | None:
    """dot(broadcast(x), y) -> dot(x, sum(y)) for summed axes along which x was broadcast."""
    for one, x, other in _repeated_factors(op):
        added = tuple([name for name in op.attrs.over if name not in x.axes])
        if not added or op.dtype.itemsize < 4:  # the sum may exceed the range of a half
            continue
        rest = tuple([name for name in op.attrs.over if name in x.axes])
        kept = broadcast(x, [axis for axis in one.axes if axis.name not in added])
        result = _contracted(op, one, kept, sum_over(tensor(other), added), rest)
        return over_axes(of_terms(result, x, [one.axes[name] for name in added]), op)
    return None


DOT_RULES = simpler.done()
