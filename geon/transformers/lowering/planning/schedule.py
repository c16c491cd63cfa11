"""Stage 4: orders kernels for low memory, so that nothing is overwritten before it is read."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from typing import NamedTuple
from weakref import WeakKeyDictionary

from ....lazy_dataclasses import dataclass
from ....op_graph.core.interning import OwnTable
from ....op_graph.core.region_body import Body
from ....op_graph.core.source_info import building
from ....op_graph.core.traversal import is_bound, reachable
from ....op_graph.op_graph import Leaf, Op, RegionOp, Tensor, among, deep_order, post_order
from ....op_graph.regions.closure import rebuilt
from ....op_graph.rows.elementwise import copy
from ....op_graph.rows.leaves import input_leaf
from ...kernels.ir.nest import Inner, Region
from ...kernels.kernel_lowering import Work
from ...kernels.nests.inlining import OperandInliner
from ...kernels.scans.scan_fusion import make_ordered
from ...kernels.scans.sequential_scan import OrderedLoop
from ..facts.target import Layout, Target
from ..facts.value_sizes import bytes_of, nominal
from ..fusion.fusion_groups import Group, is_region_result, one_each
from ..fusion.kernel import Kernel
from ..fusion.layout import LaidOut, lay_out
from ..rules.nan_checks import infinities
from ..rules.program import Program
from .concurrent_waves import side_by_side
from .kernel_order import KernelStep, order_of_least_memory

PARTIAL = ("update", "scatter")  # primitives that update a part of their first argument


@dataclass(frozen=True, eq=False, slots=True)
class Schedule:
    """Kernels in order, and the layout of every value.

    ``waves`` has the wave number of each kernel, if some run concurrently. ``held`` are the carries
    of a loop body that are updated in place.
    """

    kernels: tuple[Kernel, ...]
    program: Program
    layouts: dict[Op, Layout]
    base: dict[Op, Op]
    target: Target
    check: bool
    waves: tuple[int, ...] = ()
    held: tuple[Leaf, ...] = ()

    @property
    def times(self) -> Sequence[int]:
        """Return the time of each kernel; kernels of one time run concurrently."""
        return self.waves or range(len(self.kernels))


def schedule(
    laid_out: LaidOut,
    target: Target,
    own: OwnTable,
    check: bool = False,
    carries: Sequence[Leaf] = (),
) -> Schedule:
    """Return the kernels of a laid-out program in execution order.

    Kernels that can raise or end at an interrupt precede the first write to a variable, so that a
    call that raises leaves all variables unchanged. A new value is computed in its variable's
    storage if all readers of the old value can run before; otherwise in separate memory, with a
    copy at the end. New ops are in ``own``. With ``check`` every float kernel may raise, and each
    op is a kernel of its own. ``carries`` are the leaves whose next values are the first outputs.
    """
    return _lowered(_in_order(laid_out, target, own, check, carries))


def program_schedule(program: Program, target: Target, own: OwnTable, check: bool) -> Schedule:
    """Return the kernels of a program in execution order, as ``schedule`` does.

    What ``least_peak`` found for the program is used again.
    """
    known = _ordered.pop(program, None)
    if known is None or check or known.work.target is not target or known.work.own is not own:
        return schedule(lay_out(program, target, own, check), target, own, check)
    return _lowered(known)


def least_peak(program: Program, target: Target, own: OwnTable) -> int:
    """Return the peak bytes of a program's values, with open lengths at a nominal length.

    Kernels are ordered but not lowered.
    """
    found = _in_order(lay_out(program, target, own, False), target, own, False, ())
    _ordered[program] = found
    return found.peak


class _OrderedGroups(NamedTuple):
    """Groups of ops in execution order, not lowered yet, and the peak bytes of their values.

    ``held`` are the carries that are updated in place.
    """

    work: _Scheduler
    order: list[Group]
    peak: int
    held: tuple[Leaf, ...]


# Ordered groups of programs that ``least_peak`` compared, until one of them is scheduled.
_ordered: WeakKeyDictionary[Program, _OrderedGroups] = WeakKeyDictionary()


def _in_order(
    laid_out: LaidOut, target: Target, own: OwnTable, check: bool, carries: Sequence[Leaf]
) -> _OrderedGroups:
    """Return the groups of a laid-out program in execution order."""
    with building(own):
        work = _Scheduler(laid_out, target, own, check)
        work.connect()
        held = work.hold(carries)
        work.assign_storage()
        order, peak = work.run()
    return _OrderedGroups(work, order, peak, held)


def _lowered(ordered: _OrderedGroups) -> Schedule:
    """Return the kernels of groups in order."""
    work, target = ordered.work, ordered.work.target
    with building(work.own):
        order = [group for group in ordered.order if not group.op.primitive.is_barrier]
        kernels = [work.kernel(group) for group in order]
    waves: tuple[int, ...] = ()
    if target.concurrent_kinds:
        kernels, waves = side_by_side(kernels, work.program.outputs, target.concurrent_kinds)
    laid_out = work.laid_out
    return Schedule(
        tuple(kernels), work.program, laid_out.layouts, laid_out.base, target, work.check, waves,
        ordered.held,
    )  # fmt: skip


class _Scheduler:
    def __init__(self, laid_out: LaidOut, target: Target, own: OwnTable, check: bool) -> None:
        self.laid_out, self.target, self.own, self.check = laid_out, target, own, check
        self.program = laid_out.program
        self.base = laid_out.base
        ops = post_order(self.program.roots)
        if target.group is None:
            self.groups = one_each(laid_out, target, ops)
        else:
            self.groups = target.group(laid_out, target, ops, check)
        self.makers = {group.op: group for group in self.groups}
        self.makers.update((op, group) for group in self.groups for op in group.results)
        self.after: dict[Group, list[Group]] = {group: [] for group in self.groups}
        self.waits: dict[Group, int] = dict.fromkeys(self.groups, 0)
        self.readers: dict[Op, list[Group]] = {}
        self.storage: dict[Op, Leaf] = {}
        self.infinite = infinities(ops) if check else {}
        self.outputs = set(self.program.outputs)

    def connect(self) -> None:
        """Add edges from each kernel to the readers of its results; record readers of values."""
        for group in self.groups:
            needed = {self.makers[op]: None for op in group.needs}
            for value in group.reads:
                self.readers.setdefault(value, []).append(group)
                if value in self.makers:
                    needed[self.makers[value]] = None
            for before in needed:
                self.edge(before, group)

    def edge(self, before: Group, after: Group) -> None:
        self.after[before].append(after)
        self.waits[after] += 1

    def raises(self, group: Group) -> bool:
        """Return True if a kernel can fail at run time."""
        op = group.op
        if is_region_result(op):
            inner = deep_order([root for body in op.args[0].bodies for root in body.results])
            return self.check or any(each.primitive.raises for each in inner)
        if op.primitive.raises:
            return True
        if op.primitive.name == "copy" and not is_bound(self.base[op.args[0]]):
            return False  # the source of the copy was checked
        return self.check and op.dtype.kind in "fV" and not op.primitive.has_side_effect

    def stops(self, group: Group) -> bool:
        """Return True if an interrupt can end a kernel: it is a loop or contains one."""
        if not (self.target.stops and is_region_result(group.op)):
            return False
        region = group.op.args[0]
        inner = deep_order([root for body in region.bodies for root in body.results])
        regions = [region, *(op for op in inner if isinstance(op, RegionOp))]
        return any(each.primitive.name in self.target.stops for each in regions)

    def hold(self, carries: Sequence[Leaf]) -> tuple[Leaf, ...]:
        """Return the carries that a step updates in place, after all readers of the old value.

        Only partial updates are in place. Other carries are double-buffered, which avoids a copy.
        """
        held = []
        for leaf, op in zip(carries, self.program.outputs, strict=False):
            group, whole = self.makers[op], self.base[op]
            while whole.primitive.name in PARTIAL:
                whole = self.base[whole.args[0]]
            readers = [r for r in self.readers.get(leaf, ()) if r is not group]
            over = among(leaf, group.reads) and not among(leaf, group.in_place[op])
            if whole is leaf and not over and not self.reaches(group, readers):
                for reader in readers:
                    self.edge(reader, group)
                self.storage[op] = leaf
                held.append(leaf)
        return tuple(held)

    def assign_storage(self) -> None:
        """Choose kernels that compute in a variable's storage; add copies for the others."""
        early = self.early()
        updates = []
        for number, (leaf, op) in enumerate(self.program.updates):
            group = self.makers[op]
            readers = [r for r in self.readers.get(leaf, ()) if r is not group]
            over = among(leaf, group.reads) and not among(leaf, group.in_place[op])
            if over or group in early or self.reaches(group, readers):
                op = self.deferred(op, number)
                group = self.makers[op]
                readers = self.readers.get(leaf, [])
            for reader in readers:
                self.edge(reader, group)
            self.storage[op] = leaf
            updates.append((leaf, op))
        self.early_groups = early
        program = self.program
        self.program = replace(program, updates=tuple(updates))

    def early(self) -> set[Group]:
        """Return the kernels that can end a call and their dependencies: these run first."""
        before: dict[Group, list[Group]] = {group: [] for group in self.groups}
        for group in self.groups:
            for after in self.after[group]:
                before[after].append(group)
        ending = [group for group in self.groups if self.raises(group) or self.stops(group)]
        return set(reachable(ending, before.__getitem__))

    def reaches(self, group: Group, targets: list[Group]) -> bool:
        """Return True if one of ``targets`` must run after ``group``."""
        wanted = set(targets)
        later = reachable(self.after[group], self.after.__getitem__) if wanted else ()
        return any(each in wanted for each in later)

    def deferred(self, op: Tensor, number: int) -> Tensor:
        """Return a copy of a new value, made when nothing reads the old one any more."""
        late = copy(op, None, -1 - number, op._site)
        self.base[late] = late
        self.laid_out.layouts[late] = Layout(late.axes.names)
        if self.target.group is None:
            group = Group(late, (late,), (op,), (), {late: ()})
        else:
            group = self.target.group(self.laid_out, self.target, [late], self.check)[0]
        self.groups.append(group)
        self.makers[late] = group
        self.after[group], self.waits[group] = [], 0
        self.readers.setdefault(op, []).append(group)
        self.edge(self.makers[op], group)
        return late

    def run(self) -> tuple[list[Group], int]:
        """Return the groups in order, and the peak bytes at nominal lengths.

        Groups that can raise come first; otherwise the order minimises memory.
        """
        numbers = {group: k for k, group in enumerate(self.groups)}
        values: dict[Op, int] = {}
        for group in self.groups:
            for op in group.results:
                if op not in self.storage and op not in self.outputs:
                    values[op] = len(values)
        ranks = self.ranks()
        steps = [
            KernelStep(
                tuple([values[op] for op in group.reads if op in values]),
                tuple([values[op] for op in group.results if op in values]),
                tuple(self.joins(group, values)),
                tuple([numbers[after] for after in self.after[group]]),
                ranks[group],
                group in self.early_groups,
            )
            for group in self.groups
        ]
        sizes = [nominal(bytes_of(op)) for op in values]
        order, peak = order_of_least_memory(steps, sizes)
        return [self.groups[k] for k in order], peak

    def joins(self, group: Group, values: dict[Op, int]) -> Iterator[tuple[int, int]]:
        """Yield pairs of a result and a value it may overwrite, both in the arena."""
        for op in group.results:
            if op in values:
                for value in group.in_place[op]:
                    if value in values:
                        yield values[op], values[value]

    def ranks(self) -> dict[Group, tuple[int, int, int]]:
        """Return depth-first positions; a group without inputs comes just before its first user."""
        position = {group: k for k, group in enumerate(self.groups)}
        ranks = {group: (k, 1, k) for group, k in position.items()}
        for group, k in position.items():
            if not self.waits[group] and self.after[group]:
                first = min(position[after] for after in self.after[group])
                ranks[group] = (max(k, first), 0, k)
        return ranks

    @cached_property
    def computed(self) -> set[Op]:
        """Return all values that kernels compute."""
        return {op for group in self.groups for op in group.results}

    def kernel(self, group: Group) -> Kernel:
        """Return the kernel of ``group``."""
        writes = {op: self.storage[op] for op in group.results if op in self.storage}
        raises = self.raises(group)
        results = group.results
        if is_region_result(group.op):
            work: Work = self.region(group)
        else:
            known = self.computed.__contains__
            operands = OperandInliner(self.laid_out.layouts, self.base, results, known)
            work = self.laid_out.lowering.lower(group.op, group.fused, operands)
        return Kernel(
            group.op, results, group.reads, group.in_place, writes, raises, group.fused, work,
            group.apart, self.stops(group), group.op in self.infinite,
        )  # fmt: skip

    def region(self, group: Group) -> Region | OrderedLoop:
        """Return the work of a region: an ordered loop, or the schedules of its bodies."""
        region = group.op.args[0]
        bounds = self.target.orders
        if bounds is not None and not self.check:
            known = self.computed.__contains__
            operands = OperandInliner(self.laid_out.layouts, self.base, group.results, known)
            ordered = make_ordered(region, group.results, operands, bounds)
            if ordered is not None:
                return ordered
        carries = [0] * len(region.bodies)
        carries[-1] = carries_of(region)
        begun = carries_of(region)  # carries have no name after the first step
        args = (*[None] * begun, *region.args[begun:])
        bodies = tuple([
            self.inner(body, count, args)
            for body, count in zip(region.bodies, carries, strict=True)
        ])  # fmt: skip
        return Region(region, bodies, group.results)

    def inner(self, body: Body, carries: int, args: Sequence[Op | None]) -> Inner:
        """Return a scheduled body: a program whose inputs are its parameters.

        The first ``carries`` of these are carries. Errors refer to a parameter by the name of its
        argument in ``args``, if it has one.
        """
        given = (*args, *[None] * (len(body.parameters) - len(args)))
        leaves = tuple(map(stand_in, body.parameters, given))
        known: dict[Op, Op] = dict(zip(body.parameters, leaves, strict=True))
        results = rebuilt(body.results, known)
        laid_out = lay_out(Program(results, (), ()), self.target, self.own, self.check)
        given = leaves[:carries]
        return Inner(leaves, schedule(laid_out, self.target, self.own, self.check, given))


def stand_in(parameter: Op, value: Op | None) -> Leaf:
    """Return an input for a parameter of a body, with the name and the line of its argument."""
    while value is not None and value.name is None:
        value = value.args[0] if is_rearranged(value) else None
    name = None if value is None else value.name
    site = (parameter if value is None else value)._site
    return input_leaf(parameter.axes, parameter.dtype, name, site)


def is_rearranged(op: Op) -> bool:
    """Return True if an op has exactly the elements of its argument, reordered or repeated."""
    return op.primitive.name in ("copy", "reorder", "rename", "cast_axes", "broadcast")


def carries_of(region: Op) -> int:
    """Return the number of carries of a region: the first results of its last body."""
    return 0 if region.primitive.name == "case" else region.attrs.carries
