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
from ...positional.movement import with_axis
from ...positional.reshaping import unsqueeze
from ...positional.values import (
    Value,
    array,
    as_array,
    host,
    known_list,
    new_axis,
    position,
)
from ..table import row

# Modes of geon.scatter by the attribute ``reduction``.
REDUCTIONS = {"none": "set", "add": "add", "mul": "multiply", "max": "max", "min": "min"}


def gather_along(x: Value, index: Value, /, *, axis: int = 0) -> Value:
    """Return the elements at ``index`` along ``axis``."""
    return gather(x, index, axis)


def elements_along(x: Value, index: Value, /, *, axis: int = 0) -> Value:
    """Return the elements at ``index`` along ``axis``, at the index's own other positions."""
    return gather_elements(x, index, axis)


def elements_at(x: Value, index: Value, /, *, batch_dims: int = 0) -> Value:
    """Return the elements at tuples of indices."""
    return gather_tuples(x, index, batch_dims)


def scatter_along(
    x: Value, index: Value, updates: Value, /, *, axis: int = 0, reduction: str = "none"
) -> Value:
    """Return ``x`` with updates at ``index`` along ``axis``."""
    at = position(axis, len(x.shape))
    return scatter_elements(x, index, updates, at, REDUCTIONS[reduction])


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
    part = with_axis(as_array(update), at)
    line = part.dims[at]
    assert line is not None
    steps = unsqueeze(array(geon.iota(line), [line]), range(1, rank - at))
    start = host(0, "int64") if first is None else unsqueeze(first, range(1, rank))
    index = elementwise(geon.add, start, steps)
    if mode == "circular":
        index = elementwise(geon.mod, index, host(cache.shape[at], "int64"))
    return scatter_elements(cache, expand(index, update.shape), update, at)


def one_hot(index: Value, depth: Value, values: Value, /, *, axis: int = -1) -> Value:
    """Return ``values[1]`` at the index along a new position, else ``values[0]``."""
    (count,) = known_list(depth, "depth")
    at = position(axis, len(index.shape), 1)
    off, on = (select(values, 0, k) for k in (0, 1))
    wide = unsqueeze(index, [at])
    line = new_axis(int(count), "depth", ())
    numbers = unsqueeze(array(geon.iota(line), [line]), range(1, len(index.shape) + 1 - at))

    def build(i: geon.Tensor, k: geon.Tensor, a: geon.Tensor, b: geon.Tensor) -> geon.Tensor:
        whole = geon.cast(i, "int64")
        return geon.where(geon.equal(geon.where(whole < 0, whole + int(count), whole), k), b, a)

    return elementwise(build, wide, numbers, off, on)


ROWS = [
    row("Gather", gather_along),
    row("GatherElements", elements_along),
    row("GatherND", elements_at),
    row("Scatter", scatter_along),
    row("ScatterElements", scatter_along),
    row("ScatterND", scatter_at),
    row("TensorScatter", write_cache),
    row("OneHot", one_hot),
]
