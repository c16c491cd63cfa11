"""Horizontal fusion: finds nests that read the same values as an op and may compute it too."""

from __future__ import annotations

from collections import deque

from ....op_graph.core.traversal import is_bound
from ....op_graph.op_graph import Op
from ....op_graph.rewriting.matching import is_of
from ...sizes.limits import MAX_CANDIDATES, MAX_SEARCHED
from .fusion_state import FusionGroup, FusionState
from .legality import full, same_lengths


class Siblings:
    """The last groups that read each value, at most ``MAX_CANDIDATES``, which another may join."""

    def __init__(self, state: FusionState) -> None:
        self.state = state
        self.readers: dict[Op, deque[FusionGroup]] = {}

    def note(self, value: Op, group: FusionGroup) -> None:
        """Record that a group reads a value."""
        readers = self.readers.setdefault(value, deque(maxlen=MAX_CANDIDATES))
        if len(value.axes) and group not in readers:
            readers.append(group)

    def of(self, op: Op, users: list[FusionGroup]) -> list[FusionGroup]:
        """Return the nests that share inputs with ``op``, those with most shared inputs first."""
        shared: dict[FusionGroup, int] = {}
        for value in self.sources(op):
            for group in self.readers.get(value, ()):
                shared[group] = shared.get(group, 0) + 1
        fitting = [g for g in shared if all(g.level < user.level for user in users)]
        fitting = [g for g in fitting if g.kind == "nest" and not full(op, g)]
        fitting = [g for g in fitting if same_lengths(op, g)]
        return sorted(fitting, key=lambda group: -shared[group])

    def sources(self, op: Op) -> list[Op]:
        """Return the nearest values below ``op`` that have all axes of its loops."""
        axes = {name for arg in op.args for name in self.spanned(arg)}
        found: dict[Op, None] = {}
        queue = deque(op.args)
        while queue and len(found) < MAX_SEARCHED:
            arg = self.state.below_views(queue.popleft())
            if len(arg.axes) < len(axes) or arg in found:
                continue
            found[arg] = None
            if not is_bound(arg) and arg.primitive.kind == "elementwise":
                queue += arg.args
        return list(found)

    def spanned(self, op: Op) -> set[str]:
        """Return the axes of the value that an op views; a window spans the axis that it views."""
        names = set(op.axes.names)
        below = self.state.below_views(op)
        while op is not below:
            if is_of(op, "window"):
                names.discard(op.attrs.window.name)
            op = op.args[0]
        return names
