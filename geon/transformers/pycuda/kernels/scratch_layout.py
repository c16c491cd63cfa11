"""Memory of a tree's private buffers: their layout in scratch memory, and bytes that are shared."""

from __future__ import annotations

from typing import NamedTuple

from ....op_graph.axes.affine import Size
from ...loops.access import used_buffers
from ...loops.tree import Combine, Space, Tree, walk
from ...sizes.scratch import lines as up_to_lines
from .cooperative_threads import SCALAR_BYTES, Team


class ScratchLayout(NamedTuple):
    """Byte offsets of buffers by number, and the bytes of all of them."""

    offsets: dict[int, Size]
    size: Size


def scratch_layout(tree: Tree, space: Space) -> ScratchLayout:
    """Return the layout of the buffers of a space.

    Those of ``Space.SCRATCH`` are shared by all tasks of several launches: each element has the
    bytes of the largest scalar, and buffers that this tree does not use have places too. Those of
    ``Space.STACK`` lie in the slot of a team, and begin at cache lines.
    """
    used, offsets = used_buffers(tree.body), dict[int, Size]()
    end: Size = 0
    for number, buffer in enumerate(tree.buffers):
        if buffer.space is space and (number in used or space is Space.SCRATCH):
            offsets[number] = end
            size = buffer.size * SCALAR_BYTES
            if space is not Space.SCRATCH:
                size = up_to_lines(buffer.size * buffer.dtype.itemsize)
            end = end + size
    return ScratchLayout(offsets, end)


def shared_bytes(tree: Tree, team: Team) -> int:
    """Return a block's bytes of shared memory: of buffers, and of states that a team combines."""
    combined = [each for each, _ in walk(tree.body) if isinstance(each, Combine)]
    total = team.shared(sum(len(each.of) for each in combined))
    for number in used_buffers(tree.body):
        buffer = tree.buffers[number]
        if buffer.space is Space.SHARED:
            assert isinstance(buffer.size, int)
            total += buffer.size * buffer.dtype.itemsize
    return total
