"""Rebuilding of graphs with some ops replaced, and copies of ops and leaves.

Whatever is rebuilt keeps its source line, names and tags: only the functions here carry them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from ..axes.axes import Axes
from ..core.region_body import Body
from ..core.source_info import current
from ..nodes import Notes, carry_lines, carry_notes
from ..op_graph import (
    Guard,
    Leaf,
    Op,
    OpT,
    insert,
    intern,
    make_leaf,
    new_op,
    post_order,
    put_notes,
    same_ops,
)
from ..values.dtypes import DType

Replace = Callable[[Op, tuple[Op, ...]], "Op | None"]


def rebuild(
    roots: Iterable[Op], replace: Replace | None = None, new: dict[Op, Op] | None = None
) -> list[Op]:
    """Return the roots with ops replaced, arguments before users.

    ``replace(op, args)`` returns what replaces ``op``, whose arguments have become ``args``; None
    means the same op on these. It runs with the source line of ``op``. ``new`` maps ops to their
    replacements; it gains the ops that it lacks.
    """
    new = {} if new is None else new
    roots = list(roots)
    site = current.site
    try:
        for op in post_order(roots, new):
            args = tuple([new[arg] for arg in op.args])
            current.site = op._site
            result = None if replace is None else replace(op, args)
            new[op] = carry(op, with_args(op, args) if result is None else result)
    finally:
        current.site = site
    return [new[root] for root in roots]


def carry(old: Op, new: OpT) -> OpT:
    """Return ``new``, which replaces ``old``, with the lines, names and tags of both."""
    carry_lines(old, new)
    carry_notes(old, new)
    return new


def with_args(
    op: OpT,
    args: tuple[Op, ...],
    dtype: DType | None = None,
    weak: bool | None = None,
    guards: tuple[Guard, ...] = (),
) -> OpT:
    """Return the op with other arguments: same primitive, attributes, axes, and source line.

    ``dtype`` and ``weak`` replace those of the op, if given. The arguments of an elementwise op may
    lack axes of the replaced ones, or have them in another order, as long as together they have all
    axes of the op. ``guards`` are added to the op's own.
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
    """Return the region with other bodies, and the same source line.

    The bodies must have as many parameters as before unless ``args`` are given.
    """
    attrs = _replaced(op.attrs, iter(bodies))
    args = op.args if args is None else args
    if attrs == op.attrs and same_ops(args, op.args):
        return op
    return intern(
        type(op), op.primitive, args, attrs, op.axes, op.dtype, guards=op.guards, site=op._site
    )


def _replaced(attrs: tuple[Any, ...], bodies: Iterator[Body]) -> tuple[Any, ...]:
    """Return the attributes with all bodies in them replaced, in order."""
    values = []
    for value in attrs:
        if isinstance(value, tuple):
            value = _replaced(value, bodies)
        values.append(next(bodies) if isinstance(value, Body) else value)
    return tuple(values)


def copy_op(
    op: OpT,
    args: tuple[Op, ...],
    attrs: tuple[Any, ...],
    axes: Axes,
    guards: tuple[Guard, ...],
    notes: Notes | None,
) -> OpT:
    """Return the same primitive on other arguments, with these notes.

    If an equal op exists, it gets the lines, names and tags of both.
    """
    effect = op.effectful and not any(arg.effectful for arg in op.args)
    arranged = op.primitive.kind == "elementwise" and not in_order(axes, args)
    key = (op.primitive, attrs, *map(id, args)) if attrs else (op.primitive, *map(id, args))
    if arranged:
        key = (axes, *key)
    result = new_op(type(op), op.primitive, args, attrs, axes, op.dtype, op.weak, effect, guards)
    put_notes(result, None if notes is None else notes.copy())
    interned = insert(key, result)
    return carry(result, interned)


def copy_leaf(leaf: Leaf, axes: Axes) -> Leaf:
    """Return a leaf over ``axes`` that replaces another, with its name and tags."""
    result = make_leaf(leaf.primitive, axes, leaf.dtype, leaf.info)
    put_notes(result, leaf.notes())
    return result


def in_order(axes: Axes, args: tuple[Op, ...]) -> bool:
    """Return True if joining the arguments gives these axes in this order."""
    if args[0].axes is axes:
        return True
    names = {name: None for arg in args for name in arg.axes.names}
    return tuple(names) == axes.names
