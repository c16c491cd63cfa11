"""Small matrices as elementwise ops: each element of a matrix is a tensor over the batch axes.

The bodies of scans become one kernel by it, and GPUs compute a matrix in one thread. Pivots are
chosen by selects.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ....op_graph.axes.axes import Axes, Axis
from ....op_graph.building.constants import number
from ....op_graph.linalg.triangular import TriangularAttributes
from ....op_graph.op_graph import Op, Tensor
from ....op_graph.rows.concatenation import concat
from ....op_graph.rows.elementwise import (
    absolute,
    divide,
    equal,
    greater,
    multiply,
    sqrt,
    subtract,
    where,
)
from ....op_graph.rows.movement import _unflatten, broadcast, expand
from ....op_graph.rows.slicing import _slice
from ...sizes.limits import SHORT_LOOP_TURNS

# Elements of a larger matrix take more statements than a call takes time.
MAX_SMALL_ROWS = SHORT_LOOP_TURNS
Elements = dict[tuple[int, int], Tensor]


def is_small(op: Op) -> bool:
    """Return True if a matrix op has a matrix of at most ``MAX_SMALL_ROWS`` known rows."""
    n = op.args[0].axes[op.attrs.columns].expression
    return op.primitive.name in SMALL and isinstance(n, int) and 0 < n <= MAX_SMALL_ROWS


def by_elements(op: Op) -> Tensor:
    """Return a matrix op for which ``is_small`` holds as elementwise ops."""
    return SMALL[op.primitive.name](op)


# Elements -----------------------------------------------------------------------------------------


def element(x: Any, at: Mapping[str, int]) -> Tensor:
    """Return the part of ``x`` at these indices, without their axes."""
    items = tuple([("at", at[axis.name]) if axis.name in at else None for axis in x.axes])
    return _slice(x, items, (), ())


def elements(x: Op, rows: str, columns: str) -> Elements:
    """Return the elements of a matrix of known size, each over the batch axes."""
    m, n = (x.axes[name].expression for name in (rows, columns))
    assert isinstance(m, int) and isinstance(n, int)
    return {(i, j): element(x, {rows: i, columns: j}) for i in range(m) for j in range(n)}


def joined(parts: Sequence[Tensor], axes: Axes, position: int, count: int) -> Tensor:
    """Return ``parts`` along ``count`` axes from ``position``, as a value over ``axes``."""
    own = Axes(list(axes)[position : position + count])
    others = Axes([axis for axis in axes if axis not in own])
    flat = Axis("*".join(own.names), len(parts))
    while flat in axes:
        flat = flat.prime
    one = flat.with_length(1)
    whole = concat([expand(broadcast(part, others), one, position) for part in parts], one)
    return _unflatten(whole, flat, own)


def minus(x: Tensor, a: Tensor, b: Tensor) -> Tensor:
    """Return x - a b."""
    return subtract.apply(x, multiply.apply(a, b))


# Factorisations -----------------------------------------------------------------------------------


def cholesky(op: Op) -> Tensor:
    """Return the Cholesky factor, column by column; NaN in the last element if there is none."""
    a = op.attrs
    x, made = elements(op.args[0], a.rows, a.columns), Elements()
    n = op.axes[a.columns].expression
    assert isinstance(n, int)
    none, zero = number(float("nan"), op.dtype), number(0.0, op.dtype)
    for j in range(n):
        pivot = x[j, j]
        for k in range(j):
            pivot = minus(pivot, made[j, k], made[j, k])
        root = sqrt(where.apply(greater.apply(pivot, zero), pivot, none))
        inverse = divide.apply(1.0, root)
        made[j, j] = root
        for i in range(j + 1, n):
            found = x[i, j]
            for k in range(j):
                found = minus(found, made[i, k], made[j, k])
            made[i, j] = multiply.apply(found, inverse)
            made[j, i] = zero
    parts = [made[i, j] for i in range(n) for j in range(n)]
    return joined(parts, op.axes, len(op.axes) - 2, 2)


def lu(op: Op) -> Tensor:
    """Return the packed factors: columns are exchanged by selects, as each pivot is found."""
    a = op.attrs
    x = elements(op.args[0], a.rows, a.columns)
    n = op.axes[a.columns].expression
    assert isinstance(n, int)
    places: list[Tensor] = []
    for k in range(n):
        most, place = absolute(x[k, k]), broadcast(number(float(k), op.dtype), x[k, k].axes)
        for j in range(k + 1, n):
            size = absolute(x[k, j])
            larger = greater.apply(size, most)
            most = where.apply(larger, size, most)
            place = where.apply(larger, number(float(j), op.dtype), place)
        for j in range(k + 1, n):
            found = equal.apply(place, number(float(j), op.dtype))
            for i in range(n):
                x[i, k], x[i, j] = exchanged(found, x[i, k], x[i, j])
        none = equal.apply(x[k, k], 0)
        inverse = where.apply(none, number(1.0, op.dtype), divide.apply(1.0, x[k, k]))
        for j in range(k + 1, n):
            x[k, j] = multiply.apply(x[k, j], inverse)
            for i in range(k + 1, n):
                x[i, j] = minus(x[i, j], x[i, k], x[k, j])
        places.append(place)
    parts = [x[i, j] for i in range(n) for j in range(n)] + places
    return joined(parts, op.axes, len(op.axes) - 2, 2)


def exchanged(condition: Tensor, x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
    """Return x and y, exchanged where ``condition`` holds."""
    return where.apply(condition, y, x), where.apply(condition, x, y)


# Solutions ----------------------------------------------------------------------------------------


def sides(op: Op, axis: str) -> list[Tensor]:
    """Return the rows of the right-hand sides along ``axis``."""
    b = op.args[1]
    count = b.axes[axis].expression
    assert isinstance(count, int)
    return [element(b, {axis: i}) for i in range(count)]


def substituted(
    t: Callable[[int, int], Tensor], x: list[Tensor], lower: bool, unit: bool
) -> list[Tensor]:
    """Return the solution of a triangular system with elements ``t(row, column)``."""
    n, found = len(x), list(x)
    for i in range(n) if lower else range(n)[::-1]:
        for k in range(i) if lower else range(i + 1, n):
            found[i] = subtract.apply(found[i], multiply.apply(found[k], t(i, k)))
        if not unit:
            found[i] = divide.apply(found[i], t(i, i))
    return found


def solution(op: Op, rows: list[Tensor]) -> Tensor:
    """Return the rows of a solution as one value, whose batch axes come first."""
    a = op.attrs
    batch = len([name for name in op.args[0].axes.names if name not in (a.rows, a.columns)])
    return joined(rows, op.axes, batch, 1)


def triangular_solve(op: Op) -> Tensor:
    """Return the solution of a triangular system by substitution."""
    a: TriangularAttributes = op.attrs
    t = elements(op.args[0], a.rows, a.columns)
    return solution(op, substituted(lambda i, j: t[i, j], sides(op, a.rows), a.lower, a.unit))


def lu_solve(op: Op) -> Tensor:
    """Return the solution of a system by its packed factors."""
    a = op.attrs
    f, n = elements(op.args[0], a.rows, a.columns), op.args[0].axes[a.columns].expression
    assert isinstance(n, int)
    x = sides(op, a.columns if a.transposed else a.rows)
    places = [f[n, k] for k in range(n)]

    def exchange(k: int) -> None:
        for j in range(k + 1, n):
            found = equal.apply(places[k], number(float(j), op.dtype))
            x[k], x[j] = exchanged(found, x[k], x[j])

    if a.transposed:
        for k in range(n):
            exchange(k)
        half = substituted(lambda i, j: f[j, i], x, True, True)
        return solution(op, substituted(lambda i, j: f[j, i], half, False, False))
    half = substituted(lambda i, j: f[i, j], x, True, False)
    x = substituted(lambda i, j: f[i, j], half, False, True)
    for k in range(n)[::-1]:
        exchange(k)
    return solution(op, x)


SMALL: dict[str, Callable[[Op], Tensor]] = {
    "cholesky": cholesky,
    "lu": lu,
    "lu_solve": lu_solve,
    "triangular_solve": triangular_solve,
}
