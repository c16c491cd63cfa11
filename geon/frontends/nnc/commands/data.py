"""Copies, conversions, orders of dimensions, numbers, random numbers and communication."""

from __future__ import annotations

from typing import Any

import geon

from ....errors import ArgumentError
from ...positional.elementwise import chain, expand
from ...positional.programs import cast
from ...positional.reshaping import transpose as reordered
from ...positional.values import Value, array, as_array, new_axis
from .command import CommandRow
from .common import constant, positions


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


def transpose(x: Value, *, axes: Any = (0, 1)) -> Value:
    """Return ``x`` with two dimensions exchanged."""
    first, second = positions(x, axes)
    order = list(range(len(x.shape)))
    order[first], order[second] = second, first
    return reordered(x, order)


def format_transform(x: Value, *, to: str = "NCHW", format: str | None = None) -> Value:
    """Return ``x`` with its dimensions in the order of another layout."""
    given = format or "NHWC"
    wanted = {"NHWC", "NCHW", "CHWN"}
    if to not in wanted or len(x.shape) not in (3, 4):
        raise ArgumentError(
            f"{x} from {given} to {to!r}: give 3 or 4 dimensions, and one of {sorted(wanted)}"
        )
    letters = [letter for letter in given if len(x.shape) == 4 or letter != "N"]
    return reordered(x, [letters.index(letter) for letter in to if letter in letters])


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


def _same(x: Value) -> Value:
    return x


def converted(x: Value, *, dtype: Any = None) -> Value:
    """Return ``x`` in another dtype, that of the output by default."""
    if dtype is None:
        raise ArgumentError("the wanted dtype is unknown; give dtype=, or an output")
    return cast(x, dtype)


def broadcast(x: Value, *, count: int = 2) -> list[Value]:
    """Return ``x`` so many times."""
    return [x] * count


def custom(*xs: Value, function: Any = None, outputs: int = 1) -> Any:
    """Return what a function of the user returns for the inputs: a value, or ``outputs`` values."""
    if not callable(function):
        raise ArgumentError(f"function={function!r} cannot be called; give a function of values")
    return function(*xs)


ROWS = [
    CommandRow("dropout", dropout, ("y", "mask")),
    CommandRow("transpose", transpose),
    CommandRow("format_transform", format_transform),
    CommandRow("datatype_conversion", converted),
    CommandRow("data_transfer", lambda *xs: [_same(x) for x in xs], lambda n, _: n),
    CommandRow("set", fill),
    CommandRow("random_normal", random_normal),
    CommandRow("random_uniform", random_uniform),
    CommandRow("comm_allreduce", lambda *xs: [chain(geon.add, xs)] * len(xs), lambda n, _: n),
    CommandRow("comm_broadcast", broadcast, lambda _, attributes: int(attributes["count"])),
    CommandRow("comm_reduce", lambda *xs: chain(geon.add, xs)),
    CommandRow("custom", custom, lambda _, attributes: int(attributes["outputs"])),
]
