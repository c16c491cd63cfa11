"""Factorisations of matrices and solutions by them as loops, for which ONNX has no operator.

Matrices of at most 8 known rows are computed by elements. Others take a step for each row, by the
textbook algorithms of rank-one updates and of substitution.
"""

from __future__ import annotations

from typing import Any

import geon

from ....op_graph.axes.axes import Axis
from ....op_graph.building.constants import number
from ....op_graph.linalg.lu import SolveAttributes, pivots_of
from ....op_graph.linalg.matrices import MatrixAttributes, fresh, identity_matrix, renamed
from ....op_graph.linalg.spectral import part, stacked
from ....op_graph.linalg.triangular import TRIANGULAR_SOLVE, TriangularAttributes
from ....op_graph.op_graph import Op, Tensor, make
from ....op_graph.rewriting.driver import Rules
from ....op_graph.rows.elementwise import equal, greater_equal, multiply, where
from ....op_graph.rows.logic import logical_and
from ....op_graph.rows.movement import broadcast
from ....transformers.lowering.rules.small_matrices import SMALL, by_elements, is_small

lower = Rules("matrices by loops")


def _element(x: Tensor, place: Tensor, axis: Axis) -> Tensor:
    """Return the part of ``x`` at an index along an axis, for each element of ``place``."""
    return geon.sum(where.apply(_is(place, axis), x, 0), axis.name)


def _is(place: Tensor, axis: Axis) -> Tensor:
    """Return whether each index along an axis is ``place``."""
    return equal.apply(geon.iota(axis), place)


@lower.on(*SMALL)
def small_matrix(op: Op) -> Op | None:
    """Compute a small matrix by elements."""
    return by_elements(op) if is_small(op) else None


@lower.on("cholesky")
def cholesky(op: Op) -> Op | None:
    """Rewrite as a loop over columns, each of which updates the rest of the matrix."""
    a: MatrixAttributes = op.attrs
    x: Any = op.args[0]
    rows, columns = x.axes[a.rows], x.axes[a.columns]

    def step(rest: Tensor, k: Tensor) -> tuple[Tensor, Tensor]:
        column = geon.gather(rest, k, a.columns)
        pivot = geon.gather(column, k, a.rows)
        root = geon.sqrt(where.apply(pivot > 0, pivot, float("nan")))
        found = where.apply(geon.iota(rows) >= k, column / root, 0)
        return rest - broadcast(
            multiply.apply(found, renamed(found, {a.rows: a.columns})), rest.axes
        ), found

    turn = fresh(columns, x.axes)
    _, found = geon.scan(step, x, geon.iota(turn), over=turn)
    return broadcast(renamed(found, {turn.name: a.columns}), op.axes)


@lower.on("lu")
def lu(op: Op) -> Op | None:
    """Rewrite as a loop over pivots, each of which exchanges columns and updates the rest."""
    a: MatrixAttributes = op.attrs
    x: Any = op.args[0]
    rows, columns = x.axes[a.rows], x.axes[a.columns]

    def step(matrix: Tensor, k: Tensor) -> tuple[Tensor, Tensor]:
        size = where.apply(geon.iota(columns) >= k, abs(geon.gather(matrix, k, a.rows)), -1)
        place = geon.argmax(size, a.columns)
        here, there = geon.gather(matrix, k, a.columns), _element(matrix, place, columns)
        exchanged = where.apply(_is(place, columns), here, matrix)
        exchanged = where.apply(geon.equal(geon.iota(columns), k), there, exchanged)
        pivot = geon.gather(there, k, a.rows)
        divisor = where.apply(geon.equal(pivot, 0), 1, pivot)
        upper = where.apply(geon.iota(columns) > k, geon.gather(exchanged, k, a.rows) / divisor, 0)
        lower = where.apply(geon.iota(rows) > k, there, 0)
        is_scaled = logical_and.apply(geon.equal(geon.iota(rows), k), geon.iota(columns) > k)
        made = where.apply(is_scaled, upper, exchanged) - multiply.apply(lower, upper)
        return broadcast(made, matrix.axes), geon.cast(place, op.dtype)

    turn = fresh(columns, x.axes)
    matrix, places = geon.scan(step, x, geon.iota(turn), over=turn)
    return stacked([matrix, renamed(places, {turn.name: a.columns})], op.axes, a.rows)


@lower.on("triangular_solve")
def triangular_solve(op: Op) -> Op | None:
    """Rewrite by substitution, a loop over rows."""
    a: TriangularAttributes = op.attrs
    t: Any
    b: Any
    t, b = op.args
    columns = t.axes[a.columns]

    def step(x: Tensor, k: Tensor) -> tuple[Tensor, None]:
        row = geon.gather(t, k, a.rows)
        number = geon.iota(columns)
        before = where.apply(number < k if a.lower else number > k, row, 0)
        found = geon.gather(b, k, a.rows) - geon.dot(x, before, over=columns)
        if not a.unit:
            found = found / geon.gather(row, k, a.columns)
        return broadcast(where.apply(geon.equal(number, k), found, x), x.axes), None

    begin = broadcast(number(0.0, op.dtype), op.axes)
    turn = fresh(columns, t.axes, op.axes)
    x, _ = geon.scan(step, begin, geon.iota(turn), over=turn, reverse=not a.lower)
    return broadcast(x, op.axes)


@lower.on("lu_solve")
def lu_solve(op: Op) -> Op | None:
    """Rewrite by two triangles, and a loop of exchanges behind or before them."""
    a: SolveAttributes = op.attrs
    f: Any
    b: Any
    f, b = op.args
    rows, columns = a.rows, a.columns
    square, pivots = part(f, rows, 0, f.axes[columns].expression), pivots_of(f, rows)
    if not a.transposed:
        half = make(TRIANGULAR_SOLVE, (square, b), (rows, columns, True, False))
        half = renamed(half, {columns: rows})
        found = make(TRIANGULAR_SOLVE, (square, half), (rows, columns, False, True))
        return broadcast(_exchanged(found, pivots, columns, reverse=True), op.axes)
    begin = _exchanged(b, pivots, columns, reverse=False)
    half = make(TRIANGULAR_SOLVE, (square, begin), (columns, rows, True, True))
    half = renamed(half, {rows: columns})
    found = make(TRIANGULAR_SOLVE, (square, half), (columns, rows, False, False))
    return broadcast(found, op.axes)


def _exchanged(x: Tensor, pivots: Tensor, name: str, reverse: bool) -> Tensor:
    """Return ``x`` with the exchanges of packed factors along an axis, in either order."""
    axis = x.axes[name]

    def step(x: Tensor, exchange: tuple[Tensor, Tensor]) -> tuple[Tensor, None]:
        k, place = exchange
        here, there = geon.gather(x, k, name), _element(x, geon.cast(place, "int64"), axis)
        made = where.apply(_is(geon.cast(place, "int64"), axis), here, x)
        made = where.apply(geon.equal(geon.iota(axis), k), there, made)
        return broadcast(made, x.axes), None

    turn = fresh(axis, x.axes, pivots.axes)
    steps = geon.iota(turn), renamed(pivots, {name: turn.name})
    found, _ = geon.scan(step, x, steps, over=turn, reverse=reverse)
    return found


@lower.on("qr")
def qr(op: Op) -> Op | None:
    """Rewrite by Householder's reflections: a loop that makes R, and one back that makes Q.

    As in LAPACK, a column that is 0 below the diagonal needs no reflection.
    """
    a: MatrixAttributes = op.attrs
    x: Any = op.args[0]
    rows, columns = x.axes[a.rows], x.axes[a.columns]
    turn = fresh(columns, x.axes)

    def reflected(matrix: Tensor, v: Tensor) -> Tensor:
        change = multiply.apply(v, geon.dot(matrix, v, over=a.rows))
        return matrix - broadcast(change, matrix.axes)

    def step(matrix: Tensor, k: Tensor) -> tuple[Tensor, Tensor]:
        column = where.apply(geon.iota(rows) >= k, geon.gather(matrix, k, a.columns), 0)
        head = geon.gather(column, k, a.rows)
        rest = geon.sum(geon.square(where.apply(geon.iota(rows) > k, column, 0)), a.rows)
        norm = geon.sqrt(geon.square(head) + rest)
        first = where.apply(head < 0, head - norm, head + norm)
        v = where.apply(geon.equal(geon.iota(rows), k), first, column)
        size = geon.sqrt((geon.square(first) + rest) * 0.5)
        none = geon.equal(rest, 0)
        v = where.apply(none, 0, v / where.apply(none, 1, size))
        return reflected(matrix, v), v

    matrix, vectors = geon.scan(step, x, geon.iota(turn), over=turn)
    unit = broadcast(identity_matrix(rows, columns, op.dtype), x.axes)
    q, _ = geon.scan(lambda found, v: (reflected(found, v), None), unit, vectors, over=turn,
                     reverse=True)  # fmt: skip
    r = part(matrix, a.rows, 0, columns.expression)
    r = renamed(r, {a.rows: a.columns, a.columns: a.rows})
    is_upper = greater_equal.apply(geon.iota(r.axes[a.rows]), geon.iota(columns))
    r = where.apply(is_upper, r, 0)
    return stacked([q, r], op.axes, a.rows)


RULES = lower.done()
