"""Merges loops that share carries into one loop.

The derivatives of one loop with respect to several values, taken one by one, are such loops: each
carries the same values as the others, plus totals of its own.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby

from ..axes.axes import Axes
from ..building.rebuild import carry, rebuild
from ..core.region_body import Body
from ..op_graph import NO_AXES, Op, RegionOp, Tensor, make_region, post_order, same_ops
from ..regions.loop import RegionLoop, loop_of
from ..regions.parameters import REGION_RESULT, parameter, result_of, substitute_ops
from ..values.dtypes import INT64, DType


def merge_loops(roots: Sequence[Op]) -> list[Op]:
    """Return the roots with loops merged that share carries and do not depend on each other.

    Two carries are the same if they have the same initial value and the same update in a step.
    Scans without carries are merged if they have the same arguments; while loops only if they end
    by the same condition.
    """
    merged = list(roots)
    while True:
        order = post_order(merged)
        group = next(_groups(order), None)
        if group is None:
            return merged
        merged = _joined(group, merged)


class _LoopGroup:
    """Scans over one axis in one direction, or while loops, with their bodies over the same leaves.

    ``classes`` gives for each loop the class of each of its carries. ``values`` are the results of
    each body and then its conditions. Two carries are in one class if they have the same initial
    value and the same update. The classes are refined until a step does not split them any more.
    """

    def __init__(self, regions: Sequence[RegionOp]) -> None:
        self.regions = list(regions)
        self.loops = [_loop(op) for op in regions]
        self.leaves: dict[tuple[object, ...], Op] = {}
        given = [op.args[: a.carries] for op, a in zip(self.regions, self.loops, strict=True)]
        self.classes = _numbered([[(id(arg),) for arg in args] for args in given])
        self.values = self.computed()
        while True:
            pairs = zip(self.classes, self.values, strict=True)
            divided = _numbered([
                [(number, id(value)) for number, value in zip(numbers, values, strict=False)]
                for numbers, values in pairs
            ])  # fmt: skip
            if divided == self.classes:
                return
            self.classes = divided
            self.values = self.computed()

    def computed(self) -> list[list[Tensor]]:
        """Return the results of each body, with one leaf for all carries of a class."""
        groups = []
        for op, a, numbers in zip(self.regions, self.loops, self.classes, strict=True):
            known: dict[Op, Op] = {}
            places = self.places(op, a)
            for k, (each, position) in enumerate(zip(a.body.parameters, places, strict=True)):
                of = ("carry", numbers[k]) if k < a.carries else position
                known[each] = self.leaf(of, each.axes, each.dtype)
            groups.append(substitute_ops([*a.body.results, *a.conditions], known))
        return groups

    def places(self, op: RegionOp, a: RegionLoop) -> list[tuple[object, ...]]:
        """Return a key for each parameter of a loop's body, by the argument that it stands for."""
        given = op.args[a.carries : a.captures.stop]
        kinds = ["stack"] * a.xs + ["capture"] * (len(given) - a.xs)
        named = zip(kinds, map(id, given), strict=True)
        return [*(("carry",) for _ in range(a.carries)), *named, ("step",)]

    def leaf(self, of: tuple[object, ...], axes: Axes, dtype: DType) -> Op:
        """Return the leaf for the key ``of`` with these axes and dtype, one for each key."""
        key = (*of, axes, dtype.name)
        if key not in self.leaves:
            self.leaves[key] = parameter(len(self.leaves), axes, dtype)
        return self.leaves[key]

    def share(self, one: int, other: int) -> bool:
        """Return True if two of the loops share carries or, without carries, all arguments.

        They must end by the same condition and stack along the same axis, if both stack.
        """
        first, second = self.loops[one], self.loops[other]
        if first.axis is not second.axis and None not in (first.axis, second.axis):
            return False
        ends = [self.values[k][len(self.loops[k].body.results) :] for k in (one, other)]
        if not same_ops(*ends):
            return False
        mine, others = set(self.classes[one]), set(self.classes[other])
        if not mine and not others:
            return same_ops(self.regions[one].args, self.regions[other].args)
        return bool(mine & others)


def _numbered(keys: Sequence[Sequence[object]]) -> list[list[int]]:
    """Replace the keys by numbers in order of first use."""
    numbers: dict[object, int] = {}
    return [[numbers.setdefault(key, len(numbers)) for key in row] for row in keys]


# Choice of the loops to merge ---------------------------------------------------------------------


def _groups(order: Sequence[Op]) -> Iterator[_LoopGroup]:
    """Yield groups of two or more loops to merge."""
    regions = [
        op for op in order if isinstance(op, RegionOp) and op.primitive.name in ("scan", "while")
    ]
    if len(regions) < 2:
        return
    needs = _needs(order, regions)
    for _, alike in groupby(sorted(regions, key=_steps), key=_steps):
        members = list(alike)
        if len(members) < 2 or not _begin_alike(members):
            continue
        every = _LoopGroup(members)
        for first in range(len(members)):
            chosen = [first]
            for other in range(first + 1, len(members)):
                apart = not any(_needs_other(members[k], members[other], needs) for k in chosen)
                if apart and any(every.share(k, other) for k in chosen):
                    chosen.append(other)
            if len(chosen) > 1:
                yield _LoopGroup([members[k] for k in chosen])


def _loop(op: RegionOp) -> RegionLoop:
    """Return a scan or a while loop as a loop."""
    loop = loop_of(op)
    assert loop is not None
    return loop


def _steps(op: RegionOp) -> tuple[object, ...]:
    """Return the key that merged loops have in common: what bounds the number of their steps."""
    if op.primitive.name == "while":
        limit = op.attrs.limit
        return "while", -1 if limit is None else limit
    a = op.attrs
    return "scan", id(a.axis), a.reverse, id(a.steps_given(op.args))


def _begin_alike(regions: Sequence[RegionOp]) -> bool:
    """Return True if two of the loops have an equal initial carry, or have no carries."""
    seen: set[int] = set()
    for op in regions:
        begins = set(map(id, op.args[: op.attrs.carries])) or {0}
        if begins & seen:
            return True
        seen |= begins
    return False


def _needs(order: Sequence[Op], regions: Sequence[RegionOp]) -> dict[Op, int]:
    """Return for each op the loops that it depends on, itself included, as a bit set."""
    number = {op: k for k, op in enumerate(regions)}
    numbers: dict[Op, int] = {}
    for op in order:
        bits = 1 << number[op] if isinstance(op, RegionOp) and op in number else 0
        for arg in op.args:
            bits |= numbers[arg]
        numbers[op] = bits
    return numbers


def _needs_other(one: RegionOp, other: RegionOp, needs: dict[Op, int]) -> bool:
    """Return True if one of two loops depends on the other."""
    both = needs[one] | needs[other]
    return both in (needs[one], needs[other])


# The merged loop ----------------------------------------------------------------------------------


def _joined(group: _LoopGroup, roots: Sequence[Op]) -> list[Op]:
    """Return the roots with the loops of a group replaced by one."""
    new: dict[Op, Op] = {}
    result: dict[Op, list[Tensor]] = {}  # the results for each of the loops
    merged: list[RegionOp] = []

    def replaced(op: Op, args: tuple[Op, ...]) -> Op | None:
        if any(op is region for region in group.regions):
            if not result:
                merged.append(_one(group, new, result))
            return merged[0]
        if op.primitive is REGION_RESULT and op.args[0] in result:
            number: int = op.attrs.number
            return result[op.args[0]][number]
        return None

    before = [arg for region in group.regions for arg in region.args]
    return rebuild([*before, *roots], replaced, new)[len(before) :]


def _one(group: _LoopGroup, new: Mapping[Op, Op], by_loop: dict[Op, list[Tensor]]) -> RegionOp:
    """Return the loop that merges a group; put the results for each of its loops into ``by_loop``.

    ``new`` maps each argument to its replacement.
    """
    carries: dict[int, tuple[Op, Op, Op]] = {}  # by class: leaf, initial value, value after a step
    others: dict[object, dict[Op, Op]] = {"stack": {}, "capture": {}}  # arguments by leaf
    values: dict[Op, int] = {}
    members = list(zip(group.regions, group.loops, group.classes, group.values, strict=True))
    for op, a, numbers, results in members:
        given = zip(
            a.body.parameters, group.places(op, a), op.args[: a.captures.stop], strict=False
        )
        for k, (each, position, arg) in enumerate(given):
            if k < a.carries:
                leaf = group.leaf(("carry", numbers[k]), each.axes, each.dtype)
                carries.setdefault(numbers[k], (leaf, new[arg], results[k]))
            else:
                others[position[0]][group.leaf(position, each.axes, each.dtype)] = new[arg]
        for value in results[a.carries : len(a.body.results)]:
            values.setdefault(value, len(values))
    stacks, captures = others["stack"], others["capture"]
    step = group.leaf(("step",), NO_AXES, INT64)
    leaves = [*(leaf for leaf, _, _ in carries.values()), *stacks, *captures, step]
    parameters = tuple([parameter(k, op.axes, op.dtype) for k, op in enumerate(leaves)])
    known: dict[Op, Op] = dict(zip(leaves, parameters, strict=True))
    wanted = [*(value for _, _, value in carries.values()), *values]
    body = Body(parameters, tuple(substitute_ops(wanted, known)))
    first, region = group.loops[0], group.regions[0]
    conditions = substitute_ops(group.values[0][len(first.body.results) :], known)
    axis = next((loop.axis for loop in group.loops if loop.axis is not None), None)
    loop = first.with_parts(len(carries), len(stacks), body, conditions, axis)
    begins = [begin for _, begin, _ in carries.values()]
    options = [new[arg] for arg in region.args[len(region.args) - first.options :]]
    args = (*begins, *stacks.values(), *captures.values(), *options)
    guards = tuple(dict.fromkeys([guard for op in group.regions for guard in op.guards]))
    one = make_region(loop.row, args, loop.attrs, guards=guards, site=region._site)
    number = {each: k for k, each in enumerate(carries)}
    for op, a, numbers, results in members:
        carry(op, one)
        places = [number[each] for each in numbers]
        places += range(len(carries), len(carries) + loop.extra)
        for value in results[a.carries : len(a.body.results)]:
            places.append(loop.result(len(carries) + values[value]))
        by_loop[op] = [result_of(one, k, op._site) for k in places]
    return one
