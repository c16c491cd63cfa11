"""Legality of fusion: tests whether a group can compute one more op at its indices and passes."""

from __future__ import annotations

from typing import NamedTuple

from ....op_graph.axes.lengths import evaluate, product
from ....op_graph.core.traversal import reachable
from ....op_graph.op_graph import Op
from ....op_graph.rows.slicing import is_updated_part
from ...kernels.nests.nest_builder import MAX_BUFFERED_ROW_ELEMENTS
from ...kernels.nests.random_runs import MAX_SIDE_BY_SIDE_ROWS
from ...sizes.limits import MAX_FUNCTION_NODES, NOMINAL_LENGTH, SHORT_LOOP_TURNS
from .fusion_state import FusionGroup, FusionState, Use
from .layout import LaidOut
from .op_facts import loop_axes, statements

MIN_PARALLEL_ROWS = SHORT_LOOP_TURNS  # minimum rows of more than 1024 elements


def full(op: Op, group: FusionGroup) -> bool:
    """Return True if with ``op`` a group would have more statements than compilers handle well."""
    return group.statements + statements(op) > MAX_FUNCTION_NODES


def may_compute(state: FusionState, op: Op, uses: list[Use], group: FusionGroup) -> bool:
    """Return True if a kernel can compute an op at each index at which it needs it.

    An update has no pieces in which indices select one of several values. It stays in place if it
    reads the value that it changes at the places that it stores.
    """
    if group.kind == "call" or full(op, group):
        return False
    if group.kind != "update":
        return True
    taken = op.primitive.name == "slice"
    if op.primitive.kind != "elementwise" and not taken:
        return False
    whole, base = group.results[0], state.laid_out.base
    straight = all(state.straight(use, group) for use in state.within(uses, group))
    return all(
        base[arg] is not base[whole.args[0]] or (straight and is_updated_part(part, whole))
        for arg, part in zip(op.args, [op] if taken else op.args, strict=False)
    )


class Nominal(dict[str, int]):
    """Open lengths by name, each equal to ``NOMINAL_LENGTH``."""

    def __missing__(self, name: str) -> int:
        return NOMINAL_LENGTH


def small_rows(op: Op, laid_out: LaidOut) -> bool:
    """Return True if a row of the reduced value fits into cache and rows suffice for all cores.

    Rows across memory are in vector lanes. If there are so few of them that one core takes all,
    separate passes, which are split among cores, are better once a row exceeds the cache.
    """
    kept = set(op.axes.names)
    lengths = {a.name: a.expression for arg in op.args for a in arg.axes}
    row = product(n for name, n in lengths.items() if name not in kept)
    rows = product(op.axes.lengths)
    orders = [laid_out.layouts[arg].order for arg in op.args if arg in laid_out.layouts]
    if isinstance(rows, int) and any(order and order[-1] in kept for order in orders):
        few = (
            rows < MAX_SIDE_BY_SIDE_ROWS
            and MAX_SIDE_BY_SIDE_ROWS * evaluate(row, Nominal()) > MAX_BUFFERED_ROW_ELEMENTS
        )
    else:
        few = (
            isinstance(rows, int)
            and rows < MIN_PARALLEL_ROWS
            and isinstance(row, int)
            and row > 1024
        )
    long = isinstance(row, int) and row > MAX_BUFFERED_ROW_ELEMENTS
    return not long and not few


def same_lengths(op: Op, group: FusionGroup) -> bool:
    """Return True if the axes of the loops of both have equal lengths."""
    known = group.extents
    return all(known.get(a.name, a.expression) == a.expression for a in loop_axes(op))


class Fit(NamedTuple):
    """A way for a group to compute one more op: the axes that are then its rows, if any."""

    rows: frozenset[str] | None


class Fits:
    """The conditions under which a group can compute an op."""

    def __init__(self, state: FusionState) -> None:
        self.state = state

    def elementwise(self, op: Op, uses: list[Use], group: FusionGroup) -> Fit | None:
        """Return how a group can compute ``op`` at its own indices; None if it cannot."""
        if group.kind in ("call", "update") or full(op, group):
            return None
        if not all(self.state.straight(use, group) for use in uses):
            return None
        if group.rows is not None and not group.rows <= set(op.axes.names):
            return None
        if any(use.broadcasts for use in uses):
            return self.by_rows(frozenset(op.axes.names), group) if group.kind == "nest" else None
        same = group.rows is not None or op.axes.same_set(group.results[0].axes)
        return Fit(group.rows) if same else None

    def by_rows(self, rows: frozenset[str], group: FusionGroup) -> Fit | None:
        """Return the fit in which the passes of a nest share ``rows``; None if they cannot."""
        if group.rows is not None:
            return Fit(rows) if group.rows == rows else None
        if not rows or not all(rows <= set(op.axes.names) for op in group.results):
            return None
        return Fit(rows) if self.outermost(rows, group) else None

    def beside(self, op: Op, group: FusionGroup) -> Fit | None:
        """Return how a nest over the same elements can store ``op`` too; None if it cannot."""
        order = self.state.laid_out.layouts[op].order
        if group.rows is not None:
            along = group.rows <= set(op.axes.names) and set(order[: len(group.rows)]) <= group.rows
        else:
            first = group.results[0]
            along = self.state.laid_out.layouts[first].order == order
            along = along and op.axes.same_set(first.axes)
        return Fit(group.rows) if along else None

    def reduced_beside(self, op: Op, group: FusionGroup) -> Fit | None:
        """Return how a nest over the same elements can reduce them to ``op``; None if it cannot."""
        rows, small = frozenset(op.axes.names), small_rows(op, self.state.laid_out)
        over_rows = all(frozenset(result.axes.names) == rows for result in group.results)
        if small or (group.rows is not None and over_rows):
            return self.by_rows(rows, group)
        return None

    def reduction(self, op: Op, uses: list[Use], group: FusionGroup) -> Fit | None:
        """Return how a nest can compute ``op`` per row before its use; None if it cannot."""
        rows = frozenset(op.axes.names)
        if group.kind != "nest" or full(op, group) or group.dot is not None:
            return None
        if not same_lengths(op, group):
            return None
        if not all(self.state.straight(use, group) for use in uses):
            return None
        if all(frozenset(r.axes.names) == rows for r in group.results):
            if group.rows not in (None, rows):
                return None
            if not self.feeds_reduction(uses, group):
                return Fit(rows)  # the results follow the reduction, row by row
        if not rows or not small_rows(op, self.state.laid_out):
            return None
        if any(not rows <= set(r.axes.names) for r in group.results):
            return None
        if not self.shares_elements(op, group) and not self.outermost(rows, group):
            return None
        if any(frozenset(r.axes.names) != rows for r in group.reductions):
            return None
        return Fit(rows) if group.rows in (None, rows) else None

    def shares_elements(self, op: Op, group: FusionGroup) -> bool:
        """Return True if the results of a group have all axes that the reduction sums over."""
        over = {axis.name for axis in loop_axes(op)} - set(op.axes.names)
        return all(over <= set(result.axes.names) for result in group.results)

    def outermost(self, rows: frozenset[str], group: FusionGroup) -> bool:
        """Return True if ``rows`` are the outermost axes of all results in memory."""
        orders = [self.state.laid_out.layouts[op].order for op in group.results]
        return all(set(order[: len(rows)]) == rows for order in orders)

    def feeds_reduction(self, uses: list[Use], group: FusionGroup) -> bool:
        """Return True if a reduction of the group depends on these uses."""

        def below(op: Op) -> list[Op]:
            return [x for x in map(self.state.below_views, op.args) if x in group.inner]

        wanted = {use.op for use in uses}
        return any(op in wanted for op in reachable(group.reductions, below))

    def contraction(self, op: Op, uses: list[Use], group: FusionGroup) -> bool:
        """Return True if all values that the group computes can be the epilogue of the product."""
        if group.kind != "nest" or group.reductions or group.rows is not None:
            return False
        if group.statements > MAX_FUNCTION_NODES or {use.renamed for use in uses} != {
            uses[0].renamed
        }:
            return False
        renamed = uses[0].renamed
        if renamed and (
            op in self.state.required or len(self.state.users(self.state.uses[op])) > 1
        ):
            return False
        if any(use.op in group.reindexed for use in uses):
            return False
        if not all((use.identity or renamed) and not use.broadcasts for use in uses):
            return False
        names = {n for _, n in renamed} or set(op.axes.names)
        return all(set(result.axes.names) == names for result in group.results)
