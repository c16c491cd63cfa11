"""Outputs of a nest: its stores and reductions, the pass of each, and their loop order."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from collections.abc import Set as AbstractSet

import numpy as np

from ....lazy_dataclasses import dataclass
from ....op_graph.axes.index_map import atoms, identity
from ....op_graph.axes.lengths import product
from ....op_graph.core.traversal import reachable
from ....op_graph.op_graph import Op, among
from ....op_graph.rows.reducers import SUM, Reducer
from ....op_graph.values.dtypes import FLOAT32, HALVES, INT32, DType, name_of
from ...sizes.limits import MAX_SEARCHED
from ..ir.nest import Fused, folded_row
from .inlining import OperandInliner


@dataclass(frozen=True, eq=False, slots=True)
class Item:
    """A store or reduction, with the level of its pass and the axes of its loops."""

    op: Op
    reduces: bool
    level: int
    inner: tuple[str, ...]

    @property
    def has_state(self) -> bool:
        """Return True if it is a reduction that vector lanes cannot fold."""
        return self.reduces and folded_row(reducer_of(self.op)) is None


class Levels:
    """Assigns to each op of a fused kernel the first pass after the reductions it depends on."""

    def __init__(self, fused: Fused, operands: OperandInliner) -> None:
        self.fused, self.operands = fused, operands
        self.reduced = {op: number for number, op in enumerate(fused.reductions)}
        self.levels: dict[Op, int] = {}

    def level(self, root: Op) -> int:
        """Return the number of the first pass that can compute ``root``."""
        return first_pass(root, self.levels, self.operands.stored, self.reduced.keys())

    def items(self) -> list[Item]:
        """Return the reductions and stores, with their passes."""
        rows = self.fused.rows or frozenset()
        found = []
        for op in self.fused.reductions:
            inner = tuple([n for n in loop_order(op, self.operands) if n not in rows])
            self.level(op)
            found.append(Item(op, True, max(self.level(arg) for arg in op.args), inner))
        for op in self.operands.results:
            if op not in self.reduced:
                inner = tuple([n for n in self.operands.order(op) if n not in rows])
                found.append(Item(op, False, self.level(op), inner))
        return found

    def later_needs(self, items: Sequence[Item], level: int) -> set[Op]:
        """Return expensive ops computed up to ``level`` that later passes use, not in memory."""
        found: set[Op] = set()
        for item in items:
            if item.level <= level:
                continue
            below = reachable(
                item.op.args if item.reduces else (item.op,),
                lambda op: () if self.is_known(op) else op.args,
            )
            found.update(
                op
                for op in below
                if op.primitive.cost == "expensive"
                and not self.is_known(op)
                and self.level(op) <= level
            )
        return found

    def is_known(self, op: Op) -> bool:
        """Return True if an op is in memory or the result of a reduction."""
        return self.operands.stored(op) or op in self.reduced


def first_pass(
    root: Op, known: dict[Op, int], stored: Callable[[Op], bool], reduced: AbstractSet[Op]
) -> int:
    """Return the number of the first pass that can compute ``root``: after those of the reductions
    (``reduced``) below it, down to values that are ``stored``. ``known`` caches it for all ops.
    """
    stack = [(root, False)]
    while stack:
        op, ready = stack.pop()
        if op in known:
            continue
        if stored(op):
            known[op] = 0
        elif ready:
            known[op] = max((known[arg] for arg in op.args), default=0) + (op in reduced)
        else:
            stack.append((op, True))
            stack += [(arg, False) for arg in op.args]
    return known[root]


def loop_order(op: Op, operands: OperandInliner) -> tuple[str, ...]:
    """Return the axes that a reduction iterates over, kept ones included, in memory order.

    The order is that of the operand with most axes; axes of one element do not count.
    """
    widest = max(op.args, key=lambda arg: sum(axis.expression != 1 for axis in arg.axes))
    order = list(memory_order(widest, operands))
    for arg in op.args:
        order = [n for n in arg.axes.names if n not in order] + order
    return tuple(order)


def memory_order(op: Op, operands: OperandInliner) -> tuple[str, ...]:
    """Return the axes of ``op`` in memory order.

    A value that is not in memory is ordered like the nearest operand below it that is in memory and
    has the same axes: loops in the order of its own axes would stride through that operand.
    """
    names = set(op.axes.names)
    waiting, seen = deque([op]), 0
    while waiting and seen < MAX_SEARCHED:
        each, seen = waiting.popleft(), seen + 1
        if operands.stored(each) or among(each, operands.results):
            return operands.order(each)
        if each.primitive.kind == "elementwise" or each.primitive.index_map is not None:
            waiting += [arg for arg in each.args if set(arg.axes.names) == names]
    return shown_order(op, operands)


def shown_order(op: Op, operands: OperandInliner) -> tuple[str, ...]:
    """Return the memory order of ``op``; for a padded window, the order of the padded operand."""
    chain: list[Op] = []
    while is_bordered(op) and not operands.stored(op) and len(chain) < MAX_SEARCHED:
        chain.append(op)
        op = op.args[0]
    order = operands.order(op)
    for shown in reversed(chain):
        shows = shown.primitive.index_map
        assert shows is not None
        index = shows(shown, identity(shown.axes.names))[0].index
        walked: dict[str, None] = {}
        for name in order:
            found = set(atoms(index[name]))
            walked.update(dict.fromkeys(n for n in shown.axes.names if n in found))
        order = (*(n for n in shown.axes.names if n not in walked), *walked)
    return order


def is_bordered(op: Op) -> bool:
    """Return True if ``op`` is a window of an argument with fewer axes, or of padding around it."""
    row = op.primitive
    if row.kind != "movement" or row.index_map is None or row.view:
        return False
    return len(op.axes) > len(op.args[0].axes)


def reducer_of(op: Op) -> Reducer:
    """Return the reducer of a reduction; a contraction's is the sum."""
    reducer: Reducer | None = op.primitive.reducer
    return SUM if reducer is None else reducer


def states_of(op: Op) -> tuple[DType, ...]:
    """Return the dtypes of a reduction's state.

    Halves accumulate in float32. Positions are int32 if the elements are not wider and the count
    fits, so that vectors of both have equally many lanes.
    """
    element, reducer = op.args[0].dtype, reducer_of(op)
    wide = FLOAT32 if name_of(element) in HALVES else element
    states = reducer.states(wide, op.dtype)
    count = product(axis.expression for axis in op.args[0].axes if axis.name not in op.axes)
    if reducer.place is None or wide.itemsize > INT32.itemsize:
        return states
    if not isinstance(count, int) or count >= np.iinfo(np.int32).max:
        return states
    return tuple([INT32 if k == reducer.place else each for k, each in enumerate(states)])
