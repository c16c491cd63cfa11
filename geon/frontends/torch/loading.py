"""``load``: a program of ``torch.export`` as tensors, variables and computations."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch._decomp import decomposition_table
from torch.export import ExportedProgram, default_decompositions
from torch.export.graph_signature import ConstantArgument, InputKind, OutputKind, TensorArgument
from torch.fx import GraphModule, Node
from torch.utils._pytree import tree_unflatten

import geon

from ...errors import ArgumentError
from ...op_graph.core.source_info import building
from ...op_graph.op_graph import Leaf
from ...transformers.base import Transformer
from ..positional.imported_model import (
    ImportedModel,
    building_node,
    refuse_other_inputs,
    refuse_unsupported,
)
from ..positional.naming import named_axes
from ..positional.programs import Declared, conform, conforming, named_results
from ..positional.values import (
    Value,
    Weight,
    as_array,
    full_tensor,
    host,
    input_array,
    weight,
)
from .numbers import array_of, dtype_of, length_of, number_operators
from .table import operator_table

MAX_HOST_ELEMENTS = 1024  # of a tensor constant that becomes a constant, not a variable
# Arguments that say how a tensor lies in memory, or by which generator it is drawn.
STORAGE = ("layout", "device", "pin_memory", "memory_format", "non_blocking", "generator")
UPDATES = "updates"


@dataclass(frozen=True, eq=False, repr=False)
class ExportedModel(ImportedModel):
    """A model of ``torch.export``.

    ``updates`` assigns the new values of buffers that the program changes, such as running
    statistics; it is None if there are none.
    """

    updates: Any = None

    def computation(self, transformer: Transformer | None = None, **options: Any) -> Any:
        """Return a callable from arrays of the inputs to a dictionary of the outputs.

        It changes the buffers as the program does; ``"updates"`` is None among its results then.
        """
        if self.updates is None:
            return super().computation(transformer, **options)
        used = geon.make_transformer() if transformer is None else transformer
        results = {**self.outputs, UPDATES: self.updates}
        return used.computation(results, *self.inputs.values(), **options)


def load(
    program: ExportedProgram,
    axes: Mapping[str, Sequence[Any]] | None = None,
    *,
    name: str = "program",
) -> ExportedModel:
    """Return the model of an exported program: ``torch.export.export(module, args)``.

    ``axes`` names the axes of inputs: ``{"image": ["N", "C", "H", "W"]}``. Otherwise a dynamic
    dimension has the name of its ``torch.export.Dim``, and a fixed one that of its input and its
    position. Dynamic dimensions are open axes, so one compiled program serves all their lengths.

    Parameters and buffers become variables with their names in the module; those that PyTorch
    trains (``requires_grad``) are trainable. The outputs have the structure that the module
    returns: its keys if that is a dictionary, else ``output``, or ``output_0`` and so on.

    Draws such as those of dropout have other bits than PyTorch's.

    Raises ``UnsupportedError`` with the names of all operators that geon does not have, before
    anything is built, and ``ArgumentError``, which names the node and the reason, for a node that
    cannot be built.
    """
    kept = default_decompositions()
    for operator in [each for each in kept if key_of(each) in operator_table()]:
        del kept[operator]
    lowered = program.run_decompositions(kept)
    further = {
        operator: decomposition_table[operator]
        for operator in unknown_operators(lowered.graph_module)
        if operator in decomposition_table
    }
    if further:  # operators of the core that have no row, but others that they are made of
        lowered = lowered.run_decompositions({**kept, **further})
    graph = lowered.graph_module
    cure = "write those parts of the module with other operators"
    refuse_unsupported(name, unknown_operators(graph), "operators", cure)
    loading = _ExportLoader(lowered, graph, dict(axes or {}), name)
    return ExportedModel(
        name, loading.inputs, loading.outputs, loading.variables, loading.constants, loading.updates
    )


def key_of(target: Any) -> str:
    """Return the name of an operator in the table: without namespace and ``default``."""
    return str(target).removeprefix("aten.").removesuffix(".default")


def needed_nodes(graph: GraphModule) -> list[Node]:
    """Return the nodes that the output depends on, in their order."""
    output = next(node for node in graph.graph.nodes if node.op == "output")
    needed, stack = {output}, [output]
    while stack:
        for node in stack.pop().all_input_nodes:
            if node not in needed:
                needed.add(node)
                stack.append(node)
    return [node for node in graph.graph.nodes if node in needed]


def unknown_operators(graph: GraphModule) -> Iterator[Any]:
    """Yield the operators of needed nodes, of inner graphs too, that have no row."""
    for node in needed_nodes(graph):
        if node.op == "get_attr":
            inner = getattr(graph, str(node.target), None)
            if isinstance(inner, GraphModule):
                yield from unknown_operators(inner)
        elif (
            node.op == "call_function"
            and key_of(node.target) not in operator_table()
            and node.target not in number_operators()
        ):
            yield node.target


class _ExportLoader:
    """The parts of a model while it is loaded."""

    def __init__(
        self, program: ExportedProgram, graph: GraphModule, axes: dict[str, Any], name: str
    ) -> None:
        self.name = name
        self.inputs: dict[str, Leaf] = {}
        self.variables: dict[str, Leaf] = {}
        self.outputs: dict[str, Any] = {}
        self.constants: dict[str, Any] = {}
        self._weights: dict[str, Weight] = {}
        signature = program.graph_signature
        given = {spec.arg.name: spec for spec in signature.input_specs}
        mutated = {
            spec.target
            for spec in signature.output_specs
            if spec.kind in (OutputKind.BUFFER_MUTATION, OutputKind.PARAMETER_MUTATION)
        }
        users = [s.arg.name for s in given.values() if s.kind is InputKind.USER_INPUT]
        refuse_other_inputs("axes", axes, name, users)
        start: list[Any] = []
        for node in graph.graph.nodes:
            if node.op == "placeholder":
                start.append(self._input(program, node, given[node.name], axes, mutated))
        results = build(graph, start, name, True)
        self.updates = self._results(program, results)
        order = [target for target in self._weights if target in self.variables]
        self.variables = {target: self.variables[target] for target in order}

    def _input(
        self, program: ExportedProgram, node: Node, spec: Any, axes: dict[str, Any], mutated: Any
    ) -> Any:
        if isinstance(spec.arg, ConstantArgument):
            return spec.arg.value
        if not isinstance(spec.arg, TensorArgument):
            raise ArgumentError(
                f"the input {spec.arg.name!r} of {self.name} is {type(spec.arg).__name__}; inputs "
                "are tensors, or numbers that are fixed when the module is exported"
            )
        stated = node.meta["val"]
        if spec.kind is InputKind.USER_INPUT:
            lengths = [length_of(n) for n in stated.shape]
            made = named_axes(node.name, lengths, axes.get(node.name))
            leaf = geon.placeholder(made, dtype_of(stated.dtype, node.name), name=node.name)
            self.inputs[node.name] = leaf
            return input_array(leaf)
        stored = program.state_dict.get(spec.target)
        tensor = program.constants[spec.target] if stored is None else stored
        value = array_of(tensor, spec.target)
        trainable = spec.kind is InputKind.PARAMETER and tensor.requires_grad
        if spec.kind is InputKind.CONSTANT_TENSOR and value.size <= MAX_HOST_ELEMENTS:
            return host(value)
        self._weights[spec.target] = weight(value, spec.target, self.variables, trainable)
        return self._weights[spec.target]

    def _results(self, program: ExportedProgram, results: Sequence[Any]) -> Any:
        """Store the outputs; return the assignments of buffers, or None."""
        users: list[Any] = []
        updates: list[Any] = []
        for spec, value in zip(program.graph_signature.output_specs, results, strict=True):
            if spec.kind in (OutputKind.BUFFER_MUTATION, OutputKind.PARAMETER_MUTATION):
                as_array(self._weights[str(spec.target)])
                leaf = self.variables[str(spec.target)]
                new = geon.cast_axes(full_tensor(conform(value, variable_shape(leaf), leaf.dtype)),
                                     leaf.axes)  # fmt: skip
                updates.append(geon.assign(leaf, new))
            elif spec.kind is OutputKind.USER_INPUT_MUTATION:
                self.outputs[f"{spec.target}_changed"] = _output(value)
            else:
                users.append(_output(value))
        whole = tree_unflatten(users, program.call_spec.out_spec)
        for key, value in named_results(whole):
            store = self.outputs if _is_tensors(value) else self.constants
            store[key] = value
        return geon.doall(updates) if updates else None


def variable_shape(leaf: geon.Tensor) -> tuple[Any, ...]:
    """Return the lengths of a tensor's axes."""
    return tuple([axis.expression for axis in leaf.axes])


def _is_tensors(value: Any) -> bool:
    if isinstance(value, Mapping):
        return all(map(_is_tensors, value.values()))
    if isinstance(value, (list, tuple)):
        return all(map(_is_tensors, value))
    return isinstance(value, geon.Tensor)


def _output(value: Any) -> Any:
    return full_tensor(value) if isinstance(value, Value) else value


def build(graph: GraphModule, given: Sequence[Any], name: str, is_outer: bool) -> list[Any]:
    """Build the needed nodes of a graph for values of its placeholders; return its outputs."""
    values: dict[Node, Any] = {}
    rest = iter(given)
    for node in graph.graph.nodes:
        if node.op == "placeholder":
            values[node] = next(rest)
    output: list[Any] = []
    with building() as current:
        for number, node in enumerate(needed_nodes(graph)):
            if node.op == "placeholder":
                continue
            if node.op == "output":
                flat = node.args[0] if isinstance(node.args[0], (tuple, list)) else [node.args[0]]
                output = [_argument(each, values) for each in flat]
                continue
            if node.op == "get_attr":
                values[node] = _attribute(graph, node, name)
                continue
            if is_outer:
                current.site = (name, number, f"{node.name} ({key_of(node.target)})")
            what = f"node {node.name} ({key_of(node.target)})"
            with building_node(what, name, lambda node=node: _origin(node)):  # type: ignore[misc]  # bound now
                values[node] = _node(node, values)
    return output


def _attribute(graph: GraphModule, node: Node, name: str) -> Any:
    found = getattr(graph, str(node.target))
    if isinstance(found, GraphModule):
        return lambda *given: build(found, given, name, False)
    return host(array_of(found, str(node.target)))


def _origin(node: Node) -> str:
    lines = [line.strip() for line in str(node.meta.get("stack_trace") or "").splitlines()]
    at = next((line for line in reversed(lines) if line.startswith("File ")), "")
    return f"; it comes from {at}" if at else ""


def _node(node: Node, values: dict[Node, Any]) -> Any:
    arguments = [_argument(each, values) for each in node.args]
    function = number_operators().get(node.target)
    if function is not None:
        return function(*arguments)
    row = operator_table()[key_of(node.target)]
    keywords = {
        key: _argument(each, values) for key, each in node.kwargs.items() if key not in STORAGE
    }
    stated = node.meta.get("val")
    results = stated if isinstance(stated, (tuple, list)) else [stated]
    declared = [_declared(each, node.name) for each in results]
    keywords |= {
        k: v for k, v in (("result", declared[0]), ("results", declared)) if k in row.takes
    }
    found = row.build(*arguments, **keywords)
    if isinstance(found, tuple):
        return conforming(found, declared)
    return conforming((found,), declared)[0]


def _declared(stated: Any, what: str) -> Declared | None:
    if not isinstance(stated, torch.Tensor):
        return None
    shape = [length_of(n) for n in stated.shape]
    return Declared(dtype_of(stated.dtype, what), tuple(shape))


def _argument(argument: Any, values: dict[Node, Any]) -> Any:
    if isinstance(argument, Node):
        return values[argument]
    if isinstance(argument, (list, tuple)):
        return [_argument(each, values) for each in argument]
    if isinstance(argument, torch.dtype):
        return dtype_of(argument, "an argument")
    return argument
