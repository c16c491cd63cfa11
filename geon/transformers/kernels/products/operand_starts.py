"""Constant start offsets of product operands, which callers may add to pointers instead.

An unrolled loop multiplies one slice after another of one value. Without the offsets their products
have equal text, so they share one function that is called with different pointers.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Sequence
from dataclasses import replace
from typing import TypeVar

from ....op_graph.axes.affine import AffineIndex
from ..ir.scalar_code import Load, Scalar, walk
from .contraction import Contraction

P = TypeVar("P", bound=Hashable)  # a memory location


def from_starts(made: Contraction, places: Sequence[P]) -> tuple[Contraction, dict[P, int]]:
    """Return the contraction without start offsets, and the offsets in elements by memory location.

    ``places`` are the memory locations of its operands. An operand is rebased only if it has one
    load, is not written and shares its memory with no other operand. A contraction in pieces is
    unchanged.
    """
    if made.pieces:
        return made, {}
    roots = (made.left, made.right, *[store.value for store in made.stores])
    uses = Counter(places[node.operand] for node in walk(*roots) if isinstance(node, Load))
    uses.update(places[store.operand] for store in made.stores)
    starts: dict[P, int] = {}

    def begun(value: Scalar) -> Scalar:
        """Return an operand's load without its constant offset, and record that."""
        if not isinstance(value, Load) or uses[places[value.operand]] > 1:
            return value
        start = value.offset.constant
        if not isinstance(start, int) or start == 0:
            return value
        starts[places[value.operand]] = start
        return replace(value, offset=AffineIndex(value.offset.terms.items()))

    return replace(made, left=begun(made.left), right=begun(made.right)), starts
