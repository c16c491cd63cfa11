"""Products and running products of complex numbers: loops that carry both parts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ....op_graph.axes.axes import Axis
from ....op_graph.building.constants import number
from ....op_graph.op_graph import Op, Tensor
from ....op_graph.regions.scan import scan
from ....op_graph.rows.movement import broadcast, flatten, reorder
from ....op_graph.values.dtypes import DType, real_dtype
from .complex_arithmetic import Parts, Rule, dense, multiplied


def _products(x: Parts, axis: Axis, dtype: DType, exclusive: bool, reverse: bool) -> Any:
    """Return the product along ``axis`` and the running products, as parts."""
    rest = x[0].axes.without((axis.name,))
    first = [broadcast(number(value, dtype), rest) for value in (1, 0)]

    def step(before: list[Tensor], factor: list[Tensor]) -> tuple[list[Tensor], list[Tensor]]:
        after = [*multiplied((before[0], before[1]), (factor[0], factor[1]))]
        return after, before if exclusive else after

    return scan(step, first, list(x), over=axis, reverse=reverse)


def _prod(op: Op, args: Sequence[Parts]) -> Parts:
    x: Any = op.args[0]
    group = x.axes.only(op.attrs.reduced)
    axis = Axis("_".join(op.attrs.reduced), group.size)
    while axis in x.axes.without(op.attrs.reduced):
        axis = axis.prime
    flat = [flatten(broadcast(part, x.axes), group, axis) for part in dense(op, args[0])]
    (re, im), _ = _products((flat[0], flat[1]), axis, real_dtype(op.dtype), False, False)
    return re, im


def _cumprod(op: Op, args: Sequence[Parts]) -> Parts:
    a: Any = op.attrs
    x = [broadcast(part, op.axes) for part in dense(op, args[0])]
    axis, dtype = op.axes[a.axis], real_dtype(op.dtype)
    _, (re, im) = _products((x[0], x[1]), axis, dtype, a.exclusive, a.reverse)
    return reorder(re, op.axes), reorder(im, op.axes)


PRODUCTS: dict[str, Rule] = {"prod": _prod, "cumprod": _cumprod}
