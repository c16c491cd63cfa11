"""Copies of ops on other arguments, and placeholders that stand in for other leaves."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from ..axes.axes import Axes
from ..core.region_body import Body
from ..nodes import Notes, carry_lines, carry_notes
from ..op_graph import Guard, Leaf, Op, OpT, insert, intern, make_leaf, new_op, put_notes, same_ops
from ..values.dtypes import DType


def with_args(
    op: OpT,
    args: tuple[Op, ...],
    dtype: DType | None = None,
    weak: bool | None = None,
    guards: tuple[Guard, ...] = (),
) -> OpT:
    """The same primitive, attributes, axes, dtype and weakness (unless given) on other arguments.

    The arguments of an elementwise op may lack axes that those replaced had, or have them in
    another order, as long as together they have all axes of the op. ``guards`` are assumptions
    besides the op's own. It is made where ``op`` was.
    """
    if dtype is None and same_ops(op.args, args):
        return op
    effect = op.effectful and not any(arg.effectful for arg in op.args)
    arranged = op.primitive.kind == "elementwise" and not in_order(op.axes, args)
    return intern(
        type(op),
        op.primitive,
        args,
        op.attrs,
        op.axes,
        op.dtype if dtype is None else dtype,
        weak=op.weak if weak is None else weak,
        effect=effect,
        guards=(*op.guards, *guards) if guards else op.guards,
        arranged=arranged,
        site=op._site,
    )


def with_bodies(op: OpT, bodies: Sequence[Body], args: tuple[Op, ...] | None = None) -> OpT:
    """The same region with other bodies, of as many parameters unless other ``args`` are given.

    It is made where ``op`` was.
    """
    attrs = _replaced(op.attrs, iter(bodies))
    args = op.args if args is None else args
    if attrs == op.attrs and same_ops(args, op.args):
        return op
    return intern(
        type(op), op.primitive, args, attrs, op.axes, op.dtype, guards=op.guards, site=op._site
    )


def _replaced(attrs: tuple[Any, ...], bodies: Iterator[Body]) -> tuple[Any, ...]:
    """The attributes with these in the place of all bodies in them."""
    found = []
    for value in attrs:
        if isinstance(value, tuple):
            value = _replaced(value, bodies)
        found.append(next(bodies) if isinstance(value, Body) else value)
    return tuple(found)


def copy_op(
    op: OpT,
    args: tuple[Op, ...],
    attrs: tuple[Any, ...],
    axes: Axes,
    guards: tuple[Guard, ...],
    notes: Notes | None,
) -> OpT:
    """The same primitive on other arguments, with these notes.

    One that is there already gets the lines, names and tags of both.
    """
    effect = op.effectful and not any(arg.effectful for arg in op.args)
    arranged = op.primitive.kind == "elementwise" and not in_order(axes, args)
    key = (op.primitive, attrs, *map(id, args)) if attrs else (op.primitive, *map(id, args))
    if arranged:
        key = (axes, *key)
    made = new_op(type(op), op.primitive, args, attrs, axes, op.dtype, op.weak, effect, guards)
    put_notes(made, None if notes is None else notes.copy())
    found = insert(key, made)
    if found is not made:
        carry_lines(made, found)
        carry_notes(made, found)
    return found


def copy_leaf(leaf: Leaf, axes: Axes) -> Leaf:
    """A leaf over ``axes`` that stands for another, and has its name and tags."""
    made = make_leaf(leaf.primitive, axes, leaf.dtype, leaf.info)
    put_notes(made, leaf.notes())
    return made


def in_order(axes: Axes, args: tuple[Op, ...]) -> bool:
    """Whether joining the arguments gives these axes in this order."""
    if args[0].axes is axes:
        return True
    names = {name: None for arg in args for name in arg.axes.names}
    return tuple(names) == axes.names
