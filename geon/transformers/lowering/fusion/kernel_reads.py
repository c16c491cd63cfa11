"""What a fused kernel reads from memory, in which of its passes, and what it may overwrite."""

from __future__ import annotations

from collections.abc import Mapping

from ....op_graph.core.traversal import is_bound
from ....op_graph.op_graph import Leaf, Op
from ...kernels.nests.inlining import passed
from .fusion_group import FusionGroup
from .fusion_groups import same_places
from .layout import LaidOut


class Reading:
    """What a group reads from memory, and in which pass."""

    def __init__(
        self, laid_out: LaidOut, stored: Mapping[Op, FusionGroup], group: FusionGroup
    ) -> None:
        self.laid_out, self.stored, self.group = laid_out, stored, group
        self.results = set(group.results)
        self.reads: dict[Op, None] = {}
        self.needs: dict[Op, None] = {}
        self.loose: set[Op] = set()  # read at other indices than its own
        self.passes: dict[Op, int] = {}
        self.reductions = set(group.reductions)
        # What is below each op that is read at other indices than its own, and at its own.
        self.seen: tuple[dict[Op, frozenset[Op]], dict[Op, frozenset[Op]]] = ({}, {})
        self.last: dict[Op, list[tuple[int, frozenset[str]]]] = {}

    def outside(self, op: Op) -> bool:
        """Whether ``op`` is read from memory."""
        if isinstance(op, Leaf) or (is_bound(op) and len(op.axes)):
            return True
        return op in self.stored and op not in self.results and not op.primitive.acts

    def walk(self, result: Op) -> None:
        """Note all that ``result`` reads."""
        for op in [*(r for r in self.group.reductions), result]:
            self.find_pass(op)
        for op in [*self.group.reductions, result]:
            below = op.args if op in self.reductions or op is self.group.dot else (op,)
            level = max((self.passes.get(arg, 0) for arg in below), default=0)
            shape = frozenset(n for arg in below for n in arg.axes.names)
            for arg in below:
                aligned = op is not self.group.dot and op.primitive.name != "dot"
                for value in self.below(arg, aligned):
                    self.last.setdefault(value, []).append((level, shape))

    def find_pass(self, root: Op) -> None:
        """The pass in which each op can be computed: one after those of the reductions it reads."""
        stack = [(root, False)]
        while stack:
            op, ready = stack.pop()
            if op in self.passes:
                continue
            if self.outside(op):
                self.passes[op] = 0
                continue
            if not ready:
                stack.append((op, True))
                stack += [(arg, False) for arg in op.args]
                continue
            level = max((self.passes[arg] for arg in op.args), default=0)
            self.passes[op] = level + (op in self.reductions)

    def below(self, root: Op, aligned: bool) -> frozenset[Op]:
        """The values in memory that computing ``root`` reads in its pass."""
        stack = [(root, aligned, False)]
        while stack:
            op, exact, ready = stack.pop()
            seen = self.seen[exact]
            if op in seen:
                continue
            if self.outside(op):
                self.reads[op] = None
                if not exact:
                    self.loose.add(op)
                seen[op] = frozenset((op,))
                continue
            if op in self.reductions and op is not root:
                seen[op] = frozenset()
                continue
            name = op.primitive.name
            args = passed(op)
            if op.primitive.acts:
                self.needs[op] = None
            keeps = exact and (
                name in ("broadcast", "reorder", "copy")
                or op.primitive.kind == "elementwise"
                or op in self.reductions
                or op.primitive.acts
            )
            if op.primitive.name == "dot":
                keeps = False
            if not ready:
                stack.append((op, exact, True))
                stack += [(arg, keeps, False) for arg in args]
                continue
            seen[op] = frozenset().union(*(self.seen[keeps][arg] for arg in args))
        return self.seen[aligned][root]

    def in_place(self, result: Op) -> tuple[Op, ...]:
        """The values whose memory may hold ``result``: each read before its place is written.

        A pass reads all of an element before it stores, and so do the stores of a row between two
        passes; of the passes of one level, the one that stores comes last.
        """
        level = self.passes[result]
        # What is reduced is stored before the next pass begins, all else in its own.
        alone = result not in self.reductions and self.is_one_pass(result)
        own = frozenset(result.axes.names) if alone else None
        found = []
        for value in self.reads:
            if is_bound(value) and not isinstance(value, Leaf):
                continue
            if value in self.loose or value.dtype is not result.dtype:
                continue
            if not value.axes.same_set(result.axes):
                continue
            late = self.last.get(value, [])
            before = all(k < level or (k == level and names == own) for k, names in late)
            if before and same_places(self.laid_out, value, result):
                found.append(value)
        return tuple(found)

    def is_one_pass(self, result: Op) -> bool:
        """Whether one pass stores all results that have a result's axes and level: those that lie
        in another order in memory have a pass of their own, but where there are no rows."""
        if self.group.rows is None:
            return True
        beside = [
            op
            for op in self.results - self.reductions
            if self.passes[op] == self.passes[result] and op.axes.same_set(result.axes)
        ]
        return len({self.loops(op) for op in beside}) == 1

    def loops(self, op: Op) -> tuple[str, ...]:
        """The axes that the pass which stores ``op`` goes over, in the order of memory."""
        rows = self.group.rows or frozenset()
        return tuple([n for n in self.laid_out.layouts[op].order if n not in rows])
