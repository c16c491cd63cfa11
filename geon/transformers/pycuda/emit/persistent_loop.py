"""A loop with a small body, or small branches, as one kernel: a block that goes through all turns.

The kernels of its body are parts of it, run one after another by the threads of one block, which
meet after each. So there is one launch in place of one for each kernel in each turn, and nobody
waits for a condition. A launch takes about as long as some few blocks of small kernels do. Branches
that are not taken are passed by.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from ....op_graph.axes.affine import Size
from ...kernels.ir.nest import ENDLESS
from ...printing.nests.parameters import Parameter, Parameters
from ..kernels.cooperative_threads import WARP, Lines
from ..launches.launch_ir import (
    CLOCKED,
    CLOCKS,
    LAUNCHED,
    REPORT,
    ROUND,
    RUNS,
    TICKS,
    Argument,
    Branches,
    Carry,
    Choice,
    Copy,
    Fixed,
    Grid,
    Launch,
    Round,
    Stack,
    Step,
    Timed,
    Turn,
    Turns,
    Until,
    kernels_in,
)
from ..launches.naming import Function, declaration, indented

FEW = 4  # blocks of a kernel that one block may do one after another
THREADS = 256
SHARED = 48 << 10  # bytes of shared memory that the parts of a kernel may have together
COPIED = 1 << 14  # bytes that a block copies
LONGEST = 1 << 20  # turns of a loop with a condition that nobody interrupts


class NotWhole(Exception):
    """A loop that is not one kernel."""


def whole_loop(
    step: Turns | Until | Branches,
    functions: Mapping[str, Function],
    part_of: Callable[[str], str],
    row: int | None = None,
) -> tuple[Function, tuple[Size, ...]] | None:
    """The kernel of a loop, or of branches, and sizes of which none is negative where it is small.

    None where it never is, or only the host can do something in it. ``functions`` has the body's
    kernels by name, and ``part_of`` gives for such a name that of the function which is its part.
    Where the loop is timed, it has the ``row`` of a profile.
    """
    branching = isinstance(step, Branches)
    if branching and len(list(kernels_in([step]))) == 1:
        return None  # which would be a launch too
    fits = _Fits(functions, branching)
    try:
        fits.loop(step)
    except NotWhole:
        return None
    return _Writer(functions, part_of).function(step, row), tuple(fits.holds)


def is_long(step: Until) -> bool:
    """Whether a loop has so many turns that several launches share them."""
    return step.limit is None or step.limit > LONGEST


class _Fits:
    """Finds under which lengths a loop is small enough; raises ``NotWhole`` where it never is.

    Of what is ``once``, a kernel whose threads meet has one block: several would take longer one
    after another than they save of launches.
    """

    def __init__(self, functions: Mapping[str, Function], once: bool) -> None:
        self.functions, self.once = functions, once
        self.holds: dict[Size, None] = {}
        self.shared: dict[str, int] = {}

    def loop(self, step: Turns | Until | Branches) -> None:
        """Look at all that a loop does, or what branches do."""
        if isinstance(step, Branches):
            self.steps([step])
        else:
            self.turns(step)
        if sum(self.shared.values()) > SHARED:
            raise NotWhole

    def turns(self, step: Turns | Until) -> None:
        """Look at all that a loop does."""
        if isinstance(step, Until) and is_long(step) and step.stacks:
            raise NotWhole
        self.steps(step.steps)
        if isinstance(step, Until):
            self.steps(step.test)
        for carry in step.carries:
            self.need(COPIED - carry.size)

    def steps(self, steps: Iterable[Step]) -> None:
        """Look at some steps."""
        for step in steps:
            if isinstance(step, Launch):
                self.launch(step)
            elif isinstance(step, Copy):
                self.need(COPIED - step.size)
            elif isinstance(step, Choice) and is_loop_by_size(step):
                for size in step.holds:
                    self.need(size)
                self.steps(step.steps)
            elif isinstance(step, Choice):
                self.steps(step.steps)
                self.steps(step.others)
            elif isinstance(step, Branches):
                for branch in step.steps:
                    self.steps(branch)
            elif isinstance(step, Timed):
                self.steps(step.steps)
            else:
                raise NotWhole

    def launch(self, launch: Launch) -> None:
        """Look at a kernel: its blocks, its threads and their memory."""
        function, grid = self.functions.get(launch.kernel), launch.grid
        if function is None or not isinstance(grid, Grid) or function.shared is None:
            raise NotWhole
        if function.threads not in ((WARP, THREADS) if function.meets else range(1, THREADS + 1)):
            raise NotWhole
        self.shared[launch.kernel] = function.shared
        few = 1 if self.once and function.meets else FEW
        if grid.most > few:
            self.need(few * grid.each - grid.units)
        if grid.parts is not None:
            self.need(grid.parts.least - grid.parts.count)

    def need(self, size: Size) -> None:
        """Let a size be no less than 0."""
        if not isinstance(size, int):
            self.holds[size] = None
        elif size < 0:
            raise NotWhole


def is_loop_by_size(step: Choice) -> bool:
    """Whether it chooses between a loop, or branches, as one kernel and the same in several."""
    return any(isinstance(each, Turns | Until | Branches) for each in step.others)


class _Writer:
    """Writes the kernel of a loop. ``local`` are the texts of pointers that a loop in it makes."""

    def __init__(self, functions: Mapping[str, Function], part_of: Callable[[str], str]) -> None:
        self.functions, self.part_of = functions, part_of
        self.sizes = Parameters(lambda op: ("none", None), (), ())
        self.pointers: dict[int, Parameter] = {}
        self.numbers: dict[Argument, Parameter] = {}
        self.named: dict[int, str] = {}
        self.files: dict[str, None] = {"loops.cuh": None}
        self.shared: dict[str, int] = {}
        self.loops = 0
        self.turn = ""  # the text of the turn, counted through all loops around
        self.turns = False  # whether anything has asked for it

    def function(self, step: Turns | Until | Branches, row: int | None) -> Function:
        """The kernel."""
        body = self.branches(step) if isinstance(step, Branches) else self.loop(step)
        if row is not None:
            body = self.timed(row, body, LAUNCHED)  # the host counts launches
        parameters = [
            *self.pointers.values(), *self.numbers.values(), *self.sizes.of_lengths
        ]  # fmt: skip
        declared = ", ".join([declaration(p, False) for p in parameters])
        text = "\n".join(["{", *indented(body), "}", ""])
        return Function(
            declared, text, tuple(parameters), Grid(1), THREADS, True, tuple(self.sizes.called),
            tuple(self.files), shared=sum(self.shared.values()),
        )  # fmt: skip

    # Texts --------------------------------------------------------------------------------------

    def pointer(self, number: int) -> str:
        """The text of a pointer, of ``char *``."""
        if number in self.named:
            return self.named[number]
        if number not in self.pointers:
            place = ("number", (len(self.pointers), number))
            self.pointers[number] = Parameter(f"p{len(self.pointers)}", "char", place)
        return self.pointers[number].name

    def number(self, argument: Argument) -> str:
        """The text of a number that the host finds for the launch."""
        if argument not in self.numbers:
            name = f"m{len(self.numbers)}"
            self.numbers[argument] = Parameter(name, "int64_t", argument, False)
        return self.numbers[argument].name

    def size(self, size: Size) -> str:
        """The text of a size, as a factor."""
        text = self.sizes.length(size)
        return text if text.isalnum() else f"({text})"

    def argument(self, argument: Argument, parameter: Parameter) -> str:
        """The text of what a part is given."""
        if isinstance(argument, int):
            return f"({parameter.ctype} *){self.pointer(argument)}"
        if isinstance(argument, Turn):
            self.turns = True
            return self.turn or self.number(argument)
        if isinstance(argument, Fixed):
            return str(argument.value)
        if isinstance(argument, str):
            self.sizes.lengths.setdefault(argument, f"n{len(self.sizes.lengths)}")
            return self.sizes.lengths[argument]
        return self.number(argument)

    # Steps --------------------------------------------------------------------------------------

    def steps(self, steps: Iterable[Step]) -> Lines:
        """The statements of some steps; all threads meet after each."""
        found: Lines = []
        for step in steps:
            if isinstance(step, Launch):
                found += self.launch(step)
            elif isinstance(step, Copy):
                found.append(self.copy(step.target, step.source, step.size))
            elif isinstance(step, Timed):
                clocks, place = self.pointer(CLOCKS), CLOCKED * step.number + RUNS
                runs = " && ".join(self.taken(step.chosen)) or "true"
                found.append(f"geon_note_run({clocks}, {place}, {runs});")
                found += self.timed(step.number, self.steps(step.steps), TICKS)
            elif isinstance(step, Branches):
                found += self.branches(step)
            else:
                assert isinstance(step, Choice)
                found += self.choice(step)
        return found

    def timed(self, row: int, lines: Lines, what: int) -> Lines:
        """Statements whose time is added to one of those of a row of a profile."""
        clocks, place = self.pointer(CLOCKS), CLOCKED * row + what
        return [
            "{",
            "    const long long begun = clock64();",
            *indented(lines),
            f"    geon_note_time({clocks}, {place}, begun);",
            "}",
        ]

    def taken(self, chosen: Sequence[tuple[int, int]]) -> Lines:
        """The texts of the conditions that branches are chosen."""
        return [
            f"*(const int64_t *){self.pointer(number)} == {branch}" for number, branch in chosen
        ]

    def choice(self, step: Choice) -> Lines:
        """The steps of one of two sides; a loop in this one is small wherever this one is."""
        if is_loop_by_size(step):
            return self.steps(step.steps)
        holds = " && ".join([f"{self.sizes.length(size)} >= 0" for size in step.holds])
        found = [f"if ({holds}) {{", *indented(self.steps(step.steps)), "}"]
        others = self.steps(step.others)
        return [*found[:-1], "} else {", *indented(others), "}"] if others else found

    def branches(self, step: Branches) -> Lines:
        """The steps of the branch that is taken, which is the same for all threads."""
        found = ["{", f"    const int64_t branch = *(const int64_t *){self.pointer(step.index)};"]
        for number, branch in enumerate(step.steps):
            lines = self.steps(branch)
            if lines:
                head = f"if (branch == {number}) {{"
                found += indented([head, *indented(lines), "}"])
        return [*found, "}"]

    def copy(self, target: int, source: int, size: Size) -> str:
        """The statement that copies."""
        to, of = self.pointer(target), self.pointer(source)
        return f"geon_copy_bytes({to}, {of}, {self.sizes.length(size)});"

    def launch(self, launch: Launch) -> Lines:
        """A kernel, whose blocks are done one after another."""
        function = self.functions[launch.kernel]
        self.files |= dict.fromkeys(function.files)
        self.sizes.calls(function.calls)
        self.shared[launch.kernel] = function.shared or 0
        given = [
            self.argument(argument, parameter)
            for argument, parameter in zip(launch.arguments, function.parameters, strict=True)
        ]
        assert isinstance(launch.grid, Grid)
        known = isinstance(launch.grid.units, int) and launch.grid.parts is None
        blocks = str(launch.grid.blocks({})) if known else self.number(launch.grid)
        one = blocks == "1"
        own = [
            *given,
            *(["{0}", "{1}"] if one else ["{(unsigned)block}", f"{{(unsigned){blocks}}}"]),
        ]
        lines = [f"{self.part_of(launch.kernel)}({', '.join(own)});"]
        if function.threads < THREADS:
            lines = [f"if (threadIdx.x < {function.threads})", *indented(lines)]
        if one:
            return [*lines, "__syncthreads();"]
        head = f"for (int64_t block = 0; block < {blocks}; block++) {{"
        if function.meets:
            return [head, *indented([*lines, "__syncthreads();"]), "}"]
        return [head, *indented(lines), "}", "__syncthreads();"]

    # Loops --------------------------------------------------------------------------------------

    def loop(self, step: Turns | Until) -> Lines:
        """All turns of a loop, where its branch was chosen."""
        n = self.loops
        self.loops += 1
        lines = self.counted(step, n) if isinstance(step, Turns) else self.until(step, n)
        if not step.chosen:
            return lines
        return [f"if ({' && '.join(self.taken(step.chosen))}) {{", *indented(lines), "}"]

    def counted(self, step: Turns, n: int) -> Lines:
        """As many turns as a length says, or an int64 in memory."""
        count, most = f"count{n}", self.size(step.count)
        if step.given is None:
            before = [f"const int64_t {count} = {most};"]
        else:
            given = f"*(const int64_t *){self.pointer(step.given)}"
            before = [
                f"const int64_t given{n} = {given} < {most} ? {given} : {most};",
                f"const int64_t {count} = given{n} < 0 ? 0 : given{n};",
            ]
        before += self.begun(step.carries, n, "")
        part = f"{count} - 1 - turn{n}" if step.reverse else f"turn{n}"
        writes = f"({count} - turn{n}) % 2 ? {{last}} : {{other}}"
        steps = self.turn_of(step.steps, step, n, writes, most)
        inner = [f"const int64_t part{n} = {part};", *steps]
        end = [
            f"if ({count} == 0) {self.copy(carry.last, carry.first, carry.size)}"
            for carry in step.carries
            if carry.stays
        ]
        if step.given is not None:
            end += self.unreached(step.stacks, count, most)
        head = f"for (int64_t turn{n} = 0; turn{n} < {count}; turn{n}++) {{"
        return [*before, head, *indented(inner), "}", *end]

    def until(self, step: Until, n: int) -> Lines:
        """Turns while a bool in memory is true, which is found before each."""
        first, limit = "0", str(step.limit)
        before: Lines = []
        if is_long(step):
            first = self.number(Round())
            end_of = f"{first} + {ROUND}"
            if step.limit is not None:
                end_of = f"{end_of} < {limit} ? {end_of} : {limit}"
            before, limit = [f"const int64_t limit{n} = {end_of};"], f"limit{n}"
        before += self.begun(step.carries, n, first if is_long(step) else "")
        most = f"{step.limit or ENDLESS}LL"
        writes = f"read{n}_{{k}} == {{last}} ? {{other}} : {{last}}"
        test = self.within(n, most, lambda: self.steps(step.test))
        steps = self.turn_of(step.steps, step, n, writes, most)
        ends = f"!*(const uint8_t *){self.pointer(step.truth)}"
        if REPORT in self.pointers:
            ends += f" || *(const int64_t *){self.pointer(REPORT)}"
        inner = [
            f"const int64_t part{n} = turn{n};", *test,
            f"const _Bool ends{n} = {ends};", "__syncthreads();", f"if (ends{n}) break;", *steps,
        ]  # fmt: skip
        end: Lines = []
        for k, carry in enumerate(step.carries):
            if carry.stays or is_long(step):
                to, size = self.pointer(carry.last), self.sizes.length(carry.size)
                copy = f"geon_copy_bytes({to}, read{n}_{k}, {size});"
                end.append(f"if (read{n}_{k} != {to}) {copy}")
        if step.limit is not None:
            end += self.unreached(step.stacks, f"turn{n}", str(step.limit))
        begun = f"int64_t turn{n} = {first};"
        head = f"for (; turn{n} < {limit}; turn{n}++) {{"
        return [*before, begun, head, *indented(inner), "}", *end]

    def begun(self, carries: Sequence[Carry], n: int, done: str) -> Lines:
        """Where carries are read first; where some turns are ``done`` already, where they lie."""
        found = []
        for k, carry in enumerate(carries):
            first = self.pointer(carry.first)
            if done:
                first = f"{done} == 0 ? {first} : {self.pointer(carry.last)}"
            found.append(f"char *read{n}_{k} = {first};")
        for k, carry in enumerate(carries):
            self.named[carry.reads] = f"read{n}_{k}"
        return found

    def turn_of(
        self, steps: Sequence[Step], loop: Turns | Until, n: int, writes: str, most: str
    ) -> Lines:
        """One turn: where its parts of stacks and its carries lie, and its steps."""
        found = []
        for k, stack in enumerate(loop.stacks):
            start = f"{self.pointer(stack.pointer)} + part{n} * {self.size(stack.stride)}"
            found.append(f"char *const part{n}_{k} = {start};")
            self.named[stack.inside] = f"part{n}_{k}"
        for k, carry in enumerate(loop.carries):
            last, other = self.pointer(carry.last), self.pointer(carry.other)
            found.append(
                f"char *const write{n}_{k} = {writes.format(k=k, last=last, other=other)};"
            )
            self.named[carry.writes] = f"write{n}_{k}"
        inner = self.within(n, most, lambda: self.steps(steps))
        on = [f"read{n}_{k} = write{n}_{k};" for k in range(len(loop.carries))]
        return [*found, *inner, *on]

    def within(self, n: int, most: str, write: Callable[[], Lines]) -> Lines:
        """Statements of a turn, after the number that it has among those of all loops, if any asks
        for it."""
        around, asked = self.turn, self.turns
        self.turn, self.turns = f"at{n}", False
        lines = write()
        self.turn, used = around, self.turns
        self.turns = used or asked
        if not used:
            return lines
        before = around or self.number(Turn())
        return [
            "{",
            f"    const int64_t at{n} = {before} * {most} + part{n};",
            *indented(lines),
            "}",
        ]

    def unreached(self, stacks: Sequence[Stack], count: str, most: str) -> Lines:
        """The statements that clear the parts behind those of all turns."""
        found = []
        for stack in stacks:
            if stack.written:
                start, stride = self.pointer(stack.pointer), self.size(stack.stride)
                where = f"{start} + {count} * {stride}, ({most} - {count}) * {stride}"
                found.append(f"if ({count} < {most}) geon_clear_bytes({where});")
        return found
