"""A program on a device as data: launches, copies and what is shown, in order.

How many blocks a launch has follows from lengths alone, so that results have the same bits on
every device.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ....op_graph.axes.affine import Size
from ....op_graph.axes.lengths import evaluate
from .library_requests import Ask, Names, asked

MOST = (1 << 31) - 1  # blocks of a launch
REPORT = -1  # the number of the pointer to the report
CLOCKS = -2  # and of that to the clocks of what a launch does inside, where that is timed
TICKS, RUNS, LAUNCHED, CLOCKED = range(4)  # what a row has there, and how much

WANTED = 512  # blocks that fill a device
LEAST = 256  # turns of a loop that are worth a part of their own
ROUND = 1 << 14  # turns of a loop with a condition that one launch takes, where there may be more


@dataclass(frozen=True, slots=True)
class Parts:
    """How many parts ``count`` turns are cut into where there are so many ``blocks`` of them: as
    many as make ``wanted`` blocks, which fill a device, of ``least`` turns at least.
    """

    count: Size
    blocks: Size
    wanted: int = WANTED
    least: int = LEAST

    def number(self, lengths: Mapping[str, int]) -> int:
        """The number of parts, from lengths alone."""
        blocks = max(evaluate(self.blocks, lengths), 1)
        return max(min(-(-evaluate(self.count, lengths) // self.least), self.wanted // blocks), 1)


@dataclass(frozen=True, slots=True)
class Grid:
    """A block for every ``each`` of ``units``, and no more than ``most`` blocks.

    Where work is cut into ``parts``, there are as many for each of them.
    """

    units: Size
    each: int = 1
    most: int = MOST
    parts: Parts | None = None

    def blocks(self, lengths: Mapping[str, int]) -> int:
        """How many blocks there are; none where there are no units."""
        found = min(-(-evaluate(self.units, lengths) // self.each), self.most)
        return found if self.parts is None else found * self.parts.number(lengths)


@dataclass(frozen=True, slots=True)
class Grids:
    """The blocks of several launches that are one."""

    grids: tuple[Grid, ...]

    def blocks(self, lengths: Mapping[str, int]) -> int:
        """How many blocks there are together."""
        return sum(grid.blocks(lengths) for grid in self.grids)


@dataclass(frozen=True, slots=True)
class Fixed:
    """A number that is the same for all lengths, and another one in another launch."""

    value: int


@dataclass(frozen=True, slots=True)
class Turn:
    """The turn of the loops around a launch, counted through their nest."""


@dataclass(frozen=True, slots=True)
class Round:
    """How many turns of a loop were taken by the launches before, where one does not take all."""


# The number of a pointer in the program's table, the name of an open length, or a number.
Argument = int | str | Parts | Fixed | Grid | Turn | Round


@dataclass(frozen=True, slots=True)
class Launch:
    """A kernel run by ``threads`` threads in each block; ``arguments`` are pointers and lengths."""

    kernel: str
    grid: Grid | Grids
    threads: int
    arguments: tuple[Argument, ...]


@dataclass(frozen=True, slots=True)
class Copy:
    """``size`` bytes copied from one pointer to another, from so many bytes behind each on."""

    target: int
    source: int
    size: Size
    target_at: int = 0
    source_at: int = 0


@dataclass(frozen=True, slots=True)
class Show:
    """A value that is printed under a label, by kernel ``number``."""

    number: int
    label: str
    pointer: int
    lengths: tuple[Size, ...]
    dtype: Any


@dataclass(frozen=True, slots=True)
class Choice:
    """Steps that are taken where none of the sizes in ``holds`` is negative, else others."""

    holds: tuple[Size, ...]
    steps: tuple[Step, ...]
    others: tuple[Step, ...]


@dataclass(frozen=True, slots=True)
class Stack:
    """The part of each turn of what lies at ``pointer``, ``stride`` bytes from part to part; steps
    know it by the number ``inside``, and write it where it is ``written``."""

    inside: int
    pointer: int
    stride: Size
    written: bool = False


@dataclass(frozen=True, slots=True)
class Carry:
    """What goes from turn to turn: read at the number ``reads``, written at ``writes``.

    It lies at ``first`` before all turns; the last one puts it at ``last``, the one before at
    ``other``. ``size`` bytes are copied where there is no turn, and it ``stays``.
    """

    reads: int
    writes: int
    first: int
    last: int
    other: int
    size: Size
    stays: bool


@dataclass(frozen=True, slots=True)
class Turns:
    """Steps that are taken ``count`` times, from the last part of stacks on where ``reverse``.

    ``origins`` has the number of each step's kernel in the plan. Where ``given`` is the number of a
    pointer, an int64 there says how many of the turns are taken, of the branches ``chosen`` alone:
    pairs of the pointer of an index and of what it must be.
    """

    count: Size
    reverse: bool
    stacks: tuple[Stack, ...]
    carries: tuple[Carry, ...]
    steps: tuple[Step, ...]
    origins: tuple[int, ...]
    given: int | None = None
    chosen: tuple[tuple[int, int], ...] = ()


@dataclass(frozen=True, slots=True)
class Until:
    """Turns that end where the bool at ``truth``, which the steps ``test`` put there, is false.

    There are no more than ``limit``, if that is given. Carries go to and fro between ``last`` and
    ``other``; those that stay are at ``last`` in the end. Else as ``Turns``. Where the launch
    ``whole`` takes ``ROUND`` turns, or those that are left, it is repeated while the bool is true.
    """

    limit: int | None
    stacks: tuple[Stack, ...]
    carries: tuple[Carry, ...]
    truth: int
    test: tuple[Step, ...]
    test_origins: tuple[int, ...]
    steps: tuple[Step, ...]
    origins: tuple[int, ...]
    chosen: tuple[tuple[int, int], ...] = ()
    whole: Launch | None = None


@dataclass(frozen=True, slots=True)
class Branches:
    """The steps of branches, of which that is taken whose number the int64 at ``index`` is.

    ``origins`` has the numbers of their kernels in the plan. Each kernel looks at the index itself,
    so that all can be launched.
    """

    index: int
    steps: tuple[tuple[Step, ...], ...]
    origins: tuple[tuple[int, ...], ...]


@dataclass(frozen=True, slots=True)
class Timed:
    """The steps of what has the row ``number`` of a profile.

    It is done in the branches ``chosen`` alone: pairs of the pointer of an index and of what it
    must be. Of branches, ``index`` is the pointer of theirs.
    """

    number: int
    steps: tuple[Step, ...]
    chosen: tuple[tuple[int, int], ...] = ()
    index: int | None = None


Step = Launch | Copy | Show | Choice | Ask | Turns | Until | Branches | Timed


def kernels_in(steps: Iterable[Step]) -> Iterator[str]:
    """The kernels that steps launch, those of loops and of choices too."""
    for step in steps:
        if isinstance(step, Launch):
            yield step.kernel
        elif isinstance(step, Choice):
            yield from kernels_in((*step.steps, *step.others))
        elif isinstance(step, Turns):
            yield from kernels_in(step.steps)
        elif isinstance(step, Branches):
            for branch in step.steps:
                yield from kernels_in(branch)
        elif isinstance(step, Timed):
            yield from kernels_in(step.steps)
        elif isinstance(step, Until) and step.whole is not None:
            yield step.whole.kernel
        elif isinstance(step, Until):
            yield from kernels_in((*step.test, *step.steps))


# As text ------------------------------------------------------------------------------------------


def described(steps: Sequence[Step], names: Names, indent: str = "") -> list[str]:
    """Steps as lines for people; ``names`` are those of pointers."""
    found: list[str] = []
    for step in steps:
        if isinstance(step, Launch):
            found.append(indent + launched(step, names))
        elif isinstance(step, Copy):
            found.append(f"{indent}{names[step.target]} = {names[step.source]}")
        elif isinstance(step, Show):
            found.append(f"{indent}print {names[step.pointer]}")
        elif isinstance(step, Ask):
            found.append(f"{indent}{asked(step, names)}, by a library")
        elif isinstance(step, Until) and step.whole is not None:
            found.append(f"{indent}while {names[step.truth]}:")
            found += described([step.whole], names, f"{indent}    ")
        elif isinstance(step, Until):
            most = "" if step.limit is None else f", {step.limit} turns at most"
            inner = turning(step, names)
            found.append(f"{indent}while {names[step.truth]}{most}, which is found by:")
            found += described(step.test, inner, f"{indent}    ")
            found.append(f"{indent}do:")
            found += described(step.steps, inner, f"{indent}    ")
        elif isinstance(step, Turns):
            way = ", backwards" if step.reverse else ""
            count = "" if step.given is None else f", as many as {names[step.given]} says"
            found.append(f"{indent}for {step.count} turns{way}{count}:")
            found += described(step.steps, turning(step, names), f"{indent}    ")
        elif isinstance(step, Branches):
            for number, branch in enumerate(step.steps):
                found.append(f"{indent}where {names[step.index]} is {number}:")
                found += described(branch, names, f"{indent}    ")
        elif isinstance(step, Timed):
            found += described(step.steps, names, indent)
        else:
            holds = " and ".join([f"{size} >= 0" for size in step.holds])
            found.append(f"{indent}where {holds}:")
            found += described(step.steps, names, f"{indent}    ")
            found.append(f"{indent}else:")
            found += described(step.others, names, f"{indent}    ")
    return found


def turning(step: Turns | Until, names: Names) -> dict[int, str]:
    """The names of pointers inside of turns."""
    found = dict(enumerate(names)) if not isinstance(names, dict) else dict(names)
    found[-1] = found.get(-1, "the report")
    for k, stack in enumerate(step.stacks):
        found[stack.inside] = f"part {k} of {found[stack.pointer]}"
    for carry in step.carries:
        found[carry.reads] = f"carry from {found[carry.first]}"
        found[carry.writes] = f"carry to {found[carry.last]}"
    return found


def launched(launch: Launch, names: Names) -> str:
    """A launch as CUDA writes it."""
    grids = launch.grid.grids if isinstance(launch.grid, Grids) else (launch.grid,)
    blocks = " + ".join(map(shown_blocks, grids))
    arguments = [shown_argument(a, names) for a in launch.arguments]
    return f"{launch.kernel}<<<{blocks}, {launch.threads}>>>({', '.join(arguments)})"


def shown_blocks(grid: Grid) -> str:
    """The number of blocks for people."""
    blocks = str(grid.units)
    if grid.each > 1:
        blocks = f"ceil(({blocks}) / {grid.each})"
    if grid.most < MOST:
        blocks = f"min({blocks}, {grid.most})"
    return blocks if grid.parts is None else f"{blocks} * parts"


def shown_argument(argument: Argument, names: Names) -> str:
    """An argument for people."""
    if isinstance(argument, Parts):
        return f"parts of {argument.count}"
    if isinstance(argument, Grid):
        return shown_blocks(argument)
    if isinstance(argument, Fixed):
        return f"{argument.value}"
    if isinstance(argument, Turn):
        return "turn"
    if isinstance(argument, Round):
        return "turns before"
    return argument if isinstance(argument, str) else names[argument]
