"""Values that are found again: those of the same call on the same arguments, up to some bytes."""

from __future__ import annotations

from collections import OrderedDict
from typing import Any
from weakref import ref

from .nodes import RecordedNode, lock

MAX_BYTES = 64 << 20  # maximum bytes of values that no array in use has
ENTRY_BYTES = 1000  # bytes of an entry beside its value

Key = tuple[Any, ...]
_kept: OrderedDict[Key, tuple[ref[RecordedNode], list[ref[RecordedNode]], Any]] = OrderedDict()
_find = _kept.get


class _Budget:
    """The bytes that values may take, and those that they take."""

    most = MAX_BYTES
    taken = 0


def find(call: Any, args: tuple[RecordedNode, ...]) -> Any:
    """Return the kept value of a call on these arguments; None if there is none."""
    key = (call, *map(id, args))
    found = _find(key)
    if found is None:
        return None
    for known, arg in zip(found[1], args, strict=True):
        if known() is not arg:
            return None
    with lock:
        if key in _kept:
            _kept.move_to_end(key)
    return found[2]


def keep(node: RecordedNode) -> None:
    """Keep the value of a computed node, and drop the values least recently used.

    The caller holds the lock.
    """
    value = node.value
    size = value.nbytes + ENTRY_BYTES
    if size > _Budget.most:
        return
    args = node.args
    key = (node.call, *map(id, args))
    before = _kept.pop(key, None)
    if before is not None:
        _Budget.taken -= before[2].nbytes + ENTRY_BYTES
    _kept[key] = (ref(node), list(map(ref, args)), value)
    _Budget.taken += size
    while _Budget.taken > _Budget.most:
        _drop()


def _drop() -> None:
    """Drop the value used longest ago, also from its node if no array shows it."""
    _, (shown, _, value) = _kept.popitem(last=False)
    _Budget.taken -= value.nbytes + ENTRY_BYTES
    node = shown()
    if node is not None and not node.shown and node.call is not None:
        node.value = None


def kept_bytes(most: int | None = None) -> int:
    """Set the bytes of values that are kept to be found again; return the limit before.

    A value that was computed is found again by the same function of the same arrays. 0 keeps none;
    without an argument the limit stays. Values of arrays in use stay in any case.
    """
    before = _Budget.most
    if most is not None:
        with lock:
            _Budget.most = most
            while _Budget.taken > most:
                _drop()
    return before
