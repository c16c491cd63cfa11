"""Merges scans over the same axis into one scan.

The derivatives of one loop with respect to several values, taken one by one, are such scans: each
carries the same values as the others, plus totals of its own.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby

from ..axes.axes import Axes
from ..building.rebuild import with_args
from ..core.region_body import Body
from ..core.source_info import current
from ..nodes import carry_lines, carry_notes
from ..op_graph import NO_AXES, Op, RegionOp, Tensor, make, post_order, same_ops
from ..regions.parameters import parameter, result_of, substitute_ops
from ..regions.scan_op import ScanAttributes
from ..values.dtypes import INT64, DType


def merge_scans(roots: Sequence[Op]) -> list[Op]:
    """Return the roots with scans merged that share carries and do not depend on each other.

    Two carries are the same if they have the same initial value and the same update in a step.
    Scans without carries are merged if they have the same arguments.
    """
    found = list(roots)
    while True:
        order = post_order(found)
        met = next(_meetings(order), None)
        if met is None:
            return found
        found = _joined(met, found)


class _Meeting:
    """Scans over one axis in one direction, with their bodies over the same leaves.

    ``classes`` gives for each scan the class of each of its carries. ``values`` are the results of
    each body. Two carries are in one class if they have the same initial value and the same update.
    The classes are refined until a step does not split them any more.
    """

    def __init__(self, scans: Sequence[RegionOp]) -> None:
        self.scans = list(scans)
        self.parts: list[ScanAttributes] = [op.attrs for op in scans]
        self.leaves: dict[tuple[object, ...], Op] = {}
        given = [op.args[: a.carries] for op, a in zip(self.scans, self.parts, strict=True)]
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
        found = []
        for op, a, numbers in zip(self.scans, self.parts, self.classes, strict=True):
            known: dict[Op, Op] = {}
            for k, (each, place) in enumerate(zip(a.body.parameters, self.places(op), strict=True)):
                of = ("carry", numbers[k]) if k < a.carries else place
                known[each] = self.leaf(of, each.axes, each.dtype)
            found.append(substitute_ops(a.body.results, known))
        return found

    def places(self, op: RegionOp) -> list[tuple[object, ...]]:
        """Return a key for each parameter of a scan's body, by the argument that it stands for."""
        a: ScanAttributes = op.attrs
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
        """Return True if two of the scans share carries or, without carries, all arguments."""
        mine, others = set(self.classes[one]), set(self.classes[other])
        if not mine and not others:
            return same_ops(self.scans[one].args, self.scans[other].args)
        return bool(mine & others)


def _numbered(keys: Sequence[Sequence[object]]) -> list[list[int]]:
    """Replace the keys by numbers in order of first use."""
    numbers: dict[object, int] = {}
    return [[numbers.setdefault(key, len(numbers)) for key in row] for row in keys]


# Choice of the scans to merge ---------------------------------------------------------------------


def _meetings(order: Sequence[Op]) -> Iterator[_Meeting]:
    """Yield groups of two or more scans to merge."""
    scans = [op for op in order if isinstance(op, RegionOp) and op.primitive.name == "scan"]
    if len(scans) < 2:
        return
    needs = _needs(order, scans)
    for _, alike in groupby(sorted(scans, key=_walk), key=_walk):
        members = list(alike)
        if len(members) < 2 or not _begin_alike(members):
            continue
        met = _Meeting(members)
        for first in range(len(members)):
            group = [first]
            for other in range(first + 1, len(members)):
                apart = not any(_needs_other(members[k], members[other], needs) for k in group)
                if apart and any(met.share(k, other) for k in group):
                    group.append(other)
            if len(group) > 1:
                yield _Meeting([members[k] for k in group])


def _walk(op: RegionOp) -> tuple[int, bool, int]:
    """Return the key that merged scans have in common: axis, direction and number of steps."""
    a: ScanAttributes = op.attrs
    return id(a.axis), a.reverse, id(a.steps_given(op.args))


def _begin_alike(scans: Sequence[RegionOp]) -> bool:
    """Return True if two of the scans have an equal initial carry, or have no carries."""
    seen: set[int] = set()
    for op in scans:
        begins = set(map(id, op.args[: op.attrs.carries])) or {0}
        if begins & seen:
            return True
        seen |= begins
    return False


def _needs(order: Sequence[Op], scans: Sequence[RegionOp]) -> dict[Op, int]:
    """Return for each op the scans that it depends on, itself included, as a bit set."""
    number = {op: k for k, op in enumerate(scans)}
    found: dict[Op, int] = {}
    for op in order:
        bits = 1 << number[op] if isinstance(op, RegionOp) and op in number else 0
        for arg in op.args:
            bits |= found[arg]
        found[op] = bits
    return found


def _needs_other(one: RegionOp, other: RegionOp, needs: dict[Op, int]) -> bool:
    """Return True if one of two scans depends on the other."""
    both = needs[one] | needs[other]
    return both in (needs[one], needs[other])


# The merged scan ----------------------------------------------------------------------------------


def _joined(met: _Meeting, roots: Sequence[Op]) -> list[Op]:
    """Return the roots with the scans of a group replaced by one."""
    scans = met.scans
    new: dict[Op, Op] = {}
    made: dict[Op, list[Tensor]] = {}
    for op in post_order([*(arg for scan in scans for arg in scan.args), *roots]):
        current.site = op._site
        if any(op is scan for scan in scans):
            made = made or _one(met, new)
            continue
        if op.args and op.args[0] in made:
            new[op] = made[op.args[0]][op.attrs.number]
        else:
            new[op] = with_args(op, tuple([new[arg] for arg in op.args]))
        carry_lines(op, new[op])
        carry_notes(op, new[op])
    return [new[root] for root in roots]


def _one(met: _Meeting, new: Mapping[Op, Op]) -> dict[Op, list[Tensor]]:
    """Build the scan that merges a group; return the results of each of its scans.

    ``new`` maps each argument to its replacement.
    """
    carries: dict[int, tuple[Op, Op, Op]] = {}  # by class: leaf, initial value, value after a step
    others: dict[object, dict[Op, Op]] = {"stack": {}, "capture": {}}  # arguments by leaf
    values: dict[Op, int] = {}
    step = met.leaf(("step",), NO_AXES, INT64)
    members = list(zip(met.scans, met.parts, met.classes, met.values, strict=True))
    for op, a, numbers, results in members:
        given = zip(a.body.parameters, met.places(op), op.args[: a.captures.stop], strict=False)
        for k, (each, place, arg) in enumerate(given):
            if k < a.carries:
                leaf = met.leaf(("carry", numbers[k]), each.axes, each.dtype)
                carries.setdefault(numbers[k], (leaf, new[arg], results[k]))
            else:
                others[place[0]][met.leaf(place, each.axes, each.dtype)] = new[arg]
        for value in results[a.carries :]:
            values.setdefault(value, len(values))
    stacks, captures = others["stack"], others["capture"]
    leaves = [*(leaf for leaf, _, _ in carries.values()), *stacks, *captures, step]
    parameters = tuple([parameter(k, op.axes, op.dtype) for k, op in enumerate(leaves)])
    known: dict[Op, Op] = dict(zip(leaves, parameters, strict=True))
    wanted = [*(value for _, _, value in carries.values()), *values]
    body = Body(parameters, tuple(substitute_ops(wanted, known)))
    begins = [begin for _, begin, _ in carries.values()]
    first = met.parts[0]
    count = first.steps_given(met.scans[0].args)
    last = () if count is None else (new[count],)
    args = (*begins, *stacks.values(), *captures.values(), *last)
    attrs = (first.axis, len(carries), len(stacks), first.reverse, first.counted, body)
    guards = tuple(dict.fromkeys([guard for op in met.scans for guard in op.guards]))
    row, site = met.scans[0].primitive, met.scans[0]._site
    one: RegionOp = make(row, args, attrs, guards=guards, site=site)
    number = {each: k for k, each in enumerate(carries)}
    found: dict[Op, list[Tensor]] = {}
    for op, a, numbers, results in members:
        carry_lines(op, one)
        carry_notes(op, one)
        places = [number[each] for each in numbers]
        places += [len(carries) + values[value] for value in results[a.carries :]]
        found[op] = [result_of(one, k, op._site) for k in places]
    return found
