"""Launch IR: a CUDA program as a sequence of launches, copies, loops and prints.

The number of blocks of a launch depends on lengths alone, so results have the same bits on every
device.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Generic, NamedTuple

from ....lazy_dataclasses import dataclass
from ....op_graph.axes.affine import Size
from ....op_graph.axes.lengths import Length, evaluate
from .library_requests import Ask, Names, Pointer, describe_request

MAX_GRID_BLOCKS = (1 << 31) - 1  # max. blocks of a launch
REPORT_POINTER = -1  # pointer index of the error report
CLOCKS_POINTER = -2  # pointer index of the clocks of work inside a launch, in a timed program
# offsets in a row of these clocks, and its length in int64 words
TICKS, RUNS, LAUNCHED, CLOCKED = range(4)

THREADS_PER_BLOCK = 256  # threads of a block of all generated kernels
MIN_PART_TURNS = 256  # min. iterations per part of a split loop
TURNS_PER_LAUNCH = 1 << 14  # iterations per launch of a while loop that takes several launches


class DeviceSize(NamedTuple):
    """A GPU: its multiprocessors, and the threads, registers and bytes that one of them has.

    ``shared_bytes`` is the static shared memory that a block may have.
    """

    processors: int
    threads: int
    registers: int
    shared_bytes: int

    def full_blocks(self, registers: int) -> int:
        """Return how many blocks fill the device, if each thread has this many registers."""
        by_registers = self.registers // (registers * THREADS_PER_BLOCK)
        return self.processors * min(self.threads // THREADS_PER_BLOCK, by_registers)


# Grids are made for this device, whichever runs them, so that results have the same bits. An H100
# and an H200 have 132 processors.
NOMINAL_DEVICE = DeviceSize(processors=128, threads=2048, registers=1 << 16, shared_bytes=48 << 10)
FULL_DEVICE_BLOCKS = NOMINAL_DEVICE.full_blocks(registers=64)


@dataclass(frozen=True, slots=True)
class Parts:
    """Split of ``count`` iterations of ``blocks`` blocks into parts.

    There are as many parts as give ``wanted`` blocks in total, with at least ``least`` iterations
    each.
    """

    count: Size
    blocks: Size
    wanted: int = FULL_DEVICE_BLOCKS
    least: int = MIN_PART_TURNS

    @property
    def is_open(self) -> bool:
        """Return True if the number of parts depends on open lengths."""
        return isinstance(self.count, Length) or isinstance(self.blocks, Length)

    @property
    def several(self) -> tuple[Size, ...]:
        """Return sizes that are all >= 0 if there are at least two parts, without known ones."""
        sizes = self.count - self.least - 1, self.wanted // 2 - self.blocks
        return tuple([size for size in sizes if not isinstance(size, int) or size < 0])

    @property
    def is_whole(self) -> bool:
        """Return True if there is one part whatever the open lengths are."""
        return any(isinstance(size, int) for size in self.several)

    def __str__(self) -> str:
        return f"parts({self.count}, {self.blocks})"

    def number(self, lengths: Mapping[str, int]) -> int:
        """Return the number of parts; it depends on lengths alone."""
        blocks = max(evaluate(self.blocks, lengths), 1)
        return max(min(-(-evaluate(self.count, lengths) // self.least), self.wanted // blocks), 1)


@dataclass(frozen=True, slots=True)
class Grid:
    """A grid: one block per ``each`` units, at most ``most``, times the number of ``parts``."""

    units: Size
    each: int = 1
    most: int = MAX_GRID_BLOCKS
    parts: Parts | None = None

    def blocks(self, lengths: Mapping[str, int]) -> int:
        """Return the number of blocks; 0 if there are no units."""
        found = min(-(-evaluate(self.units, lengths) // self.each), self.most)
        return found if self.parts is None else found * self.parts.number(lengths)


@dataclass(frozen=True, slots=True)
class Grids:
    """The grids of several launches joined into one."""

    grids: tuple[Grid, ...]

    def blocks(self, lengths: Mapping[str, int]) -> int:
        """Return the total number of blocks."""
        return sum(grid.blocks(lengths) for grid in self.grids)


@dataclass(frozen=True, slots=True)
class FixedNumber:
    """An integer argument that differs between launches of a kernel, but not by lengths."""

    value: int


@dataclass(frozen=True, slots=True)
class Turn:
    """The iteration number of the loops around a launch, counted over all of them."""


@dataclass(frozen=True, slots=True)
class Round:
    """The number of iterations that earlier launches of a while loop have done."""


# A pointer index, the name of an open length, or a number that the host evaluates.
Argument = int | str | Parts | FixedNumber | Grid | Turn | Round


@dataclass(frozen=True, slots=True)
class Launch:
    """A launch with ``threads`` threads per block; ``arguments`` are pointers and lengths.

    ``origin`` is the plan number of the kernel that it computes, of several the first.
    """

    kernel: str
    grid: Grid | Grids
    threads: int
    arguments: tuple[Argument, ...]
    origin: int


@dataclass(frozen=True, slots=True)
class Copy(Generic[Pointer]):
    """A copy of ``size`` bytes between two pointers."""

    target: Pointer
    source: Pointer
    size: Size


@dataclass(frozen=True, slots=True)
class Show:
    """A print of a value under a label."""

    label: str
    pointer: int
    lengths: tuple[Size, ...]
    dtype: Any


@dataclass(frozen=True, slots=True)
class LaunchVariants:
    """A choice: ``steps`` if all sizes in ``holds`` are >= 0, else ``others``."""

    holds: tuple[Size, ...]
    steps: tuple[Any, ...]
    others: tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class Stack:
    """A stacked value at ``pointer``, of which each iteration uses one slice.

    ``stride`` is the bytes from slice to slice. Steps of the body name the slice by the pointer
    index ``inside``. ``written`` is True for results.
    """

    inside: int
    pointer: int
    stride: Size
    written: bool = False


@dataclass(frozen=True, slots=True)
class Carry:
    """A loop carry, which steps read at pointer index ``reads`` and write at ``writes``.

    Its initial value is at ``first``. The last iteration writes to ``last``, the one before to
    ``other``. ``size`` is in bytes. If ``stays``, the carry is a result: without iterations, the
    initial value is copied to ``last``.
    """

    reads: int
    writes: int
    first: int
    last: int
    other: int
    size: Size
    stays: bool


@dataclass(frozen=True, slots=True)
class Condition:
    """The condition of a while loop: the bool at ``truth``, which ``steps`` compute."""

    truth: int
    steps: tuple[Step, ...]


@dataclass(frozen=True, slots=True)
class DeviceLoop:
    """A loop of ``most`` iterations; if ``reverse``, from the last slice of stacks to the first.

    With a ``condition``, it ends before the iteration in which that is false, and ``most`` is None
    for a loop without a limit. If ``given`` is not None, the int64 at that pointer is the number of
    iterations, at most ``most``. The loop runs only if all ``chosen`` hold: pairs (pointer of a
    case's index, branch).

    Carries alternate between ``last`` and ``other``; results among them end up at ``last``. If
    ``whole`` is not None, that launch does up to ``TURNS_PER_LAUNCH`` iterations and is repeated
    while the condition holds.
    """

    most: Size | None
    reverse: bool
    stacks: tuple[Stack, ...]
    carries: tuple[Carry, ...]
    steps: tuple[Step, ...]
    given: int | None = None
    condition: Condition | None = None
    chosen: tuple[tuple[int, int], ...] = ()
    whole: Launch | None = None

    @property
    def is_open(self) -> bool:
        """Return True if the number of iterations is known only on the device."""
        return self.given is not None or self.condition is not None

    @property
    def all_steps(self) -> tuple[Step, ...]:
        """Return the steps of the condition and of an iteration."""
        return self.steps if self.condition is None else (*self.condition.steps, *self.steps)


@dataclass(frozen=True, slots=True)
class Branches:
    """A case: the int64 at ``index`` selects which of ``steps`` takes effect.

    All branches are launched; each kernel tests the index itself.
    """

    index: int
    steps: tuple[tuple[Step, ...], ...]


@dataclass(frozen=True, slots=True)
class Timed:
    """Steps whose time is added to row ``number`` of a profile.

    They run only if all ``chosen`` hold: pairs (pointer of a case's index, branch). For a case,
    ``index`` is the pointer of its own index.
    """

    number: int
    steps: tuple[Step, ...]
    chosen: tuple[tuple[int, int], ...] = ()
    index: int | None = None


Step = Launch | Copy[int] | Show | LaunchVariants | Ask[int] | DeviceLoop | Branches | Timed


def kernels_in(steps: Iterable[Step]) -> Iterator[str]:
    """Yield the names of the kernels that steps launch, including those in loops and choices."""
    for step in steps:
        if isinstance(step, Launch):
            yield step.kernel
        elif isinstance(step, LaunchVariants):
            yield from kernels_in((*step.steps, *step.others))
        elif isinstance(step, Branches):
            for branch in step.steps:
                yield from kernels_in(branch)
        elif isinstance(step, Timed):
            yield from kernels_in(step.steps)
        elif isinstance(step, DeviceLoop) and step.whole is not None:
            yield step.whole.kernel
        elif isinstance(step, DeviceLoop):
            yield from kernels_in(step.all_steps)


# Text
# -----------------------------------------------------------------------------------------------


def describe_steps(steps: Sequence[Step], names: Names, indent: str = "") -> list[str]:
    """Return lines of text that describe steps; ``names`` are the names of pointers."""
    found: list[str] = []
    for step in steps:
        if isinstance(step, Launch):
            found.append(indent + launch_text(step, names))
        elif isinstance(step, Copy):
            found.append(f"{indent}{names[step.target]} = {names[step.source]}")
        elif isinstance(step, Show):
            found.append(f"{indent}print {names[step.pointer]}")
        elif isinstance(step, Ask):
            found.append(f"{indent}{describe_request(step, names)}, by a library")
        elif isinstance(step, DeviceLoop):
            found += describe_loop(step, names, indent)
        elif isinstance(step, Branches):
            for number, branch in enumerate(step.steps):
                found.append(f"{indent}where {names[step.index]} is {number}:")
                found += describe_steps(branch, names, f"{indent}    ")
        elif isinstance(step, Timed):
            found += describe_steps(step.steps, names, indent)
        else:
            holds = " and ".join([f"{size} >= 0" for size in step.holds])
            found.append(f"{indent}where {holds}:")
            found += describe_steps(step.steps, names, f"{indent}    ")
            found.append(f"{indent}else:")
            found += describe_steps(step.others, names, f"{indent}    ")
    return found


def describe_loop(loop: DeviceLoop, names: Names, indent: str) -> list[str]:
    """Return lines of text that describe a loop."""
    further, condition = f"{indent}    ", loop.condition
    if loop.whole is not None:
        assert condition is not None, "only loops that end by themselves take several launches"
        launches = describe_steps([loop.whole], names, further)
        return [f"{indent}while {names[condition.truth]}:", *launches]
    inner = turning(loop, names)
    body = describe_steps(loop.steps, inner, further)
    if condition is None:
        way = ", backwards" if loop.reverse else ""
        count = "" if loop.given is None else f", as many as {names[loop.given]} says"
        return [f"{indent}for {loop.most} turns{way}{count}:", *body]
    most = "" if loop.most is None else f", {loop.most} turns at most"
    head = f"{indent}while {names[condition.truth]}{most}, which is found by:"
    return [head, *describe_steps(condition.steps, inner, further), f"{indent}do:", *body]


def turning(step: DeviceLoop, names: Names) -> dict[int, str]:
    """Return the names of pointers inside a loop."""
    found = dict(enumerate(names)) if not isinstance(names, dict) else dict(names)
    found[-1] = found.get(-1, "the report")
    for k, stack in enumerate(step.stacks):
        found[stack.inside] = f"part {k} of {found[stack.pointer]}"
    for carry in step.carries:
        found[carry.reads] = f"carry from {found[carry.first]}"
        found[carry.writes] = f"carry to {found[carry.last]}"
    return found


def launch_text(launch: Launch, names: Names) -> str:
    """Return a launch in CUDA's notation."""
    grids = launch.grid.grids if isinstance(launch.grid, Grids) else (launch.grid,)
    blocks = " + ".join(map(shown_blocks, grids))
    arguments = [shown_argument(a, names) for a in launch.arguments]
    return f"{launch.kernel}<<<{blocks}, {launch.threads}>>>({', '.join(arguments)})"


def shown_blocks(grid: Grid) -> str:
    """Return the text of the number of blocks."""
    blocks = str(grid.units)
    if grid.each > 1:
        blocks = f"ceil(({blocks}) / {grid.each})"
    if grid.most < MAX_GRID_BLOCKS:
        blocks = f"min({blocks}, {grid.most})"
    return blocks if grid.parts is None else f"{blocks} * parts"


def shown_argument(argument: Argument, names: Names) -> str:
    """Return the text of an argument."""
    if isinstance(argument, Parts):
        return f"parts of {argument.count}"
    if isinstance(argument, Grid):
        return shown_blocks(argument)
    if isinstance(argument, FixedNumber):
        return f"{argument.value}"
    if isinstance(argument, Turn):
        return "turn"
    if isinstance(argument, Round):
        return "turns before"
    return argument if isinstance(argument, str) else names[argument]
