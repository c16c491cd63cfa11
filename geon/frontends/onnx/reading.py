"""Reading of model files, and checks of their structure before anything is built."""

from __future__ import annotations

import mmap
import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

import onnx
from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import DecodeError, Message

from ...transformers.runtime.files import path_text
from .errors import ModelError

MAX_NESTED_GRAPHS = 50  # sub-graphs inside each other; also calls of functions


@dataclass(frozen=True)
class Source:
    """A model with the name of its file for messages and the folder of its external data."""

    model: onnx.ModelProto
    name: str
    folder: str | None
    opsets: dict[str, int]
    functions: dict[tuple[str, str, str], onnx.FunctionProto] = field(default_factory=dict)


def read(model: Any) -> Source:
    """Return the model of a path, of bytes or of a ``ModelProto``, checked.

    Nothing is executed, and external data are not read. Raises ``ModelError`` for a file that is
    truncated, or whose graph is not sorted, cyclic, or has a value twice.
    """
    folder = None
    name = "model"
    if isinstance(model, onnx.ModelProto):
        proto = model
    elif isinstance(model, (bytes, bytearray, memoryview)):
        proto = _parsed(bytes(model), "the bytes given")
    else:
        path = path_text(model)
        name, folder = os.path.basename(path), os.path.dirname(os.path.abspath(path))
        try:
            with open(path, "rb") as file:
                data = _mapped(file)
        except OSError as error:
            raise ModelError(f"the model {path} cannot be read: {error.strerror}") from None
        proto = _parsed(data, f"the file {path}")
    opsets = opsets_of(proto)
    source = Source(proto, name, folder, opsets)
    for function in proto.functions:
        key = (domain_of(function), function.name, function.overload)
        if key in source.functions:
            raise ModelError(f"{name} has the function {function.name!r} twice")
        source.functions[key] = function
        check_nodes(function.node, set(function.input), f"function {function.name!r} of {name}")
    if not proto.HasField("graph"):
        raise ModelError(f"{name} has no graph; it is empty, or is no ONNX model")
    if not opsets:
        raise ModelError(f"{name} imports no operator set, so its operators have no meaning")
    check_graph(proto.graph, set(), name)
    return source


def _mapped(file: Any) -> Any:
    """Return the bytes of a file, mapped into memory where that is possible."""
    try:
        return memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
    except (OSError, ValueError):  # no regular file, or an empty one
        return file.read()


def _parsed(data: Any, what: str) -> onnx.ModelProto:
    proto = onnx.ModelProto()
    try:
        proto.ParseFromString(data)
    except (DecodeError, RecursionError) as error:
        raise ModelError(f"{what} is no ONNX model, or is damaged: {error}") from None
    _check_texts(proto, what)
    return proto


def _check_texts(proto: Message, what: str) -> None:
    """Raise ``ModelError`` for a name that is not in UTF-8, which protobuf returns as bytes."""
    waiting = [proto]
    while waiting:
        message = waiting.pop()
        if isinstance(message, onnx.TensorProto):  # ListFields would copy its elements
            named = message.DESCRIPTOR.fields_by_name
            fields = [(named[n], getattr(message, n)) for n in ("name", "doc_string")]
            waiting += message.external_data
        else:
            fields = message.ListFields()
        for field_, value in fields:
            if field_.type == FieldDescriptor.TYPE_MESSAGE:
                waiting += [value] if isinstance(value, Message) else value
            elif field_.type == FieldDescriptor.TYPE_STRING:
                texts = [value] if isinstance(value, (str, bytes)) else value
                if any(isinstance(text, bytes) for text in texts):
                    raise ModelError(f"{what} is damaged: {field_.full_name} is no text in UTF-8")


def domain_of(part: Any) -> str:
    """Return the domain of a node, a function or an operator set; the standard one is empty."""
    return "" if part.domain == "ai.onnx" else str(part.domain)


def opsets_of(part: onnx.ModelProto | onnx.FunctionProto) -> dict[str, int]:
    """Return the versions of the operator sets that a model or a function imports, by domain."""
    return {domain_of(each): each.version for each in part.opset_import}


def check_graph(graph: onnx.GraphProto, outer: set[str], what: str, depth: int = 0) -> None:
    """Check that names are defined once, before their uses, and that outputs exist."""
    if depth > MAX_NESTED_GRAPHS:
        raise ModelError(f"{what} has more than {MAX_NESTED_GRAPHS} graphs inside each other")
    sparse = [each.values for each in graph.sparse_initializer]
    known = _distinct(graph.input, f"{what} has the input")
    known |= _distinct([*graph.initializer, *sparse], f"{what} has the initializer")
    made = check_nodes(graph.node, known | outer, what, depth, known)
    for output in graph.output:
        if output.name not in made and output.name not in outer:
            raise ModelError(f"{what}: no node makes the output {output.name!r}")


def _distinct(parts: Iterable[Any], what: str) -> set[str]:
    """Return the names of parts of a graph; raise ``ModelError`` for a name that is there twice."""
    found: set[str] = set()
    for each in parts:
        if each.name in found:
            raise ModelError(f"{what} {each.name!r} twice")
        found.add(each.name)
    return found


def check_nodes(
    nodes: Iterable[onnx.NodeProto],
    available: set[str],
    what: str,
    depth: int = 0,
    own: set[str] | None = None,
) -> set[str]:
    """Check nodes in their order; return all names that are defined then."""
    available = set(available)
    own = set() if own is None else own
    made_by: dict[str, int] = {}
    nodes = list(nodes)
    for number, node in enumerate(nodes):
        for name in node.output:
            if name and (name in made_by or name in own):
                raise ModelError(f"{describe(node, number)} of {what} makes {name!r} again")
            made_by[name] = number
    for number, node in enumerate(nodes):
        for name in node.input:
            if name and name not in available:
                reason = f"reads {name!r}, which nothing makes"
                if name in made_by:
                    maker = made_by[name]
                    reason = f"reads {name!r}, which {describe(nodes[maker], maker)} makes later"
                    reason += "; nodes must be sorted, without cycles"
                raise ModelError(f"{describe(node, number)} of {what} {reason}")
        for graph in graphs_in(node):
            check_graph(
                graph, available, f"a graph in {describe(node, number)} of {what}", depth + 1
            )
        available.update([name for name in node.output if name])
    return available


def graphs_in(node: onnx.NodeProto) -> Iterator[onnx.GraphProto]:
    """Yield the graphs among the attributes of a node."""
    for attribute in node.attribute:
        if attribute.type == onnx.AttributeProto.GRAPH:
            yield attribute.g
        elif attribute.type == onnx.AttributeProto.GRAPHS:
            yield from attribute.graphs


def describe(node: onnx.NodeProto, number: int) -> str:
    """Return the number, operator and name of a node for messages."""
    return f"node {number} {node.op_type}" + (f" {node.name!r}" if node.name else "")
