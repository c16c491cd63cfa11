"""Numbers that change from call to call of a line: they become arguments of compiled programs."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..errors import GeonError
from ..op_graph.axes.axes import Axes
from ..op_graph.building.elementwise_build import Elementwise
from ..op_graph.core.source_info import user_site
from ..op_graph.op_graph import Tensor
from ..op_graph.values.tree import mapped
from .arguments import NUMBERS, Arguments
from .arrays import EagerArray, data_array
from .building import name_of
from .nodes import Recent, RecordedCall

MAX_NUMBERS = 4  # numbers of one line that are constants of programs; more become arguments


class SeenNumbers:
    """The numbers that one line gave to one function.

    ``values`` has the different ones of each place. ``takes_arrays`` tells if the function takes
    arrays in the places of those that vary; None before it was tried.
    """

    def __init__(self, count: int) -> None:
        self.values: list[set[str]] = [set() for _ in range(count)]
        self.takes_arrays: bool | None = None


seen: Recent[SeenNumbers] = Recent()


def varied_numbers(function: Any, args: Any, keywords: Any, found: Arguments) -> Any:
    """Return the arguments with arrays for the numbers that differ from call to call of a line.

    Return None while there are few, and if the function takes no arrays for them or gives results
    of another type. Integers are checked as constants in each call, since they may be positions.
    """
    given: list[Any] = []
    mapped((args, keywords), lambda v: given.append(v) if v.__class__ in NUMBERS else None)
    if not given or name_of(function) == "power":
        return None
    parts = [p[0] if p.__class__ is tuple and p[0] in NUMBERS else p for p in found.key]
    key = (function, *parts, *user_site()[:2])
    known = seen.get(key) or seen.put(key, SeenNumbers(len(given)))
    for values, value in zip(known.values, given, strict=True):
        if len(values) <= MAX_NUMBERS:
            values.add(repr(value))
    varied = [len(values) > MAX_NUMBERS for values in known.values]
    if known.takes_arrays is False or not any(varied):
        return None
    dtypes = [node.type.dtype for node in found.numbers]
    dtypes += [op.dtype for op in found.held if isinstance(op, Tensor)]
    by_element = isinstance(function, Elementwise)
    made = [
        _number_array(value, dtypes, by_element) if other else value
        for value, other in zip(given, varied, strict=True)
    ]
    if any(one is None for one in made):
        return None
    first, rest = known.takes_arrays is None, iter(made)
    others = mapped((args, keywords), lambda v: next(rest) if v.__class__ in NUMBERS else v)
    if first or int in map(type, itertools.compress(given, varied)):
        constant, _ = found.build(function, args, keywords)
    if first:
        known.takes_arrays = False
        try:
            call, _ = Arguments(*others).build(function, *others)
        except (GeonError, TypeError, ValueError):
            return None
        types = [
            [r.type for r in c.results] for c in (constant, call) if c.__class__ is RecordedCall
        ]
        known.takes_arrays = len(types) == 2 and types[0] == types[1]
    return others if known.takes_arrays else None


def _number_array(value: Any, dtypes: Sequence[Any], by_element: bool) -> EagerArray | None:
    """Return a number as an array beside others of these dtypes; None if it does not fit."""
    if value.__class__ is int and not by_element:
        dtype = np.dtype("int64")
    else:
        floats = [dtype for dtype in dtypes if dtype.kind == "f"]
        dtype = max(floats or dtypes, key=lambda dtype: dtype.itemsize)
    with np.errstate(all="ignore"):
        try:
            made = np.asarray(value).astype(dtype)
        except OverflowError:
            return None
        if not np.isfinite(made) or (value.__class__ is int and made != value):
            return None
    return data_array(made, Axes(), Axes())
