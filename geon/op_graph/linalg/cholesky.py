"""The Cholesky factorisation, and solutions by it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Unpack

import numpy as np

from ..axes.axes import Axis
from ..core.argument_hints import public
from ..core.primitive import Primitive
from ..op_graph import Op, Tensor, make
from ..rows.contraction import contract_two
from ..rows.elementwise import add, equal, multiply, where
from ..rows.leaves import iota
from ..rows.movement import broadcast
from .matrices import (
    Array,
    MatrixAttributes,
    each_matrix,
    fresh,
    identity_matrix,
    in_place_of,
    lower_part,
    matrix,
    renamed,
    rows_last,
    square_infer,
    transposed,
)
from .triangular import _solve, right_hand_side

if TYPE_CHECKING:
    from ..building.typing import AxesLike, OpKeywords, TensorLike


def _reference(op: Op, x: Array) -> Array:
    a: MatrixAttributes = op.attrs
    given = rows_last(x, op.args[0].axes, a.rows, a.columns)
    factors = each_matrix(np.linalg.cholesky, given.shape[-2:], given)
    return in_place_of(factors, op.axes, a.rows, a.columns)


def _linearise(op: Op, i: int, t: Tensor) -> Tensor:
    # L' = L Φ(L^-1 A' L^-T), where Φ keeps the lower triangle and halves the diagonal (Murray
    # 2016, Differentiation of the Cholesky decomposition, (8)). A' is made symmetric first, so
    # that the cotangent of A is symmetric.
    a: MatrixAttributes = op.attrs
    rows, columns = op.axes[a.rows], op.axes[a.columns]
    factor: Any = op
    other = fresh(columns, op.axes)
    change = multiply.apply(0.5, add.apply(t, transposed(t, a.rows, a.columns)))
    change = renamed(change, {a.columns: other.name})
    left = _solve(factor, change, a.rows, a.columns, True, False)  # over (columns, other)
    turned = renamed(left, {other.name: a.rows, a.columns: other.name})
    both = _solve(factor, turned, a.rows, a.columns, True, False)  # over (columns, other)
    kept = lower_part(both, a.columns, other.name)
    row, column = both.axes[a.columns], both.axes[other.name]
    halved = where.apply(equal.apply(iota(row), iota(column)), multiply.apply(0.5, kept), kept)
    result = contract_two(factor, broadcast(halved, both.axes), (a.columns,))
    result = renamed(result, {other.name: a.columns})
    assert rows.name in result.axes
    return broadcast(lower_part(result, a.rows, a.columns), op.axes)


def _positive(x: Tensor, further: str) -> Tensor:
    """Return x xᵀ + 1 over (I, J), for samples with x over (I, ``further``)."""
    other = renamed(x, {"I": "J"})
    product = contract_two(x, other, (further,))
    return product + identity_matrix(product.axes["I"], product.axes["J"], x.dtype)


def _samples() -> list[tuple[str, Any, Any]]:
    i, j, b, k = Axis("I", 3), Axis("J", 3), Axis("B", 2), Axis("K", 4)
    return [
        ("of a matrix", [[i, k]], lambda x: cholesky(_positive(x, "K"), [i, j])),
        ("of a batch", [[b, i, k]], lambda x: cholesky(_positive(x, "K"), [i, j])),
        ("with the batch last", [[i, k, b]], lambda x: cholesky(_positive(x, "K"), ["J", "I"])),
    ]


CHOLESKY = Primitive(
    "cholesky",
    "matrix",
    "The lower triangular L with L Lᵀ = x, for a symmetric positive definite x, of which the lower "
    "triangle is read; NaN where x is not positive definite.",
    reference=_reference,
    linearise=_linearise,
    attributes=MatrixAttributes,
    arity=1,
    infer=square_infer("cholesky"),
    cost="kernel",
    in_place=(0,),
    samples=_samples,
)


@public
def cholesky(
    x: TensorLike, axes: AxesLike, *, check: bool = True, **notes: Unpack[OpKeywords]
) -> Tensor:
    """Return the lower triangular L with L Lᵀ = x, for symmetric positive definite matrices.

    ``axes`` are the axes of rows and columns; all others are batch axes. The result has the axes of
    ``x``: L over (I, J) is 0 where J is above I, and ``geon.dot(L, L.rename({I: I.prime}), J)`` is
    x. Only the part of ``x`` on and below the diagonal is read.

    Raises ``LinearAlgebraError`` at a call if a matrix is not positive definite, with its place
    along the batch axes. With ``check=False`` such a matrix gives NaN instead, which a line search
    that may leave the domain needs. The derivative with respect to ``x`` is symmetric; it follows
    Murray, Differentiation of the Cholesky decomposition, 2016.
    """
    x, rows, columns = matrix("cholesky", x, axes)
    return make(CHOLESKY, (x,), (rows.name, columns.name, not check))


@public
def cholesky_solve(
    factor: TensorLike, b: TensorLike, axes: AxesLike, **notes: Unpack[OpKeywords]
) -> Tensor:
    """Return x with a x = b, from the Cholesky factor of ``a`` that ``cholesky(a, axes)`` returns.

    ``b`` is over the rows and any other axes, and x over the same with the columns in the place of
    the rows, as for ``solve``.
    """
    factor, rows, columns = matrix("cholesky_solve", factor, axes)
    factor, b = right_hand_side("cholesky_solve", factor, b, rows, columns)
    half = _solve(factor, b, rows.name, columns.name, True, False)
    result = _solve(factor, half, columns.name, rows.name, False, False)
    return renamed(result, {rows.name: columns.name})
