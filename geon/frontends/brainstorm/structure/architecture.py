"""Architectures: a network as a dictionary that JSON can hold, checked and made into layers."""

from __future__ import annotations

import keyword
from collections import OrderedDict, defaultdict
from collections.abc import Mapping
from typing import Any, NamedTuple

from ..errors import LayerValidationError, NetworkValidationError, StructureValidationError
from ..layers.base_layer import Layer, get_layer_class_from_typename
from .buffer_structure import BufferStructure, combine_buffer_structures
from .construction import ConstructionWrapper, LayerDetails

Architecture = Mapping[str, Mapping[str, Any]]


class Connection(NamedTuple):
    """An edge of a network, from an output to an input."""

    start_layer: str
    output_name: str
    end_layer: str
    input_name: str


def generate_architecture(some_layer: ConstructionWrapper | LayerDetails) -> dict[str, Any]:
    """Return the architecture of all layers that are connected with ``some_layer``."""
    start = some_layer.layer if isinstance(some_layer, ConstructionWrapper) else some_layer
    if not isinstance(start, LayerDetails):
        raise NetworkValidationError(
            f"{some_layer!r} is no layer of a network; give one that was wired with >>"
        )
    layers = sorted(start.collect_connected_layers(), key=lambda layer: layer.name)
    return {
        layer.name: {
            "@type": layer.layer_type,
            "@outgoing_connections": layer.outgoing_connections,
            **layer.layer_kwargs,
        }
        for layer in layers
    }


def collect_all_connections(architecture: Architecture) -> list[Connection]:
    """Return the sorted edges of an architecture."""
    found = []
    for layer, description in architecture.items():
        outgoing = description["@outgoing_connections"]
        if not isinstance(outgoing, Mapping):
            outgoing = {"default": outgoing}
        for output, targets in outgoing.items():
            for target in targets:
                name, _, entry = target.partition(".")
                found.append(Connection(layer, output, name, entry or "default"))
    return sorted(found)


def validate_architecture(architecture: Architecture) -> bool:
    """Return True, or raise ``NetworkValidationError`` for an architecture that is no network.

    Each description needs ``@type`` and ``@outgoing_connections``. There is one layer of type
    ``Input``, which has that name and no incoming edge. All layers are connected, without a cycle.
    """
    if not isinstance(architecture, Mapping):
        raise NetworkValidationError(f"an architecture is a dictionary, not {architecture!r}")
    for name, description in architecture.items():
        if not isinstance(name, str) or not name.isidentifier() or keyword.iskeyword(name):
            raise NetworkValidationError(
                f"{name!r} is no name of a layer; use letters, digits and underscores, such as "
                "'Hidden_1'"
            )
        for key in ("@type", "@outgoing_connections"):
            if not isinstance(description, Mapping) or key not in description:
                raise NetworkValidationError(
                    f"the layer {name!r} has no {key!r} in its description {description!r}"
                )
    inputs = [name for name, each in architecture.items() if each["@type"] == "Input"]
    if inputs != ["Input"]:
        raise NetworkValidationError(
            "a network has exactly one layer of type 'Input', which has that name, too; this one "
            f"has {inputs or 'none'}: begin it with Input(out_shapes={{...}}), and give that all "
            "that comes from outside as named outputs"
        )
    connections = collect_all_connections(architecture)
    for edge in connections:
        if edge.end_layer not in architecture:
            raise NetworkValidationError(
                f"{edge.start_layer}.{edge.output_name} goes to {edge.end_layer!r}, which is no "
                f"layer; there are {', '.join(sorted(architecture))}"
            )
        if edge.end_layer == "Input":
            raise NetworkValidationError(
                f"{edge.start_layer}.{edge.output_name} goes to the layer 'Input', which has no "
                "inputs; its values are given by provide_external_data"
            )
    _refuse_unconnected(architecture, connections)
    get_canonical_layer_order(architecture)
    return True


def _refuse_unconnected(architecture: Architecture, connections: list[Connection]) -> None:
    near = defaultdict(set)
    for edge in connections:
        near[edge.start_layer].add(edge.end_layer)
        near[edge.end_layer].add(edge.start_layer)
    found, waiting = {"Input"}, ["Input"]
    while waiting:
        new = near[waiting.pop()] - found
        found |= new
        waiting += new
    apart = sorted(set(architecture) - found)
    if apart:
        raise NetworkValidationError(
            f"not connected with the layer 'Input': {', '.join(apart)}; connect them, or leave "
            "them out"
        )


def get_canonical_layer_order(architecture: Architecture) -> list[str]:
    """Return the names of layers by depth, then alphabetically.

    Raises ``NetworkValidationError`` for a cycle, and names its layers.
    """
    sources: dict[str, set[str]] = {name: set() for name in architecture}
    for edge in collect_all_connections(architecture):
        sources[edge.end_layer].add(edge.start_layer)
    order: list[str] = []
    known: set[str] = set()
    while len(order) < len(sources):
        ready = sorted(n for n, above in sources.items() if n not in known and above <= known)
        if not ready:
            raise NetworkValidationError(
                f"the network has a cycle: {' >> '.join(_cycle(sources, known))}; a layer with "
                "memory, such as Recurrent or Lstm, has its cycle inside"
            )
        order += ready
        known.update(ready)
    return order


def _cycle(sources: Mapping[str, set[str]], known: set[str]) -> list[str]:
    """Return the layers of a cycle among those that are not known, from the first to itself."""
    path = [min(name for name in sources if name not in known)]
    while path[-1] not in path[:-1]:
        path.append(min(sources[path[-1]] - known))
    return path[path.index(path[-1]) :][::-1]


def instantiate_layers_from_architecture(architecture: Architecture) -> OrderedDict[str, Layer]:
    """Return the layers of an architecture by name, in canonical order."""
    validate_architecture(architecture)
    connections = collect_all_connections(architecture)
    layers: OrderedDict[str, Layer] = OrderedDict()
    for name in get_canonical_layer_order(architecture):
        description = architecture[name]
        cls = get_layer_class_from_typename(description["@type"])
        incoming = [edge for edge in connections if edge.end_layer == name]
        outgoing = [edge for edge in connections if edge.start_layer == name]
        kwargs = {key: value for key, value in description.items() if key[0] != "@"}
        layers[name] = cls(name, _in_shapes(layers, incoming), incoming, outgoing, **kwargs)
    return layers


def _in_shapes(
    layers: Mapping[str, Layer], incoming: list[Connection]
) -> OrderedDict[str, BufferStructure]:
    """Return the structure of each connected input, in the order of their names."""
    sources = defaultdict(list)
    for edge in incoming:
        layer = layers[edge.start_layer]
        structure = layer.port(edge.output_name)
        if structure is None:
            raise LayerValidationError(
                f"{edge.start_layer} ({layer.layer_type}) has no output {edge.output_name!r}, "
                f"which goes to {edge.end_layer}.{edge.input_name}; it has "
                f"{', '.join(layer.out_shapes) or 'none'}"
            )
        sources[edge.input_name].append((f"{edge.start_layer}.{edge.output_name}", structure))
    found = OrderedDict()
    for entry in sorted(sources):
        try:
            found[entry] = combine_buffer_structures([shape for _, shape in sources[entry]])
        except StructureValidationError as error:
            names = " and ".join(name for name, _ in sources[entry])
            raise NetworkValidationError(
                f"{names} all go to {incoming[0].end_layer}.{entry}: {error}"
            ) from error
    return found
