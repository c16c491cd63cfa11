"""Values that are made of numbers, lengths and random bits."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import geon

from .programs import cast
from .values import Size, Value, array, as_array, new_axis


def drawn(shape: Sequence[Size], dtype: Any, f: Callable[[list[geon.Axis], Any], Any]) -> Value:
    """Return ``f(axes, dtype)``, a draw in a dtype of at least 32 bits, in the dtype given."""
    axes: list[geon.Axis] = []
    for k, length in enumerate(shape):
        axes.append(new_axis(length, f"d_{k}", [axis.name for axis in axes]))
    used = [axis for axis in axes if axis.expression != 1]
    return cast(array(f(used, np.promote_types(dtype, np.float32)), axes), dtype)


def dropout(x: Value, share: float, stream: geon.Random) -> tuple[Value, Value]:
    """Return ``x`` with random elements 0 and the others scaled, and the mask of the others."""
    given = as_array(x)
    kept = stream.bernoulli(given.tensor.axes, p=1 - share, dtype="bool")
    scale = 0.0 if share == 1 else 1 / (1 - share)
    tensor = geon.cast(geon.where(kept, given.tensor * scale, 0), given.dtype)
    return array(tensor, given.dims), array(kept, given.dims)
