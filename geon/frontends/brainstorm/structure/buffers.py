"""``BufferManager``: the memory of a network, one allocation for all hubs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from .buffer_views import BufferView
from .layout import Hub, Layout, gather_array_nodes

ALIGNMENT = 64
"""Bytes at a multiple of which each hub begins: a cache line."""


class BufferManager:
    """The buffers of a network: ``views`` shows them by name, for a handler's kind of memory.

    ``time_size`` and ``batch_size`` are the present numbers of steps and sequences. Memory grows
    only. Parameters and other forward buffers without steps and sequences keep their values.
    """

    def __init__(self, handler: Any, hubs: Sequence[Hub], layout: Layout) -> None:
        self.handler, self.hubs, self.layout = handler, list(hubs), layout
        self.remembering = [number for number, hub in enumerate(self.hubs) if hub.context_size]
        self.time_size = self.batch_size = 0
        self.size = 0
        self.full_buffer: Any = None
        self.buffers: list[Any] = []
        self.shown: set[str] | None = None  # paths of the buffers that can be read, None for all
        self.unclear = True  # deltas and gradients were not cleared since the last resize
        self.views = BufferView([], [])
        self.resize(1, 1)

    def resize(self, time_size: int, batch_size: int) -> BufferView:
        """Set the numbers of steps and sequences; return the views, whose objects stay."""
        if (time_size, batch_size) != (self.time_size, self.batch_size):
            self.time_size, self.batch_size = time_size, batch_size
            self._lay_out()
        return self.views

    def set_handler(self, handler: Any) -> BufferView:
        """Move the buffers to another handler."""
        self.handler.on_device.release_all()
        old, self.handler = self.buffers, handler
        self.size, self.full_buffer = 0, None
        kept = [np.array(array) for array in old]
        self._lay_out()
        for target, value in zip(self.buffers, kept, strict=True):
            handler.set_from_numpy(target, value)
        return self.views

    @property
    def parameters(self) -> Any:
        """Return the vector of all parameters, which is the first hub."""
        return self.buffers[0]

    def hide(self, shown: set[str]) -> None:
        """Refuse to show buffers but those of these paths, until ``show``."""
        self.show()
        _hide(self.views, self.layout, shown, "")
        self.shown = shown

    def show(self) -> None:
        """Show all buffers."""
        if self.shown is not None:
            self._show()

    def _show(self) -> None:
        create_buffer_views_from_layout(self.layout, self.buffers, self.hubs, self.views)
        self.shown = None

    def _lay_out(self) -> None:
        """Allocate what is missing, slice it into hubs, and adjust the views."""
        self.handler.on_device.release_all()
        step = ALIGNMENT // np.dtype(self.handler.dtype).itemsize
        size, slices, shapes = get_total_size_slices_and_shapes(
            self.hubs, self.time_size, self.batch_size, step
        )
        if size > self.size or self.full_buffer is None:
            fixed = [h for h in self.hubs if h.buffer_type == 0 and not h.is_backward_only]
            end = slices[len(fixed) - 1].stop if fixed else 0  # these hubs are the first
            kept = None if self.full_buffer is None else np.array(self.full_buffer[:end])
            self.full_buffer = None  # freed first
            self.full_buffer, self.size = self.handler.zeros((size,)), size
            if kept is not None:
                self.handler.set_from_numpy(self.full_buffer[:end], kept)
        parts = zip(slices, shapes, strict=True)
        self.buffers = [self.full_buffer[part].reshape(shape) for part, shape in parts]
        self.unclear = True
        self._show()

    def clear_backward_buffers(self, hubs: Iterable[int] | None = None) -> None:
        """Set deltas and gradients to zero; those of these hubs if the rest was since a resize."""
        if hubs is None or self.unclear:
            hubs = [number for number, hub in enumerate(self.hubs) if hub.is_backward_only]
        self.unclear = False
        hubs = list(hubs)
        self.handler.on_device.release([self.buffers[number] for number in hubs])
        for number in hubs:
            self.handler.fill(self.buffers[number], 0.0)

    # Contexts ------------------------------------------------------------------------------------

    def get_context(self) -> list[Any]:
        """Return copies of the last steps of each forward hub that has a context, None for others.

        They are what the next pass goes on from. With fewer steps than the context has, the rest
        are the last ones of the context before.
        """
        found: list[Any] = []
        for hub, array in zip(self.hubs, self.buffers, strict=True):
            if hub.context_size and not hub.is_backward_only:
                self.handler.on_device.write_back([array])
                whole = np.array(array)
                steps = np.concatenate([whole[self.time_size :], whole[: self.time_size]])
                found.append(steps[-hub.context_size :])
            else:
                found.append(None)
        return found

    def apply_context(self, context: Sequence[Any]) -> None:
        """Set the steps before the first one to those of ``get_context``."""
        for hub, array, value in zip(self.hubs, self.buffers, context, strict=True):
            if value is not None:
                self.handler.on_device.release([array[-hub.context_size :]])
                self.handler.set_from_numpy(array[-hub.context_size :], value)

    def clear_context(self) -> None:
        """Set the steps before the first one to zero."""
        for number in self.remembering:
            context = self.buffers[number][-self.hubs[number].context_size :]
            self.handler.on_device.release([context])
            self.handler.fill(context, 0.0)


def get_total_size_slices_and_shapes(
    hubs: Iterable[Hub], time_size: int, batch_size: int, step: int = 1
) -> tuple[int, list[slice], list[tuple[int, ...]]]:
    """Return the number of elements of all hubs, and the slice and the shape of each.

    Each hub begins at a multiple of ``step`` elements.
    """
    slices, shapes, end = [], [], 0
    for hub in hubs:
        size = hub.get_size(time_size, batch_size)
        slices.append(slice(end, end + size))
        shapes.append(hub.get_shape(time_size, batch_size))
        end += -(-size // step) * step
    return end, slices, shapes


def _hide(view: BufferView, layout: Layout, shown: set[str], path: str) -> None:
    arrays = [name for name in view.keys() if layout[name]["@type"] == "array"]
    view._hide({name: path + name for name in arrays if path + name not in shown})
    for name in view.keys():
        if name not in arrays:
            _hide(view._array(name), layout[name], shown, f"{path}{name}.")


def create_buffer_views_from_layout(
    layout: Mapping[str, Any],
    buffers: Sequence[Any],
    hubs: Sequence[Hub],
    existing_view: BufferView | None = None,
) -> Any:
    """Return the views of a layout in these arrays, one for each hub.

    ``existing_view`` is adjusted instead of making a new one.
    """
    if layout["@type"] == "array":
        return _array(layout, buffers, hubs)
    entries = sorted(
        ((key, entry) for key, entry in layout.items() if key[0] != "@"),
        key=lambda item: item[1]["@index"],
    )
    children, contexts = [], {}
    for name, entry in entries:
        known = None
        if existing_view is not None and name in existing_view.keys():
            known = existing_view._array(name)
        children.append(create_buffer_views_from_layout(entry, buffers, hubs, known))
        if entry.get("@context_size") and entry["@type"] == "array":
            contexts[name] = hubs[entry["@hub"]].context_size
    names = [name for name, _ in entries]
    full = _run(layout, buffers, hubs)
    if existing_view is None:
        return BufferView(names, children, full, contexts)
    return existing_view.adjust(names, children, full, contexts)


def _array(entry: Mapping[str, Any], buffers: Sequence[Any], hubs: Sequence[Hub]) -> Any:
    """Return the array of an entry; one with a context has that of its hub, the others none."""
    hub, array = hubs[entry["@hub"]], buffers[entry["@hub"]]
    start, stop = entry["@slice"]
    if hub.flat:
        return array[start:stop].reshape(entry["@shape"])
    if hub.feature_shape and stop - start < hub.feature_shape[-1]:
        array = array[..., start:stop]
    if hub.context_size and not entry.get("@context_size"):
        array = array[: -hub.context_size]
    return array


def _run(layout: Mapping[str, Any], buffers: Sequence[Any], hubs: Sequence[Hub]) -> Any:
    """Return the part of a flat hub that a layer's parameters or gradients are; else None."""
    entries = [entry for _, entry in gather_array_nodes(layout)]
    numbers = {entry["@hub"] for entry in entries}
    if len(numbers) != 1 or not hubs[entries[0]["@hub"]].flat:
        return None
    start = min(entry["@slice"][0] for entry in entries)
    stop = max(entry["@slice"][1] for entry in entries)
    return buffers[numbers.pop()][start:stop]
