"""A chain of kernels as C: a task for some blocks of rows, which calls the steps on each.

A step is a kernel of its own text, on one thread, whose parameters also say where the block is.
"""

from __future__ import annotations

from ....op_graph.axes.affine import Size
from ....op_graph.axes.lengths import Length, product
from ....op_graph.op_graph import Op
from ....op_graph.values.dtypes import name_of
from ...kernels.products.contraction import Contraction
from ...kernels.products.row_blocking import (
    BATCH,
    FIRST_ROW,
    ROWS,
    Blocked,
    Extremes,
    whole_sizes,
)
from ...lowering.fusion.kernel import Kernel
from ...lowering.planning.plan import Plan
from ...sizes.blocks import BLOCK, BLOCKS, FEWEST_ROWS, LEAST_ROWS, LINE, MOST_ROWS
from ..library.library_kernels import library_text
from ..names.naming import NAME, Function, KernelNames, Parameter, Place
from ..nests.nest_text import nest_function
from ..nests.pass_loops import indented
from ..products.contractions import contraction_function
from .scratch import blocked_scratch

INNER, PACKED, ARRAYS = "inner", "packed", "arrays"  # what a thread works in


class StepNames(KernelNames):
    """The parameters of one step of a chain."""

    def __init__(self, plan: Plan, kernel: Kernel, work: Blocked, number: int) -> None:
        chain = kernel.fused.chain if kernel.fused is not None else None
        assert chain is not None
        self.slots = dict(zip(chain.inner, chain.slots, strict=True))
        self.step = work.steps[number]
        self.ops: dict[Place, Op] = {}
        super().__init__(plan, kernel, {}, chain.steps[number][1])

    def place(self, op: Op) -> Place:
        """The memory in which ``op`` lies: that of a block for what only steps read."""
        found = (INNER, self.slots[op]) if op in self.slots else super().place(op)
        self.ops[found] = op
        return found

    def operand(self, number: int) -> str:
        """The typed pointer to the memory of operand ``number`` of the step."""
        return self.pointer(self.step.operands[number])

    def scratch(self) -> str:
        """The name of the memory that the step works in, which is its own."""
        kind = PACKED if isinstance(self.step, Contraction) else ARRAYS
        self.works = Parameter("scratch", "char", (kind, 0))
        return self.works.name

    def own_scratch(self, each: Size) -> str:
        """The same: the chain gives each thread its part."""
        return self.scratch()


def blocked_function(plan: Plan, kernel: Kernel, work: Blocked, vector_bytes: int) -> Function:
    """The C function of a chain."""
    return _Writer(plan, kernel, work, vector_bytes).function()


def extremes_function(work: Extremes, names: StepNames, name: str) -> Function:
    """The C function of a step that finds extremes."""
    found = library_text(work.op.primitive.name, (name_of(work.operands[0].dtype),))
    x, out = names.operand(0), names.operand(1)
    lines, length, offset = map(names.length, (work.lines, work.length, work.offset))
    head = f"static void {name}(int32_t threads, {names.declared()})"
    call = f"{found.name}(threads, {x}, {out} + {offset}, {lines}, {length}, 1);"
    text = "\n".join([head, "{", *indented([call]), "}", ""])
    parameters = tuple(names.parameters)
    return Function(text, parameters, (found.header,), units=found.units, of_vectors=True)


class _Writer:
    def __init__(self, plan: Plan, kernel: Kernel, work: Blocked, vector_bytes: int) -> None:
        self.plan, self.kernel, self.work = plan, kernel, work
        self.vector_bytes = vector_bytes
        self.names = KernelNames(plan, kernel, {})
        self.arrays: Size = 0  # bytes of the arrays of rows of the steps so far

    def function(self) -> Function:
        """The functions of the steps, of a task, and the one that is called."""
        texts: list[str] = []
        steps: list[str] = []
        of_vectors = True
        shared: dict[str, None] = {}
        units: dict[str, None] = {}
        self.names.scratch()
        for number in range(len(self.work.steps)):
            made, names = self.step(number)
            texts.append(made.text)
            of_vectors &= made.of_vectors
            shared.update(dict.fromkeys(made.shared))
            units.update(dict.fromkeys(made.units))
            steps.append(self.called(f"{NAME}_step{number}", made, names))
            self.names.calls(names.called)
        self.names.calls(["geon_grain"])
        main = self.main()
        lines = [*self.structure(), *self.task(steps), *main]
        text = "\n".join([*texts, *lines]) + "\n"
        parameters, calls = tuple(self.names.parameters), tuple(self.names.called)
        return Function(text, parameters, tuple(shared), False, tuple(units), calls, of_vectors)

    def step(self, number: int) -> tuple[Function, StepNames]:
        """The function of a step, and what its parameters are."""
        step = self.work.steps[number]
        names = StepNames(self.plan, self.kernel, self.work, number)
        name = f"{NAME}_step{number}"
        if isinstance(step, Contraction):
            whole = whole_sizes(self.work.whole[number])
            return contraction_function(step, names, self.vector_bytes, name, whole), names
        if isinstance(step, Extremes):
            return extremes_function(step, names, name), names
        return nest_function(step, names, self.vector_bytes, name), names

    def called(self, name: str, made: Function, names: StepNames) -> str:
        """The call of a step on a block."""
        given = ", ".join(["1", *(self.argument(p, names) for p in made.parameters)])
        return f"{name}({given});"

    def argument(self, parameter: Parameter, names: StepNames) -> str:
        """What a step is given for one of its parameters."""
        place = parameter.place
        if isinstance(place, str):
            own = {FIRST_ROW: "first", ROWS: "count"}
            own.update({BATCH.format(k): f"batch_{k}" for k in range(len(self.work.cut.batch))})
            return own.get(place) or self.names.length(Length.of(place))
        assert isinstance(place, tuple)
        if place[0] == INNER:
            return f"({parameter.ctype} *)(own + inner_{place[1]})"
        if place[0] in (PACKED, ARRAYS):
            return f"own + {place[0]}"
        return self.names.pointer(names.ops[place])

    # The task -----------------------------------------------------------------------------------

    def told(self) -> list[str]:
        """The numbers that a task is told beside the kernel's parameters."""
        inner = [f"inner_{k}" for k in range(len(self.work.cut.memory))]
        return ["grain", "blocks", "parts", *inner, PACKED, ARRAYS, "each"]

    def structure(self) -> list[str]:
        """What a task is told."""
        fields = [f"{p.declared(restrict=False)};" for p in self.names.parameters]
        fields += [f"int64_t {name};" for name in self.told()]
        return [f"struct {NAME}_blocks {{", *indented(fields), "};"]

    def task(self, calls: list[str]) -> list[str]:
        """The function of some blocks, one after another."""
        unpacked = []
        for p in self.names.parameters:
            const = "" if p.pointer else "const "
            unpacked.append(f"{const}{p.declared(restrict=False)} = a->{p.name};")
            unpacked.append(f"(void){p.name};")
        for name in self.told():
            unpacked += [f"const int64_t {name} = a->{name};", f"(void){name};"]
        rows = self.names.length(self.work.cut.rows)
        block = [
            "const int64_t part = block % parts;",
            f"const int64_t first = ({rows}) * part / parts;",
            f"const int64_t count = ({rows}) * (part + 1) / parts - first;",
            *self.batch_indices(),
            *calls,
        ]
        return [
            f"static void {NAME}_task(void *argument, int64_t task)",
            "{",
            *indented([
                f"const struct {NAME}_blocks *a = argument;",
                *unpacked,
                "char *const own = scratch + geon_seat() * each;",
                "const int64_t begin = task * grain;",
                "const int64_t end = begin + grain < blocks ? begin + grain : blocks;",
                "for (int64_t block = begin; block < end; block++) {",
                *indented(block),
                "}",
            ]),
            "}",
        ]  # fmt: skip

    def batch_indices(self) -> list[str]:
        """The indices of the batch that a block belongs to."""
        lines = []
        rest = "block / parts"
        for k in range(len(self.work.cut.batch) - 1, -1, -1):
            size = self.work.cut.batch[k]
            length = f"({self.names.length(size)})" if size != 0 else "1"  # never run, but compiled
            lines.append(f"const int64_t rest_{k} = {rest};")
            lines.append(f"const int64_t batch_{k} = {f'rest_{k} % {length}' if k else 'rest_0'};")
            lines.append(f"(void)batch_{k};")
            rest = f"rest_{k} / {length}"
        return lines

    def main(self) -> list[str]:
        """The function that cuts the rows into blocks, as ``Cut`` does, and runs the tasks."""
        cut, length = self.work.cut, self.names.length
        total: Size = 0
        for size in cut.memory:
            total = total + size
        scratch = blocked_scratch(self.work)
        lines = [
            f"const int64_t rows = {length(cut.rows)}, batches = {length(product(cut.batch))};",
            f"const int64_t row_bytes = {length(total)};",
            f"int64_t most = {BLOCK} / (row_bytes > 0 ? row_bytes : 1);",
            f"most = most < {LEAST_ROWS} ? {LEAST_ROWS} : most > {MOST_ROWS} ? {MOST_ROWS} : most;",
            f"int64_t few = batches > 0 ? ({BLOCKS} + batches - 1) / batches : {BLOCKS};",
            f"const int64_t short_blocks = (rows + {FEWEST_ROWS - 1}) / {FEWEST_ROWS};",
            "few = few < short_blocks ? few : short_blocks;",
            "int64_t parts = (rows + most - 1) / most;",
            "parts = parts > few ? parts : few;",
            "parts = parts > 1 ? parts : 1;",
            "const int64_t blocks = rows > 0 ? batches * parts : 0;",
            "const int64_t largest = (rows + parts - 1) / parts;",
            "const int64_t grain = geon_grain(blocks, largest * row_bytes);",
            "int64_t each = 0;",
        ]
        for number, size in enumerate(cut.memory):
            lines.append(f"const int64_t inner_{number} = each;")
            bytes_of = f"largest * ({length(size)})"
            lines.append(f"each += ({bytes_of} + {LINE - 1}) / {LINE} * {LINE};")
        lines += [
            f"const int64_t packed = each, arrays = each + {scratch.packed};",
            f"each = arrays + {length(scratch.arrays)};",
        ]
        fields = [f".{p.name} = {p.name}" for p in self.names.parameters]
        fields += [f".{name} = {name}" for name in self.told()]
        lines += [
            f"struct {NAME}_blocks a = {{{', '.join(fields)}}};",
            f"geon_pool_run({NAME}_task, &a, (blocks + grain - 1) / grain, threads);",
        ]
        head = f"static void {NAME}(int32_t threads, {self.names.declared()})"
        return [head, "{", *indented(lines), "}"]
