"""Gather along a position, and one-hot codes."""

from __future__ import annotations

import geon

from ...positional.elementwise import elementwise
from ...positional.indexing import gather, select
from ...positional.reshaping import unsqueeze
from ...positional.values import Value, array, known_list, new_axis, position
from ..table import row


def gather_along(x: Value, index: Value, /, *, axis: int = 0) -> Value:
    """Return the elements at ``index`` along ``axis``."""
    return gather(x, index, position(axis, len(x.shape)))


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
    row("OneHot", one_hot),
]
