"""``Network``: layers with their memory, forward and backward passes, and descriptions."""

from __future__ import annotations

import copy
import json
import os
from collections import OrderedDict
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from ..describable import create_from_description, get_description
from ..errors import InitializationError, NetworkValidationError
from ..handlers import default_handler
from ..initializers import evaluate_initializer
from ..layers.base_layer import Layer
from ..layers.layer_program import Place
from ..randomness import Seedable
from ..utils import PathError, open_hdf5
from ..value_modifiers import GradientModifier
from .architecture import generate_architecture, instantiate_layers_from_architecture
from .buffer_views import BufferView
from .buffers import BufferManager
from .compiled import CompiledStep
from .layout import create_layout, layout_entry
from .view_references import resolve_references, structure_of

NAMES_OF_ROOT = ("parameters", "gradients")


class Network(Seedable):
    """A network: ``layers`` by name in canonical order, and ``buffer``, their memory.

    ``buffer`` is live: its arrays are those that the passes read and write, such as
    ``net.buffer.Hidden.parameters.W`` and the whole vector ``net.buffer.parameters``.
    """

    # Construction --------------------------------------------------------------------------------

    @classmethod
    def from_layer(cls, some_layer: Any) -> Network:
        """Return the network of all layers that are wired with ``some_layer``."""
        return cls.from_architecture(generate_architecture(some_layer))

    @classmethod
    def from_architecture(cls, architecture: Mapping[str, Any]) -> Network:
        """Return the network of an architecture."""
        return cls(instantiate_layers_from_architecture(architecture), architecture)

    @classmethod
    def __new_from_description__(cls, description: dict[str, Any]) -> Network:
        net = cls.from_architecture(description["architecture"])
        net.set_handler(create_from_description(description["handler"]))
        net.initializers = description.get("initializers", {})
        net.set_weight_modifiers(create_from_description(description["weight_modifiers"]))
        net.set_gradient_modifiers(create_from_description(description["gradient_modifiers"]))
        net.output_name = description.get("output_name")
        return net

    def __init__(self, layers: OrderedDict[str, Layer], architecture: Mapping[str, Any]) -> None:
        super().__init__()
        clash = sorted({name for name in layers if name in (*NAMES_OF_ROOT, "default", "fallback")})
        if clash:
            raise NetworkValidationError(
                f"{', '.join(map(repr, clash))} cannot be the name of a layer, since it has a "
                "meaning of its own in buffers and references; call the layer otherwise"
            )
        self.layers = layers
        self._architecture = json.loads(json.dumps(get_description(dict(architecture))))
        self._hubs, self.layout = create_layout(layers)
        self.handler: Any = default_handler
        self._buffers = BufferManager(self.handler, self._hubs, self.layout)
        self._copies = self._copied_views()
        self._fresh = self._fresh_places()
        self._cleared = self._hubs_to_clear()
        self.initializers: Any = {}
        self.weight_modifiers: dict[str, Any] = {}
        self.gradient_modifiers: dict[str, Any] = {}
        self.output_name: str | None = None
        for layer in layers.values():
            layer.set_handler(self.handler)
        self._step: CompiledStep | None = None
        self._provided: tuple[dict[str, tuple[int, ...]], bool] | None = None  # checked last
        self._begin_state()

    @property
    def architecture(self) -> dict[str, Any]:
        """Return a copy of the architecture, as JSON can hold it."""
        return copy.deepcopy(self._architecture)

    @property
    def loss_layers(self) -> list[str]:
        """Return the names of the layers whose output is a loss."""
        return [name for name, layer in self.layers.items() if layer.starts_backward_pass_from]

    # Memory --------------------------------------------------------------------------------------

    @property
    def buffer(self) -> BufferView:
        """Return the live views of the memory."""
        self._download()
        self.handler.on_device.release_all()
        return self.views

    @property
    def views(self) -> BufferView:
        """Return the views without waiting for values that are on a device."""
        return self._buffers.views

    @property
    def time_size(self) -> int:
        """Return the number of steps of the present data."""
        return self._buffers.time_size

    @property
    def batch_size(self) -> int:
        """Return the number of sequences of the present data."""
        return self._buffers.batch_size

    def get(self, buffer_path: str) -> Any:
        """Return a copy of a buffer by its dotted path, such as ``Out.outputs.default``.

        Raises ``PathError``, a ``KeyError``, if there is none, or if it is a view of several.
        """
        self._download()
        found = self.views[buffer_path]
        if isinstance(found, BufferView):
            raise PathError(
                f"{buffer_path!r} is a view of several buffers; name one: "
                f"{', '.join(found.keys()) or 'it is empty'}"
            )
        self.handler.on_device.write_back([found])
        return self.handler.get_numpy_copy(found)

    def get_input(self, input_name: str) -> Any:
        """Return a copy of the data given for an output of the layer Input."""
        return self.get(f"Input.outputs.{input_name}")

    def set_handler(self, new_handler: Any) -> None:
        """Move the network to another handler; parameters keep their values."""
        self.handler = new_handler
        self._buffers.set_handler(new_handler)
        for layer in self.layers.values():
            layer.set_handler(new_handler)

    def _begin_state(self) -> None:
        """Set the internals that stay from pass to pass to their first values."""
        for name, layer in self.layers.items():
            for internal, first in layer.state.items():
                self.handler.fill(self.buffer[name].internals[internal], first)

    def _copied_views(self) -> dict[str, list[tuple[str, list[str]]]]:
        """Return the inputs and input deltas of each layer that are copies, and their sources."""
        found: dict[str, list[tuple[str, list[str]]]] = {}
        for sink, sources in self.layout.get("@copies", {}).items():
            found.setdefault(sink.split(".")[0], []).append((sink, sources))
        return found

    def _fresh_places(self) -> dict[str, tuple[Place, ...]]:
        """Return the deltas and gradients of each layer that nothing wrote before in a pass.

        The layer sets these in its backward pass instead of adding to them.
        """
        written: dict[int, list[tuple[int, int]]] = {}
        fresh: dict[str, tuple[Place, ...]] = {}
        for name, layer in reversed(self.layers.items()):
            entries = self.layout[name]
            own = [("gradients", each) for each in layer.parameter_shapes]
            for entry, described in entries["input_deltas"].items():
                if entry[0] == "@":
                    continue
                start, stop = described["@slice"]
                before = written.setdefault(described["@hub"], [])
                if all(stop <= low or high <= start for low, high in before):
                    own.append(("input_deltas", entry))
                before.append((start, stop))
            fresh[name] = tuple(own)
            for sink, sources in self._copies.get(name, ()):
                for path in sources if ".input_deltas." in sink else ():
                    described = layout_entry(self.layout, path)
                    written.setdefault(described["@hub"], []).append(described["@slice"])
        return fresh

    def _hubs_to_clear(self) -> list[int]:
        """Return the hubs that a backward pass does not set as a whole."""
        rest = {
            number: hub.feature_shape[-1] if hub.feature_shape else 1
            for number, hub in enumerate(self._hubs)
            if hub.is_backward_only
        }
        for name, layer in self.layers.items():
            if not layer.is_derived:
                continue
            skipped = {*layer.computes_no_input_deltas_for, *layer.computes_no_gradients_for}
            for view, entry in self._fresh[name]:
                described = self.layout[name][view][entry]
                start, stop = described["@slice"]
                rest[described["@hub"]] -= 0 if entry in skipped else stop - start
            for described in self.layout[name]["internals"].values():
                if isinstance(described, dict) and not self._hubs[described["@hub"]].sinks:
                    rest.pop(described["@hub"], None)
        return [number for number, size in rest.items() if size]

    # Data and passes -----------------------------------------------------------------------------

    def provide_external_data(self, data: Mapping[str, Any], all_inputs: bool = True) -> None:
        """Copy arrays over (T, B, ...) to the outputs of the layer Input of the same names.

        The network is resized to their numbers of steps and sequences. Raises
        ``NetworkValidationError`` for a name or a shape that does not fit, and, with
        ``all_inputs``, for a missing name.
        """
        self.prepare_for(data, all_inputs)
        if self._step is not None and self._lacks_data():
            self._buffers.hide(self._step.shown)
        views = self.views["Input"].outputs
        self.handler.on_device.release([views[name] for name in data])
        for name, array in data.items():
            self.handler.set_from_numpy(views[name], array)

    def prepare_for(self, data: Mapping[str, Any], all_inputs: bool = True) -> None:
        """Check the shapes of external data, and resize the network to their numbers."""
        shapes = {
            name: array.shape if isinstance(array, np.ndarray) else np.shape(array)
            for name, array in data.items()
        }
        provided = shapes, all_inputs
        if provided != self._provided:
            self._resize_for(*provided)
            self._provided = provided

    def _resize_for(self, given: Mapping[str, tuple[int, ...]], all_inputs: bool) -> None:
        """Check the shapes of external data, and resize the buffers to them."""
        shapes = self.layers["Input"].out_shapes
        unknown = sorted(set(given) - set(shapes))
        missing = sorted(set(shapes) - set(given)) if all_inputs else []
        if unknown or missing or not given:
            said = f"not {', '.join(map(repr, unknown))}" if unknown else "and some are missing: "
            raise NetworkValidationError(
                f"the layer Input has the outputs {', '.join(map(repr, shapes))}, {said}"
                f"{'' if unknown else ', '.join(map(repr, missing))}; give an array for each, or "
                "all_inputs=False for a part"
            )
        sizes: dict[str, tuple[int, str]] = {}
        for name, shape in given.items():
            _check_data(name, shape, shapes[name], sizes)
        self._buffers.resize(
            sizes.get("T", (self.time_size, ""))[0], sizes.get("B", (self.batch_size, ""))[0]
        )

    def forward_pass(self, training_pass: bool = False, context: Any = None) -> None:
        """Compute all outputs and internals; begin with a context of ``get_context``, if given."""
        views = self._begin_pass()
        self._buffers.clear_context() if context is None else self.apply_context(context)
        for name, layer in list(self.layers.items())[1:]:
            for sink, sources in self._copies.get(name, ()):
                if ".inputs." in sink:
                    for part, source in self._parts(sink, sources):
                        self.handler.copy_to(source, part)
            if layer.is_derived:
                layer.trained_last = bool(training_pass)
                layer.program(layer.trained_last).run_forward(views[name])
            else:
                self.handler.on_device.release_all()
                layer.forward_pass(views[name], training_pass)

    def _download(self) -> None:
        """Fetch what a compiled step left on a device."""
        if self._step is not None:
            self._step.download()

    def _lacks_data(self) -> bool:
        """Return True if the last step read data that the network does not have."""
        return self._step is not None and self._buffers.shown is self._step.shown_without_data

    def _begin_pass(self) -> BufferView:
        """Return the views for a pass; arrays that the host may have written count as new."""
        if self._lacks_data():
            raise NetworkValidationError(
                "the last compiled step was given its data, which the network does not have; call "
                "provide_external_data before a pass"
            )
        self._buffers.show()
        self._download()
        self.handler.on_device.forget_read()
        return self.views

    def backward_pass(self) -> None:
        """Compute all deltas and gradients for the last forward pass, then modify the gradients."""
        views = self._begin_pass()
        self._buffers.clear_backward_buffers(self._cleared)
        for name, layer in reversed(list(self.layers.items())[1:]):
            view = views[name]
            if layer.is_derived:
                layer.program(layer.trained_last).run_backward(view, self._fresh[name])
            else:
                self.handler.on_device.release_all()
                layer.backward_pass(view)
            for sink, sources in self._copies.get(name, ()):
                if ".input_deltas." in sink:
                    for part, source in self._parts(sink, sources):
                        self.handler.add_tt(source, part, source)
        self.apply_gradient_modifiers()

    def compile(self, stepper: Any = None, keep: Iterable[str] = ()) -> CompiledStep:
        """Return a function that makes a step of training as one compiled computation.

        Call it after ``provide_external_data``, or with the data, and with a context of
        ``get_context`` if there is one.
        It computes the losses, and with a stepper, which ``stepper.start(net)`` prepared, the
        gradients, modified by the gradient modifiers, and the new parameters. Results equal those
        of ``forward_pass(training_pass=True)``, ``backward_pass`` and the stepper. Afterwards,
        parameters, losses and the buffers that ``keep`` names by their paths can be read, such as
        ``'Out.outputs.default'`` or ``'gradients'``; others raise until the next ``forward_pass``.
        """
        if stepper is not None and stepper.net is not self:
            stepper.start(self)
        return CompiledStep(self, stepper, keep)

    def begin_compiled_step(self, step: CompiledStep) -> BufferManager:
        """Return the memory for a compiled step, which has the parameters from now on."""
        self.handler.on_device.release_all()
        if self._step is not step:
            self._download()
            self._step = step
        return self._buffers

    def _parts(self, sink: str, sources: Iterable[str]) -> list[tuple[Any, Any]]:
        """Return each part of a copied buffer with the buffer that it is copied from."""
        whole, found, start = self.buffer[sink], [], 0
        for path in sources:
            source = self.buffer[path]
            stop = start + source.shape[-1]
            found.append((whole[..., start:stop], source[: len(whole)]))
            start = stop
        return found

    def get_loss_values(self) -> OrderedDict[str, float]:
        """Return ``total_loss``, and the loss of each layer Loss."""
        losses = {name: float(self.get(f"{name}.outputs.loss")[0]) for name in self.loss_layers}
        return OrderedDict([("total_loss", float(sum(losses.values()))), *losses.items()])

    def vectors(self) -> tuple[Any, Any]:
        """Return the live vectors of parameters and gradients, for a stepper to read and write."""
        self._download()
        found = self.views.parameters, self.views.gradients
        self.handler.on_device.release(found)
        return found

    def get_context(self) -> list[Any]:
        """Return the last steps of all buffers with a context, for the next ``forward_pass``."""
        return self._buffers.get_context()

    def apply_context(self, context: Any) -> None:
        """Set the steps before the first one to a context of ``get_context``."""
        self._buffers.apply_context(context)

    # Parameters ----------------------------------------------------------------------------------

    def initialize(
        self, default_or_init_dict: Any = None, seed: int | None = None, **kwargs: Any
    ) -> None:
        """Set the parameters to initial values.

        Arguments are an initializer, number or array for all, or references to layers and
        parameters: ``net.initialize(Gaussian(0.1), Out={'W': 0, 'default': Uniform(1)})``. Each
        parameter has a seed of its own, drawn in the sorted order of layers and parameters.
        Raises ``NetworkValidationError`` if references give a parameter none, or several.
        """
        references = _merged(default_or_init_dict, kwargs)
        self.initializers = get_description(references)
        structure = structure_of(self.buffer)
        values, fallbacks = resolve_references(structure, references, "the initializer for")
        random = self.rnd.create_random_state(seed)
        for layer, parameter in _sorted_places(structure):
            found, backup = values[layer][parameter], fallbacks[layer][parameter]
            view = self.buffer[layer].parameters[parameter]
            path = f"{layer}.parameters.{parameter}"
            if len(found) != 1 or len(backup) > 1:
                raise NetworkValidationError(
                    f"{path} has {len(found)} initializers and {len(backup)} fallbacks: "
                    f"{found}, {backup}; give one initializer, and one fallback at most, for "
                    f"example with a key 'default'"
                )
            try:
                value = evaluate_initializer(
                    found[0],
                    tuple(view.shape),
                    backup[0] if backup else None,
                    seed=random.generate_seed(),
                )
            except InitializationError as error:
                raise InitializationError(f"{path} of the shape {view.shape}: {error}") from error
            self.handler.set_from_numpy(view, value)

    def set_weight_modifiers(self, default_or_mod_dict: Any = None, **kwargs: Any) -> None:
        """Set the modifiers that a trainer applies to parameters after each update."""
        self.weight_modifiers = self._modifiers(default_or_mod_dict, kwargs)

    def set_gradient_modifiers(self, default_or_mod_dict: Any = None, **kwargs: Any) -> None:
        """Set the modifiers that each backward pass applies to gradients at its end."""
        self.gradient_modifiers = self._modifiers(default_or_mod_dict, kwargs)

    def _modifiers(self, default: Any, kwargs: Mapping[str, Any]) -> dict[str, Any]:
        """Return a copy of the modifiers of each parameter, by layer and name, in order."""
        references = _merged(default, kwargs)
        if not references:
            return {}
        structure = structure_of(self.buffer)
        values, fallbacks = resolve_references(structure, references, "the modifier of")
        found: dict[str, Any] = {}
        for layer, parameter in _sorted_places(structure):
            if fallbacks[layer][parameter]:
                raise NetworkValidationError(
                    "modifiers have no 'fallback': all that match are applied; leave it out"
                )
            chosen: list[Any] = []
            for each in values[layer][parameter]:
                chosen += each if isinstance(each, (list, tuple)) else [each]
            for number, modifier in enumerate(chosen):
                if not callable(modifier):
                    raise NetworkValidationError(
                        f"{layer}.{parameter}: {modifier!r} is no modifier; give a ValueModifier, "
                        "such as ClipValues(), or a list of these"
                    )
                chosen[number] = copy.deepcopy(modifier)
                chosen[number].layer_name, chosen[number].view_name = layer, parameter
            if chosen:
                found.setdefault(layer, {})[parameter] = chosen
        return found

    def apply_weight_modifiers(self) -> None:
        """Apply the modifiers of parameters."""
        for layer, views in self.weight_modifiers.items():
            for name, modifiers in views.items():
                for modifier in modifiers:
                    modifier(self.handler, self.buffer[layer].parameters[name])
                    modifier.layer_name, modifier.view_name = layer, name

    def apply_gradient_modifiers(self) -> None:
        """Apply the modifiers of gradients."""
        for layer, views in self.gradient_modifiers.items():
            for name, modifiers in views.items():
                gradients = self.buffer[layer].gradients[name]
                for modifier in modifiers:
                    if isinstance(modifier, GradientModifier):
                        parameters = self.buffer[layer].parameters[name]
                        modifier(self.handler, parameters, gradients)
                    else:
                        modifier(self.handler, gradients)

    # Descriptions and files ----------------------------------------------------------------------

    def __describe__(self) -> dict[str, Any]:
        return {
            "@type": type(self).__name__,
            "architecture": self.architecture,
            "handler": get_description(self.handler),
            "initializers": get_description(self.initializers),
            "weight_modifiers": get_description(self.weight_modifiers),
            "gradient_modifiers": get_description(self.gradient_modifiers),
            "output_name": self.output_name,
        }

    def save_as_hdf5(self, filename: str | os.PathLike[str], comment: str = "") -> None:
        """Write the description, the parameters and the state of layers to an HDF5 file."""
        with open_hdf5(filename, "Network file v1.0") as file:
            if comment:
                file.attrs.create("comment", comment.encode())
            file["network"] = json.dumps(get_description(self), sort_keys=True, indent=2).encode()
            parameters = self.handler.get_numpy_copy(self.buffer.parameters)
            file.create_dataset("parameters", compression="gzip", data=parameters)
            for name, layer in self.layers.items():
                for internal in layer.state:
                    path = f"{name}.internals.{internal}"
                    file[f"state/{path}"] = self.get(path)

    @classmethod
    def from_hdf5(cls, filename: str | os.PathLike[str]) -> Network:
        """Return the network that ``save_as_hdf5`` wrote."""
        with open_hdf5(filename) as file:
            net: Network = create_from_description(json.loads(file["network"][()].decode()))
            parameters = np.array(file["parameters"])
            if parameters.shape != tuple(net.buffer.parameters.shape):
                raise NetworkValidationError(
                    f"{os.fspath(filename)} has {parameters.size} parameters, and the network that "
                    f"it describes has {net.buffer.parameters.size}; the file is damaged"
                )
            net.handler.set_from_numpy(net.buffer.parameters, parameters)
            for path, value in file.get("state", {}).items():
                net.handler.set_from_numpy(net.buffer[path], np.array(value))
        return net

    def __repr__(self) -> str:
        return f"<Network of {', '.join(self.layers)}>"


def _merged(default: Any, kwargs: Mapping[str, Any]) -> dict[str, Any]:
    """Return references of both arguments; a default that is no dictionary is under 'default'."""
    if default is None:
        found = {}
    elif isinstance(default, Mapping):
        found = dict(default)
    else:
        found = {"default": default}
    both = sorted(set(found) & set(kwargs))
    if both:
        raise NetworkValidationError(
            f"{', '.join(map(repr, both))} was given in the dictionary and as a keyword; give it "
            "once"
        )
    return {**found, **kwargs}


def _sorted_places(structure: Mapping[str, Mapping[str, Any]]) -> list[tuple[str, str]]:
    return [(layer, view) for layer in sorted(structure) for view in sorted(structure[layer])]


def _check_data(
    name: str, shape: tuple[int, ...], structure: Any, sizes: dict[str, tuple[int, str]]
) -> None:
    """Raise if an array does not fit; note its numbers of steps and sequences in ``sizes``."""
    wanted = structure.shape
    fits = len(shape) == len(wanted) and all(
        entry in ("T", "B", length) for entry, length in zip(wanted, shape, strict=True)
    )
    if not fits:
        raise NetworkValidationError(
            f"the data for Input.outputs.{name} have the shape {shape}, and the layer Input has "
            f"{wanted} there; give an array of that shape, with T steps and B sequences"
        )
    for entry, length in zip(wanted, shape, strict=True):
        if entry in ("T", "B"):
            known, other = sizes.setdefault(entry, (length, name))
            if known != length:
                raise NetworkValidationError(
                    f"{entry} is {length} in the data for {name!r}, of shape {shape}, and {known} "
                    f"in those for {other!r}; give data of equal numbers of steps and sequences"
                )
