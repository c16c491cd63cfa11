"""Emit non-temporal stores for results that are larger than the caches.

A cache line that is written as a whole by non-temporal stores is not read first, so that a sum of
two arrays moves three arrays instead of four. Some iterations of an innermost loop write to a
buffer in the L1 cache, which is then copied. Each call decides this by the bytes that the nest
stores and reads.
"""

from __future__ import annotations

from collections.abc import Sequence

from ....lazy_dataclasses import dataclass
from ....op_graph.axes.affine import Size
from ....op_graph.axes.lengths import product
from ...kernels.ir.nest import Nest, Pass, Store
from ...kernels.ir.scalar_code import Load, Scalar, walk
from ...printing.nests.parameters import Place
from ...sizes.blocks import L1_BYTES
from ...sizes.limits import MIN_LAST_CACHE_BYTES
from ..names.naming import KernelNames

# Minimum bytes that a piece of a nest stores non-temporally.
MIN_STREAMING_PIECE_BYTES = 2 * L1_BYTES
# Weight of bytes that are stored transposed, where lines are not prefetched.
TRANSPOSED_STORE_WEIGHT = 2
RESULT_LIMIT, REREAD_LIMIT = "geon_past_bytes", "geon_reread_bytes"


@dataclass(frozen=True, slots=True)
class Passing:
    """The stores of a nest that may be non-temporal.

    ``operands`` are the numbers of their operands. ``stored_bytes`` are the bytes that the nest
    stores, ``touched`` those that it stores or reads. ``limit`` is the C variable that has the
    bytes from which on they are.
    """

    operands: frozenset[int]
    stored: Size
    touched: Size
    limit: str = RESULT_LIMIT

    def test(self, names: KernelNames) -> str:
        """Return the C expression that decides in a call."""
        sizes = [names.length(size) for size in (self.stored, self.touched)]
        return f"geon_is_past({', '.join([*sizes, self.limit])})"


def passing(work: Nest, places: Sequence[Place]) -> Passing | None:
    """Return the stores of a nest that may be non-temporal; None if there are none or too few
    bytes.

    ``places`` are the memory of its operands. Operands that the nest also reads are excluded: their
    lines are already in the cache. What lies in the arena is read again by a later kernel, so the
    whole cache counts for it.
    """
    nests = work.pieces or (work,)
    size: Size = 0
    for nest in nests:
        size = size + stored_bytes(nest)
    if isinstance(size, int) and size < MIN_LAST_CACHE_BYTES:
        return None
    nodes = [node for nest in (work, *nests) for node in walk(*values(nest))]
    read = dict.fromkeys([x.operand for x in nodes if isinstance(x, Load)])
    kept = {places[k] for k in read}
    written = {store.operand for nest in (work, *nests) for store in stores(nest)}
    free = [k for k in written if places[k] not in kept]
    touched = size
    for op in [work.operands[k] for k in read]:
        touched = touched + op.axes.size * op.dtype.itemsize
    if all(nest.across is not None and stores_only(nest) for nest in nests):
        size, touched = (each * TRANSPOSED_STORE_WEIGHT for each in (size, touched))
    again = any(places[k][0] == "arena" for k in free)
    limit = REREAD_LIMIT if again else RESULT_LIMIT
    return Passing(frozenset(free), size, touched, limit) if free else None


def stores_only(nest: Nest) -> bool:
    """Return True if a nest only stores elements."""
    return bool(nest.passes) and not any(each.reductions for each in nest.passes)


def may_pass(piece: Nest, whole: Size) -> bool:
    """Return True if a piece of a nest that stores ``whole`` bytes stores enough for non-temporal
    stores.

    A border piece has fewer open lengths as factors than the whole, so it is a small part of it.
    """
    size = stored_bytes(piece)
    return (
        size >= MIN_STREAMING_PIECE_BYTES
        if isinstance(size, int)
        else degree(size) >= degree(whole)
    )


def degree(size: Size) -> int:
    """Return the maximum degree of a term in open lengths."""
    if isinstance(size, int):
        return 0
    return max(sum(power for _, power in monomial) for monomial, _ in size.terms)


def stores(nest: Nest) -> list[Store]:
    """Return all stores of a nest."""
    steps = (*nest.steps, *nest.ending)
    return [x for each in steps for x in (each.stores if isinstance(each, Pass) else (each,))]


def values(nest: Nest) -> list[Scalar]:
    """Return all values that a nest stores, reduces or keeps in row arrays."""
    found = [store.value for store in stores(nest)]
    for step in nest.passes:
        found += [*step.reduced, *(keep.value for keep in step.keeps)]
    return found


def stored_bytes(nest: Nest) -> Size:
    """Return the bytes that the passes of a nest store."""
    rows = product([loop.extent for loop in nest.rows])
    if nest.across is not None:
        rows = rows * nest.across.extent
    size: Size = 0
    for step in nest.passes:
        each = sum(store.dtype.itemsize for store in step.stores)
        size = size + rows * product([loop.extent for loop in step.loops]) * each
    return size
