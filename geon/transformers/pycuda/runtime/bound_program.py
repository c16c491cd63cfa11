"""A program bound to lengths and an arena: submission of a call to the device, and its errors.

Inputs and results pass through pinned memory, so that the device copies them asynchronously. The
second call with the same addresses is captured as a CUDA graph, with copies, kernels and error
report; later calls replay it.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import cached_property, partial
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

import numpy as np

from ....errors import DeviceError
from ....op_graph.axes.lengths import evaluate
from ...loading.environment import debugging
from ...reports.kernel_failures import kernel_failure
from ...runtime.rwlock import stop_if_interrupted
from ...sizes.spaces import beyond_counting
from ..emit.record import CudaRecord
from ..launches.device import Array, Device
from ..launches.launch_ir import REPORT_POINTER, Show
from ..launches.library_requests import CAPTURED
from ..launches.memory import DeviceArray, DeviceMemory, ForeignArray
from .bound_launches import (
    Bare,
    Begun,
    Calling,
    Edge,
    Lanes,
    Located,
    Read,
    Waiting,
    address_of,
    bare_waves,
    turns_of,
)
from .calls import CallInFlight
from .pinned_buffers import REPORT_WORDS, StagedResult, Staging, StagingBlock, bytes_of_result

MAX_GRAPHS = 4  # max. cached graphs per binding, one per set of addresses


class CudaProgram:
    """A module loaded on its device; ``functions`` are what ``Transformer.link`` takes."""

    def __init__(self, record: CudaRecord, device: Device) -> None:
        self.record, self.module, self.device = record, record.module, device
        self.buffers, self.results = record.buffers, record.results
        self.checks, self.loops = record.checks, record.loops
        self.loaded = device.load(self.module.source, self.module.kernels)
        self.functions = (self.bind, BoundCudaProgram.run, self.sizes)
        self.lock = threading.Lock()
        self.stagings: WeakKeyDictionary[DeviceArray, Staging] = WeakKeyDictionary()

    def staging(self, arena: DeviceArray) -> Staging:
        """Return the staging memory of calls in an arena, shared by all lengths."""
        return self.stagings.setdefault(arena, Staging(self.device))

    @cached_property
    def small(self) -> list[DeviceArray]:
        """Return the small constants on the device."""
        memory = DeviceMemory(self.device)
        return [memory.copy_in(array) for array in self.module.small]

    def sizes(self, lengths: Mapping[str, int]) -> tuple[list[int], list[tuple[int, int]], int]:
        """Return sizes and lifetimes of arena buffers, and the bytes of results."""
        record = self.record
        sizes = [buffer.bytes(lengths, 1) for buffer in record.buffers]
        beside = sum(bytes_of_result(evaluate(size, lengths)) for size in record.beside)
        return sizes, list(record.lifetimes), beside + beyond_counting(record.spaces, lengths)

    def bind(self, *args: Any) -> BoundCudaProgram:
        """Bind the program to an arena and lengths."""
        with self.lock:
            return BoundCudaProgram(self, *args)


class Steady(NamedTuple):
    """The captured graphs of a call with host inputs.

    ``inputs`` are pinned arrays to fill first, None for inputs without elements. The graphs are
    valid while the staging memory has this ``generation``. ``short`` is the device's fast path, or
    None.
    """

    generation: int
    inputs: Sequence[Array | None]
    graphs: Sequence[Callable[[], None]]
    results: Sequence[StagedResult]
    short: Any


class BoundCudaProgram:
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
        self.pieces: list[list[Lanes]] = [[]]  # a call may be interrupted between two of these
        for wave in waves:
            self.pieces[-1].append(wave.lanes)
            if wave.may_end:
                self.pieces.append([])
        self.waits = any(
            isinstance(step, (Show, Waiting))
            or (isinstance(step, Calling) and not isinstance(step.call, CAPTURED))
            for step in self.steps
        )
        self.steady: Steady | None = None
        self.marked: Any = None
        self.reported_in: Array | None = None
        self.graphs: OrderedDict[tuple[int, ...], Sequence[Callable[[], None]] | None]
        self.graphs = OrderedDict()

    def run(self, *arrays: Any) -> tuple[Any, ...]:
        """Return the results for these inputs as new host arrays."""
        return self.start(arrays, False, True).finish()

    def start(self, arrays: Sequence[Any], on_device: bool, waited: bool) -> CallInFlight:
        """Submit a call; its results stay on the device or are copied to the host.

        If it is ``waited`` for, Ctrl-C may interrupt it.
        """
        steady = self.steady
        if steady is not None and steady.generation == self.staging.generation:
            if steady.short is not None and not (waited and len(steady.graphs) > 1):
                run = self.begun_shortly(steady.short, None, 0, arrays)
                if run is not None:
                    return run
            if not any(isinstance(array, ForeignArray) for array in arrays):
                for pinned, array in zip(steady.inputs, arrays, strict=True):
                    if pinned is not None:
                        np.copyto(pinned, array)
                self.replay(steady.graphs, waited)
                return CallInFlight(self, arrays, (), steady.results, self.marked)
        return self.first(arrays, on_device, waited)

    def begun_shortly(
        self, short: Any, state: Any, epoch: int, arrays: Sequence[Any]
    ) -> CallInFlight | None:
        """Submit a call by the fast path; None if that does not accept these arrays.

        With a ``state``, this requires that no other call uses the variables of that ``epoch``.
        """
        status = short.begin(self.device, state, epoch, *arrays)
        if status is NotImplemented:
            return None
        if status:
            assert self.steady is not None
            raise self.refused(status, self.steady.graphs)
        return CallInFlight(self, short=short)

    def refused(self, found: int | None, begun: Sequence[Any] = ()) -> Exception:
        """Return the error for a status of the fast path; ``begun`` are the graphs of the call.

        None as status means that a kernel reported an error.
        """
        if found is None:
            return self.reported(self.report())
        try:
            self.device.fail(found)
        except DeviceError as error:
            return self.begun_in_part(error, begun)

    def short(self, steady: Steady, arrays: Sequence[Array]) -> Any:
        """Return the device's fast path into a captured call; None if results are not pinned."""
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
        """Return the fast path if it is valid and the whole call is one graph, else None."""
        steady = self.steady
        if steady is None or steady.generation != self.staging.generation:
            return None
        return steady.short if len(steady.graphs) == 1 else None

    def first(self, arrays: Sequence[Any], on_device: bool, waited: bool) -> CallInFlight:
        """Submit a call whose addresses are not known yet.

        Results that stay on the device keep the event at its end, so that one is recorded anew.
        """
        if on_device:
            self.marked = None
        inputs, brought = self.staging.sources(arrays)
        left = [self.memory.allocate(*each) for each in self.shapes] if on_device else []
        shapes = [] if on_device else self.shapes
        leaving = self.staging.leaving(shapes, self.program.module.raises)
        results, taken, report, self.reported_in = leaving
        if on_device:
            results = [StagedResult(each.address, each.shape, each.dtype, None) for each in left]
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
        for each in left:
            each.written = self.marked
        apart = any(each.address and each.pinned is None for each in inputs)
        if graphs is not None and not (apart or on_device):
            pins = [each.pinned for each in inputs]
            steady = Steady(self.staging.generation, pins, graphs, results, None)
            self.steady = steady._replace(short=self.short(steady, arrays))
        return CallInFlight(self, self.unordered(arrays), left, results, self.marked)

    def unordered(self, arrays: Sequence[Any]) -> list[Any]:
        """Return the inputs to keep alive until the call ends: those of other libraries.

        The memory of geon's own arrays is used again only by work that is ordered after the call.
        """
        kept = []
        for array in arrays:
            if isinstance(array, ForeignArray) and isinstance(array.owner, DeviceArray):
                array.owner.read_by(self.device, self.marked)
            else:
                kept.append(array)
        return kept

    def again(
        self, key: tuple[int, ...], parts: Sequence[Callable[[], None]], waited: bool
    ) -> Sequence[Callable[[], None]] | None:
        """Submit a call; return its graphs if the same addresses were used before, else None."""
        if key not in self.graphs:
            self.at_once(parts, waited)
            self.graphs[key] = None
            while len(self.graphs) > MAX_GRAPHS:
                self.graphs.popitem(last=False)
            return None
        graphs = self.graphs.pop(key) or [self.device.capture(part) for part in parts]
        self.graphs[key] = graphs  # moved to the end: evicted last
        self.replay(graphs, waited)
        return graphs

    def at_once(self, parts: Sequence[Callable[[], None]], waited: bool) -> None:
        """Submit a call step by step; a failure counts as lost: earlier steps may have written."""
        try:
            self.in_turn(parts, waited)
        except DeviceError as error:
            error.lost = True
            self.await_copies()
            raise

    def await_copies(self) -> None:
        """Wait for what a failed call has submitted, unless the device is lost.

        Its copies use pinned memory, which other calls may get as soon as it is given back.
        """
        with suppress(DeviceError):
            self.device.synchronise()

    def replay(self, graphs: Sequence[Callable[[], None]], waited: bool) -> None:
        """Launch captured graphs."""
        try:
            if waited and len(graphs) > 1:
                self.in_turn(graphs, waited)
            else:
                self.marked = self.device.replay(graphs, self.marked)
        except DeviceError as error:
            raise self.begun_in_part(error, graphs) from None

    def begun_in_part(self, error: DeviceError, graphs: Sequence[Any]) -> DeviceError:
        """Mark an error as lost if earlier graphs of the call may have written, and return it."""
        error.lost = error.lost or len(graphs) > 1
        self.await_copies()
        return self.blamed(error)

    def in_turn(self, parts: Sequence[Callable[[], None]], waited: bool) -> None:
        """Submit the parts of a call and mark its end; calls of one binding do not overlap.

        If it is ``waited`` for, the host tests for interruption after each part but the last, while
        the device works on the next one.
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
        """Raise ``KeyboardInterrupt`` if Ctrl-C was pressed, after all submitted work is done."""
        try:
            stop_if_interrupted()
        except KeyboardInterrupt:
            self.device.synchronise()
            raise

    # Steps --------------------------------------------------------------------------------------

    def parts(
        self, brought: Sequence[StagingBlock], taken: Sequence[StagingBlock], table: Sequence[int]
    ) -> list[Callable[[], None]]:
        """Return functions that submit the parts of a call; it may be interrupted between them."""

        def begin(number: int) -> None:
            if number == 0:
                self.begin(brought, table)
            for wave in self.pieces[number]:
                self.run_wave(wave, table)
            if number == len(self.pieces) - 1:
                self.leave(taken)

        return [partial(begin, number) for number in range(len(self.pieces))]

    def begin(self, brought: Sequence[StagingBlock], table: Sequence[int]) -> None:
        """Submit the copies of inputs, and clear the error report."""
        for address, pinned in brought:
            self.device.copy_in(address, pinned)
        if self.program.module.raises:
            self.device.clear(table[REPORT_POINTER], REPORT_WORDS * 8)

    def leave(self, taken: Sequence[StagingBlock]) -> None:
        """Submit the copies of results to the host."""
        for address, pinned in taken:
            self.device.copy_out(pinned, address)

    def report(self) -> Array:
        """Return the pinned memory that has the error report after a call."""
        assert self.reported_in is not None, "only what can fail is asked"
        return self.reported_in

    def run_wave(self, wave: Lanes, table: Sequence[int]) -> None:
        """Submit a wave: concurrently, unless a step needs the host."""
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
        """Submit a step."""
        if isinstance(step, Waiting):
            for each in turns_of(step, self.program.loaded, self.lengths, self.reader(table)):
                self.take(each, table)
        elif isinstance(step, Show):
            self.show(step, table)
        else:
            assert not isinstance(step, Edge), "what is timed is done by another kind of program"
            try:
                step.submit(self.device, table)
                if debugging("launches"):
                    self.device.synchronise()
            except DeviceError as error:
                if isinstance(step, (Begun, Calling)):
                    error.kernel = step.origin
                raise

    def reader(self, table: Sequence[int]) -> Read:
        """Return a function that waits for submitted work and reads a number from the device.

        It returns 0, which ends every loop, after a kernel has reported an error. It raises
        ``KeyboardInterrupt`` if Ctrl-C was pressed.
        """

        def read(located: Located, dtype: type) -> int:
            found: Any = np.empty((), dtype)
            raises = self.program.module.raises
            self.device.copy_out(found, address_of(table, located))
            if raises:
                self.device.copy_out(self.report(), table[REPORT_POINTER])
            self.device.synchronise()
            stop_if_interrupted()  # no work is submitted, and no variable was written
            return 0 if raises and self.report()[0] else int(found)

        return read

    def show(self, step: Show, table: Sequence[int]) -> None:
        """Print a value, unless a kernel has failed."""
        if self.program.module.raises:
            self.device.copy_out(self.report(), table[REPORT_POINTER])
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
        """Set an error's kernel if the program has only one."""
        origins = {step.origin for step in self.steps if isinstance(step, (Begun, Calling))}
        if error.lost and error.kernel is None and len(origins) == 1:
            (error.kernel,) = origins
        return error

    def look(self, report: Array) -> None:
        """Raise the error that a kernel has reported, if any."""
        if report[0]:
            raise self.reported(report)

    def reported(self, report: Array) -> Exception:
        """Return the error of the kernel named in the report."""
        return self.failure(int(report[0]) - 1, report)

    def failure(self, kernel: int, report: Any) -> Exception:
        """Return the error that kernel number ``kernel`` reported."""
        check, loops = self.program.checks[kernel], self.program.loops.get(kernel, ())
        low, high, first, total, step = [int(word) for word in report[1:6]]
        words = (low, total, first) if check is None else (low, high)
        size_of = partial(evaluate, lengths=self.lengths)
        return kernel_failure(kernel, check, words, size_of, loops, step)


assert REPORT_POINTER == -1, "the last pointer of a table"
