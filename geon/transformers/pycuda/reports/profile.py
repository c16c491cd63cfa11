"""``f.profile`` on a device: time, number of runs and memory traffic of each kernel."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from ....errors import (
    AxisError,
    DeviceError,
    IndexRangeError,
    LinearAlgebraError,
    NonFiniteError,
    SizeError,
)
from ....op_graph.op_graph import Op
from ...base import Transformer
from ...binding.complex_calls import program_values
from ...compile import CompileStages
from ...computation import Computation
from ...kernels.costs.kernel_costs import cost_of
from ...kernels.costs.machine import RowCost, row_cost
from ...lowering.planning.buffer_slots import place_of
from ...lowering.planning.cost_report import operand_places
from ...printing.scalars.op_costs import ROW_COSTS
from ...reports.call_errors import about_ops
from ...reports.profile_table import (
    UNKNOWN,
    KernelProfile,
    Profile,
    checked_repeats,
    describe_computed,
    quiet,
)
from ..emit.cuda_module import Row, timed_module
from ..emit.record import record_of
from ..launches.device import Device
from ..launches.launch_ir import Show
from ..launches.memory import DeviceArray, DeviceMemory
from ..runtime.bound_program import BoundCudaProgram, CudaProgram
from ..runtime.calls import CudaCall, lose
from ..runtime.timed_program import Clocked, Clocks


def profile(
    transformer: Transformer,
    computation: Computation,
    args: Sequence[Any],
    keywords: Mapping[str, Any],
    repeats: int,
) -> Profile:
    """Return the profile of a computation for these values of its placeholders."""
    checked_repeats(repeats)
    values = (*computation.arranged(args, keywords), *computation.given.values())
    given = tuple(computation.given)
    try:
        return _ProfiledPrograms(transformer, computation, given).profile(values, repeats)
    except (AxisError, IndexRangeError, LinearAlgebraError, NonFiniteError, SizeError) as error:
        raise about_ops(error, computation.stages(given), values) from None


class _ProfiledPrograms:
    """An ordinary and a timed program, over one arena and one set of variables' copies."""

    def __init__(
        self,
        transformer: Transformer,
        computation: Computation,
        given: tuple[Op, ...],
    ) -> None:
        self.transformer, self.stages = transformer, computation.stages(given)
        self.program: CudaProgram = self.stages.compiled
        device = self.program.device
        self.timed, self.rows = self.stages.once(
            "timed", lambda: timed_program(device, self.stages)
        )
        self.clocked: Clocked

    def call(self) -> Callable[..., Any]:
        """Return a call as the computation makes it, but on copies of the variables."""
        bind, run, sizes = self.program.functions

        def bind_both(
            arena: DeviceArray, offsets: Any, variables: Any, constants: Any, lengths: Any
        ) -> BoundCudaProgram:
            copies = [copy_to_device(self.program.device, each) for each in variables]
            bound = (arena, offsets, copies, constants, lengths)
            self.clocked = Clocked(self.timed, len(self.rows), *bound)
            return bind(*bound)

        made: Callable[..., Any] = self.linked((bind_both, run, sizes), kind=CudaCall)
        return made

    def inputs(self, values: Sequence[Any]) -> tuple[Any, ...]:
        """Return these values as the arrays that a call reads."""

        def run(bound: None, *inputs: Any) -> tuple[Any, ...]:
            return inputs

        call = self.linked((lambda *bound: None, run, self.program.sizes))
        found: tuple[Any, ...] = call(*values)
        return found

    def linked(self, functions: Any, **kind: Any) -> Any:
        return self.transformer.link(functions, self.stages, writes=False, **kind)

    def profile(self, given: Sequence[Any], repeats: int) -> Profile:
        """Return the medians over ``repeats`` calls, of whole calls and of each kernel."""
        values = program_values(self.stages, given)
        call = self.call()
        calls: list[float] = []
        found: list[Clocks] = []

        def whole() -> None:
            begin = time.perf_counter()
            call(*values)
            calls.append(time.perf_counter() - begin)

        def timed() -> None:
            try:
                found.append(self.clocked.clocks(inputs, self.rows))
            except DeviceError as error:
                lose(self.transformer.state, error)
                raise

        shows = any(isinstance(step, Show) for step in self.program.module.steps)
        with quiet(shows):
            call(*values)
            inputs = self.inputs(values)
            for _ in range(2):  # from the third call on, a call is a CUDA graph
                call(*values)
            for turn in range(repeats):
                for run in (timed, whole) if turn % 2 else (whole, timed):
                    run()
        rows = _Profiles(self.rows, found, self.clocked.lengths).inside(None)
        least = min(sum(each.seconds[k] for k in tops(self.rows)) for each in found)
        outside = max(min(calls) - least, 0.0)
        device = self.program.device.name
        return Profile(rows, statistics.median(calls), outside, 1, repeats, None, device)


def timed_program(device: Device, stages: CompileStages) -> tuple[CudaProgram, list[Row]]:
    """Return the timed program of a plan, and its profile rows."""
    module, rows = timed_module(stages.plan, stages.linking)
    return CudaProgram(record_of(stages.plan, module), device), rows


def copy_to_device(device: Device, value: DeviceArray) -> DeviceArray:
    """Return a copy of a value on the device."""
    made = DeviceMemory(device).allocate(value.shape, value.dtype)
    if made.nbytes:
        device.copy(made.address, value.address, made.nbytes)
    return made


def tops(rows: Sequence[Row]) -> list[int]:
    """Return the indices of rows that are not inside of others."""
    return [number for number, row in enumerate(rows) if row.around is None]


class _RowCosts:
    """Operation counts of elementwise primitives; those of the C target apply."""

    def row(self, row: str, dtype: str) -> RowCost:
        """Return the cost of one element of a primitive."""
        return row_cost(ROW_COSTS, row, dtype)


class _Profiles:
    """Converts the times of some calls to the profiles of rows."""

    def __init__(
        self, rows: Sequence[Row], times: Sequence[Clocks], lengths: Mapping[str, int]
    ) -> None:
        self.rows, self.times, self.lengths = rows, times, lengths

    def inside(self, around: int | None) -> tuple[KernelProfile, ...]:
        """Return the profiles of the rows inside the row ``around``."""
        numbers = [k for k, row in enumerate(self.rows) if row.around == around]
        return tuple([self.profile(number) for number in numbers])

    def profile(self, number: int) -> KernelProfile:
        """Return the profile of a row: all kernels of one launch."""
        row = self.rows[number]
        schedule, where = row.plan.schedule, partial(place_of, row.plan)
        kernels = [schedule.kernels[position] for position in row.positions]
        costs = [
            cost_of(kernel.work, self.lengths, operand_places(schedule, kernel, where))
            for kernel in kernels
        ]
        runs = self.times[-1].runs[number]
        operations: dict[str, int] = {}
        for cost in costs:
            for dtype, count in cost.operations(_RowCosts()).items():
                operations[dtype] = operations.get(dtype, 0) + runs * count
        results = [op for kernel in kernels for op in kernel.results or (kernel.op,)]
        seconds = statistics.median(each.seconds[number] for each in self.times)
        return KernelProfile(
            row.positions[0],
            kernels[0].kind,
            tuple(map(describe_computed, results)),
            tuple([op.file_info for op in results]),
            max(seconds, 1e-9),
            UNKNOWN,
            UNKNOWN,
            runs * sum(cost.read for cost in costs),
            runs * sum(cost.written for cost in costs),
            runs * sum(cost.touched for cost in costs),
            operations,
            runs,
            self.inside(number),
        )
