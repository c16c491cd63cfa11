"""What the reverse of a scan reads of the steps of the scan: few bytes, and nothing dear again.

What a step computes can be kept in a stack, or be computed again from what is. Products and
reductions are kept, or what is made of them is: of all the ways to keep enough, the one of fewest
bytes, which is a least cut between what has to be kept and what is read.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping, Sequence, Set

from ..lengths import Length, evaluate, names_of, product
from ..op_graph import Op, RegionOp, post_order

DEEP = 32  # from so many terms on, a product takes longer than to store and load what it gives
NOMINAL = 64  # what an open length counts as
BOUNDLESS = 1 << 62


def kept_of(results: Sequence[Op], moving: Iterable[Op], read: Set[Op]) -> list[Op]:
    """What is to be kept of ``results`` and what is below, for whoever reads the ops in ``read``.

    ``moving`` are the leaves that differ from step to step: what these are is not among what is
    found, nor is anything where nothing dear is read.
    """
    order = post_order(results)
    moves = set(moving)
    leaves = set(moves)
    for op in order:
        if any(arg in moves for arg in op.args):
            moves.add(op)
    order = [op for op in order if op in moves]
    needed = _below(read, moves, leaves)
    dear = [op for op in order if op in needed and is_dear(op)]
    if not dear:
        return []
    cut = _Cut([op for op in order if op in needed], {*dear, *leaves}, read)
    return [op for op in cut.found() if op not in leaves]


def is_dear(op: Op) -> bool:
    """Whether an op takes longer to compute again than to be stored and loaded."""
    row = op.primitive
    if row.name == "dot":
        depth = product(op.args[0].axes[name].expression for name in op.attrs[0])
        return _about(depth) >= DEEP
    return row.kind == "reduction"


def _about(size: int | Length) -> int:
    return int(evaluate(size, dict.fromkeys(names_of(size), NOMINAL)))


def _bytes(op: Op) -> int:
    """What it takes to keep an op; regions have no value that could be kept."""
    if isinstance(op, RegionOp):
        return BOUNDLESS
    return max(_about(op.axes.size) * op.dtype.itemsize, 1)


def _below(read: Set[Op], moves: Set[Op], leaves: Set[Op]) -> set[Op]:
    """What is read, and all that moves of what it is made of, as far as dear ops and leaves."""
    found: set[Op] = set()
    stack = [op for op in read if op in moves]
    while stack:
        op = stack.pop()
        if op in found:
            continue
        found.add(op)
        if op not in leaves and not is_dear(op):
            stack += [arg for arg in op.args if arg in moves]
    return found


class _Cut:
    """The least cut between ``sources`` and what is read, of those nearest to what is read.

    Each op is an edge from its entry to its exit, as wide as the bytes of its value: the largest
    flow is found along shortest paths, one after the other.
    """

    def __init__(self, order: Sequence[Op], sources: Set[Op], read: Set[Op]) -> None:
        self.order = order
        self.number = {op: k for k, op in enumerate(order)}
        self.start, self.end = 2 * len(order), 2 * len(order) + 1
        self.room: list[dict[int, int]] = [{} for _ in range(2 * len(order) + 2)]
        for op, k in self.number.items():
            self.edge(2 * k, 2 * k + 1, _bytes(op))
            if op in sources:
                self.edge(self.start, 2 * k, BOUNDLESS)
            else:
                for arg in op.args:
                    if arg in self.number:
                        self.edge(2 * self.number[arg] + 1, 2 * k, BOUNDLESS)
            if op in read:
                self.edge(2 * k + 1, self.end, BOUNDLESS)

    def edge(self, one: int, other: int, room: int) -> None:
        self.room[one][other] = room
        self.room[other].setdefault(one, 0)

    def found(self) -> list[Op]:
        """The ops that are cut, in order."""
        while self.more():
            pass
        reaches = self.before_end()
        return [op for op, k in self.number.items()
                if 2 * k + 1 in reaches and 2 * k not in reaches]  # fmt: skip

    def more(self) -> bool:
        """Let more flow along a shortest path, if there is one."""
        came: dict[int, int] = {self.start: self.start}
        queue = deque([self.start])
        while queue and self.end not in came:
            node = queue.popleft()
            for other, room in self.room[node].items():
                if room > 0 and other not in came:
                    came[other] = node
                    queue.append(other)
        if self.end not in came:
            return False
        path = _path(came, self.end)
        least = min(self.room[one][other] for one, other in path)
        for one, other in path:
            self.room[one][other] -= least
            self.room[other][one] += least
        return True

    def before_end(self) -> set[int]:
        """The nodes from which more could flow to the end."""
        found, stack = {self.end}, [self.end]
        while stack:
            node = stack.pop()
            for other in self.room[node]:
                if other not in found and self.room[other].get(node, 0) > 0:
                    found.add(other)
                    stack.append(other)
        return found


def _path(came: Mapping[int, int], node: int) -> list[tuple[int, int]]:
    """The edges of the path on which a node was come to, the last one first."""
    found = []
    while came[node] != node:
        found.append((came[node], node))
        node = came[node]
    return found
