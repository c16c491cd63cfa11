"""``build_model``: the ONNX model of a lowered program, its inputs and its state."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import onnx

from ....op_graph.op_graph import Op
from ....version import __version__
from .exporter import Exporter, OnnxValue
from .graph import IR_VERSION, OPSET_VERSION, NodeWriter, pruned
from .lengths import LengthWriter
from .rows import ROWS

Array = np.ndarray[Any, Any]
MAX_NODE_BYTES = 1 << 16  # of a constant that is a node; larger ones may be external data


class Port(NamedTuple):
    """An input or output of a model by its name: what is fed, or what is computed.

    ``default`` is the value of an input that need not be fed.
    """

    name: str
    op: Op
    default: Array | None = None


def build_model(
    inputs: Sequence[Port],
    constants: Sequence[Port],
    outputs: Sequence[Port],
    name: str,
    metadata: Mapping[str, str],
    lengths: Mapping[str, int],
) -> Any:
    """Return the model that computes ``outputs``.

    ``constants`` are variables whose values are initializers, ``lengths`` those of open names that
    no input has.
    """
    graph = NodeWriter()
    for port in (*inputs, *outputs):
        graph.unique(port.name)
    exporter = Exporter(graph, LengthWriter(graph, _sources(inputs), lengths), ROWS)
    for port in inputs:
        exporter.values[port.op] = OnnxValue(port.name, port.op.axes.names)
    for port in constants:
        own = graph.unique(port.name)
        graph.initializers[own] = np.asarray(port.default)
        exporter.values[port.op] = OnnxValue(own, port.op.axes.names)
    exporter.write([port.op for port in outputs])
    # Rows do not see defaults, which are no constants.
    graph.initializers.update({p.name: p.default for p in inputs if p.default is not None})
    for port in outputs:
        value = exporter.arranged(port.op, port.op.axes.names)
        graph.nodes.append(onnx.helper.make_node("Identity", [value], [port.name]))
    helper = onnx.helper
    described = [
        [graph.described(p.name, p.op.axes, p.op.axes.names, p.op.dtype) for p in ports]
        for ports in (inputs, outputs)
    ]
    needed = {port.name for port in (*inputs, *outputs)}
    nodes = pruned([*exporter.lengths.nodes, *graph.nodes], needed)
    # Constants are nodes, so that a reader takes initializers alone for weights.
    small = {own for own in graph.constants() if graph.initializers[own].nbytes <= MAX_NODE_BYTES}
    stored = {
        own: onnx.numpy_helper.from_array(array, own)
        for own, array in graph.initializers.items()
        if own in needed
    }
    tensors = [tensor for own, tensor in stored.items() if own not in small]
    first = [
        helper.make_node("Constant", [], [own], value=tensor)
        for own, tensor in stored.items()
        if own in small
    ]
    nodes = [*first, *nodes]
    made = helper.make_model(
        helper.make_graph(nodes, name, described[0], described[1], tensors),
        opset_imports=[helper.make_opsetid("", OPSET_VERSION)],
        ir_version=IR_VERSION,
        producer_name="geon",
        producer_version=__version__,
    )
    helper.set_model_props(made, dict(metadata))
    return made


def _sources(inputs: Sequence[Port]) -> dict[str, tuple[str, int]]:
    """Return for each open name the first input and dimension that have just this length."""
    places = [(axis.open_name, p.name, k) for p in inputs for k, axis in enumerate(p.op.axes)]
    return {own: (name, k) for own, name, k in places[::-1] if own is not None}
