"""LU factorisation with partial pivoting, and what follows from it: solutions and determinants."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, Unpack

import numpy as np

from ..axes.axes import Axes, Axis
from ..building.elementwise_build import meet
from ..core.argument_hints import public
from ..core.primitive import Inferred, Primitive
from ..functions.resizing import diagonal
from ..op_graph import Op, Tensor, make
from ..rows.accumulation import accumulate
from ..rows.contraction import contract_two
from ..rows.elementwise import (
    absolute,
    cast,
    log,
    multiply,
    negative,
    not_equal,
    stop_gradient,
    where,
)
from ..rows.leaves import iota
from ..rows.movement import broadcast
from ..rows.reductions import prod, sum
from ..values.attribute_types import Flag, Name
from .matrices import (
    Array,
    MatrixAttributes,
    each_matrix,
    fresh,
    identity_matrix,
    in_place_of,
    matrix,
    matrix_lengths,
    renamed,
    require_precision,
    rows_last,
    same_axes_guards,
    square_guards,
    square_infer,
)
from .triangular import outer_product, right_hand_side, solution_axes, system_axes

if TYPE_CHECKING:
    from ..building.typing import AxesLike, OpKeywords, TensorLike


class SolveAttributes(NamedTuple):
    """The axes of rows and columns of the matrix a.

    If ``transposed``, the transpose of a is meant: the right-hand side is over the columns, and the
    solution over the rows. If ``certain``, a singular matrix is no error: its solution is NaN.
    """

    rows: Name
    columns: Name
    transposed: Flag
    certain: Flag


# The factorisation --------------------------------------------------------------------------------


def factorised(x: Array) -> Array:
    """Return the packed factors of one matrix, as ``LU`` defines them."""
    n = len(x)
    a, pivots = x.astype(np.float64), np.zeros(n)
    for k in range(n):
        pivot = k + int(np.argmax(np.abs(a[k, k:])))
        pivots[k] = pivot
        a[:, [k, pivot]] = a[:, [pivot, k]]
        a[k, k + 1 :] /= a[k, k] if a[k, k] != 0 else 1
        a[k + 1 :, k + 1 :] -= np.outer(a[k + 1 :, k], a[k, k + 1 :])
    return np.concatenate([a, pivots[None]])


def _reference(op: Op, x: Array) -> Array:
    a: MatrixAttributes = op.attrs
    given = rows_last(x, op.args[0].axes, a.rows, a.columns)
    n = given.shape[-1]
    return in_place_of(each_matrix(factorised, (n + 1, n), given), op.axes, a.rows, a.columns)


def _lu_samples() -> list[tuple[str, Any, Any]]:
    i, j, b = Axis("I", 3), Axis("J", 3), Axis("B", 2)

    def build(x: Tensor) -> Tensor:
        return _factors(x, "I", "J")

    return [("of a matrix", [[i, j]], build), ("of a batch", [[b, i, j]], build)]


LU = Primitive(
    "lu",
    "matrix",
    "The factors of x with its columns exchanged: lower triangular on and below the diagonal, unit "
    "upper triangular above it, and in a further row the column with which each was exchanged.",
    reference=_reference,
    attributes=MatrixAttributes,
    arity=1,
    infer=square_infer("lu", 1),
    cost="kernel",
    samples=_lu_samples,
)


def _factors(a: Tensor, rows: str, columns: str) -> Tensor:
    """Return the packed factors of ``a``, through which no derivative flows."""
    result = make(LU, (a,), (rows, columns, False))
    return stop_gradient(result)


def pivots_of(f: Any, rows: str) -> Tensor:
    """Return the row of packed factors that has the exchanges, along the columns."""
    last = f.axes[rows].expression - 1
    result: Tensor = f[{f.axes[rows]: last}]
    return result


def diagonal_of(f: Any, rows: str, columns: str) -> Tensor:
    """Return the diagonal of packed factors, along the columns."""
    count = f.axes[rows].expression - 1
    return diagonal(f[{f.axes[rows]: slice(0, count)}], [columns, rows])


# Solutions ----------------------------------------------------------------------------------------


def _solve_axes(what: str, a: Op, b: Op, attrs: SolveAttributes) -> Any:
    rows, columns = attrs.rows, attrs.columns
    if attrs.transposed:
        rows, columns = columns, rows
    return system_axes(what, a, b, rows, columns)


def _solve_infer(args: tuple[Any, ...], attrs: SolveAttributes) -> Inferred:
    a, f, b = args
    axes, guards = _solve_axes("solve", a, b, attrs)
    require_precision("solve", args)
    return axes, a.dtype, (*guards, *same_axes_guards("solve", f, a, attrs.rows))


def _lu_solve_infer(args: tuple[Any, ...], attrs: SolveAttributes) -> Inferred:
    f, b = args
    require_precision("lu_solve", args)
    whole, n = matrix_lengths("lu_solve", f, attrs.rows, attrs.columns)
    guards = meet("lu_solve", attrs.rows, (whole, f), (n + 1, f))
    old, new = (attrs.columns, attrs.rows) if attrs.transposed else (attrs.rows, attrs.columns)
    axes, further = solution_axes("lu_solve", f, b, old, f.axes[attrs.columns].named(new), n)
    return axes, b.dtype, (*guards, *further)


def _lu_solve_reference(op: Op, *arrays: Array) -> Array:
    attrs: SolveAttributes = op.attrs
    f_axes, b_axes = (arg.axes for arg in op.args[-2:])
    f, b = arrays[-2:]
    old, new = (attrs.columns, attrs.rows) if attrs.transposed else (attrs.rows, attrs.columns)
    factors = rows_last(f, f_axes, attrs.rows, attrs.columns)
    batch = [n for n in f_axes.names if n not in (attrs.rows, attrs.columns)]
    right_sides = [n for n in op.axes.names if n not in batch and n != new]
    sides = rows_last(b, b_axes, *batch, old, *right_sides)
    n = factors.shape[-1]
    flat = sides.reshape(*factors.shape[:-2], n, -1)

    def solve(each: Array, side: Array) -> Array:
        square = each[:-1].astype(np.float64)
        lower, upper = np.tril(square), np.triu(square, 1) + np.eye(n)
        # x = permuted identity: a = lower upper permutationᵀ.
        order = np.arange(n)
        for k, other in enumerate(each[-1].astype(int)):
            order[[k, other]] = order[[other, k]]
        if np.any(np.diagonal(lower) == 0) or not np.isfinite(square).all():
            return np.full_like(side, np.nan)
        if attrs.transposed:
            return np.linalg.solve(lower.T, np.linalg.solve(upper.T, side[order]))
        x = np.empty_like(side, dtype=np.float64)
        x[order] = np.linalg.solve(upper, np.linalg.solve(lower, side.astype(np.float64)))
        return x

    solution = each_matrix(solve, flat.shape[-2:], factors, flat)
    return in_place_of(solution.reshape(sides.shape), op.axes, *batch, new, *right_sides)


def _solved(a: Any, f: Any, b: Any, attrs: SolveAttributes) -> Tensor:
    return make(SOLVE, (a, f, b), attrs)


def _solve_vjp(g: Tensor, op: Op) -> list[Tensor | None]:
    # With w = a^-T g: b's cotangent is w, and a's -w xᵀ (Giles 2008, 2.2.3).
    a: SolveAttributes = op.attrs
    w = _solved(op.args[0], op.args[1], g, a._replace(transposed=not a.transposed))
    x: Any = op
    product = outer_product(op, op.args[0], w, x, a.rows, a.columns)
    return [negative.apply(product), None, broadcast(w, op.args[2].axes)]


def _solve_jvp(op: Op, moving: list[int], tangents: Any) -> Tensor | None:
    a: SolveAttributes = op.attrs
    side: Tensor | None = None
    x: Any = op
    summed = a.rows if a.transposed else a.columns
    if 0 in moving:
        change = contract_two(tangents[op.args[0]], x, (summed,))
        side = broadcast(negative.apply(change), op.args[2].axes)
    if 2 in moving:
        side = accumulate(side, tangents[op.args[2]])
    if side is None:
        return None
    return _solved(op.args[0], op.args[1], side, a)


def _shifted(x: Tensor) -> Tensor:
    """Return x + 4 over (I, J), a well-conditioned matrix for samples."""
    return x + multiply.apply(4.0, identity_matrix(x.axes["I"], x.axes["J"], x.dtype))


def _solve_samples() -> list[tuple[str, Any, Any]]:
    i, j, b, k = Axis("I", 3), Axis("J", 3), Axis("B", 2), Axis("K", 2)
    return [
        ("of a vector", [[i, j], [i]], lambda x, y: solve(_shifted(x), y, [i, j])),
        ("of a batch", [[b, i, j], [b, i, k]], lambda x, y: solve(_shifted(x), y, [i, j])),
        ("exchanged", [[i, b, j], [k, j, b]], lambda x, y: solve(_shifted(x), y, [j, i])),
        ("of many sides", [[i, j], [b, k, i]], lambda x, y: solve(_shifted(x), y, [i, j])),
    ]


SOLVE = Primitive(
    "solve",
    "matrix",
    "The solution x of a x = b, from a, its packed factors, and b; NaN where a is singular.",
    reference=_lu_solve_reference,
    vjp=_solve_vjp,
    jvp=_solve_jvp,
    attributes=SolveAttributes,
    arity=3,
    infer=_solve_infer,
    cost="kernel",
    batched_together=(2,),
    samples=_solve_samples,
)
LU_SOLVE: Primitive = Primitive(
    "lu_solve",
    "matrix",
    "The solution x of a x = b, from the packed factors of a, and b.",
    reference=_lu_solve_reference,
    attributes=SolveAttributes,
    arity=2,
    infer=_lu_solve_infer,
    cost="kernel",
    in_place=(1,),
    batched_together=(1,),
    samples=lambda: [
        (
            "of a matrix",
            [[Axis("I", 3), Axis("J", 3)], [Axis("I", 3)]],
            lambda x, y: make(
                LU_SOLVE, (_factors(_shifted(x), "I", "J"), y), ("I", "J", False, False)
            ),
        )
    ],
)


@public
def solve(
    a: TensorLike, b: TensorLike, axes: AxesLike, *, check: bool = True, **notes: Unpack[OpKeywords]
) -> Tensor:
    """Return x with a x = b, by LU factorisation with partial pivoting.

    ``axes`` are the axes of rows and columns of ``a``; its other axes are batch axes. ``b`` is over
    the rows and any other axes, and x over the same with the columns in the place of the rows:
    ``geon.dot(a, x, columns)`` is b. The transpose of ``a`` is meant by exchanging ``axes``.
    Several solutions and derivatives with one matrix share its factorisation.

    Raises ``LinearAlgebraError`` at a call if a matrix is singular, with its place along the batch
    axes. With ``check=False`` the solution of such a matrix is NaN instead, and those of others
    stay as they are.

    The derivative follows Giles, An extended collection of matrix derivative results for forward
    and reverse mode algorithmic differentiation, 2008.
    """
    a, rows, columns = matrix("solve", a, axes)
    a, b = right_hand_side("solve", a, b, rows, columns)
    # One factorisation serves a matrix and its transpose.
    first, second = [name for name in a.axes.names if name in (rows.name, columns.name)]
    square_guards("solve", a, rows.name, columns.name)
    attrs = SolveAttributes(first, second, rows.name != first, not check)
    return _solved(a, _factors(a, first, second), b, attrs)


@public
def inv(
    a: TensorLike, axes: AxesLike, *, check: bool = True, **notes: Unpack[OpKeywords]
) -> Tensor:
    """Return the inverse of matrices over two ``axes``, those of rows and columns.

    The result has the axes of ``a``, of which those of the matrix have changed places: the inverse
    of a matrix over (I, J) has rows J and columns I, so that ``geon.dot(inverse, b, I)`` solves
    a x = b. Prefer ``solve``, which is faster and more accurate.

    Raises ``LinearAlgebraError`` at a call if a matrix is singular. With ``check=False`` its
    inverse is NaN instead.
    """
    a, rows, columns = matrix("inv", a, axes)
    other = fresh(rows, a.axes)
    unit = identity_matrix(rows, other, a.dtype)
    batch = [axis for axis in a.axes if axis.name not in (rows.name, columns.name)]
    unit = broadcast(unit, Axes(batch, unit.axes))
    inverse = renamed(solve(a, unit, [rows, columns], check=check), {other.name: rows.name})
    names = {rows.name: columns.name, columns.name: rows.name}
    return broadcast(inverse, Axes([inverse.axes[names.get(n, n)] for n in a.axes.names]))


# Determinants -------------------------------------------------------------------------------------


def _reduced_infer(what: str) -> Any:
    def infer(args: tuple[Any, ...], attrs: MatrixAttributes) -> Inferred:
        a, f = args
        guards = square_guards(what, a, attrs.rows, attrs.columns)
        require_precision(what, args)
        guards += tuple(same_axes_guards(what, f, a, attrs.rows))
        return a.axes.without([attrs.rows, attrs.columns]), a.dtype, guards

    return infer


def _determinant_reference(op: Op, a: Array, f: Array) -> Array:
    attrs: MatrixAttributes = op.attrs
    matrices = rows_last(a, op.args[0].axes, attrs.rows, attrs.columns)
    return np.asarray(np.linalg.det(matrices))


def _log_reference(op: Op, a: Array, f: Array) -> Array:
    attrs: MatrixAttributes = op.attrs
    matrices = rows_last(a, op.args[0].axes, attrs.rows, attrs.columns)
    return np.asarray(np.linalg.slogdet(matrices)[1])


def _inverse_transposed(op: Op) -> Tensor:
    """Return a^-T over the axes of a, for the matrix of a determinant."""
    a: MatrixAttributes = op.attrs
    x: Any = op.args[0]
    other = fresh(x.axes[a.columns], x.axes)
    unit = identity_matrix(x.axes[a.columns], other, x.dtype)
    batch = [axis for axis in x.axes if axis.name not in (a.rows, a.columns)]
    unit = broadcast(unit, Axes(batch, unit.axes))
    result = _solved(x, op.args[1], unit, SolveAttributes(a.rows, a.columns, True, False))
    return broadcast(renamed(result, {other.name: a.columns}), x.axes)


def _log_vjp(g: Tensor, op: Op) -> list[Tensor | None]:
    # The derivative of log|det a| is a^-T (Giles 2008, 2.2.4).
    result = multiply.apply(g, _inverse_transposed(op))
    return [broadcast(result, op.args[0].axes), None]


def _log_jvp(op: Op, moving: list[int], tangents: Any) -> Tensor | None:
    if 0 not in moving:
        return None
    a: MatrixAttributes = op.attrs
    t = tangents[op.args[0]]
    return broadcast(contract_two(t, _inverse_transposed(op), (a.rows, a.columns)), op.axes)


def _determinant_vjp(g: Tensor, op: Op) -> list[Tensor | None]:
    out: Any = op
    return _log_vjp(multiply.apply(g, out), op)


def _determinant_jvp(op: Op, moving: list[int], tangents: Any) -> Tensor | None:
    result = _log_jvp(op, moving, tangents)
    out: Any = op
    return None if result is None else multiply.apply(out, result)


def _determinant_samples(function: Any) -> Any:
    i, j, b = Axis("I", 3), Axis("J", 3), Axis("B", 2)

    def build(x: Tensor) -> Tensor:
        return function(_shifted(x), [i, j])  # type: ignore[no-any-return]  # a tensor

    return lambda: [("of a matrix", [[i, j]], build), ("of a batch", [[i, b, j]], build)]


def log_absolute_determinant(f: Tensor, rows: str, columns: str) -> Tensor:
    """Return log|det a| from packed factors."""
    return sum(log(absolute(diagonal_of(f, rows, columns))), columns)


def determinant_sign(f: Tensor, rows: str, columns: str) -> Tensor:
    """Return the sign of the determinant from packed factors: 1, -1, or 0."""
    diagonal = diagonal_of(f, rows, columns)
    own = where.apply(diagonal < 0, -1.0, where.apply(diagonal > 0, 1.0, diagonal * 0.0))
    axis = f.axes[columns]
    exchanged = not_equal.apply(pivots_of(f, rows), cast(iota(axis), f.dtype))
    return prod(cast(where.apply(exchanged, -1.0, 1.0), f.dtype) * own, columns)


def determinant(f: Tensor, rows: str, columns: str) -> Tensor:
    """Return det a from packed factors."""
    exchanged = not_equal.apply(pivots_of(f, rows), cast(iota(f.axes[columns]), f.dtype))
    signs = cast(where.apply(exchanged, -1.0, 1.0), f.dtype)
    return prod(signs * diagonal_of(f, rows, columns), columns)


def _absolute_log(a: TensorLike, axes: AxesLike) -> Tensor:
    a, rows, columns = matrix("slogdet", a, axes)
    f = _factors(a, rows.name, columns.name)
    return make(LOG_DETERMINANT, (a, f), (rows.name, columns.name, False))


LOG_DETERMINANT = Primitive(
    "log_determinant",
    "matrix",
    "The logarithm of the absolute value of the determinant of a, from a and its packed factors.",
    reference=_log_reference,
    vjp=_log_vjp,
    jvp=_log_jvp,
    attributes=MatrixAttributes,
    arity=2,
    infer=_reduced_infer("slogdet"),
    cost="kernel",
    samples=_determinant_samples(_absolute_log),
)


@public
def det(a: TensorLike, axes: AxesLike, **notes: Unpack[OpKeywords]) -> Tensor:
    """Return the determinant of matrices over two ``axes``; the others remain.

    The determinant of a singular matrix is 0. Its derivative there needs the inverse, and raises
    ``LinearAlgebraError``. For a matrix of many rows take ``slogdet``: its determinant may be too
    large or too small for a float.
    """
    a, rows, columns = matrix("det", a, axes)
    f = _factors(a, rows.name, columns.name)
    return make(DETERMINANT, (a, f), (rows.name, columns.name, False))


DETERMINANT = Primitive(
    "determinant",
    "matrix",
    "The determinant of a, from a and its packed factors.",
    reference=_determinant_reference,
    vjp=_determinant_vjp,
    jvp=_determinant_jvp,
    attributes=MatrixAttributes,
    arity=2,
    infer=_reduced_infer("det"),
    cost="kernel",
    samples=_determinant_samples(det),
)


@public
def slogdet(a: TensorLike, axes: AxesLike) -> tuple[Tensor, Tensor]:
    """Return the sign of the determinant, and the logarithm of its absolute value.

    ``axes`` are the axes of rows and columns; the others remain. For a singular matrix they are 0
    and -inf, and the derivative of the logarithm raises ``LinearAlgebraError``.
    """
    logarithm = _absolute_log(a, axes)
    row: Any = logarithm
    attrs: MatrixAttributes = row.attrs
    return determinant_sign(row.args[1], attrs.rows, attrs.columns), logarithm
