"""A program under given lengths in one arena: what a call begins on the device, and its end.

Inputs come by way of pinned memory and results leave so, that the device moves them while Python
goes on. All that a call begins with the same addresses is captured the second time, and begun as
one graph from then on: the copies, the kernels, and the report of what failed.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np

from ...errors import DeviceError, GeonError, IndexRangeError, NonFiniteError
from ...op_graph.affine import Size
from ...op_graph.lengths import evaluate
from ..environment import debugging
from .device import Array, Device, Multiplication
from .emit import REPORT, Module
from .launches import Argument, Choice, Copy, Launch, Multiply, Parts, Rounds, Show, Step
from .memory import ALIGNMENT, DeviceArray, DeviceMemory, Pinned, Shown
from .products import WORKSPACE

WORDS = 8  # of a report
GRAPHS = 4  # that are kept of a binding, for calls with other addresses
STAGED = 1 << 26  # bytes of an input or result from which on none are kept pinned for it
# Where the elements of an input are, if not at an address of their own.
PINNED, FILLED = 0, -1


class Program(Protocol):
    """What a binding needs of a compiled module.

    ``results`` has their lengths and dtypes; ``checks``, for each kernel that can report an error,
    the length that positions are checked against, or None where a value is not finite.
    """

    device: Device
    module: Module
    loaded: Mapping[str, Any]
    results: list[tuple[tuple[Size, ...], Any]]
    checks: dict[int, Any]

    @property
    def small(self) -> list[DeviceArray]:
        """The small constants on the device."""


class Begun(NamedTuple):
    """A launch for given lengths: arguments that are known, and the numbers of those that are not.

    ``pointers`` has for some of the ``words`` the number of the pointer that is put there;
    ``origin`` is the number of the kernel in the plan.
    """

    kernel: Any
    blocks: int
    threads: int
    words: list[int]
    pointers: tuple[tuple[int, int], ...]
    origin: int


class Multiplying(NamedTuple):
    """A product for given lengths, whose addresses ``step`` says; ``origin`` is its kernel."""

    made: Multiplication
    step: Multiply
    origin: int


Bare = Begun | Multiplying | Copy | Show  # what is left of a step under given lengths


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
        self.held = (arena, *variables, *constants)
        self.shapes = [
            (tuple([evaluate(n, lengths) for n in dims]), dtype) for dims, dtype in program.results
        ]
        tail = [value.address for value in (*variables, *constants)]
        tail += [arena.address + offset for offset in offsets]
        tail += [value.address for value in program.small]
        words = WORDS if program.module.raises else 0
        self.report = self.memory.allocate((words,), np.int64)
        self.tail = [*tail, self.report.address]
        self.steps = [
            begun
            for step, origin in zip(program.module.steps, program.module.origins, strict=True)
            for begun in self.bound([step], origin)
        ]
        self.shows = any(isinstance(step, Show) for step in self.steps)
        self.inputs: dict[int, DeviceArray] = {}
        self.results: list[DeviceArray] = []  # once they are to be brought to the host
        self.pinned: dict[object, Array] = {}
        self.graphs: OrderedDict[tuple[int, ...], Callable[[], None] | None] = OrderedDict()

    def run(self, *arrays: Any) -> tuple[Any, ...]:
        """The results for these inputs, as new arrays of the host."""
        return self.start(arrays, False).finish()

    def start(self, arrays: Sequence[Any], on_device: bool) -> Run:
        """Begin a call; its results are left on the device, or brought to the host."""
        sources = [self.source(k, array) for k, array in enumerate(arrays)]
        if on_device:
            results = [self.memory.allocate(shape, dtype) for shape, dtype in self.shapes]
        else:
            results = self.results = self.results or [
                self.memory.allocate(shape, dtype) for shape, dtype in self.shapes
            ]
        leaving = [] if on_device else results
        key = (*sources, *[value.address for value in results])

        def begin() -> None:
            self.begin(sources, results, leaving)

        run = Run(self, arrays, results, leaving)
        if self.shows or debugging("launches"):
            begin()
        else:
            self.again(key, begin)
        run.mark = self.device.mark()
        return run

    def again(self, key: tuple[int, ...], begin: Callable[[], None]) -> None:
        """Begin what was begun with these addresses before as a graph; the first time, begin."""
        if key not in self.graphs:
            begin()
            self.graphs[key] = None
            while len(self.graphs) > GRAPHS:
                self.graphs.popitem(last=False)
            return
        graph = self.graphs.pop(key) or self.device.capture(begin)
        self.graphs[key] = graph  # the last that goes
        try:
            graph()
        except DeviceError as error:
            raise self.blamed(error) from None

    # Inputs and results -------------------------------------------------------------------------

    def source(self, number: int, array: Any) -> int:
        """Where an input is: its address, or that it is in pinned memory, or was brought already.

        What lies on the device at an aligned address is read there.
        """
        if isinstance(array, Shown) and array.address % ALIGNMENT == 0:
            return array.address
        if number not in self.inputs:
            self.inputs[number] = self.memory.allocate(array.shape, array.dtype)
        value = self.inputs[number]
        if isinstance(array, Shown) or value.nbytes >= STAGED:
            self.memory.copy_in(array, value)
            return FILLED
        if value.nbytes:
            np.copyto(self.staged(number, array.shape, array.dtype), array)
        return PINNED

    def staged(self, place: object, shape: tuple[int, ...], dtype: Any) -> Array:
        """Pinned memory of a place, which stays."""
        found = self.pinned.get(place)
        if found is None:
            size = int(np.prod(shape, dtype=np.int64)) * np.dtype(dtype).itemsize
            found = Pinned(self.device, size).bytes.view(dtype).reshape(shape)
            self.pinned[place] = found
        return found

    # Steps --------------------------------------------------------------------------------------

    def begin(
        self, sources: Sequence[int], results: Sequence[DeviceArray], leaving: Sequence[DeviceArray]
    ) -> None:
        """Begin the copies of inputs, all steps, and the copies of what leaves the device."""
        table = []
        for number, source in enumerate(sources):
            value = self.inputs.get(number)
            if value is None or source not in (PINNED, FILLED):
                table.append(source)
                continue
            table.append(value.address)
            if source == PINNED and value.nbytes:
                self.device.copy_in(value.address, self.pinned[number])
        table += [value.address for value in results]
        table += self.tail
        raises = self.program.module.raises
        if raises:
            self.device.clear(self.report.address, self.report.nbytes)
        for step in self.steps:
            self.take(step, table)
        if raises:
            self.device.copy_out(self.staged("report", (WORDS,), np.int64), self.report.address)
        for value in leaving:
            if 0 < value.nbytes < STAGED:
                place = self.staged(("out", value.address), value.shape, value.dtype)
                self.device.copy_out(place, value.address)

    def bound(self, steps: Iterable[Step], origin: int) -> Iterator[Bare]:
        """Steps under the lengths; what has nothing to do is left out."""
        for step in steps:
            if isinstance(step, Launch):
                if step.grid.blocks(self.lengths):
                    yield self.begun(step, origin)
            elif isinstance(step, Rounds):
                yield from self.rounds(step, origin)
            elif isinstance(step, Choice):
                holds = all(evaluate(size, self.lengths) >= 0 for size in step.holds)
                yield from self.bound(step.steps if holds else step.others, origin)
            elif isinstance(step, Multiply):
                yield Multiplying(self.multiplication(step), step, origin)
            elif isinstance(step, Show) or evaluate(step.size, self.lengths):
                yield step

    def begun(self, launch: Launch, origin: int, *further: int) -> Begun:
        """A launch with the words that are known."""
        words = [self.word(a) for a in launch.arguments]
        at = [(k, a) for k, a in enumerate(launch.arguments) if isinstance(a, int)]
        kernel = self.program.loaded[launch.kernel]
        blocks = launch.grid.blocks(self.lengths)
        return Begun(kernel, blocks, launch.threads, [*words, *further], tuple(at), origin)

    def word(self, argument: Argument) -> int:
        """The word of an argument that is known, else 0."""
        if isinstance(argument, Parts):
            return argument.number(self.lengths)
        return self.lengths[argument] if isinstance(argument, str) else 0

    def rounds(self, step: Rounds, origin: int) -> Iterator[Begun]:
        """Launches of doubled widths, then the last one."""
        if not step.last[0].grid.blocks(self.lengths):
            return
        width, turn = step.first, 0
        while width < evaluate(step.until, self.lengths):
            yield self.begun(step.launches[turn], origin, width)
            width, turn = 2 * width, 1 - turn
        yield self.begun(step.last[turn], origin)

    def multiplication(self, step: Multiply) -> Multiplication:
        """A product under the lengths, without addresses."""
        product, lengths = step.product, self.lengths
        return Multiplication(
            left=0,
            right=0,
            out=0,
            bias=0,
            works=evaluate(step.after, lengths),
            size=WORKSPACE,
            batch=evaluate(product.batch, lengths),
            rows=evaluate(product.rows, lengths),
            columns=evaluate(product.columns, lengths),
            deep=evaluate(product.deep, lengths),
            left_strides=product.left_strides.under(lengths),
            right_strides=product.right_strides.under(lengths),
            out_strides=product.out_strides.under(lengths),
            dtype=product.dtype,
            result=product.result,
        )

    def take(self, step: Bare, table: Sequence[int]) -> None:
        """Begin a step."""
        if isinstance(step, (Begun, Multiplying)):
            try:
                self.launch(step, table)
                if debugging("launches"):
                    self.device.synchronise()
            except DeviceError as error:
                error.kernel = step.origin
                raise
        elif isinstance(step, Copy):
            size = evaluate(step.size, self.lengths)
            self.device.copy(table[step.target], table[step.source], size)
        else:
            self.show(step, table)

    def launch(self, step: Begun | Multiplying, table: Sequence[int]) -> None:
        """Begin a kernel, or a product by a library."""
        if isinstance(step, Begun):
            words = step.words.copy()
            for at, number in step.pointers:
                words[at] = table[number]
            self.device.launch(step.kernel, step.blocks, step.threads, words)
            return
        put, made = step.step, step.made
        self.device.multiply(
            made._replace(
                left=table[put.left],
                right=table[put.right],
                out=table[put.works if put.product.apart else put.out],
                bias=0 if put.bias is None else table[put.bias],
                works=table[put.works] + made.works,
            )
        )

    def show(self, step: Show, table: Sequence[int]) -> None:
        """Print a value, unless a kernel has failed."""
        if self.program.module.raises:
            report = self.memory.copy_out(self.report)
            self.device.synchronise()
            self.look(report)
        shape = tuple(evaluate(n, self.lengths) for n in step.lengths)
        found = np.empty(shape, step.dtype)
        if found.size:
            self.device.copy_out(found, table[step.pointer])
        self.device.synchronise()
        print(f"{step.label} = {found}")

    # Errors -------------------------------------------------------------------------------------

    def blamed(self, error: DeviceError) -> DeviceError:
        """An error of the device while kernels ran, with the number of the only one there is."""
        origins = {step.origin for step in self.steps if isinstance(step, (Begun, Multiplying))}
        if error.lost and error.kernel is None and len(origins) == 1:
            (error.kernel,) = origins
        return error

    def look(self, report: Array) -> None:
        """Raise what a kernel has reported."""
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


class Run:
    """A call that a bound program has begun: ``finish`` waits for it, once."""

    def __init__(
        self,
        bound: Bound,
        inputs: Sequence[Any],
        results: Sequence[DeviceArray],
        leaving: Sequence[DeviceArray],
    ) -> None:
        self.bound, self.inputs = bound, inputs  # the memory of others among them is read
        self.results, self.leaving = results, leaving
        self.mark: Any = None

    def done(self) -> bool:
        """Whether it has ended; does not wait."""
        return self.bound.device.passed(self.mark)

    def finish(self) -> tuple[Any, ...]:
        """The results; raises what a kernel reported, and ``DeviceError`` where one failed."""
        bound, device = self.bound, self.bound.device
        try:
            device.wait(self.mark)
        except DeviceError as error:
            raise bound.blamed(error) from None
        if bound.program.module.raises:
            bound.look(bound.pinned["report"])
        if not self.leaving:
            return tuple(self.results)
        found = []
        for value in self.leaving:
            if 0 < value.nbytes < STAGED:
                found.append(bound.pinned["out", value.address].copy())
            else:
                found.append(bound.memory.copy_out(value))
        if any(value.nbytes >= STAGED for value in self.leaving):
            device.synchronise()
        return tuple(found)


assert REPORT == -1, "the last pointer of a table"
