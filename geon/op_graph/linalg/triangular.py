"""Solutions of triangular systems."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, Unpack

import numpy as np

from ...errors import AxisError
from ..axes.affine import Size
from ..axes.axes import Axes, Axis
from ..building.constants import as_tensor
from ..building.elementwise_build import meet
from ..building.weak import strengthen
from ..core.argument_hints import public
from ..core.primitive import Inferred, Primitive
from ..core.source_info import user_call
from ..op_graph import Guard, Op, Tensor, make
from ..rows.accumulation import accumulate
from ..rows.contraction import contract_two
from ..rows.elementwise import cast, multiply, negative
from ..rows.movement import broadcast
from ..values.attribute_types import Flag, Name
from ..values.dtypes import common_dtype
from .matrices import (
    Array,
    each_matrix,
    identity_matrix,
    in_place_of,
    in_precision,
    lower_part,
    matrix,
    require_precision,
    rows_last,
    square_guards,
    upper_part,
)

if TYPE_CHECKING:
    from ..building.typing import AxesLike, OpKeywords, TensorLike


class TriangularAttributes(NamedTuple):
    """The axes of rows and columns, and which part of the matrix is read.

    ``lower`` is the part on and below the diagonal, else that on and above it. With ``unit`` the
    elements on the diagonal are 1 and are not read.
    """

    rows: Name
    columns: Name
    lower: Flag
    unit: Flag


# Right-hand sides ---------------------------------------------------------------------------------


def system_axes(what: str, a: Op, b: Op, rows: str, columns: str) -> tuple[Axes, list[Guard]]:
    """Return the axes of x in a x = b: those of ``b`` with ``columns`` in the place of ``rows``.

    Axes of ``a`` besides the two are batch axes, which ``b`` must have. Also returns the guards on
    lengths. Raises ``AxisError`` if the axes do not fit.
    """
    guards = square_guards(what, a, rows, columns)
    length = a.axes[rows].expression
    axes, further = solution_axes(what, a, b, rows, a.axes[columns], length)
    return axes, [*guards, *further]


def solution_axes(
    what: str, a: Op, b: Op, rows: str, columns: Axis, length: Size
) -> tuple[Axes, list[Guard]]:
    """Return the axes of ``b`` with ``columns`` in the place of ``rows``, which has this length.

    ``b`` must have the axes of ``a`` besides ``columns``. Also returns the guards on lengths.
    Raises ``AxisError`` if the axes do not fit.
    """
    guards: list[Guard] = []
    for axis in (axis for axis in a.axes if axis.name != columns.name):
        if axis not in b.axes:
            raise AxisError(
                f"{what}: {b} (made at {b.line_info}) lacks the axis {axis.name!r} of {a} "
                f"(made at {a.line_info})"
            )
        wanted = length if axis.name == rows else axis.expression
        guards += meet(what, axis.name, (wanted, a), (b.axes[axis.name].expression, b))
    if columns in b.axes:
        raise AxisError(
            f"{what}: the right-hand side {b} (made at {b.line_info}) has the axis "
            f"{columns.name!r} of the solution; geon.rename it"
        )
    return Axes([columns if axis.name == rows else axis for axis in b.axes]), guards


def right_hand_side(
    what: str, a: Tensor, b: TensorLike, rows: Axis, columns: Axis
) -> tuple[Tensor, Tensor]:
    """Return ``a`` and ``b`` in one dtype, with ``b`` broadcast over the batch axes of ``a``."""
    here, b = user_call(what), as_tensor(b, near=a)
    b = in_precision(here, b)
    if rows.name not in b.axes:
        raise AxisError(
            f"{here}: the right-hand side {b} (made at {b.line_info}) lacks the axis of the rows "
            f"{rows.name!r} of {a} (made at {a.line_info}): a x = b sums a * x over "
            f"{columns.name!r}, so that {rows.name!r} is left; geon.rename an axis of b to it"
        )
    if columns.name in b.axes:
        raise AxisError(
            f"{here}: the right-hand side {b} (made at {b.line_info}) has the axis of the columns "
            f"{columns.name!r} of {a} (made at {a.line_info}), which is the axis of the solution; "
            f"geon.rename it, for example to {columns.name}.prime.prime"
        )
    dtype = common_dtype([(a.dtype, a.weak), (b.dtype, b.weak)])
    a, b = cast(strengthen(a, dtype), dtype), cast(strengthen(b, dtype), dtype)
    batch = [axis for axis in a.axes if axis.name not in (rows.name, columns.name)]
    missing = [axis for axis in batch if axis not in b.axes]
    return a, broadcast(b, Axes(missing, b.axes)) if missing else b


def outer_product(op: Op, a: Op, w: Tensor, x: Tensor, rows: str, columns: str) -> Tensor:
    """Return w xᵀ over the axes of ``a``: summed over the axes that ``a`` lacks."""
    summed = tuple([name for name in w.axes.names if name not in a.axes])
    result = contract_two(w, x, summed) if summed else multiply.apply(w, x)
    return broadcast(result, a.axes)


# The primitive ------------------------------------------------------------------------------------


def _infer(args: tuple[Any, ...], attrs: TriangularAttributes) -> Inferred:
    a, b = args
    axes, guards = system_axes("triangular_solve", a, b, attrs.rows, attrs.columns)
    require_precision("triangular_solve", args)
    return axes, args[0].dtype, tuple(guards)


def _reference(op: Op, a: Array, b: Array) -> Array:
    attrs: TriangularAttributes = op.attrs
    matrices = rows_last(a, op.args[0].axes, attrs.rows, attrs.columns)
    batch = [n for n in op.args[0].axes.names if n not in (attrs.rows, attrs.columns)]
    right_sides = [n for n in op.axes.names if n not in batch and n != attrs.columns]
    sides = rows_last(b, op.args[1].axes, *batch, attrs.rows, *right_sides)
    flat = sides.reshape(*matrices.shape[:-1], -1)
    part = np.tril(matrices) if attrs.lower else np.triu(matrices)
    if attrs.unit:
        n = part.shape[-1]
        part = np.where(np.eye(n, dtype=bool), part.dtype.type(1), part)

    def solve(each: Array, side: Array) -> Array:
        x = side.astype(np.float64)
        wide = each.astype(np.float64)
        n = len(each)
        for k in range(n) if attrs.lower else range(n)[::-1]:
            before = slice(0, k) if attrs.lower else slice(k + 1, n)
            x[k] = (x[k] - wide[k, before] @ x[before]) / wide[k, k]
        return x

    solution = each_matrix(solve, flat.shape[-2:], part, flat)
    return in_place_of(solution.reshape(sides.shape), op.axes, *batch, attrs.columns, *right_sides)


def _solve(a: Any, b: Any, rows: str, columns: str, lower: bool, unit: bool) -> Tensor:
    return make(TRIANGULAR_SOLVE, (a, b), (rows, columns, lower, unit))


def _part(x: Tensor, attrs: TriangularAttributes) -> Tensor:
    keep = lower_part if attrs.lower else upper_part
    return keep(x, attrs.rows, attrs.columns, attrs.unit)


def _vjp(g: Tensor, op: Op) -> list[Tensor | None]:
    # With w = a^-T g: b's cotangent is w, and a's the triangle of -w xᵀ (Giles 2008, 2.3.1).
    a: TriangularAttributes = op.attrs
    w = _solve(op.args[0], g, a.columns, a.rows, not a.lower, a.unit)
    x: Any = op
    product = outer_product(op, op.args[0], w, x, a.rows, a.columns)
    return [_part(negative.apply(product), a), broadcast(w, op.args[1].axes)]


def _jvp(op: Op, moving: list[int], tangents: Any) -> Tensor:
    a: TriangularAttributes = op.attrs
    side: Tensor | None = None
    x: Any = op
    if 0 in moving:
        change = contract_two(_part(tangents[op.args[0]], a), x, (a.columns,))
        side = broadcast(negative.apply(change), op.args[1].axes)
    if 1 in moving:
        side = accumulate(side, tangents[op.args[1]])
    assert side is not None
    return _solve(op.args[0], side, a.rows, a.columns, a.lower, a.unit)


def _samples() -> list[tuple[str, Any, Any]]:
    i, j, b, k = Axis("I", 3), Axis("J", 3), Axis("B", 2), Axis("K", 2)

    def build(lower: bool, unit: bool = False, axes: Any = (i, j)) -> Any:
        def made(x: Tensor, y: Tensor) -> Tensor:
            one = identity_matrix(x.axes["I"], x.axes["J"], x.dtype)
            strong = x + multiply.apply(4.0, one)
            return triangular_solve(strong, y, list(axes), lower=lower, unit=unit)

        return made

    return [
        ("lower", [[i, j], [i]], build(True)),
        ("upper, of a batch", [[b, i, j], [b, i, k]], build(False)),
        ("of a transpose", [[i, b, j], [k, j, b]], build(False, axes=(j, i))),
        ("with a unit diagonal", [[i, j], [i, k]], build(True, True)),
    ]


TRIANGULAR_SOLVE = Primitive(
    "triangular_solve",
    "matrix",
    "The solution x of a x = b, for a triangular matrix a; infinite or NaN where a diagonal "
    "element is 0.",
    reference=_reference,
    vjp=_vjp,
    jvp=_jvp,
    attributes=TriangularAttributes,
    arity=2,
    infer=_infer,
    cost="kernel",
    in_place=(1,),
    batched_together=(1,),
    samples=_samples,
)


@public
def triangular_solve(
    a: TensorLike,
    b: TensorLike,
    axes: AxesLike,
    *,
    lower: bool = True,
    unit: bool = False,
    **notes: Unpack[OpKeywords],
) -> Tensor:
    """Return x with a x = b, for a triangular matrix ``a``.

    ``axes`` are the axes of rows and columns of ``a``; its other axes are batch axes. ``b`` is over
    the rows and any other axes, and x over the same with the columns in the place of the rows, so
    that ``geon.dot(a, x, columns)`` is b. Only the ``lower`` part of ``a`` is read, or the upper
    one with ``lower=False``; with ``unit`` its diagonal is taken to be 1. The transpose of ``a`` is
    meant by exchanging ``axes``: the lower part over [I, J] is the upper part over [J, I].

    A diagonal element of 0 makes x infinite or NaN. The derivative follows Giles, An extended
    collection of matrix derivative results for forward and reverse mode algorithmic
    differentiation, 2008.
    """
    a, rows, columns = matrix("triangular_solve", a, axes)
    a, b = right_hand_side("triangular_solve", a, b, rows, columns)
    return _solve(a, b, rows.name, columns.name, lower, unit)
