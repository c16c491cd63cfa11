"""``NodeWriter``: nodes, initializers and unique names of one ONNX model and its sub-graphs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from ....op_graph.axes.axes import Axes
from ....op_graph.axes.lengths import Length
from ....op_graph.values.dtypes import DType
from .onnx_types import element_type, onnx_package

Array = np.ndarray[Any, Any]


class NodeWriter:
    """The parts of a model while its nodes are written.

    ``nodes`` is the list that new nodes go to: that of the main graph, or of the sub-graph that is
    being written. Initializers belong to the main graph, whose names sub-graphs see.
    """

    def __init__(self) -> None:
        self.onnx = onnx_package()
        self.nodes: list[Any] = []
        self.initializers: dict[str, Array] = {}
        self.remark = ""  # the doc string of new nodes: op and source line
        self._taken: dict[str, int] = {}
        self._constants: dict[tuple[Any, ...], str] = {}

    def unique(self, wanted: str) -> str:
        """Return ``wanted``, or with a number behind it if the name is taken."""
        count = self._taken.get(wanted)
        if count is None:
            self._taken[wanted] = 1
            return wanted
        while f"{wanted}_{count}" in self._taken:
            count += 1
        self._taken[wanted] = count + 1
        return self.unique(f"{wanted}_{count}")

    def node(self, operator: str, inputs: Sequence[str], **attributes: Any) -> str:
        """Write a node with one output, and return its name."""
        return self.nodes_of(operator, inputs, 1, **attributes)[0]

    def nodes_of(
        self, operator: str, inputs: Sequence[str], outputs: int, **attributes: Any
    ) -> list[str]:
        """Write a node with several outputs, and return their names."""
        names = [self.unique(operator.lower()) for _ in range(outputs)]
        self.write(operator, inputs, names, **attributes)
        return names

    def write(
        self, operator: str, inputs: Sequence[str], outputs: Sequence[str], **attributes: Any
    ) -> None:
        """Write a node whose outputs have these names."""
        made = self.onnx.helper.make_node(
            operator,
            inputs,
            outputs,
            name=outputs[0],
            doc_string=self.remark or None,
            **attributes,
        )
        self.nodes.append(made)

    def constant(self, value: Any, dtype: Any = None) -> str:
        """Return the name of an initializer; equal ones are one."""
        array = np.asarray(value, dtype)
        key = (array.dtype.name, array.shape, array.tobytes())
        known = self._constants.get(key)
        if known is None:
            known = self._constants[key] = self.unique("constant")
            self.initializers[known] = array
        return known

    @contextmanager
    def subgraph(self) -> Iterator[list[Any]]:
        """Collect new nodes in a list of their own."""
        outer, self.nodes = self.nodes, []
        try:
            yield self.nodes
        finally:
            self.nodes = outer

    def graph(
        self, nodes: Sequence[Any], name: str, inputs: Sequence[Any], outputs: Sequence[Any]
    ) -> Any:
        """Return a sub-graph of these nodes."""
        return self.onnx.helper.make_graph(list(nodes), self.unique(name), inputs, outputs)

    def described(self, name: str, axes: Axes, order: Sequence[str], dtype: DType) -> Any:
        """Return the type of a value with dimensions in ``order``, names of open ones included.

        The names of all axes are in the metadata ``geon.axes``, separated by commas.
        """
        shape = [shape_entry(axes[each].expression) for each in order]
        made = self.onnx.helper.make_tensor_value_info(name, element_type(dtype), shape)
        if order:
            entry = made.metadata_props.add()
            entry.key, entry.value = "geon.axes", ",".join(order)
        return made


def shape_entry(length: int | Length) -> int | str:
    """Return a length as ONNX has it in a shape: an integer, or the name of an open dimension."""
    return length if isinstance(length, int) else str(length)
