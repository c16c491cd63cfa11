"""Fusion of two nests, the second of which uses results of the first."""

from __future__ import annotations

from ....op_graph.op_graph import Op, among
from .fusion_group import FusionGroup
from .fusion_state import FusionState
from .legality import MAX_NEST_STATEMENTS, small_rows


def merge_nests(state: FusionState, first: FusionGroup, then: FusionGroup) -> FusionGroup | str:
    """Return a nest that computes what two nests do, or the reason why that is impossible."""
    if first.kind != "nest" or then.kind != "nest":
        return f"one is a {then.kind if first.kind == 'nest' else first.kind}"
    if first.statements + then.statements > MAX_NEST_STATEMENTS:
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
    return FusionGroup(
        "nest",
        min(first.level, then.level),
        [*others, *then.results],
        list(dict.fromkeys([*first.reductions, *then.reductions])),
        first.inner | then.inner,
        rows,
        statements=first.statements + then.statements,
        extents={**first.extents, **then.extents},
        reindexed=first.reindexed | then.reindexed,
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
