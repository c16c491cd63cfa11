"""Positional values of ``geon.eager``: functions of them are recorded once for each kind of values.

The dynamic graph executes commands this way, and CNNP models their steps.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import zip_longest
from typing import Any

import numpy as np

import geon
from geon import eager

from ...errors import ArgumentError
from ..positional.values import PositionalArray, Value, array, as_array
from .commands.command import matching
from .tensors import array_of

Kind = tuple[Any, ...]


def eager_value(data: Any) -> PositionalArray:
    """Return data as a positional value whose tensor is an array of ``geon.eager``."""
    given = array_of(data)
    if given.dtype == np.float64 and not hasattr(data, "dtype"):
        given = given.astype("float32")
    dims = [None if n == 1 else geon.Axis(f"d{k}", n) for k, n in enumerate(given.shape)]
    axes = [axis for axis in dims if axis is not None]
    tensor = eager.array(given.reshape([n for n in given.shape if n != 1]), axes)
    return PositionalArray(tensor, tuple(dims))


def numpy_of(value: Value) -> np.ndarray[Any, Any]:
    """Return the elements of a value, its dimensions in order."""
    given = as_array(value)
    found: np.ndarray[Any, Any] = np.asarray(given.tensor)
    order = [given.tensor.axes.names.index(dim.name) for dim in given.dims if dim is not None]
    return found.transpose(order).reshape([int(n) for n in given.shape])


def replaced(value: PositionalArray, tensor: geon.Tensor) -> PositionalArray:
    """Return a value with another tensor over its axes."""
    return array(tensor, [None if d is None else d.name for d in value.dims])


def kind_of(value: Value | None) -> Kind:
    """Return what a recorded function depends on: dtype, axes, and their positions."""
    if value is None:
        return ()
    given = as_array(value)
    return given.dtype, given.tensor.axes, tuple([d and d.name for d in given.dims])


class Recorded:
    """A function of positional values, recorded once for each kind of values and options.

    ``build(values, *options)`` returns values, and effects on variables, which are run.
    """

    def __init__(
        self, build: Callable[..., tuple[Sequence[Value | None], Sequence[Any]]], name: str
    ) -> None:
        self.build, self.name = build, name
        self.made: dict[Any, tuple[Callable[..., Any], list[Any]]] = {}

    def __call__(self, values: Sequence[Value | None], *options: Any) -> list[Any]:
        """Return the results, whose tensors are arrays of ``geon.eager``."""
        key = (tuple([kind_of(value) for value in values]), options)
        if key not in self.made:
            self.made[key] = self._recorded(key[0], options)
        function, dims = self.made[key]
        found: Any = iter(function([as_array(v).tensor for v in values if v is not None]))
        # A result that depends on variables alone is a symbolic tensor.
        return [n if n is None else array(eager.array(next(found)), n) for n in dims]

    def _recorded(self, kinds: Sequence[Kind], options: Any) -> Any:
        dims: list[Any] = []

        def run(tensors: list[Any]) -> Any:
            given = iter(tensors)
            values = [array(next(given), kind[2]) if kind else None for kind in kinds]
            results, effects = self.build(values, *options)
            made = [None if value is None else as_array(value) for value in results]
            dims[:] = [y and [None if d is None else d.name for d in y.dims] for y in made]
            return [_strong(y.tensor) for y in made if y is not None] + list(effects)

        run.__name__ = self.name
        return eager.function(run), dims


def _strong(tensor: geon.Tensor) -> geon.Tensor:
    """Return a tensor with a dtype that is fixed, which recorded results need."""
    return geon.cast(tensor, tensor.dtype) if tensor.weak else tensor


def seeded_sum(outputs: Sequence[Value | None], seeds: Sequence[Value | None]) -> Any:
    """Return the sum of the elements of outputs times ``seeds``; 1 where there is none.

    Outputs of integers are left out. Raises ``AxisError`` for a seed of another shape.
    """
    floats = [as_array(y) for y in outputs if y is not None and y.dtype.kind == "f"]
    if len(seeds) > len(floats):
        raise ArgumentError(
            f"{len(seeds)} gradients for {len(floats)} outputs of floats; give at most one for each"
        )
    total: Any = 0.0
    for k, (y, seed) in enumerate(zip_longest(floats, seeds)):
        given = 1.0 if seed is None else matching(seed, y, f"the gradient of output {k}")
        total = total + geon.sum(y.tensor * given)
    return total
