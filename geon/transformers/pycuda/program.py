"""Compiled CUDA modules as the functions that a call binds and runs."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from ...errors import GeonError, IndexRangeError, NonFiniteError
from ...op_graph.lengths import evaluate
from ..lowering.memory import Plan
from ..lowering.schedule import bytes_of
from ..lowering.spaces import beyond_counting, space_of
from .device import Array, Device
from .emit import REPORT, Module
from .launches import Argument, Choice, Copy, Fixed, Launch, Parts, Show, Step
from .memory import DeviceArray, DeviceMemory

WORDS = 8  # of a report


class Begun(NamedTuple):
    """A launch for given lengths: arguments that are known, and the numbers of those that are not.

    ``pointers`` has for some of the ``words`` the number of the pointer that is put there.
    """

    kernel: Any
    blocks: int
    threads: int
    words: list[int]
    pointers: tuple[tuple[int, int], ...]


class CudaProgram:
    """A module on its device; ``functions`` are what ``Transformer.link`` takes."""

    def __init__(self, plan: Plan, module: Module, device: Device) -> None:
        self.module, self.device = module, device
        self.buffers, self.lifetimes = plan.buffers, plan.lifetimes
        outputs = plan.schedule.program.outputs
        self.results = [(op.axes.lengths, op.dtype) for op in outputs]
        self.beside = [bytes_of(op) for op in outputs]
        self.spaces = {space_of(kernel) for kernel in plan.schedule.kernels}
        self.checks = {
            number: kernel.op.attrs[0] if kernel.op.primitive.name == "checked" else None
            for number, kernel in enumerate(plan.schedule.kernels)
            if kernel.raises
        }
        self.loaded = device.load(module.source, module.kernels)
        self.functions = (self.bind, Bound.run, self.sizes)
        self.lock = threading.Lock()

    @cached_property
    def small(self) -> list[DeviceArray]:
        """The small constants on the device."""
        memory = DeviceMemory(self.device)
        return [memory.copy_in(array) for array in self.module.small]

    def sizes(self, lengths: Mapping[str, int]) -> tuple[list[int], list[tuple[int, int]], int]:
        """Bytes and lifetimes of arena buffers, and the bytes of results."""
        sizes = [buffer.bytes(lengths, 1) for buffer in self.buffers]
        beside = sum(evaluate(size, lengths) for size in self.beside)
        return sizes, list(self.lifetimes), beside + beyond_counting(self.spaces, lengths)

    def bind(self, *args: Any) -> Bound:
        """The program for one arena and given lengths."""
        with self.lock:
            return Bound(self, *args)


class Bound:
    """A program with its table of pointers, for one call at a time."""

    def __init__(
        self,
        program: CudaProgram,
        arena: DeviceArray,
        offsets: Sequence[int],
        variables: Sequence[DeviceArray],
        constants: Sequence[DeviceArray],
        lengths: Mapping[str, int],
    ) -> None:
        self.program, self.lengths, self.device = program, lengths, program.device
        self.memory = DeviceMemory(self.device)
        self.held = (arena, *variables, *constants)
        self.inputs: list[DeviceArray] | None = None
        self.results = [
            self.memory.allocate(tuple([evaluate(n, lengths) for n in dims]), dtype)
            for dims, dtype in program.results
        ]
        tail = [value.address for value in (*self.results, *variables, *constants)]
        tail += [arena.address + offset for offset in offsets]
        tail += [value.address for value in program.small]
        self.report = self.memory.allocate((WORDS,), np.int64)
        self.tail = [*tail, self.report.address]
        self.steps = list(self.bound(program.module.steps))
        self.shows = any(isinstance(step, Show) for step in self.steps)
        self.again: Callable[[], None] | None = None

    def run(self, *arrays: Array) -> tuple[Array, ...]:
        """The results for these inputs, as new arrays of the host.

        Inputs and results have places on the device that stay, so that all that is begun the second
        time is captured, and begun as one from then on.
        """
        if self.inputs is None:
            self.inputs = [self.memory.allocate(array.shape, array.dtype) for array in arrays]
            self.table = [value.address for value in self.inputs] + self.tail
            begin = self.begin
        else:
            if self.again is None:
                self.again = self.begin if self.shows else self.device.capture(self.begin)
            begin = self.again
        for value, array in zip(self.inputs, arrays, strict=True):
            self.memory.copy_in(array, value)
        begin()
        if self.program.module.raises:
            self.look()
        results = tuple([self.memory.copy_out(value) for value in self.results])
        self.device.synchronise()
        return results

    def begin(self) -> None:
        """Begin all steps."""
        if self.program.module.raises:
            self.device.clear(self.report.address, self.report.nbytes)
        for step in self.steps:
            self.take(step)

    # Steps --------------------------------------------------------------------------------------

    def bound(self, steps: Iterable[Step]) -> Iterator[Begun | Copy | Show]:
        """Steps under the lengths; what has nothing to do is left out."""
        for step in steps:
            if isinstance(step, Launch):
                if step.grid.blocks(self.lengths):
                    yield self.begun(step)
            elif isinstance(step, Choice):
                holds = all(evaluate(size, self.lengths) >= 0 for size in step.holds)
                yield from self.bound(step.steps if holds else step.others)
            elif isinstance(step, Show):
                yield step
            elif evaluate(step.size, self.lengths):
                yield step

    def begun(self, launch: Launch) -> Begun:
        """A launch with the words that are known."""
        words = [self.word(a) for a in launch.arguments]
        at = [(k, a) for k, a in enumerate(launch.arguments) if isinstance(a, int)]
        kernel = self.program.loaded[launch.kernel]
        blocks = launch.grid.blocks(self.lengths)
        return Begun(kernel, blocks, launch.threads, words, tuple(at))

    def word(self, argument: Argument) -> int:
        """The word of an argument that is known, else 0."""
        if isinstance(argument, Parts):
            return argument.number(self.lengths)
        if isinstance(argument, Fixed):
            return argument.value
        return self.lengths[argument] if isinstance(argument, str) else 0

    def take(self, step: Begun | Copy | Show) -> None:
        """Begin a step."""
        table = self.table
        if isinstance(step, Begun):
            words = step.words.copy()
            for at, number in step.pointers:
                words[at] = table[number]
            self.device.launch(step.kernel, step.blocks, step.threads, words)
        elif isinstance(step, Copy):
            size = evaluate(step.size, self.lengths)
            self.device.copy(table[step.target], table[step.source], size)
        else:
            self.show(step)

    def show(self, step: Show) -> None:
        """Print a value, unless a kernel has failed."""
        if self.program.module.raises:
            self.look()
        shape = tuple(evaluate(n, self.lengths) for n in step.lengths)
        found = np.empty(shape, step.dtype)
        if found.size:
            self.device.copy_out(found, self.table[step.pointer])
        self.device.synchronise()
        print(f"{step.label} = {found}")

    # Errors -------------------------------------------------------------------------------------

    def look(self) -> None:
        """Raise what a kernel has reported."""
        report = self.memory.copy_out(self.report)
        self.device.synchronise()
        if report[0]:
            raise self.failure(int(report[0]) - 1, report)

    def failure(self, kernel: int, report: Any) -> Exception:
        """The error that a kernel reported."""
        length = self.program.checks[kernel]
        error: GeonError
        if length is None:
            value = report[3:4].view(np.float64)[0]
            error = NonFiniteError(
                f"{report[1]} of {report[4]} values are not finite, the first is {value}; "
                "variables are as they were, and trace of the computation shows the values of all "
                "ops"
            )
        else:
            low, high, size = int(report[1]), int(report[2]), evaluate(length, self.lengths)
            found = f"{low} to {high}" if low < high else str(low)
            error = IndexRangeError(
                f"{found} where the axis has length {size}; positions must lie in {-size} to "
                f"{size - 1}: check the data, or geon.clip them"
            )
        error.kernel = kernel  # type: ignore[union-attr]  # read where the graph is known
        return error


assert REPORT == -1, "the last pointer of a table"
