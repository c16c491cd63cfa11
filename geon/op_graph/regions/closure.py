"""Closure conversion: outside values that a step reads become parameters of its body."""

from __future__ import annotations

from collections.abc import Iterable, Sequence, Set
from typing import Any

from ...errors import ArgumentError
from ..core.region_body import Body
from ..nodes import carry_notes
from ..op_graph import Op, Tensor, VoidOp, post_order
from ..rows.leaves import placeholder
from ..values.attribute_types import Frozen
from .parameters import parameter, substitute_ops, tensors


def close_body(
    leaves: Sequence[Tensor],
    results: Sequence[Tensor],
    last: Sequence[Tensor] = (),
    outside: Set[Op] = frozenset(),
) -> tuple[Body, tuple[Tensor, ...]]:
    """Return the body that computes ``results``, and the outside values that it captures.

    The parameters of the body are, in order, those of ``leaves``, of the captures, and of ``last``.
    Ops that depend on none of the leaves stay outside of the body and are computed once. The walk
    does not go below ops in ``outside``.
    """
    captures = captured_values([*leaves, *last], results, outside=outside)
    given = [*leaves, *captures, *last]
    parameters = [parameter(k, op.axes, op.dtype) for k, op in enumerate(given)]
    known: dict[Op, Op] = dict(zip(given, parameters, strict=True))
    return Body(tuple(parameters), rebuilt(results, known)), tuple(captures)


def rebuilt(results: Iterable[Op], known: dict[Op, Op]) -> tuple[Tensor, ...]:
    """Return the results of a body with the keys of ``known`` replaced; ops keep their names."""
    result = substitute_ops(results, known)
    for op, replacement in known.items():
        carry_notes(op, replacement)
    return tuple(result)


def captured_values(
    leaves: Iterable[Op],
    results: Iterable[Op],
    inside: Set[Op] | None = None,
    outside: Set[Op] = frozenset(),
) -> list[Tensor]:
    """Return the outside values that a body with these results reads, in order of first use.

    ``inside`` are the ops of the body; by default these are ``leaves`` and all ops that depend on
    them.
    """
    roots = list(results)
    order = post_order(roots, outside)
    if inside is None:
        inside = set(leaves)
        for op in order:
            if any(arg in inside for arg in op.args):
                inside.add(op)
    captures: dict[Op, None] = {}
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
                captures[top] = None
    return tensors(captures)


def is_repeated(op: Op) -> bool:
    """Return True if a body computes ``op`` itself instead of capturing it.

    This holds for ops that cost a body nothing: values known before a call, and views.
    """
    row = op.primitive
    if op._unique or len(op.args) > 1:
        return False
    if row.known:
        return not (op.attrs and isinstance(op.attrs[0], Frozen))
    if row.name == "cast":
        return is_repeated(op.args[0]) and op.args[0].primitive.known
    return row.name == "iota" or (row.view and not row.has_side_effect and len(op.axes) > 0)


def refuse_effects(what: str, results: Iterable[Any], cure: str) -> None:
    """Raise ``ArgumentError`` if a function changes variables, prints, or returns an effect.

    ``cure`` is the advice of the message, with a field ``{target}`` for the assigned variable.
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
    """Raise ``ArgumentError`` if one of the ops prints."""
    for op in ops:
        if op.primitive.name == "print":
            raise ArgumentError(
                f"{what}: it runs the effect {op} (made at {op.line_info}), and prints are run "
                "once, by the computation; return the value, and geon.print what comes out"
            )


class Opened:
    """A body with placeholders for its parameters: new ones, or the given ``leaves``."""

    def __init__(self, body: Body, leaves: Sequence[Tensor] | None = None) -> None:
        self.leaves = [like(op) for op in body.parameters] if leaves is None else list(leaves)
        known: dict[Op, Op] = dict(zip(body.parameters, self.leaves, strict=True))
        self.results = substitute_ops(body.results, known)


def like(op: Op) -> Tensor:
    """Return a placeholder with the axes and dtype of an op."""
    return placeholder(op.axes, op.dtype)
