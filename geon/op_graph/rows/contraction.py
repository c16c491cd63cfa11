"""Contraction: ``dot`` sums products over shared axes; other shared axes are batch axes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Unpack

import numpy as np

from ...errors import AxisError
from ..axes.axes import Axes
from ..building.constants import as_tensor
from ..building.elementwise_build import join
from ..building.resolve_axes import has_axes, named_axes, own_axis
from ..building.weak import strengthen
from ..core.argument_hints import public
from ..core.primitive import Inferred, Primitive, require
from ..core.source_info import describe, user_call, user_site
from ..op_graph import NO_AXES, Op, Tensor, make
from ..values.attribute_types import Names
from ..values.dtypes import common_dtype, sum_dtype
from .elementwise import multiply
from .movement import broadcast, sum_over

if TYPE_CHECKING:
    from ..building.typing import AxesLike, OpKeywords, TensorLike

Array = np.ndarray[Any, Any]


class DotAttributes(NamedTuple):
    """The names of the axes over which products are summed."""

    over: Names


def _reference(op: Op, x: Array, y: Array) -> Array:
    letters = {name: position for position, name in enumerate(_names(op))}
    xs = [letters[name] for name in op.args[0].axes.names]
    ys = [letters[name] for name in op.args[1].axes.names]
    wide = np.float64 if op.dtype.name in ("float16", "bfloat16") else op.dtype
    out = [letters[name] for name in op.axes.names]
    return np.asarray(np.einsum(x.astype(wide), xs, y.astype(wide), ys, out))


def _names(op: Op) -> list[str]:
    x, y = op.args[0].axes, op.args[1].axes
    return [*x.names, *(name for name in y.names if name not in x)]


def _transpose(g: Tensor, op: Op, i: int) -> Tensor:
    x, y = op.args
    own, other = (x, y) if i == 0 else (y, x)
    gone = tuple(axis.name for axis in other.axes if axis not in own.axes)
    # The operand with the first axis goes first, so that the result needs no reordering.
    first = g if own.axes[0] in g.axes else other
    product = contract_two(first, other if first is g else g, gone)
    return broadcast(product, own.axes)


def _infer(args: tuple[Any, ...], attrs: DotAttributes) -> Inferred:
    x, y = args
    has_axes(x, attrs.over, "dot")
    has_axes(y, attrs.over, "dot")
    require(x.dtype is y.dtype, "dot of {} and {}", x.dtype, y.dtype)
    joined, guards = join("dot", args)
    return joined.without(attrs.over), x.dtype, guards


DOT = Primitive(
    "dot",
    "contraction",
    "The sum of products over the contracted axes; other shared axes are batch axes.",
    reference=_reference,
    transpose=_transpose,
    multilinear=True,
    attributes=DotAttributes,
    arity=2,
    infer=_infer,
    takes_complex=True,
)


@public
def dot(
    x: TensorLike, y: TensorLike, over: AxesLike | None = None, **notes: Unpack[OpKeywords]
) -> Tensor:
    """Return the sum over ``over`` of x * y, or over every shared axis if ``over`` is not given.

    ``over`` is one axis or several that both have; other shared axes are batch axes. The result has
    x's remaining axes, then y's further ones. A scalar operand multiplies. Small integers
    accumulate in int64, halves in float32. Raises ``AxisError`` if no axis is shared, or if an axis
    of ``over`` is not.
    """
    x, y = as_tensor(x, near=y), as_tensor(y, near=x)
    shared = [axis.name for axis in x.axes if axis in y.axes]
    if over is None:
        if not shared and x.axes is not NO_AXES and y.axes is not NO_AXES:
            raise AxisError(
                f"{user_call('dot')}: {x} and {y} share no axis to contract\n"
                f"  {x} made at {x.line_info}\n"
                f"  {y} made at {y.line_info}\n"
                "geon.outer(geon.multiply, x, y) has every product"
            )
        names = tuple(shared)
    else:
        axes = named_axes(over, "dot", x, y)
        names = tuple(name for name in x.axes.names if name in axes)
        for axis in axes:
            if axis.name not in shared:
                raise AxisError(
                    f"dot over {axis.name!r} at {describe(user_site())}: both operands must have "
                    "that axis\n"
                    f"  {x} made at {x.line_info}\n  {y} made at {y.line_info}\n"
                    f"they share {', '.join(shared) or 'none'}; geon.sum sums over other axes"
                )
            own_axis(x, axis, "dot")
            own_axis(y, axis, "dot")
    x, y = _meet_dtypes(x, y)
    return contract_two(x, y, names)


def _meet_dtypes(x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
    dtype = sum_dtype(common_dtype([(x.dtype, x.weak), (y.dtype, y.weak)]))
    weak = x.weak and y.weak
    return strengthen(x, dtype, weak), strengthen(y, dtype, weak)


def contract_two(x: Any, y: Any, names: tuple[str, ...]) -> Tensor:
    """Return ``dot`` over axes of these names, which both operands of one dtype have; for rules."""
    if not names:
        return multiply.apply(x, y)
    if x.axes is y.axes and len(names) == len(x.axes) and x.dtype.kind not in "fV":
        return sum_over(multiply.apply(x, y), names)
    dtype = sum_dtype(x.dtype)
    weak = x.weak and y.weak
    x, y = strengthen(x, dtype, weak), strengthen(y, dtype, weak)
    return make(DOT, (x, y), (names,))


@public
def contract(
    operands: Sequence[TensorLike],
    out_axes: AxesLike | None = None,
    *,
    over: AxesLike | None = None,
    **notes: Unpack[OpKeywords],
) -> Tensor:
    """Return the sum over named axes of the product of several operands.

    ``over`` are the axes to sum; the others stay in the order in which the operands have them. Or
    ``out_axes`` are the axes to keep, in that order. Pairs are contracted greedily, the one with
    the smallest result first (64 is assumed for open lengths). Raises ``AxisError`` for an axis
    that no operand has.
    """
    xs = [as_tensor(x) for x in operands]
    union = Axes(*{axis.name: axis for x in xs for axis in x.axes}.values())
    if (over is None) == (out_axes is None):
        raise AxisError("contract: give either over or out_axes")
    named = named_axes(over if over is not None else out_axes, "contract", *xs)
    for axis in named:
        if axis not in union:
            listed = ", ".join([f"{x} (made at {x.line_info})" for x in xs])
            raise AxisError(
                f"contract: no operand has the axis {axis.name!r}: {listed}; "
                f"name axes among {union}"
            )
    summed = set(named.names) if over is not None else set(union.names) - set(named.names)
    while len(xs) > 1:
        left, right = _cheapest_pair(xs, summed)
        x, y = xs[left], xs[right]
        rest = [z for k, z in enumerate(xs) if k not in (left, right)]
        xs = [*rest, _contract_pair(x, y, rest, summed)]
    last = tuple(n for n in xs[0].axes.names if n in summed)
    result = sum_over(xs[0], last) if last else xs[0]
    order = named.names if out_axes is not None else union.without(named).names
    return broadcast(result, Axes(*(result.axes[name] for name in order)))


def _contract_pair(x: Tensor, y: Tensor, rest: list[Tensor], summed: set[str]) -> Tensor:
    needed = {name for z in rest for name in z.axes.names}

    def alone(z: Tensor, other: Tensor) -> Tensor:
        names = tuple(
            n for n in z.axes.names if n in summed and n not in needed and n not in other.axes
        )
        return sum_over(z, names) if names else z

    x, y = alone(x, y), alone(y, x)
    names = tuple(n for n in x.axes.names if n in y.axes and n in summed and n not in needed)
    x, y = _meet_dtypes(x, y)
    return contract_two(x, y, names)


def _cheapest_pair(xs: list[Tensor], summed: set[str]) -> tuple[int, int]:
    def cost(pair: tuple[int, int]) -> tuple[int, int]:
        x, y = xs[pair[0]], xs[pair[1]]
        rest = {n for k, z in enumerate(xs) if k not in pair for n in z.axes.names}
        kept = [
            axis
            for axis in Axes(*{a.name: a for z in (x, y) for a in z.axes}.values())
            if axis.name not in summed or axis.name in rest
        ]
        size = 1
        for axis in kept:
            # 64 elements are assumed for an open length; only the order of pairs depends on it.
            size *= axis.expression if isinstance(axis.expression, int) else 64
        return size, len(kept)

    pairs = [(i, j) for i in range(len(xs)) for j in range(i + 1, len(xs))]
    return min(pairs, key=cost)


@public
def matmul(left: Any, right: Any) -> Tensor:
    """Return ``left @ right``: ``dot`` over the one axis that both have."""
    x, y = as_tensor(left, near=right), as_tensor(right, near=left)
    shared = [axis.name for axis in x.axes if axis in y.axes]
    if len(shared) > 1:
        raise AxisError(
            f"x @ y is ambiguous: {x} (made at {x.line_info}) and {y} (made at {y.line_info}) "
            f"share the axes {', '.join(shared)}; say which to contract with "
            f"geon.dot(x, y, over={shared[-1]}), or geon.dot(x, y) for all of them"
        )
    return dot(x, y)
