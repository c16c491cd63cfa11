"""Where the arrays of a row lie: in registers, in shared memory, or in a part of scratch memory."""

from __future__ import annotations

from collections.abc import Sequence

from ....op_graph.axes.affine import Size
from ....op_graph.axes.lengths import product
from ...kernels.ir.nest import Nest, Pass, RowArray, Store
from ...kernels.ir.scalar_code import Kept, Scalar, walk
from ...sizes.scratch import lines as up_to_lines
from .cooperative_threads import CHAIN, SHORT, THREADS, WARP, Team

HELD = CHAIN  # elements of an array of a row that a thread holds in registers
SHARED = 32 << 10  # bytes of a block's shared memory that arrays of rows may take


def slot_bytes(arrays: Sequence[RowArray]) -> Size:
    """The bytes of scratch memory that arrays of a row take, where they are not shared memory."""
    if arrays_shared(arrays):
        return 0
    total: Size = 0
    for array in arrays:
        total = total + up_to_lines(array.size * array.dtype.itemsize)
    return total


def arrays_shared(arrays: Sequence[RowArray]) -> bool:
    """Whether the arrays of a row lie in shared memory."""
    total: Size = 0
    for array in arrays:
        total = total + array.size * array.dtype.itemsize
    return isinstance(total, int) and total <= SHARED


def holding_team(nest: Nest) -> Team | None:
    """The team whose threads hold the elements of a row's arrays that they make themselves; None
    where arrays lie elsewhere.

    A warp has up to ``SHORT`` elements of each pass, a block more.
    """
    if not nest.arrays or nest.across is not None or nest.pieces:
        return None
    counts = [product(loop.extent for loop in step.loops) for step in nest.passes]
    known = [n for n in counts if isinstance(n, int)]
    if len(known) < len(counts) or not arrays_shared(nest.arrays):
        return None
    warp, block = Team(WARP, THREADS if nest.rows else WARP), Team(THREADS, THREADS)
    team = warp if max(known) <= SHORT else block
    return team if holds_arrays(nest, team) else None


def turns_of(size: int, team: Team) -> int:
    """How many elements a thread has of so many."""
    return -(-size // team.size)


def holds_arrays(nest: Nest, team: Team) -> bool:
    """Whether the elements of arrays are read by none but the thread that makes them: all are at
    the index of the one loop of their pass; and whether they have room in registers.
    """
    count = 0
    for array in nest.arrays:
        assert isinstance(array.size, int)
        count += turns_of(array.size, team)
        if array.size > HELD * team.size:
            return False
    if count > 2 * HELD or any(array.dtype.itemsize > 4 for array in nest.arrays):
        return False
    sizes = {array.number: array.size for array in nest.arrays}
    for step in nest.steps:
        if isinstance(step, Pass):
            values = values_in(step)
        else:
            values = [step.value]
        kept = [v for v in walk(*values) if isinstance(v, Kept)]
        places = [(each.number, each.offset) for each in kept]
        if isinstance(step, Pass):
            places += [(keep.number, keep.offset) for keep in step.keeps]
        for number, offset in places:
            if isinstance(step, Store) or len(step.loops) != 1:
                return False
            (loop,) = step.loops
            if dict(offset.terms) != {loop.name: 1} or offset.constant != 0:
                return False
            if loop.extent != sizes[number]:
                return False
    return True


def values_in(step: Pass) -> list[Scalar]:
    """What a pass computes of each element."""
    positions = [each.position for each in step.reductions if each.position is not None]
    return [*step.computed, *positions]
