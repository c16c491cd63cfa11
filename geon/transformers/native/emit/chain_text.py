"""Emit a chain of row-blocked kernels as C: each task runs all steps on some blocks of rows.

A step is emitted as a single-threaded function. Its parameters include the position of the block
(batch indices, first row, number of rows).
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
from ...lowering.planning.kernel_forms import KernelForm
from ...lowering.planning.plan import Plan
from ...printing.nests.loop_lines import indent
from ...sizes.blocks import (
    BLOCK_BYTES,
    CACHE_LINE_BYTES,
    MAX_BLOCK_ROWS,
    MIN_BALANCED_BLOCK_ROWS,
    MIN_BLOCK_ROWS,
    MIN_BLOCKS,
)
from ..library.library_kernels import library_text
from ..names.naming import NAME, KernelNames, NativeFunction, Parameter, Place
from ..products.contractions import contraction_function
from ..trees.nest_text import nest_function
from .scratch import blocked_scratch

# Kinds of a thread's scratch memory: values between steps, packed operands, arrays of rows.
INNER, PACKED, ARRAYS = "inner", "packed", "arrays"


class ChainStepNames(KernelNames):
    """Assigns names and parameters to the memory that one step of a chain uses."""

    def __init__(self, plan: Plan, kernel: Kernel, work: Blocked, number: int) -> None:
        chain = kernel.fused.chain if kernel.fused is not None else None
        assert chain is not None
        self.slots = dict(zip(chain.inner, chain.slots, strict=True))
        self.step = work.steps[number]
        self.ops: dict[Place, Op] = {}
        super().__init__(plan, kernel, {}, chain.steps[number][1])

    def place(self, op: Op) -> Place:
        """Return the memory location of ``op``: the thread's scratch memory if only steps of the
        chain read it.
        """
        found = (INNER, self.slots[op]) if op in self.slots else super().place(op)
        self.ops[found] = op
        return found

    def operand(self, number: int) -> str:
        """Return a typed pointer to operand ``number`` of the step."""
        return self.pointer(self.step.operands[number])

    def scratch(self) -> str:
        """Return the name of the step's scratch memory and add its parameter."""
        kind = PACKED if isinstance(self.step, Contraction) else ARRAYS
        self.works = Parameter("scratch", "char", (kind, 0))
        return self.works.name

    def own_scratch(self, each: Size) -> str:
        """Return the same as ``scratch``: the chain passes each thread its share."""
        return self.scratch()


def blocked_function(plan: Plan, kernel: Kernel, work: Blocked, form: KernelForm) -> NativeFunction:
    """Return the C function of a chain of this form."""
    return _ChainWriter(plan, kernel, work, form).function()


def extremes_function(work: Extremes, names: ChainStepNames, name: str) -> NativeFunction:
    """Return the C function of a step that calls the library's argmax or argmin on each row."""
    found = library_text(work.op.primitive.name, (name_of(work.operands[0].dtype),))
    x, out = names.operand(0), names.operand(1)
    lines, length, offset = map(names.length, (work.lines, work.length, work.offset))
    head = f"static void {name}(int32_t threads, {names.declared()})"
    call = f"{found.name}(threads, {x}, {out} + {offset}, {lines}, {length}, 1);"
    text = "\n".join([head, "{", *indent([call]), "}", ""])
    parameters = tuple(names.parameters)
    return NativeFunction(text, parameters, (found.header,), units=found.units, of_vectors=True)


class _ChainWriter:
    def __init__(self, plan: Plan, kernel: Kernel, work: Blocked, form: KernelForm) -> None:
        self.plan, self.kernel, self.work, self.form = plan, kernel, work, form
        self.names = KernelNames(plan, kernel, {})
        self.arrays: Size = 0  # bytes of the row arrays of the steps emitted so far

    def function(self) -> NativeFunction:
        """Return the C function of the chain with those of its steps and its task."""
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
        return NativeFunction(
            text, parameters, tuple(shared), False, tuple(units), calls, of_vectors
        )

    def step(self, number: int) -> tuple[NativeFunction, ChainStepNames]:
        """Return the C function of step ``number`` and the names of its parameters."""
        step = self.work.steps[number]
        names = ChainStepNames(self.plan, self.kernel, self.work, number)
        name = f"{NAME}_step{number}"
        parts = self.form.parts[number]
        if isinstance(step, Contraction):
            whole = whole_sizes(self.work.whole[number])
            return contraction_function(step, parts, names, name, whole), names
        if isinstance(step, Extremes):
            return extremes_function(step, names, name), names
        return nest_function(step, parts, names, name), names

    def called(self, name: str, made: NativeFunction, names: ChainStepNames) -> str:
        """Return the statement that calls a step on one block."""
        given = ", ".join(["1", *(self.argument(p, names) for p in made.parameters)])
        return f"{name}({given});"

    def argument(self, parameter: Parameter, names: ChainStepNames) -> str:
        """Return the C expression that a step receives for ``parameter``."""
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
        """Return the names of the task's int64 fields beyond the kernel's parameters."""
        inner = [f"inner_{k}" for k in range(len(self.work.cut.memory))]
        return ["grain", "blocks", "parts", *inner, PACKED, ARRAYS, "each"]

    def structure(self) -> list[str]:
        """Return the C struct that passes arguments to a task."""
        fields = [f"{p.declared(restrict='')};" for p in self.names.parameters]
        fields += [f"int64_t {name};" for name in self.told()]
        return [f"struct {NAME}_blocks {{", *indent(fields), "};"]

    def task(self, calls: list[str]) -> list[str]:
        """Return the C task function, which runs the steps on a range of blocks."""
        unpacked = []
        for p in self.names.parameters:
            const = "" if p.pointer else "const "
            unpacked.append(f"{const}{p.declared(restrict='')} = a->{p.name};")
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
            *indent([
                f"const struct {NAME}_blocks *a = argument;",
                *unpacked,
                "char *const own = scratch + geon_seat() * each;",
                "const int64_t begin = task * grain;",
                "const int64_t end = begin + grain < blocks ? begin + grain : blocks;",
                "for (int64_t block = begin; block < end; block++) {",
                *indent(block),
                "}",
            ]),
            "}",
        ]  # fmt: skip

    def batch_indices(self) -> list[str]:
        """Return the statements that compute the batch indices of ``block``."""
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
        """Return the C function that cuts the rows into blocks, as ``Cut`` does, and runs the
        tasks.
        """
        cut, length = self.work.cut, self.names.length
        total: Size = 0
        for size in cut.memory:
            total = total + size
        scratch = blocked_scratch(self.work, self.form)
        lines = [
            f"const int64_t rows = {length(cut.rows)}, batches = {length(product(cut.batch))};",
            f"const int64_t row_bytes = {length(total)};",
            f"int64_t most = {BLOCK_BYTES} / (row_bytes > 0 ? row_bytes : 1);",
            f"most = most < {MIN_BLOCK_ROWS} ? {MIN_BLOCK_ROWS} : most > {MAX_BLOCK_ROWS} "
            f"? {MAX_BLOCK_ROWS} : most;",
            f"int64_t few = batches > 0 ? ({MIN_BLOCKS} + batches - 1) / batches : {MIN_BLOCKS};",
            f"const int64_t short_blocks = (rows + {MIN_BALANCED_BLOCK_ROWS - 1}) / "
            f"{MIN_BALANCED_BLOCK_ROWS};",
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
            lines.append(
                f"each += ({bytes_of} + {CACHE_LINE_BYTES - 1}) / {CACHE_LINE_BYTES} * "
                f"{CACHE_LINE_BYTES};"
            )
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
        return [head, "{", *indent(lines), "}"]
