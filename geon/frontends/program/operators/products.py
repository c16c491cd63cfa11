"""Operators for products of matrices, and linear algebra of the last two positions."""

from __future__ import annotations

import inspect
from typing import Any

import geon

from ....errors import AxisError
from ....op_graph.axes.lengths import product
from ...positional.elementwise import aligned, dims_of, elementwise
from ...positional.movement import with_axis
from ...positional.products import matmul, turned
from ...positional.reductions import reduce
from ...positional.reshaping import flatten_to, reshape, transpose, unsqueeze
from ...positional.values import (
    Value,
    array,
    position,
)
from .patterns import over
from .rows import INT, Function, Row, settings_of, with_attributes


def mul(x: Value, y: Value, *, x_num_col_dims: int = 1, y_num_col_dims: int = 1) -> Value:
    """Return the product of X and Y as matrices, whose rows are so many first positions."""
    columns = y.shape[y_num_col_dims:]
    left, right = flatten_to(x, x_num_col_dims, len(x.shape)), flatten_to(y, 0, y_num_col_dims)
    found = matmul(left, reshape(right, [right.shape[0], product(columns)]))
    return reshape(found, [*x.shape[:x_num_col_dims], *columns])


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


def of_matrices(pattern: str, f: Function, **attributes: Any) -> Function:
    """Return the function of an operator for ``f(*tensors, (I, J))``; see ``over``."""
    takes_wide = "wide" in inspect.signature(f).parameters

    def build(*given: Any, wide: bool = False, **settings: Any) -> Any:
        tensors = [each for each in given if isinstance(each, geon.Tensor)]
        own = {"wide": True} if wide else {}
        return f(*tensors, given[len(tensors) : len(tensors) + 2], **settings, **own)

    known = {**settings_of(f), **({"wide": False} if takes_wide else {})}
    return over(pattern, with_attributes(build, known), **attributes)


def kron(x: Value, y: Value) -> Value:
    """Return the Kronecker product of X and Y, which have equally many positions."""
    rank = len(x.shape)
    if len(y.shape) != rank:
        raise AxisError(f"{x} and {y} have {rank} and {len(y.shape)} dimensions; give equal")
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
SAME, TURNED, NUMBER, SOLUTION = (
    f"... I J{more}" for more in (" -> ... I J", " -> ... J I", " -> ...", ", ... I K -> ... J K")
)
# Linear algebra of matrices: pattern, function, comment and outputs.
MATRICES: dict[str, tuple[str, Function, str, str]] = {
    "cholesky": (SAME, linalg.cholesky, "L with X = L L^T", "Out"),
    "inverse": (TURNED, linalg.inv, "inverses of matrices", "Out"),
    "pinverse": (TURNED, linalg.pinv, "pseudo-inverses of matrices", "Out"),
    "matrix_exp": (SAME, linalg.expm, "exponentials of matrices", "Out"),
    "matrix_norm": (NUMBER, linalg.matrix_norm, "norms of matrices; order is frobenius or nuclear",
        "Out"),
    "matrix_rank": (NUMBER, linalg.matrix_rank, "ranks of matrices", "Out"),
    "matrix_cond": (NUMBER, linalg.cond, "the largest singular value divided by the smallest",
        "Out"),
    "determinant": (NUMBER, linalg.det, "determinants of matrices", "Out"),
    "slogdet": (NUMBER + ", ...", linalg.slogdet,
        "signs of determinants, and logarithms of their absolute values", "Sign Out"),
    "eigh": ("... I J -> ... J, ... I J", linalg.eigh,
        "the ascending eigenvalues of symmetric matrices, and their eigenvectors as columns",
        "Eigenvalues Eigenvectors"),
    "eigvalsh": ("... I J -> ... J", linalg.eigvalsh,
        "the ascending eigenvalues of symmetric matrices", "Eigenvalues"),
    "qr": ("... I J -> ... I K, ... K J", linalg.qr,
        "Q with orthonormal columns and R, upper triangular, with X = Q R", "Q R"),
    "svd": ("... I J -> ... I K, ... K, ... K J", linalg.svd,
        "U, the descending singular values S, and V^T, with X = U S V^T", "U S VH"),
    "solve": (SOLUTION, linalg.solve, "the solution of X Z = Y", "Out"),
    "lstsq": (SOLUTION, linalg.lstsq, "Z with the least norm of X Z - Y", "Out"),
    "cholesky_solve": (SOLUTION, linalg.cholesky_solve, "the solution of X X^T Z = Y", "Out"),
    "triangular_solve": (SOLUTION, linalg.triangular_solve,
        "the solution of X Z = Y, where only the lower or upper part of X is read", "Out"),
}  # fmt: skip
ROWS = [
    Row("mul", mul, "", "X Y"),
    Row("matmul", matmul_of, "", "X Y"),
    Row("dot", lambda x, y: reduce(geon.sum, elementwise(geon.multiply, x, y), [len(x.shape) - 1]),
        "Return the sums of products along the last position, which has length 1 then.", "X@1+ Y"),
    Row("outer", over("I, J -> I J", lambda x, y, *axes: geon.outer(geon.multiply, x, y)),
        "Return the products of each element of X with each of Y.", "X@1 Y@1"),
    Row("bilinear_tensor_product", bilinear, "", "X@2 Y@2 Weight@3 Bias?"),
    Row("addmm", lambda x, a, b, *, alpha=1.0, beta=1.0: elementwise(
        lambda t, p: beta * t + alpha * p, x, matmul(a, b)),
        "Return beta times Input plus alpha times the product of X and Y.", "Input X@2 Y@2"),
    Row("kron", kron, "", "X Y"),
    Row("cross", cross, "", "X Y"),
    *[Row(name, of_matrices(pattern, f), f"Return {text}.",
          "X@2+ Y@2+" if pattern is SOLUTION else "X@2+", outputs, gradient=name != "matrix_rank")
        for name, (pattern, f, text, outputs) in MATRICES.items()],
    Row("matrix_power", of_matrices(SAME, lambda t, axes, *, n: linalg.matrix_power(t, n, axes),
        n=INT), "Return the n-th powers of matrices.", "X@2+"),
    Row("trace", over(NUMBER, geon.trace), "Return traces of matrices.", "X@2+"),
    Row("diagonal", over("... I J -> ... I", lambda t, *axes: geon.diagonal(t, axes)),
        "Return the diagonals of square matrices.", "X@2+"),
    Row("diag_embed", over("... N -> ... N M", lambda t, n: geon.diag_embed(
        t, n, t.axes[n].named("columns"))), "Return matrices with these diagonals.", "X@1+"),
]  # fmt: skip
