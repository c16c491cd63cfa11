"""Checkpointed scans: stacks for the reverse are recomputed one segment of steps at a time.

A scan whose stacks other ops read, as its reverse scan does, becomes an outer scan over segments;
each segment is an inner scan over its steps. The outer scan stores the carries at the start of each
segment. A scan that reads the stacks is divided in the same way: in each of its segments the steps
of the first scan run again, from the stored carries of that segment. Elementwise ops between the
stacks are recomputed there as well. So memory holds one set of carries for each segment, and stacks
of only one segment. The steps after the last whole segment are separate scans.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Protocol

from ..axes.axes import Axes, Axis
from ..building.rebuild import carry, with_args, with_bodies
from ..core.interning import OwnTable
from ..core.region_body import Body
from ..core.source_info import building, current
from ..nodes import carry_lines, carry_notes
from ..op_graph import Op, RegionOp, Tensor, intern, make, make_region, post_order
from ..rows.concatenation import CONCAT
from ..rows.leaves import iota, length_value, placeholder
from ..rows.movement import FLATTEN, UNFLATTEN, broadcast
from ..rows.remat_annotations import SEGMENTED
from ..rows.slicing import SLICE
from ..transforms.batching import fresh_axes, names_below
from ..values.dtypes import INT64
from .closure import like
from .parameters import result_of, results_of, tensors
from .scan_op import ScanAttributes, make_scan

Numbers = tuple[int, ...]  # number of segments, then of sub-segments of each, and so on


class Division(Protocol):
    """Decides into how many segments each scan is divided if other ops read its stacks."""

    def of(self, scan: RegionOp) -> Numbers:
        """Return the numbers of segments for a scan; () if it is not divided."""


class Marked:
    """The division given by the ``segmented`` marks on the initial carries of scans."""

    def of(self, scan: RegionOp) -> Numbers:
        """Return the numbers of the first mark; () if there is none."""
        for arg in scan.args[: scan.attrs.carries]:
            while arg.primitive.view or arg.primitive.name == "cast":
                arg = arg.args[0]
            if arg.primitive is SEGMENTED:
                numbers: Numbers = arg.attrs.numbers
                return numbers
        return ()


class AxisSegments:
    """The same numbers for all scans along one axis."""

    def __init__(self, axis: Axis, numbers: Numbers) -> None:
        self.axis, self.numbers = axis, numbers

    def of(self, scan: RegionOp) -> Numbers:
        """Return the numbers if the scan is along the axis, else ()."""
        return self.numbers if scan.attrs.axis == self.axis else ()


MARKED = Marked()


# Choice of scans ----------------------------------------------------------------------------------


class Divided:
    """The scans below ``roots`` to divide into segments.

    ``order`` are all ops. ``divisions`` are the scans with numbers of segments, by marks or because
    they read the stacks of such a scan. ``users`` maps an op to the ops that read it. ``inner`` are
    the stacks that only these scans read, slice by slice, and elementwise ops on such stacks: they
    are computed only inside of segments. ``numbers`` are the numbers of segments of the scans that
    are divided.
    """

    def __init__(self, order: Sequence[Op], roots: Iterable[Op], division: Division) -> None:
        self.order = order
        self.divisions = self._find_divided(division)
        self.users: dict[Op, list[Op]] = {}
        if self.divisions:
            for op in order:
                for arg in dict.fromkeys(op.args):
                    self.users.setdefault(arg, []).append(op)
        self.inner = self._inner(set(roots))
        self.numbers = {
            scan: numbers
            for scan, numbers in self.divisions.items()
            if self.inner_stacks(scan) or any(x in self.inner for x in stacks_of(scan))
        }

    def inner_stacks(self, scan: Op) -> list[Op]:
        """Return the stacks of a scan that are computed only inside of segments."""
        return [op for op in self.users.get(scan, ()) if op in self.inner]

    def _find_divided(self, division: Division) -> dict[RegionOp, Numbers]:
        """Return the scans with numbers of their own, and those that read the stacks of these."""
        divided: dict[RegionOp, Numbers] = {}
        through: dict[Op, tuple[Axis, Numbers]] = {}
        for op in self.order:
            if isinstance(op, RegionOp):
                if op.primitive.name != "scan" or op.attrs.counted:
                    continue
                axis = op.attrs.axis
                read = [through[x] for x in stacks_of(op) if x in through]
                numbers = next((n for along, n in read if along == axis), ()) or division.of(op)
                if numbers:
                    divided[op] = numbers
            elif op.args and op.args[0] in divided:
                scan: Any = op.args[0]
                if op.attrs.number >= scan.attrs.carries:
                    through[op] = scan.attrs.axis, divided[scan]
            elif op.primitive.kind == "elementwise":
                along_with = next((through[arg] for arg in op.args if arg in through), None)
                if along_with is not None and op.axes[0] == along_with[0]:
                    through[op] = along_with
        self.through = through
        return divided

    def _inner(self, roots: set[Op]) -> set[Op]:
        """Return the stacks, and elementwise ops on them, that no op needs as a whole."""
        inner: set[Op] = set()
        for op in reversed(self.order):
            if op in self.through and op not in roots:
                axis, numbers = self.through[op]
                users = self.users.get(op, [])
                if users and all(self._by_steps(op, user, axis, numbers, inner) for user in users):
                    inner.add(op)
        return inner

    def _by_steps(self, op: Op, user: Op, axis: Axis, numbers: Numbers, inner: set[Op]) -> bool:
        """Return True if ``user`` reads a stack only in segments of these numbers."""
        if not isinstance(user, RegionOp):
            return user in inner and self.through[user] == (axis, numbers)
        if self.divisions.get(user) != numbers or user.attrs.axis != axis:
            return False
        first, last = user.attrs.carries, user.attrs.before_captures
        return all(first <= k < last for k, arg in enumerate(user.args) if arg is op)


def stacks_of(scan: Op) -> tuple[Op, ...]:
    """Return the stacked inputs of a scan."""
    a: ScanAttributes = scan.attrs
    return scan.args[a.carries : a.before_captures]


# Replacement --------------------------------------------------------------------------------------

Tidy = Callable[[Sequence[Op], Division | None], list[Op]]


def in_segments(
    roots: Sequence[Op], own: OwnTable, tidied: Tidy, division: Division | None = MARKED
) -> tuple[list[Op], tuple[RegionOp, ...]]:
    """Divide scans into segments; return the new roots without marks, and the recomputed scans.

    If ``division`` is None, only the marks are removed. ``tidied`` simplifies the bodies of the
    outer scans. New ops are in the intern table ``own``.
    """
    again: dict[RegionOp, None] = {}
    with building(own):
        rewritten = _SegmentRewriter(roots, tidied, division, again, deep=True).run()
    return rewritten, tuple(again)


class _SegmentRewriter:
    """Maps every op to its replacement; with ``deep`` also inside of region bodies."""

    def __init__(
        self,
        roots: Sequence[Op],
        tidied: Tidy,
        division: Division | None,
        again: dict[RegionOp, None],
        deep: bool,
    ) -> None:
        self.roots, self.tidied, self.division = roots, tidied, division
        self.again, self.deep = again, deep
        self.order = post_order(roots)
        self.divided = Divided(self.order, roots, division or _NONE)
        self.new: dict[Op, Op] = {}
        self.runs: dict[tuple[Axis, Numbers], _Runs] = {}

    def run(self) -> list[Op]:
        """Return the replaced roots."""
        for op in self.order:
            current.site = op._site
            if isinstance(op, RegionOp) and op in self.divided.numbers:
                self.of(op).whole(op)
            elif op not in self.divided.inner:
                self.new[op] = self.replacement(op)
        return [self.new[root] for root in self.roots]

    def replacement(self, op: Op) -> Op:
        """Return the replacement of an op that is no divided scan."""
        if op.primitive is SEGMENTED:
            return self.new[op.args[0]]
        if op.args and op.args[0] in self.divided.numbers:
            scan: Any = op.args[0]
            new: Op = self.of(scan).result(scan, op.attrs.number)
        else:
            args = tuple([self.new[arg] for arg in op.args])
            bodies = [self.body(body) for body in op.bodies]
            new = with_bodies(op, bodies, args) if bodies else with_args(op, args)
        return carry(op, new)

    def body(self, body: Body) -> Body:
        """Return a body whose scans are divided, if ``deep``."""
        if not self.deep:
            return body
        work = _SegmentRewriter(body.results, self.tidied, self.division, self.again, deep=True)
        return Body(body.parameters, tuple(tensors(work.run())))

    def of(self, scan: RegionOp) -> _Runs:
        """Return the group of scans along the axis of ``scan`` with its numbers."""
        key = scan.attrs.axis, self.divided.numbers[scan]
        if key not in self.runs:
            self.runs[key] = _Runs(self, *key)
        return self.runs[key]


class _None:
    """The division that divides no scan."""

    def of(self, scan: RegionOp) -> Numbers:
        """Return ()."""
        return ()


_NONE = _None()


class _Whole:
    """The outer scan over segments that replaces one scan.

    ``results`` are its results by result number of the original scan. ``starts`` are the stacked
    carries at the start of each segment.
    """

    def __init__(self, results: dict[int, Tensor], starts: list[Tensor]) -> None:
        self.results, self.starts = results, starts


class _Runs:
    """The scans along one axis that are divided into the same numbers of segments."""

    def __init__(self, work: _SegmentRewriter, axis: Axis, numbers: Numbers) -> None:
        self.work, self.divided, self.axis, self.numbers = work, work.divided, axis, numbers
        length = axis.expression
        each = length // numbers[0]
        self.taken = each * numbers[0]
        self.left = length - self.taken
        segment = Axis("segment", numbers[0])
        (self.outer,) = fresh_axes(Axes(segment), names_below(work.roots))
        self.inner, self.behind = axis.with_length(each), axis.with_length(self.left)
        self.wholes: dict[RegionOp, _Whole] = {}
        self.rest = _StepRange(self, self.behind, self.begins_behind, self.rest_of)

    # Values outside of segments -----------------------------------------------------------------

    def result(self, scan: RegionOp, number: int) -> Tensor:
        """Return a result of a scan: a last carry, or a stack of all steps."""
        a: ScanAttributes = scan.attrs
        made = self.whole(scan).results[number]
        if number < a.carries:
            return made if a.reverse or self.left == 0 else self.rest.result(scan, number)
        divided = self.axis.with_length(self.taken)
        flat = make(FLATTEN, (made,), ((self.outer.name, self.inner.name), divided))
        if self.left == 0:
            return flat
        return make(CONCAT, (flat, self.rest.result(scan, number)), (self.axis.name,))

    def whole(self, scan: RegionOp) -> _Whole:
        """Return the outer scan over the segments of ``scan``."""
        if scan not in self.wholes:
            self.wholes[scan] = _SegmentTurn(self, scan).build()
        return self.wholes[scan]

    def begins(self, scan: RegionOp) -> list[Tensor]:
        """Return the initial carries of a scan."""
        return tensors(self.work.new[arg] for arg in scan.args[: scan.attrs.carries])

    def begins_whole(self, scan: RegionOp) -> list[Tensor]:
        """Return the initial carries of the outer scan.

        In a reverse scan these are the carries after the steps behind the last whole segment.
        """
        if self.left == 0 or not scan.attrs.reverse:
            return self.begins(scan)
        return [self.rest.result(scan, k) for k in range(scan.attrs.carries)]

    def begins_behind(self, scan: RegionOp) -> list[Tensor]:
        """Return the initial carries of the steps behind the last whole segment."""
        if scan.attrs.reverse:
            return self.begins(scan)
        result = self.whole(scan).results
        return [result[k] for k in range(scan.attrs.carries)]

    def rest_of(self, op: Op) -> Tensor:
        """Return the slice of a stack behind the last whole segment."""
        return self.sliced(op, self.taken, self.axis.expression)

    def stacked(self, op: Op) -> Tensor:
        """Return a stack with its axis split into an axis of segments and one of their steps."""
        divided = self.sliced(op, 0, self.taken)
        return make(UNFLATTEN, (divided,), (self.axis.name, Axes(self.outer, self.inner)))

    def sliced(self, op: Op, start: Any, stop: Any) -> Tensor:
        """Return a stack from index ``start`` to ``stop`` along the axis."""
        whole: Any = self.work.new[op]
        if self.left == 0:
            return whole  # type: ignore[no-any-return]  # a tensor
        items = (("range", start, stop, 1), *(None for _ in whole.axes[1:]))
        return make(SLICE, (whole,), (items,))


class _StepRange:
    """Builds the scans and stacks of a range of steps, along ``axis``.

    ``begins`` returns the initial carries of a scan in that range. ``kept`` returns the slice of a
    stack in memory. ``first`` returns the number of the first step.
    """

    def __init__(
        self,
        runs: _Runs,
        axis: Axis,
        begins: Callable[[RegionOp], Sequence[Tensor]],
        kept: Callable[[Op], Tensor],
    ) -> None:
        self.runs, self.axis, self.begins, self.kept = runs, axis, begins, kept
        self.first: Callable[[], Tensor] = lambda: length_value(runs.taken)
        self.made: dict[Op, Op] = {}

    def result(self, scan: RegionOp, number: int) -> Tensor:
        """Return a result of ``scan`` in these steps."""
        return result_of(self.region(scan), number, scan._site)

    def region(self, scan: RegionOp) -> Op:
        """Return the scan of these steps."""
        stack: list[Op] = [scan, *stacks_of(scan)][::-1]
        while stack:
            op = stack[-1]
            missing = [] if op in self.made else [x for x in self.needs(op) if x not in self.made]
            if missing:
                stack += missing
                continue
            if op not in self.made:
                self.made[op] = self.part(op)
                carry_notes(op, self.made[op])
            stack.pop()
        return self.made[scan]

    def needs(self, op: Op) -> Sequence[Op]:
        """Return the ops whose parts are needed to build the part of ``op``."""
        if isinstance(op, RegionOp):
            return stacks_of(op)
        if op not in self.runs.divided.inner:
            return ()
        if isinstance(op.args[0], RegionOp):
            return op.args[:1]
        return [arg for arg in op.args if self.runs.axis in arg.axes]

    def part(self, op: Op) -> Op:
        """Return the part of a scan, of a stack, or of an elementwise op on stacks."""
        if isinstance(op, RegionOp):
            return self.scan(op)
        if op not in self.runs.divided.inner:
            return self.stack(op)
        if isinstance(op.args[0], RegionOp):
            return result_of(self.made[op.args[0]], op.attrs.number, op._site)
        new = self.runs.work.new
        args = tuple([self.made[arg] if arg in self.made else new[arg] for arg in op.args])
        axes = Axes(self.axis, [axis for axis in op.axes if axis.name != self.axis.name])
        names = tuple(dict.fromkeys(name for arg in args for name in arg.axes.names))
        return intern(
            type(op), op.primitive, args, op.attrs, axes, op.dtype, weak=op.weak,
            guards=op.guards, arranged=names != axes.names, site=op._site,
        )  # fmt: skip

    def scan(self, op: RegionOp) -> Op:
        """Return the scan of these steps."""
        work, a = self.runs.work, op.attrs
        xs = [self.made[x] for x in stacks_of(op)]
        captures = [work.new[arg] for arg in op.args[a.captures]]
        attrs = (self.axis, a.carries, a.xs, a.reverse, False, work.body(a.body))
        args = (*self.begins(op), *xs, *captures)
        result = make_region(op.primitive, args, attrs, guards=op.guards, site=op._site)
        carry_lines(op, result)
        return result

    def stack(self, op: Op) -> Tensor:
        """Return the part of a stack: from iota or a broadcast, otherwise sliced from memory."""
        if op.primitive.name == "iota" and op.dtype is INT64:
            return iota(self.axis) + self.first()
        if op.primitive.name == "broadcast" and self.axis not in op.args[0].axes:
            value: Any = self.runs.work.new[op.args[0]]
            return broadcast(value, Axes(self.axis, op.axes.without([self.axis.name])))
        return self.kept(op)


class _SegmentTurn:
    """Builds the outer scan over segments that replaces one scan."""

    def __init__(self, runs: _Runs, scan: RegionOp) -> None:
        self.runs, self.scan, self.a = runs, scan, scan.attrs
        self.carries = [like(op) for op in self.a.body.parameters[: self.a.carries]]
        self.read: dict[Tensor, Tensor] = {}  # placeholder of a segment by stack of segments
        self.part = _StepRange(runs, runs.inner, self.begins, lambda op: self.of(runs.stacked(op)))
        self.part.first = self.first

    def begins(self, scan: RegionOp) -> Sequence[Tensor]:
        """Return the carries of ``scan`` at the start of a segment."""
        if scan is self.scan:
            return self.carries
        return [self.of(stack) for stack in self.runs.whole(scan).starts]

    def first(self) -> Tensor:
        """Return the number of the first step of a segment."""
        number = self.of(iota(self.runs.outer))  # targets read a stack, not the step number
        return number * length_value(self.runs.inner.expression)

    def of(self, stack: Tensor) -> Tensor:
        """Return the placeholder of the slice of ``stack`` that a segment reads."""
        if stack not in self.read:
            rest = stack.axes.without([self.runs.outer.name])
            self.read[stack] = placeholder(rest, stack.dtype)
        return self.read[stack]

    def build(self) -> _Whole:
        """Return the outer scan.

        It is empty if only segments of other scans run these steps.
        """
        runs, count = self.runs, self.a.carries
        inner = {op.attrs.number for op in runs.divided.inner_stacks(self.scan)}
        users = {op.attrs.number for op in runs.divided.users.get(self.scan, ())}
        numbers = [*range(count), *sorted(k for k in users - inner if k >= count)]
        if not numbers:
            return _Whole({}, [])
        region = self.part.region(self.scan)
        results = [result_of(region, k) for k in numbers]
        starts = self.carries if inner else []
        scans = [op for op in self.part.made.values() if isinstance(op, RegionOp)]
        runs.work.again.update(dict.fromkeys(scans[:-1]))  # the last one belongs to this scan
        leaves = [*self.carries, *self.read.values(), placeholder((), "int64")]
        result = make_scan(
            self.scan.primitive,
            runs.outer,
            self.a.reverse,
            runs.begins_whole(self.scan),
            list(self.read),
            leaves,
            [*results, *starts],
        )
        result = results_of(self.tidy(result[0].args[0]), self.scan._site)
        return _Whole(dict(zip(numbers, result, strict=False)), result[len(numbers) :])

    def tidy(self, region: Op) -> Op:
        """Return the outer scan with its body simplified and, if nested, divided again."""
        runs, (body,) = self.runs, region.bodies
        inner_segments = AxisSegments(runs.inner, runs.numbers[1:]) if runs.numbers[1:] else None
        results = runs.work.tidied(body.results, inner_segments)
        if inner_segments is not None:
            work = _SegmentRewriter(
                results, runs.work.tidied, inner_segments, runs.work.again, deep=False
            )
            results = work.run()
        carry(self.scan, region)
        result = with_bodies(region, [Body(body.parameters, tuple(tensors(results)))])
        carry_notes(region, result)
        return result
