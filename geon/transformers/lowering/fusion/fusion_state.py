"""State of fusion: the uses of each op, and the groups, kernels under construction."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import field
from typing import NamedTuple

from ....lazy_dataclasses import dataclass
from ....op_graph.axes.lengths import Length
from ....op_graph.core.traversal import is_bound
from ....op_graph.op_graph import Op
from ...kernels.ir.nest import Fused
from .layout import LaidOut
from .op_facts import is_product, is_view


@dataclass(eq=False, slots=True)
class FusionGroup:
    """A kernel under construction.

    ``kind`` is that of ``Fused``. ``level`` is lower than those of all kernels that read its
    results. ``results`` are stored; ``inner`` are all ops it computes, ``reductions`` those that
    reduce. ``rows``, ``dot``, ``names`` and ``collapsed`` are as in ``Fused``. ``statements``
    counts the statements of its body. ``extents`` are the lengths of the axes of its loops.
    """

    kind: str
    level: int
    results: list[Op] = field(default_factory=list)
    reductions: list[Op] = field(default_factory=list)
    inner: set[Op] = field(default_factory=set)
    rows: frozenset[str] | None = None
    dot: Op | None = None
    names: tuple[tuple[str, str], ...] = ()
    collapsed: int = 0
    statements: int = 0
    extents: dict[str, int | Length] = field(default_factory=dict)
    reindexed: set[Op] = field(default_factory=set)  # ops computed at indices not their own
    widened: set[Op] = field(default_factory=set)  # ops computed repeatedly along further axes

    @property
    def fused(self) -> Fused:
        """Return the form of the kernel."""
        reductions = tuple(self.reductions)
        return Fused(
            self.kind, self.rows, self.dot, reductions, self.names, collapsed=self.collapsed
        )


class Use(NamedTuple):
    """A use of an op by another op, possibly through views.

    ``op`` is the user. ``identity``: each axis is indexed by the user's axis of that name.
    ``broadcasts``: the user has axes that the op lacks. ``renamed``: pairs of the op's and the
    user's axis names, if renaming is all that prevents ``identity``. ``shown``: a window lies on
    the way.
    """

    op: Op
    identity: bool
    broadcasts: bool
    renamed: tuple[tuple[str, str], ...] = ()
    shown: bool = False


class FusionState:
    """The uses of ops, and the groups that compute them.

    ``required`` ops are always stored. ``computed_in`` maps an op to the groups that compute it,
    ``stored_by`` to the one that stores it, if any.
    """

    def __init__(self, laid_out: LaidOut) -> None:
        self.laid_out = laid_out
        program = laid_out.program
        self.required: set[Op] = {*program.outputs, *(op for _, op in program.updates)}
        self.uses: dict[Op, list[Use]] = {}
        self.computed_in: dict[Op, list[FusionGroup]] = {}
        self.stored_by: dict[Op, FusionGroup] = {}

    def below_views(self, op: Op) -> Op:
        """Return the op below views."""
        while is_view(self.laid_out, op):
            op = op.args[0]
        return op

    def pass_on(self, op: Op, uses: Iterable[Use]) -> None:
        self.uses.setdefault(op, []).extend(uses)

    def require(self, op: Op) -> None:
        if not is_bound(op):
            self.required.add(op)

    def level_below(self, uses: list[Use]) -> int:
        levels = [c.level for use in uses for c in self.computed_in.get(use.op, ())]
        return min(levels) - 1 if levels else 0

    def users(self, uses: list[Use]) -> list[FusionGroup]:
        """Return the groups that use an op."""
        return list({c: None for use in uses for c in self.computed_in.get(use.op, ())})

    def within(self, uses: list[Use], group: FusionGroup) -> list[Use]:
        return [use for use in uses if group in self.computed_in.get(use.op, ())]

    def straight(self, use: Use, group: FusionGroup) -> bool:
        """Return True if user and op are both computed at the group's indices."""
        return use.identity and use.op not in group.reindexed and not self.operand(use)

    def operand(self, use: Use) -> bool:
        """Return True if a use is an operand of a product."""
        return use.op.primitive.name == "dot" and is_product(use.op)

    def is_read_besides(self, op: Op, then: FusionGroup) -> bool:
        """Return True if ``op`` is required, or read by other groups than ``then``."""
        return op in self.required or any(c is not then for c in self.users(self.uses.get(op, [])))

    def exchange(self, old: tuple[FusionGroup, ...], new: tuple[FusionGroup, ...]) -> None:
        """Replace groups by others."""
        for op in (op for group in old for op in group.results):
            del self.stored_by[op]
        for group in new:
            self.stored_by.update(dict.fromkeys(group.results, group))
        for op in {op: None for group in (*old, *new) for op in group.inner}:
            others = [group for group in self.computed_in[op] if group not in old]
            self.computed_in[op] = others + [group for group in new if op in group.inner]
