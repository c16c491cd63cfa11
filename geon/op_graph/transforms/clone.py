"""Clones of graphs: a computation's own copy, with names, lines and fixed lengths.

The copies are in the computation's own table, so nothing that is made of them touches an op of the
user's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from ..axes.lengths import substituted
from ..building.rebuild import copy_leaf, copy_op
from ..core.interning import OwnTable
from ..core.region_body import Body
from ..core.source_info import building, current
from ..nodes import Notes
from ..op_graph import Guard, Leaf, Op, post_order
from ..rows.leaves import LENGTH, length_value
from ..values.attribute_types import with_lengths

NOTHING: dict[str, int] = {}


def notes_of(roots: Iterable[Op]) -> dict[Op, Notes]:
    """The names, tags and lines of the ops below ``roots``, as they are now; leaves keep theirs."""
    return {
        op: op._notes.copy()
        for op in post_order(roots)
        if op._notes is not None and not isinstance(op, Leaf)
    }


def adopt(
    roots: Iterable[Op],
    notes: Mapping[Op, Notes],
    own: OwnTable | None,
    lengths: Mapping[str, int] = NOTHING,
) -> dict[Op, Op]:
    """The copy in ``own`` of each op below ``roots``, with these notes and open lengths replaced.

    Without ``own`` it is where ops are built.

    A leaf is itself, or where ``lengths`` change its axes a leaf that stands for it. A guard that
    ``lengths`` decide is gone: whoever gives them checks it before.
    """
    made: dict[Op, Op] = {}
    with building(own):
        for op in post_order(roots):
            current.site = op._site
            made[op] = _adopted(op, tuple([made[arg] for arg in op.args]), notes.get(op), lengths)
    return made


def _adopted(op: Op, args: tuple[Op, ...], notes: Notes | None, lengths: Mapping[str, int]) -> Op:
    axes, attrs, guards = op.axes, op.attrs, op.guards
    if op.bodies:
        attrs = with_bodies_of(attrs, lambda body: _adopted_body(body, lengths))
    if lengths:
        axes = bound(op.axes, lengths)
        attrs = tuple([bound(value, lengths) for value in attrs])
        guards = bound_guards(op.guards, lengths)
    if isinstance(op, Leaf):
        return op if axes is op.axes else copy_leaf(op, axes)
    if op.primitive is LENGTH and isinstance(attrs[0], int):
        return length_value(attrs[0])
    return copy_op(op, args, attrs, axes, guards, notes)


def with_bodies_of(attrs: tuple[Any, ...], of: Callable[[Body], Body]) -> tuple[Any, ...]:
    """The attributes with ``of`` of each body in them."""
    return tuple(
        [
            of(v) if isinstance(v, Body) else with_bodies_of(v, of) if isinstance(v, tuple) else v
            for v in attrs
        ]
    )


def _adopted_body(body: Body, lengths: Mapping[str, int]) -> Body:
    """The copy of a body, its ops with the names and lines that they have."""
    roots = (*body.parameters, *body.results)
    made: Any = adopt(roots, notes_of(roots), current.own, lengths)
    given, results = (tuple([made[op] for op in ops]) for ops in (body.parameters, body.results))
    return Body(given, results)


def bound(value: Any, lengths: Mapping[str, int]) -> Any:
    """``value`` (an attribute, axes, a length) with these open names replaced by integers."""
    return with_lengths(value, lambda length: substituted(length, lengths))


def bound_guards(guards: Iterable[Guard], lengths: Mapping[str, int]) -> tuple[Guard, ...]:
    """The guards with these open names replaced, less those that are then decided."""
    found = []
    for guard in guards:
        left, right = substituted(guard.left, lengths), substituted(guard.right, lengths)
        if not (isinstance(left, int) and isinstance(right, int)):
            found.append(Guard(guard.relation, left, right, guard.meaning))
    return tuple(found)
