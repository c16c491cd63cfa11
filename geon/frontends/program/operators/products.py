"""Operators for products of matrices, and linear algebra of the last two positions."""

from __future__ import annotations

from typing import Any

import geon

from ....errors import AxisError
from ....op_graph.axes.lengths import product
from ...positional.elementwise import aligned, dims_of, elementwise
from ...positional.movement import with_axis
from ...positional.products import matmul
from ...positional.reductions import reduce
from ...positional.reshaping import flatten_to, reshape, transpose, unsqueeze
from ...positional.values import (
    PositionalArray,
    Value,
    array,
    as_array,
    fresh,
    position,
    renamed,
)
from .rows import INT, Function, Row, with_attributes


def mul(x: Value, y: Value, *, x_num_col_dims: int = 1, y_num_col_dims: int = 1) -> Value:
    """Return the product of X and Y as matrices, whose rows are so many first positions."""
    columns = y.shape[y_num_col_dims:]
    left, right = flatten_to(x, x_num_col_dims, len(x.shape)), flatten_to(y, 0, y_num_col_dims)
    found = matmul(left, reshape(right, [right.shape[0], product(columns)]))
    return reshape(found, [*x.shape[:x_num_col_dims], *columns])


def turned(x: Value) -> Value:
    """Return x with its last two positions exchanged; a vector as it is."""
    rank = len(x.shape)
    return transpose(x, [*range(rank - 2), rank - 1, rank - 2]) if rank > 1 else x


def matmul_of(
    x: Value, y: Value, *, transpose_X: bool = False, transpose_Y: bool = False, alpha: float = 1.0
) -> Value:
    """Return alpha times the product of matrices in the last two positions."""
    found = matmul(turned(x) if transpose_X else x, turned(y) if transpose_Y else y)
    return found if alpha == 1 else elementwise(lambda t: t * alpha, found)


def bilinear(x: Value, y: Value, weight: Value, bias: Value | None) -> Value:
    """Return x W_k y for each matrix k of Weight (K, M, N), plus a bias, over (B, K)."""
    k, m, n = weight.shape
    left = matmul(x, reshape(transpose(weight, [1, 0, 2]), [m, k * n]))
    parts = elementwise(geon.multiply, reshape(left, [x.shape[0], k, n]), unsqueeze(y, [1]))
    found = reduce(geon.sum, parts, [2], False)
    return found if bias is None else elementwise(geon.add, found, bias)


def _square(x: Value) -> tuple[PositionalArray, list[Any]]:
    """Return matrices with axes for rows and columns, also of length 1, and all their names."""
    rank = len(x.shape)
    given = with_axis(with_axis(as_array(x), rank - 2, "row"), rank - 1, "column")
    return given, [d and d.name for d in given.dims]


def of_matrices(f: Function, dims: tuple[int, ...], **attributes: Any) -> Function:
    """Return the function of an operator that applies ``f(tensor, axes)`` to matrices.

    ``dims`` has the axes of a result after the batch: 0 for the rows of x, 1 for its columns.
    ``attributes`` are keywords of ``f``.
    """

    def build(x: Value, **settings: Any) -> Any:
        given, names = _square(x)
        found = f(given.tensor, names[-2:], **settings)
        own = [*names[:-2], *[names[k - 2] for k in dims]]
        return (
            tuple([array(t, own) for t in found]) if isinstance(found, tuple) else array(found, own)
        )

    return with_attributes(build, attributes)


def solver(f: Function, **attributes: Any) -> Function:
    """Return the function of an operator for ``f(X, Y, axes)``, such as the solution of X Z = Y.

    Y has columns as its last position. ``attributes`` are keywords of ``f``.
    """

    def build(x: Value, y: Value, **settings: Any) -> Value:
        same_rank(x, y)
        given, names = _square(x)
        right = with_axis(as_array(y), len(y.shape) - 2)
        last = None if right.dims[-1] is None else fresh("columns", names)
        right = renamed(right, [*names[:-1], last])
        found = f(given.tensor, right.tensor, names[-2:], **settings)
        return array(found, [*names[:-2], names[-1], last])

    return with_attributes(build, attributes)


def same_rank(x: Value, y: Value) -> int:
    """Return the number of positions of both; raise ``AxisError`` if they differ."""
    if len(x.shape) != len(y.shape):
        raise AxisError(
            f"{x} and {y} have {len(x.shape)} and {len(y.shape)} dimensions; give equal"
        )
    return len(x.shape)


def kron(x: Value, y: Value) -> Value:
    """Return the Kronecker product of X and Y, which have equally many positions."""
    rank = same_rank(x, y)
    left = unsqueeze(x, range(1, 2 * rank, 2))
    found = elementwise(geon.multiply, left, unsqueeze(y, range(0, 2 * rank, 2)))
    return reshape(found, [m * n for m, n in zip(x.shape, y.shape, strict=True)])


def cross(x: Value, y: Value, *, axis: int = -1) -> Value:
    """Return the cross products of vectors of 3 elements along a position."""
    at = position(axis, len(x.shape))
    left, right = (with_axis(each, at) for each in aligned([x, y]))
    line = left.dims[at]
    assert line is not None  # with_axis gave it one
    return array(geon.cross(left.tensor, right.tensor, line), dims_of([left, right]))


linalg = geon.linalg
ROWS = [
    Row("mul", mul, "", "X Y"),
    Row("matmul", matmul_of, "", "X Y"),
    Row("dot", lambda x, y: reduce(geon.sum, elementwise(geon.multiply, x, y), [len(x.shape) - 1]),
        "Return the sums of products along the last position, which has length 1 then.", "X@1+ Y"),
    Row("bilinear_tensor_product", bilinear, "", "X@2 Y@2 Weight@3 Bias?"),
    Row("addmm", lambda x, a, b, *, alpha=1.0, beta=1.0: elementwise(
        lambda t, p: beta * t + alpha * p, x, matmul(a, b)),
        "Return beta times Input plus alpha times the product of X and Y.", "Input X@2 Y@2"),
    Row("kron", kron, "", "X Y"),
    Row("cross", cross, "", "X Y"),
    Row("cholesky", of_matrices(linalg.cholesky, (0, 1)), "Return L with X = L L^T.", "X@2+"),
    Row("inverse", of_matrices(linalg.inv, (1, 0)), "Return inverses of matrices.", "X@2+"),
    Row("pinverse", of_matrices(linalg.pinv, (1, 0)), "Return pseudo-inverses of matrices.",
        "X@2+"),
    Row("matrix_exp", of_matrices(linalg.expm, (0, 1)), "Return exponentials of matrices.", "X@2+"),
    Row("matrix_power", of_matrices(lambda t, axes, *, n: linalg.matrix_power(t, n, axes), (0, 1),
        n=INT), "Return the n-th powers of matrices.", "X@2+"),
    Row("matrix_norm", of_matrices(linalg.matrix_norm, (), order="frobenius"),
        "Return norms of matrices; order is frobenius or nuclear.", "X@2+"),
    Row("matrix_rank", of_matrices(linalg.matrix_rank, ()), "Return ranks of matrices.", "X@2+",
        gradient=False),
    Row("trace", of_matrices(lambda t, axes: geon.trace(t, *axes), ()),
        "Return traces of matrices.", "X@2+"),
    Row("determinant", of_matrices(linalg.det, ()), "Return determinants of matrices.", "X@2+"),
    Row("slogdet", of_matrices(linalg.slogdet, ()), "Return signs of determinants, and logarithms "
        "of their absolute values.", "X@2+", "Sign Out"),
    Row("solve", solver(linalg.solve), "Return the solution of X Z = Y.", "X@2+ Y@2+"),
    Row("lstsq", solver(linalg.lstsq), "Return Z with the least norm of X Z - Y.", "X@2+ Y@2+"),
    Row("cholesky_solve", solver(linalg.cholesky_solve), "Return the solution of X X^T Z = Y.",
        "X@2+ Y@2+"),
    Row("triangular_solve", solver(linalg.triangular_solve, lower=True, unit=False),
        "Return the solution of X Z = Y, where only the lower or upper part of X is read.",
        "X@2+ Y@2+"),
]  # fmt: skip
