"""A program whose steps say what is timed: how long each row of a profile takes, how often it runs.

Marks of the device stand around each kernel, which are begun one after another. A loop that is one
launch looks at the device's clock itself. Which branch is taken only the device knows: its index is
put into a log there before the kernels of the branches are begun, and read in the end.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..emit.cuda_module import Row
from ..launches.device import Array
from ..launches.launch_ir import CLOCKED, CLOCKS, LAUNCHED, RUNS, TICKS, Show
from ..launches.memory import DeviceArray
from .bound_launches import Bare, Edge
from .bound_program import Bound, Program

LOGGED = 1 << 15  # indices of branches, and marks, until those that there are were waited for


@dataclass(frozen=True, slots=True)
class Clocks:
    """What rows took in one call, in seconds, and how often each ran."""

    seconds: Sequence[float]
    runs: Sequence[int]


class Clocked(Bound):
    """A program with as many ``rows``, bound for one call at a time, whose calls are timed."""

    def __init__(self, program: Program, rows: int, *bound: Any) -> None:
        super().__init__(program, *bound)
        self.own = DeviceArray(self.device, (CLOCKED * rows,), np.int64)
        self.log = DeviceArray(self.device, (LOGGED,), np.int64)
        self.tail.append(self.own.address)
        self.waits = True  # nothing that is timed is captured

    def clocks(self, inputs: Sequence[Any], rows: Sequence[Row]) -> Clocks:
        """What rows took in a call with these inputs; raises what a call raises."""
        self.seconds, self.runs = [0.0] * len(rows), [0] * len(rows)
        self.open: list[Any] = []
        self.spans: list[tuple[int, Any, Any]] = []
        self.places: dict[int, int] = {}  # where an index lies, to its last place in the log
        self.indices: list[int] = []
        self.waiting = 0  # of the log
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
        """All that was timed: of what a launch did inside, the part of its time that was so."""
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
        """Begin a step, or time one."""
        if not isinstance(step, Edge):
            super().take(step, table)
        elif step.begins:
            self.begin_row(step, table)
        else:
            self.spans.append((step.number, self.open.pop(), self.device.clock()))
            if len(self.spans) >= LOGGED:
                self.collect()

    def begin_row(self, step: Edge, table: Sequence[int]) -> None:
        """Note that a row begins, and in which branches."""
        if step.number_at is not None:
            if self.waiting == LOGGED:
                self.collect()
            pointer, behind = step.number_at
            address = table[pointer] + behind
            self.device.copy(self.log.address + 8 * self.waiting, address, 8)
            self.places[address] = len(self.indices) + self.waiting
            self.waiting += 1
        chosen = [
            (self.places[table[pointer] + behind], branch)
            for (pointer, behind), branch in step.chosen
        ]
        self.begun.append((step.number, chosen))
        self.open.append(self.device.clock())

    def collect(self) -> None:
        """Wait for what was begun, and add up what it took."""
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
        """What is printed is printed by calls."""


assert CLOCKS == -2, "the pointer before the last one of a table"
