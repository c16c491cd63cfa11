"""A program under given lengths in one arena: what a call begins on the device, and its end.

Inputs come by way of pinned memory and results leave so, that the device moves them while Python
goes on. All that a call begins with the same addresses is captured the second time, and begun as
one graph from then on: the copies, the kernels, and the report of what failed.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple, Protocol

import numpy as np

from ....errors import DeviceError, GeonError
from ....op_graph.axes.affine import Size
from ....op_graph.axes.lengths import evaluate
from ...loading.environment import debugging
from ...runtime.loop_steps import at_steps
from ...runtime.rwlock import stop_if_interrupted
from ...runtime.value_errors import not_finite, outside
from ...sizes.buffers import Buffer
from ..emit.cuda_module import Module
from ..launches.device import Array, Device
from ..launches.launch_ir import REPORT, Copy, Show
from ..launches.memory import DeviceArray, DeviceMemory, Shown
from .bound_launches import Bare, Begun, Calling, Clear, Lanes, Read, Waiting, bare_waves, turns_of
from .in_flight import Run, SteadyRun
from .pinned_buffers import WORDS, Block, Result, Staging

GRAPHS = 4  # that are kept of a binding, for calls with other addresses


class Program(Protocol):
    """What a binding needs of a compiled module.

    ``buffers`` are those of the arena, ``results`` has lengths and dtypes; ``checks``, for each
    kernel that can report an error, the length that positions are checked against, or None where a
    value is not finite; ``loops`` has the loops around it.
    """

    device: Device
    module: Module
    loaded: Mapping[str, Any]
    buffers: tuple[Buffer, ...]
    results: tuple[tuple[tuple[Size, ...], Any], ...]
    checks: dict[int, Any]
    loops: dict[int, Any]

    @property
    def small(self) -> list[DeviceArray]:
        """The small constants on the device."""

    def staging(self, arena: DeviceArray) -> Staging:
        """The places of inputs and results of calls in an arena."""


class Steady(NamedTuple):
    """The graphs of a call for inputs of the host, which are put into pinned memory first, where
    they have any elements; they are right while the places are of this ``generation``.

    ``short`` is the device's shorter way into them, where it has one.
    """

    generation: int
    inputs: Sequence[Array | None]
    graphs: Sequence[Callable[[], None]]
    results: Sequence[Result]
    short: Any


class Bound:
    """A program with its table of pointers, for one call at a time."""

    def __init__(
        self,
        program: Program,
        arena: DeviceArray,
        offsets: Sequence[int],
        variables: Sequence[DeviceArray],
        constants: Sequence[DeviceArray],
        lengths: Mapping[str, int],
    ) -> None:
        self.program, self.lengths, self.device = program, lengths, program.device
        self.memory = DeviceMemory(self.device)
        self.staging = program.staging(arena)
        self.held = (arena, *variables, *constants)
        self.shapes = [
            (tuple([evaluate(n, lengths) for n in dims]), dtype) for dims, dtype in program.results
        ]
        module = program.module
        sizes = [buffer.bytes(lengths, 1) for buffer in program.buffers]
        self.tail = [value.address for value in (*variables, *constants)]
        self.tail += [
            arena.address + offset if size else 0
            for offset, size in zip(offsets, sizes, strict=True)
        ]
        self.tail += [value.address for value in program.small]
        waves = bare_waves(module, program.loaded, lengths, self.device.takes)
        self.steps = [step for wave in waves for lane in wave.lanes for step in lane]
        self.pieces: list[list[Lanes]] = [[]]  # between which a call may be ended
        for wave in waves:
            self.pieces[-1].append(wave.lanes)
            if wave.may_end:
                self.pieces.append([])
        self.waits = any(isinstance(step, (Show, Waiting)) for step in self.steps)
        self.steady: Steady | None = None
        self.marked: Any = None
        self.reported_in: Array | None = None
        self.graphs: OrderedDict[tuple[int, ...], Sequence[Callable[[], None]] | None]
        self.graphs = OrderedDict()

    def run(self, *arrays: Any) -> tuple[Any, ...]:
        """The results for these inputs, as new arrays of the host."""
        return self.start(arrays, False, True).finish()

    def start(self, arrays: Sequence[Any], on_device: bool, waited: bool) -> Run | SteadyRun:
        """Begin a call; its results are left on the device, or brought to the host.

        Where it is ``waited`` for, Ctrl-C may end it.
        """
        steady = self.steady
        if steady is not None and steady.generation == self.staging.generation:
            if steady.short is not None and not (waited and len(steady.graphs) > 1):
                run = self.begun_shortly(steady.short, None, 0, arrays)
                if run is not None:
                    return run
            if not any(isinstance(array, Shown) for array in arrays):
                for pinned, array in zip(steady.inputs, arrays, strict=True):
                    if pinned is not None:
                        np.copyto(pinned, array)
                self.replay(steady.graphs, waited)
                return Run(self, arrays, (), steady.results, self.marked)
        return self.first(arrays, on_device, waited)

    def begun_shortly(
        self, short: Any, state: Any, epoch: int, arrays: Sequence[Any]
    ) -> SteadyRun | None:
        """A call that was begun the shorter way; None where that does not take these arrays.

        With a ``state`` it is begun only while nobody is at work on the variables of this epoch.
        """
        status = short.begin(self.device, state, epoch, *arrays)
        if status is NotImplemented:
            return None
        if status:
            assert self.steady is not None
            raise self.refused(status, self.steady.graphs)
        return SteadyRun(self, short)

    def refused(self, found: int | None, begun: Sequence[Any] = ()) -> Exception:
        """The error where the shorter way gave no results, or did not begin these graphs."""
        if found is None:
            return self.reported(self.report())
        try:
            self.device.fail(found)
        except DeviceError as error:
            return self.begun_in_part(error, begun)

    def short(self, steady: Steady, arrays: Sequence[Array]) -> Any:
        """The device's shorter way into a captured call whose results come by pinned memory."""
        results = [(each.shape, each.dtype, each.pinned) for each in steady.results]
        if any(each.address and each.pinned is None for each in steady.results):
            return None
        inputs = [
            (array.shape, array.dtype, pinned)
            for array, pinned in zip(arrays, steady.inputs, strict=True)
        ]
        report = self.report() if self.program.module.raises else None
        return self.device.steady(inputs, results, report, steady.graphs)

    @property
    def entry(self) -> Any:
        """The shorter way in, where the last call went by a graph that has one and is whole."""
        steady = self.steady
        if steady is None or steady.generation != self.staging.generation:
            return None
        return steady.short if len(steady.graphs) == 1 else None

    def first(self, arrays: Sequence[Any], on_device: bool, waited: bool) -> Run:
        """Begin a call whose addresses are to be found out."""
        inputs, brought = self.staging.sources(arrays)
        left = [self.memory.allocate(*each) for each in self.shapes] if on_device else []
        shapes = [] if on_device else self.shapes
        leaving = self.staging.leaving(shapes, self.program.module.raises)
        results, taken, report, self.reported_in = leaving
        if on_device:
            results = [Result(each.address, each.shape, each.dtype, None) for each in left]
        addresses = [source.address for source in inputs] + [each.address for each in results]
        table = [each or self.device.nothing for each in (*addresses, *self.tail, report)]
        staged = [source.pinned is not None for source in inputs]
        key = (self.staging.generation, *addresses, *staged)
        parts = self.parts(brought, taken, table)
        graphs = None
        if self.waits or debugging("launches"):
            self.at_once(parts, waited)
        else:
            graphs = self.again(key, parts, waited)
        apart = any(each.address and each.pinned is None for each in inputs)
        if graphs is not None and not (apart or on_device):
            pins = [each.pinned for each in inputs]
            steady = Steady(self.staging.generation, pins, graphs, results, None)
            self.steady = steady._replace(short=self.short(steady, arrays))
        return Run(self, arrays, left, results, self.marked)

    def again(
        self, key: tuple[int, ...], parts: Sequence[Callable[[], None]], waited: bool
    ) -> Sequence[Callable[[], None]] | None:
        """Begin what was begun with these addresses before as graphs, which it gives.

        The first time it is just begun.
        """
        if key not in self.graphs:
            self.at_once(parts, waited)
            self.graphs[key] = None
            while len(self.graphs) > GRAPHS:
                self.graphs.popitem(last=False)
            return None
        graphs = self.graphs.pop(key) or [self.device.capture(part) for part in parts]
        self.graphs[key] = graphs  # the last that go
        self.replay(graphs, waited)
        return graphs

    def at_once(self, parts: Sequence[Callable[[], None]], waited: bool) -> None:
        """Begin a call step by step; where one fails, those before it may have written already."""
        try:
            self.in_turn(parts, waited)
        except DeviceError as error:
            error.lost = True
            raise

    def replay(self, graphs: Sequence[Callable[[], None]], waited: bool) -> None:
        """Begin what was captured."""
        try:
            if waited and len(graphs) > 1:
                self.in_turn(graphs, waited)
            else:
                self.marked = self.device.replay(graphs, self.marked)
        except DeviceError as error:
            raise self.begun_in_part(error, graphs) from None

    def begun_in_part(self, error: DeviceError, graphs: Sequence[Any]) -> DeviceError:
        """An error of a graph that was not begun; those before it may have written already."""
        error.lost = error.lost or len(graphs) > 1
        return self.blamed(error)

    def in_turn(self, parts: Sequence[Callable[[], None]], waited: bool) -> None:
        """Begin the parts of a call, and mark its end: calls here are one after another.

        Of one that is ``waited`` for, the host looks after each but the last whether it is to go
        on, while the device has the next.
        """
        before: Any = None
        for number, part in enumerate(parts):
            part()
            if waited and number < len(parts) - 1:
                mark = self.device.mark()
                if before is not None:
                    self.device.wait(before)
                before = mark
                self.stop_if_interrupted()
        self.marked = self.device.mark(self.marked)

    def stop_if_interrupted(self) -> None:
        """Raise ``KeyboardInterrupt`` where Ctrl-C waits for the end of the call, once nothing is
        on its way."""
        try:
            stop_if_interrupted()
        except KeyboardInterrupt:
            self.device.synchronise()
            raise

    # Steps --------------------------------------------------------------------------------------

    def parts(
        self, brought: Sequence[Block], taken: Sequence[Block], table: Sequence[int]
    ) -> list[Callable[[], None]]:
        """What begins a call, part after part: between them it may be ended."""

        def begin(number: int) -> None:
            if number == 0:
                self.begin(brought, table)
            for wave in self.pieces[number]:
                self.run_wave(wave, table)
            if number == len(self.pieces) - 1:
                self.leave(taken)

        return [partial(begin, number) for number in range(len(self.pieces))]

    def begin(self, brought: Sequence[Block], table: Sequence[int]) -> None:
        """Begin the copies of inputs, before all steps."""
        for address, pinned in brought:
            self.device.copy_in(address, pinned)
        if self.program.module.raises:
            self.device.clear(table[REPORT], WORDS * 8)

    def leave(self, taken: Sequence[Block]) -> None:
        """Begin the copies of what leaves the device, after all steps."""
        for address, pinned in taken:
            self.device.copy_out(pinned, address)

    def report(self) -> Array:
        """The pinned memory that has what a kernel has reported, once a call is done."""
        assert self.reported_in is not None, "only what can fail is asked"
        return self.reported_in

    def run_wave(self, wave: Lanes, table: Sequence[int]) -> None:
        """Begin what may run at one time: side by side, unless steps are waited for."""
        waits = any(isinstance(step, Waiting) for lane in wave for step in lane)
        if len(wave) == 1 or waits or debugging("launches"):
            for lane in wave:
                for step in lane:
                    self.take(step, table)
            return
        with self.device.beside(len(wave)) as choose:
            for number, lane in enumerate(wave):
                choose(number)
                for step in lane:
                    self.take(step, table)

    def take(self, step: Bare, table: Sequence[int]) -> None:
        """Begin a step."""
        if isinstance(step, (Begun, Calling)):
            try:
                self.launch(step, table)
                if debugging("launches"):
                    self.device.synchronise()
            except DeviceError as error:
                error.kernel = step.origin
                raise
        elif isinstance(step, Copy):
            size = evaluate(step.size, self.lengths)
            target, source = table[step.target], table[step.source]
            self.device.copy(target + step.target_at, source + step.source_at, size)
        elif isinstance(step, Clear):
            self.device.clear(table[step.target] + step.target_at, step.size)
        elif isinstance(step, Waiting):
            for each in turns_of(step, self.program.loaded, self.lengths, self.reader(table)):
                self.take(each, table)
        else:
            assert isinstance(step, Show), "what is timed is done by another kind of program"
            self.show(step, table)

    def reader(self, table: Sequence[int]) -> Read:
        """What waits for all that was begun and gives a number that lies on the device.

        It gives 0, which ends every loop, where a kernel has reported an error. Raises
        ``KeyboardInterrupt`` where Ctrl-C waits for the end of the call.
        """

        def read(pointer: int, behind: int, dtype: type) -> int:
            found: Any = np.empty((), dtype)
            raises = self.program.module.raises
            self.device.copy_out(found, table[pointer] + behind)
            if raises:
                self.device.copy_out(self.report(), table[REPORT])
            self.device.synchronise()
            stop_if_interrupted()  # nothing is on its way, and no variable was written
            return 0 if raises and self.report()[0] else int(found)

        return read

    def launch(self, step: Begun | Calling, table: Sequence[int]) -> None:
        """Begin a kernel, or what a library is asked for."""
        if isinstance(step, Begun):
            words = step.words.copy()
            for at, number in step.pointers:
                words[at] += table[number]
            self.device.launch(step.kernel, step.blocks, step.threads, words)
            return
        put, made = step.step, step.made
        values = [0 if each is None else table[each] for each in put.values]
        self.device.call(made.placed(values, table[put.works] + made.works))

    def show(self, step: Show, table: Sequence[int]) -> None:
        """Print a value, unless a kernel has failed."""
        if self.program.module.raises:
            self.device.copy_out(self.report(), table[REPORT])
            self.device.synchronise()
            self.look(self.report())
        shape = tuple(evaluate(n, self.lengths) for n in step.lengths)
        found = np.empty(shape, step.dtype)
        if found.size:
            self.device.copy_out(found, table[step.pointer])
        self.device.synchronise()
        print(f"{step.label} = {found}")

    # Errors -------------------------------------------------------------------------------------

    def blamed(self, error: DeviceError) -> DeviceError:
        """An error of the device while kernels ran, with the number of the only one there is."""
        origins = {step.origin for step in self.steps if isinstance(step, (Begun, Calling))}
        if error.lost and error.kernel is None and len(origins) == 1:
            (error.kernel,) = origins
        return error

    def look(self, report: Array) -> None:
        """Raise what a kernel has reported."""
        if report[0]:
            raise self.reported(report)

    def reported(self, report: Array) -> Exception:
        """The error of the kernel that has reported one."""
        return self.failure(int(report[0]) - 1, report)

    def failure(self, kernel: int, report: Any) -> Exception:
        """The error that a kernel reported."""
        inside = self.program.checks[kernel]
        error: GeonError
        if inside is None:
            value = report[3:4].view(np.float64)[0]
            error = not_finite(report[1], report[4], value)
        else:
            low, high, size = int(report[1]), int(report[2]), evaluate(inside[0], self.lengths)
            error = outside(low, high, -size if inside[1] else 0, size)
        error.kernel = kernel  # type: ignore[union-attr]  # read where the graph is known
        loops = self.program.loops.get(kernel, ())
        counts = [(axis, evaluate(length, self.lengths)) for axis, length in loops]
        return at_steps(error, counts, int(report[5]))


assert REPORT == -1, "the last pointer of a table"
