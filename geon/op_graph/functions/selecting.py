"""Selections whose length depends on data: nonzero, compress, unique, masked scatter.

A graph has no such lengths, so each result is over an axis of a length that bounds it, beside the
number of elements that are there. ``exact`` cuts the arrays that a computation returned.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, Unpack

import numpy as np

from ...errors import ArgumentError, AxisError
from ..axes.axes import Axes, Axis, new_axis
from ..building.constants import as_tensor, number
from ..building.resolve_axes import axis_of, named_axes, own_axis
from ..building.weak import exact, put_into
from ..core.argument_hints import check_integer, public
from ..core.source_info import user_call
from ..op_graph import Op, Tensor, make
from ..rows import reductions
from ..rows.concatenation import pad
from ..rows.elementwise import (
    add,
    cast,
    equal,
    floordivide,
    isnan,
    less,
    maximum,
    minimum,
    mod,
    not_equal,
    subtract,
    where,
)
from ..rows.indexing import CHECKED, PURPOSES, Purpose, gather, scatter
from ..rows.leaves import iota, length_value
from ..rows.logic import logical_and, logical_not, logical_or
from ..rows.movement import broadcast, flatten, reorder, unflatten
from ..rows.sort_and_cumulative import argsort, cumsum
from ..values.dtypes import INT64, kind
from .composites import composite

if TYPE_CHECKING:
    from ..building.typing import AxesLike, AxisLike, Named, TensorLike

COUNT = "number of found elements"
PURPOSES[COUNT] = Purpose(
    "used as the number of the last found element",
    "give a bound of more elements, or truncate=True",
)


def _exact_count(count: Any, what: str) -> int:
    """Return a computed count; raise ``ArgumentError`` if it is a tensor or one of several."""
    if isinstance(count, Op):
        raise ArgumentError(
            f"{user_call(what)}: {count} (made at {count.line_info}) is not computed yet; call "
            "exact() on what a computation of it returns"
        )
    array = np.asarray(count)
    if array.ndim:
        raise ArgumentError(
            f"{user_call(what)}: there are {array.size} counts, so the parts have different "
            "lengths; cut each of them"
        )
    return int(array)


class Nonzero(NamedTuple):
    """Positions by the name of their axis, over the axis of the bound, and their number."""

    positions: dict[str, Any]
    count: Any

    def exact(self) -> dict[str, Any]:
        """Return the computed positions without the filling; ``ArgumentError`` for tensors."""
        count = _exact_count(self.count, "exact")
        return {name: each[..., :count] for name, each in self.positions.items()}


class Compressed(NamedTuple):
    """Selected elements, over the axis of the bound first, and their number."""

    values: Any
    count: Any

    def exact(self) -> Any:
        """Return the computed elements without the filling; ``ArgumentError`` for tensors."""
        return self.values[: _exact_count(self.count, "exact")]


class Unique(NamedTuple):
    """Distinct elements over the axis of the bound, and facts about each.

    ``count`` is their number, ``counts`` how often each occurs, ``first`` the position of its first
    occurrence in row-major order, and ``inverse`` the number of its value for each element.
    """

    values: Any
    count: Any
    counts: Any
    first: Any
    inverse: Any

    def exact(self) -> Unique:
        """Return the computed arrays without the filling; ``ArgumentError`` for tensors."""
        count = _exact_count(self.count, "exact")
        cut = [each[:count] for each in (self.values, self.counts, self.first)]
        return Unique(cut[0], self.count, cut[1], cut[2], self.inverse)


def _bound(what: str, bound: Axis | None, size: Any, used: Axes) -> Axis:
    """Return the axis of a result: ``bound``, or one that holds ``size`` elements."""
    if bound is None:
        result = Axis("selected", size)
        while result in used:
            result = result.prime
        return result
    axis = new_axis(bound, what)
    if axis in used:
        raise AxisError(
            f"{user_call(what)}: the bound {axis} is an axis of the result already, {used}; give "
            "another name"
        )
    return axis


class ChosenElements(NamedTuple):
    """The true elements of a line: their number, positions, and the place of each among them.

    ``positions`` are over the bound. ``slots`` gives each element of the line its place there; the
    place behind the last stands for elements that are left out.
    """

    total: Tensor
    positions: Tensor
    slots: Tensor
    valid: Tensor


def _find(mask: Tensor, line: Axis, bound: Axis, truncate: bool, what: str) -> ChosenElements:
    """Return what is true along ``line``, which ``bound`` has to hold unless ``truncate``."""
    ones = cast(mask, INT64)
    rank = subtract.apply(cumsum(ones, line), 1)
    count = reductions.sum(ones, line)
    size = cast(length_value(bound.expression), INT64)
    kept = mask
    if bound.expression != line.expression:
        kept = logical_and.apply(mask, less.apply(rank, size))
        total, count = count, minimum.apply(count, size)
        if not truncate:
            at = maximum.apply(total - 1, 0)
            at.notes().called = what  # in the message
            last = make(CHECKED, (at,), (bound.expression, False, None, ""))
            last.add_tags(COUNT)
            count = minimum.apply(total, add.apply(last, 1))
    slots = where.apply(kept, rank, size)
    longer = bound.with_length(bound.expression + 1)
    start = broadcast(number(0, INT64), Axes(*mask.axes.without([line]), longer))
    places = scatter(start, slots, broadcast(iota(line), mask.axes), longer)
    positions = places[{longer: slice(0, bound.expression)}]
    valid = less.apply(iota(bound), count)
    return ChosenElements(count, positions, slots, valid)


def _line(x: Tensor, axes: Axes, kept: Axes) -> tuple[Tensor, Axis]:
    """Return ``x`` with ``axes`` flattened into one axis, and that axis."""
    line = Axis("_".join(axes.names) or "one", axes.size)
    if len(axes) == 1:
        return x, x.axes[axes[0].name]
    while line in kept:
        line = line.prime
    return flatten(x, axes, line), line


def _mask(what: str, mask: Any) -> Tensor:
    given = as_tensor(mask)
    return given if kind(given.dtype) == "b" else not_equal.apply(given, 0)


@public
def nonzero(
    mask: TensorLike,
    bound: Axis | None = None,
    *,
    over: AxesLike | None = None,
    fill: int = -1,
    truncate: bool = False,
) -> Nonzero:
    """Return the positions of the elements of ``mask`` that are true, or not 0, and their number.

    ``positions`` of the result is a dict from the name of each axis of ``mask`` to int64 positions
    over the axis ``bound``, in row-major order; ``geon.gather`` and ``geon.scatter`` take it as it
    is. Behind the int64 scalar ``count`` they are ``fill``. If more are found than the bound holds,
    the call raises ``IndexRangeError``, or the first ones are returned with ``truncate``. Without a
    bound it is an axis as long as the mask. ``over`` limits the search to some axes: the others are
    axes of the result. ``exact()`` of a computed result returns arrays without the filling.
    """
    given = _mask("nonzero", mask)
    check_integer("nonzero", "fill", fill)
    axes = given.axes if over is None else given.axes.only(_axis_names(given, over))
    kept = given.axes.without(axes)
    flat, line = _line(given, axes, kept)
    bounded = _bound("nonzero", bound, line.expression, kept)
    elements = _find(flat, line, bounded, bool(truncate), "nonzero")
    positions: dict[str, Tensor] = {}
    left = elements.positions
    for axis in reversed(axes):
        length = length_value(axis.expression)
        at = left if axis.name == axes.names[0] else mod.apply(left, length)
        left = floordivide.apply(left, maximum.apply(length, 1))
        result = where.apply(elements.valid, at, number(int(fill), INT64))
        positions[axis.name] = reorder(result, [*kept, bounded])
    ordered = {name: positions[name] for name in axes.names}
    return Nonzero(ordered, elements.total)


def _axis_names(x: Tensor, given: Any) -> list[str]:
    return [own_axis(x, each, "nonzero").name for each in named_axes(given, "nonzero", x)]


@public
def compress(
    x: TensorLike,
    mask: TensorLike,
    bound: Axis | None = None,
    *,
    fill: TensorLike = 0,
    truncate: bool = False,
) -> Compressed:
    """Return the elements of ``x`` where ``mask`` is true, and their number.

    ``mask`` has axes of ``x``; the result has ``bound`` in their place, first, and the other axes
    of ``x``. ``bound``, ``count`` and ``truncate`` are as in ``nonzero``; ``fill`` is what stands
    behind the selected elements. ``exact()`` of a computed result returns the array without it.
    """
    x, given = as_tensor(x), _mask("compress", mask)
    for axis in given.axes:
        own_axis(x, axis, "compress")
    rest = x.axes.without(given.axes)
    flat, line = _line(reorder(x, [*given.axes.names, *rest.names]), given.axes, rest)
    chosen, _ = _line(given, given.axes, rest)
    bounded = _bound("compress", bound, line.expression, rest)
    elements = _find(chosen, line, bounded, bool(truncate), "compress")
    values = _picked(flat, elements, line, fill, "compress")
    return Compressed(reorder(values, [bounded.name, *rest.names]), elements.total)


def _picked(x: Tensor, elements: ChosenElements, line: Axis, fill: Any, what: str) -> Tensor:
    """Return the elements at the found positions, and ``fill`` behind them."""
    x, value = put_into(what, x, fill)
    size = length_value(x.axes[line.name].expression)
    at = cast(where.apply(elements.valid, elements.positions, size), INT64)
    longer = pad(x, {line.name: (0, 1)}, value=value)
    return gather(longer, at, line.name)


@composite
def masked_scatter(
    x: TensorLike,
    mask: TensorLike,
    source: TensorLike,
    axis: AxisLike | None = None,
    **notes: Unpack[Named],
) -> Tensor:
    """Return ``x`` with its elements where ``mask`` is true replaced by those of ``source``.

    They are taken in order along ``axis`` of ``source``, its only axis by default, for the true
    elements in row-major order of the axes of ``mask``; other axes of ``source`` are matched. It
    puts back what ``compress`` selected. Raises ``IndexRangeError`` when it is computed if
    ``source`` has fewer elements.
    """
    x, given, source = as_tensor(x), _mask("masked_scatter", mask), as_tensor(source)
    x, source = put_into("masked_scatter", x, source)
    along = axis_of(source, axis, "masked_scatter")
    for each in given.axes:
        own_axis(x, each, "masked_scatter")
    flat, line = _line(given, given.axes, Axes())
    rank = subtract.apply(cumsum(cast(flat, INT64), line), 1)
    if len(given.axes) != 1:
        rank = unflatten(rank, line, given.axes)
    at = cast(where.apply(given, rank, 0), INT64)
    return where(given, gather(source, at, along), x)


@public
def unique(
    x: TensorLike,
    bound: Axis | None = None,
    *,
    fill: TensorLike = 0,
    truncate: bool = False,
) -> Unique:
    """Return the distinct elements of ``x`` in ascending order, and facts about each.

    All axes of ``x`` are searched. ``values`` are over the axis ``bound``, with ``fill`` behind the
    ``count`` of them; ``counts`` says how often each occurs, ``first`` its first position in
    row-major order, and ``inverse`` is over the axes of ``x``: the number of each element's value.
    ``bound`` and ``truncate`` are as in ``nonzero``; with ``truncate`` the elements of values that
    are left out have the length of the bound as their number. All NaN are one value, the last.
    ``exact()`` of a computed result returns arrays without the filling.
    """
    x = exact(as_tensor(x))
    flat, line = _line(x, x.axes, Axes())
    order = argsort(flat, line)
    elements, values, counts = _runs(
        gather(flat, order, line), line, bound, fill, truncate, "unique"
    )
    start = broadcast(number(0, INT64), [line])
    inverse = scatter(start, order, elements.slots, line)
    first = gather(order, _valid_positions(elements, line), line)
    return _as_unique(x, line, elements, values, counts, first, inverse)


@public
def unique_consecutive(
    x: TensorLike,
    bound: Axis | None = None,
    *,
    fill: TensorLike = 0,
    truncate: bool = False,
) -> Unique:
    """Return the first element of each run of equal elements of ``x``, in order, as ``unique``.

    The elements are taken in row-major order of all axes.
    """
    x = exact(as_tensor(x))
    flat, line = _line(x, x.axes, Axes())
    elements, values, counts = _runs(flat, line, bound, fill, truncate, "unique_consecutive")
    return _as_unique(
        x, line, elements, values, counts, _valid_positions(elements, line), elements.slots
    )


def _runs(
    x: Tensor, line: Axis, bound: Any, fill: Any, truncate: bool, what: str
) -> tuple[ChosenElements, Tensor, Tensor]:
    """Return the first elements of runs of equal elements along ``line``, and the runs' lengths."""
    at = iota(line)
    before = gather(x, cast(maximum.apply(subtract.apply(at, 1), 0), INT64), line)
    differs = not_equal.apply(x, before)
    if kind(x.dtype) == "f":
        both = logical_and.apply(isnan.apply(x), isnan.apply(before))
        differs = logical_and.apply(differs, logical_not.apply(both))
    begins = logical_or.apply(differs, equal.apply(at, 0))
    bounded = _bound(what, bound, line.expression, Axes())
    elements = _find(begins, line, bounded, bool(truncate), what)
    # Elements after the first of a run belong to it.
    size = cast(length_value(bounded.expression), INT64)
    rank = subtract.apply(cumsum(cast(begins, INT64), line), 1)
    slots = minimum.apply(rank, size)
    longer = bounded.with_length(bounded.expression + 1)
    zeros = broadcast(number(0, INT64), [longer])
    counts = scatter(zeros, slots, number(1, INT64), longer, mode="add")
    counts = where.apply(elements.valid, counts[{longer: slice(0, bounded.expression)}], 0)
    values = _picked(x, elements, line, fill, what)
    return elements._replace(slots=slots), values, cast(counts, INT64)


def _valid_positions(elements: ChosenElements, line: Axis) -> Tensor:
    return cast(where.apply(elements.valid, elements.positions, 0), INT64)


def _as_unique(
    x: Tensor,
    line: Axis,
    elements: ChosenElements,
    values: Tensor,
    counts: Tensor,
    first: Tensor,
    inverse: Any,
) -> Unique:
    inverse = inverse if len(x.axes) == 1 else unflatten(inverse, line, x.axes)
    return Unique(values, elements.total, counts, first, inverse)
