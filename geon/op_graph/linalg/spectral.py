"""Eigenvalues of symmetric matrices, and singular values."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Unpack

import numpy as np

from ..axes.axes import Axes, Axis
from ..axes.lengths import Length
from ..core.argument_hints import public
from ..core.primitive import Inferred, Primitive
from ..functions.resizing import diagonal
from ..op_graph import Op, Tensor, make
from ..rows.concatenation import concat
from ..rows.contraction import contract_two
from ..rows.elementwise import (
    add,
    cast,
    divide,
    equal,
    multiply,
    square,
    subtract,
    where,
)
from ..rows.leaves import iota
from ..rows.movement import broadcast, expand
from .matrices import (
    Array,
    MatrixAttributes,
    each_matrix,
    fresh,
    identity_matrix,
    in_place_of,
    innermost,
    is_wide,
    matrix,
    renamed,
    require_precision,
    rows_last,
    square_infer,
    tall_guards,
    transposed,
)

if TYPE_CHECKING:
    from ..building.typing import AxesLike, OpKeywords, TensorLike


def part(x: Any, name: str, start: int | Length, stop: int | Length) -> Tensor:
    """Return a range of ``x`` along an axis."""
    result: Tensor = x[{x.axes[name]: slice(start, stop)}]
    return result


def row(x: Any, name: str, at: int | Length) -> Tensor:
    """Return the part of ``x`` at an index along an axis, without that axis."""
    result: Tensor = x[{x.axes[name]: at}]
    return result


def stacked(parts: list[Tensor], axes: Axes, name: str) -> Tensor:
    """Return parts along the axis ``name`` as one value over ``axes``.

    A part that lacks the axis is one row.
    """
    whole = []
    for each in parts:
        if name not in each.axes:
            each = expand(each, axes[name].with_length(1))
        order = [each.axes[n] for n in axes.names]
        whole.append(broadcast(each, Axes(order)))
    return broadcast(concat(whole, name), axes)


def reciprocal_gaps(left: Tensor, right: Tensor) -> Tensor:
    """Return 1 / (right - left) for each pair of values; 0 where they are equal."""
    gap = subtract.apply(right, left)
    same = equal.apply(gap, 0)
    return where.apply(same, 0, divide.apply(1.0, where.apply(same, 1.0, gap)))


# Symmetric matrices -------------------------------------------------------------------------------


def _eigh_reference(op: Op, x: Array) -> Array:
    a: MatrixAttributes = op.attrs
    given = rows_last(x, op.args[0].axes, a.rows, a.columns)
    n = given.shape[-1]

    def decompose(each: Array) -> Array:
        values, vectors = np.linalg.eigh(each)
        return np.concatenate([vectors, values[None]])

    return in_place_of(each_matrix(decompose, (n + 1, n), given), op.axes, a.rows, a.columns)


def _eigh_parts(packed: Any, rows: str) -> tuple[Tensor, Tensor]:
    """Return the eigenvalues along the columns, and the eigenvectors."""
    n = packed.axes[rows].expression - 1
    return row(packed, rows, n), part(packed, rows, 0, n)


def _values_infer(args: tuple[Any, ...], attrs: MatrixAttributes) -> Inferred:
    axes, dtype, guards = square_infer("eigvalsh")(args, attrs)
    return axes.without((attrs.rows,)), dtype, guards


def _values_reference(op: Op, x: Array) -> Array:
    a: MatrixAttributes = op.attrs
    given = rows_last(x, op.args[0].axes, a.rows, a.columns)
    values = each_matrix(np.linalg.eigvalsh, given.shape[-1:], given)
    return in_place_of(values, op.axes, a.columns)


def _values_linearise(op: Op, i: int, t: Tensor) -> Tensor:
    # The diagonal of Vᵀ A' V, which needs the eigenvectors V.
    a: MatrixAttributes = op.attrs
    packed = make(EIGH, op.args, a)
    return row(_eigh_linearise(packed, i, t), a.rows, packed.axes[a.rows].expression - 1)


def shared_vectors(packed: Op) -> Tensor:
    """Return the eigenvalues of the packed result of ``eigh``."""
    return _eigh_parts(packed, packed.attrs.rows)[0]


def _eigh_linearise(op: Op, i: int, t: Tensor) -> Tensor:
    # With M = Vᵀ A' V: the eigenvalues change by the diagonal of M, and V by V (F ∘ M) with
    # F[i, j] = 1 / (w[j] - w[i]) (Giles 2008, 3.1). A' is made symmetric first.
    a: MatrixAttributes = op.attrs
    values, vectors = _eigh_parts(op, a.rows)
    change = multiply.apply(0.5, add.apply(t, transposed(t, a.rows, a.columns)))
    axis = op.axes[a.columns]
    inner, other = fresh(axis, op.axes), fresh(axis, op.axes, Axes(fresh(axis, op.axes)))
    right = renamed(vectors, {a.rows: a.columns, a.columns: inner.name})  # over (J, K)
    product = contract_two(change, right, (a.columns,))  # over (I, K)
    left = renamed(vectors, {a.columns: other.name})
    both = contract_two(left, product, (a.rows,))  # over (K', K)
    gaps = reciprocal_gaps(
        renamed(values, {a.columns: other.name}), renamed(values, {a.columns: inner.name})
    )
    moved = contract_two(left, multiply.apply(both, gaps), (other.name,))  # over (I, K)
    tangents = renamed(diagonal(both, [inner, other]), {inner.name: a.columns})
    return stacked([renamed(moved, {inner.name: a.columns}), tangents], op.axes, a.rows)


def _eigh_samples() -> list[tuple[str, Any, Any]]:
    i, j, b = Axis("I", 3), Axis("J", 3), Axis("B", 2)

    def values(x: Tensor) -> Tensor:
        return eigh(x + transposed(x, "I", "J"), [i, j])[0]

    def vectors(x: Tensor) -> Tensor:
        # Squared, because the sign of an eigenvector is not defined.
        return square(eigh(x + transposed(x, "I", "J"), [i, j])[1])

    return [
        ("values", [[i, j]], values),
        ("vectors", [[i, j]], vectors),
        ("values of a batch", [[i, b, j]], values),
        ("vectors of a batch", [[b, j, i]], vectors),
    ]


def _values_samples() -> list[tuple[str, Any, Any]]:
    i, j, b = Axis("I", 3), Axis("J", 3), Axis("B", 2)

    def values(x: Tensor) -> Tensor:
        return eigvalsh(x + transposed(x, "I", "J"), [i, j])

    return [
        ("of a matrix", [[i, j]], values),
        ("of a batch", [[i, b, j]], values),
        ("of a batch that is last", [[j, i, b]], values),
    ]


EIGH = Primitive(
    "eigh",
    "matrix",
    "The eigenvectors of a symmetric x as columns, and its eigenvalues in a further row, in "
    "ascending order; the lower triangle is read, and NaN is written without convergence.",
    reference=_eigh_reference,
    linearise=_eigh_linearise,
    attributes=MatrixAttributes,
    arity=1,
    infer=square_infer("eigh", 1),
    cost="kernel",
    samples=_eigh_samples,
)


EIGVALSH = Primitive(
    "eigvalsh",
    "matrix",
    "The eigenvalues of a symmetric x over its columns, in ascending order; the lower triangle is "
    "read, and NaN is written without convergence.",
    reference=_values_reference,
    linearise=_values_linearise,
    attributes=MatrixAttributes,
    arity=1,
    infer=_values_infer,
    cost="kernel",
    samples=_values_samples,
)


@public
def eigh(x: TensorLike, axes: AxesLike) -> tuple[Tensor, Tensor]:
    """Return the eigenvalues and the eigenvectors of symmetric matrices.

    ``axes`` are the axes of rows and columns, (I, J); all others are batch axes. The eigenvalues
    are over J and ascend. The eigenvectors are over the axes of ``x``: at each index along J there
    is one over I, of length 1, whose sign is arbitrary. Only the part of ``x`` on and below the
    diagonal is read.

    The derivative with respect to ``x`` is symmetric; it follows Giles, An extended collection of
    matrix derivative results for forward and reverse mode algorithmic differentiation, 2008.
    Eigenvectors of equal eigenvalues have none: their part among each other counts as 0. So first
    derivatives of symmetric functions of the eigenvalues, such as their sum or product, are right
    there too; those of other functions of eigenvectors are not. Raises ``LinearAlgebraError`` at a
    call without convergence, as for a matrix with NaN.
    """
    x, rows, columns = matrix("eigh", x, axes)
    packed = make(EIGH, (x,), (rows.name, columns.name, False))
    return _eigh_parts(packed, rows.name)


@public
def eigvalsh(x: TensorLike, axes: AxesLike, **notes: Unpack[OpKeywords]) -> Tensor:
    """Return the eigenvalues of symmetric matrices, as ``eigh`` does, along the columns.

    No eigenvectors are computed, unless the derivative needs them: then the eigenvalues come from
    the same factorisation. Raises what ``eigh`` raises.
    """
    x, rows, columns = matrix("eigvalsh", x, axes)
    return make(EIGVALSH, (x,), (rows.name, columns.name, False))


# Singular values ----------------------------------------------------------------------------------


def _svd_infer(args: tuple[Any, ...], attrs: MatrixAttributes) -> Inferred:
    x = args[0]
    guards = tall_guards("svd", x, attrs.rows, attrs.columns)
    require_precision("svd", args)
    m, n = x.axes[attrs.rows].expression, x.axes[attrs.columns].expression
    longer = [a.with_length(m + n + 1) if a.name == attrs.rows else a for a in x.axes]
    return Axes(longer), x.dtype, guards


def _svd_reference(op: Op, x: Array) -> Array:
    a: MatrixAttributes = op.attrs
    given = rows_last(x, op.args[0].axes, a.rows, a.columns)
    m, n = given.shape[-2:]

    def decompose(each: Array) -> Array:
        u, s, v = np.linalg.svd(each, full_matrices=False)
        return np.concatenate([u, s[None], v.T])

    return in_place_of(each_matrix(decompose, (m + 1 + n, n), given), op.axes, a.rows, a.columns)


def _svd_parts(packed: Any, rows: str, columns: str) -> tuple[Tensor, Tensor, Tensor]:
    """Return U over (rows, columns), S over the columns, and V over (rows, columns)."""
    n, whole = packed.axes[columns].expression, packed.axes[rows].expression
    m = whole - n - 1
    return part(packed, rows, 0, m), row(packed, rows, m), part(packed, rows, m + 1, whole)


def _svd_linearise(op: Op, i: int, t: Tensor) -> Tensor:
    # With P = Uᵀ A' V and F[i, j] = 1 / (s[j]² - s[i]²): S' = diag P,
    # U' = U (F ∘ (P S + S Pᵀ)) + (1 - U Uᵀ) A' V S^-1, V' = V (F ∘ (S P + Pᵀ S))
    # (Townsend 2016, Differentiating the singular value decomposition).
    a: MatrixAttributes = op.attrs
    u, s, v = _svd_parts(op, a.rows, a.columns)
    axis = op.axes[a.columns]
    right = fresh(axis, op.axes)
    left = fresh(axis, op.axes, Axes(right))
    k, h = right.name, left.name
    by_columns = renamed(v, {a.rows: a.columns, a.columns: k})  # V over (J, K)
    product = contract_two(t, by_columns, (a.columns,))  # A' V over (I, K)
    u_left = renamed(u, {a.columns: h})
    p = contract_two(u_left, product, (a.rows,))  # over (H, K)
    turned = renamed(p, {h: k, k: h})
    s_left, s_right = renamed(s, {a.columns: h}), renamed(s, {a.columns: k})
    gaps = reciprocal_gaps(square(s_left), square(s_right))
    of_u = multiply.apply(gaps, p * s_right + s_left * turned)
    of_v = multiply.apply(gaps, s_left * p + turned * s_right)
    none = equal.apply(s_right, 0)
    inverse = where.apply(none, 0, divide.apply(1.0, where.apply(none, 1.0, s_right)))
    outside = subtract.apply(product, contract_two(u_left, p, (h,)))
    new_u = contract_two(u_left, of_u, (h,)) + outside * inverse
    new_v = contract_two(renamed(v, {a.columns: h}), of_v, (h,))
    tangents = diagonal(p, [right, left])
    parts = [renamed(each, {k: a.columns}) for each in (new_u, tangents, new_v)]
    return stacked(parts, op.axes, a.rows)


def _svd_samples() -> list[tuple[str, Any, Any]]:
    i, j, b = Axis("I", 4), Axis("J", 3), Axis("B", 2)

    def of(number: int, axes: list[Axis]) -> Any:
        def build(x: Tensor) -> Tensor:
            apart = identity_matrix(i, j, x.dtype) * cast(iota(j) + 1, x.dtype)
            factor = svd(multiply.apply(0.3, x) + apart, axes)[number]
            # Squared, because the signs of vectors are not defined.
            return factor if number == 1 else square(factor)

        return build

    return [
        ("values", [[i, j]], of(1, [i, j])),
        ("left vectors", [[i, j]], of(0, [i, j])),
        ("right vectors of a batch", [[b, i, j]], of(2, [i, j])),
        ("left vectors of a wide matrix", [[i, b, j]], of(0, [j, i])),
    ]


SVD = Primitive(
    "svd",
    "matrix",
    "The left singular vectors of x as columns, in further rows its singular values, in descending "
    "order, and its right singular vectors; NaN without convergence.",
    reference=_svd_reference,
    linearise=_svd_linearise,
    attributes=MatrixAttributes,
    arity=1,
    infer=_svd_infer,
    cost="kernel",
    samples=_svd_samples,
)


@public
def svd(
    x: TensorLike, axes: AxesLike, *, axis: Axis | None = None, wide: bool | None = None
) -> tuple[Tensor, Tensor, Tensor]:
    """Return U, S and V with x = U S Vᵀ: the singular value decomposition.

    ``axes`` are the axes of rows and columns, (I, J); all others are batch axes. S is over a new
    ``axis`` K, as long as the shorter of the two, and descends. U is over (I, K) and V over (J, K):
    at each index along K there are two vectors of length 1, whose common sign is arbitrary. Batch
    axes come first. By default K is the shorter axis with primes. If the lengths are open, there
    must be as many rows as columns at least, or with ``wide=True`` as many columns as rows.

    The derivative follows Townsend, Differentiating the singular value decomposition, 2016. Where
    singular values are equal or 0, the part of it that they leave undefined counts as 0. Raises
    ``LinearAlgebraError`` at a call without convergence, as for a matrix with NaN.
    """
    x, rows, columns = matrix("svd", x, axes)
    if is_wide("svd", x, rows, columns, wide):
        v, s, u = svd(x, [columns, rows], axis=axis)
        return u, s, v
    packed = make(SVD, (x,), (rows.name, columns.name, False))
    u, s, v = _svd_parts(packed, rows.name, columns.name)
    new = fresh(columns, x.axes) if axis is None else axis
    names = {columns.name: new.name}
    v = renamed(v, {rows.name: columns.name, columns.name: new.name})
    u = innermost(renamed(u, names), rows.name, new.name)
    return u, renamed(s, names), innermost(v, columns.name, new.name)
