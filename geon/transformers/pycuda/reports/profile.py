"""``f.profile`` on a device: time, number of runs and memory traffic of each kernel."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from ....errors import DeviceError
from ....op_graph.op_graph import Op
from ...compile import CompileStages
from ...computation import Computation
from ...kernels.costs.kernel_costs import cost_of
from ...kernels.costs.machine import RowCost, row_cost
from ...lowering.planning.buffer_slots import place_of
from ...lowering.planning.cost_report import operand_places
from ...printing.scalars.op_costs import ROW_COSTS
from ...reports.profile_table import UNKNOWN, KernelProfile, Profile, describe_computed
from ...reports.profiled_calls import ProfiledCalls
from ...runtime.state import State
from ..emit.cuda_module import Row, timed_module
from ..emit.record import record_of
from ..launches.device import Device
from ..launches.launch_ir import Show
from ..launches.memory import DeviceArray, DeviceMemory
from ..runtime.bound_program import CudaProgram
from ..runtime.calls import CudaCall, lose
from ..runtime.timed_program import Clocked, Clocks


class DeviceProfile(ProfiledCalls):
    """The programs of a device, whose timed one measures the rows that ``timed_module`` returns.

    A lost device is noted in the transformer's ``state``.
    """

    kind = CudaCall
    further_calls = 2  # from the third call on, a call is a CUDA graph

    def __init__(self, state: State, computation: Computation, given: tuple[Op, ...]) -> None:
        super().__init__(computation, given)
        self.state = state
        self.program: CudaProgram = self.stages.compiled
        device = self.device = self.program.device
        self.functions = self.program.functions
        self.prints = any(isinstance(step, Show) for step in self.program.module.steps)
        self.timed, self.rows = self.stages.once(
            "timed", lambda: timed_program(device, self.stages)
        )
        self.clocked: Clocked
        self.found: list[Clocks] = []

    def copied(self, value: DeviceArray) -> DeviceArray:
        """Return a copy of a value on the device."""
        made = DeviceMemory(self.device).allocate(value.shape, value.dtype)
        if made.nbytes:
            self.device.copy(made.address, value.address, made.nbytes)
        return made

    def bind_timed(self, *bound: Any) -> None:
        """Bind the timed program to an arena, offsets, copies of variables, constants, lengths."""
        self.clocked = Clocked(self.timed, len(self.rows), *bound)

    def run_timed(self, inputs: tuple[Any, ...]) -> bool:
        """Make a timed call, which raises the error of a kernel that fails."""
        try:
            self.found.append(self.clocked.clocks(inputs, self.rows))
        except DeviceError as error:
            lose(self.state, error)
            raise
        return False

    def result(self, calls: Sequence[float], repeats: int) -> Profile:
        """Return the profile, from the timed calls and the seconds of the whole ``calls``."""
        rows = _Profiles(self.rows, self.found, self.clocked.lengths).inside(None)
        least = min(sum(each.seconds[k] for k in tops(self.rows)) for each in self.found)
        outside = max(min(calls) - least, 0.0)
        return Profile(rows, statistics.median(calls), outside, 1, repeats, None, self.device.name)


def timed_program(device: Device, stages: CompileStages) -> tuple[CudaProgram, list[Row]]:
    """Return the timed program of a plan, and its profile rows."""
    module, rows = timed_module(stages.plan, stages.linking)
    return CudaProgram(record_of(stages.plan, module), device), rows


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
