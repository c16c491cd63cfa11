"""Greedy fusion: visits ops from the results backwards.

Each op joins the kernel of one of its users if that saves memory traffic, or starts a kernel. Every
kernel has a level, lower than those of all kernels that read from it. An op joins a kernel only if
that still holds, so there are no cycles.
"""

from __future__ import annotations

from collections.abc import Callable

from ....op_graph.axes.lengths import Length
from ....op_graph.core.traversal import is_bound
from ....op_graph.op_graph import Op, RegionOp
from ...kernels.ir.nest import Fused
from ...kernels.nests.inlining import inspected_values
from ..facts.target import Target
from .chain_fusion import by_blocks
from .duplication import Repeats
from .fusion_groups import (
    Apart,
    Group,
    is_region_result,
    region_group,
    region_results,
    single,
)
from .fusion_state import FusionGroup, FusionState, Use
from .horizontal_fusion import Siblings
from .kernel_reads import KernelReads
from .layout import LaidOut, is_choice
from .legality import Fit, Fits
from .merging import Merging
from .op_facts import is_product, is_view, loop_axes, reduces, shows, statements
from .recomputed_stores import recompute


def fusion_groups(laid_out: LaidOut, target: Target, ops: list[Op], check: bool) -> list[Group]:
    """Return the kernels of a program: ``Target.group`` of targets whose loops run on CPUs."""
    groups = loop_groups(laid_out, target, ops, check)
    return groups if check or len(ops) == 1 else by_blocks(laid_out, groups, ops)


def loop_groups(laid_out: LaidOut, target: Target, ops: list[Op], check: bool) -> list[Group]:
    """Return the kernels without chain fusion, for targets whose kernels each process all rows."""
    return _Fusion(laid_out, target, ops, check).run()


class _Fusion:
    def __init__(self, laid_out: LaidOut, target: Target, ops: list[Op], check: bool) -> None:
        self.laid_out, self.target, self.ops = laid_out, target, ops
        self.apart = check or len(ops) == 1
        self.state = FusionState(laid_out)
        self.fits, self.repeats = Fits(self.state), Repeats(self.state)
        self.siblings = Siblings(self.state)
        self.groups: list[FusionGroup] = []
        self.results = region_results(ops)
        self.reasons: dict[FusionGroup, list[Apart]] = {}
        if len(ops) == 1:  # a copy added by the schedule, whose source is in memory
            stored = FusionGroup("call", 0)
            self.state.stored_by.update((laid_out.base[arg], stored) for arg in ops[0].args)

    def run(self) -> list[Group]:
        """Return the groups, producers before users."""
        if not self.apart:
            for op in self.ops:
                self.repeats.measure(op)
        for op in reversed(self.ops):
            if not is_bound(op):
                self.visit(op)
        if self.target.model is not None and not self.apart:
            merging = Merging(self.state, self.target.model, self.groups)
            merging.run()
            merging.run(recompute(merging))
            self.reasons = merging.apart
        acted: dict[Op, tuple[Op, ...]] = {}
        made = []
        for op in self.ops:
            group = self.state.stored_by.get(op)
            if isinstance(op, RegionOp):
                fused = Fused("call")
                made.append(region_group(self.laid_out, op, self.results[op], acted, fused))
                continue
            if group is None or is_region_result(op):
                continue
            if group.kind == "call":
                fused = Fused("call")
                made.append(single(self.laid_out, self.target, op, acted, fused))
            elif op is group.results[0]:
                made.append(self.made(group))
        return made

    def visit(self, op: Op) -> None:
        """Place an op in a group, according to its kind."""
        uses = self.state.uses.get(op, [])
        name = op.primitive.name
        if is_region_result(op):
            return  # its region computes it
        if isinstance(op, RegionOp):
            self.region(op)
            return
        if is_view(self.laid_out, op):
            if op in self.state.required:
                self.state.require(self.laid_out.base[op])
            self.pass_through(op, uses)
            return
        if op.primitive.has_side_effect:
            self.library(op, uses)
            for arg in inspected_values(op):
                self.state.pass_on(arg, [Use(op, True, False)])
            # A value that is inspected and used is stored, so that it is computed once.
            self.state.require(self.laid_out.base[op.args[0]])
            self.state.pass_on(op.args[0], uses)
            return
        if op.primitive.cost == "kernel" and not is_choice(op) and not reduces(op):
            (self.update if name == "update" else self.library)(op, uses)
            return
        if name == "dot" and is_product(op):
            self.contraction(op, uses)
        elif reduces(op) or name == "dot":
            self.reduction(op, uses)
        else:
            self.elementwise(op, uses)
        self.spread_uses(op)

    def pass_through(self, op: Op, uses: list[Use]) -> None:
        """Pass the uses of a view on to its argument."""
        name, arg = op.primitive.name, op.args[0]
        identity = name in ("broadcast", "reorder")
        added: set[int | Length] = set()
        if name == "broadcast":
            added = {axis.expression for axis in op.axes if axis.name not in arg.axes.names}
        names: tuple[tuple[str, str], ...] = ()
        if name == "rename":
            names = tuple(zip(arg.axes.names, op.axes.names, strict=True))
        for u in uses:
            # A part of a concatenation that is broadcast along an axis of length 1 is not repeated.
            wider = bool(added) and (u.op.primitive.name != "concat" or added != {1})
            renamed = names if u.identity and not u.broadcasts else ()
            shown = u.shown or shows(op)
            self.state.pass_on(
                arg, [Use(u.op, u.identity and identity, u.broadcasts or wider, renamed, shown)]
            )
        for position in op.args[1:]:
            self.state.pass_on(position, [Use(u.op, True, True) for u in uses])

    def spread_uses(self, op: Op) -> None:
        """Record the uses that ``op`` makes of its arguments."""
        name = op.primitive.name
        free = op.primitive.index_map is not None
        for k, arg in enumerate(op.args):
            identity = not free or not len(arg.axes)
            if name == "gather" and k == 1:
                identity = False
            broadcasts = name == "dot" or len(arg.axes) < len(op.axes)
            if reduces(op) or name == "concat":  # each element of a part is needed once
                broadcasts = False
            self.state.pass_on(arg, [Use(op, identity, broadcasts, shown=shows(op))])

    def begin(self, op: Op, kind: str, uses: list[Use]) -> FusionGroup:
        """Return a new group for ``op``."""
        group = FusionGroup(kind, self.state.level_below(uses), collapsed=self.target.collapsed)
        self.groups.append(group)
        self.enter(op, group, True)
        return group

    def enter(self, op: Op, group: FusionGroup, result: bool) -> None:
        """Add ``op`` to a group, which stores it if it is a ``result``."""
        group.inner.add(op)
        inside = self.state.within(self.state.uses.get(op, []), group)
        if not all(self.state.straight(use, group) for use in inside):
            group.reindexed.add(op)
        if any(use.broadcasts or use.op in group.widened for use in inside):
            group.widened.add(op)
        group.statements += statements(op)
        for axis in loop_axes(op):
            group.extents.setdefault(axis.name, axis.expression)
        for arg in () if self.apart else op.args:
            self.siblings.note(self.state.below_views(arg), group)
        self.state.computed_in.setdefault(op, []).append(group)
        if result:
            group.results.append(op)
            self.state.stored_by[op] = group

    def library(self, op: Op, uses: list[Use]) -> None:
        """Start a library call, which reads its arguments from memory."""
        group = self.begin(op, "call", uses)
        for arg in inspected_values(op) if op.primitive.has_side_effect else op.args:
            self.state.require(self.laid_out.base[arg])
            if not op.primitive.has_side_effect:
                self.state.pass_on(arg, [Use(op, False, False)])
        group.results = [op]

    def update(self, op: Op, uses: list[Use]) -> None:
        """Start a kernel that stores a part of a value, and may compute what it stores."""
        self.begin(op, "update", uses)
        for k, arg in enumerate(op.args):
            if k != 1:
                self.state.require(self.laid_out.base[arg])
            self.state.pass_on(arg, [Use(op, k == 1, False)])

    def region(self, op: RegionOp) -> None:
        """Start a kernel of all results of a region, which reads its arguments from memory."""
        results = self.results[op]
        uses = [use for result in results for use in self.state.uses.get(result, [])]
        group = self.begin(op, "call", uses)
        for arg in op.args:
            self.state.require(self.laid_out.base[arg])
            self.state.pass_on(arg, [Use(op, False, False)])
        group.results = list(results)
        del self.state.stored_by[op]
        self.state.stored_by.update(dict.fromkeys(results, group))

    def candidates(self, op: Op, uses: list[Use]) -> list[FusionGroup]:
        """Return the groups that could compute and store ``op`` without a cycle."""
        users = self.state.users(uses)
        fitting = []
        for group in users:
            others = [c for c in users if c is not group]
            if all(group.level < other.level for other in others):
                fitting.append(group)
        return fitting

    def elementwise(self, op: Op, uses: list[Use]) -> None:
        """Repeat an op in all its users, add it to one of them, or start a nest."""
        users = self.state.users(uses)
        required = op in self.state.required or self.apart
        if not required and users and self.repeats.repeatable(op, uses, users):
            for group in users:
                self.enter(op, group, False)
            return
        required = required or len(users) > 1
        if self.joined(op, uses, self.fits.elementwise, self.fits.beside, required) is None:
            self.begin(op, "nest", uses)

    def reduction(self, op: Op, uses: list[Use]) -> None:
        """Add a reduction to a nest that uses it, or to one over the same space, or start one."""
        required = op in self.state.required or len(self.state.users(uses)) > 1
        group = self.joined(op, uses, self.fits.reduction, self.fits.reduced_beside, required)
        if group is None:
            group = self.begin(op, "nest", uses)
            group.rows = frozenset(op.axes.names)
        group.reductions.append(op)

    def joined(
        self,
        op: Op,
        uses: list[Use],
        before: Callable[[Op, list[Use], FusionGroup], Fit | None],
        beside: Callable[[Op, FusionGroup], Fit | None],
        required: bool,
    ) -> FusionGroup | None:
        """Add an op to a group that uses it, if the op fits ``before`` its use, or to one that
        reads the same values, if it fits ``beside``; return the group, None if there is none.
        """
        users = [] if self.apart else self.candidates(op, uses)
        for group in users:
            fit = before(op, self.state.within(uses, group), group)
            if fit is not None:
                group.rows = fit.rows
                self.enter(op, group, required)
                return group
        for group in [] if self.apart else self.siblings.of(op, self.state.users(uses)):
            fit = beside(op, group)
            if fit is not None:
                group.rows = fit.rows
                self.enter(op, group, True)
                return group
        return None

    def contraction(self, op: Op, uses: list[Use]) -> None:
        """Fuse a contraction with its user as epilogue, or start a product."""
        users = self.state.users(uses)
        required = op in self.state.required or len(users) > 1
        if not self.apart:
            for group in self.candidates(op, uses):
                inside = self.state.within(uses, group)
                if self.fits.contraction(op, inside, group):
                    group.kind, group.dot, group.names = "contraction", op, inside[0].renamed
                    self.enter(op, group, required)
                    return
        group = self.begin(op, "contraction", uses)
        group.dot = op

    def made(self, group: FusionGroup) -> Group:
        """Return the finished group of a nest or product."""
        results = tuple(group.results)
        order = KernelReads(self.laid_out, self.state.stored_by, group)
        for op in results:
            order.walk(op)
        in_place = {op: order.in_place(op) for op in results}
        main, apart = results[0], tuple(self.reasons.get(group, ()))
        return Group(
            main, results, tuple(order.reads), tuple(order.needs), in_place, group.fused, apart
        )
