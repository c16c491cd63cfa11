"""``f.profile``: time, memory traffic and operations of each kernel, compared with the roofline."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from ....op_graph.op_graph import Op
from ...compile import CompileStages
from ...computation import Computation
from ...kernels.costs.machine import Machine
from ...lowering.fusion.kernel import Kernel
from ...lowering.planning.buffer_slots import place_of
from ...lowering.planning.cost_report import Predicted, predictions
from ...lowering.planning.iteration_spaces import kernels_inside
from ...lowering.planning.plan import Plan
from ...reports.profile_table import UNKNOWN, KernelProfile, Profile, describe_computed
from ...reports.profiled_calls import ProfiledCalls
from ..emit.compiler import record_of
from ..emit.module_text import FAILURE_REPORT_WORDS, make_module
from ..machine.measured_machine import machine
from ..machine.threads import processors
from ..runtime.bound_program import SHOW, BoundProgram, NativeProgram
from ..runtime.flushing import flush_subnormals, is_possible
from ..toolchain.compilers import Toolchain
from ..toolchain.shared_objects import shared_object
from .c_function import ArgumentTable

Array = np.ndarray[Any, Any]


class NativeProfile(ProfiledCalls):
    """The modules of a computation, of which the timed one reads the clock after each kernel.

    ``toolchain`` compiles the timed module. ``flushes`` is True if calls flush subnormal numbers to
    zero; if not, further timed calls do.
    """

    def __init__(
        self, toolchain: Toolchain, flushes: bool, computation: Computation, given: tuple[Op, ...]
    ) -> None:
        super().__init__(computation, given)
        self.toolchain, self.flushes, self.plan = toolchain, flushes, self.stages.plan
        self.threads = self.transformer.threads
        self.program: NativeProgram = self.stages.compiled
        self.functions = self.program.functions(self.threads)
        self.prints = bool(self.program.record.shown)
        kernels = self.plan.schedule.kernels
        self.inside = [each for k in kernels for each in kernels_inside(self.plan, k)]
        self.timed = self.stages.once(
            "timed", lambda: timed_program(toolchain, self.stages, self.flushes)
        )
        self.table: ArgumentTable
        self.times: list[list[int]] = []
        self.flushed_times: list[list[int]] = []

    def copied(self, value: Array) -> Array:
        """Return a copy of a variable's value."""
        return np.array(value)

    def bind_timed(self, *bound: Any) -> None:
        """Bind the timed module to an arena, offsets, copies of variables, constants, lengths."""
        times = len(self.plan.schedule.kernels) + 1 + 2 * len(self.inside)
        self.table = ArgumentTable(BoundProgram(self.timed, self.threads, None, *bound), times)
        if self.prints:
            self.table.show = SHOW(lambda kernel, data: None)

    def renew(self, inputs: tuple[Any, ...]) -> None:
        """Prepare a timed call, with all times 0."""
        self.table.feed(inputs)
        self.table.renew()
        report = self.table.report
        report[FAILURE_REPORT_WORDS:] = [0] * (len(report) - FAILURE_REPORT_WORDS)

    def run_timed(self, inputs: tuple[Any, ...]) -> bool:
        """Make a timed call; return True if a kernel failed."""
        self.renew(inputs)
        failed = bool(self.table.run(self.threads))
        self.times.append(self.table.report[FAILURE_REPORT_WORDS:])
        return failed

    def end(self, inputs: tuple[Any, ...], repeats: int) -> None:
        """Make timed calls that flush subnormal numbers to zero.

        They run last, as they remove subnormal numbers from the copies of variables.
        """
        for _ in range(repeats if is_possible() and not self.flushes else 0):
            self.renew(inputs)
            with flush_subnormals():
                failed = self.table.run(self.threads)
            if not failed:
                self.flushed_times.append(self.table.report[FAILURE_REPORT_WORDS:])

    def result(self, calls: Sequence[float], repeats: int) -> Profile:
        """Return the profile, from the timed calls and the seconds of the whole ``calls``."""
        found = machine(self.threads, self.toolchain, measure=True)
        count, lengths = len(self.plan.schedule.kernels), self.table.bound.lengths
        made = _Rows(lengths, found, self.threads, self.times, self.flushed_times, count + 1)
        rows = made.rows(self.plan)
        # The minimum is least disturbed by other programs.
        outside = max(min(calls) - 1e-9 * min(each[count] - each[0] for each in self.times), 0.0)
        limits = found.on(self.threads)
        return Profile(rows, statistics.median(calls), outside, self.threads, repeats, limits)


def timed_program(toolchain: Toolchain, stages: CompileStages, flushes: bool) -> NativeProgram:
    """Return a plan's program that reads the clock after each kernel, about 30 ns each."""
    module = make_module(
        stages.plan,
        stages.linking,
        annotate=False,
        timed=True,
        cores=processors(),
        flushes=flushes,
    )
    path = shared_object(toolchain, module.shared, own=module.units)
    return NativeProgram(record_of(stages.plan, module, path), path)


def _between(number: int, times: Sequence[int]) -> int:
    """Return the nanoseconds of a top-level kernel."""
    return times[number + 1] - times[number]


class _Rows:
    """Builds the profile's rows from the ``times`` of calls and, if any, of ``flush_subnormals``
    ones.

    The times of a call are nanoseconds: first the clock at the start and at the end of each kernel.
    From ``at`` on follow, for each kernel in a region's body, the time that it took and its number
    of runs.
    """

    def __init__(
        self,
        lengths: Mapping[str, int],
        machine: Machine,
        threads: int,
        times: Sequence[Sequence[int]],
        flushed: Sequence[Sequence[int]],
        at: int,
    ) -> None:
        self.lengths, self.machine, self.threads = lengths, machine, threads
        self.times, self.flushed, self.at = times, flushed, at

    def rows(self, plan: Plan) -> tuple[KernelProfile, ...]:
        """Return the rows of a program's kernels."""
        found = []
        for number, (kernel, expected) in enumerate(self.expected(plan)):
            took, slow = self.taken(partial(_between, number))
            found.append(self.row(plan, number, kernel, expected, took, slow, 1))
        return tuple(found)

    def inner(self, plan: Plan) -> Iterator[KernelProfile]:
        """Yield the rows of the kernels of a region's body."""
        for number, (kernel, expected) in enumerate(self.expected(plan)):
            took, slow = self.taken(lambda each: each[self.at])
            runs = self.times[-1][self.at + 1]
            self.at += 2
            yield self.row(plan, number, kernel, expected, took, slow, runs)

    def taken(self, of: Callable[[Sequence[int]], int]) -> tuple[float, float]:
        """Return the median nanoseconds of one kernel, and the share of them due to subnormal
        numbers.

        The share compares the fastest calls, which other programs disturbed least.
        """
        took = statistics.median(map(of, self.times))
        if not self.flushed:
            return took, UNKNOWN
        least, flushed = (max(min(map(of, each)), 1) for each in (self.times, self.flushed))
        return took, max(0.0, 1 - flushed / least)

    def expected(self, plan: Plan) -> Iterator[tuple[Kernel, Predicted]]:
        """Return the kernels of a plan with the predicted cost of one run of each."""
        where = partial(place_of, plan)
        found = predictions(plan.schedule, self.lengths, self.machine, self.threads, where, plan)
        return zip(plan.schedule.kernels, found, strict=True)

    def row(
        self,
        plan: Plan,
        number: int,
        kernel: Kernel,
        expected: Predicted,
        took: float,
        subnormal: float,
        runs: int,
    ) -> KernelProfile:
        """Return the row of a kernel that took ``took`` nanoseconds in its ``runs``."""
        cost, limits = expected.cost, self.machine.on(self.threads)
        operations = cost.operations(self.machine)
        results = kernel.results or (kernel.op,)
        inside = plan.inside.get(kernel.op)
        return KernelProfile(
            number,
            kernel.kind,
            tuple(map(describe_computed, results)),
            tuple(op.file_info for op in results),
            max(took, 1) * 1e-9,
            runs * expected.prediction.seconds,
            runs * limits.seconds(cost.touched, cost.read, cost.written, operations),
            runs * cost.read,
            runs * cost.written,
            runs * cost.touched,
            {dtype: runs * count for dtype, count in operations.items()},
            runs,
            () if inside is None else tuple([r for p in inside.plans for r in self.inner(p)]),
            subnormal,
        )
