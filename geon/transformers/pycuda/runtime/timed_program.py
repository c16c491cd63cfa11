"""Timed execution of a program: seconds and number of runs of each profile row.

Events surround each kernel, and kernels run one after another. A loop that is one launch reads the
device's clock itself. The taken branch of a case is known only on the device: its index is copied
to a log before the branches are launched, and read at the end.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ....lazy_dataclasses import dataclass
from ..emit.cuda_module import Row
from ..launches.device import Array
from ..launches.launch_ir import CLOCKED, CLOCKS_POINTER, LAUNCHED, RUNS, TICKS, Show
from ..launches.memory import DeviceArray
from .bound_launches import Bare, Edge, address_of
from .bound_program import BoundCudaProgram, CudaProgram

# Max. logged branch indices, and events, before the host waits and collects them.
MAX_LOG_ENTRIES = 1 << 15


@dataclass(frozen=True, slots=True)
class Clocks:
    """Seconds of each row in one call, and how often each ran."""

    seconds: Sequence[float]
    runs: Sequence[int]


class Clocked(BoundCudaProgram):
    """A bound program whose calls are timed, with ``rows`` profile rows."""

    def __init__(self, program: CudaProgram, rows: int, *bound: Any) -> None:
        super().__init__(program, *bound)
        self.own = DeviceArray(self.device, (CLOCKED * rows,), np.int64)
        self.log = DeviceArray(self.device, (MAX_LOG_ENTRIES,), np.int64)
        self.tail.append(self.own.address)
        self.waits = True  # timed work is not captured

    def clocks(self, inputs: Sequence[Any], rows: Sequence[Row]) -> Clocks:
        """Run a call with these inputs and return the clocks of rows; raise what a call raises."""
        self.seconds, self.runs = [0.0] * len(rows), [0] * len(rows)
        self.open: list[Any] = []
        self.spans: list[tuple[int, Any, Any]] = []
        # address of a case's index -> position of its latest copy in the log
        self.places: dict[int, int] = {}
        self.indices: list[int] = []
        self.waiting = 0  # used entries of the log
        self.begun: list[tuple[int, list[tuple[int, int]]]] = []
        self.device.clear(self.own.address, self.own.nbytes)
        self.run(*inputs)
        self.collect()
        for number, chosen in self.begun:
            self.runs[number] += all(self.indices[place] == branch for place, branch in chosen)
        inside = self.memory.copy_out(self.own)
        self.device.synchronise()
        return self.shared(rows, inside.reshape(-1, CLOCKED))

    def shared(self, rows: Sequence[Row], inside: Array) -> Clocks:
        """Return all clocks; time inside of a launch is divided by the device's tick counts."""
        seconds, runs = list(self.seconds), list(self.runs)
        launched = {number for number, _ in self.begun}
        for number, row in enumerate(rows):
            around = row.around
            while around is not None and around not in launched:
                around = rows[around].around
            if number not in launched and around is not None and inside[around, LAUNCHED]:
                part = inside[number, TICKS] / inside[around, LAUNCHED]
                seconds[number] = float(self.seconds[around] * part)
                runs[number] = int(inside[number, RUNS])
        return Clocks(seconds, runs)

    def take(self, step: Bare, table: Sequence[int]) -> None:
        """Submit a step, or record the start or end of a timed one."""
        if not isinstance(step, Edge):
            super().take(step, table)
        elif step.begins:
            self.begin_row(step, table)
        else:
            self.spans.append((step.number, self.open.pop(), self.device.clock()))
            if len(self.spans) >= MAX_LOG_ENTRIES:
                self.collect()

    def begin_row(self, step: Edge, table: Sequence[int]) -> None:
        """Record the start of a row and the branches that enclose it."""
        if step.number_at is not None:
            if self.waiting == MAX_LOG_ENTRIES:
                self.collect()
            place = address_of(table, step.number_at)
            self.device.copy(self.log.address + 8 * self.waiting, place, 8)
            self.places[place] = len(self.indices) + self.waiting
            self.waiting += 1
        chosen = [(self.places[address_of(table, index)], branch) for index, branch in step.chosen]
        self.begun.append((step.number, chosen))
        self.open.append(self.device.clock())

    def collect(self) -> None:
        """Wait for submitted work and add up its times."""
        found = np.empty(self.waiting, np.int64)
        if self.waiting:
            self.device.copy_out(found, self.log.address)
        self.device.synchronise()
        self.indices += found.tolist()
        self.waiting = 0
        for number, first, last in self.spans:
            self.seconds[number] += self.device.seconds(first, last)
        self.spans.clear()

    def show(self, step: Show, table: Sequence[int]) -> None:
        """Do nothing: only ordinary calls print."""


assert CLOCKS_POINTER == -2, "the pointer before the last one of a table"
