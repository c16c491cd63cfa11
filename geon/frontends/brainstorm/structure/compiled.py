"""``CompiledStep``: the passes of a network and a stepper's update as one computation."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from operator import is_
from typing import Any

import numpy as np

import geon

from ....op_graph.transforms.functionalize import substitute
from ..errors import NetworkValidationError
from ..layers.layer_program import LayerGraph, context_of, without_names
from ..layers.symbols import T, axes_of
from ..value_modifiers import GradientModifier
from .buffer_structure import BufferStructure
from .layout import gather_array_nodes, get_connections, layout_entry

PARAMETERS = "parameters"  # the axis of the vector of parameters


class CompiledStep:
    """One step of training a network, as ``net.compile`` returns it; call it to make the step.

    It computes the losses of the data that the network has, and with a stepper the gradients and
    new parameters. Values of buffers that ``keep`` does not name are not stored: they are in
    registers or in memory that others use, too.
    """

    def __init__(self, net: Any, stepper: Any = None, keep: Iterable[str] = ()) -> None:
        self.net, self.stepper = net, stepper
        own = [name for name, layer in net.layers.items() if not layer.is_derived]
        if own[1:]:
            raise NetworkValidationError(
                f"the layers {', '.join(own[1:])} compute their passes with a handler, so they "
                "cannot be compiled; give them a method forward on tensors, or do not compile"
            )
        self.handler, self.transformer = net.handler, net.handler.transformer
        self.dtype = str(np.dtype(self.handler.dtype))
        self.data_dtypes = [(n, np.dtype(self.dtype)) for n in net.layers["Input"].out_shapes]
        self.shapes = {
            path: BufferStructure.from_layout(entry)
            for path, entry in gather_array_nodes(net.layout)
        }
        self.connections = get_connections(net.layers)
        self.copies = net.layout.get("@copies", {})
        always = self._always_shown()
        kept = self._kept_paths([keep] if isinstance(keep, str) else keep)
        self.kept = [path for path in kept if path not in always]
        self.keeps_data = any(path.startswith("Input.") for path in kept)
        self.shown = self._shown_paths(always | set(self.kept))
        of_input = {path for path in always if path.startswith("Input.")}
        self.shown_without_data = self._shown_paths((always | set(self.kept)) - of_input)
        self._begin()

    def _begin(self) -> None:
        """Make the computation, with the stepper's constants of now."""
        self.constants = None if self.stepper is None else self.stepper.constant_values()
        self.given: list[tuple[Any, Any]] = []  # placeholders, each with a function to its value
        self.probes: dict[str, Any] = {}
        self.tensors: dict[str, Any] = {}
        self.results: list[tuple[Any, Any]] = []  # tensors, each with a function to its array
        # Derivatives are by placeholders of parameters, which variables replace in the end: tensors
        # that are used in the step of a loop have none.
        self.leaves = {
            path: geon.placeholder(axes_of(structure), self.dtype, name=path.replace(".", "_"))
            for path, structure in self.shapes.items()
            if ".parameters." in path
        }
        self.known: dict[Any, Any] = {}
        self.stored: list[tuple[Any, Any]] = []  # variables, each with a function to its array
        self.shared: list[Any] = []
        self.bound: Any = None  # the layout for which ``values`` and ``out`` are the arrays
        self.is_on_device = False
        self._build()

    def __call__(self, context: Any = None, data: Mapping[str, Any] | None = None) -> None:
        """Make a step, from a context of ``net.get_context`` if given.

        It reads the data that ``net.provide_external_data`` copied to the network; or ``data``,
        arrays over (T, B, ...) by name, where they lie. Then the buffers of ``Input`` are not
        stored, unless ``keep`` names one.
        """
        net = self.net
        if data is not None and self.keeps_data:
            net.provide_external_data(data)
            data = None
        elif data is not None:
            net.prepare_for(data)
        if self.constants and self.stepper.constant_values() != self.constants:
            self.download()
            self._begin()
        manager = net.begin_compiled_step(self)
        manager.clear_context() if context is None else manager.apply_context(context)
        self._upload()
        if self.bound is not net.views._places:  # new with each layout
            self.bound = net.views._places
            self.values = [value() for _, value in self.given]
            self.out = [*[array() for _, array in self.results], *[None] * self.effects]
        values, shown = self.values, self.shown
        if data is not None:
            own = [np.asarray(data[name], dtype) for name, dtype in self.data_dtypes]
            values, shown = [*own, *values[len(own) :]], self.shown_without_data
        numbers = () if self.stepper is None else self.stepper.begin_step()
        self.computation(*values, *numbers, out=self.out)
        if manager.shown is not shown:
            manager.hide(shown)
            for layer in net.layers.values():
                layer.trained_last = True

    def _known(self, tensor: Any) -> Any:
        """Return a tensor of the variables, from one of the placeholders of parameters."""
        return substitute(tensor, self.known)

    # Paths ---------------------------------------------------------------------------------------

    def _kept_paths(self, keep: Iterable[str]) -> list[str]:
        """Return the buffers that ``keep`` names, with the sources of inputs in their place."""
        found: list[str] = []
        for path in keep:
            paths = [each for each in self.shapes if each == path or each.startswith(f"{path}.")]
            if not paths:
                raise NetworkValidationError(
                    f"keep={path!r} names no buffer; give a path such as 'Out.outputs.default', or "
                    f"that of a view, such as {next(iter(self.net.layers))!r}"
                )
            for each in paths:
                is_run = each in self.connections and each not in self.copies
                found += self.connections[each] if is_run else [each]
        return list(dict.fromkeys(found))

    def _always_shown(self) -> set[str]:
        """Return the paths of buffers that have their values after each step."""
        layers = self.net.layers
        found = {path for path in self.shapes if ".parameters." in path} | {"parameters"}
        found |= {path for path in self.shapes if path.startswith("Input.outputs.")}
        found |= {f"{name}.outputs.loss" for name in self.net.loss_layers}
        return found | {f"{n}.internals.{i}" for n, layer in layers.items() for i in layer.state}

    def _shown_paths(self, kept: set[str]) -> set[str]:
        """Return the paths that can be read if those of ``kept`` are stored."""
        if "gradients" in kept:
            kept |= {path for path in self.shapes if ".gradients." in path}
        return kept | {
            sink
            for sink, sources in self.connections.items()
            if sink not in self.copies and all(source in kept for source in sources)
        }

    # The graph -----------------------------------------------------------------------------------

    def _leaf(self, axes: Sequence[Any], value: Any, name: str) -> Any:
        leaf = geon.placeholder(axes, self.dtype, name=name.replace(".", "_"))
        self.given.append((leaf, value))
        return leaf

    def _view(self, layer: str, view: str, name: str) -> Any:
        return lambda: self.net.views._array(layer)._place(view, name)

    def _build(self) -> None:
        net = self.net
        for name in net.layers:
            self._add_layer(name)
        losses = [self.tensors[f"{name}.outputs.loss"] for name in net.loss_layers]
        backward = [path for path in self.kept if self.shapes[path].is_backward_only]
        gradients: dict[str, Any] = {}
        if self.stepper is not None or backward:
            if not losses:
                raise NetworkValidationError(
                    "the network has no layer Loss, from which a backward pass would begin; end "
                    "it with Loss()"
                )
            gradients = self._backward(losses, [p for p in backward if "gradients" not in p])
        numbers = self._numbers()
        effects = self._update(gradients, numbers)
        for name in net.loss_layers:
            self._store(f"{name}.outputs.loss")
        for path in self.kept:
            if path not in backward:
                self._store(path)
        self.effects = len(effects)
        self.computation = self.transformer.computation(
            [*[without_names(self._known(tensor)) for tensor, _ in self.results], *effects],
            *[leaf for leaf, _ in self.given],
            *numbers.values(),
        )

    def _numbers(self) -> dict[str, Any]:
        names = () if self.stepper is None else self.stepper.numbers
        return {name: geon.placeholder([], self.dtype, name=name) for name in names}

    def _add_layer(self, name: str) -> None:
        """Add the tensors of a layer's outputs and internals."""
        layer = self.net.layers[name]
        if name == "Input":
            for output, structure in layer.out_shapes.items():
                path = f"Input.outputs.{output}"
                view = self._view("Input", "outputs", output)
                self.tensors[path] = self._leaf(axes_of(structure), view, path)
            return
        before: set[str] = set()

        def tensor(view: str, each: str, structure: Any) -> Any:
            path = f"{name}.{view}.{each}"
            if view == "inputs":
                return self._input(layer, each)
            if view == "parameters":
                return self.leaves[path]
            if view == "before":
                before.add(each)
            axes = context_of(structure) if view == "before" else axes_of(structure)
            return self._leaf(axes, self._view(name, view, each), path)

        graph = LayerGraph(layer, self.handler, True, tensor)
        for view, values in (("outputs", graph.outputs), ("internals", graph.internals)):
            kept = [f"{name}.{view}.{each}" for each in values]
            self.tensors |= dict(zip(kept, values.values(), strict=True))
            for each in layer.takes_no_output_deltas_from if view == "outputs" else ():
                if each not in layer.starts_backward_pass_from:
                    self.tensors[f"{name}.outputs.{each}"] = geon.stop_gradient(values[each])
            for each in values:
                if each in before:
                    self._store_context(name, view, each)
        self.probes |= {f"{name}.internals.{each}": p for each, p in graph.probes.items()}
        self.known |= graph.zeros_for_probes()
        for each in layer.state:
            if each in graph.internals:
                self._store(f"{name}.internals.{each}")

    def _input(self, layer: Any, name: str) -> Any:
        """Return an input: an output, or several concatenated in the order of the layout."""
        sink = f"{layer.name}.inputs.{name}"
        sources = self.connections[sink]
        if sink not in self.copies:
            entries = {path: layout_entry(self.net.layout, path) for path in sources}
            sources = sorted(sources, key=lambda path: entries[path]["@slice"])
        parts = [self.tensors[path] for path in sources]
        found = parts[0] if len(parts) == 1 else geon.concat(parts, parts[0].axes[-1].name)
        self.tensors[sink] = found
        return geon.stop_gradient(found) if name in layer.computes_no_input_deltas_for else found

    # Results -------------------------------------------------------------------------------------

    def _store(self, path: str, tensor: Any = None) -> None:
        """Make a tensor a result that is written to the buffer of a path."""
        layer, view, name = path.split(".")
        value = self.tensors.get(path) if tensor is None else tensor
        if value is None:
            raise NetworkValidationError(
                f"keep={path!r}: the layer {layer} does not compute this buffer in training"
            )
        self.results.append((value, self._view(layer, view, name)))

    def _store_context(self, layer: str, view: str, name: str) -> None:
        """Store the last steps of a value with a context, which the next step may begin with."""
        path = f"{layer}.{view}.{name}"
        if path in self.kept:
            return
        if self.shapes[path].context_size > 1:
            self._store(path)
            return
        array = self._view(layer, view, name)
        self.results.append((self.tensors[path][{T: -1}], lambda: array()[-1]))

    def _backward(self, losses: Sequence[Any], wanted: Sequence[str]) -> dict[str, Any]:
        """Return the gradient of each parameter; add the deltas and gradients that are stored."""
        total = losses[0][0]
        for loss in losses[1:]:
            total = total + loss[0]
        by, leaves = {path: self._owner_of(path) for path in wanted}, self.leaves
        found = geon.deriv(total, [*leaves.values(), *by.values()], unreached="zero")
        gradients = dict(zip(leaves, found, strict=False))
        for path, delta, tensor in zip(by, found[len(leaves) :], by.values(), strict=True):
            self._store(path, geon.reorder(delta, tensor.axes))
        for path, gradient in gradients.items():
            layer, _, name = path.split(".")
            if name in self.net.layers[layer].computes_no_gradients_for:
                gradient = geon.broadcast(geon.constant(0, dtype=self.dtype), leaves[path].axes)
            for modifier in self.net.gradient_modifiers.get(layer, {}).get(name, ()):
                both = isinstance(modifier, GradientModifier)
                values = [leaves[path], gradient] if both else [gradient]
                gradient = modifier.modified(*values)
            gradients[path] = without_names(geon.reorder(gradient, leaves[path].axes))
            kept = path.replace(".parameters.", ".gradients.")
            if kept in self.kept:
                self._store(kept, gradients[path])
        if "gradients" in self.kept and gradients:
            self.results.append((_vector(gradients), lambda: self.net.views.gradients))
        return gradients

    def _update(self, gradients: Mapping[str, Any], numbers: Mapping[str, Any]) -> list[Any]:
        """Make the variables, and return the assignments of the stepper's update."""
        whole = [geon.Axis(PARAMETERS, self.net.views.parameters.size)]
        parameters = {
            path: self._variable(gradients.get(path, leaf).axes, self._slice("", path))
            for path, leaf in self.leaves.items()
        }
        names = () if self.stepper is None else tuple(self.stepper.state)
        if self.stepper is None or not parameters:
            for path, variable in parameters.items():
                self.known[self.leaves[path]] = geon.cast_axes(variable, self.leaves[path].axes)
            return []
        assigned: list[tuple[Any, Any]] = []
        if is_elementwise(self.stepper):
            for path, variable in parameters.items():
                vectors = {
                    name: self._variable(variable.axes, self._slice(name, path)) for name in names
                }
                ahead = self.stepper.look_ahead(variable, vectors, numbers)
                at = variable if ahead is None else ahead
                self.known[self.leaves[path]] = geon.cast_axes(at, self.leaves[path].axes)
                new, state = self.stepper.update(variable, gradients[path], vectors, numbers)
                assigned += [(variable, new), *((vectors[name], state[name]) for name in names)]
        else:
            flat = _vector(parameters)
            vectors = {name: self._variable(whole, self._slice(name)) for name in names}
            ahead = self.stepper.look_ahead(flat, vectors, numbers)
            at = flat if ahead is None else ahead
            new, state = self.stepper.update(flat, _vector(gradients), vectors, numbers)
            assigned += [(vectors[name], state[name]) for name in names]
            for path, variable in parameters.items():
                self.known[self.leaves[path]] = self._part(at, path, self.leaves[path].axes)
                assigned.append((variable, self._part(new, path, variable.axes)))
        return [geon.assign(variable, self._known(value)) for variable, value in assigned]

    def _variable(self, axes: Any, array: Any) -> Any:
        variable = geon.temporary_tensor(axes, dtype=self.dtype)
        self.stored.append((variable, array))
        return variable

    def _slice(self, vector: str, path: str | None = None) -> Any:
        """Return a function to the array of a vector of the stepper, or of a parameter's part."""
        shape = None if path is None else self.shapes[path].shape
        start, stop = (
            (None, None) if path is None else layout_entry(self.net.layout, path)["@slice"]
        )

        def array() -> Any:
            whole = self.stepper.state[vector] if vector else self.net.views.parameters
            return whole if path is None else whole[start:stop].reshape(shape)

        return array

    def _part(self, flat: Any, path: str, axes: Any) -> Any:
        """Return the part of a vector that is a parameter, over these axes."""
        start, stop = layout_entry(self.net.layout, path)["@slice"]
        part = flat[start:stop]
        if len(axes) == 1:
            return geon.cast_axes(part, axes)
        return geon.unflatten(part, PARAMETERS, axes)

    def _owner_of(self, path: str) -> Any:
        """Return the tensor whose derivative a buffer of deltas is."""
        layer, view, name = path.split(".")
        if view in ("output_deltas", "input_deltas"):
            return self.tensors[f"{layer}.{view.removesuffix('_deltas')}s.{name}"]
        owner = f"{layer}.internals.{name.removeprefix('d')}"
        found = self.probes.get(owner, self.tensors.get(owner))
        if view != "internals" or found is None:
            raise NetworkValidationError(
                f"keep={path!r}: the compiled step has no tensor whose derivative this is; look "
                "at it in an inspectable network"
            )
        return found

    # Memory --------------------------------------------------------------------------------------

    def _upload(self) -> None:
        """Give the variables the memory, or on a device the values, of the network's arrays."""
        if not self.transformer.memory.on_host:
            if not self.is_on_device:
                for variable, array in self.stored:
                    self.transformer.set(variable, np.asarray(array()))
            self.is_on_device = True
            return
        now = [self.net.views.parameters]
        now += [] if self.stepper is None else self.stepper.state.values()
        same = len(now) == len(self.shared) and all(map(is_, now, self.shared))
        if same and self.effects:
            return
        # Sharing one variable again says that all may have changed. A step that writes them keeps
        # nothing that was computed from them.
        self.shared = now
        for variable, array in self.stored[:1] if same else self.stored:
            self.transformer.share(variable, array())

    def download(self) -> None:
        """Copy parameters and the stepper's vectors from a device, if they changed there."""
        if self.is_on_device:
            self.is_on_device = False
            for variable, array in self.stored:
                self.handler.set_from_numpy(array(), self.transformer.get(variable))


def is_elementwise(stepper: Any) -> bool:
    """Return True if the class that defines a stepper's ``update`` says that it is elementwise."""
    owner = next(cls for cls in type(stepper).__mro__ if "update" in vars(cls))
    return bool(vars(owner).get("elementwise", False))


def _vector(tensors: Mapping[str, Any]) -> Any:
    return geon.concat([flattened(each) for each in tensors.values()], PARAMETERS)


def flattened(tensor: Any) -> Any:
    """Return a tensor with fixed lengths as a vector along the axis of parameters."""
    tensor = without_names(tensor)
    axis = geon.Axis(PARAMETERS, math.prod(axis.length for axis in tensor.axes))
    return geon.cast_axes(geon.flatten(tensor, list(tensor.axes)), [axis])
