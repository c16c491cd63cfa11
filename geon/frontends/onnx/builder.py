"""The walk over the nodes of a graph, which builds tensors from the rows of operators."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import onnx
from onnx import AttributeProto

from ...errors import GeonError
from ...op_graph.core.source_info import building
from ..positional.imported_model import UnsupportedError, refuse_unsupported
from ..positional.small_dtypes import SmallArray
from ..positional.values import (
    HostArray,
    PositionalArray,
    UnknownValueError,
    Weight,
    as_array,
    host,
)
from .errors import ModelError
from .reading import Source, describe, domain_of, graphs_in, opsets_of
from .schemas import (
    checked_attributes,
    function_of,
    has_function,
    schema_of,
    typed_function_of,
)
from .table import NodeInfo, find_row
from .tensors import array_of, dense_array, element_type_of

# What operators raise for attributes and values that the standard excludes.
BAD_NODE = (
    ArithmeticError, AssertionError, AttributeError, LookupError, MemoryError, TypeError,
    ValueError,
)  # fmt: skip
MAX_UNROLLED_STEPS = 4096  # of all loops of a model, each of which builds a graph again
Values = dict[str, Any]
NOTHING = object()
# Fields of attributes that need no conversion, by type.
_PLAIN = {
    AttributeProto.FLOAT: "f",
    AttributeProto.INT: "i",
    AttributeProto.FLOATS: "floats",
    AttributeProto.INTS: "ints",
    AttributeProto.TYPE_PROTO: "tp",
}
_SCALAR = (AttributeProto.FLOAT, AttributeProto.INT, AttributeProto.TYPE_PROTO)


@dataclass(frozen=True)
class Subgraph:
    """A graph among the attributes of a node; calling it builds its nodes on given inputs."""

    builder: Builder
    graph: onnx.GraphProto
    scope: Scope

    @property
    def outputs(self) -> int:
        """The number of outputs."""
        return len(self.graph.output)

    def __call__(self, *given: Any) -> list[Any]:
        """Build the nodes and return the outputs, in order."""
        inner = self.scope.inside()
        if len(given) != len(self.graph.input):
            raise ModelError(
                f"its graph {self.graph.name!r} has {len(self.graph.input)} inputs and gets "
                f"{len(given)}"
            )
        for info, value in zip(self.graph.input, given, strict=True):
            inner.values[info.name] = value
        return self.builder.graph(self.graph, inner)

    def unroll(self, steps: int) -> bool:
        """Count steps that are built one by one; return False if a model has too many."""
        self.builder.unrolled_steps += steps
        return self.builder.unrolled_steps <= MAX_UNROLLED_STEPS

    def prepare(self) -> None:
        """Build the variables that the graph reads from outside, before a region encloses it."""
        for name in _names_read(self.graph):
            if isinstance(self.scope.get(name), Weight):
                as_array(self.scope.find(name))


@dataclass(frozen=True)
class Scope:
    """Values by name; those of ``outer`` are seen, too. ``opsets`` hold for its nodes.

    ``attributes`` are those of the call of a function, which its nodes refer to by name.
    """

    values: Values
    opsets: Mapping[str, int]
    outer: Scope | None = None
    attributes: Mapping[str, AttributeProto] | None = None
    depth: int = 0

    def find(self, name: str) -> Any:
        """Return the value of a name; raise ``ModelError`` if nothing makes it."""
        found = self.get(name, NOTHING)
        if found is NOTHING:
            raise ModelError(f"nothing makes {name!r}")
        return found

    def get(self, name: str, default: Any = None) -> Any:
        """Return the value of a name, or ``default``."""
        scope: Scope | None = self
        while scope is not None:
            if name in scope.values:
                return scope.values[name]
            scope = scope.outer
        return default

    def inside(self) -> Scope:
        """Return the scope of a graph in a node of this one."""
        return Scope({}, self.opsets, self, self.attributes, self.depth + 1)


class Builder:
    """Builds the graphs of a model; ``parameter`` makes the value of an initializer."""

    def __init__(self, source: Source, parameter: Callable[[str, Any], Any]) -> None:
        self.source = source
        self.parameter = parameter
        self.unrolled_steps = 0

    def graph(self, graph: onnx.GraphProto, scope: Scope) -> list[Any]:
        """Build the nodes of a graph and return its outputs; inputs are in ``scope``."""
        for tensor in graph.initializer:
            if tensor.name not in scope.values:
                what = f"the initializer {tensor.name!r} of {self.source.name}"
                raw = self.source.raw.get(tensor.name) if scope.depth == 0 else None
                value = array_of(tensor, self.source.folder, what, raw)
                scope.values[tensor.name] = self.parameter(tensor.name, value)
        for sparse in graph.sparse_initializer:
            dense = dense_array(sparse, f"the initializer {sparse.values.name!r}")
            scope.values[sparse.values.name] = self.parameter(sparse.values.name, dense)
        self.nodes(graph.node, scope)
        return [scope.find(output.name) for output in graph.output]

    def nodes(self, nodes: Iterable[onnx.NodeProto], scope: Scope) -> None:
        """Build nodes in their order, and store their results in ``scope``."""
        with building() as current:
            for number, node in enumerate(nodes):
                what = describe(node, number)
                if scope.depth == 0:
                    current.site = (self.source.name, number, what)
                try:
                    self._node(node, scope)
                except UnknownValueError as error:
                    error.args = (f"{what} of {self.source.name}: {error}",)
                    raise
                except UnsupportedError:
                    raise
                except (GeonError, *BAD_NODE) as error:
                    reason = self._missing(node, scope) or _reason(error)
                    raise ModelError(
                        f"{what} of {self.source.name}: {reason}" + _inputs_text(node, scope)
                    ) from error

    def _node(self, node: onnx.NodeProto, scope: Scope) -> None:
        domain = domain_of(node)
        inputs = [scope.find(name) if name else None for name in node.input]
        key = (domain, node.op_type, node.overload)
        function = self.source.functions.get(key)
        if function is not None:
            given = [*function.attribute_proto, *_bound(node, scope).attribute]
            attributes = {each.name: each for each in given}
            results: Sequence[Any] = self._call(function, node, inputs, attributes, scope)
        else:
            results = self._standard(domain, node, inputs, scope)
        for name, value in zip(node.output, results, strict=False):
            if name:
                scope.values[name] = value
                if (
                    isinstance(value, PositionalArray)
                    and scope.depth == 0
                    and value.tensor.name is None
                ):
                    value.tensor.name = name
        missing = [name for name in node.output[len(results) :] if name]
        if missing:
            raise ModelError(f"the output {missing[0]!r} is not supported")

    def _standard(
        self, domain: str, node: onnx.NodeProto, inputs: list[Any], scope: Scope
    ) -> Sequence[Any]:
        version = self.version(domain, scope.opsets)
        schema = schema_of(domain, node.op_type, version)
        given = _bound(node, scope)
        attributes = checked_attributes(given, schema)
        row = find_row(domain, node.op_type, version)
        if row is not None:
            keywords: dict[str, Any] = {
                name: self._attribute(each, scope)
                for name, each in attributes.items()
                if row.reads(name)
            }
            if "node" in row.parameters:
                outputs = tuple(node.output)
                keywords["node"] = NodeInfo(node.name, node.op_type, version, outputs, scope.find)
            while inputs and inputs[-1] is None:
                inputs.pop()
            return row.apply(inputs, keywords)
        function = None
        if schema is not None:
            function = function_of(schema, version)
            # onnx itself crashes if the body is to depend on the type of a sequence.
            if function is None and not any(isinstance(value, (list, tuple)) for value in inputs):
                types = [_type_of(value) for value in inputs]
                function = typed_function_of(schema, version, given, types)
        if function is None:
            name = _qualified(domain, node.op_type)
            raise UnsupportedError(
                f"{describe(node, 0)}: geon does not have the operator {name}, version {version}, "
                "for these inputs; add it with geon.frontends.onnx.register",
                {name: 1},
            )
        return self._call(function, node, inputs, attributes, scope)

    def _missing(self, node: onnx.NodeProto, scope: Scope) -> str:
        """Return the reason of an error if a node lacks an input that its operator needs."""
        domain = domain_of(node)
        schema = schema_of(domain, node.op_type, scope.opsets.get(domain, 0))
        for number, needed in enumerate(schema.inputs if schema is not None else ()):
            given = number < len(node.input) and node.input[number]
            if not given and needed.option == onnx.defs.OpSchema.FormalParameterOption.Single:
                return f"input {number} ({needed.name}), which the operator needs, is missing"
        return ""

    def version(self, domain: str, opsets: Mapping[str, int]) -> int:
        """Return the version of a domain; raise ``ModelError`` if it is not imported."""
        found = opsets.get(domain)
        if found is None:
            raise ModelError(f"the operator set {domain or 'ai.onnx'!r} is not imported")
        return found

    def _attribute(self, attribute: AttributeProto, scope: Scope) -> Any:
        kind = attribute.type
        if kind == AttributeProto.STRING:
            return attribute.s.decode(errors="replace")
        if kind == AttributeProto.STRINGS:
            texts = {text: text.decode(errors="replace") for text in {*attribute.strings}}
            return [texts[text] for text in attribute.strings]
        if kind == AttributeProto.TENSOR:
            return host(array_of(attribute.t, self.source.folder, f"attribute {attribute.name!r}"))
        if kind == AttributeProto.SPARSE_TENSOR:
            return host(dense_array(attribute.sparse_tensor, f"attribute {attribute.name!r}"))
        if kind == AttributeProto.GRAPH:
            return Subgraph(self, attribute.g, scope)
        if kind in _PLAIN:
            value = getattr(attribute, _PLAIN[kind])
            return value if kind in _SCALAR else value[:]
        raise ModelError(f"the attribute {attribute.name!r} has a type that is not supported")

    # Functions ------------------------------------------------------------------------------------

    def _call(
        self,
        function: onnx.FunctionProto,
        node: onnx.NodeProto,
        inputs: Sequence[Any],
        attributes: Mapping[str, AttributeProto],
        scope: Scope,
    ) -> list[Any]:
        if len(inputs) > len(function.input):
            raise ModelError(
                f"the function {function.name!r} has {len(function.input)} inputs and gets "
                f"{len(inputs)}"
            )
        given = [*inputs, *[None] * (len(function.input) - len(inputs))]
        values = dict(zip(function.input, given, strict=True))
        opsets = {**scope.opsets, **opsets_of(function)}
        inner = Scope(values, opsets, None, attributes, scope.depth + 1)
        self.nodes(function.node, inner)
        # A body for these inputs may lack outputs that the node does not name.
        pairs = zip(node.output, function.output, strict=False)
        return [inner.find(own) if name else None for name, own in pairs]


def _bound(node: onnx.NodeProto, scope: Scope) -> onnx.NodeProto:
    """Return a node with the attributes that refer to those of a function's call replaced."""
    if not any(each.ref_attr_name for each in node.attribute):
        return node
    bound = onnx.NodeProto()
    bound.CopyFrom(node)
    del bound.attribute[:]
    for each in node.attribute:
        if not each.ref_attr_name:
            bound.attribute.append(each)
        elif scope.attributes is not None and each.ref_attr_name in scope.attributes:
            copy = bound.attribute.add()
            copy.CopyFrom(scope.attributes[each.ref_attr_name])
            copy.name = each.name
    return bound


def _names_read(graph: onnx.GraphProto) -> set[str]:
    """Return the names that a graph reads, with those of the graphs in its nodes."""
    found = {output.name for output in graph.output}
    waiting = [graph]
    while waiting:
        for node in waiting.pop().node:
            found.update(node.input)
            waiting += graphs_in(node)
            found.update([o.name for g in graphs_in(node) for o in g.output])
    return found


def _qualified(domain: str, name: str) -> str:
    return f"{domain}.{name}" if domain else name


def _reason(error: BaseException) -> str:
    if isinstance(error, GeonError):
        return str(error)
    return f"its attributes or inputs are not valid ({type(error).__name__}: {error})"


def _inputs_text(node: onnx.NodeProto, scope: Scope) -> str:
    shown = []
    for name in node.input:
        try:
            shown.append(f"{name}: {scope.find(name)}" if name else "none")
        except ModelError:
            shown.append(name)
    return f"\n  inputs: {'; '.join(shown)}" if shown else ""


def _type_of(value: Any) -> onnx.TypeProto:
    """Return the type of a value for a function body that depends on it."""
    found = onnx.TypeProto()
    if isinstance(value, (PositionalArray, HostArray, Weight, SmallArray)):
        found.tensor_type.elem_type = element_type_of(value.dtype)
        found.tensor_type.shape.SetInParent()
        for length in value.shape:
            dim = found.tensor_type.shape.dim.add()
            if isinstance(length, int):
                dim.dim_value = length
            else:
                dim.dim_param = str(length)
    return found


# Operators that are not there ---------------------------------------------------------------------


def check_operators(source: Source) -> None:
    """Raise ``UnsupportedError`` with all operators that neither a row nor a function defines."""
    missing: list[str] = []
    seen: set[tuple[Any, ...]] = set()
    waiting: list[tuple[Iterable[onnx.NodeProto], Mapping[str, int]]] = [
        (source.model.graph.node, source.opsets)
    ]
    while waiting:
        nodes, opsets = waiting.pop()
        for node in nodes:
            waiting += [(graph.node, opsets) for graph in graphs_in(node)]
            domain = domain_of(node)
            key = (domain, node.op_type, node.overload)
            version = opsets.get(domain, 0)
            function = source.functions.get(key)
            if function is None and find_row(domain, node.op_type, version) is None:
                schema = schema_of(domain, node.op_type, version)
                if schema is None or not has_function(schema, version):
                    missing.append(f"{_qualified(domain, node.op_type)} (version {version})")
                    continue
                function = function_of(schema, version)
            if function is not None and (*key, version) not in seen:
                seen.add((*key, version))
                waiting.append((function.node, {**opsets, **opsets_of(function)}))
    cure = "add them with geon.frontends.onnx.register"
    refuse_unsupported(source.name, missing, "operators", cure)
