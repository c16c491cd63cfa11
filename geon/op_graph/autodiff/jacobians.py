"""Jacobians and Hessians: derivatives of all elements of a tensor in one batched sweep."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, overload

from ...errors import DerivativeError
from ..axes.axes import Axes
from ..building.constants import as_tensor
from ..building.weak import strengthen
from ..core.argument_hints import differentiates, public
from ..core.source_info import user_call
from ..op_graph import Tensor
from ..rows.leaves import placeholder
from ..rows.movement import broadcast, cast_axes
from ..transforms.batching import fresh_axes, many_at_once, same_place
from ..transforms.derivative_sweeps import forward_mode
from ..values.dtypes import kind
from .deriv import (
    _differentiable,
    _listed,
    _prepared,
    _refuse_weak,
    _restored,
    _result,
    deriv,
)

if TYPE_CHECKING:
    from ..building.typing import TensorLike


@overload
def jacobian(y: TensorLike, x: Tensor, *, unreached: str = "raise") -> Tensor: ...
@overload
def jacobian(y: TensorLike, x: Sequence[Tensor], *, unreached: str = "raise") -> list[Tensor]: ...
@public
@differentiates(0, "y")
def jacobian(y: Any, x: Any, *, unreached: str = "raise") -> Any:
    """Return the derivative of every element of ``y`` with respect to every element of ``x``.

    It has the axes of ``y``, then those of ``x``. An axis of ``x`` whose name ``y`` has too gets a
    prime: the derivative of a vector over H with respect to one over H is over (H, H'). ``x`` is a
    tensor or a list, and then the result is a list. One sweep computes all elements: in reverse
    mode, or in forward mode if ``x`` is known to have fewer elements than ``y``. Raises what
    ``deriv`` raises, and ``DerivativeError`` for a complex ``y``.
    """
    wanted = _listed(x)
    y = _differentiable(y, "jacobian", "y")
    if kind(y.dtype) == "c":
        raise DerivativeError(
            f"{user_call('jacobian')}: y is {y} (made at {y.line_info}), which is complex; take "
            "the Jacobians of geon.real(y) and geon.imag(y)"
        )
    if unreached == "raise":
        wanted = [_differentiable(v, "jacobian", "x") for v in wanted]
    forwards = [_is_smaller(v, y) for v in wanted]
    back = [v for v, forward in zip(wanted, forwards, strict=True) if not forward]
    rows = fresh_axes(y.axes, [name for v in (y, *wanted) for name in v.axes.names])
    seed = same_place(y.axes, rows, y.dtype) if len(rows) else None
    rest = iter(deriv(y, back, seed=seed, unreached=unreached) if back else [])
    results = []
    for v, forward in zip(wanted, forwards, strict=True):
        result = _forwards(y, v, unreached) if forward else next(rest)
        results.append(cast_axes(result, Axes(y.axes, fresh_axes(v.axes, y.axes.names))))
    return results if isinstance(x, (list, tuple)) else results[0]


@overload
def hessian(y: TensorLike, x: Tensor) -> Tensor: ...
@overload
def hessian(y: TensorLike, x: Sequence[Tensor]) -> list[list[Tensor]]: ...
@public
@differentiates(0, "y")
def hessian(y: Any, x: Any) -> Any:
    """Return the second derivatives of the scalar ``y`` with respect to the elements of ``x``.

    They have the axes of ``x``, then these with primes: over H it is over (H, H'). For a list it is
    a list of lists: its element [i][j] has the axes of x[i], then those of x[j]. It is zero where y
    does not depend on x. Raises ``DerivativeError`` for a ``y`` that is no scalar, and what
    ``deriv`` raises.
    """
    y = _differentiable(y, "hessian", "y")
    if len(y.axes):
        raise DerivativeError(
            f"{user_call('hessian')}: y is {y} (made at {y.line_info}), not a scalar; reduce it, "
            "for example with geon.sum(y), or write geon.jacobian(geon.jacobian(y, x), x) for the "
            "second derivatives of each element"
        )
    gradient = deriv(y, x, unreached="zero")
    if not isinstance(x, (list, tuple)):
        return jacobian(gradient, x, unreached="zero")
    return [jacobian(g, x, unreached="zero") for g in gradient]


def _is_smaller(x: Tensor, y: Tensor) -> bool:
    """Return True if a real x has fewer elements than y; False if a length is open.

    Forward mode along the elements of a complex x gives half of its derivative.
    """
    if kind(x.dtype) == "c":
        return False
    one, other = x.axes.size, y.axes.size
    return isinstance(one, int) and isinstance(other, int) and one < other


def _forwards(y: Tensor, x: Tensor, unreached: str) -> Tensor:
    """Return the Jacobian by forward mode, one direction for each element of ``x``.

    It has the axes of ``y``, then fresh ones for those of ``x``.
    """
    _refuse_weak([y], [x], "jacobian")
    (body,), (target,), original = _prepared([y], [x])
    one = placeholder(x.axes, x.dtype)
    tangent = forward_mode([body], {target: one}).get(body)
    columns = fresh_axes(x.axes, [*y.axes.names, *x.axes.names])
    if tangent is None:
        _result(y, x, None, unreached)
        return broadcast(strengthen(as_tensor(0), y.dtype), Axes(y.axes, columns))
    directions = same_place(x.axes, columns, x.dtype)
    (result,) = _restored(
        many_at_once([broadcast(tangent, y.axes)], {one: directions}, columns), original
    )
    return result
