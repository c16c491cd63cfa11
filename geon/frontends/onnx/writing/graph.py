"""``NodeWriter``: nodes, initializers and unique names of one ONNX model and its sub-graphs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import onnx

from ....errors import ArgumentError
from ....op_graph.axes.axes import Axes
from ....op_graph.values.dtypes import DType
from ..tensors import element_type_of

Array = np.ndarray[Any, Any]
# Operator set 21 with IR version 10: ReduceMax of bool, Gelu, metadata of nodes and values.
OPSET_VERSION, IR_VERSION = 21, 10
MAX_LENGTH = (1 << 63) - 1  # a dimension is a signed 64-bit integer


class NodeWriter:
    """The parts of a model while its nodes are written.

    ``nodes`` is the list that new nodes go to: that of the main graph, or of the sub-graph that is
    being written. Initializers belong to the main graph, whose names sub-graphs see.
    """

    def __init__(self) -> None:
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
        notes = {"name": names[0], "doc_string": self.remark}
        made = onnx.helper.make_node(operator, inputs, names, **notes, **attributes)
        self.nodes.append(made)
        return names

    def constant(self, value: Any, dtype: Any = None) -> str:
        """Return the name of an initializer; equal ones are one."""
        array = np.asarray(value, dtype)
        key = (array.dtype.name, array.shape, array.tobytes())
        known = self._constants.get(key)
        if known is None:
            known = self._constants[key] = self.unique("constant")
            self.initializers[known] = array
        return known

    def constants(self) -> list[str]:
        """Return the names of the initializers that are constants of the computation."""
        return list(self._constants.values())

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
        return onnx.helper.make_graph(list(nodes), self.unique(name), inputs, outputs)

    def described(self, name: str, axes: Axes, order: Sequence[str], dtype: DType) -> Any:
        """Return the type of a value with dimensions in ``order``, names of open ones included.

        The names of all axes are in the metadata ``geon.axes``, separated by commas.
        """
        lengths = [axes[each].expression for each in order]
        for each, length in zip(order, lengths, strict=True):
            if isinstance(length, int) and length > MAX_LENGTH:
                raise ArgumentError(
                    f"the axis {each} of {name} has length {length}, and ONNX has lengths of at "
                    f"most {MAX_LENGTH}; give a smaller one"
                )
        shape = [length if isinstance(length, int) else str(length) for length in lengths]
        made = onnx.helper.make_tensor_value_info(name, element_type_of(dtype), shape)
        if order:
            entry = made.metadata_props.add()
            entry.key, entry.value = "geon.axes", ",".join(order)
        return made


def pruned(nodes: Sequence[Any], needed: set[str]) -> list[Any]:
    """Return the nodes that compute ``needed`` values, in order; ``needed`` gains what they read.

    Nodes of sub-graphs are removed from these.
    """
    kept = []
    for node in reversed(nodes):
        if needed.isdisjoint(node.output):
            continue
        kept.append(node)
        needed.update(name for name in node.input if name)
        for graph in [each.g for each in node.attribute if each.HasField("g")]:
            inner = {each.name for each in graph.output}
            rest = pruned(graph.node, inner)
            del graph.node[:]
            graph.node.extend(rest)
            needed |= inner
    return kept[::-1]
