"""Nests that read what an op reads, one of which may compute it too."""

from __future__ import annotations

from collections import deque

from ....op_graph.core.traversal import is_bound
from ....op_graph.op_graph import Op
from ....op_graph.rewriting.matching import is_of
from .fusion_group import FusionGroup
from .fusion_state import State
from .legality import full, same_lengths

NEAR = 64  # values below an op that are looked at for what it shares with others
RECENT = 8  # the last kernels that read a value, which one more of its readers may join


class Siblings:
    """The last groups that read each value."""

    def __init__(self, state: State) -> None:
        self.state = state
        self.readers: dict[Op, deque[FusionGroup]] = {}

    def note(self, value: Op, group: FusionGroup) -> None:
        """Let what else reads a value find a group that does."""
        readers = self.readers.setdefault(value, deque(maxlen=RECENT))
        if len(value.axes) and group not in readers:
            readers.append(group)

    def of(self, op: Op, users: list[FusionGroup]) -> list[FusionGroup]:
        """Nests beside ``op`` that read what it reads, by how much of it."""
        shared: dict[FusionGroup, int] = {}
        for value in self.sources(op):
            for group in self.readers.get(value, ()):
                shared[group] = shared.get(group, 0) + 1
        fitting = [g for g in shared if all(g.level < user.level for user in users)]
        fitting = [g for g in fitting if g.kind == "nest" and not full(op, g)]
        fitting = [g for g in fitting if same_lengths(op, g)]
        return sorted(fitting, key=lambda group: -shared[group])

    def sources(self, op: Op) -> list[Op]:
        """The values nearest below ``op`` that have all axes its loops go over."""
        axes = {name for arg in op.args for name in self.spanned(arg)}
        found: dict[Op, None] = {}
        queue = deque(op.args)
        while queue and len(found) < NEAR:
            arg = self.state.below_views(queue.popleft())
            if len(arg.axes) < len(axes) or arg in found:
                continue
            found[arg] = None
            if not is_bound(arg) and arg.primitive.kind == "elementwise":
                queue += arg.args
        return list(found)

    def spanned(self, op: Op) -> set[str]:
        """The axes of what an op shows: windows of an axis go over that axis alone."""
        names = set(op.axes.names)
        below = self.state.below_views(op)
        while op is not below:
            if is_of(op, "window"):
                names.discard(op.attrs[1].name)
            op = op.args[0]
        return names
