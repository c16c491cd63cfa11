"""Functions of matrices made of factorisations: least squares, powers, exponentials and norms."""

from __future__ import annotations

from operator import index
from typing import TYPE_CHECKING, Any, Unpack

import numpy as np

from ...errors import ArgumentError
from ..axes.axes import Axes, Axis
from ..core.argument_hints import public
from ..core.primitive import Inferred, Primitive
from ..core.source_info import user_call
from ..op_graph import Op, Tensor, make
from ..regions.while_loop import while_loop
from ..rows.contraction import contract_two
from ..rows.elementwise import (
    absolute,
    cast,
    ceil,
    divide,
    exp,
    greater,
    less,
    log,
    maximum,
    multiply,
    sqrt,
    square,
    stop_gradient,
    subtract,
    where,
)
from ..rows.leaves import length_value
from ..rows.movement import broadcast
from ..rows.reductions import max as largest_of
from ..rows.reductions import min as smallest_of
from ..rows.reductions import sum as sum_of
from ..values.dtypes import INT64
from .lu import inv, solve
from .matrices import (
    MatrixAttributes,
    fresh,
    identity_matrix,
    matrix,
    matrix_lengths,
    renamed,
    require_precision,
    same_axes_guards,
    square_guards,
)
from .spectral import svd
from .triangular import right_hand_side

if TYPE_CHECKING:
    from ..building.typing import AxesLike, OpKeywords, TensorLike


def product(x: Tensor, y: Tensor, rows: str, columns: str) -> Tensor:
    """Return the matrix product of two square matrices over the same axes, in the order of x's."""
    inner = fresh(x.axes[columns], x.axes).name
    result = contract_two(renamed(x, {columns: inner}), renamed(y, {rows: inner}), (inner,))
    return broadcast(result, x.axes)


# Least squares ------------------------------------------------------------------------------------


def _pinv_infer(args: tuple[Any, ...], attrs: MatrixAttributes) -> Inferred:
    a, value = args
    matrix_lengths("pinv", a, attrs.rows, attrs.columns)
    require_precision("pinv", args)
    return value.axes, value.dtype, tuple(same_axes_guards("pinv", value, a))


def _pinv_linearise(op: Op, i: int, t: Tensor) -> Tensor | None:
    # With P the inverse of a: P' = -P a' P + P Pᵀ a'ᵀ (1 - a P) + (1 - P a) a'ᵀ Pᵀ P (Golub and
    # Pereyra 1973, The differentiation of pseudo-inverses), where the rank is constant.
    if i != 0:
        return None
    a: MatrixAttributes = op.attrs
    rows, columns = a.rows, a.columns
    x: Any = op.args[0]
    p: Any = op  # over (columns, rows)
    other_rows = fresh(x.axes[rows], x.axes, op.axes).name
    other_columns = fresh(x.axes[columns], x.axes, op.axes).name
    turned = renamed(p, {rows: other_rows})  # over (J, I')
    left = contract_two(t, turned, (columns,))  # a' P over (I, I')
    first = contract_two(p, left, (rows,))  # over (J, I')
    gone = contract_two(x, turned, (columns,))  # a P over (I, I')
    outside = subtract.apply(_unit(gone, rows, other_rows), gone)  # symmetric
    second = contract_two(t, outside, (rows,))  # a'ᵀ (1 - a P) over (J, I')
    shared = contract_two(p, renamed(p, {columns: other_columns}), (rows,))  # P Pᵀ over (J, J')
    second = contract_two(renamed(second, {columns: other_columns}), shared, (other_columns,))
    kept = contract_two(p, renamed(x, {columns: other_columns}), (rows,))  # P a over (J, J')
    complement = subtract.apply(_unit(kept, columns, other_columns), kept)
    both = contract_two(p, turned, (columns,))  # Pᵀ P over (I, I')
    third = contract_two(t, both, (rows,))  # a'ᵀ Pᵀ P over (J, I')
    third = contract_two(complement, renamed(third, {columns: other_columns}), (other_columns,))
    total = second + third - first
    return broadcast(renamed(total, {other_rows: rows}), op.axes)


def _unit(x: Tensor, rows: str, columns: str) -> Tensor:
    return identity_matrix(x.axes[rows], x.axes[columns], x.dtype)


def _pinv_samples() -> list[tuple[str, Any, Any]]:
    i, j, b = Axis("I", 4), Axis("J", 3), Axis("B", 2)

    def build(x: Tensor) -> Tensor:
        return pinv(x + 2 * identity_matrix(i, j, x.dtype), [i, j])

    def deficient(x: Tensor) -> Tensor:
        outer = contract_two(renamed(x, {"J": "K"}), renamed(x, {"I": "J", "J": "K"}), ("K",))
        return pinv(outer, [i, "J"])

    return [
        ("of a batch", [[b, i, j]], build),
        ("of a wide matrix", [[i, j]], lambda x: pinv(x + 2 * _unit(x, "I", "J"), [j, i])),
        ("of a matrix without full rank", [[i, Axis("J", 2)]], deficient),
    ]


PINV = Primitive(
    "pinv",
    "matrix",
    "The pseudo-inverse of a, from a and its value.",
    reference=lambda op, a, value: value,
    linearise=_pinv_linearise,
    attributes=MatrixAttributes,
    arity=2,
    infer=_pinv_infer,
    batched_together=(1,),
    samples=_pinv_samples,
)


def _cutoff(s: Tensor, rows: Axis, columns: Axis, tolerance: Any, new: str) -> Tensor:
    """Return the singular value up to which values count as 0."""
    largest = largest_of(s, [new])
    if tolerance is None:
        m, n = length_value(rows.expression), length_value(columns.expression)
        epsilon = float(np.finfo(s.dtype).eps)
        return multiply.apply(cast(maximum.apply(m, n), s.dtype) * epsilon, largest)
    return multiply.apply(tolerance, largest)


@public
def pinv(
    a: TensorLike,
    axes: AxesLike,
    *,
    tolerance: TensorLike | None = None,
    wide: bool | None = None,
    **notes: Unpack[OpKeywords],
) -> Tensor:
    """Return the pseudo-inverse (Moore and Penrose) of matrices over two ``axes``.

    The result has the axes of the matrix, with rows and columns exchanged, as that of ``inv``.
    Singular values of at most ``tolerance`` times the largest count as 0; by default it is the
    larger length times the spacing of floats at 1. The derivative follows Golub and Pereyra, The
    differentiation of pseudo-inverses, 1973; it holds where the rank is constant. Raises
    ``LinearAlgebraError`` at a call for a matrix with NaN.

    If the lengths are open, there must be as many rows as columns at least, or with ``wide=True``
    as many columns as rows.
    """
    a, rows, columns = matrix("pinv", a, axes)
    u, s, v = svd(stop_gradient(a), [rows, columns], wide=wide)
    (new,) = (axis for axis in s.axes if axis not in a.axes)
    high = greater.apply(s, _cutoff(s, rows, columns, tolerance, new.name))
    inverse = where.apply(high, divide.apply(1.0, where.apply(high, s, 1.0)), 0)
    value = contract_two(multiply.apply(v, inverse), u, (new.name,))
    names = {rows.name: columns.name, columns.name: rows.name}
    value = broadcast(value, Axes([value.axes[names.get(n, n)] for n in a.axes.names]))
    return make(PINV, (a, stop_gradient(value)), (rows.name, columns.name, False))


@public
def lstsq(
    a: TensorLike,
    b: TensorLike,
    axes: AxesLike,
    *,
    tolerance: TensorLike | None = None,
    wide: bool | None = None,
    **notes: Unpack[OpKeywords],
) -> Tensor:
    """Return the x of least norm that minimises the norm of a x - b, by the pseudo-inverse.

    ``axes`` are the axes of rows and columns of ``a``, which need not be square; its other axes are
    batch axes. ``b`` is over the rows and any other axes, and x over the same with the columns in
    the place of the rows, as for ``solve``. ``tolerance`` and ``wide`` are those of ``pinv``.
    """
    a, rows, columns = matrix("lstsq", a, axes)
    a, b = right_hand_side("lstsq", a, b, rows, columns)
    result = contract_two(b, pinv(a, [rows, columns], tolerance=tolerance, wide=wide), (rows.name,))
    order = [columns if axis.name == rows.name else axis for axis in b.axes]
    return broadcast(result, Axes([result.axes[axis.name] for axis in order]))


# Powers and exponentials --------------------------------------------------------------------------


@public
def matrix_power(a: TensorLike, power: int, axes: AxesLike, **notes: Unpack[OpKeywords]) -> Tensor:
    """Return square matrices over two ``axes`` to an integer ``power``, by repeated squaring.

    A negative power is one of the inverse, with the same axes. Raises ``ArgumentError`` if it is no
    integer.
    """
    a, rows, columns = matrix("matrix_power", a, axes)
    if isinstance(power, bool) or not hasattr(power, "__index__"):
        raise ArgumentError(f"{user_call('matrix_power')}: power={power!r} is no integer")
    square_guards("matrix_power", a, rows.name, columns.name)
    count, base = index(power), a
    if count < 0:
        back = {rows.name: columns.name, columns.name: rows.name}
        base, count = broadcast(renamed(inv(a, [rows, columns]), back), a.axes), -count
    total: Tensor | None = None
    while count:
        if count % 2:
            total = base if total is None else product(total, base, rows.name, columns.name)
        count //= 2
        base = product(base, base, rows.name, columns.name) if count else base
    return broadcast(_unit(a, rows.name, columns.name), a.axes) if total is None else total


# Numerators of the Padé approximant of exp of degree 13, and the norm up to which it is exact.
PADE_13 = (
    64764752532480000.0, 32382376266240000.0, 7771770303897600.0, 1187353796428800.0,
    129060195264000.0, 10559470521600.0, 670442572800.0, 33522128640.0, 1323241920.0, 40840800.0,
    960960.0, 16380.0, 182.0, 1.0,
)  # fmt: skip
MAX_NORM = 5.371920351148152


@public
def expm(a: TensorLike, axes: AxesLike, **notes: Unpack[OpKeywords]) -> Tensor:
    """Return the exponential of square matrices over two ``axes``, by scaling and squaring.

    It uses the Padé approximant of degree 13 (Higham, The scaling and squaring method for the
    matrix exponential revisited, 2005). All matrices of a batch are scaled by one power of 2, that
    of the largest.
    """
    a, rows, columns = matrix("expm", a, axes)
    i, j = rows.name, columns.name
    square_guards("expm", a, i, j)
    norm = largest_of(sum_of(absolute(stop_gradient(a)), [i])) if len(a.axes) else a
    norm = maximum.apply(norm, float(np.finfo(a.dtype).tiny))
    excess = divide.apply(log(divide.apply(norm, MAX_NORM)), float(np.log(2)))
    count = maximum.apply(ceil(excess), 0)
    scaled = multiply.apply(a, exp(multiply.apply(count, -float(np.log(2)))))

    def times(x: Tensor, y: Tensor) -> Tensor:
        return product(x, y, i, j)

    unit = broadcast(_unit(a, i, j), a.axes)
    # The coefficients are divided by the first, so that they fit into float32.
    c = [value / PADE_13[0] for value in PADE_13]
    a2 = times(scaled, scaled)
    a4 = times(a2, a2)
    a6 = times(a4, a2)
    odd = times(a6, c[13] * a6 + c[11] * a4 + c[9] * a2)
    odd = times(scaled, odd + c[7] * a6 + c[5] * a4 + c[3] * a2 + c[1] * unit)
    even = times(a6, c[12] * a6 + c[10] * a4 + c[8] * a2)
    even = even + c[6] * a6 + c[4] * a4 + c[2] * a2 + c[0] * unit
    other = fresh(columns, a.axes)
    side = renamed(odd + even, {j: other.name})
    solution = renamed(solve(even - odd, side, [rows, columns]), {j: i, other.name: j})
    begin = broadcast(solution, a.axes)
    squarings = cast(count, INT64)
    steps = cast(multiply.apply(squarings, 0), INT64)
    _, last = while_loop(
        lambda state: less.apply(state[0], squarings),
        lambda state: (state[0] + 1, times(state[1], state[1])),
        (steps, begin),
    )
    result: Tensor = last
    return result


# Ranks, condition numbers and norms ---------------------------------------------------------------


def _values(
    what: str, a: TensorLike, axes: AxesLike, wide: bool | None
) -> tuple[Tensor, str, Axis, Axis]:
    """Return singular values, the name of their axis, and the axes of the matrix."""
    a, rows, columns = matrix(what, a, axes)
    s = svd(a, [rows, columns], wide=wide)[1]
    (new,) = (axis.name for axis in s.axes if axis not in a.axes)
    return s, new, rows, columns


@public
def matrix_rank(
    a: TensorLike,
    axes: AxesLike,
    *,
    tolerance: TensorLike | None = None,
    wide: bool | None = None,
    **notes: Unpack[OpKeywords],
) -> Tensor:
    """Return the rank of matrices over two ``axes``, as int64: the number of singular values > 0.

    Those of at most ``tolerance`` times the largest count as 0, as in ``pinv``. ``wide`` is that of
    ``svd``.
    """
    s, new, rows, columns = _values("matrix_rank", a, axes, wide)
    high = greater.apply(s, _cutoff(s, rows, columns, tolerance, new))
    return sum_of(cast(high, INT64), [new])


@public
def cond(
    a: TensorLike, axes: AxesLike, *, wide: bool | None = None, **notes: Unpack[OpKeywords]
) -> Tensor:
    """Return the condition number of matrices over two ``axes``: the largest singular value divided
    by the smallest; infinite for a singular matrix. ``wide`` is that of ``svd``.
    """
    s, new, _, _ = _values("cond", a, axes, wide)
    return divide.apply(largest_of(s, [new]), smallest_of(s, [new]))


@public
def matrix_norm(
    a: TensorLike,
    axes: AxesLike,
    order: str | int = "frobenius",
    *,
    wide: bool | None = None,
    **notes: Unpack[OpKeywords],
) -> Tensor:
    """Return a norm of matrices over two ``axes``, those of rows and columns.

    ``order`` is ``"frobenius"`` (the root of the sum of squares), ``"nuclear"`` (the sum of the
    singular values), 2 (the largest singular value), 1 (the largest sum of absolute values of a
    column) or ``"inf"`` (the largest of a row). ``wide`` is that of ``svd``, for norms by singular
    values. Raises ``ArgumentError`` for another order.
    """
    x, rows, columns = matrix("matrix_norm", a, axes)
    if order in ("nuclear", 2):
        s, new, _, _ = _values("matrix_norm", x, [rows, columns], wide)
        return sum_of(s, [new]) if order == "nuclear" else largest_of(s, [new])
    if order in (1, "inf"):
        summed, kept = (rows, columns) if order == 1 else (columns, rows)
        return largest_of(sum_of(absolute(x), [summed.name]), [kept.name])
    if order != "frobenius":
        raise ArgumentError(
            f"{user_call('matrix_norm')}: order={order!r} is none of 'frobenius', 'nuclear', 2, 1 "
            "and 'inf'"
        )
    return sqrt(sum_of(square(x), [rows.name, columns.name]))
