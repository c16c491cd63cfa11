"""Persistent-block kernels: a small loop or case as one launch of one thread block.

The body's kernels become device functions that the block runs one after another, with a barrier
after each. This replaces one launch per kernel and iteration, and the host does not wait for the
loop's condition. A launch takes about as long as a few blocks of small kernels. Branches that are
not taken are skipped.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial

from ....op_graph.axes.affine import Size
from ...kernels.ir.nest import UNLIMITED_TURNS
from ...printing.nests.loop_lines import indent
from ...printing.nests.parameters import Parameter, Parameters
from ..kernels.cooperative_threads import Lines
from ..launches.launch_ir import (
    CLOCKED,
    CLOCKS_POINTER,
    LAUNCHED,
    REPORT_POINTER,
    RUNS,
    THREADS_PER_BLOCK,
    TICKS,
    TURNS_PER_LAUNCH,
    Argument,
    Branches,
    Carry,
    Condition,
    Copy,
    DeviceLoop,
    FixedNumber,
    Grid,
    Launch,
    LaunchVariants,
    Round,
    Stack,
    Step,
    Timed,
    Turn,
)
from ..launches.naming import CudaFunction

UNLIMITED = f"{UNLIMITED_TURNS}LL"  # C text of the maximum of a loop without a limit


def loop_function(
    step: DeviceLoop | Branches,
    repeated: bool,
    functions: Mapping[str, CudaFunction],
    part_of: Callable[[str], str],
    row: int | None = None,
) -> CudaFunction:
    """Return the kernel of a loop or case; if ``repeated``, of a part of a loop's iterations.

    ``functions`` has the body's kernels by name; ``part_of`` returns the name of the device
    function of such a kernel. ``row`` is the index of the loop's profile row, None if it is not
    timed.
    """
    return _LoopKernelWriter(repeated, functions, part_of).function(step, row)


def is_loop_by_size(step: LaunchVariants) -> bool:
    """Return True if ``step`` chooses between one kernel and several for a loop or case."""
    return any(isinstance(each, DeviceLoop | Branches) for each in step.others)


class _LoopKernelWriter:
    """Writer of a loop's kernel. ``named`` has the C names of pointers that loops define."""

    def __init__(
        self,
        repeated: bool,
        functions: Mapping[str, CudaFunction],
        part_of: Callable[[str], str],
    ) -> None:
        self.repeated, self.functions, self.part_of = repeated, functions, part_of
        self.sizes = Parameters(lambda op: ("none", None), (), ())
        self.pointers: dict[int, Parameter] = {}
        self.numbers: dict[Argument, Parameter] = {}
        self.named: dict[int, str] = {}
        self.files: dict[str, None] = {"loops.cuh": None}
        self.loops = 0
        self.turn = ""  # C text of the iteration number, counted over all enclosing loops
        self.turns = False  # True once a statement uses ``turn``

    def function(self, step: DeviceLoop | Branches, row: int | None) -> CudaFunction:
        """Return the kernel function of a loop or case."""
        body = self.branches(step) if isinstance(step, Branches) else self.loop(step)
        if row is not None:
            body = self.timed(row, body, LAUNCHED)  # the host counts launches
        parameters = [
            *self.pointers.values(), *self.numbers.values(), *self.sizes.of_lengths
        ]  # fmt: skip
        text = "\n".join(["{", *indent(body), "}", ""])
        return CudaFunction(
            text, tuple(parameters), Grid(1), THREADS_PER_BLOCK, True,
            tuple(self.sizes.called),
            tuple(self.files),
        )  # fmt: skip

    # Texts --------------------------------------------------------------------------------------

    def pointer(self, number: int) -> str:
        """Return the C text of a ``char *`` pointer, adding a parameter at its first use."""
        if number in self.named:
            return self.named[number]
        if number not in self.pointers:
            place = ("number", (len(self.pointers), number))
            self.pointers[number] = Parameter(f"p{len(self.pointers)}", "char", place)
        return self.pointers[number].name

    def number(self, argument: Argument) -> str:
        """Return the name of an integer parameter that the host evaluates at launch."""
        if argument not in self.numbers:
            name = f"m{len(self.numbers)}"
            self.numbers[argument] = Parameter(name, "int64_t", argument, False)
        return self.numbers[argument].name

    def size(self, size: Size) -> str:
        """Return the C text of a size, in parentheses unless it is one token."""
        text = self.sizes.length(size)
        return text if text.isalnum() else f"({text})"

    def argument(self, argument: Argument, parameter: Parameter) -> str:
        """Return the C text of an argument of a device function."""
        if isinstance(argument, int):
            return f"({parameter.ctype} *){self.pointer(argument)}"
        if isinstance(argument, Turn):
            self.turns = True
            return self.turn or self.number(argument)
        if isinstance(argument, FixedNumber):
            return str(argument.value)
        if isinstance(argument, str):
            self.sizes.lengths.setdefault(argument, f"n{len(self.sizes.lengths)}")
            return self.sizes.lengths[argument]
        return self.number(argument)

    # Steps --------------------------------------------------------------------------------------

    def steps(self, steps: Iterable[Step]) -> Lines:
        """Return the statements of steps, with a barrier after each kernel."""
        found: Lines = []
        for step in steps:
            if isinstance(step, Launch):
                found += self.launch(step)
            elif isinstance(step, Copy):
                found.append(self.copy(step.target, step.source, step.size))
            elif isinstance(step, Timed):
                clocks, place = self.pointer(CLOCKS_POINTER), CLOCKED * step.number + RUNS
                runs = " && ".join(self.taken(step.chosen)) or "true"
                found.append(f"geon_note_run({clocks}, {place}, {runs});")
                found += self.timed(step.number, self.steps(step.steps), TICKS)
            elif isinstance(step, Branches):
                found += self.branches(step)
            else:
                assert isinstance(step, LaunchVariants)
                found += self.choice(step)
        return found

    def timed(self, row: int, lines: Lines, what: int) -> Lines:
        """Return ``lines`` with clock reads around them; ``what`` is an offset in the row."""
        clocks, place = self.pointer(CLOCKS_POINTER), CLOCKED * row + what
        return [
            "{",
            "    const long long begun = clock64();",
            *indent(lines),
            f"    geon_note_time({clocks}, {place}, begun);",
            "}",
        ]

    def taken(self, chosen: Sequence[tuple[int, int]]) -> Lines:
        """Return the C conditions that the branches ``chosen`` are taken."""
        return [
            f"*(const int64_t *){self.pointer(number)} == {branch}" for number, branch in chosen
        ]

    def choice(self, step: LaunchVariants) -> Lines:
        """Return the statements of a ``LaunchVariants``.

        A nested loop always runs inside this kernel; other choices become an ``if``.
        """
        if is_loop_by_size(step):
            return self.steps(step.steps)
        holds = " && ".join([f"{self.sizes.length(size)} >= 0" for size in step.holds])
        found = [f"if ({holds}) {{", *indent(self.steps(step.steps)), "}"]
        others = self.steps(step.others)
        return [*found[:-1], "} else {", *indent(others), "}"] if others else found

    def branches(self, step: Branches) -> Lines:
        """Return the statements of a case; all threads take the same branch."""
        found = ["{", f"    const int64_t branch = *(const int64_t *){self.pointer(step.index)};"]
        for number, branch in enumerate(step.steps):
            lines = self.steps(branch)
            if lines:
                head = f"if (branch == {number}) {{"
                found += indent([head, *indent(lines), "}"])
        return [*found, "}"]

    def copy(self, target: int, source: int, size: Size) -> str:
        """Return the statement of a copy."""
        to, of = self.pointer(target), self.pointer(source)
        return f"geon_copy_bytes({to}, {of}, {self.sizes.length(size)});"

    def launch(self, launch: Launch) -> Lines:
        """Return the call of a kernel's function, in a loop over its blocks."""
        function = self.functions[launch.kernel]
        self.files |= dict.fromkeys(function.files)
        self.sizes.calls(function.calls)
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
        if function.threads < THREADS_PER_BLOCK:
            lines = [f"if (threadIdx.x < {function.threads})", *indent(lines)]
        if one:
            return [*lines, "__syncthreads();"]
        head = f"for (int64_t block = 0; block < {blocks}; block++) {{"
        if function.meets:
            return [head, *indent([*lines, "__syncthreads();"]), "}"]
        return [head, *indent(lines), "}", "__syncthreads();"]

    # Loops --------------------------------------------------------------------------------------

    def loop(self, step: DeviceLoop) -> Lines:
        """Return the statements of a loop, inside a test of its enclosing branches."""
        n = self.loops
        self.loops += 1
        before, count, most = self.count(step, n)
        first = self.number(Round()) if self.repeated else "0"
        before += self.begun(step.carries, n, first if self.repeated else "")
        part = f"{count} - 1 - turn{n}" if step.reverse else f"turn{n}"
        inner = [f"const int64_t part{n} = {part};"]
        condition = step.condition
        if condition is None:
            writes = f"({count} - turn{n}) % 2 ? {{last}} : {{other}}"
            inner += self.turn_of(step.steps, step, n, writes, most)
        else:
            writes = f"read{n}_{{k}} == {{last}} ? {{other}} : {{last}}"
            inner += self.within(n, most, partial(self.steps, condition.steps))
            steps = self.turn_of(step.steps, step, n, writes, most)
            inner += [*self.leave(condition, n), *steps]
        end: Lines = []
        for k, carry in enumerate(step.carries):
            if carry.stays or self.repeated:
                to, size = self.pointer(carry.last), self.sizes.length(carry.size)
                copy = f"geon_copy_bytes({to}, read{n}_{k}, {size});"
                end.append(f"if (read{n}_{k} != {to}) {copy}")
        if step.is_open and step.most is not None:
            end += self.unreached(step.stacks, f"turn{n}", most)
        turn, head = f"int64_t turn{n} = {first};", f"for (; turn{n} < {count}; turn{n}++) {{"
        lines = [*before, turn, head, *indent(inner), "}", *end]
        if not step.chosen:
            return lines
        return [f"if ({' && '.join(self.taken(step.chosen))}) {{", *indent(lines), "}"]

    def count(self, step: DeviceLoop, n: int) -> tuple[Lines, str, str]:
        """Return declarations, and C texts of when this launch ends and of the loop's maximum."""
        count, most = f"count{n}", UNLIMITED if step.most is None else self.size(step.most)
        if step.given is not None:
            given = f"*(const int64_t *){self.pointer(step.given)}"
            least = f"const int64_t given{n} = {given} < {most} ? {given} : {most};"
            return [least, f"const int64_t {count} = given{n} < 0 ? 0 : given{n};"], count, most
        end_of = most
        if self.repeated:
            end_of = f"{self.number(Round())} + {TURNS_PER_LAUNCH}"
            if step.most is not None:
                end_of = f"{end_of} < {most} ? {end_of} : {most}"
        return [f"const int64_t {count} = {end_of};"], count, most

    def leave(self, condition: Condition, n: int) -> Lines:
        """Return the statements that leave a loop if its condition is false, or after a failure.

        All steps of the loop must be printed before: they tell if it can fail.
        """
        ends = f"!*(const uint8_t *){self.pointer(condition.truth)}"
        if REPORT_POINTER in self.pointers:
            ends += f" || *(const int64_t *){self.pointer(REPORT_POINTER)}"
        return [f"const _Bool ends{n} = {ends};", "__syncthreads();", f"if (ends{n}) break;"]

    def begun(self, carries: Sequence[Carry], n: int, done: str) -> Lines:
        """Declare the read pointers of carries: initial values, or the last ones when resuming.

        ``done`` is the C text of the number of iterations of earlier launches, empty if there are
        none.
        """
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
        self, steps: Sequence[Step], loop: DeviceLoop, n: int, writes: str, most: str
    ) -> Lines:
        """Return one iteration: pointers to slices of stacks and to carries, then its steps."""
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
        """Return the statements of ``write()``, after the overall iteration number if used."""
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
            *indent(lines),
            "}",
        ]

    def unreached(self, stacks: Sequence[Stack], count: str, most: str) -> Lines:
        """Return the statements that zero slices of stacked results that were not reached."""
        found = []
        for stack in stacks:
            if stack.written:
                start, stride = self.pointer(stack.pointer), self.size(stack.stride)
                where = f"{start} + {count} * {stride}, ({most} - {count}) * {stride}"
                found.append(f"if ({count} < {most}) geon_clear_bytes({where});")
        return found
