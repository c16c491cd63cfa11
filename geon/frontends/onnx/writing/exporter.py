"""``Exporter``: writes the nodes of a lowered program, and the order of axes of each value.

A geon value has named axes, an ONNX value has positions. The exporter knows for each op the name of
its ONNX value and the ``order`` of the axes there. An axis that the ONNX value lacks is one along
which all elements are equal. So ``reorder``, ``rename`` and ``broadcast`` write nothing, operators
with broadcasting read such values as they are, and Transpose, Unsqueeze and Expand are written
where an operator needs another order, or all elements.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

from ....op_graph.axes.lengths import Length
from ....op_graph.op_graph import Op, post_order
from ....op_graph.values.dtypes import INT64, DType
from .expressions import Expr
from .graph import NodeWriter
from .lengths import LengthWriter


@dataclass(frozen=True, slots=True)
class OnnxValue:
    """An ONNX value: its name, and the axes of its dimensions in order."""

    name: str
    order: tuple[str, ...]

    def with_axes(self, axis: str, *axes: str) -> tuple[str, ...]:
        """Return the order with other axes in the place of one."""
        at = self.order.index(axis)
        return (*self.order[:at], *axes, *self.order[at + 1 :])


class Exporter:
    """Writes ops into a graph; ``rows`` has a function of (exporter, op) for each primitive."""

    def __init__(self, graph: NodeWriter, lengths: LengthWriter, rows: Mapping[str, Any]) -> None:
        self.graph, self.lengths, self.rows = graph, lengths, rows
        self.values: dict[Op, Any] = {}  # an OnnxValue, or for a region the list of its results
        self.uses: Counter[Op] = Counter()  # readers of each op that is being written

    def write(self, roots: Sequence[Op]) -> None:
        """Write all nodes that the roots need and that are not there yet."""
        order = post_order(roots, self.values)
        self.uses = Counter([*roots, *[arg for op in order for arg in op.args]])
        for op in order:
            self.graph.remark = f"{op.primitive.name} {op.axes} {op.file_info}"
            self.values[op] = self.rows[op.primitive.name](self, op)

    @contextmanager
    def binding(self, known: Mapping[Op, OnnxValue]) -> Iterator[None]:
        """Write ops of a body, of which ``known`` are the parameters; they are forgotten after."""
        outer, uses, self.values = self.values, self.uses, dict(known)
        try:
            yield
        finally:
            self.values, self.uses = outer, uses

    # Values in the order that an operator needs -------------------------------------------------

    def expr(self, name: str, dtype: DType) -> Expr:
        """Return a value by its name, with operators."""
        return Expr(self.graph, name, dtype)

    def complete(self, op: Op, names: Sequence[str]) -> OnnxValue:
        """Return the value with at least these axes, which the op has, among its dimensions."""
        value: OnnxValue = self.values[op]
        missing = [name for name in names if name not in value.order]
        if not missing:
            return value
        order = tuple([name for name in op.axes.names if name in missing or name in value.order])
        if tuple([name for name in order if name in value.order]) != value.order:
            order = (*missing, *value.order)  # dimensions stay in their order
        aligned = self.expr(self.aligned(value, order), op.dtype)
        lengths = [op.axes[name].expression for name in order]
        if 0 in lengths:  # ONNX Runtime removes an Expand from 1 to 0
            made = aligned.run("Expand", self.lengths.listed([k or 1 for k in lengths]))
            empty = [k for k, length in enumerate(lengths) if length == 0]
            none = self.integers([0] * len(empty))
            made = made.run("Slice", none, none, self.integers(empty))
        else:
            made = aligned.run("Expand", self.lengths.listed(lengths))
        return OnnxValue(made.name, order)

    def arranged(self, op: Op, order: Sequence[str]) -> str:
        """Return the name of the op's value with exactly the dimensions ``order``."""
        return self.transposed(self.complete(op, order), order)

    def transposed(self, value: OnnxValue, order: Sequence[str]) -> str:
        """Return the name of a value that has exactly the axes of ``order``, in that order."""
        if value.order == tuple(order):
            return value.name
        perm = [value.order.index(name) for name in order]
        return self.graph.node("Transpose", [value.name], perm=perm)

    def aligned(self, value: OnnxValue, order: Sequence[str]) -> str:
        """Return a value that broadcasts to dimensions ``order``: in that order, 1 where missing.

        Missing dimensions in front are left out.
        """
        own = [name for name in order if name in value.order]
        name = self.transposed(value, own)
        if not own:
            return name
        first = order.index(own[0])
        missing = [k - first for k, each in enumerate(order) if k > first and each not in own]
        if not missing:
            return name
        return self.graph.node("Unsqueeze", [name, self.integers(missing)])

    def number(self, length: int | Length) -> Expr:
        """Return a length as an int64 scalar."""
        return self.expr(self.lengths.scalar(length), INT64)

    def integers(self, values: Sequence[int]) -> str:
        """Return a list of int64."""
        return self.graph.constant(np.array(values, np.int64))

    def reshaped(self, name: str, lengths: Sequence[int | Length]) -> str:
        """Return a value with another shape of the same size."""
        unknown = [length for length in lengths if isinstance(length, Length)]
        if len(unknown) == 1 and 0 not in lengths:
            target = [-1 if isinstance(length, Length) else length for length in lengths]
            return self.graph.node("Reshape", [name, self.integers(target)])
        return self.graph.node("Reshape", [name, self.lengths.listed(lengths)], allowzero=1)

    def gathered(self, value: OnnxValue, axis: str, index: str, *axes: str) -> OnnxValue:
        """Return the elements along an axis at an index over ``axes``, which replace it."""
        at = value.order.index(axis)
        made = self.graph.node("Gather", [value.name, index], axis=at)
        return OnnxValue(made, value.with_axes(axis, *axes))

    def range(self, length: int | Length) -> Expr:
        """Return 0, 1, 2, ... in int64."""
        if isinstance(length, int):
            return self.expr(self.graph.constant(np.arange(length)), INT64)
        ends = [self.lengths.scalar(k) for k in (0, length, 1)]
        return self.expr(self.graph.node("Range", ends), INT64)

    def operand(self, op: Op, order: Sequence[str]) -> Expr:
        """Return the value of an op, aligned for a broadcast to ``order``."""
        return self.expr(self.aligned(self.values[op], order), op.dtype)

    def common_order(self, op: Op, operands: Sequence[Op]) -> tuple[str, ...]:
        """Return the order of dimensions in which operands of an elementwise op meet.

        It is that of an operand with all dimensions, so that the largest one is not moved, or the
        order of the op's axes.
        """
        orders = [self.values[arg].order for arg in operands]
        present = {name for order in orders for name in order}
        own = tuple([name for name in op.axes.names if name in present])
        whole = [order for order in orders if len(order) == len(own)]
        return own if own in whole or not whole else whole[0]
