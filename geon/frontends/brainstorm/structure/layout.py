"""Layout: the place of every buffer of a network in few contiguous arrays, the hubs."""

from __future__ import annotations

import math
from collections import OrderedDict, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from .buffer_structure import BufferStructure
from .pq_tree import consecutive_order

Layout = dict[str, Any]
Layers = Mapping[str, Any]
FORWARD = ("inputs", "outputs", "parameters", "internals")
BACKWARD = {"inputs": "input_deltas", "outputs": "output_deltas", "parameters": "gradients"}


@dataclass(eq=False)
class Hub:
    """An array that several buffers share.

    ``sources`` are those that are computed, in the order in which they lie along the last
    dimension; ``sinks`` are runs of sources that a layer reads as one. ``slices`` gives the first
    and the last place of each. A ``flat`` hub has one dimension, in which each buffer lies as a
    whole.
    """

    sources: list[str]
    sinks: list[str]
    slices: dict[str, tuple[int, int]]
    buffer_type: int
    feature_shape: tuple[int, ...]
    context_size: int = 0
    is_backward_only: bool = False
    flat: bool = False

    @classmethod
    def create(
        cls, sources: Mapping[str, BufferStructure], sinks: Mapping[str, Sequence[str]]
    ) -> Hub | None:
        """Return a hub in which the sources of each sink are contiguous; None if there is none.

        Of all such orders it has the first one, in the order of ``sources``.
        """
        order = permute_rows(list(sources), sinks.values())
        if order is None:
            return None
        structures = list(sources.values())
        first, slices, end = structures[0], {}, 0
        for path in order:
            start, end = end, end + (sources[path].shape[-1] if first.feature_shape else 1)
            slices[path] = (start, end)
        for sink, parts in sinks.items():
            slices[sink] = (
                min(slices[path][0] for path in parts),
                max(slices[path][1] for path in parts),
            )
        return cls(
            order,
            list(sinks),
            slices,
            first.buffer_type,
            (*first.feature_shape[:-1], end) if first.feature_shape else (),
            max(each.context_size for each in structures),
            first.is_backward_only,
        )

    @classmethod
    def of_parameters(cls, sources: Mapping[str, BufferStructure], sink: str) -> Hub:
        """Return a flat hub of the sources in their order, all of which are one sink."""
        slices, end = {}, 0
        for path, structure in sources.items():
            start, end = end, end + structure.feature_size
            slices[path] = (start, end)
        slices[sink] = (0, end)
        return cls(
            list(sources),
            [sink],
            slices,
            0,
            (end,),
            is_backward_only=sink == "gradients",
            flat=True,
        )

    def get_shape(self, time_size: int, batch_size: int) -> tuple[int, ...]:
        """Return the shape of the array for these numbers of steps and sequences."""
        return BufferStructure.create_from_buffer_hub(self).get_shape(time_size, batch_size)

    def get_size(self, time_size: int, batch_size: int) -> int:
        """Return the number of elements for these numbers of steps and sequences."""
        return math.prod(self.get_shape(time_size, batch_size))


def permute_rows(rows: Sequence[str], sets: Iterable[Sequence[str]]) -> list[str] | None:
    """Return the first order of ``rows`` in which each set is contiguous, None if there is none."""
    index = {row: number for number, row in enumerate(rows)}
    order = consecutive_order(len(rows), [[index[row] for row in each] for each in sets])
    return None if order is None else [rows[number] for number in order]


def can_be_connected_with_single_buffer(
    sources: Sequence[str], sinks: Mapping[str, Sequence[str]]
) -> bool:
    """Return True if an order of the sources has those of each sink in one run."""
    return permute_rows(sources, sinks.values()) is not None


def create_layout(layers: Layers) -> tuple[list[Hub], Layout]:
    """Return the hubs of a network and its layout.

    The layout is nested dictionaries: ``@type`` is ``BufferView`` or ``array``, ``@index`` the
    place among the siblings, and arrays have ``@shape``, ``@hub`` (the number of their hub),
    ``@slice`` (first and last place along its last dimension), ``@context_size`` and
    ``@is_backward_only``. ``@copies`` maps inputs that can be no run of a hub to the outputs that
    are copied to them.
    """
    layout = create_layout_stub(layers)
    structures = {
        path: BufferStructure.from_layout(entry) for path, entry in gather_array_nodes(layout)
        if "@shape" in entry
    }  # fmt: skip
    hubs: list[Hub] = []
    copies: dict[str, list[str]] = {}
    connections = get_connections(layers)
    for sources, sinks in merge_connections(connections):
        made, copied = _hubs_of({path: structures[path] for path in sources}, sinks, structures)
        hubs += made
        copies.update(copied)
    for view, sink in (("parameters", "parameters"), ("gradients", "gradients")):
        paths = [path for each in get_forced_orders(layers, view) for path in each]
        hubs.append(Hub.of_parameters({path: structures[path] for path in paths}, sink))
    placed = {path for hub in hubs for path in hub.slices}
    for path, structure in structures.items():
        if path not in placed:
            hub = Hub.create({path: structure}, {})
            assert hub is not None
            hubs.append(hub)
    hubs.sort(key=lambda hub: (hub.is_backward_only, hub.buffer_type, not hub.flat))
    for number, hub in enumerate(hubs):
        for path, (start, stop) in hub.slices.items():
            entry = layout_entry(layout, path)
            entry.update({"@hub": number, "@slice": (start, stop)})
            if hub.is_backward_only:
                entry["@is_backward_only"] = True
            entry.setdefault("@shape", (stop - start,))
    if copies:
        layout["@copies"] = copies
    return hubs, layout


def create_layout_stub(layers: Layers) -> Layout:
    """Return the layout of the layers' buffers without their places in hubs."""
    root: Layout = {
        "@type": "BufferView",
        "parameters": {"@type": "array", "@index": 0},
        "gradients": {"@type": "array", "@index": 1, "@is_backward_only": True},
    }
    for index, (name, layer) in enumerate(layers.items(), start=2):
        shapes = {
            "inputs": layer.in_shapes,
            "outputs": layer.out_shapes,
            "parameters": layer.parameter_shapes,
            "internals": layer.internal_shapes,
        }
        root[name] = {"@type": "BufferView", "@index": index}
        views = [(view, shapes[view], False) for view in FORWARD]
        views += [(BACKWARD[view], shapes[view], True) for view in BACKWARD]
        for place, (view, entries, backward) in enumerate(
            sorted(views, key=lambda each: VIEWS.index(each[0]))
        ):
            root[name][view] = {"@type": "BufferView", "@index": place}
            for number, (entry, structure) in enumerate(entries.items()):
                described = structure.to_json(number)
                if backward:
                    described["@is_backward_only"] = True
                if view in ("inputs", "input_deltas"):
                    described.pop("@context_size", None)
                root[name][view][entry] = described
    return root


VIEWS = (
    "inputs", "outputs", "parameters", "internals", "input_deltas", "output_deltas", "gradients",
)  # fmt: skip


def gather_array_nodes(layout: Mapping[str, Any], path: str = "") -> Iterator[tuple[str, Layout]]:
    """Yield the dotted path and the entry of each array of a layout."""
    for key, entry in layout.items():
        if key[0] == "@":
            continue
        if entry["@type"] == "array":
            yield path + key, entry
        else:
            yield from gather_array_nodes(entry, f"{path}{key}.")


def get_forced_orders(layers: Layers, view: str = "parameters") -> list[list[str]]:
    """Return the paths of each layer's parameters (or gradients), which lie in this order."""
    return [
        [f"{name}.{view}.{entry}" for entry in layer.parameter_shapes]
        for name, layer in layers.items()
        if layer.parameter_shapes
    ]


def get_connections(layers: Layers) -> OrderedDict[str, list[str]]:
    """Return the sources of each sink, forward and backward, as paths of the layout."""
    found: defaultdict[str, list[str]] = defaultdict(list)
    for name, layer in layers.items():
        for edge in sorted(layer.incoming):
            source, delta = _source_paths(edge.start_layer, edge.output_name)
            found[f"{name}.inputs.{edge.input_name}"].append(source)
            found[f"{name}.input_deltas.{edge.input_name}"].append(delta)
    return OrderedDict(found)


def _source_paths(layer: str, output: str) -> tuple[str, str]:
    if output.startswith("..internals."):
        name = output.removeprefix("..internals.")
        return f"{layer}.internals.{name}", f"{layer}.internals.d{name}"
    return f"{layer}.outputs.{output}", f"{layer}.output_deltas.{output}"


def get_forward_closure(sink: str, connections: Mapping[str, Sequence[str]]) -> set[str]:
    """Return all sinks that share sources with ``sink``, directly or through other sinks."""
    found, waiting = {sink}, [sink]
    while waiting:
        shared = set(connections[waiting.pop()])
        new = {each for each, parts in connections.items() if shared & set(parts)} - found
        found |= new
        waiting += sorted(new)
    return found


def merge_connections(
    connections: Mapping[str, Sequence[str]],
) -> list[tuple[list[str], dict[str, Sequence[str]]]]:
    """Return the connected components of sources and sinks: sorted sources, sinks with theirs."""
    found, placed = [], set()
    for sink in connections:
        if sink not in placed:
            closure = get_forward_closure(sink, connections)
            placed |= closure
            sinks = {each: parts for each, parts in connections.items() if each in closure}
            found.append((sorted({path for parts in sinks.values() for path in parts}), sinks))
    return found


def _hubs_of(
    sources: Mapping[str, BufferStructure],
    sinks: Mapping[str, Sequence[str]],
    structures: Mapping[str, BufferStructure],
) -> tuple[list[Hub], dict[str, list[str]]]:
    """Return hubs of connected buffers, and the sources of sinks that need a copy.

    Sinks are added one by one; one that excludes the orders of all before it is copied.
    """
    kept: dict[str, Sequence[str]] = {}
    copied: dict[str, list[str]] = {}
    for sink, parts in sinks.items():
        once = len(set(parts)) == len(parts)
        if once and can_be_connected_with_single_buffer(list(sources), {**kept, sink: parts}):
            kept[sink] = parts
        else:
            copied[sink] = list(parts)
    hubs = []
    for group, inside in _components(sources, kept):
        hubs.append(Hub.create({path: sources[path] for path in group}, inside))
    hubs += [Hub.create({sink: structures[sink]}, {}) for sink in copied]
    return [hub for hub in hubs if hub is not None], copied


def _components(
    sources: Mapping[str, BufferStructure], sinks: Mapping[str, Sequence[str]]
) -> list[tuple[list[str], dict[str, Sequence[str]]]]:
    """Return connected components, with those of sources that no sink reads without a copy."""
    found = merge_connections(sinks)
    placed = {path for group, _ in found for path in group}
    return found + [([path], {}) for path in sources if path not in placed]


def layout_entry(layout: Layout, path: str) -> Layout:
    """Return the entry of a layout at a dotted path."""
    for key in path.split("."):
        layout = layout[key]
    return layout
