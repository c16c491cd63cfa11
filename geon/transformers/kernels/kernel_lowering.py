"""Last step of stage 4: lower each group of ops to the kernel that computes it, as data.

Kernels that differ only in their operands are lowered once. A network has many layers of one form.
Their ops are distinct objects, so their kernels are, too. But a kernel follows from its ops'
primitives, attributes and axes, and from the memory layout of the values: these make up the key of
a cache.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import replace

from ...op_graph.op_graph import Op
from .ir.nest import Call, Fused, Nest, Region
from .nests.index_set_splitting import make_nest, with_operands
from .nests.inlining import OperandInliner
from .nests.nest_lowering import make_update
from .products.contraction import Contraction, make_contraction
from .products.row_blocking import Blocked, make_blocked
from .scans.sequential_scan import OrderedLoop

Printed = Nest | Contraction | Blocked | OrderedLoop  # kernels for which source is printed
Work = Printed | Region | Call


def lower(op: Op, fused: Fused | None, operands: OperandInliner) -> Printed | Call:
    """Return the kernel that computes the results of ``operands``; ``op`` is the first of them.

    ``fused`` is None on a target that does not fuse: each op is then a library call.
    """
    if fused is None:
        return Call(op)
    if fused.chain is not None:
        blocked = make_blocked(fused.chain, operands)
        assert blocked is not None, "a step reads other rows of a block"
        return blocked
    if fused.kind == "contraction":
        return make_contraction(fused, operands)
    if fused.kind == "nest":
        return make_nest(fused, operands)
    return make_update(op, operands) if fused.kind == "update" else Call(op)


class Lowering:
    """Memoised ``lower``: maps each form to its kernel and the numbers of its operands."""

    def __init__(self) -> None:
        self.known: dict[Hashable, tuple[Nest | Contraction, tuple[int, ...]]] = {}

    def lower(self, op: Op, fused: Fused | None, operands: OperandInliner) -> Printed | Call:
        """Return the kernel of ``fused``, with loops and code of an earlier one of its form."""
        if fused is None or fused.kind not in ("nest", "contraction") or fused.chain is not None:
            return lower(op, fused, operands)
        ops, form = form_of(fused, operands)
        known = self.known.get(form)
        if known is not None:
            work, places = known
            return _with_operands(work, tuple([ops[place] for place in places]))
        made = lower(op, fused, operands)
        assert isinstance(made, Nest | Contraction)
        numbers = {id(op): number for number, op in enumerate(ops)}
        found = [numbers.get(id(op)) for op in made.operands]
        if None not in found:  # lowering of random draws adds operands of its own
            self.known[form] = made, tuple([n for n in found if n is not None])
        return made


def _with_operands(work: Nest | Contraction, operands: tuple[Op, ...]) -> Nest | Contraction:
    if isinstance(work, Nest):
        return with_operands(work, operands)
    pieces = tuple([replace(piece, operands=operands) for piece in work.pieces])
    return replace(work, operands=operands, pieces=pieces)


def form_of(fused: Fused, operands: OperandInliner) -> tuple[list[Op], Hashable]:
    """Return the ops of a kernel, down to its loads, and a hashable form.

    Kernels with equal forms do the same to ops of equal numbers.
    """
    dots = () if fused.dot is None else (fused.dot,)
    roots = (tuple(operands.results), fused.reductions, fused.straight, dots)
    ops: list[Op] = []
    numbers: dict[int, int] = {}
    stored: list[bool] = []
    stack = [op for group in reversed(roots) for op in reversed(group)]
    while stack:
        op = stack.pop()
        if id(op) in numbers:
            continue
        numbers[id(op)] = len(ops)
        ops.append(op)
        stored.append(operands.stored(op))
        if not stored[-1]:
            stack += reversed(op.args)
    parts: list[Hashable] = [fused.kind, fused.rows, fused.names, fused.collapsed, operands.known]
    parts += [tuple([numbers[id(op)] for op in group]) for group in roots]
    for op, read in zip(ops, stored, strict=True):
        parts += [op.axes, op.dtype, operands.order(op)]
        if not read:
            parts += [op.primitive, op.attrs, tuple([numbers[id(arg)] for arg in op.args])]
    return ops, tuple(parts)
