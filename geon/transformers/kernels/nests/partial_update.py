"""Updates of a part of a value: a nest over the part that stores into the whole."""

from __future__ import annotations

from ....op_graph.axes.affine import variable
from ....op_graph.op_graph import Op
from ....op_graph.rows.slicing import part_index
from ..ir.nest import Fill, Loop, Nest, Pass, Store
from .inlining import Elements, OperandInliner


def make_update(op: Op, operands: OperandInliner) -> Nest:
    """Return the loops of an update: they store the new part; a fill copies the rest if needed."""
    value = op.args[1]
    elements = Elements(operands)
    loops = tuple([
        Loop(f"i_{k}", (axis.name,), axis.expression) for k, axis in enumerate(value.axes)
    ])  # fmt: skip
    index = {axis.name: variable(f"i_{k}") for k, axis in enumerate(value.axes)}
    whole, base = operands.number(op), operands.number(operands.base[op.args[0]])
    read = elements.value(value, index)
    offset = operands.offset(op, elements.resolved(op, part_index(op, index)))
    store = Store(whole, offset, read, op.dtype)
    step = Pass(loops[-1:], stores=(store,))
    fill = Fill(whole, base)
    return Nest(loops[:-1], None, (step,), (), (), tuple(operands.numbers), fill)
