"""Kernels that differ in what they read alone are lowered once.

A network has many layers of one form. Their ops are other ones, so their kernels are, too; but what
a kernel does follows from its ops' rows, attributes and axes, and from how values lie in memory.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import replace

from ...op_graph.op_graph import Op
from .ir.nest import Call, Fused, Nest
from .kernel_lowering import Printed, lower
from .nests.index_set_splitting import with_operands
from .nests.inlining import Operands
from .products.contraction import Contraction


class Lowering:
    """``lower`` that remembers kernels of each form, and of which of their ops the operands are."""

    def __init__(self) -> None:
        self.known: dict[Hashable, tuple[Nest | Contraction, tuple[int, ...]]] = {}

    def lower(self, op: Op, fused: Fused | None, operands: Operands) -> Printed | Call:
        """As ``lower``; a kernel of a form that was met has the loops and the code of that one."""
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
        if None not in found:  # draws have operands that lowering makes
            self.known[form] = made, tuple([n for n in found if n is not None])
        return made


def _with_operands(work: Nest | Contraction, operands: tuple[Op, ...]) -> Nest | Contraction:
    if isinstance(work, Nest):
        return with_operands(work, operands)
    pieces = tuple([replace(piece, operands=operands) for piece in work.pieces])
    return replace(work, operands=operands, pieces=pieces)


def form_of(fused: Fused, operands: Operands) -> tuple[list[Op], Hashable]:
    """The ops of a kernel down to what it reads, and a value that is equal for kernels which do
    the same with as many.
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
    parts: list[Hashable] = [fused.kind, fused.rows, fused.names, operands.known]
    parts += [tuple([numbers[id(op)] for op in group]) for group in roots]
    for op, read in zip(ops, stored, strict=True):
        parts += [op.axes, op.dtype, operands.order(op)]
        if not read:
            parts += [op.primitive, op.attrs, tuple([numbers[id(arg)] for arg in op.args])]
    return ops, tuple(parts)
