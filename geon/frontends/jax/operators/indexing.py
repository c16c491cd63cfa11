"""Gather and scatter in all forms that XLA has, and slices at positions of a call."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

import geon

from ....errors import ArgumentError
from ...positional.elementwise import elementwise, expand
from ...positional.indexing import select
from ...positional.movement import Part, slices
from ...positional.picking import gather_at, numbers, scatter_at
from ...positional.programs import cast
from ...positional.reshaping import transpose, unsqueeze
from ...positional.values import HostArray, Size, Value, host


def gather(
    x: Value, index: Value, *, dimension_numbers: Any, slice_sizes: Any, mode: Any, fill_value: Any
) -> Value:
    """Return slices of ``x`` that begin at the vectors along the last position of ``index``."""
    numbers_of = dimension_numbers
    windows = {
        k: length
        for k, length in enumerate(slice_sizes)
        if k not in (*numbers_of.collapsed_slice_dims, *numbers_of.operand_batching_dims)
    }
    batch = dict(
        zip(numbers_of.operand_batching_dims, numbers_of.start_indices_batching_dims, strict=True)
    )
    starts = {d: select(index, len(index.shape) - 1, k)
              for k, d in enumerate(numbers_of.start_index_map)}  # fmt: skip
    rank = len(index.shape) - 1
    place = _WindowStarts(x, starts, rank, windows, batch)
    found = place.gathered(_clamped(mode))
    out = iter(range(rank))
    offsets = {p: rank + k for k, p in enumerate(numbers_of.offset_dims)}
    order = [offsets[p] if p in offsets else next(out) for p in range(rank + len(windows))]
    result = transpose(found, order)
    valid = None if not _drops(mode) else place.valid()
    if valid is None:
        return result
    wide = unsqueeze(valid, [p for p in range(rank + len(windows)) if p in offsets])
    fill = host(_fill(x.dtype) if fill_value is None else fill_value, x.dtype)
    return elementwise(geon.where, wide, result, fill)


def _fill(dtype: np.dtype[Any]) -> Any:
    if dtype.kind in "iu":
        return np.iinfo(dtype).min if dtype.kind == "i" else np.iinfo(dtype).max
    return dtype.kind == "b" or float("nan")


def _drops(mode: Any) -> bool:
    return "FILL_OR_DROP" in str(mode)


def _clamped(mode: Any) -> bool:
    return "PROMISE_IN_BOUNDS" not in str(mode)


class _WindowStarts:
    """Windows of a value that begin at given positions.

    ``starts`` are arrays of ``rank`` positions, by position of the value; ``windows`` are the
    lengths along positions that stay; ``batch`` maps positions of the value to those of starts.
    """

    def __init__(
        self,
        x: Value,
        starts: Mapping[int, Value],
        rank: int,
        windows: Mapping[int, Size],
        batch: Mapping[int, int],
    ) -> None:
        self.value, self.rank, self.windows, self.batch = x, rank, dict(windows), dict(batch)
        self.starts = {d: cast(start, "int64") for d, start in starts.items()}
        # Positions that are taken whole need no index; the others are moved along.
        self.kept = [d for d, n in self.windows.items() if n == x.shape[d]]
        self.moved = [d for d in self.windows if d not in self.kept]

    def _last(self, d: int) -> Size:
        return self.value.shape[d] - self.windows.get(d, 1)

    def indices(self, is_clamped: bool) -> dict[int, Value]:
        """Return the index arrays of the positions that are not whole."""
        found: dict[int, Value] = {}
        rank = self.rank + len(self.moved)
        for d in range(len(self.value.shape)):
            if d in self.kept or d in self.batch:
                continue
            start = self.starts.get(d, host(0, "int64"))
            if is_clamped:
                above = elementwise(geon.maximum, start, host(0, "int64"))
                start = elementwise(geon.minimum, above, host(self._last(d), "int64"))
            start = unsqueeze(start, range(len(start.shape), len(start.shape) + len(self.moved)))
            if d in self.moved:
                line = numbers(self.windows[d], rank, self.rank + self.moved.index(d))
                start = elementwise(geon.add, start, line)
            found[d] = start
        return found

    def valid(self) -> Value | None:
        """Return where all of the window is inside; None if that is known to be everywhere."""
        found: Value | None = None
        for d, start in self.starts.items():
            low = elementwise(geon.greater_equal, start, host(0, "int64"))
            high = elementwise(geon.less_equal, start, host(self._last(d), "int64"))
            both = elementwise(geon.logical_and, low, high)
            found = both if found is None else elementwise(geon.logical_and, found, both)
        is_everywhere = isinstance(found, HostArray) and not found.is_symbolic
        return None if is_everywhere and bool(found.array.all()) else found  # type: ignore[union-attr]  # a host array

    def _static(self) -> dict[int, Part] | None:
        """Return the slices if there is one window, whose start is known."""
        if self.rank or self.batch:
            return None
        found: dict[int, Part] = {}
        for d in range(len(self.value.shape)):
            length = self.windows.get(d, 1)
            if d in self.kept:
                continue
            start = self.starts.get(d, host(0, "int64"))
            last = self._last(d)
            if not isinstance(start, HostArray) or start.is_symbolic:
                return None
            first = max(int(start.array), 0)
            first = min(first, last) if isinstance(last, int) else first
            found[d] = Part(first, first + length)
        return found

    def gathered(self, is_clamped: bool) -> Value:
        """Return the windows: the positions of starts, then those of ``windows``."""
        static = self._static()
        if static is not None:
            part = slices(self.value, static) if static else self.value
            rest = [k for k in range(len(part.shape)) if k not in self.windows]
            for k in reversed(rest):
                part = select(part, k, 0)
            return part
        indices = self.indices(is_clamped)
        if not indices:
            starts = [1] * self.rank
            for start in self.starts.values():
                starts = list(start.shape)  # type: ignore[arg-type]  # lengths
            whole = unsqueeze(self.value, range(self.rank))
            return expand(whole, [*starts, *self.value.shape])
        found = gather_at(self.value, indices, self.batch)
        return transpose(found, [*range(self.rank), *self._order()])

    def _order(self) -> list[int]:
        """Return, for each window in order, its position in the result of ``gather_at``."""
        places = [*self.moved, *self.kept]
        return [self.rank + places.index(d) for d in self.windows]

    def scattered(self, updates: Value, mode: str, is_clamped: bool, drop: Value | None) -> Value:
        """Return the value with windows changed; ``updates`` are as ``gathered`` returns them."""
        indices = self.indices(is_clamped)
        if not indices:
            indices = {0: numbers(self.value.shape[0], self.rank + 1, self.rank)}
            self.kept.remove(0)
            self.moved.append(0)
        order = self._order()
        back = sorted(range(len(order)), key=order.__getitem__)
        turned = transpose(updates, [*range(self.rank), *[self.rank + k for k in back]])
        if drop is not None:
            drop = unsqueeze(drop, range(self.rank, self.rank + len(self.moved)))
        return scatter_at(self.value, indices, turned, mode, self.batch, drop)


def scatter(mode: str) -> Callable[..., Value]:
    """Return the builder of a scatter that sets elements or combines them."""

    def build(
        x: Value, index: Value, updates: Value, *, dimension_numbers: Any, mode: Any,
        update_jaxpr: Any,
    ) -> Value:  # fmt: skip
        own = dimension_numbers
        if how == "set" and update_jaxpr is not None and update_jaxpr.eqns:
            raise ArgumentError("a scatter with a function of its own (scatter_apply)")
        operand_windows = [
            d for d in range(len(x.shape))
            if d not in (*own.inserted_window_dims, *own.operand_batching_dims)
        ]  # fmt: skip
        lengths = [updates.shape[p] for p in own.update_window_dims]
        windows = dict(zip(operand_windows, lengths, strict=True))
        batch = dict(zip(own.operand_batching_dims, own.scatter_indices_batching_dims, strict=True))
        rank = len(index.shape) - 1
        starts = {d: select(index, rank, k)
                  for k, d in enumerate(own.scatter_dims_to_operand_dims)}  # fmt: skip
        place = _WindowStarts(x, starts, rank, windows, batch)
        rest = [p for p in range(len(updates.shape)) if p not in own.update_window_dims]
        moved = transpose(updates, [*rest, *own.update_window_dims])
        if how == "subtract":
            moved = elementwise(geon.negative, moved)
        valid = place.valid() if _drops(mode) else None
        drop = None if valid is None else elementwise(geon.logical_not, valid)
        used = "add" if how == "subtract" else how
        return place.scattered(moved, used, _clamped(mode), drop)

    how = mode
    return build


def dynamic_slice(x: Value, *starts: Value, slice_sizes: Sequence[Size]) -> Value:
    """Return a slice at positions of a call, moved to lie inside."""
    windows = dict(enumerate(slice_sizes))
    given = dict(enumerate(starts[: len(x.shape)]))
    return _WindowStarts(x, given, 0, windows, {}).gathered(True)


def dynamic_update_slice(x: Value, update: Value, *starts: Value) -> Value:
    """Return ``x`` with a slice at positions of a call replaced."""
    windows = dict(enumerate(update.shape))
    place = _WindowStarts(x, dict(enumerate(starts)), 0, windows, {})
    if not x.shape or not place.moved:
        return update
    return place.scattered(update, "set", True, None)


READS: dict[str, Callable[..., Any]] = {"gather": gather, "dynamic_slice": dynamic_slice}
ROWS: dict[str, Callable[..., Any]] = {
    **READS,
    "dynamic_update_slice": dynamic_update_slice,
    "scatter": scatter("set"),
    "scatter-add": scatter("add"),
    "scatter-sub": scatter("subtract"),
    "scatter-mul": scatter("multiply"),
    "scatter-min": scatter("min"),
    "scatter-max": scatter("max"),
}
