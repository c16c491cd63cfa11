"""Choose the reductions that several blocks share, and into how many parts each pass is divided.

These are reductions of all elements, of few long rows, and of few columns. The parts depend on
lengths alone.
"""

from __future__ import annotations

from typing import NamedTuple

from ....op_graph.axes.affine import Size
from ....op_graph.axes.lengths import Length, product
from ...kernels.ir.nest import Nest, Pass, Store
from ...kernels.nests.unrolled_reductions import MAX_SERIAL_TERMS
from ..launches.launch_ir import (
    FULL_DEVICE_BLOCKS,
    MIN_PART_TURNS,
    NOMINAL_DEVICE,
    THREADS_PER_BLOCK,
    Parts,
)
from .cooperative_threads import WARP_SIZE, Team

# Elements of a part of all elements or of a row; there are fewer, longer parts if that needs more
# than ``MAX_PART_BLOCKS`` or ``FULL_DEVICE_BLOCKS`` blocks.
ELEMENTS_PER_BLOCK = MAX_SERIAL_TERMS * THREADS_PER_BLOCK
# Max. blocks that reduce parts of all elements; their threads have up to 32 registers.
MAX_PART_BLOCKS = NOMINAL_DEVICE.full_blocks(registers=32)
BLOCK_TEAM = Team(THREADS_PER_BLOCK, THREADS_PER_BLOCK)
COLUMN_TEAM = Team(8, 256, WARP_SIZE)  # 8 threads per column, 32 adjacent columns per block


class SplitReductions(NamedTuple):
    """The parts of each pass in ``passes``; a nest is divided if no size in ``holds`` is negative.

    A block of ``team`` has a part of a row, or of as many columns as are beside each other.
    """

    passes: tuple[Pass, ...]
    parts: tuple[Parts, ...]
    holds: tuple[Size, ...]
    team: Team = BLOCK_TEAM

    @property
    def is_known(self) -> bool:
        """Return True if it does not depend on open lengths whether a nest is divided."""
        return all(isinstance(size, int) for size in self.holds)

    @property
    def counts(self) -> list[Size]:
        """Return the number of parts of each pass, a length of its own if it is not known."""
        return [Length.of(str(x)) if x.is_open else x.number({}) for x in self.parts]


def division_of(nest: Nest) -> SplitReductions | None:
    """Return how the passes of a nest are divided; None if they never are."""
    passes = divisible(nest)
    counts = [product(loop.extent for loop in step.loops) for step in passes]
    if not passes:
        return None
    if not nest.rows and nest.across is None:
        long = any(not isinstance(n, int) or n > ELEMENTS_PER_BLOCK for n in counts)
        each = tuple([Parts(n, 1, MAX_PART_BLOCKS, ELEMENTS_PER_BLOCK) for n in counts])
        return SplitReductions(passes, each, ()) if long else None
    (count,), rows = counts, product(loop.extent for loop in nest.rows)
    if nest.across is None:
        team, blocks, least = BLOCK_TEAM, rows, ELEMENTS_PER_BLOCK
    else:
        team, least = COLUMN_TEAM, MIN_PART_TURNS
        blocks = rows * ((nest.across.extent + team.beside - 1) // team.beside)
    parts = Parts(count, blocks, FULL_DEVICE_BLOCKS, least)
    return None if parts.is_whole else SplitReductions(passes, (parts,), parts.several, team)


def divisible(nest: Nest) -> tuple[Pass, ...]:
    """Return the passes that can be divided: those of a nest without rows, or a row's only one."""
    passes = tuple([step for step in nest.steps if isinstance(step, Pass)])
    if nest.arrays or nest.pieces or not any(step.reductions for step in passes):
        return ()
    if not nest.rows and nest.across is None:
        return passes
    first, *others = nest.steps
    stores = all(isinstance(step, Store) for step in others)
    return passes if passes == (first,) and stores and not passes[0].stores else ()
