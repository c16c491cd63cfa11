"""Merging of kernels that greedy fusion left separate, if the predicted time falls.

Greedy fusion places an op with one of its users before it knows the others, so an op that two
kernels read is a kernel of its own. Merging tries each nest with the readers of its results, and
compares the predicted times of both and of the merged kernel.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import field, replace
from functools import partial

from ....lazy_dataclasses import dataclass
from ....op_graph.op_graph import Op, among
from ...kernels.costs.machine import Machine
from ...kernels.costs.roofline import predict
from ...kernels.nests.inlining import OperandInliner
from ...sizes.limits import MAX_FUNCTION_NODES, MAX_SEARCHED
from .fusion_groups import Apart, is_region_result
from .fusion_state import FusionGroup, FusionState
from .kernel_reads import KernelReads
from .layout import LaidOut
from .legality import Nominal, small_rows


def merge_nests(state: FusionState, first: FusionGroup, then: FusionGroup) -> FusionGroup | str:
    """Return a nest that computes what two nests do, or the reason why that is impossible."""
    if first.kind != "nest" or then.kind != "nest":
        return f"one is a {then.kind if first.kind == 'nest' else first.kind}"
    if first.statements + then.statements > MAX_FUNCTION_NODES:
        return "the body would be too long"
    if any(then.extents.get(n, size) != size for n, size in first.extents.items()):
        return "their loops are of other lengths"
    read = [op for op in first.results if state.within(state.uses.get(op, []), then)]
    if not all(state.straight(u, then) for op in read for u in state.within(state.uses[op], then)):
        return "elements are read at other indices than they are computed at"
    rows = common_rows(state, first, then, read)
    if isinstance(rows, str):
        return rows
    others = [op for op in first.results if state.is_read_besides(op, then)]
    return replace(
        then,
        level=min(first.level, then.level),
        results=[*others, *then.results],
        reductions=list(dict.fromkeys([*first.reductions, *then.reductions])),
        inner=first.inner | then.inner,
        rows=rows,
        statements=first.statements + then.statements,
        extents={**first.extents, **then.extents},
        reindexed=first.reindexed | then.reindexed,
        widened=set(),
    )


def common_rows(
    state: FusionState, first: FusionGroup, then: FusionGroup, read: list[Op]
) -> frozenset[str] | None | str:
    """Return the rows that the passes of two nests would share, or why they share none."""
    rows = then.rows if first.rows is None else first.rows
    if then.rows is not None and then.rows != rows:
        return "their rows are other axes"
    orders = [state.laid_out.layouts[op].order for op in (*first.results, *then.results)]
    if rows is None:
        same = all(order == orders[0] for order in orders)
        return None if same else "their results lie in other orders in memory"
    if not all(set(order[: len(rows)]) == rows for order in orders):
        return "rows of one are no rows of the other"
    found = [*first.reductions, *then.reductions]
    if rows:
        return (
            rows if all(small_rows(op, state.laid_out) for op in found) else "rows are few or long"
        )
    summed = any(among(op, first.reductions) for op in read)
    return "elements need a sum of all of them" if summed and any(orders) else rows


# Maximum kernels visited by a search for a path between two.
MAX_SEARCHED_KERNELS = 4 * MAX_SEARCHED


@dataclass(eq=False, slots=True)
class Edges:
    """The kernels that a kernel reads from, and those that read from it."""

    before: dict[FusionGroup, None] = field(default_factory=dict)
    after: dict[FusionGroup, None] = field(default_factory=dict)


class Merging:
    """Merges nests with readers of their results while the predicted time falls."""

    def __init__(self, state: FusionState, machine: Machine, groups: Iterable[FusionGroup]) -> None:
        self.state, self.machine = state, machine
        self.edges = {group: Edges() for group in groups}
        self.reads: dict[FusionGroup, tuple[Op, ...]] = {}
        self.seconds: dict[FusionGroup, float] = {}
        self.apart: dict[FusionGroup, list[Apart]] = {}
        for group in self.edges:
            self.connect(group)

    def run(self, groups: Iterable[FusionGroup] | None = None) -> list[FusionGroup]:
        """Return the remaining groups, after trying ``groups``, or all, with their readers."""
        waiting = list(self.edges if groups is None else groups)
        while waiting:
            group = waiting.pop()
            if group in self.edges and group.kind == "nest":
                merged = self.merged(group)
                waiting += [merged] if merged is not None else []
        return list(self.edges)

    def exchange(self, old: tuple[FusionGroup, ...], new: tuple[FusionGroup, ...]) -> None:
        """Replace kernels by others with different reads."""
        around = {group: None for part in old for group in self.taken_out(part).after}
        self.state.exchange(old, new)
        self.edges.update((group, Edges()) for group in new)
        for group in (*new, *around):
            if group in self.edges:
                self.connect(group)

    def taken_out(self, part: FusionGroup) -> Edges:
        """Remove a kernel, and return its edges."""
        edges = self.edges.pop(part)
        for other in edges.before:
            self.edges.get(other, edges).after.pop(part, None)
        for other in edges.after:
            self.edges.get(other, edges).before.pop(part, None)
        return edges

    def merged(self, group: FusionGroup) -> FusionGroup | None:
        """Merge a group with the reader that saves most time; return the result, or None."""
        best: tuple[float, FusionGroup, FusionGroup] | None = None
        reasons = []
        for reader in self.edges[group].after:
            both = merge_nests(self.state, group, reader)
            if isinstance(both, FusionGroup) and self.is_between(group, reader):
                both = "another kernel comes between them"
            if isinstance(both, str):
                reasons.append(Apart(reader.results[0], both))
                continue
            more = self.time(both) - self.time(group) - self.time(reader)
            if more >= 0:
                reasons.append(Apart(reader.results[0], "one kernel would take longer", more))
            elif best is None or more < best[0]:
                best = more, both, reader
        self.apart[group] = reasons
        if best is None:
            return None
        _, both, reader = best
        self.install(both, group, reader)
        return both

    def time(self, group: FusionGroup) -> float:
        """Return the predicted seconds of a group on one thread."""
        if group not in self.seconds:
            laid_out = self.state.laid_out
            computed = partial(is_stored, stored=self.state.stored_by, group=group)
            operands = OperandInliner(laid_out.layouts, laid_out.base, group.results, computed)
            work = laid_out.lowering.lower(group.results[0], group.fused, operands)
            self.seconds[group] = predict(work, Nominal(), self.machine).seconds
        return self.seconds[group]

    # Edges --------------------------------------------------------------------------------------

    def connect(self, group: FusionGroup) -> None:
        """Record the edges of the values that a group reads."""
        laid_out, stored = self.state.laid_out, self.state.stored_by
        if group.kind == "call":
            made = [op.args[0] if is_region_result(op) else op for op in group.results]
            reads = {}
            for arg in (arg for op in made for arg in op.args):
                reads.update(dict.fromkeys((laid_out.base[arg], *acting(laid_out, arg))))
        else:
            reading = KernelReads(laid_out, stored, group)
            for op in group.results:
                reading.walk(op)
            reads = {**reading.reads, **reading.needs}
        for value in reads:
            maker = stored.get(value)
            if maker is not None and maker is not group:
                self.edges[group].before[maker] = None
                self.edges[maker].after[group] = None

    def install(self, both: FusionGroup, *parts: FusionGroup) -> None:
        """Replace several groups by one."""
        edges = Edges()
        for part in parts:
            old = self.taken_out(part)
            edges.before.update(old.before)
            edges.after.update(old.after)
        for part in parts:
            edges.before.pop(part, None)
            edges.after.pop(part, None)
        for other in edges.before:
            self.edges[other].after[both] = None
        for other in edges.after:
            self.edges[other].before[both] = None
        self.edges[both] = edges
        self.state.exchange(parts, (both,))

    def is_between(self, first: FusionGroup, then: FusionGroup) -> bool:
        """Return True if a third kernel lies between two, or the bounded search cannot tell."""
        found = self.reaches([g for g in self.edges[first].after if g is not then], then, True)
        if found is None:
            found = self.reaches(
                [g for g in self.edges[then].before if g is not first], first, False
            )
        return found is not False

    def reaches(self, stack: list[FusionGroup], goal: FusionGroup, forward: bool) -> bool | None:
        """Return True if a path leads from ``stack`` to ``goal``; None if the search is cut off."""
        seen = set(stack)
        while stack:
            edges = self.edges[stack.pop()]
            for group in edges.after if forward else edges.before:
                if group is goal:
                    return True
                if group not in seen:
                    seen.add(group)
                    stack.append(group)
            if len(seen) > MAX_SEARCHED_KERNELS:
                return None
        return False


def acting(laid_out: LaidOut, op: Op) -> Iterator[Op]:
    """Yield the ops with side effects between ``op`` and the memory that it views."""
    while laid_out.base[op] is not op:
        if op.primitive.has_side_effect:
            yield op
        op = op.args[0]


def is_stored(op: Op, stored: Mapping[Op, FusionGroup], group: FusionGroup) -> bool:
    """Return True if some kernel stores ``op``, given that ``group`` is one of the kernels."""
    return op in stored and (op not in group.inner or among(op, group.results))
