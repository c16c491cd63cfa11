"""Scalar code, indices and guards as short formulas for people."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

from ...op_graph.axes.affine import AffineIndex
from ...op_graph.axes.index_map import InRange
from ...op_graph.rows.elementwise import CAST
from ...op_graph.values.dtypes import name_of
from ..kernels.ir.scalar_code import (
    NODES,
    Apply,
    Clamped,
    IndexNumber,
    Kept,
    Least,
    LengthNumber,
    Load,
    Number,
    RandomBits,
    Scalar,
    Select,
    Wrapped,
)

MAX_DEPTH = 4  # primitives and positions inside of each other; deeper ones are "..."
MAX_CHARACTERS = 60  # characters of a value's formula; longer ones are cut


def value_text(value: Scalar) -> str:
    """Return the formula of a value, cut where it is long."""
    text = formula(value)
    return text if len(text) <= MAX_CHARACTERS else f"{text[:MAX_CHARACTERS]}..."


def formula(value: Scalar, depth: int = MAX_DEPTH) -> str:
    """Return the formula of a value, with ``...`` for what is deeper than ``depth``.

    ``x1[i]`` is an element of operand 1 and ``b1[i]`` one of buffer 1. A primitive and a dtype are
    functions; ``wrap(p, n)`` is a position ``p`` of which negative ones count from ``n``.
    """
    if isinstance(value, Number):
        return str(value.value)
    if isinstance(value, LengthNumber):
        return str(value.length)
    if isinstance(value, (Load, Kept)):
        memory = f"x{value.operand}" if isinstance(value, Load) else f"b{value.number}"
        return f"{memory}[{index_text(value.offset, depth)}]"
    if isinstance(value, IndexNumber):
        return index_text(value.index, depth)
    if depth == 0:
        return "..."
    if isinstance(value, RandomBits):
        return f"random_bits[{index_text(value.position, depth - 1)}]"
    if isinstance(value, Wrapped):
        return f"wrap({formula(value.position, depth - 1)}, {value.length})"
    if isinstance(value, Select):
        sides = [formula(side, depth - 1) for side in (value.value, value.other)]
        return f"({sides[0]} if {guards_text(value.guards, depth - 1)} else {sides[1]})"
    assert isinstance(value, Apply)  # trees have buffers in place of reductions
    name = name_of(value.dtype) if value.row is CAST else value.row.name
    return f"{name}({', '.join(formula(arg, depth - 1) for arg in value.args)})"


def index_text(index: AffineIndex, depth: int = MAX_DEPTH) -> str:
    """Return the formula of an index, whose computed positions are formulas too."""
    return index.text(lambda atom: _atom(atom, depth))


def guards_text(guards: Sequence[InRange], depth: int = MAX_DEPTH) -> str:
    """Return the formula of guards that all have to hold."""
    return " and ".join(f"{g.low} <= {index_text(g.index, depth)} < {g.high}" for g in guards)


def _atom(atom: Hashable, depth: int) -> str:
    if isinstance(atom, str):
        return atom
    if isinstance(atom, Least):
        return f"min({', '.join(index_text(each, depth) for each in atom.of)})"
    if depth == 0:
        return "..."
    if isinstance(atom, Clamped):
        guards = guards_text(atom.guards, depth - 1)
        return f"({index_text(atom.of, depth - 1)} if {guards} else 0)"
    assert isinstance(atom, NODES)
    return formula(atom, depth - 1)
