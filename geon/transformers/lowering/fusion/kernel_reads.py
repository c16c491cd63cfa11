"""Values that a fused kernel reads, the pass of each read, and the values it may overwrite."""

from __future__ import annotations

from collections.abc import Mapping

from ....op_graph.core.traversal import is_bound
from ....op_graph.op_graph import Leaf, Op
from ....op_graph.rows.slicing import below_renames, is_updated_part
from ...kernels.nests.inlining import element_arguments
from ...kernels.nests.nest_outputs import first_pass
from .fusion_groups import same_places
from .fusion_state import FusionGroup
from .layout import LaidOut


class KernelReads:
    """The values that a group reads from memory, with the pass of each read."""

    def __init__(
        self, laid_out: LaidOut, stored: Mapping[Op, FusionGroup], group: FusionGroup
    ) -> None:
        self.laid_out, self.stored, self.group = laid_out, stored, group
        self.results = set(group.results)
        self.reads: dict[Op, None] = {}
        self.needs: dict[Op, None] = {}
        self.loose: set[Op] = set()  # values read at other indices than their own
        self.passes: dict[Op, int] = {}
        self.reductions = set(group.reductions)
        # Loads below each op: of ops read at other indices than their own, and at their own.
        self.seen: tuple[dict[Op, frozenset[Op]], dict[Op, frozenset[Op]]] = ({}, {})
        self.last: dict[Op, list[tuple[int, frozenset[str]]]] = {}

    def outside(self, op: Op) -> bool:
        """Return True if ``op`` is read from memory."""
        if isinstance(op, Leaf) or (is_bound(op) and len(op.axes)):
            return True
        return op in self.stored and op not in self.results and not op.primitive.has_side_effect

    def walk(self, result: Op) -> None:
        """Record everything that ``result`` reads."""
        for op in [*(r for r in self.group.reductions), result]:
            first_pass(op, self.passes, self.outside, self.reductions)
        for op in [*self.group.reductions, result]:
            below = op.args if op in self.reductions or op is self.group.dot else (op,)
            level = max((self.passes.get(arg, 0) for arg in below), default=0)
            shape = frozenset(n for arg in below for n in arg.axes.names)
            for arg in below:
                aligned = op is not self.group.dot and op.primitive.name != "dot"
                for value in self.below(arg, aligned):
                    self.last.setdefault(value, []).append((level, shape))

    def below(self, root: Op, aligned: bool) -> frozenset[Op]:
        """Return the values in memory that ``root`` reads in its pass."""
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
            args = element_arguments(op)
            if op.primitive.has_side_effect:
                self.needs[op] = None
            kept = [exact and self.keeps(op, k) for k in range(len(args))]
            if op.primitive.name == "slice" and kept[0]:
                args = (below_renames(args[0]), *args[1:])
            if not ready:
                stack.append((op, exact, True))
                stack += [(arg, keeps, False) for arg, keeps in zip(args, kept, strict=True)]
                continue
            below = [self.seen[keeps][arg] for arg, keeps in zip(args, kept, strict=True)]
            seen[op] = frozenset().union(*below)
        return self.seen[aligned][root]

    def keeps(self, op: Op, number: int) -> bool:
        """Return True if an op at the place that is stored reads its argument at that place."""
        name, main = op.primitive.name, self.group.results[0]
        if name == "update":
            return op is main and number < 2
        if name == "slice":
            return number == 0 and main.primitive.name == "update" and is_updated_part(op, main)
        if name == "dot":
            return False
        return (
            name in ("broadcast", "reorder", "copy")
            or op.primitive.kind == "elementwise"
            or op in self.reductions
            or op.primitive.has_side_effect
        )

    def in_place(self, result: Op) -> tuple[Op, ...]:
        """Return the values whose memory ``result`` may overwrite: each element is read before.

        A pass loads everything of an element before it stores, and so do the stores of a row
        between two passes. Among passes of one level, those that store come last.
        """
        level = self.passes[result]
        # Reduction results are stored before the next pass starts, others within their pass.
        alone = result not in self.reductions and self.is_one_pass(result)
        own = frozenset(result.axes.names) if alone else None
        found = []
        updates = result.primitive.name == "update"
        for value in self.reads:
            if updates and value is not self.laid_out.base[result.args[0]]:
                continue  # the rest of the whole is copied over it first
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
        """Return True if one pass stores all results with the axes and level of ``result``.

        In a group with rows, results with another memory order have a pass of their own.
        """
        if self.group.rows is None:
            return True
        beside = [
            op
            for op in self.results - self.reductions
            if self.passes[op] == self.passes[result] and op.axes.same_set(result.axes)
        ]
        return len({self.loops(op) for op in beside}) == 1

    def loops(self, op: Op) -> tuple[str, ...]:
        """Return the axes of the pass that stores ``op``, in memory order."""
        rows = self.group.rows or frozenset()
        return tuple([n for n in self.laid_out.layouts[op].order if n not in rows])
