"""Transformations of loops by the guards of their values: choices before loops, and borders."""

from __future__ import annotations

from collections.abc import Sequence

from ...op_graph.axes.affine import AffineIndex, variable
from ...op_graph.axes.index_map import InRange
from ...op_graph.axes.lengths import is_never_negative
from ..kernels.ir.loop_variables import changes_with
from ..kernels.ir.scalar_code import Select
from ..kernels.ir.scalar_code import walk as walk_scalars
from .access import READ, WRITE, accesses, private
from .simplify import Assumption, Guards
from .substitution import Substitution
from .transformations import copied, require_serial
from .tree import (
    Body,
    Choose,
    Space,
    Tree,
    Write,
    divided,
    find,
    least,
    loops_in,
    replace,
    replaced,
    require,
    values_of,
    walk,
)

MAX_UNSWITCHED_GUARDS = 4  # conditions, each with a copy of the loop: text grows with them


def unswitch(tree: Tree, name: str) -> Tree:
    """Choose before a loop between the sides of selections whose guards do not change in it.

    A copy of the loop, with a variable of its own, runs where they hold. There, guards that these
    exclude fail.
    """
    loop, _ = find(tree, name)
    inside = {name, *loops_in(loop)}
    values = [value for each, _ in walk(loop.body) for value in values_of(each)]
    selects = [node for node in walk_scalars(*values) if isinstance(node, Select)]
    found = [
        guards
        for guards in dict.fromkeys(select.guards for select in selects)
        if not any(changes_with(guard.index, inside) for guard in guards)
    ]
    require(bool(found), f"no guard is the same for all iterations of {name}")
    require(len(found) <= MAX_UNSWITCHED_GUARDS, f"{len(found)} guards are the same in {name}")
    guards = found[0]
    own = [n for n in private(tree, name) if tree.buffers[n].space is not Space.SCRATCH]
    (then,), tree = copied(tree, (loop,), own, {})
    known = {other: False for other in found if exclude(guards, other)}
    then = Assumption(tree, {**known, guards: True}).statement(then)
    otherwise = Assumption(tree, {guards: False}).statement(loop)
    return replaced(tree, name, lambda _: (Choose(guards, (then,), (otherwise,)),))


def exclude(guards: Guards, others: Guards) -> bool:
    """Return True if guards are known to fail where ``others`` hold."""
    return any(
        one.index == other.index
        and (is_never_negative(one.low - other.high) or is_never_negative(other.low - one.high))
        for one in guards
        for other in others
    )


def clip(tree: Tree, names: Sequence[str]) -> Tree:
    """Run perfectly nested loops only where the guards of selections in them hold.

    ``names`` are one or two loops, outermost first, around one statement that stores. If guards
    fail in some iterations, loops before these store the other sides in all of them. A guard may
    change with one of the loops, by a known step.
    """
    loops = [find(tree, name)[0] for name in names]
    require_serial(*loops)
    require(
        all(outer.body == (inner,) for outer, inner in zip(loops, loops[1:], strict=False)),
        f"{names[-1]} is not all that is in {names[0]}",
    )
    write = loops[-1].body[0]
    alone = isinstance(write, Write) and len(loops[-1].body) == 1
    require(alone, f"{names[-1]} does not only store")
    stored = {each.memory for each in accesses((write,)) if each.way == WRITE}
    read = {each.memory for each in accesses((write,)) if each.way == READ}
    require(stored.isdisjoint(read), f"{names[-1]} reads what it stores")
    selects = [node for node in walk_scalars(*values_of(write)) if isinstance(node, Select)]
    found = dict.fromkeys(select.guards for select in selects)
    require(len(found) == 1, f"values in {names[-1]} have {len(found)} guards")
    (guards,) = found
    own = {name: [x for x in guards if changes_with(x.index, {name})] for name in names}
    fixed = tuple([x for x in guards if not any(x in some for some in own.values())])
    bounds, whole, moved = [loop.extent for loop in loops], list[InRange](), {}
    for k, name in enumerate(names):
        require(not changes_with(bounds[k], names), f"the length of {name} changes with another")
        if own[name]:
            low, high = interval(own[name], name, bounds[k], names)
            whole += [InRange(low, 0, 1), InRange(high - bounds[k], 0, 1)]
            bounds[k], moved[name] = high - low, variable(name) + low
    inside, outside = (Assumption(tree, {guards: holds}) for holds in (True, False))
    body: Body = (Substitution(tree.code, moved).statement(inside.statement(write)),)
    for loop, extent in zip(reversed(loops), reversed(bounds), strict=True):
        body = (replace(loop, extent=extent, body=body),)
    others, tree = copied(tree, outside.body((loops[0],)), (), {})
    body = (Choose(fixed, body, ()),) if fixed else body
    return replaced(tree, names[0], lambda _: (Choose((*fixed, *whole), (), others), *body))


def interval(
    guards: Sequence[InRange], name: str, extent: AffineIndex, names: Sequence[str]
) -> tuple[AffineIndex, AffineIndex]:
    """Return the first iteration of a loop in which all ``guards`` hold, and the end of these.

    The end is before the first one where there are none. Guards change with none of the other loops
    ``names``.
    """
    lows, highs = [AffineIndex()], [extent]
    for guard in guards:
        step = guard.index.step(name)
        base = AffineIndex(
            [(atom, x) for atom, x in guard.index.terms.items() if atom != name],
            guard.index.constant,
        )
        require(not changes_with(base, names), f"a guard of {name} changes with other loops, too")
        require(isinstance(step, int), f"a guard of {name} changes by an open step")
        assert isinstance(step, int)
        below, above = base * -1 + guard.low, base * -1 + guard.high
        if step < 0:
            below, above = base - guard.high + 1, base - guard.low + 1
        lows.append(rounded_up(below, abs(step)) * -1)
        highs.append(rounded_up(above, abs(step)))
    return least(lows) * -1, least(highs)


def rounded_up(index: AffineIndex, by: int) -> AffineIndex:
    """Return an index divided by a number, rounded up; 0 or less if the index is not positive."""
    if by == 1:
        return index
    positive = least([AffineIndex(), index * -1]) * -1
    return divided(positive + (by - 1), by)[0]
