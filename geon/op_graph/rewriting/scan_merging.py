"""Merges scans over the same axis into one scan.

Derivatives of one loop, asked for value by value, are such scans: each hands on what the others do,
and totals of its own.
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
from ..regions.parameters import parameter, result_of, substituted
from ..regions.scan_op import ScanAttributes
from ..values.dtypes import INT64, DType


def together(roots: Sequence[Op]) -> list[Op]:
    """The roots, where scans that share carries, none of which needs another, are one scan.

    Carries are the same where they begin as the same op, and a step makes the same of them. Scans
    without carries are one where they have the same arguments.
    """
    found = list(roots)
    while True:
        order = post_order(found)
        met = next(_meetings(order), None)
        if met is None:
            return found
        found = _joined(met, found)


class _Meeting:
    """Scans over one axis in one direction, their bodies over the same leaves.

    ``classes`` has for each scan the class of each of its carries, and ``values`` what its body
    computes. Two carries are of one class unless they begin as different ops, or a step makes
    different values of them: so classes are divided until no step divides them any more.
    """

    def __init__(self, scans: Sequence[RegionOp]) -> None:
        self.scans = list(scans)
        self.parts = [ScanAttributes(op.attrs) for op in scans]
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
        """What each body computes where carries of one class are one leaf."""
        found = []
        for op, a, numbers in zip(self.scans, self.parts, self.classes, strict=True):
            known: dict[Op, Op] = {}
            for k, (each, place) in enumerate(zip(a.body.parameters, self.places(op), strict=True)):
                of = ("carry", numbers[k]) if k < a.carries else place
                known[each] = self.leaf(of, each.axes, each.dtype)
            found.append(substituted(a.body.results, known))
        return found

    def places(self, op: RegionOp) -> list[tuple[object, ...]]:
        """What tells the parameters of a scan's body apart: the arguments of the scan."""
        a = ScanAttributes(op.attrs)
        given = op.args[a.carries : a.captures.stop]
        kinds = ["stack"] * a.xs + ["capture"] * (len(given) - a.xs)
        named = zip(kinds, map(id, given), strict=True)
        return [*(("carry",) for _ in range(a.carries)), *named, ("step",)]

    def leaf(self, of: tuple[object, ...], axes: Axes, dtype: DType) -> Op:
        """The leaf that stands for something over these axes."""
        key = (*of, axes, dtype.name)
        if key not in self.leaves:
            self.leaves[key] = parameter(len(self.leaves), axes, dtype)
        return self.leaves[key]

    def share(self, one: int, other: int) -> bool:
        """Whether two of the scans have carries in common; if they have none, all arguments."""
        mine, others = set(self.classes[one]), set(self.classes[other])
        if not mine and not others:
            return same_ops(self.scans[one].args, self.scans[other].args)
        return bool(mine & others)


def _numbered(keys: Sequence[Sequence[object]]) -> list[list[int]]:
    """The keys as numbers in order of first use."""
    numbers: dict[object, int] = {}
    return [[numbers.setdefault(key, len(numbers)) for key in row] for row in keys]


# Which scans are one ------------------------------------------------------------------------------


def _meetings(order: Sequence[Op]) -> Iterator[_Meeting]:
    """Scans that are to be one, of more than one each."""
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
    """What scans that are one have in common: the axis, the direction, and how many steps."""
    a = ScanAttributes(op.attrs)
    return id(a.axis), a.reverse, id(a.count(op.args))


def _begin_alike(scans: Sequence[RegionOp]) -> bool:
    """Whether it is worth a look: two of them begin with one op, or have no carries."""
    seen: set[int] = set()
    for op in scans:
        begins = set(map(id, op.args[: op.attrs[1]])) or {0}
        if begins & seen:
            return True
        seen |= begins
    return False


def _needs(order: Sequence[Op], scans: Sequence[RegionOp]) -> dict[Op, int]:
    """Which scans each op needs, as bits by their numbers, its own among these."""
    number = {op: k for k, op in enumerate(scans)}
    found: dict[Op, int] = {}
    for op in order:
        bits = 1 << number[op] if isinstance(op, RegionOp) and op in number else 0
        for arg in op.args:
            bits |= found[arg]
        found[op] = bits
    return found


def _needs_other(one: RegionOp, other: RegionOp, needs: dict[Op, int]) -> bool:
    """Whether one of two scans needs the other: it then needs all that this does."""
    both = needs[one] | needs[other]
    return both in (needs[one], needs[other])


# The one scan -------------------------------------------------------------------------------------


def _joined(met: _Meeting, roots: Sequence[Op]) -> list[Op]:
    """The roots over the one scan in the place of those that met."""
    scans = met.scans
    new: dict[Op, Op] = {}
    made: dict[Op, list[Tensor]] = {}
    for op in post_order([*(arg for scan in scans for arg in scan.args), *roots]):
        current.site = op._site
        if any(op is scan for scan in scans):
            made = made or _one(met, new)
            continue
        if op.args and op.args[0] in made:
            new[op] = made[op.args[0]][op.attrs[0]]
        else:
            new[op] = with_args(op, tuple([new[arg] for arg in op.args]))
        carry_lines(op, new[op])
        carry_notes(op, new[op])
    return [new[root] for root in roots]


def _one(met: _Meeting, new: Mapping[Op, Op]) -> dict[Op, list[Tensor]]:
    """The results of each scan, from the one that computes what all of them do.

    ``new`` has what takes the place of each argument.
    """
    carries: dict[int, tuple[Op, Op, Op]] = {}  # of each class: its leaf, its beginning, the next
    others: dict[object, dict[Op, Op]] = {"stack": {}, "capture": {}}  # by leaf, the arguments
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
    body = Body(parameters, tuple(substituted(wanted, known)))
    begins = [begin for _, begin, _ in carries.values()]
    first = met.parts[0]
    count = first.count(met.scans[0].args)
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
