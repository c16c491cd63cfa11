"""Values that are found again: those of the same call on the same arguments.

They lie beside the first argument and die with it. Large ones are dropped, those not used for
longest first, to stay within a number of bytes.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import Any
from weakref import ref

from .nodes import RecordedNode, lock

MAX_BYTES = 64 << 20  # maximum bytes of values that are kept beside those of arrays in use
LARGE_BYTES = 4096  # least bytes of a value that are counted
MAX_SMALL = 64  # maximum values beside an argument that are not counted

Large = OrderedDict[tuple[int, Any], tuple["ref[RecordedNode]", "ref[RecordedNode]", int]]


class KeptValues:
    """The counted values: by the id of the first argument and the rest of the call."""

    most = MAX_BYTES
    taken = 0
    large: Large = OrderedDict()


def find(call: Any, args: tuple[RecordedNode, ...]) -> Any:
    """Return the kept value of a call on these arguments; None if there is none."""
    results = args[0].results if args else None
    if results is None:
        return None
    key = (call, *map(id, args[1:]))
    found = results.get(key)
    if found is None:
        return None
    for known, arg in zip(found[1], args[1:], strict=True):
        if known() is not arg:
            return None
    with lock:
        if (id(args[0]), key) in KeptValues.large:
            KeptValues.large.move_to_end((id(args[0]), key))
    return found[0]


def keep(node: RecordedNode) -> None:
    """Keep the value of a computed node; the caller holds the lock."""
    if not node.args or not KeptValues.most:
        return
    first, *rest = node.args
    size = node.value.nbytes
    if first.results is None or (size < LARGE_BYTES and len(first.results) >= MAX_SMALL):
        first.results = {}
    key = (node.call, *map(id, rest))
    first.results[key] = node.value, list(map(ref, rest))
    if size >= LARGE_BYTES:
        before = KeptValues.large.pop((id(first), key), None)
        KeptValues.taken += size - (0 if before is None else before[2])
        KeptValues.large[id(first), key] = ref(first), ref(node), size
        drop(KeptValues.most)


def drop(most: int) -> None:
    """Drop values until they take ``most`` bytes, also from nodes that no array shows."""
    while KeptValues.taken > most and KeptValues.large:
        (_, key), (known, made, size) = KeptValues.large.popitem(last=False)
        KeptValues.taken -= size
        first, node = known(), made()
        if first is not None and first.results is not None:
            first.results.pop(key, None)
        if node is not None and not node.shown and node.call is not None:
            node.value = None


def kept_bytes(most: int | None = None) -> int:
    """Set the bytes of values that are kept to be found again; return the limit before.

    A value that was computed is found again by the same function of the same arrays. 0 keeps none
    from now on; without an argument the limit stays. Values of arrays in use stay in any case.
    """
    before = KeptValues.most
    if most is not None:
        with lock:
            KeptValues.most = most
            drop(most)
    return before
