"""``LayerProgram``: the passes of one layer, compiled from its ``forward`` and run on buffers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

import geon

from ....op_graph.op_graph import Leaf, Op, post_order
from ....op_graph.regions.parameters import tensors
from ....op_graph.transforms.functionalize import substitute
from ..errors import LayerValidationError
from ..structure.buffer_structure import BufferStructure
from .symbols import Symbols, Tensors, as_buffer, axes_of, from_buffer

Place = tuple[str, str]
"""A buffer of a layer: the name of its view, such as ``inputs``, and its own."""


class LayerGraph:
    """A layer's forward pass as tensors, from given ones.

    ``tensor(view, name, structure)`` returns those: inputs, parameters, internals that stay, and,
    for the view ``before``, values before the first step. ``outputs`` and ``internals`` are the
    results. ``probes`` are placeholders of zeros in them.
    """

    def __init__(
        self, layer: Any, handler: Any, training: bool, tensor: Callable[[str, str, Any], Any]
    ) -> None:
        own = {**layer.out_shapes, **layer.internal_shapes}
        views = {
            "inputs": layer.in_shapes,
            "parameters": layer.parameter_shapes,
            "internals": {name: layer.internal_shapes[name] for name in layer.state},
            "before": {n: s for n, s in own.items() if s.context_size and not s.is_backward_only},
        }
        inputs, parameters, state, before = (
            Tensors({name: tensor(view, name, structure) for name, structure in shapes.items()})
            for view, shapes in views.items()
        )
        symbols = Symbols(
            inputs,
            parameters,
            state,
            before,
            training,
            lambda: geon.Random(handler.rnd.generate_seed()),
            structures=layer.internal_shapes,
            dtype=str(np.dtype(handler.dtype)),
        )
        outputs, internals = layer.forward(symbols)
        missing = sorted(set(layer.out_shapes) - set(outputs))
        unknown = sorted(set(outputs) - set(layer.out_shapes))
        unknown += sorted(set(internals) - set(layer.internal_shapes))
        if missing or unknown:
            raise LayerValidationError(
                f"{layer.described}: forward computes {sorted([*outputs, *internals])}, and setup "
                f"gave the outputs {sorted(layer.out_shapes)} and the internals "
                f"{sorted(layer.internal_shapes)}; return a tensor for each output, and for no "
                "other name"
            )
        self.raw = {"outputs": dict(outputs), "internals": dict(internals)}
        self.outputs, self.internals = (
            {
                name: as_buffer(values[name], shapes[name], f"{layer.described}: {view}.{name}")
                for name in shapes
                if name in values
            }
            for view, values, shapes in (
                ("outputs", outputs, layer.out_shapes),
                ("internals", internals, layer.internal_shapes),
            )
        )
        self.probes = symbols.probes

    def zeros_for_probes(self) -> dict[Op, Op]:
        """Return the tensor of zeros that each probe stands for."""
        return {
            probe: geon.broadcast(geon.constant(0, dtype=probe.dtype), probe.axes)
            for probe in self.probes.values()
        }


class _Pass:
    """A computation from buffers of a layer into others, on the arrays of the present layout."""

    def __init__(
        self, handler: Any, computation: Any, read: list[Place], written: list[Place]
    ) -> None:
        self.handler, self.computation = handler, computation
        self.on_host = handler.transformer.memory.on_host
        self.places = read, written
        self.layout: Any = None  # for which ``arrays`` are those of ``places``
        self.arrays: tuple[list[Any], list[Any]] = ([], [])

    def run(self, buffers: Any) -> None:
        """Compute the buffers."""
        if self.layout is not buffers._places:
            self.layout = buffers._places
            read, written = self.places
            self.arrays = [buffers._place(*p) for p in read], [buffers._place(*p) for p in written]
        given, out = self.arrays
        if out and self.on_host:
            self.computation(*given, out=out)
        elif out:
            self.handler.on_device.run(self.computation, given, out)


class LayerProgram:
    """The forward and the backward pass of a layer as computations of a handler's transformer.

    Both are compiled when they first run, and serve all numbers of steps and sequences. The
    backward pass reads outputs and internals from their buffers instead of computing them again.
    """

    def __init__(self, layer: Any, handler: Any, training: bool) -> None:
        self.layer, self.handler, self.training = layer, handler, training
        self.dtype = str(np.dtype(handler.dtype))
        self.leaves: dict[Place, Leaf] = {}
        self.graph = LayerGraph(layer, handler, training, self._leaf)
        self._forward: _Pass | None = None
        self._backward: dict[Any, _Pass] = {}  # by what is set

    def _leaf(self, view: str, name: str, structure: BufferStructure) -> Leaf:
        if (view, name) not in self.leaves:
            axes = context_of(structure) if view == "before" else axes_of(structure)
            self.leaves[view, name] = geon.placeholder(axes, self.dtype, name=f"{view}_{name}")
        return self.leaves[view, name]

    def _compile(self, results: Mapping[Place, Any]) -> _Pass:
        """Return the computation of these buffers from those that it reads."""
        used = set(post_order(results.values()))
        read = {place: leaf for place, leaf in self.leaves.items() if leaf in used}
        known = {axis.name for leaf in read.values() for axis in leaf.axes}
        for place, leaf in self.leaves.items():  # one that gives the lengths of T and B
            if {axis.name for axis in leaf.axes if axis.name in "TB"} - known:
                read[place] = leaf
                known |= {axis.name for axis in leaf.axes}
        values = [without_names(value) for value in results.values()]
        made = self.handler.transformer.computation(values, *read.values(), on_device=True)
        return _Pass(self.handler, made, list(read), list(results))

    def run_forward(self, buffers: Any) -> None:
        """Compute the outputs and internals."""
        if self._forward is None:
            graph = self.graph
            results = {("outputs", name): value for name, value in graph.outputs.items()}
            results |= {("internals", name): value for name, value in graph.internals.items()}
            known = graph.zeros_for_probes()
            self._forward = self._compile(
                {place: substitute(value, known) for place, value in results.items()}
            )
        self._forward.run(buffers)

    def run_backward(self, buffers: Any, fresh: Sequence[Place] = ()) -> None:
        """Add to input deltas and gradients, or set those in ``fresh``, and set deltas inside."""
        key = tuple(fresh)
        if key not in self._backward:
            results = self._derivatives()
            for place, value in results.items():
                if place not in fresh and place[0] != "internals":
                    results[place] = value + self._leaf(*place, self._structure(place))
            self._backward[key] = self._compile(results)
        self._backward[key].run(buffers)

    def _structure(self, place: Place) -> BufferStructure:
        view, name = place
        shapes = self.layer.in_shapes if view == "input_deltas" else self.layer.parameter_shapes
        return shapes[name]

    def _derivatives(self) -> dict[Place, Any]:
        """Return the derivatives of the outputs, with the deltas of outputs as seeds."""
        layer, graph = self.layer, self.graph
        parts = []
        for name, value in graph.outputs.items():
            if name in layer.starts_backward_pass_from:
                parts.append(geon.sum(value))
            elif name not in layer.takes_no_output_deltas_from:
                delta = self._leaf("output_deltas", name, layer.out_shapes[name])
                parts.append(geon.sum(value * delta))
        for edge in layer.outgoing:
            name = edge.output_name.removeprefix("..internals.")
            if name != edge.output_name:
                delta = self._leaf("internals", f"d{name}", layer.internal_shapes[f"d{name}"])
                parts.append(geon.sum(graph.internals[name] * delta))
        by: dict[Place, Any] = {
            ("input_deltas", name): self.leaves["inputs", name]
            for name in layer.in_shapes
            if name not in layer.computes_no_input_deltas_for
        }
        by |= {
            ("gradients", name): self.leaves["parameters", name]
            for name in layer.parameter_shapes
            if name not in layer.computes_no_gradients_for
        }
        by |= {
            ("internals", f"d{name}"): value
            for name, value in {**graph.raw["internals"], **graph.probes}.items()
            if f"d{name}" in layer.internal_shapes
        }
        if not parts or not by:
            return {}
        total = parts[0]
        for part in parts[1:]:
            total = total + part
        found = geon.deriv(total, list(by.values()), unreached="zero")
        known: dict[Op, Op] = {}
        for view, shapes in (("outputs", layer.out_shapes), ("internals", layer.internal_shapes)):
            for name, value in graph.raw[view].items():
                if isinstance(value, Leaf) or name in layer.state:
                    continue
                kept = from_buffer(self._leaf(view, name, shapes[name]), value)
                if kept is not None:
                    known[value] = kept
        known |= stored_steps(found, known, graph.probes.values())
        known |= graph.zeros_for_probes()
        results = {}
        for (place, op), value in zip(by.items(), found, strict=True):
            value = tensors([substitute(value, known)])[0]
            view, name = place
            if view == "internals":
                value = as_buffer(value, layer.internal_shapes[name], f"{layer.described}: {name}")
            results[place] = geon.reorder(value, op.axes) if view != "internals" else value
        return results


def stored_steps(
    values: Sequence[Any], stored: Mapping[Op, Any], probes: Iterable[Op]
) -> dict[Op, Op]:
    """Return the results of loops that ``values`` read, in terms of stored results of these loops.

    The derivative of a loop runs it again with more results: values of its steps, and carries
    before each step. Most of them follow from what is stored.
    """
    zeros = set(probes)
    loops: dict[tuple[int, ...], dict[int, Any]] = {}  # numbers of stored results, by arguments
    for op, kept in stored.items():
        if op.primitive.name == "region_result":
            loops.setdefault(tuple(map(id, op.args[0].args)), {})[op.attrs.number] = kept
    found: dict[Op, Op] = {}
    for op in post_order(values):
        if op.primitive.name == "region_result" and op.args[0].primitive.name == "scan":
            loop = op.args[0]
            kept = loops.get(tuple(map(id, loop.args)), {})
            if kept and not loop.attrs.reverse:
                value = _Steps(loop, kept, zeros).all_of(loop.attrs.body.results[op.attrs.number])
                if value is not None:
                    found[op] = geon.reorder(value, op.axes)
    return found


class _Steps:
    """Values of the body of a loop in all of its steps, from stored results by their number."""

    def __init__(self, loop: Any, stored: Mapping[int, Any], zeros: set[Op]) -> None:
        self.loop, self.stored, self.axis = loop, stored, loop.attrs.axis
        self.results, self.parameters = loop.attrs.body.results, loop.attrs.body.parameters
        pairs = zip(self.parameters, loop.args, strict=False)
        self.zeros = {parameter for parameter, arg in pairs if arg in zeros}
        self.known: dict[Op, Any] = {}

    def all_of(self, value: Op) -> Any:
        """Return a value in all steps; None if it does not follow from what is stored."""
        if value not in self.known:
            self.known[value] = self._made(value)
        return self.known[value]

    def _result(self, value: Op) -> Any:
        """Return the stored result that is a value, or a value plus a probe, which is zero."""
        for number, kept in self.stored.items():
            result = self.results[number]
            is_sum = result.primitive.name == "add" and result.args[1] in self.zeros
            if result is value or (is_sum and result.args[0] is value):
                return kept
        return None

    def _made(self, value: Any) -> Any:
        found = self._result(value)
        if found is not None or value.primitive.name == "constant":
            return value if found is None else found
        for number in range(self.loop.attrs.carries):
            later = self._result(self.results[number])
            if self.parameters[number] is value and later is not None:
                first = geon.expand(self.loop.args[number], geon.Axis(self.axis.name, 1))
                return geon.concat([first, later[{self.axis: slice(None, -1)}]], self.axis.name)
        args = [self.all_of(arg) for arg in value.args]
        if not args or any(arg is None for arg in args):
            return None
        if value.primitive.name == "rename":
            names = zip(value.args[0].axes.names, value.axes.names, strict=True)
            return geon.rename(args[0], dict(names))
        is_plain = value.primitive.kind == "elementwise" and not value.attrs
        return value.primitive.apply(*args) if is_plain else None


def context_of(structure: BufferStructure) -> list[geon.Axis]:
    """Return the axes of the steps before the first one; without that of the steps if it is one."""
    axes = axes_of(structure)[1:]
    size = structure.context_size
    return axes if size == 1 else [geon.Axis("context", size), *axes]


def without_names(tensor: Any) -> Any:
    """Return a tensor with the same elements in the same order, over axes of other names.

    It is computed without the renamings and reorderings at its end.
    """
    names = list(tensor.axes.names)
    while tensor.primitive.name in ("rename", "reorder"):
        (inner,) = tensor.args
        if tensor.primitive.name == "rename":
            old = dict(zip(tensor.axes.names, inner.axes.names, strict=True))
            names = [old[name] for name in names]
        tensor = inner
    return geon.reorder(tensor, names)
