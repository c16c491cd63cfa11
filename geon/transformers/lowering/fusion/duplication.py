"""Duplication: decides which ops are recomputed in each consumer rather than stored once."""

from __future__ import annotations

from collections import Counter

from ....op_graph.axes.lengths import is_below, product
from ....op_graph.op_graph import Op
from ...kernels.analysis.op_counts import ELEMENTARY_COST_OPS
from ...sizes.limits import MIN_SIZE_RATIO, MIN_TASK_WORK
from .fusion_state import FusionGroup, FusionState, Use
from .legality import may_compute, small_rows
from .op_facts import innermost, is_view, loop_axes, reductions_below, repeats, shows

MAX_CHEAP_CHAIN_OPS = ELEMENTARY_COST_OPS  # with more, it costs more than a function that is stored
# A slow op gets a kernel of its own if a nest would compute it at least ``MIN_STORED_DIVISIONS``
# times, which is work for a task, and each element at least ``MIN_STORED_REPEATS`` times.
MIN_STORED_DIVISIONS = MIN_TASK_WORK // ELEMENTARY_COST_OPS
MIN_STORED_REPEATS = MIN_SIZE_RATIO
# Maximum kernels that recompute an expensive op, such as forward and backward.
MAX_DUPLICATING_KERNELS = 2


class Repeats:
    """Costs of recomputing ops; every op is measured before fusion starts."""

    def __init__(self, state: FusionState) -> None:
        self.state = state
        self.chain: dict[Op, int] = {}
        self.recompute_sources: dict[Op, frozenset[Op]] = {}
        self.after_contraction: set[Op] = set()
        self.readers: Counter[Op] = Counter()

    def measure(self, op: Op) -> None:
        """Record the cost of repeating ``op``, and whether it follows a contraction elementwise."""
        self.readers.update(set(op.args))
        if op.primitive.name == "dot":
            self.after_contraction.add(op)
        elif any(arg in self.after_contraction and arg.axes.same_set(op.axes) for arg in op.args):
            self.after_contraction.add(op)
        below: frozenset[Op] = frozenset()
        for arg in op.args:
            if len(arg.axes) >= len(op.axes):
                below |= self.recompute_sources[arg]
        if is_view(self.state.laid_out, op):
            shifted = op.primitive.name in ("slice", "flip") and below
            self.recompute_sources[op] = frozenset((op,)) if shifted else below
        elif repeats(op) and len(below) < 2:
            self.recompute_sources[op] = below
        else:
            self.recompute_sources[op] = frozenset((op,)) if len(op.axes) else frozenset()
        longest = max((self.chain[arg] for arg in op.args), default=0)
        self.chain[op] = (
            longest + (not is_view(self.state.laid_out, op)) if self.is_cheap(op) else 0
        )

    def is_cheap(self, op: Op) -> bool:
        """Return True if recomputing ``op`` costs about as much as loading it."""
        if op.primitive.cost == "once":
            return len(self.state.uses.get(op, ())) < 2 and op.primitive.name != "concat"
        return repeats(op) and op not in self.recompute_sources.get(op, ())

    def repeatable(self, op: Op, uses: list[Use], users: list[FusionGroup]) -> bool:
        """Return True if ``op`` is computed in each consumer and never stored.

        Windows always are if the consumers can. The operand of a window never is in a product, or
        if it follows one elementwise that nothing else reads: it would be computed once per window
        position, and is stored in place of the product.
        """
        if shows(op):
            return all(may_compute(self.state, op, uses, group) for group in users)
        if any(use.shown and self.multiplied(use, users) for use in uses):
            return False
        if any(use.shown for use in uses) and self.replaces_contraction(op):
            return False
        if op.primitive.name == "copy" and op.attrs.layout is not None:
            return False  # it is there for the order of its elements in memory
        if op.primitive.cost == "slow" and any(
            self.again_along(op, uses, group) for group in users
        ):
            return False
        cheap = self.is_cheap(op) and self.chain[op] <= MAX_CHEAP_CHAIN_OPS
        scalar = not len(op.axes) and self.chain[op] <= MAX_CHEAP_CHAIN_OPS
        alone = len(uses) == 1 and not uses[0].broadcasts and not self.state.operand(uses[0])
        if not (cheap or scalar or alone or self.together(op, uses, users)):
            return False
        if op.primitive.cost == "expensive" and not scalar and self.multiplies(uses, users):
            return False
        if not all(may_compute(self.state, op, uses, group) for group in users):
            return False
        return not any(self.state.operand(use) and op in self.after_contraction for use in uses)

    def replaces_contraction(self, op: Op) -> bool:
        """Return True if ``op`` follows a contraction elementwise, and only it reads the result."""
        while op in self.after_contraction and op.primitive.name != "dot":
            op = next(
                x for x in op.args if x in self.after_contraction and x.axes.same_set(op.axes)
            )
            if self.readers[op] > 1 or op in self.state.required:
                return False
        return op in self.after_contraction

    def together(self, op: Op, uses: list[Use], users: list[FusionGroup]) -> bool:
        """Return True if all readers of moved elements read each at one index, in one loop."""
        if op.primitive.cost != "once" or op.primitive.name == "concat" or len(users) != 1:
            return False
        straight = all(use.identity and not self.state.operand(use) for use in uses)
        return straight and not users[0].reductions and users[0].kind == "nest"

    def again_along(self, op: Op, uses: list[Use], group: FusionGroup) -> bool:
        """Return True if the innermost loop of a nest would recompute ``op`` many times.

        A value without the innermost axis is hoisted out of that loop. In a product, a few
        divisions do not matter.
        """
        inside = self.state.within(uses, group)
        widened = any(use.broadcasts or use.op in group.widened for use in inside)
        if group.kind != "nest" or not widened or self.may_join(op, group):
            return False
        if innermost(group.results[0], self.state.laid_out) not in op.axes.names:
            return False
        turns = product(size for name, size in group.extents.items() if name not in op.axes.names)
        total = product(group.extents.values())
        return not (is_below(turns, MIN_STORED_REPEATS) or is_below(total, MIN_STORED_DIVISIONS))

    def may_join(self, op: Op, group: FusionGroup) -> bool:
        """Return True if the nest may compute the reductions below ``op``, too, as for a softmax.

        A softmax is then one kernel, and attention is one kernel with its products.
        """
        results = [set(result.axes.names) for result in group.results]
        return any(
            small_rows(found, self.state.laid_out)
            and all({axis.name for axis in loop_axes(found)} <= names for names in results)
            for found in reductions_below(op)
        )

    def multiplied(self, use: Use, users: list[FusionGroup]) -> bool:
        """Return True if a use is an operand of a product, or part of one computed inline."""
        inside = self.state.computed_in.get(use.op, ())
        return self.state.operand(use) or any(
            group.kind == "contraction" for group in users if group in inside
        )

    def multiplies(self, uses: list[Use], users: list[FusionGroup]) -> bool:
        """Return True if repeating an op in all users costs more than storing it."""
        widened = any(
            use.op in group.widened for group in users for use in self.state.within(uses, group)
        )
        return widened or len(users) > MAX_DUPLICATING_KERNELS
