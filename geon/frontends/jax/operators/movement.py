"""Reshape, transpose, broadcast, join, slice and pad."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ...positional import movement
from ...positional.elementwise import expand
from ...positional.folding import MAX_FOLDED_ELEMENTS
from ...positional.movement import Part, concat, slices
from ...positional.picking import numbers
from ...positional.programs import cast
from ...positional.reshaping import reshape, squeeze, transpose, unsqueeze
from ...positional.sliding import spread
from ...positional.values import HostArray, Size, Value, as_array, host


def reshaped(x: Value, *, new_sizes: Sequence[Size], dimensions: Any) -> Value:
    """Return ``x`` in another shape."""
    return reshape(x if dimensions is None else transpose(x, dimensions), new_sizes)


def transposed(x: Value, *, permutation: Sequence[int]) -> Value:
    """Return ``x`` with its positions in another order."""
    return transpose(x, permutation)


def broadcast_in(
    x: Value, *rest: Value, shape: Sequence[Size], broadcast_dimensions: Sequence[int]
) -> Value:
    """Return ``x`` broadcast, with its positions at these of the result."""
    if isinstance(x, HostArray) and all(isinstance(n, int) for n in shape):
        if int(np.prod([int(n) for n in shape])) <= MAX_FOLDED_ELEMENTS:  # such as an index
            wide = np.expand_dims(x.array, tuple(set(range(len(shape))) - {*broadcast_dimensions}))
            return host(np.broadcast_to(wide, [int(n) for n in shape]), x.dtype)
    new = [k for k in range(len(shape)) if k not in broadcast_dimensions]
    return expand(unsqueeze(x, new), shape)


def squeezed(x: Value, *, dimensions: Sequence[int]) -> Value:
    """Return ``x`` without some positions of length 1."""
    return squeeze(x, dimensions)


def joined(*parts: Value, dimension: int) -> Value:
    """Return operands joined along a position."""
    return concat(parts, dimension)


def part_of(
    x: Value, *, start_indices: Sequence[Size], limit_indices: Sequence[Size], strides: Any
) -> Value:
    """Return a slice along all positions."""
    steps = strides or [1] * len(start_indices)
    bounds = zip(start_indices, limit_indices, steps, strict=True)
    cut = {
        k: Part(a, b, int(step))
        for k, (a, b, step) in enumerate(bounds)
        if not (isinstance(a, int) and a == 0 and b == x.shape[k] and step == 1)
    }
    return slices(x, cut) if cut else x


def split_in(x: Value, *, sizes: Sequence[Size], axis: int) -> tuple[Value, ...]:
    """Return consecutive parts along a position."""
    return tuple(movement.split(x, axis, list(sizes)))


def reverse(x: Value, *, dimensions: Sequence[int]) -> Value:
    """Return ``x`` in reverse order along some positions."""
    return movement.flip(x, list(dimensions))


def padded(x: Value, fill: Value, *, padding_config: Sequence[tuple[Any, Any, int]]) -> Value:
    """Return ``x`` with a border, which may be negative, and with elements between its own."""
    number = as_array(fill).tensor
    widths = []
    for k, (low, high, inside) in enumerate(padding_config):
        x = spread(x, k, inside + 1, number)
        widths.append((low, high))
    return movement.pad(x, widths, "constant", number)


def counted(*rest: Value, dtype: Any, shape: Sequence[Size], dimension: int) -> Value:
    """Return the index along a position."""
    return expand(cast(numbers(shape[dimension], len(shape), dimension), dtype), shape)


def tiled(x: Value, *, reps: Sequence[Size]) -> Value:
    """Return ``x`` repeated as a whole along each position."""
    return movement.tile(x, reps)


def empty(*, shape: Sequence[Size], dtype: Any) -> Value:
    """Return zeros: memory without a value is 0."""
    return expand(host(0, dtype), shape)


MOVEMENT: dict[str, Callable[..., Any]] = {
    "reshape": reshaped,
    "transpose": transposed,
    "broadcast_in_dim": broadcast_in,
    "squeeze": squeezed,
    "concatenate": joined,
    "slice": part_of,
    "split": split_in,
    "rev": reverse,
    "tile": tiled,
}
ROWS: dict[str, Callable[..., Any]] = {**MOVEMENT, "pad": padded, "iota": counted, "empty": empty}
