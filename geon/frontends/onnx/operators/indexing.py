"""Gather and scatter, and one-hot codes."""

from __future__ import annotations

import geon

from ...positional.elementwise import elementwise, expand
from ...positional.indexing import (
    gather,
    gather_elements,
    gather_tuples,
    scatter_elements,
    scatter_tuples,
    select,
)
from ...positional.picking import numbers
from ...positional.reshaping import unsqueeze
from ...positional.values import Value, host, position
from ..table import row

# Modes of geon.scatter by the attribute ``reduction``.
REDUCTIONS = {"none": "set", "add": "add", "mul": "multiply", "max": "max", "min": "min"}


def scatter_along(
    x: Value, index: Value, updates: Value, /, *, axis: int = 0, reduction: str = "none"
) -> Value:
    """Return ``x`` with updates at ``index`` along ``axis``."""
    return scatter_elements(x, index, updates, axis, REDUCTIONS[reduction])


def scatter_at(x: Value, index: Value, updates: Value, /, *, reduction: str = "none") -> Value:
    """Return ``x`` with updates at tuples of indices."""
    return scatter_tuples(x, index, updates, REDUCTIONS[reduction])


def write_cache(
    cache: Value,
    update: Value,
    first: Value | None = None,
    /,
    *,
    axis: int = -2,
    mode: str = "linear",
) -> Value:
    """Return a cache of sequences with an update from the index ``first`` of each on.

    In the mode "circular" indices go on at the start.
    """
    rank = len(cache.shape)
    at = position(axis, rank)
    start = host(0, "int64") if first is None else unsqueeze(first, range(1, rank))
    index = elementwise(geon.add, start, numbers(update.shape[at], rank, at))
    if mode == "circular":
        index = elementwise(geon.mod, index, host(cache.shape[at], "int64"))
    return scatter_elements(cache, expand(index, update.shape), update, at)


def one_hot(index: Value, depth: int, values: Value, /, *, axis: int = -1) -> Value:
    """Return ``values[1]`` at the index along a new position, else ``values[0]``."""
    at = position(axis, len(index.shape), 1)
    off, on = (select(values, 0, k) for k in (0, 1))

    def build(i: geon.Tensor, k: geon.Tensor, a: geon.Tensor, b: geon.Tensor) -> geon.Tensor:
        whole = geon.cast(i, "int64")
        return geon.where(geon.equal(geon.where(whole < 0, whole + depth, whole), k), b, a)

    line = numbers(depth, len(index.shape) + 1, at)
    return elementwise(build, unsqueeze(index, [at]), line, off, on)


ROWS = [
    row("Gather", gather),
    row("GatherElements", gather_elements),
    row("GatherND", gather_tuples),
    row("Scatter", scatter_along),
    row("ScatterElements", scatter_along),
    row("ScatterND", scatter_at),
    row("TensorScatter", write_cache),
    row("OneHot", one_hot),
]
