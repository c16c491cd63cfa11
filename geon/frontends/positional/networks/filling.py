"""Tensors of a given shape: constants, random numbers, and dropout."""

from __future__ import annotations

from typing import Any

import geon

from ....errors import ArgumentError
from ..elementwise import expand
from ..programs import cast
from ..values import Value, array, as_array, new_axis
from .common import constant


def dropout(
    x: Value, *, p: float = 0.5, entirety: bool = False, seed: int | None = None, random: Any = None
) -> tuple[Value, Value]:
    """Return ``x`` with elements 0 with probability ``p`` and the others scaled, and their mask.

    With ``entirety`` one draw decides for all elements.
    """
    given = as_array(x)
    axes = () if entirety else given.tensor.axes
    kept = random.bernoulli(axes, p=1 - p, dtype="bool")
    scale = 0.0 if p == 1 else 1 / (1 - p)
    tensor = geon.cast(geon.where(kept, given.tensor * scale, 0), given.dtype)
    dims = [None if d is None else d.name for d in given.dims]
    if entirety:
        return array(tensor, dims), array(kept, [None] * len(dims))
    return array(tensor, dims), array(kept, dims)


def _filled(f: Any) -> Any:
    """Return the function of a command that has no inputs, but a shape."""

    def build(shape: Any, dtype: Any) -> Value:
        if shape is None:
            raise ArgumentError("it has no inputs: give shape=, or an output")
        axes: list[Any] = [None if n == 1 else new_axis(n, f"d{k}", []) for k, n in
                           enumerate(shape)]  # fmt: skip
        kind = dtype if dtype is not None and str(dtype) not in ("float16", "bfloat16") else None
        made = f([axis for axis in axes if axis is not None], kind or "float32")
        return cast(array(made, axes), dtype or "float32")

    return build


def random_normal(
    *, mean: float = 0.0, std: float = 1.0, shape: Any = None, dtype: Any = None,
    seed: int | None = None, random: Any = None,
) -> Value:  # fmt: skip
    """Return normally distributed numbers."""
    found: Value = _filled(lambda axes, kind: random.normal(axes, mean, std, kind))(shape, dtype)
    return found


def random_uniform(
    *, low: float = 0.0, high: float = 1.0, shape: Any = None, dtype: Any = None,
    seed: int | None = None, random: Any = None,
) -> Value:  # fmt: skip
    """Return numbers that are uniformly distributed from ``low`` to ``high``."""
    found: Value = _filled(lambda axes, kind: random.uniform(axes, low, high, kind))(shape, dtype)
    return found


def fill(*, value: float = 0.0, shape: Any = None, dtype: Any = None) -> Value:
    """Return a number in a shape."""
    if shape is None:
        raise ArgumentError("it has no inputs: give shape=, or an output")
    return expand(constant(value, dtype or "float32"), shape)
