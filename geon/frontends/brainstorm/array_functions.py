"""Functions of tensors, compiled and run on the arrays of a handler.

Value modifiers and steppers state their formulas once, as functions of tensors. A network that is
compiled as a whole has them in its graph; others run them here on arrays.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
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
