"""Simplification of contractions: broadcast factors are not materialised."""

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
    """What was found of a sum of terms along ``axes``, of a ``factor`` they have in common.

    A sum of nothing is 0, where the factor is not finite too, or a negative one leaves -0.
    """
    size = product(axis.expression for axis in axes)
    value = scalar_value(factor)
    plain = value is not None and 0 <= value < math.inf
    if kind(total.dtype) != "f" or plain or (isinstance(size, int) and size > 0):
        return total
    nothing = strengthen(as_tensor(0), total.dtype)
    return where.apply(greater.apply(length_value(size), as_tensor(0)), total, nothing)


def _repeated_factors(op: Op) -> Iterator[tuple[Op, Tensor, Op]]:
    """Each factor that is repeated, what it repeats, and the other factor."""
    for one, other in (op.args, op.args[::-1]):
        if is_of(one, "broadcast"):
            yield one, tensor(one.args[0]), other


def _contracted(op: Op, one: Op, new: Tensor, other: Op, names: tuple[str, ...]) -> Tensor:
    """``op`` with ``new`` for its factor ``one``, and ``other`` for the other one."""
    left, right = (new, other) if one is op.args[0] else (other, new)
    return over_axes(contract_two(left, right, names), op)


@simpler.on("dot")
def dot_of_broadcast(op: Op) -> Op | None:
    """A factor is not repeated along axes of the result: the product is, where it must be."""
    for one, x, other in _repeated_factors(op):
        kept = [axis for axis in one.axes if axis in x.axes or axis.name in op.attrs[0]]
        if len(kept) < len(one.axes):
            return _contracted(op, one, broadcast(x, kept), other, op.attrs[0])
    return None


@simpler.on("dot")
def dot_of_repeated_factor(op: Op) -> Op | None:
    """What a factor repeats along summed axes is multiplied with the sum of the other one."""
    for one, x, other in _repeated_factors(op):
        added = tuple([name for name in op.attrs[0] if name not in x.axes])
        if not added or op.dtype.itemsize < 4:  # the sum alone may be out of a half's range
            continue
        rest = tuple([name for name in op.attrs[0] if name in x.axes])
        kept = broadcast(x, [axis for axis in one.axes if axis.name not in added])
        found = _contracted(op, one, kept, sum_over(tensor(other), added), rest)
        return over_axes(of_terms(found, x, [one.axes[name] for name in added]), op)
    return None


DOT_RULES = simpler.done()
