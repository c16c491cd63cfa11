"""Operations on all variables of a state: lookup by name, copies, save and restore."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import numpy as np

from ...errors import ArgumentError, CheckpointError
from .checkpoint import CheckpointEntry, keys_for, load, save
from .checkpoint_selection import Choice, Restored
from .dims import has_all_lengths, open_sizes, resolve
from .rwlock import ReadSection, Writing
from .state import State
from .variable_slot import Slot


def slot_named(state: State, name: str) -> Slot:
    """Return the slot with that name, or with that key in checkpoints."""
    found = [slot for slot in state.slots if slot.name == name]
    if not found:
        unnamed = [slot for slot in state.slots if slot.name is None and slot.persistent]
        keys = keys_for([(None, slot.kind, slot.axes, slot.label) for slot in unnamed])
        found = [slot for slot, key in zip(unnamed, keys, strict=True) if key == name]
        if not found:
            names = [*(s.name for s in state.slots if s.name is not None), *keys]
            raise ArgumentError(
                f"there is no variable {name!r}; there are {', '.join(names) or 'none'}"
            )
    if len(found) > 1:
        raise ArgumentError(f"{' and '.join(s.label for s in found)} have one name; rename one")
    return found[0]


def entries_of(state: State, given: bool = False) -> tuple[list[Slot], list[CheckpointEntry]]:
    """Return the persistent variables, and a checkpoint entry for each.

    With ``given``, arrays are to be loaded: then open lengths are those of initial values alone.
    """
    slots = [slot for slot in state.slots if slot.persistent]
    keys = keys_for([(s.name, s.kind, s.axes, s.label) for s in slots])
    common = {} if given else {**state.defaults(), **state.lengths()}
    entries = []
    for slot, key in zip(slots, keys, strict=True):
        lengths = {**common, **slot.learned}
        shape: Sequence[int | None] = [
            resolve(dim, lengths) if has_all_lengths(dim, lengths) else None for dim in slot.dims
        ]
        if slot.value is not None and not given:
            shape = slot.shape
        axes = tuple(zip(slot.axes, shape, strict=True))
        entries.append(
            CheckpointEntry(key, slot.name is None, slot.kind, axes, slot.dtype.name, slot.label)
        )
    return slots, entries


def values_of(state: State) -> tuple[list[CheckpointEntry], list[np.ndarray[Any, Any]]]:
    """Return copies of all persistent variables atomically; those not yet set are initialized."""
    with state.lock:
        state.usable()
        slots, _ = entries_of(state)
        state.ensure(slots, slots, {})
        state.tentative = []
        _, entries = entries_of(state)
        with ReadSection(state.access):
            arrays = [state.memory.copy_out(slot.value) for slot in slots]
            state.memory.synchronise()
    return entries, arrays


def save_state(state: State, path: str | os.PathLike[str]) -> None:
    """Write all persistent variables to a file; those not yet set are initialized first."""
    entries, arrays = values_of(state)
    save(path, entries, arrays)


def restore_state(state: State, path: str | os.PathLike[str], choice: Choice) -> Restored:
    """Read persistent variables from a file; everything is checked before anything changes."""
    with state.lock:
        state.usable()
        slots, entries = entries_of(state, given=True)
        arrays, report = load(path, entries, choice)
        pairs = [(s, array) for s, array in zip(slots, arrays, strict=True) if array is not None]
        lengths = [_lengths(path, slot, array.shape) for slot, array in pairs]
        with Writing(state.access):
            copies = [
                state.memory.copy_in(array)
                if slot.value is None or slot.shape != array.shape
                else None
                for slot, array in pairs
            ]  # allocated before any variable changes: memory may be exhausted
            state.tentative = []
            state.wrote()
            for (slot, array), copy, found in zip(pairs, copies, lengths, strict=True):
                if copy is not None:
                    state.epoch += slot.value is not None
                    slot.value, slot.shape, slot.lengths = copy, array.shape, found
                else:
                    state.memory.copy_in(array, slot.value)
                slot.ready = True
            state.memory.synchronise()
    return report


def _lengths(path: str | os.PathLike[str], slot: Slot, shape: tuple[int, ...]) -> dict[str, int]:
    """Return the lengths of a variable's open names in a file.

    Raises ``CheckpointError`` if they contradict each other.
    """
    found = dict(open_sizes(slot.dims, shape))
    for dim, size in zip(slot.dims, shape, strict=True):
        if has_all_lengths(dim, found) and resolve(dim, found) != size:
            raise CheckpointError(
                f"checkpoint {str(path)!r} gives {slot.label} the length {size} for {dim}, which "
                f"is {resolve(dim, found)} by its other axes; nothing was changed; restore into "
                "the model that saved the file"
            )
    return {**slot.lengths, **found}
