"""``f.profile``: how long each kernel takes, what it moves and computes, and what it could take."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from ....errors import AxisError, IndexRangeError, NonFiniteError, SizeError
from ....op_graph.op_graph import Op
from ...compile import Stages
from ...computation import Computation
from ...kernels.costs.machine import Machine
from ...lowering.fusion.kernel import Kernel
from ...lowering.planning.buffer_slots import place_of
from ...lowering.planning.cost_report import Predicted, predictions
from ...lowering.planning.plan import Plan
from ...lowering.planning.plan_loops import kernels_inside
from ...reports.call_errors import about_ops
from ...reports.profile_table import (
    UNKNOWN,
    KernelProfile,
    Profile,
    checked_repeats,
    computed,
    quiet,
)
from ..emit.compiler import record_of
from ..emit.module_text import REPORTED, make_module
from ..machine.measured_machine import machine
from ..machine.threads import processors
from ..runtime.bound_program import SHOW, Bound, NativeProgram
from ..runtime.flushing import flushed, is_possible
from ..toolchain.compilers import Toolchain
from ..toolchain.shared_objects import shared_object
from .c_function import Table

Array = np.ndarray[Any, Any]


def profile(
    toolchain: Toolchain,
    computation: Computation,
    args: Sequence[Any],
    keywords: Mapping[str, Any],
    repeats: int,
    flushes: bool,
) -> Profile:
    """The profile of a computation for these values of its placeholders.

    ``toolchain`` compiles the module that looks at the clock, which ``flushes`` subnormal numbers
    where calls do.
    """
    checked_repeats(repeats)
    values = (*computation.arranged(args, keywords), *computation.given.values())
    given = tuple(computation.given)
    try:
        return _Work(toolchain, computation, given, flushes).profile(values, repeats)
    except (AxisError, IndexRangeError, NonFiniteError, SizeError) as error:
        raise about_ops(error, computation.stages(given), values) from None


class _Work:
    """Two modules over one arena and one set of copies of the variables: the one that calls run,
    and one with the same kernels that looks at the clock between them."""

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
        self.table: Table

    def call(self) -> Callable[..., Any]:
        """A call as the computation makes it, but on copies of the variables."""
        threads = self.transformer.threads
        functions = self.program.functions(threads)

        def bind(arena: Array, offsets: Any, variables: Any, constants: Any, lengths: Any) -> Any:
            bound = (arena, offsets, [np.array(each) for each in variables], constants, lengths)
            times = len(self.plan.schedule.kernels) + 1 + 2 * len(self.inside)
            self.table = Table(Bound(self.timed, threads, None, *bound), times)
            return functions.bind(*bound)

        return self.linked(functions._replace(bind=bind))

    def inputs(self, values: Sequence[Any]) -> tuple[Array, ...]:
        """These values as the arrays that a call reads."""

        def run(bound: None, *inputs: Array) -> tuple[Array, ...]:
            return inputs

        sizes = self.program.functions(self.transformer.threads).sizes
        call = self.linked((lambda *bound: None, run, sizes))
        found: tuple[Array, ...] = call(*values)
        return found

    def linked(self, functions: Any) -> Callable[..., Any]:
        return self.transformer.link(functions, self.stages, writes=False)

    def profile(self, values: Sequence[Any], repeats: int) -> Profile:
        """Medians of so many calls, whole and by kernel."""
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
            report[REPORTED:] = [0] * (len(report) - REPORTED)

        def timed() -> None:
            renewed()
            if self.table.run(self.transformer.threads):
                call(*values)  # fails as well, variables being as they were, and says why
            times.append(self.table.report[REPORTED:])

        def without_subnormals() -> None:
            renewed()
            with flushed():
                failed = self.table.run(self.transformer.threads)
            if not failed:
                flushed_times.append(self.table.report[REPORTED:])

        with quiet(bool(self.program.record.shown)):
            call(*values)
            inputs = self.inputs(values)
            if self.program.record.shown:
                self.table.show = SHOW(lambda kernel, data: None)
            for turn in range(repeats):
                # Turns change about: else the slices of time that a busy processor deals out could
                # fall on one of the two alone.
                for run in (timed, whole) if turn % 2 else (whole, timed):
                    run()
            # Last, since they leave no subnormal number in the copies of variables.
            for _ in range(repeats if is_possible() and not self.flushes else 0):
                without_subnormals()
        threads = self.transformer.threads
        found = machine(threads, self.toolchain, measure=True)
        count = len(self.plan.schedule.kernels)
        made = _Rows(self.table.bound.lengths, found, threads, times, flushed_times, count + 1)
        rows = made.rows(self.plan)
        # The fastest ones are those that other programs disturbed least.
        outside = min(calls) - 1e-9 * min(each[count] - each[0] for each in times)
        call_seconds = statistics.median(calls)
        return Profile(rows, call_seconds, max(outside, 0.0), threads, repeats, found.on(threads))


def timed_program(toolchain: Toolchain, stages: Stages, flushes: bool) -> NativeProgram:
    """The module of a plan with a look at the clock after each kernel, some 30 ns each."""
    width = toolchain.vector_bytes
    module = make_module(
        stages.plan,
        stages.linking,
        width,
        annotate=False,
        timed=True,
        cores=processors(),
        flushes=flushes,
    )
    path = shared_object(toolchain, module.shared, own=module.units)
    return NativeProgram(record_of(stages.plan, module, path), path)


def _between(number: int, times: Sequence[int]) -> int:
    """The nanoseconds of a kernel of the program."""
    return times[number + 1] - times[number]


class _Rows:
    """Rows of kernels from the ``times`` of calls, and those of ``flushed`` ones, if any.

    A call has the nanoseconds when each kernel ended, and from ``at`` on, for each kernel of a
    body, those it took and how often it ran.
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
        """The rows of the kernels of a program."""
        found = []
        for number, (kernel, expected) in enumerate(self.expected(plan)):
            took, slow = self.taken(partial(_between, number))
            found.append(self.row(plan, number, kernel, expected, took, slow, 1))
        return tuple(found)

    def inner(self, plan: Plan) -> Iterator[KernelProfile]:
        """The rows of the kernels of a body."""
        for number, (kernel, expected) in enumerate(self.expected(plan)):
            took, slow = self.taken(lambda each: each[self.at])
            runs = self.times[-1][self.at + 1]
            self.at += 2
            yield self.row(plan, number, kernel, expected, took, slow, runs)

    def taken(self, of: Callable[[Sequence[int]], int]) -> tuple[float, float]:
        """The nanoseconds of one kernel, and the share of them that subnormal numbers take.

        The share is that of the fastest calls, which other programs disturbed least.
        """
        took = statistics.median(map(of, self.times))
        if not self.flushed:
            return took, UNKNOWN
        least, flushed = (max(min(map(of, each)), 1) for each in (self.times, self.flushed))
        return took, max(0.0, 1 - flushed / least)

    def expected(self, plan: Plan) -> Iterator[tuple[Kernel, Predicted]]:
        """The kernels of a plan with what one run of each should take."""
        where = partial(place_of, plan)
        found = predictions(plan.schedule, self.lengths, self.machine, self.threads, where)
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
        """The row of a kernel that took so many nanoseconds in its ``runs``."""
        cost, limits = expected.cost, self.machine.on(self.threads)
        operations = cost.operations(self.machine)
        results = kernel.results or (kernel.op,)
        inside = plan.inside.get(kernel.op)
        return KernelProfile(
            number,
            kernel.kind,
            tuple(map(computed, results)),
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
