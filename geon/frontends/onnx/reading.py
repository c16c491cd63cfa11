"""Reading of model files, and checks of their structure before anything is built."""

from __future__ import annotations

import mmap
import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import onnx
from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import DecodeError, Message

from ...transformers.runtime.files import path_text
from .errors import ModelError
from .stored_bytes import parsed

MAX_NESTED_GRAPHS = 50  # sub-graphs and functions inside each other
MAX_CALLED_NODES = 1 << 18  # nodes with those of functions at each call; one takes a millisecond
Scopes = tuple[set[str], ...]  # the names that a graph may read from the graphs around it


@dataclass(frozen=True)
class Source:
    """A model with the name of its file for messages and the folder of its external data.

    ``raw`` has the bytes of large initializers by name, which ``model`` lacks.
    """

    model: onnx.ModelProto
    name: str
    folder: str | None
    opsets: dict[str, int]
    raw: Mapping[str, memoryview]
    functions: dict[tuple[str, str, str], onnx.FunctionProto] = field(default_factory=dict)


def read(model: Any) -> Source:
    """Return the model of a path, of bytes or of a ``ModelProto``, checked.

    Nothing is executed, and external data are not read. Raises ``ModelError`` for a file that is
    truncated, or whose graph is not sorted, cyclic, or has a value twice.
    """
    folder = None
    name = "model"
    raw: Mapping[str, memoryview] = {}
    if isinstance(model, onnx.ModelProto):
        proto = model
    elif isinstance(model, (bytes, bytearray, memoryview)):
        proto, raw = _parsed(bytes(model), "the bytes given")
    else:
        path = path_text(model)
        name, folder = os.path.basename(path), os.path.dirname(os.path.abspath(path))
        try:
            with open(path, "rb") as file:
                data = _mapped(file)
        except OSError as error:
            raise ModelError(f"the model {path} cannot be read: {error.strerror}") from None
        proto, raw = _parsed(data, f"the file {path}")
    opsets = opsets_of(proto)
    source = Source(proto, name, folder, opsets, raw)
    for function in proto.functions:
        key = (domain_of(function), function.name, function.overload)
        if key in source.functions:
            raise ModelError(f"{name} has the function {function.name!r} twice")
        source.functions[key] = function
        check_nodes(function.node, {*function.input}, f"function {function.name!r} of {name}")
    if not proto.HasField("graph"):
        raise ModelError(f"{name} has no graph; it is empty, or is no ONNX model")
    if not opsets:
        raise ModelError(f"{name} imports no operator set, so its operators have no meaning")
    check_graph(proto.graph, name)
    check_calls(source)
    return source


def _mapped(file: Any) -> Any:
    """Return the bytes of a file, mapped into memory where that is possible."""
    try:
        return memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
    except (OSError, ValueError):  # no regular file, or an empty one
        return file.read()


def _parsed(data: Any, what: str) -> tuple[onnx.ModelProto, dict[str, memoryview]]:
    try:
        proto, raw = parsed(memoryview(data))
    except (DecodeError, RecursionError) as error:
        raise ModelError(f"{what} is no ONNX model, or is damaged: {error}") from None
    _check_texts(proto, what)
    return proto, raw


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


def check_graph(graph: onnx.GraphProto, what: str, outer: Scopes = ()) -> None:
    """Check that names are defined once, before their uses, and that outputs exist."""
    if len(outer) > MAX_NESTED_GRAPHS:
        raise ModelError(f"{what} has more than {MAX_NESTED_GRAPHS} graphs inside each other")
    sparse = [each.values for each in graph.sparse_initializer]
    known = _distinct(graph.input, f"{what} has the input")
    known |= _distinct([*graph.initializer, *sparse], f"{what} has the initializer")
    made = check_nodes(graph.node, known, what, outer)
    for output in graph.output:
        if not any(output.name in names for names in (made, *outer)):
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
    nodes: Iterable[onnx.NodeProto], given: set[str], what: str, outer: Scopes = ()
) -> set[str]:
    """Check nodes in their order; return the names of ``given`` and of their results."""
    made_by: dict[str, int] = {}
    nodes = list(nodes)
    for number, node in enumerate(nodes):
        for name in node.output:
            if name and (name in made_by or name in given):
                raise ModelError(f"{describe(node, number)} of {what} makes {name!r} again")
            made_by[name] = number
    known = set(given)
    scopes = (known, *outer)
    for number, node in enumerate(nodes):
        for name in node.input:
            if name and not any(name in names for names in scopes):
                reason = f"reads {name!r}, which nothing makes"
                if name in made_by:
                    maker = made_by[name]
                    reason = f"reads {name!r}, which {describe(nodes[maker], maker)} makes later"
                    reason += "; nodes must be sorted, without cycles"
                raise ModelError(f"{describe(node, number)} of {what} {reason}")
        for graph in graphs_in(node):
            check_graph(graph, f"a graph in {describe(node, number)} of {what}", scopes)
        known.update([name for name in node.output if name])
    return known


def check_calls(source: Source) -> None:
    """Raise ``ModelError`` if functions call themselves, or make a model too deep or too large."""
    sizes: dict[tuple[str, str, str], tuple[int, int]] = {}

    def size(
        nodes: Iterable[onnx.NodeProto], calls: tuple[str, ...], depth: int
    ) -> tuple[int, int]:
        """Return the number of nodes with those of all calls, and how deep these are."""
        check(0, depth)
        count, height = 0, 0
        for node in nodes:
            parts = [size(graph.node, calls, depth + 1) for graph in graphs_in(node)]
            key = (domain_of(node), node.op_type, node.overload)
            if key in source.functions:
                name = ".".join(filter(None, key))
                if name in calls:
                    raise ModelError(
                        f"the function {name} calls itself ({' calls '.join([*calls, name])}), "
                        "which ONNX excludes; write the repetition as a Loop"
                    )
                if key not in sizes:
                    sizes[key] = size(source.functions[key].node, (*calls, name), depth + 1)
                parts.append(sizes[key])
            count += 1 + sum(inner for inner, _ in parts)
            height = max([height, *[1 + inner for _, inner in parts]])
        return count, height

    def check(count: int, depth: int) -> None:
        if depth > MAX_NESTED_GRAPHS:
            what = f"{MAX_NESTED_GRAPHS} graphs and functions inside each other"
            raise ModelError(f"{source.name} has more than {what}")
        if count > MAX_CALLED_NODES:
            raise ModelError(
                f"{source.name} has {count:,} nodes with those of its functions, counted at each "
                f"call; at most {MAX_CALLED_NODES:,} can be built"
            )

    if source.functions:
        check(*size(source.model.graph.node, (), 0))


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
