"""Removes unread carries and results of while loops."""

from __future__ import annotations

from collections.abc import Set

from ..building.constants import as_tensor
from ..building.weak import strengthen
from ..core.region_body import Body
from ..nodes import carry_lines, carry_notes
from ..op_graph import NO_AXES, Op, RegionOp, Tensor, make, post_order
from ..regions.parameters import parameter, result_of, substitute_ops
from ..regions.while_op import WhileAttributes
from ..rows.elementwise import add
from ..values.dtypes import INT64


def while_key(op: RegionOp) -> object:
    """Return a key that is equal for while loops that can be merged."""
    a: WhileAttributes = op.attrs
    same = (*a.condition.results, *a.body.results[: a.carries])
    return (op.primitive, a.limit, a.carries, *map(id, same), *map(id, op.args))


def smaller_while(
    op: RegionOp, a: WhileAttributes, args: tuple[Op, ...], needed: Set[int]
) -> dict[int, Op]:
    """Return the ``needed`` results of a loop, by their old numbers, without unused parts.

    The loop has the attributes ``a`` and the arguments ``args``. Carries, stacks and captures that
    the results do not depend on are removed. The step number becomes a carry if a body reads it or
    it is needed.
    """
    if not needed:
        return {}
    count, given, results = a.carries, a.body.parameters, a.body.results
    stacks = [k for k in range(count, len(results)) if k + 1 in needed]
    kept = {k for k in needed if k < count}
    while True:
        roots = [*a.condition.results, *(results[k] for k in (*sorted(kept), *stacks))]
        reached = set(post_order(roots))
        more = {k for k in range(count) if given[k] in reached} - kept
        if not more:
            break
        kept |= more
    carried = sorted(kept)
    captures = [k for k in range(count, len(args)) if given[k] in reached]
    is_counted = count in needed or given[-1] in reached
    read: list[Op] = [given[k] for k in carried]
    init: list[Op] = [args[k] for k in carried]
    if is_counted:
        read.append(given[-1])
        init.append(strengthen(as_tensor(0), INT64))
    read += [given[k] for k in captures]
    parameters: list[Tensor] = [parameter(k, each.axes, each.dtype) for k, each in enumerate(read)]
    parameters.append(parameter(len(read), NO_AXES, INT64))
    known: dict[Op, Op] = dict(zip(read, parameters, strict=False))
    made = substitute_ops([results[k] for k in carried], known)
    if is_counted:
        made.append(add.apply(parameters[len(carried)], strengthen(as_tensor(1), INT64)))
    made += substitute_ops([results[k] for k in stacks], known)
    body = Body(tuple(parameters), tuple(made))
    condition = Body(tuple(parameters), tuple(substitute_ops(a.condition.results, known)))
    attrs = (a.axis if stacks else None, a.limit, len(init), condition, body)
    arguments = (*init, *(args[k] for k in captures))
    one: RegionOp = make(op.primitive, arguments, attrs, guards=op.guards, site=op._site)
    carry_lines(op, one)
    carry_notes(op, one)
    numbers = {old: new for new, old in enumerate(carried)}
    numbers.update({k + 1: len(init) + 1 + n for n, k in enumerate(stacks)})
    if count in needed:
        numbers[count] = len(carried)
    return {old: result_of(one, numbers[old], op._site) for old in needed}
