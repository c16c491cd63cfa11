"""Closure conversion: what a step reads from outside becomes a parameter of its body."""

from __future__ import annotations

from collections.abc import Iterable, Sequence, Set
from typing import Any

from ...errors import ArgumentError
from ..core.region_body import Body
from ..nodes import carry_notes
from ..op_graph import Op, Tensor, VoidOp, post_order
from ..rows.leaves import placeholder
from ..values.attribute_types import Frozen
from .parameters import parameter, substituted, tensors


def closed(
    leaves: Sequence[Tensor],
    results: Sequence[Tensor],
    last: Sequence[Tensor] = (),
    outside: Set[Op] = frozenset(),
) -> tuple[Body, tuple[Tensor, ...]]:
    """The body that computes ``results``, and what it reads beside ``leaves`` and ``last``.

    Its parameters are those of ``leaves``, of what was found, and of ``last``, in order. What
    depends on none of the leaves is outside of the body: it is computed once. Below ops that are
    ``outside`` nothing is looked at.
    """
    captures = captured([*leaves, *last], results, outside=outside)
    given = [*leaves, *captures, *last]
    parameters = [parameter(k, op.axes, op.dtype) for k, op in enumerate(given)]
    known: dict[Op, Op] = dict(zip(given, parameters, strict=True))
    return Body(tuple(parameters), rebuilt(results, known)), tuple(captures)


def rebuilt(results: Iterable[Op], known: dict[Op, Op]) -> tuple[Tensor, ...]:
    """The results of a body, of what ``known`` says stands for others; ops keep their names."""
    made = substituted(results, known)
    for op, stands in known.items():
        carry_notes(op, stands)
    return tuple(made)


def captured(
    leaves: Iterable[Op],
    results: Iterable[Op],
    inside: Set[Op] | None = None,
    outside: Set[Op] = frozenset(),
) -> list[Tensor]:
    """The values outside that a body with these results reads, in order of first use.

    What is made of ``leaves`` is inside, unless it is said what is.
    """
    roots = list(results)
    order = post_order(roots, outside)
    if inside is None:
        inside = set(leaves)
        for op in order:
            if any(arg in inside for arg in op.args):
                inside.add(op)
    found: dict[Op, None] = {}
    waiting = [op for op in order if op in inside]
    seen = set(waiting)
    for each in [*(arg for op in waiting for arg in op.args), *roots]:
        stack = [each]
        while stack:
            top = stack.pop()
            if top in seen:
                continue
            seen.add(top)
            if is_repeated(top):
                stack += top.args[::-1]
            else:
                found[top] = None
    return tensors(found)


def is_repeated(op: Op) -> bool:
    """Whether a body says once more what it reads, rather than to be given it.

    What is known before a call, or only looks at memory, costs a body nothing.
    """
    row = op.primitive
    if op._unique or len(op.args) > 1:
        return False
    if row.known:
        return not (op.attrs and isinstance(op.attrs[0], Frozen))
    if row.name == "cast":
        return is_repeated(op.args[0]) and op.args[0].primitive.known
    return row.name == "iota" or (row.view and not row.acts and len(op.axes) > 0)


def refuse_effects(what: str, results: Iterable[Any], cure: str) -> None:
    """Raise ``ArgumentError`` where a function changes variables, prints, or returns an effect.

    ``cure`` says what to do with a ``{target}`` that is assigned to.
    """
    for root in results:
        if isinstance(root, Op) and root.effectful:
            order = post_order([root])
            refuse_prints(what, order)
            for op in order:
                if isinstance(op, VoidOp):
                    target = str(op.args[0]) if op.args else "the variable"
                    raise ArgumentError(
                        f"{what}: it runs the effect {op} (made at {op.line_info}); "
                        f"{cure.format(target=target)}"
                    )


def refuse_prints(what: str, ops: Iterable[Op]) -> None:
    """Raise ``ArgumentError`` where one of the ops prints."""
    for op in ops:
        if op.primitive.name == "print":
            raise ArgumentError(
                f"{what}: it runs the effect {op} (made at {op.line_info}), and prints are run "
                "once, by the computation; return the value, and geon.print what comes out"
            )


class Opened:
    """A body over placeholders in the place of its parameters: new ones, unless given."""

    def __init__(self, body: Body, leaves: Sequence[Tensor] | None = None) -> None:
        self.leaves = [like(op) for op in body.parameters] if leaves is None else list(leaves)
        known: dict[Op, Op] = dict(zip(body.parameters, self.leaves, strict=True))
        self.results = substituted(body.results, known)


def like(op: Op) -> Tensor:
    """A placeholder over the axes of an op, of its dtype."""
    return placeholder(op.axes, op.dtype)
