"""Functions of tensors, compiled and run on the arrays of a handler.

Value modifiers and steppers state their formulas once, as functions of tensors. A network that is
compiled as a whole has them in its graph; others run them here on arrays.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import is_
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

import geon

AXES = [geon.Axis(f"d{k}") for k in range(32)]  # of arrays, in order: their lengths are open

_computations: WeakKeyDictionary[Any, dict[Any, Any]] = WeakKeyDictionary()  # by handler


def run_on_arrays(
    handler: Any,
    function: Callable[..., Any],
    arrays: Sequence[Any],
    numbers: Sequence[float] = (),
    out: Any = None,
) -> Any:
    """Compute a function of tensors from arrays and numbers, into ``out``.

    ``function`` is called with a tensor for each array, over the axes d0, d1 and so on, and a
    scalar for each number, and returns a tensor or a list of them. ``out``, an array or a list, may
    be among ``arrays``. The function is compiled once for each handler, ranks and dtypes, so it is
    a function at the top of a module, or a bound method of an object that lives long.
    """
    kinds = tuple((a.ndim, np.dtype(a.dtype)) for a in arrays)
    known = _computations.setdefault(handler, {})
    key = function, kinds, len(numbers)
    computation = known.get(key)
    if computation is None:
        computation = known[key] = compile_for_arrays(handler, function, kinds, len(numbers))
    return computation(*arrays, *numbers, out=out)


def compile_for_arrays(
    handler: Any,
    function: Callable[..., Any],
    kinds: Sequence[tuple[int, Any]],
    numbers: int,
) -> Any:
    """Return a computation of a function from arrays of these ranks and dtypes, then numbers."""
    tensors = [geon.placeholder(AXES[:rank], dtype) for rank, dtype in kinds]
    scalars = [geon.placeholder([], kinds[0][1]) for _ in range(numbers)]
    results = function(*tensors, *scalars)
    return handler.transformer.computation(results, *tensors, *scalars)


class InPlace:
    """A function of vectors and numbers whose results replace its vectors, but the second.

    They are variables that have the arrays as their memory, so that nothing is copied, unless the
    variables of the handler's transformer are on a device.
    """

    def __init__(
        self, handler: Any, function: Callable[..., Any], dtype: Any, vectors: int, numbers: int
    ) -> None:
        self.transformer = handler.transformer
        self.shared: list[Any] = []
        self.variables = [geon.temporary_tensor(AXES[:1], dtype) for _ in range(vectors - 1)]
        given = geon.placeholder(AXES[:1], dtype)
        scalars = [geon.placeholder([], dtype) for _ in range(numbers)]
        tensors = [self.variables[0], given, *self.variables[1:]]
        new = function(*tensors, *scalars)
        self.computation = self.transformer.computation(
            [geon.assign(old, value) for old, value in zip(self.variables, new, strict=True)],
            given,
            *scalars,
        )

    def __call__(self, arrays: Sequence[Any], given: Any, numbers: Sequence[float]) -> None:
        """Replace the arrays, the vectors but the second, which is ``given``."""
        if not all(map(is_, arrays, self.shared)) or not self.shared:
            for variable, array in zip(self.variables, arrays, strict=True):
                self.transformer.share(variable, array)
            self.shared = list(arrays)
        self.computation(given, *numbers)
