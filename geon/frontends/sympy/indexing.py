"""Sums and products over integers, and elements of indexed bases, as reductions and slices."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

import sympy
from sympy.matrices.expressions.matexpr import MatrixElement

import geon

from ...errors import ArgumentError, AxisError
from ...op_graph.axes.axes import Axes, Axis
from ...op_graph.axes.lengths import Length
from ...op_graph.building.constants import as_tensor
from ...op_graph.core.source_info import user_call
from ...op_graph.op_graph import Tensor
from ...op_graph.rows.slicing import take


@dataclass(frozen=True, eq=False)
class Index:
    """An index that a sum binds: ``start``, ``start + 1``, ... along an axis of its own."""

    axis: Axis
    start: int | Length

    @property
    def value(self) -> Tensor:
        """The values of the index, as integers along the axis."""
        return geon.iota(self.axis) + self.start


Scope = Mapping[Any, Index]  # the indices that the sums around an expression bind
NO_SCOPE: Scope = {}


def is_element(expr: Any) -> bool:
    """Return True for an element of an indexed base or of a matrix symbol."""
    return isinstance(expr, (sympy.Indexed, MatrixElement))


def scope_of(
    expr: Any, outer: Scope, lengths: Mapping[str, int | Length], taken: Collection[str]
) -> Scope:
    """Return the scope inside of a sum or product.

    The new axes have the names of the indices, with primes if these are in ``taken`` or ``outer``.
    Limits are integers or expressions over open ``lengths``; others raise ``ArgumentError``.
    """
    scope = dict(outer)
    names = {*taken, *(index.axis.name for index in outer.values())}
    for limit in expr.limits:
        symbol, first, last = limit
        start, end = _limit(first, expr, lengths), _limit(last, expr, lengths)
        count = end - start + 1
        if isinstance(count, int) and count < 0:
            raise ArgumentError(
                f"{user_call('from_sympy')}: the limits of {symbol} in a {expr.func.__name__} are "
                f"{first} and {last}; the last is at least the first less 1, where it is empty"
            )
        axis = Axis(symbol.name, count)
        while axis.name in names:
            axis = axis.prime
        names.add(axis.name)
        scope[symbol] = Index(axis, start)
    return scope


def _limit(limit: Any, expr: Any, lengths: Mapping[str, int | Length]) -> int | Length:
    """Return a limit as an integer or length."""
    if isinstance(limit, sympy.Integer):
        return int(limit)
    symbols = sorted(limit.free_symbols, key=str)
    known = [lengths.get(symbol.name) for symbol in symbols]
    if symbols and None not in known:
        found = sympy.lambdify(symbols, limit, modules=[])(*known)
        if isinstance(found, (int, Length)):
            return found
    raise ArgumentError(
        f"{user_call('from_sympy')}: the limit {limit} of a {expr.func.__name__} is neither an "
        "integer nor a polynomial of lengths of the symbols' axes; give such limits, or write the "
        "terms out with .doit()"
    )


def reduced(expr: Any, body: Any, inner: Scope, outer: Scope) -> Tensor:
    """Return the sum or product of ``body`` over the indices that ``expr`` binds."""
    axes = [inner[limit[0]].axis for limit in expr.limits]
    x = as_tensor(body)
    x = geon.broadcast(x, Axes(x.axes, [axis for axis in axes if axis not in x.axes]))
    return (geon.sum if isinstance(expr, sympy.Sum) else geon.prod)(x, [axis.name for axis in axes])


def element(expr: Any, base: Tensor, values: list[Any], scope: Scope) -> Tensor:
    """Return ``base`` at the indices of an element; ``values`` are those of the indices.

    An index of a sum, with an integer added or not, takes a slice; other indices gather.
    """
    indices = expr.args[1:]
    if len(base.axes) != len(indices):
        raise AxisError(
            f"{user_call('from_sympy')}: {expr} has {len(indices)} indices and {base} (made at "
            f"{base.line_info}) has {len(base.axes)} axes; give an index for each axis"
        )
    x = base
    for axis, index, value in zip(base.axes, indices, values, strict=True):
        symbol, offset = _bound(index, scope)
        if not _may_be_integer(index, scope):
            at = f"the index {index} of {expr} along {axis} (of {base} made at {base.line_info})"
            raise ArgumentError(f"{user_call('from_sympy')}: {at} is no integer; give an integer")
        if isinstance(value, int):
            x = take(x, {axis.name: _checked(value, axis, expr)})
        elif symbol is not None and symbol.axis.name not in x.axes:
            if isinstance(symbol.start, int):
                _checked(symbol.start + offset, axis, expr)
            x = _along(x, axis, symbol, offset)
        else:
            _check_ends(index, axis, expr, scope)
            x = geon.gather(x, geon.cast(value, "int64"), axis.name)
    return x


def _may_be_integer(index: Any, scope: Scope) -> bool:
    """Return False if an index is no integer, or not for all values of the indices of sums."""
    bound = {symbol: sympy.Dummy(integer=True) for symbol in scope}
    integer = index.xreplace(bound).is_integer
    return bool(integer or (integer is None and not index.free_symbols <= set(scope)))


def _check_ends(index: Any, axis: Axis, expr: Any, scope: Scope) -> None:
    """Raise ``ArgumentError`` if an index that is linear in those of sums becomes negative."""
    least = sympy.expand(index)
    for symbol, bound in scope.items():
        slope = least.coeff(symbol)
        last = bound.start + bound.axis.expression - 1
        if not (slope.is_Integer and isinstance(bound.start, int) and isinstance(last, int)):
            continue
        least = sympy.expand(least.subs(symbol, bound.start if slope >= 0 else last))
    if isinstance(least, sympy.Integer):
        _checked(int(least), axis, expr)


def _bound(index: Any, scope: Scope) -> tuple[Index | None, int]:
    """Return the bound index of ``i`` or ``i + 1`` and the integer that is added."""
    if index in scope:
        return scope[index], 0
    if isinstance(index, sympy.Add) and len(index.args) == 2:
        offset, symbol = index.args
        if isinstance(offset, sympy.Integer) and symbol in scope:
            return scope[symbol], int(offset)
    return None, 0


def _along(x: Tensor, axis: Axis, index: Index, offset: int) -> Tensor:
    """Return the part of ``x`` that an index runs along, over the axis of the index."""
    start, count = index.start + offset, index.axis.expression
    if start != 0 or count != axis.expression:
        x = take(x, {axis.name: slice(start, start + count)})
    return geon.rename(x, {axis.name: index.axis.name})


def _checked(place: int, axis: Axis, expr: Any) -> int:
    if place < 0:
        raise ArgumentError(
            f"{user_call('from_sympy')}: the index {place} of {expr} along {axis} is negative; "
            "SymPy's indices begin at 0"
        )
    return place
