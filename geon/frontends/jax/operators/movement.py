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
from ...positional.reshaping import reshape, squeeze, transpose, unsqueeze
from ...positional.sliding import spread
from ...positional.values import HostArray, Size, Value, as_array, host


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


def padded(x: Value, fill: Value, *, padding_config: Sequence[tuple[Any, Any, int]]) -> Value:
    """Return ``x`` with a border, which may be negative, and with elements between its own."""
    number = as_array(fill).tensor
    widths = []
    for k, (low, high, inside) in enumerate(padding_config):
        x = spread(x, k, inside + 1, number)
        widths.append((low, high))
    return movement.pad(x, widths, "constant", number)


MOVEMENT: dict[str, Callable[..., Any]] = {
    "reshape": lambda x, *, new_sizes, dimensions: reshape(
        x if dimensions is None else transpose(x, dimensions), new_sizes
    ),
    "transpose": lambda x, *, permutation: transpose(x, permutation),
    "broadcast_in_dim": broadcast_in,
    "squeeze": lambda x, *, dimensions: squeeze(x, dimensions),
    "concatenate": lambda *parts, dimension: concat(parts, dimension),
    "slice": part_of,
    "split": lambda x, *, sizes, axis: tuple(movement.split(x, axis, sizes)),
    "rev": lambda x, *, dimensions: movement.flip(x, dimensions),
    "tile": lambda x, *, reps: movement.tile(x, reps),
}
ROWS: dict[str, Callable[..., Any]] = {
    **MOVEMENT,
    "pad": padded,
    "iota": lambda *_, dtype, shape, dimension: expand(
        numbers(shape[dimension], len(shape), dimension, dtype), shape
    ),
}
