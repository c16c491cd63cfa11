"""Clones of graphs: a computation's own copy, with names, lines and fixed lengths.

The copies are in the computation's own intern table, so a computation never changes a user's op.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from ..axes.lengths import substitute_names
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
    """Return copies of the names, tags and lines of the ops below ``roots``, except of leaves."""
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
    """Map each op below ``roots`` to its copy, with these notes and open lengths replaced.

    The copies are in ``own``, or in the current intern table if that is None. A leaf maps to
    itself, or to a new leaf if ``lengths`` change its axes. Guards that ``lengths`` decide are
    removed; the caller must have checked them.
    """
    result: dict[Op, Op] = {}
    with building(own):
        for op in post_order(roots):
            current.site = op._site
            result[op] = _adopted(
                op, tuple([result[arg] for arg in op.args]), notes.get(op), lengths
            )
    return result


def fix_lengths(roots: Sequence[Op], lengths: Mapping[str, int]) -> list[Op]:
    """Return the roots with these open lengths replaced; raise ``GuardError`` for broken guards."""
    order = post_order(roots)
    for guard in [guard for op in order for guard in op.guards]:
        guard.refuse_broken(lengths, ", ".join(f"{n} = {v}" for n, v in lengths.items()))
    if all(isinstance(n, int) for op in order for n in op.axes.lengths):
        return [*roots]
    result = adopt(roots, notes_of(roots), None, lengths)
    return [result[op] for op in roots]


def _adopted(op: Op, args: tuple[Op, ...], notes: Notes | None, lengths: Mapping[str, int]) -> Op:
    axes, attrs, guards = op.axes, op.attrs, op.guards
    if op.bodies:
        attrs = with_bodies_of(attrs, lambda body: _adopted_body(body, lengths))
        attrs = op.primitive.named(attrs)
    if lengths:
        axes = bind_lengths(op.axes, lengths)
        attrs = op.primitive.named(tuple([bind_lengths(value, lengths) for value in attrs]))
        guards = bound_guards(op.guards, lengths)
    if isinstance(op, Leaf):
        return op if axes is op.axes else copy_leaf(op, axes)
    if op.primitive is LENGTH and isinstance(attrs.length, int):
        return length_value(attrs.length)
    return copy_op(op, args, attrs, axes, guards, notes)


def with_bodies_of(attrs: tuple[Any, ...], of: Callable[[Body], Body]) -> tuple[Any, ...]:
    """Return the attributes with ``of`` applied to each body in them."""
    return tuple(
        [
            of(v) if isinstance(v, Body) else with_bodies_of(v, of) if isinstance(v, tuple) else v
            for v in attrs
        ]
    )


def _adopted_body(body: Body, lengths: Mapping[str, int]) -> Body:
    """Return the copy of a body; its ops keep their names and lines."""
    roots = (*body.parameters, *body.results)
    result: Any = adopt(roots, notes_of(roots), current.own, lengths)
    given, results = (tuple([result[op] for op in ops]) for ops in (body.parameters, body.results))
    return Body(given, results)


def bind_lengths(value: Any, lengths: Mapping[str, int]) -> Any:
    """Return ``value`` (an attribute, axes, a length) with open names replaced by integers."""
    return with_lengths(value, lambda length: substitute_names(length, lengths))


def bound_guards(guards: Iterable[Guard], lengths: Mapping[str, int]) -> tuple[Guard, ...]:
    """Return the guards with these open names replaced, without those that are then decided."""
    bound = []
    for guard in guards:
        left, right = substitute_names(guard.left, lengths), substitute_names(guard.right, lengths)
        if not (isinstance(left, int) and isinstance(right, int)):
            bound.append(Guard(guard.relation, left, right, guard.meaning))
    return tuple(bound)
