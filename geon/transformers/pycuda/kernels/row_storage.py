"""Storage of row arrays: registers, shared memory, or a slot of scratch memory."""

from __future__ import annotations

from collections.abc import Sequence

from ....op_graph.axes.affine import Size
from ....op_graph.axes.lengths import product
from ...kernels.ir.nest import Nest, Pass, RowArray, Store
from ...kernels.ir.scalar_code import Kept, Scalar, walk
from ...kernels.nests.unrolled_reductions import MAX_SERIAL_TERMS
from ...sizes.scratch import lines as up_to_lines
from ..launches.launch_ir import THREADS_PER_BLOCK
from .cooperative_threads import MAX_WARP_ROW_ELEMENTS, WARP_SIZE, Team

MAX_REGISTER_ELEMENTS = (
    MAX_SERIAL_TERMS  # max. elements of a row array that a thread holds in registers
)
MAX_SHARED_BYTES = 32 << 10  # max. bytes of shared memory for row arrays, or of joined functions


def slot_bytes(arrays: Sequence[RowArray]) -> Size:
    """Return the bytes of scratch memory per row for its arrays; 0 if they lie in shared memory."""
    if arrays_shared(arrays):
        return 0
    total: Size = 0
    for array in arrays:
        total = total + up_to_lines(array.size * array.dtype.itemsize)
    return total


def arrays_shared(arrays: Sequence[RowArray]) -> bool:
    """Return True if the row arrays lie in shared memory."""
    total: Size = 0
    for array in arrays:
        total = total + array.size * array.dtype.itemsize
    return isinstance(total, int) and total <= MAX_SHARED_BYTES


def holding_team(nest: Nest) -> Team | None:
    """Return the team whose threads hold row arrays in registers; None if they lie elsewhere.

    A warp handles passes of up to ``MAX_WARP_ROW_ELEMENTS`` elements, a block longer ones.
    """
    if not nest.arrays or nest.across is not None or nest.pieces:
        return None
    counts = [product(loop.extent for loop in step.loops) for step in nest.passes]
    known = [n for n in counts if isinstance(n, int)]
    if len(known) < len(counts) or not arrays_shared(nest.arrays):
        return None
    warp, block = (
        Team(WARP_SIZE, THREADS_PER_BLOCK if nest.rows else WARP_SIZE),
        Team(THREADS_PER_BLOCK, THREADS_PER_BLOCK),
    )
    team = warp if max(known) <= MAX_WARP_ROW_ELEMENTS else block
    return team if holds_arrays(nest, team) else None


def turns_of(size: int, team: Team) -> int:
    """Return the maximum number of elements per thread."""
    return -(-size // team.size)


def holds_arrays(nest: Nest, team: Team) -> bool:
    """Return True if row arrays fit registers and threads read only elements that they wrote.

    For that, all accesses are at the index of the single loop of their pass.
    """
    count = 0
    for array in nest.arrays:
        assert isinstance(array.size, int)
        count += turns_of(array.size, team)
        if array.size > MAX_REGISTER_ELEMENTS * team.size:
            return False
    if count > 2 * MAX_REGISTER_ELEMENTS or any(array.dtype.itemsize > 4 for array in nest.arrays):
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
    """Return the scalar expressions that a pass evaluates per element."""
    positions = [each.position for each in step.reductions if each.position is not None]
    return [*step.computed, *positions]
