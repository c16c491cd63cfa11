"""Calls that are found again: the node of an equal call, or the value of one that was dropped.

They lie beside the first argument and die with it. Large values are dropped, those not used for
longest first, to stay within a number of bytes.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import Any
from weakref import ref

from .nodes import RecordedNode, lock

MAX_BYTES = 64 << 20  # maximum bytes of values that are kept beside those of arrays in use
LARGE_BYTES = 4096  # least bytes of a value that are counted
MAX_USES = 64  # maximum calls of one first argument that are found again


class KeptValues:
    """The counted values: by the id of the first argument and the rest of the call."""

    most, taken = MAX_BYTES, 0
    large: OrderedDict[Any, tuple[ref[RecordedNode], ref[RecordedNode], int]] = OrderedDict()


def find(first: RecordedNode, key: Any) -> Any:
    """Return the key, the reference and the value of an equal call; None if there is none."""
    uses = first.uses
    if uses.__class__ is dict:
        uses = uses.get(key)
    elif uses is not None and uses[0] != key:
        return None
    if uses is not None and uses[2] is not None and uses[2].nbytes >= LARGE_BYTES:
        with lock:
            if (id(first), key) in KeptValues.large:
                KeptValues.large.move_to_end((id(first), key))
    return uses


def put(first: RecordedNode, use: tuple[Any, Any, Any]) -> None:
    """Note a call whose first argument is this node: its key, a reference and a kept value."""
    uses = first.uses
    if uses is None or len(uses) >= MAX_USES or (uses.__class__ is tuple and uses[0] == use[0]):
        first.uses = use
    else:
        if uses.__class__ is tuple:
            uses = first.uses = {uses[0]: uses}
        uses[use[0]] = use


def keep(node: RecordedNode) -> None:
    """Keep the value of a computed node; the caller holds the lock."""
    args, value = node.args, node.value
    if not args or not KeptValues.most:
        return
    first, made = args[0], ref(node)
    key = node.result if len(args) == 1 else (node.result, *[arg.serial for arg in args[1:]])
    put(first, (key, made, value))
    if value.nbytes >= LARGE_BYTES:
        before = KeptValues.large.pop((id(first), key), None)
        KeptValues.taken += value.nbytes - (0 if before is None else before[2])
        KeptValues.large[id(first), key] = ref(first), made, value.nbytes
        drop(KeptValues.most)


def drop(most: int) -> None:
    """Drop values until they take ``most`` bytes, also from nodes that no array shows."""
    while KeptValues.taken > most and KeptValues.large:
        (_, key), (known, made, size) = KeptValues.large.popitem(last=False)
        KeptValues.taken -= size
        first, node = known(), made()
        if first is not None and find(first, key) is not None:
            put(first, (key, made, None))
        if node is not None and not node.shown and node.result is not None:
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
