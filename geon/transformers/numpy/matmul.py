"""Contractions as ``np.matmul``: stacks of matrices, with as few copies as possible.

The result of x over (batch, M, K) and y over (batch, K, N) is laid out (batch, M, N). An operand is
read in place if its M (or N) axes and its K axes each collapse to one axis and one of the two is
contiguous, which is what BLAS accepts; otherwise it is copied into that form first.
"""

from __future__ import annotations

from ...lazy_dataclasses import dataclass
from ...op_graph.op_graph import Op
from ..lowering.facts.target import Arrangement, Layout


@dataclass(frozen=True, slots=True)
class ContractionAxes:
    """The axes of a contraction by role: batch, rows (in x only), columns (in y only), summed."""

    batch: tuple[str, ...]
    rows: tuple[str, ...]
    columns: tuple[str, ...]
    summed: tuple[str, ...]


def groups(op: Op) -> ContractionAxes:
    """Return the axes of a contraction by role, in the order of its operands."""
    x, y = op.args[0].axes, op.args[1].axes
    summed = op.attrs.over
    return ContractionAxes(
        tuple(n for n in x.names if n in y and n not in summed),
        tuple(n for n in x.names if n not in y),
        tuple(n for n in y.names if n not in x),
        summed,
    )


def arrange(op: Op, x: Layout, y: Layout) -> Arrangement:
    """Return which operands to copy, and the memory order of the result."""
    parts = groups(op)
    along = [_within(layout, parts.summed) for layout in (x, y)]
    fits = [_readable(x, parts.rows, parts), _readable(y, parts.columns, parts)]
    if fits[0] and fits[1] and along[0] != along[1]:
        fits[1] = False  # the operands order the summed axes differently: y follows x
    summed = along[0] if fits[0] else along[1] if fits[1] else parts.summed
    if not fits[1] and fits[0]:
        summed = along[0]
    batch = _within(x, parts.batch)
    rows, columns = _within(x, parts.rows), _within(y, parts.columns)
    copies = (
        None if fits[0] else (*batch, *rows, *summed),
        None if fits[1] else (*batch, *summed, *columns),
    )
    return Arrangement(copies, (*batch, *rows, *columns))


def _within(layout: Layout, names: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(n for n in layout.order if n in names)


def _readable(layout: Layout, own: tuple[str, ...], parts: ContractionAxes) -> bool:
    """Return True if an operand is a stack of matrices that BLAS reads in place."""
    if not layout.unit or (layout.order and layout.order[-1] in parts.batch):
        return False
    return _walkable(layout, own) and _walkable(layout, parts.summed)


def _walkable(layout: Layout, names: tuple[str, ...]) -> bool:
    if len(names) < 2:
        return True
    where = [layout.order.index(n) for n in _within(layout, names)]
    return layout.mergeable and where == list(range(where[0], where[0] + len(where)))
