"""``f.profile``: time, memory traffic and operations of each kernel, compared with the roofline."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from ....errors import AxisError, IndexRangeError, LinearAlgebraError, NonFiniteError, SizeError
from ....op_graph.op_graph import Op
from ...binding.complex_calls import program_values
from ...compile import CompileStages
from ...computation import Computation
from ...kernels.costs.machine import Machine
from ...lowering.fusion.kernel import Kernel
from ...lowering.planning.buffer_slots import place_of
from ...lowering.planning.cost_report import Predicted, predictions
from ...lowering.planning.iteration_spaces import kernels_inside
from ...lowering.planning.plan import Plan
from ...reports.call_errors import about_ops
from ...reports.profile_table import (
    UNKNOWN,
    KernelProfile,
    Profile,
    checked_repeats,
    describe_computed,
    quiet,
)
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


def profile(
    toolchain: Toolchain,
    computation: Computation,
    args: Sequence[Any],
    keywords: Mapping[str, Any],
    repeats: int,
    flushes: bool,
) -> Profile:
    """Return the profile of a computation for these values of its placeholders.

    ``toolchain`` compiles a timed module. ``flushes`` is True if calls flush subnormal numbers to
    zero.
    """
    checked_repeats(repeats)
    values = (*computation.arranged(args, keywords), *computation.given.values())
    given = tuple(computation.given)
    try:
        return _ProfiledModules(toolchain, computation, given, flushes).profile(values, repeats)
    except (AxisError, IndexRangeError, LinearAlgebraError, NonFiniteError, SizeError) as error:
        raise about_ops(error, computation.stages(given), values) from None


class _ProfiledModules:
    """Two modules with the same kernels, arena and copies of variables: the normal one, and one
    that reads the clock after each kernel.
    """

    def __init__(
        self,
        toolchain: Toolchain,
        computation: Computation,
        given: tuple[Op, ...],
        flushes: bool,
    ) -> None:
        self.toolchain, self.flushes = toolchain, flushes
        self.transformer, self.stages = computation.transformer, computation.stages(given)
        self.program: NativeProgram = self.stages.compiled
        self.plan = self.stages.plan
        kernels = self.plan.schedule.kernels
        self.inside = [each for k in kernels for each in kernels_inside(self.plan, k)]
        self.timed = self.stages.once(
            "timed", lambda: timed_program(toolchain, self.stages, self.flushes)
        )
        self.table: ArgumentTable

    def call(self) -> Callable[..., Any]:
        """Return a call like the computation's own, on copies of the variables."""
        threads = self.transformer.threads
        functions = self.program.functions(threads)

        def bind(arena: Array, offsets: Any, variables: Any, constants: Any, lengths: Any) -> Any:
            bound = (arena, offsets, [np.array(each) for each in variables], constants, lengths)
            times = len(self.plan.schedule.kernels) + 1 + 2 * len(self.inside)
            self.table = ArgumentTable(BoundProgram(self.timed, threads, None, *bound), times)
            return functions.bind(*bound)

        return self.linked(functions._replace(bind=bind))

    def inputs(self, values: Sequence[Any]) -> tuple[Array, ...]:
        """Return these values as the arrays that a call reads."""

        def run(bound: None, *inputs: Array) -> tuple[Array, ...]:
            return inputs

        sizes = self.program.functions(self.transformer.threads).sizes
        call = self.linked((lambda *bound: None, run, sizes))
        found: tuple[Array, ...] = call(*values)
        return found

    def linked(self, functions: Any) -> Callable[..., Any]:
        return self.transformer.link(functions, self.stages, writes=False)

    def profile(self, given: Sequence[Any], repeats: int) -> Profile:
        """Return the medians of ``repeats`` calls, in total and by kernel."""
        values = program_values(self.stages, given)
        call = self.call()
        calls: list[float] = []
        times: list[list[int]] = []
        flushed_times: list[list[int]] = []

        def whole() -> None:
            begin = time.perf_counter()
            call(*values)
            calls.append(time.perf_counter() - begin)

        def renewed() -> None:
            self.table.feed(inputs)
            self.table.renew()
            report = self.table.report
            report[FAILURE_REPORT_WORDS:] = [0] * (len(report) - FAILURE_REPORT_WORDS)

        def timed() -> None:
            renewed()
            if self.table.run(self.transformer.threads):
                call(*values)  # fails too, as variables are unchanged, and raises the error
            times.append(self.table.report[FAILURE_REPORT_WORDS:])

        def without_subnormals() -> None:
            renewed()
            with flush_subnormals():
                failed = self.table.run(self.transformer.threads)
            if not failed:
                flushed_times.append(self.table.report[FAILURE_REPORT_WORDS:])

        with quiet(bool(self.program.record.shown)):
            call(*values)
            inputs = self.inputs(values)
            if self.program.record.shown:
                self.table.show = SHOW(lambda kernel, data: None)
            for turn in range(repeats):
                # The order alternates, so that preemption does not hit one of the two alone.
                for run in (timed, whole) if turn % 2 else (whole, timed):
                    run()
            # They run last, as they remove subnormal numbers from the copies of variables.
            for _ in range(repeats if is_possible() and not self.flushes else 0):
                without_subnormals()
        threads = self.transformer.threads
        found = machine(threads, self.toolchain, measure=True)
        count = len(self.plan.schedule.kernels)
        made = _Rows(self.table.bound.lengths, found, threads, times, flushed_times, count + 1)
        rows = made.rows(self.plan)
        # The minimum is least disturbed by other programs.
        outside = min(calls) - 1e-9 * min(each[count] - each[0] for each in times)
        call_seconds = statistics.median(calls)
        return Profile(rows, call_seconds, max(outside, 0.0), threads, repeats, found.on(threads))


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
