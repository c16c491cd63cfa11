"""Triangles, identity, ranges, repetition and products of matrices along named axes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Unpack

from ...errors import ArgumentError, AxisError
from ..axes.axes import Axes, Axis, new_axis
from ..building.constants import as_tensor
from ..building.resolve_axes import by_own_axis, own_axis, refuse_present
from ..building.weak import in_dtype, like, weak_input
from ..core.argument_hints import public
from ..core.source_info import user_call
from ..op_graph import Tensor
from ..rows import reductions
from ..rows.accumulation import floating
from ..rows.elementwise import (
    add,
    cast,
    equal,
    greater_equal,
    less_equal,
    maximum,
    multiply,
    power,
    subtract,
    where,
)
from ..rows.leaves import iota, length_value
from ..rows.movement import expand, flatten, rename, reorder
from ..values.attribute_types import as_int
from ..values.dtypes import kind
from .composites import composite
from .resizing import diagonal, roll

if TYPE_CHECKING:
    from ..building.typing import AxisLike, DTypeLike, Named, TensorLike


# Matrices ----------------------------------------------------------------------------------------


def _two_axes(x: Tensor, rows: Any, columns: Any, what: str) -> tuple[Axis, Axis]:
    first, second = own_axis(x, rows, what), own_axis(x, columns, what)
    if first.name == second.name:
        raise AxisError(
            f"{user_call(what)}: rows and columns of {x} (made at {x.line_info}) are both "
            f"{first.name!r}; give two axes"
        )
    return first, second


def _triangle(x: Any, rows: Any, columns: Any, offset: int, what: str, compare: Any) -> Tensor:
    x = as_tensor(x)
    first, second = _two_axes(x, rows, columns, what)
    inside = compare.apply(iota(second), iota(first) + as_int(offset))
    return reorder(where.apply(inside, x, 0), x.axes)


@composite
def tril(
    x: TensorLike, rows: AxisLike, columns: AxisLike, offset: int = 0, **notes: Unpack[Named]
) -> Tensor:
    """Return ``x`` where the column is at most the row plus ``offset``, and 0 elsewhere.

    ``rows`` and ``columns`` are axes of ``x``, which keeps its axes.
    """
    return _triangle(x, rows, columns, offset, "tril", less_equal)


@composite
def triu(
    x: TensorLike, rows: AxisLike, columns: AxisLike, offset: int = 0, **notes: Unpack[Named]
) -> Tensor:
    """Return ``x`` where the column is at least the row plus ``offset``, and 0 elsewhere.

    ``rows`` and ``columns`` are axes of ``x``, which keeps its axes.
    """
    return _triangle(x, rows, columns, offset, "triu", greater_equal)


@composite
def eye(
    rows: Axis,
    columns: Axis,
    dtype: DTypeLike = "float32",
    *,
    offset: int = 0,
    **notes: Unpack[Named],
) -> Tensor:
    """Return the matrix over (``rows``, ``columns``) of 1 where the column is the row + ``offset``.

    ``geon.eye(A, A.prime)`` is the identity.
    """
    first, second = new_axis(rows, "eye"), new_axis(columns, "eye")
    return cast(equal.apply(iota(first) + as_int(offset), iota(second)), dtype)


@composite
def diag_embed(x: TensorLike, axis: AxisLike, columns: Axis, **notes: Unpack[Named]) -> Tensor:
    """Return the matrices with ``x`` along ``axis`` on their diagonals, and 0 elsewhere.

    ``columns`` is a new axis, which comes behind ``axis`` and gets its length.
    """
    x = as_tensor(x)
    rows = own_axis(x, axis, "diag_embed")
    columns = _new_of(x, columns, rows, "diag_embed")
    result = where.apply(equal.apply(iota(rows), iota(columns)), x, 0)
    order = list(x.axes)
    order.insert(x.axes.index(rows.name) + 1, columns)
    return reorder(result, Axes(*order))


def _new_of(x: Tensor, axis: Any, like: Axis, what: str) -> Axis:
    """Return a new axis with the length of ``like``; ``AxisError`` if ``x`` has it."""
    index = like.named(new_axis(axis, what).name)
    refuse_present(x, index, what, "give another one")
    return index


@composite
def trace(x: TensorLike, rows: AxisLike, columns: AxisLike, **notes: Unpack[Named]) -> Tensor:
    """Return the sum of the elements at equal indices of two axes of one length."""
    x = as_tensor(x)
    first, second = _two_axes(x, rows, columns, "trace")
    return reductions.sum(diagonal(x, [first, second]), first.name)


@composite
def vander(
    x: TensorLike, powers: Axis, *, increasing: bool = True, **notes: Unpack[Named]
) -> Tensor:
    """Return the powers of ``x`` from 0 on along a new axis, which is the last one.

    ``powers`` has as many elements as there are powers. With ``increasing=False`` they fall to 0.
    """
    x, axis = as_tensor(x), new_axis(powers, "vander")
    exponent: Any = iota(axis)
    if not increasing:
        exponent = length_value(axis.expression) - 1 - exponent
    return power.apply(x, exponent if kind(x.dtype) != "f" else like(exponent, x))


@composite
def kron(x: TensorLike, y: TensorLike, **notes: Unpack[Named]) -> Tensor:
    """Return the Kronecker product along the axes that both have.

    The element at i * n + j of such an axis is that of ``x`` at i times that of ``y`` at j, where n
    is its length in ``y``. Other axes stay. Raises ``AxisError`` if they share no axis.
    """
    x, y = as_tensor(x), as_tensor(y)
    shared = [axis for axis in x.axes if axis in y.axes]
    if not shared:
        raise AxisError(
            f"{user_call('kron')}: {x} (made at {x.line_info}) and {y} (made at {y.line_info}) "
            "share no axis; write geon.outer(geon.multiply, x, y) for all products"
        )
    inner: dict[Axis | str, Axis] = {}
    for axis in shared:
        other = y.axes[axis.name].named(axis.name).prime
        while other in x.axes or other in y.axes:
            other = other.prime
        inner[axis.name] = other
    result = multiply.apply(x, rename(y, {**inner}))
    for axis in shared:
        other = result.axes[inner[axis.name].name]
        whole = Axis(axis.name, axis.expression * other.expression)
        result = flatten(result, [result.axes[axis.name], other], whole)
    return result


@composite
def cross(x: TensorLike, y: TensorLike, axis: AxisLike, **notes: Unpack[Named]) -> Tensor:
    """Return the vector product of three components along ``axis``.

    Raises ``AxisError`` if the axis has another length than 3.
    """
    x = as_tensor(x, near=y if isinstance(y, Tensor) else None)
    y = as_tensor(y, near=x)
    for each in (x, y):
        axes = own_axis(each, axis, "cross")
        if axes.expression != 3:
            raise AxisError(
                f"{user_call('cross')}: {each} (made at {each.line_info}) has {axes.expression} "
                f"components along {axes.name!r}; the vector product has 3"
            )
    first = multiply(roll(x, {axis: -1}), roll(y, {axis: -2}))
    return subtract(first, multiply(roll(x, {axis: -2}), roll(y, {axis: -1})))


# Ranges ------------------------------------------------------------------------------------------


@composite
def linspace(
    start: TensorLike,
    stop: TensorLike,
    axis: Axis,
    dtype: DTypeLike | None = None,
    **notes: Unpack[Named],
) -> Tensor:
    """Return evenly spaced values along ``axis``, from ``start`` to ``stop``, which are exact.

    The bounds are numbers or tensors, whose axes come behind. One element is ``start``. Integers
    and bool give float32.
    """
    axis = new_axis(axis, "linspace")
    first = floating(as_tensor(start))
    last = floating(as_tensor(stop))
    if dtype is not None:
        first, last = cast(first, dtype), cast(last, dtype)
    steps = maximum.apply(length_value(axis.expression) - 1, 1)
    wide = "float64" if "float64" in (first.dtype.name, last.dtype.name) else "float32"
    exact = first.weak and last.weak
    part = cast(iota(axis), "float64" if exact else wide) / cast(
        steps, "float64" if exact else wide
    )
    if exact:
        part = in_dtype(part, first.dtype) if dtype is not None else _weakly(part)
    result = add.apply(multiply.apply(1 - part, first), multiply.apply(part, last))
    target = first.dtype if dtype is not None else (first + last).dtype
    return result if result.weak else in_dtype(result, target)


def _weakly(x: Tensor) -> Tensor:
    """Return a float64 tensor as a value of Python numbers, which takes the dtype it meets."""
    return weak_input(x)


@composite
def logspace(
    start: TensorLike,
    stop: TensorLike,
    axis: Axis,
    base: TensorLike = 10.0,
    dtype: DTypeLike | None = None,
    **notes: Unpack[Named],
) -> Tensor:
    """Return ``base`` to the power of ``linspace`` of the same arguments."""
    return power(base, linspace(start, stop, axis, dtype))


# Repetition --------------------------------------------------------------------------------------


def _times(x: Tensor, counts: Any, what: str) -> dict[str, int]:
    result = {}
    for name, count in by_own_axis(x, counts, what).items():
        count = as_int(count)
        if type(count) is not int or count < 0:
            raise ArgumentError(
                f"{user_call(what)}: the number of times along {name!r} must be an integer of at "
                f"least 0, not {count!r}"
            )
        result[name] = count
    return result


def _repeated(x: Any, counts: Any, what: str, behind: int) -> Tensor:
    """Return elements repeated along a new axis in front of or behind each axis, merged with it."""
    result = as_tensor(x)
    for name, count in _times(result, counts, what).items():
        axis = result.axes[name]
        fresh = Axis(name, count).prime
        while fresh in result.axes:
            fresh = fresh.prime
        result = expand(result, fresh, result.axes.index(name) + behind)
        pair = [axis, fresh] if behind else [fresh, axis]
        result = flatten(result, pair, Axis(name, axis.expression * count))
    return result


@public
def repeat(x: TensorLike, counts: Mapping[AxisLike, int], **notes: Unpack[Named]) -> Tensor:
    """Return ``x`` with each element repeated: ``geon.repeat(x, {A: 2})`` is x0, x0, x1, x1, ...

    ``counts`` has the number of times by axis of ``x``.
    """
    return _repeated(x, counts, "repeat", 1)


@public
def tile(x: TensorLike, counts: Mapping[AxisLike, int], **notes: Unpack[Named]) -> Tensor:
    """Return ``x`` repeated as a whole: ``geon.tile(x, {A: 2})`` is x0, x1, ..., x0, x1, ...

    ``counts`` has the number of times by axis of ``x``.
    """
    return _repeated(x, counts, "tile", 0)
