"""The QR factorisation."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ..axes.axes import Axes, Axis
from ..core.argument_hints import public
from ..core.primitive import Inferred, Primitive
from ..op_graph import Op, Tensor, make
from ..rows.concatenation import concat
from ..rows.contraction import contract_two
from ..rows.elementwise import absolute, square, subtract
from ..rows.movement import broadcast
from .matrices import (
    Array,
    MatrixAttributes,
    columns_of_wide,
    each_matrix,
    fresh,
    in_place_of,
    innermost,
    is_wide,
    lower_part,
    matrix,
    renamed,
    require_precision,
    rows_last,
    tall_guards,
    transposed,
)
from .spectral import part, stacked
from .triangular import _solve

if TYPE_CHECKING:
    from ..building.typing import AxesLike, TensorLike


def _infer(args: tuple[Any, ...], attrs: MatrixAttributes) -> Inferred:
    x = args[0]
    guards = tall_guards("qr", x, attrs.rows, attrs.columns)
    require_precision("qr", args)
    m, n = x.axes[attrs.rows].expression, x.axes[attrs.columns].expression
    longer = [a.with_length(m + n) if a.name == attrs.rows else a for a in x.axes]
    return Axes(longer), x.dtype, guards


def _reference(op: Op, x: Array) -> Array:
    a: MatrixAttributes = op.attrs
    given = rows_last(x, op.args[0].axes, a.rows, a.columns)
    m, n = given.shape[-2:]

    def decompose(each: Array) -> Array:
        q, r = np.linalg.qr(each)
        return np.concatenate([q, r.T])

    return in_place_of(each_matrix(decompose, (m + n, n), given), op.axes, a.rows, a.columns)


def _parts(packed: Any, rows: str, columns: str) -> tuple[Tensor, Tensor]:
    """Return Q, and the transpose of R with its rows along ``rows``."""
    n, whole = packed.axes[columns].expression, packed.axes[rows].expression
    return part(packed, rows, 0, whole - n), part(packed, rows, whole - n, whole)


def _linearise(op: Op, i: int, t: Tensor) -> Tensor:
    # With B = A' R^-1, X = Qᵀ B and Ω = tril(X, -1) - tril(X, -1)ᵀ: Q' = B - Q (X - Ω) and
    # R' = (X - Ω) R (Walter and Lehmann 2012, Algorithmic differentiation of linear algebra
    # functions).
    a: MatrixAttributes = op.attrs
    q, r = _parts(op, a.rows, a.columns)  # r is Rᵀ: over (rows: column of R, columns: row of R)
    axis = op.axes[a.columns]
    k = fresh(axis, op.axes)
    h = fresh(axis, op.axes, Axes(k))
    # B R = A': for each row of B, Rᵀ b = a. Rᵀ[J, K] has R's column along J, its row along K.
    rt = renamed(r, {a.rows: a.columns, a.columns: k.name})
    b = _solve(rt, t, a.columns, k.name, True, False)  # over (I, K)
    q_left = renamed(q, {a.columns: h.name})
    x = contract_two(q_left, b, (a.rows,))  # over (H, K)
    below = lower_part(x, h.name, k.name, True)
    upper = broadcast(x - below + transposed(below, h.name, k.name), x.axes)  # X - Ω
    new_q = subtract.apply(b, contract_two(q_left, upper, (h.name,)))
    new_r = contract_two(upper, rt, (k.name,))  # over (H: row of R, J: column of R)
    turned = renamed(new_r, {a.columns: a.rows, h.name: a.columns})
    return stacked([renamed(new_q, {k.name: a.columns}), turned], op.axes, a.rows)


def _samples() -> list[tuple[str, Any, Any]]:
    i, j, b = Axis("I", 4), Axis("J", 3), Axis("B", 2)
    # Signs are not defined.
    return [
        ("Q", [[i, j]], lambda x: square(qr(x, [i, j])[0])),
        ("R of a batch", [[b, i, j]], lambda x: absolute(qr(x, [i, j])[1])),
        ("Q with the batch last", [[j, i, b]], lambda x: square(qr(x, [i, j])[0])),
        ("R of a wide matrix", [[i, j]], lambda x: square(qr(x, [j, i])[1])),
    ]


QR = Primitive(
    "qr",
    "matrix",
    "Q with orthonormal columns, and in further rows the transpose of the upper triangular R, with "
    "Q R = x, for an x that has as many rows as columns or more.",
    reference=_reference,
    linearise=_linearise,
    attributes=MatrixAttributes,
    arity=1,
    infer=_infer,
    cost="kernel",
    samples=_samples,
)


@public
def qr(
    x: TensorLike, axes: AxesLike, *, axis: Axis | None = None, wide: bool | None = None
) -> tuple[Tensor, Tensor]:
    """Return Q with orthonormal columns and R, upper triangular, with Q R = x.

    ``axes`` are the axes of rows and columns, (I, J); all others are batch axes. Q is over (I, K)
    and R over (K, J), with a new ``axis`` K as long as the shorter of the two; by default it is
    named as J with primes. Batch axes come first. The signs of R's diagonal are those that LAPACK
    gives. If the lengths are open, there must be as many rows as columns at least, or with
    ``wide=True`` as many columns as rows.

    The derivative follows Walter and Lehmann, Algorithmic differentiation of linear algebra
    functions with application in optimum experimental design, 2012. It is infinite or NaN if the
    first columns, as many as K is long, are linearly dependent.
    """
    x, rows, columns = matrix("qr", x, axes)
    if is_wide("qr", x, rows, columns, wide):
        # The first columns give Q; the other columns of R are Qᵀ times those of x.
        m, n = rows.expression, columns.expression
        first, rest = (columns_of_wide("qr", x, rows, columns, *ends) for ends in ((0, m), (m, n)))
        q, r = qr(first, [rows.name, columns.name], axis=axis)
        more = contract_two(q, rest, (rows.name,))
        order = [more.axes[name] for name in r.axes.names]
        return q, concat([r, broadcast(more, Axes(order))], columns.name)
    packed = make(QR, (x,), (rows.name, columns.name, False))
    q, r = _parts(packed, rows.name, columns.name)
    new = fresh(columns, x.axes) if axis is None else axis
    r = renamed(r, {rows.name: columns.name, columns.name: new.name})
    q = innermost(renamed(q, {columns.name: new.name}), rows.name, new.name)
    return q, innermost(r, new.name, columns.name)
