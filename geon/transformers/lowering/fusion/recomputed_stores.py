"""Recomputation of stored values in their readers, where memory traffic costs more.

Greedy fusion repeats cheap ops regardless of memory traffic. Here each large result of a nest that
is no result of the program is tried without a store, by the predicted times of its kernel and its
readers.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from ....op_graph.axes.lengths import evaluate
from ....op_graph.core.traversal import reachable
from ....op_graph.op_graph import Op, among
from ...sizes.blocks import L2_BYTES
from ...sizes.limits import MAX_FUNCTION_NODES
from .fusion_state import FusionGroup
from .legality import Nominal
from .merging import Merging
from .op_facts import statements

MIN_RECOMPUTED_BYTES = L2_BYTES  # minimum bytes of a result whose store may cost more than that


def recompute(merging: Merging) -> list[FusionGroup]:
    """Remove stores and loads while the predicted time falls; return the changed kernels."""
    return _Recomputing(merging).run()


class _Recomputing:
    def __init__(self, merging: Merging) -> None:
        self.merging, self.state = merging, merging.state

    def run(self) -> list[FusionGroup]:
        """Return the changed kernels."""
        changed: dict[FusionGroup, None] = {}
        for group in list(self.merging.edges):
            for op in list(group.results):
                maker = self.state.stored_by.get(op)
                if maker is not None and self.may_be_left_out(op, maker):
                    changed.update(dict.fromkeys(self.without(op, maker)))
        return [group for group in changed if group in self.merging.edges]

    def may_be_left_out(self, op: Op, maker: FusionGroup) -> bool:
        """Return True if the readers of a nest's result could compute it.

        It must be elementwise, large, and no result of the program, and loops must read it.
        """
        if maker.kind != "nest" or maker.reductions or op in self.state.required:
            return False
        if evaluate(op.axes.size, Nominal()) * op.dtype.itemsize < MIN_RECOMPUTED_BYTES:
            return False
        uses = self.state.uses.get(op, [])
        readers = [g for g in self.state.users(uses) if g is not maker]
        loops = all(g.kind == "nest" and g.dot is None for g in readers)
        return bool(readers) and loops and not any(u.shown or self.state.operand(u) for u in uses)

    def without(self, op: Op, maker: FusionGroup) -> list[FusionGroup]:
        """Compute a result in its readers if that is faster; return the new kernels."""
        state, merging = self.state, self.merging
        readers = [g for g in state.users(state.uses[op]) if g is not maker]
        below = self.computed(maker, [op])
        taken = [self.with_more(reader, op, below) for reader in readers]
        if any(reader.statements > MAX_FUNCTION_NODES for reader in taken):
            return []
        kept = [result for result in maker.results if result is not op]
        left = [self.of_results(maker, kept)] if kept else []
        before = sum(map(merging.time, (maker, *readers)))
        del state.stored_by[op]
        after = sum(map(merging.time, (*left, *taken)))
        state.stored_by[op] = maker
        if after >= before:
            return []
        merging.exchange((maker, *readers), (*left, *taken))
        return [*left, *taken]

    def computed(self, maker: FusionGroup, roots: Iterable[Op]) -> set[Op]:
        """Return ``roots`` and the ops that a kernel computes for them without storing them."""

        def below(op: Op) -> list[Op]:
            args = map(self.state.below_views, op.args)
            return [x for x in args if x in maker.inner and not among(x, maker.results)]

        return set(reachable(roots, below))

    def with_more(self, reader: FusionGroup, op: Op, below: set[Op]) -> FusionGroup:
        """Return a reader that computes ``op`` for each of its uses."""
        uses = self.state.within(self.state.uses[op], reader)
        straight = all(self.state.straight(use, reader) for use in uses)
        return replace(
            reader,
            inner=reader.inner | below,
            statements=reader.statements + len(uses) * sum(map(statements, below)),
            reindexed=reader.reindexed | (set() if straight else below),
        )

    def of_results(self, maker: FusionGroup, results: list[Op]) -> FusionGroup:
        """Return a kernel of only these results."""
        inner = self.computed(maker, results)
        return replace(
            maker,
            results=results,
            inner=inner,
            statements=sum(map(statements, inner)),
            reindexed=maker.reindexed & inner,
            widened=maker.widened & inner,
        )
