"""The steps of a program under given lengths: launches with numbers of blocks, and words.

What has nothing to do is left out; pointers are put in when a call begins. Kernels that need
nothing of each other are in lanes, which run side by side where that pays: lanes of their own have
those that leave a part of the device idle.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any, NamedTuple

import numpy as np

from ....op_graph.axes.affine import Size
from ....op_graph.axes.lengths import evaluate
from ...kernels.ir.nest import ENDLESS
from ..emit.cuda_module import Module
from ..launches.device import LibraryCall
from ..launches.launch_ir import (
    ROUND,
    Argument,
    Branches,
    Choice,
    Copy,
    Fixed,
    Grid,
    Launch,
    Parts,
    Round,
    Show,
    Stack,
    Step,
    Timed,
    Turn,
    Turns,
    Until,
)
from ..launches.library_requests import Ask
from ..products.library_dispatch import WORKSPACE

FILLING = 256  # blocks that leave nothing of a device idle
LANES = 8  # beside those that fill it
LOOKED = 1 << 10  # steps of a loop after which the host looks whether the call is to go on


class Begun(NamedTuple):
    """A launch for given lengths: arguments that are known, and the numbers of those that are not.

    ``pointers`` has for some of the ``words`` the number of the pointer that is added to them;
    ``origin`` is the number of the kernel in the plan.
    """

    kernel: Any
    blocks: int
    threads: int
    words: list[int]
    pointers: tuple[tuple[int, int], ...]
    origin: int


class Calling(NamedTuple):
    """A call of a library for given lengths, whose addresses ``step`` says; ``origin`` is its
    kernel.
    """

    made: LibraryCall
    step: Ask
    origin: int


class Clear(NamedTuple):
    """Bytes that are set to zero: ``size`` of them, so many bytes behind a pointer."""

    target: int
    target_at: int
    size: int


class Waiting(NamedTuple):
    """A loop of which only a call shows how many turns it takes, of the kernel ``origin``.

    ``inside`` says of numbers that stand for others which these are where it begins, ``turn`` which
    turn of the loops around it that is.
    """

    loop: Turns | Until
    inside: Mapping[int, tuple[int, int]]
    origin: int
    turn: int


class Edge(NamedTuple):
    """Where what is timed begins or ends. Indices lie so many bytes behind pointers of the table:
    those of ``chosen`` branches, and that of what has branches.
    """

    number: int
    begins: bool
    chosen: tuple[tuple[tuple[int, int], int], ...]
    number_at: tuple[int, int] | None


# What is left of a step under given lengths.
Bare = Begun | Calling | Copy | Show | Clear | Waiting | Edge
# What lies at a pointer, so many bytes behind it, of a dtype, once all that was begun is done.
Read = Callable[[int, int, type], int]
Lanes = list[list[Bare]]
Takes = Callable[[LibraryCall], bool]  # whether a library computes it


class Wave(NamedTuple):
    """Lanes that may run at one time, which begin when the wave before is done.

    Where it ``may_end`` the call, no variable is written before its end, nor at its end.
    """

    lanes: Lanes
    may_end: bool


def bare_waves(
    module: Module, loaded: Mapping[str, Any], lengths: Mapping[str, int], takes: Takes
) -> list[Wave]:
    """What is left of the steps of a module, whose kernels are ``loaded``, in order.

    What no library ``takes`` are generated kernels. Of a loop with many steps, waves
    have some each.
    """
    made = _Bare(loaded, lengths, takes)
    steps = zip(module.waves, module.origins, module.steps, strict=True)
    found: list[Wave] = []
    for number, wave in groupby(steps, lambda each: each[0]):
        chains = [
            [bare for _, origin, step in chain for bare in made.bare([step], origin)]
            for _, chain in groupby(wave, lambda each: each[1])
        ]
        lanes = lanes_of([chain for chain in chains if chain])
        if len(lanes) == 1 and number < module.written:
            (lane,) = lanes
            parts = [lane[k : k + LOOKED] for k in range(0, len(lane), LOOKED)]
            found += [Wave([part], part is not parts[-1]) for part in parts]
        elif lanes:
            found.append(Wave(lanes, False))
    return found


def lanes_of(chains: Lanes) -> Lanes:
    """Chains of steps in lanes: those that fill the device by themselves share one."""
    large = [step for chain in chains if fills(chain) for step in chain]
    small = [chain for chain in chains if not fills(chain)]
    lanes = [[step for chain in small[k::LANES] for step in chain] for k in range(LANES)]
    return [lane for lane in (large, *lanes) if lane]


def fills(chain: Sequence[Bare]) -> bool:
    """Whether one of some steps has work for the whole device, or is nothing to be moved."""
    return any(
        step.blocks >= FILLING if isinstance(step, Begun) else not isinstance(step, (Copy, Clear))
        for step in chain
    )


def turns_of(
    waiting: Waiting, loaded: Mapping[str, Any], lengths: Mapping[str, int], read: Read
) -> Iterator[Bare]:
    """The steps of a loop, turn after turn: each is to be begun before the next is asked for."""
    made = _Bare(loaded, lengths)
    made.inside, made.turn = dict(waiting.inside), waiting.turn
    loop = waiting.loop
    if any(read(*made.at(index), np.int64) != branch for index, branch in loop.chosen):
        return
    if isinstance(loop, Until) and loop.whole is not None:
        yield from made.rounds(loop, loop.whole, waiting.origin, read)
        return
    if isinstance(loop, Until):
        yield from made.until(loop, read)
        return
    assert loop.given is not None
    most = evaluate(loop.count, lengths)
    count = min(max(read(*made.at(loop.given), np.int64), 0), most)
    yield from made.turns(loop, count)
    yield from made.unreached(loop.stacks, count, most)


class _Bare:
    """What is left of steps; in turns, ``inside`` says which pointer a number is, and how many
    bytes behind it."""

    def __init__(
        self, loaded: Mapping[str, Any], lengths: Mapping[str, int], takes: Takes | None = None
    ) -> None:
        self.loaded, self.lengths, self.takes = loaded, lengths, takes
        self.inside: dict[int, tuple[int, int]] = {}
        self.turn = self.round = 0

    def at(self, pointer: int) -> tuple[int, int]:
        """The number of a pointer in the program's table, and how many bytes behind it."""
        return self.inside.get(pointer, (pointer, 0))

    def bare(self, steps: Iterable[Step], origin: int) -> Iterator[Bare]:
        """Steps under the lengths; what has nothing to do is left out."""
        for step in steps:
            if isinstance(step, Launch):
                if step.grid.blocks(self.lengths):
                    yield self.begun(step, origin)
            elif isinstance(step, Choice):
                holds = all(evaluate(size, self.lengths) >= 0 for size in step.holds)
                holds = holds and all(map(self.can, step.steps))
                yield from self.bare(step.steps if holds else step.others, origin)
            elif isinstance(step, Until) or (isinstance(step, Turns) and step.given is not None):
                yield Waiting(step, dict(self.inside), origin, self.turn)
            elif isinstance(step, Turns):
                yield from self.turns(step, evaluate(step.count, self.lengths))
            elif isinstance(step, Ask):
                made = self.asked(step)
                assert made is not None, "such a choice is not taken"
                yield Calling(made, step, origin)
            elif isinstance(step, Show):
                yield step
            elif isinstance(step, Branches):
                for branch, origins in zip(step.steps, step.origins, strict=True):
                    yield from self.each(branch, origins)
            elif isinstance(step, Timed):
                edge = self.edge(step)
                yield edge
                yield from self.bare(step.steps, origin)
                yield edge._replace(begins=False)
            elif evaluate(step.size, self.lengths):
                yield self.copy(step.target, step.source, step.size)

    def edge(self, step: Timed) -> Edge:
        """Where a step begins that is timed."""
        chosen = tuple([(self.at(index), branch) for index, branch in step.chosen])
        index = None if step.index is None else self.at(step.index)
        return Edge(step.number, True, chosen, index)

    def copy(self, target: int, source: int, size: Size) -> Copy:
        """A copy between two of the program's pointers."""
        (to, to_at), (of, of_at) = self.at(target), self.at(source)
        return Copy(to, of, size, to_at, of_at)

    def turns(self, loop: Turns, count: int) -> Iterator[Bare]:
        """The steps of so many turns, one turn after another."""
        most, before = evaluate(loop.count, self.lengths), self.turn
        for carry in loop.carries:
            self.inside[carry.reads] = self.at(carry.first)
        for turn in range(count):
            part = count - 1 - turn if loop.reverse else turn
            self.turn = before * most + part
            self.parts_of(loop.stacks, part)
            for carry in loop.carries:
                there = carry.last if (count - turn) % 2 else carry.other
                self.inside[carry.writes] = self.at(there)
            yield from self.each(loop.steps, loop.origins)
            for carry in loop.carries:
                self.inside[carry.reads] = self.inside[carry.writes]
        self.turn = before
        for carry in loop.carries:
            if carry.stays and not count and evaluate(carry.size, self.lengths):
                yield self.copy(carry.last, carry.first, carry.size)

    def until(self, loop: Until, read: Read) -> Iterator[Bare]:
        """The steps of turns until the condition is false."""
        for carry in loop.carries:
            self.inside[carry.reads] = self.at(carry.first)
        turn, before = 0, self.turn
        while loop.limit is None or turn < loop.limit:
            self.turn = before * (loop.limit or ENDLESS) + turn
            yield from self.each(loop.test, loop.test_origins)
            if not read(*self.at(loop.truth), np.bool_):
                break
            self.parts_of(loop.stacks, turn)
            for carry in loop.carries:
                self.inside[carry.writes] = self.at(carry.other if turn % 2 else carry.last)
            yield from self.each(loop.steps, loop.origins)
            for carry in loop.carries:
                self.inside[carry.reads] = self.inside[carry.writes]
            turn += 1
        self.turn = before
        for carry in loop.carries:
            moved = carry.stays and self.inside[carry.reads] != self.at(carry.last)
            if moved and evaluate(carry.size, self.lengths):
                yield self.copy(carry.last, carry.reads, carry.size)
        if loop.limit is not None:
            yield from self.unreached(loop.stacks, turn, loop.limit)

    def rounds(self, loop: Until, whole: Launch, origin: int, read: Read) -> Iterator[Bare]:
        """Launches that take some turns each, until one has found the condition false."""
        while loop.limit is None or self.round < loop.limit:
            yield self.begun(whole, origin)
            if not read(*self.at(loop.truth), np.bool_):
                return
            self.round += ROUND

    def each(self, steps: Iterable[Step], origins: Iterable[int]) -> Iterator[Bare]:
        """Steps of the kernels ``origins``."""
        for step, origin in zip(steps, origins, strict=True):
            yield from self.bare([step], origin)

    def parts_of(self, stacks: Iterable[Stack], part: int) -> None:
        """Let steps find the part of this number of each stack."""
        for stack in stacks:
            number, start = self.at(stack.pointer)
            self.inside[stack.inside] = number, start + part * evaluate(stack.stride, self.lengths)

    def unreached(self, stacks: Iterable[Stack], turns: int, most: int) -> Iterator[Bare]:
        """What clears the parts behind those of all turns."""
        for stack in stacks:
            stride = evaluate(stack.stride, self.lengths)
            number, start = self.at(stack.pointer)
            if stack.written and turns < most and stride:
                yield Clear(number, start + turns * stride, (most - turns) * stride)

    def begun(self, launch: Launch, origin: int) -> Begun:
        """A launch with the words that are known."""
        words = [self.word(a) for a in launch.arguments]
        at = [(k, self.at(a)[0]) for k, a in enumerate(launch.arguments) if isinstance(a, int)]
        kernel = self.loaded[launch.kernel]
        blocks = launch.grid.blocks(self.lengths)
        return Begun(kernel, blocks, launch.threads, words, tuple(at), origin)

    def word(self, argument: Argument) -> int:
        """The word of an argument that is known, else 0."""
        if isinstance(argument, Parts):
            return argument.number(self.lengths)
        if isinstance(argument, Grid):
            return argument.blocks(self.lengths)
        if isinstance(argument, Fixed):
            return argument.value
        if isinstance(argument, Turn):
            return self.turn
        if isinstance(argument, Round):
            return self.round
        return self.lengths[argument] if isinstance(argument, str) else self.at(argument)[1]

    def asked(self, step: Ask) -> LibraryCall | None:
        """What a library is asked for under the lengths; None where it cannot be said."""
        return step.work.under(self.lengths, evaluate(step.after, self.lengths), WORKSPACE)

    def can(self, step: Step) -> bool:
        """Whether a step can be taken: it is no library's, or asks for what one takes."""
        if not isinstance(step, Ask):
            return True
        made = self.asked(step)
        return made is not None and self.takes is not None and self.takes(made)
