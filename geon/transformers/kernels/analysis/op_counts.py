"""Execution counts of primitives in scalar code, one node at a time (operands excluded)."""

from __future__ import annotations

from collections.abc import Hashable

from ....op_graph.axes.affine import Quotient, Remainder
from ....op_graph.rows.elementwise import multiply
from ....op_graph.values.dtypes import name_of
from ..ir.nest import Reduction
from ..ir.scalar_code import (
    Apply,
    Clamped,
    Kept,
    LengthNumber,
    Number,
    RandomBits,
    Running,
    Scalar,
    ScalarBuilder,
    Select,
    Wrapped,
    indices,
)

Rows = dict[tuple[str, str], int]  # execution counts by (primitive name, dtype name)
PICKS = frozenset({"copy", "stop_gradient"})  # primitives that return their operand: not counted
MULTIPLY_ADD = "multiply_add"  # of a contraction: no primitive of the graph
DRAW = "draw"  # random bits of one element, where one counter serves its neighbours too
INDEX = "index"  # one operation of index arithmetic


def count(rows: Rows, value: Scalar, times: int) -> None:
    """Add ``times`` executions of one node to ``rows``; operands are not visited."""
    if isinstance(value, Apply):
        wide = value.args[-1].dtype if value.args else value.dtype
        row = str(value.row.name)
        if row not in PICKS and not (row == "cast" and wide is value.dtype):
            note(rows, row, name_of(wide), times)
    elif isinstance(value, Select):
        note(rows, INDEX, "int64", (2 * len(value.guards) + 1) * times)
    elif isinstance(value, Wrapped):
        note(rows, INDEX, "int64", times)
    elif isinstance(value, RandomBits):
        note(rows, DRAW, name_of(value.dtype), times * words_of_counter(value))
    steps = sum(_steps(atom) for each in indices(value) for atom in each.terms)
    if steps:
        note(rows, INDEX, "int64", steps * times)


def words_of_counter(value: RandomBits) -> int:
    """Return the number of elements that one Philox counter yields."""
    return 16 // value.dtype.itemsize


def note(rows: Rows, row: str, dtype: str, times: int) -> None:
    """Add ``times`` executions of a primitive."""
    rows[row, dtype] = rows.get((row, dtype), 0) + times


def _steps(atom: Hashable) -> int:
    if isinstance(atom, (Quotient, Remainder)):
        return 1 + sum(_steps(each) for each in atom.of.terms)
    return 1 if isinstance(atom, Clamped) else 0


def reduced_values(reduction: Reduction) -> tuple[Scalar, ...]:
    """Return the scalar code of a reduction's state after one more element."""
    code = ScalarBuilder()
    running = tuple([code(Running, k, False, dtype) for k, dtype in enumerate(reduction.states)])
    first, *others = reduction.elements
    for other in others:
        first = code.apply(multiply, first, other)
    return tuple(reduction.reducer.step(code, running, first, reduction.position))


ELEMENTARY_COST_OPS = 8  # time of an elementary function in vectors, in cheap operations
ELEMENTARY_STATEMENTS = 3 * ELEMENTARY_COST_OPS  # statements of its text


def operations(node: Scalar) -> int:
    """Return the approximate number of machine operations of a value, without its operands."""
    if isinstance(node, (Number, LengthNumber, Kept, Wrapped)):
        return 0
    costly = isinstance(node, Apply) and node.row.cost == "expensive"
    return ELEMENTARY_COST_OPS if costly or isinstance(node, RandomBits) else 1
