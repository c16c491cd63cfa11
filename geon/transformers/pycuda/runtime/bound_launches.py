"""Resolve a module's steps for given lengths: grids, kernel arguments and concurrent lanes.

Empty steps are removed; addresses are filled in per call. Independent kernels run in concurrent
lanes if they leave a part of the device idle.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import groupby, zip_longest
from typing import Any, NamedTuple

import numpy as np

from ....op_graph.axes.affine import Size
from ....op_graph.axes.lengths import evaluate
from ...kernels.ir.nest import UNLIMITED_TURNS
from ..emit.cuda_module import CudaModule
from ..launches.device import Device
from ..launches.launch_ir import (
    NOMINAL_DEVICE,
    TURNS_PER_LAUNCH,
    Argument,
    Branches,
    DeviceLoop,
    FixedNumber,
    Grid,
    Launch,
    LaunchVariants,
    Parts,
    Round,
    Show,
    Stack,
    Step,
    Timed,
    Turn,
)
from ..launches.library_requests import Ask, LibraryCall

MIN_FULL_BLOCKS = NOMINAL_DEVICE.full_blocks(registers=128)  # min. blocks that fill the device
MAX_SMALL_LANES = 8  # lanes, in addition to that of kernels that fill the device
STEPS_PER_STOP_CHECK = 1 << 10  # steps of a loop between two tests for interruption by the host


Located = tuple[int, int]  # pointer index in the table of a call, and byte offset


def address_of(table: Sequence[int], located: Located) -> int:
    """Return the address of a located value in a call with this table of pointers."""
    return table[located[0]] + located[1]


class Begun(NamedTuple):
    """A launch for given lengths.

    ``words`` are the arguments. ``pointers`` lists (position in ``words``, pointer index) of the
    addresses to be added. ``origin`` is the kernel's number in the plan.
    """

    kernel: Any
    blocks: int
    threads: int
    words: list[int]
    pointers: tuple[tuple[int, int], ...]
    origin: int

    def submit(self, device: Device, table: Sequence[int]) -> None:
        """Submit the launch; ``table`` has the addresses of pointers."""
        words = self.words.copy()
        for at, number in self.pointers:
            words[at] += table[number]
        device.launch(self.kernel, self.blocks, self.threads, words)


class Calling(NamedTuple):
    """A library call for given lengths, of the kernel ``origin``.

    ``values`` and ``works`` are the (pointer index, byte offset) of its operands, None for one that
    is absent, and of its workspace.
    """

    call: LibraryCall
    values: tuple[Located | None, ...]
    works: Located
    origin: int

    def submit(self, device: Device, table: Sequence[int]) -> None:
        """Submit the call; ``table`` has the addresses of pointers."""
        values = [0 if each is None else address_of(table, each) for each in self.values]
        device.call(self.call, values, address_of(table, self.works))


class ByteCopy(NamedTuple):
    """A copy of ``size`` bytes."""

    target: Located
    source: Located
    size: int

    def submit(self, device: Device, table: Sequence[int]) -> None:
        """Submit the copy; ``table`` has the addresses of pointers."""
        device.copy(address_of(table, self.target), address_of(table, self.source), self.size)


class Clear(NamedTuple):
    """Zeroing of ``size`` bytes."""

    target: Located
    size: int

    def submit(self, device: Device, table: Sequence[int]) -> None:
        """Submit the zeroing; ``table`` has the addresses of pointers."""
        device.clear(address_of(table, self.target), self.size)


class Waiting(NamedTuple):
    """A loop whose number of iterations is known only during the call.

    ``inside`` maps virtual pointer indices to (pointer index, byte offset) at its start. ``turn``
    is the iteration number of the enclosing loops.
    """

    loop: DeviceLoop
    inside: Mapping[int, Located]
    turn: int


class Edge(NamedTuple):
    """The start or end of a timed step.

    ``chosen`` has ((pointer index, byte offset) of a case's index, branch) for each enclosing
    branch. ``number_at`` is the same pair for the index of a case, None for other steps.
    """

    number: int
    begins: bool
    chosen: tuple[tuple[Located, int], ...]
    number_at: Located | None


# A step under given lengths.
Bare = Begun | Calling | ByteCopy | Clear | Show | Waiting | Edge
# Wait for submitted work, then read a number of a dtype.
Read = Callable[[Located, type], int]
Lanes = list[list[Bare]]
Takes = Callable[[LibraryCall], bool]  # True if a library supports the call


class Wave(NamedTuple):
    """Lanes that may run concurrently, after the previous wave.

    If ``may_end``, the call may be interrupted after it: no variable was written until then.
    """

    lanes: Lanes
    may_end: bool


def bare_waves(
    module: CudaModule, loaded: Mapping[str, Any], lengths: Mapping[str, int], takes: Takes
) -> list[Wave]:
    """Return the waves of a module, whose kernels are ``loaded``, for given lengths.

    Requests that no library ``takes`` use generated kernels. A loop with many steps is divided into
    several waves.
    """
    made = _Bare(loaded, lengths, takes)
    steps = zip(module.waves, module.origins, module.steps, strict=True)
    found: list[Wave] = []
    for number, wave in groupby(steps, lambda each: each[0]):
        chains = [
            [*made.bare([step for _, _, step in chain])]
            for _, chain in groupby(wave, lambda each: each[1])
        ]
        lanes = lanes_of([chain for chain in chains if chain])
        if len(lanes) == 1 and number < module.written:
            (lane,) = lanes
            parts = [
                lane[k : k + STEPS_PER_STOP_CHECK]
                for k in range(0, len(lane), STEPS_PER_STOP_CHECK)
            ]
            found += [Wave([part], part is not parts[-1]) for part in parts]
        elif lanes:
            found.append(Wave(lanes, False))
    return found


def lanes_of(chains: Lanes) -> Lanes:
    """Assign chains of steps to lanes; chains that fill the device share one lane."""
    large = [step for chain in chains if fills(chain) for step in chain]
    small = [chain for chain in chains if not fills(chain)]
    lanes = [
        [step for chain in small[k::MAX_SMALL_LANES] for step in chain]
        for k in range(MAX_SMALL_LANES)
    ]
    return [lane for lane in (large, *lanes) if lane]


def fills(chain: Sequence[Bare]) -> bool:
    """Return True if a step of a chain fills the device, or is neither a launch nor a copy."""
    return any(
        step.blocks >= MIN_FULL_BLOCKS
        if isinstance(step, Begun)
        else not isinstance(step, (ByteCopy, Clear))
        for step in chain
    )


def turns_of(
    waiting: Waiting, loaded: Mapping[str, Any], lengths: Mapping[str, int], read: Read
) -> Iterator[Bare]:
    """Yield the steps of a loop; each must be submitted before the next one is requested."""
    made = _Bare(loaded, lengths)
    made.inside, made.turn = dict(waiting.inside), waiting.turn
    loop = waiting.loop
    if any(read(made.at(index), np.int64) != branch for index, branch in loop.chosen):
        return
    if loop.whole is None:
        yield from made.iterations(loop, read)
    else:
        yield from made.rounds(loop, loop.whole, read)


class _Bare:
    """Resolver of steps; ``inside`` maps virtual pointers to (pointer index, byte offset)."""

    def __init__(
        self, loaded: Mapping[str, Any], lengths: Mapping[str, int], takes: Takes | None = None
    ) -> None:
        self.loaded, self.lengths, self.takes = loaded, lengths, takes
        self.inside: dict[int, Located] = {}
        self.turn = self.round = 0

    def at(self, pointer: int) -> Located:
        """Return where a pointer points."""
        return self.inside.get(pointer, (pointer, 0))

    def bare(self, steps: Iterable[Step]) -> Iterator[Bare]:
        """Yield steps for given lengths, without empty ones."""
        for step in steps:
            if isinstance(step, Launch):
                if step.grid.blocks(self.lengths):
                    yield self.begun(step)
            elif isinstance(step, LaunchVariants):
                holds = all(evaluate(size, self.lengths) >= 0 for size in step.holds)
                holds = holds and all(map(self.can, step.steps))
                yield from self.bare(step.steps if holds else step.others)
            elif isinstance(step, DeviceLoop) and step.is_open:
                yield Waiting(step, dict(self.inside), self.turn)
            elif isinstance(step, DeviceLoop):
                yield from self.iterations(step, None)
            elif isinstance(step, Ask):
                yield self.calling(step)
            elif isinstance(step, Show):
                yield step
            elif isinstance(step, Branches):
                for branch in step.steps:
                    yield from self.bare(branch)
            elif isinstance(step, Timed):
                edge = self.edge(step)
                yield edge
                yield from self.bare(step.steps)
                yield edge._replace(begins=False)
            else:
                yield from self.copies(step.target, step.source, step.size)

    def edge(self, step: Timed) -> Edge:
        """Return the start of a timed step."""
        chosen = tuple([(self.at(index), branch) for index, branch in step.chosen])
        index = None if step.index is None else self.at(step.index)
        return Edge(step.number, True, chosen, index)

    def copies(self, target: int, source: int, size: Size) -> Iterator[ByteCopy]:
        """Yield the copy between two pointers, unless it is empty."""
        count = evaluate(size, self.lengths)
        if count:
            yield ByteCopy(self.at(target), self.at(source), count)

    def iterations(self, loop: DeviceLoop, read: Read | None) -> Iterator[Bare]:
        """Yield the steps of a loop's iterations; ``read`` is needed if the loop is open.

        Each step of an open loop must be submitted before the next one is requested.
        """
        most = None if loop.most is None else evaluate(loop.most, self.lengths)
        count, before, turn = most, self.turn, 0
        if loop.given is not None:
            assert read is not None and most is not None
            count = min(max(read(self.at(loop.given), np.int64), 0), most)
        for carry in loop.carries:
            self.inside[carry.reads] = self.at(carry.first)
        while count is None or turn < count:
            part = turn if count is None or not loop.reverse else count - 1 - turn
            self.turn = before * (most or UNLIMITED_TURNS) + part
            if loop.condition is not None:
                assert read is not None
                yield from self.bare(loop.condition.steps)
                if not read(self.at(loop.condition.truth), np.bool_):
                    break
            self.parts_of(loop.stacks, part)
            # A count that is known lets the last iteration write to ``last``.
            left = 1 - turn if loop.condition is not None or count is None else count - turn
            for carry in loop.carries:
                self.inside[carry.writes] = self.at(carry.last if left % 2 else carry.other)
            yield from self.bare(loop.steps)
            for carry in loop.carries:
                self.inside[carry.reads] = self.inside[carry.writes]
            turn += 1
        self.turn = before
        for carry in loop.carries:
            if carry.stays and self.inside[carry.reads] != self.at(carry.last):
                yield from self.copies(carry.last, carry.reads, carry.size)
        if most is not None:
            yield from self.unreached(loop.stacks, turn, most)

    def rounds(self, loop: DeviceLoop, whole: Launch, read: Read) -> Iterator[Bare]:
        """Yield launches of some iterations each, until the condition is false."""
        assert loop.condition is not None
        most = None if loop.most is None else evaluate(loop.most, self.lengths)
        while most is None or self.round < most:
            yield self.begun(whole)
            if not read(self.at(loop.condition.truth), np.bool_):
                return
            self.round += TURNS_PER_LAUNCH

    def parts_of(self, stacks: Iterable[Stack], part: int) -> None:
        """Map the pointers of slices of stacks to those of iteration ``part``."""
        for stack in stacks:
            number, start = self.at(stack.pointer)
            self.inside[stack.inside] = number, start + part * evaluate(stack.stride, self.lengths)

    def unreached(self, stacks: Iterable[Stack], turns: int, most: int) -> Iterator[Bare]:
        """Yield the clears of stacked results after the last iteration."""
        for stack in stacks:
            stride = evaluate(stack.stride, self.lengths)
            number, start = self.at(stack.pointer)
            if stack.written and turns < most and stride:
                yield Clear((number, start + turns * stride), (most - turns) * stride)

    def begun(self, launch: Launch) -> Begun:
        """Return a launch with the known argument words."""
        words = [self.word(a) for a in launch.arguments]
        at = [(k, self.at(a)[0]) for k, a in enumerate(launch.arguments) if isinstance(a, int)]
        kernel = self.loaded[launch.kernel]
        blocks = launch.grid.blocks(self.lengths)
        return Begun(kernel, blocks, launch.threads, words, tuple(at), launch.origin)

    def word(self, argument: Argument) -> int:
        """Return the word of a known argument; for a pointer, its byte offset."""
        if isinstance(argument, Parts):
            return argument.number(self.lengths)
        if isinstance(argument, Grid):
            return argument.blocks(self.lengths)
        if isinstance(argument, FixedNumber):
            return argument.value
        if isinstance(argument, Turn):
            return self.turn
        if isinstance(argument, Round):
            return self.round
        return self.lengths[argument] if isinstance(argument, str) else self.at(argument)[1]

    def calling(self, step: Ask[int]) -> Calling:
        """Return the library call of a request; the library prepares it when lengths are bound."""
        call = step.work.under(self.lengths)
        assert call is not None, "such a choice is not taken"
        if self.takes is not None:
            self.takes(call)
        values = [
            None if pointer is None else self.behind(pointer, offset)
            for pointer, offset in zip_longest(step.values, step.offsets, fillvalue=0)
        ]
        return Calling(call, tuple(values), self.behind(step.works, step.after), step.origin)

    def behind(self, pointer: int, offset: Size) -> Located:
        """Return where the bytes ``offset`` behind a pointer are."""
        number, start = self.at(pointer)
        return number, start + evaluate(offset, self.lengths)

    def can(self, step: Step) -> bool:
        """Return True unless a step is a library request that no library takes."""
        if not isinstance(step, Ask):
            return True
        call = step.work.under(self.lengths)
        return call is not None and self.takes is not None and self.takes(call)
