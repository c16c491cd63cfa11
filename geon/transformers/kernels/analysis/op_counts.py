"""How often the rows of scalar code run: counts of nodes, without what they compute with."""

from __future__ import annotations

from collections.abc import Hashable

from ....op_graph.axes.affine import Quotient, Remainder
from ....op_graph.rows.elementwise import multiply
from ....op_graph.values.dtypes import name_of
from ..ir.nest import Reduction
from ..ir.scalar_code import (
    Apply,
    Clamped,
    Code,
    RandomBits,
    Running,
    Scalar,
    Select,
    Wrapped,
    indices,
)

Rows = dict[tuple[str, str], int]  # how often rows are applied, by the names of row and dtype
PICKS = frozenset({"copy", "stop_gradient"})  # an element as it is
MULTIPLY_ADD = "multiply_add"  # of a contraction: no row of the graph
DRAW = "draw"  # random bits of an element, its neighbours being taken with it
INDEX = "index"  # stands for a step in the arithmetic of indices


def count(rows: Rows, value: Scalar, times: int) -> None:
    """Note ``times`` runs of one node; what it computes with is not looked at."""
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
    """How many elements one counter of Philox gives: of one by itself all are made."""
    return 16 // value.dtype.itemsize


def note(rows: Rows, row: str, dtype: str, times: int) -> None:
    """Note ``times`` runs of a row."""
    rows[row, dtype] = rows.get((row, dtype), 0) + times


def _steps(atom: Hashable) -> int:
    if isinstance(atom, (Quotient, Remainder)):
        return 1 + sum(_steps(each) for each in atom.of.terms)
    return 1 if isinstance(atom, Clamped) else 0


def reduced_values(reduction: Reduction) -> tuple[Scalar, ...]:
    """The scalar code of a reduction's state after one more element."""
    code = Code()
    running = tuple([code(Running, k, False, dtype) for k, dtype in enumerate(reduction.states)])
    first, *others = reduction.elements
    for other in others:
        first = code.apply(multiply, first, other)
    return tuple(reduction.reducer.step(code, running, first, reduction.position))
