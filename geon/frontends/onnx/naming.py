"""Axes of the inputs of a model: names from the user, from the file, or made up."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

import onnx

import geon

from ...errors import ArgumentError
from ...op_graph.axes.lengths import Length
from ..positional.naming import parsed_length
from ..positional.values import Size, fresh
from .errors import ModelError

# Axes of the first input of operators, by rank or for all ranks.
_IMAGES = {3: ("N", "C", "L"), 4: ("N", "C", "H", "W"), 5: ("N", "C", "D", "H", "W")}
_SEQUENCES = {3: ("T", "N", "C")}
_LAYOUTS: dict[str, Mapping[int, Sequence[str]]] = {
    **dict.fromkeys(
        """
        AveragePool BatchNormalization Conv ConvInteger ConvTranspose DepthToSpace
        GlobalAveragePool GlobalLpPool GlobalMaxPool GroupNormalization InstanceNormalization LRN
        LpPool MaxPool QLinearConv SpaceToDepth
        """.split(),
        _IMAGES,
    ),
    **dict.fromkeys(["GRU", "LSTM", "RNN"], _SEQUENCES),
}
# Operators whose result has the axes of their inputs.
_ELEMENTWISE = frozenset(
    """
    Add Cast Clip DequantizeLinear Div Dropout Identity LeakyRelu Mul Pad QuantizeLinear Relu
    Sigmoid Sub Tanh
    """.split()
)


def inferred_names(graph: onnx.GraphProto) -> dict[str, Sequence[str]]:
    """Return names of the axes of inputs, from the operators that read them.

    Images have N, C, D, H and W, and other inputs of at least two dimensions begin with N.
    """
    ranks = {each.name: len(each.type.tensor_type.shape.dim) for each in graph.input}
    found: dict[str, Sequence[str]] = {}
    origins = {name: name for name in ranks}  # values that have the axes of an input
    for node in graph.node:
        source = next((origins[name] for name in node.input if name in origins), None)
        if source is None:
            continue
        layouts = _LAYOUTS.get(node.op_type, {})
        if source == origins.get(node.input[0]) and ranks[source] in layouts:
            names = layouts[ranks[source]]
            if any(a.name == "layout" and a.i for a in node.attribute):
                names = (names[1], names[0], *names[2:])
            found.setdefault(source, names)
        elif node.op_type in _ELEMENTWISE and node.output:
            origins[node.output[0]] = source
    return {name: found.get(name, ("N",) if rank > 1 else ()) for name, rank in ranks.items()}


def stated_names(inputs: Iterable[onnx.ValueInfoProto], axes: Iterable[Sequence[Any]]) -> set[str]:
    """Return the names of axes that the file states for inputs, or the user."""
    dims = [dim.dim_param for each in inputs for dim in each.type.tensor_type.shape.dim]
    parts = [part for text in dims for part in re.findall(r"\w+", text)]  # of expressions
    return {*dims, *parts, *[str(getattr(axis, "name", axis)) for each in axes for axis in each]}


def input_axes(
    info: onnx.ValueInfoProto,
    given: Sequence[Any] | None,
    inferred: Sequence[str] = (),
    taken: Collection[str] = (),
) -> list[geon.Axis]:
    """Return the axes of an input: with the user's names, else those of the file.

    A dimension without a name has that of ``inferred``, with a number if it is ``taken`` by other
    inputs, or is called after the input and its position.
    """
    kind = info.type.tensor_type
    if not kind.HasField("shape") and given is None:
        raise ModelError(
            f"the input {info.name!r} has no shape in the file; name its axes with "
            f"axes={{{info.name!r}: [...]}}"
        )
    dims = list(kind.shape.dim)
    if given is not None and kind.HasField("shape") and len(given) != len(dims):
        raise ArgumentError(
            f"axes of {info.name!r}: {len(given)} names for {len(dims)} dimensions; name each"
        )
    count = len(dims) if given is None else len(given)
    axes: list[geon.Axis] = []
    for position in range(count):
        dim = dims[position] if dims else onnx.TensorShapeProto.Dimension()
        own = None if given is None else given[position]
        base = f"{info.name}_{position}"
        if position < len(inferred) and not dim.dim_param:
            base = fresh(inferred[position], taken)
        axes.append(_axis(dim, own, base, [axis.name for axis in axes]))
    return axes


def _axis(
    dim: onnx.TensorShapeProto.Dimension, given: Any, base: str, taken: list[str]
) -> geon.Axis:
    parameter = dim.dim_param if dim.HasField("dim_param") else ""
    size: Size | None = None
    if dim.HasField("dim_value"):
        if dim.dim_value < 0:
            raise ModelError(f"dimension {base!r} has the length {dim.dim_value}")
        size = dim.dim_value
    elif parameter:
        stated = parsed_length(parameter)
        size = Length.of(parameter) if stated is None else stated
    if isinstance(given, geon.Axis):
        if size is None or not isinstance(size, int):
            return given
        return geon.Axis(given.name, size)
    name = given or parameter or base
    if size is None or (given and not isinstance(size, int)):
        size = Length.of(name)
    return geon.Axis(fresh(name, taken), size)
