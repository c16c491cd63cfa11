"""A loop nest as C: a task function over part of the work, and the function that divides it.

How the work is divided depends on lengths alone, never on the number of threads, so that partial
values of reductions are the same for any number of them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from ...op_graph.affine import Size
from ..kernels.types import Loop, Nest, RowArray
from ..lowering.scratch import lines
from ..printing.nests import Accumulator, PrintedArray, PrintedNest, PrintedPass, print_nest
from ..printing.parameters import Parameter
from ..printing.scalars import LANES
from .accumulate import is_float_sum, wide
from .dialect import ArrayStrips
from .draws import declared, words_function
from .loops import for_loop, indented
from .naming import NAME, Function, KernelNames
from .passes import DIVIDED, TILE, Passes
from .past import Passing, Past, may_pass
from .strips import VECTOR_BYTES
from .whole import whole

# How many turns of a loop one task takes. Below 2**17 statements the caller does all by itself:
# that is less work than waking a thread. Else there are about sixteen tasks, so that threads end
# together, of 2**15 statements at least, many times what starting one costs, and of 2**19 at most,
# so that memory is walked in long stretches.
GRAIN = """\
GEON_INLINE int64_t geon_grain(int64_t size, int64_t work)
{
    const int64_t each = work > 0 ? work : 1, share = (size + 15) / 16;
    const int64_t least = 1 + (1 << 15) / each, most = 1 + (1 << 19) / each;
    const int64_t grain = share < least ? least : share < most ? share : most;
    return size * each < (1 << 17) && size > 0 ? size : grain;
}
"""
PARTS = 256  # the most partial values of a reduction
FEW_ROWS = 8  # so few rows are divided along what each goes over, where that is long
LONG_ROW = 1 << 16
ON_STACK = 4096  # elements of an array that a task has on its stack


def nest_function(
    work: Nest,
    names: KernelNames,
    vector_bytes: int,
    name: str = NAME,
    passing: Passing | None = None,
) -> Function:
    """The C function of a nest, with what it stores past the caches where that is much."""
    if work.pieces:
        text = pieces_text(work, names, vector_bytes, name, passing)
        return Function(text, tuple(names.parameters))
    printed = printed_nest(work, names, vector_bytes)
    shared: tuple[str, ...] = ()
    units: tuple[str, ...] = ()
    if any(made.windows for made in printed_passes(printed)):
        shared, units = (words_function().header,), words_function().units
    if work.fill is None:
        text = nest_text(printed, names, name, vector_bytes, passing)
        return Function(text, tuple(names.parameters), shared, units=units)
    out, old = names.operand(work.fill.operand), names.operand(work.fill.source)
    whole = work.operands[work.fill.operand]
    size = f"(size_t)({names.length(whole.axes.size)}) * sizeof *{out}"
    part = nest_text(printed, names, f"{name}_part", vector_bytes, passing)
    copy = "" if out == old else f"    memcpy({out}, {old}, {size});\n"
    call = ", ".join(["threads", *(p.name for p in names.parameters)])
    head = f"static void {name}(int32_t threads, {names.declared()})"
    text = f"{part}{head}\n{{\n{copy}    {name}_part({call});\n}}\n"
    return Function(text, tuple(names.parameters), shared, units=units)


def printed_nest(work: Nest, names: KernelNames, vector_bytes: int) -> PrintedNest:
    """The statements of a nest, with strips where the instruction set has functions of them."""
    return print_nest(work, names, ArrayStrips() if vector_bytes == VECTOR_BYTES else None)


def pieces_text(
    work: Nest, names: KernelNames, vector_bytes: int, name: str, passing: Passing | None
) -> str:
    """The C functions of a nest that is computed by its pieces where lengths allow it."""

    def text(piece: Nest, called: str) -> str:
        printed = printed_nest(piece, names, vector_bytes)
        past = passing if passing is not None and may_pass(piece) else None
        return nest_text(printed, names, called, vector_bytes, past)

    called = dict(names.called)
    for piece in (work, *work.pieces):
        text(piece, name)  # all are parameters now
    names.called = called
    if len(work.pieces) == 1 and not work.holds:
        return text(work.pieces[0], name)
    parts = [text(piece, f"{name}_{k}") for k, piece in enumerate(work.pieces)]
    holds = " && ".join([f"{names.length(size)} >= 0" for size in work.holds])
    call = ", ".join(["threads", *(p.name for p in names.parameters)])
    lines = [f"{name}_{k}({call});" for k in range(len(work.pieces))]
    if holds:
        parts.append(text(work, f"{name}_whole"))
        lines = [f"if ({holds}) {{", *indented([*lines, "return;"]), "}", f"{name}_whole({call});"]
    head = f"static void {name}(int32_t threads, {names.declared()})"
    return "".join(parts) + "\n".join([head, "{", *indented(lines), "}"]) + "\n"


def nest_text(
    nest: PrintedNest,
    names: KernelNames,
    name: str,
    vector_bytes: int,
    passing: Passing | None = None,
) -> str:
    """The C functions of a nest; ``name`` is that of the one to call."""
    work = _Writer(nest, names, name, vector_bytes, passing)
    if work.is_few_long_rows():
        return work.row_after_row()
    if nest.rows or nest.lanes is not None:
        return work.by_rows()
    return work.divided()


def scratch_each(nest: Nest) -> Size:
    """The bytes of scratch memory that each thread of a nest works in."""
    each: Size = 0
    for array in nest.arrays:
        if not on_stack(array):
            each = each + lines(array.size * array.dtype.itemsize)
    return each


def on_stack(array: RowArray | PrintedArray) -> bool:
    """Whether an array of a row lies on the stack of the task."""
    return isinstance(array.size, int) and array.size <= ON_STACK


def printed_passes(nest: PrintedNest) -> list[PrintedPass]:
    """All passes of a nest."""
    lines = (*nest.row.lines, *nest.ending.lines)
    return [line for line in lines if isinstance(line, PrintedPass)]


class _Writer:
    def __init__(
        self,
        nest: PrintedNest,
        names: KernelNames,
        name: str,
        vector_bytes: int,
        passing: Passing | None,
    ) -> None:
        self.nest, self.names, self.name, self.passing = nest, names, name, passing
        self.passes, self.lanes = Passes(nest, names, vector_bytes), vector_bytes // 4
        loops = [*nest.rows, *(loop for made in printed_passes(nest) for loop in made.loops)]
        for loop in [*loops, nest.lanes] if nest.lanes is not None else loops:
            self.passes.extent(
                loop
            )  # all lengths are parameters before the first function is written
        self.buffers()  # and so is scratch memory

    def top(self) -> list[str]:
        """The statements of a task before its first row: values known once, windows of bits."""
        return [*map(str, self.nest.top.lines), *self.windows(self.nest.row.lines)]

    def windows(self, lines: list[object]) -> list[str]:
        """The statements that declare the windows of random bits of a block's passes."""
        passes = [line for line in lines if isinstance(line, PrintedPass)]
        return declared([window for made in passes for window in made.windows])

    # Functions ----------------------------------------------------------------------------------

    def function(self, name: str, body: list[str], extra: list[Parameter]) -> list[str]:
        """A task function whose argument holds the kernel's parameters and ``extra`` ones."""
        unpacked = []
        for p in [*self.names.parameters, *extra]:
            const = "" if p.pointer else "const "
            unpacked.append(f"{const}{p.declared()} = a->{p.name};")
        return [
            f"static void {name}(void *argument, int64_t task)",
            "{",
            *indented([f"const struct {name} *a = argument;", *unpacked, *body]),
            "}",
        ]

    def structure(self, name: str, extra: list[Parameter]) -> list[str]:
        fields = [f"{p.declared(restrict=False)};" for p in [*self.names.parameters, *extra]]
        return [f"struct {name} {{", *indented(fields), "};"]

    def launch(self, name: str, extra: dict[str, str]) -> list[str]:
        """The statements that run a task function on the pool."""
        values = [p.name for p in self.names.parameters]
        fields = [f".{v} = {v}" for v in values] + [f".{k} = {v}" for k, v in extra.items()]
        return [
            f"struct {name} a = {{{', '.join(fields)}}};",
            f"geon_pool_run({name}, &a, parts, threads);",
        ]

    def head(self) -> str:
        declared = self.names.declared()
        return f"static void {self.name}(int32_t threads{', ' if declared else ''}{declared})"

    def whole(self, parts: list[list[str]]) -> str:
        return "\n".join(line.rstrip() for part in parts for line in part) + "\n"

    # Rows ---------------------------------------------------------------------------------------

    def by_rows(self) -> str:
        """Tasks of neighbouring rows."""
        nest, task = self.nest, f"{self.name}_rows"
        past = self.passes.past = Past(self.passing, self.names)
        row = self.passes.statements(nest.row.lines)
        top = self.top()
        inner = self.row_work()
        counts = [f"({self.passes.extent(loop)})" for loop in nest.rows]
        if nest.lanes is not None:
            counts.append(f"(({self.passes.extent(nest.lanes)} + block - 1) / block)")
        body = [
            "const int64_t begin = task * grain;",
            "const int64_t end = begin + grain < rows ? begin + grain : rows;",
            *top,
            *self.buffers(),
            *past.task([
                "for (int64_t row = begin; row < end; row++) {",
                *indented([*self.row_indices(), *row]),
                "}",
            ]),
        ]  # fmt: skip
        extra = [Parameter(name, "int64_t", None, False) for name in self.divisors()]
        main = [
            *self.block_size(),
            f"const int64_t rows = {' * '.join(counts)};",
            f"const int64_t work = {inner};",
            "const int64_t grain = geon_grain(rows, work);",
            "const int64_t parts = rows > 0 ? (rows + grain - 1) / grain : 0;",
            *self.launch(task, {name: name for name in self.divisors()}),
        ]
        return self.whole([
            self.structure(task, extra),
            self.function(task, body, extra),
            [self.head(), "{", *indented(main), "}"],
        ])  # fmt: skip

    def buffers(self) -> list[str]:
        """The arrays that each row fills anew: small ones on the stack, others in the thread's part
        of scratch memory, where they begin at lines of cache.
        """
        found: list[str] = []
        places = []
        offset: Size = 0
        for array in self.nest.arrays:
            if on_stack(array):
                found.append(f"{array.ctype} {array.name}[{array.size}];")
                continue
            at = f"row_memory + {self.names.length(offset)}"
            places.append(f"{array.ctype} *restrict {array.name} = (void *)({at});")
            offset = offset + lines(array.size * array.itemsize)
        if places:
            found += [f"char *const row_memory = {self.names.own_scratch(offset)};", *places]
        return found

    def is_few_long_rows(self) -> bool:
        """Whether there are too few rows for all threads, and each is one long pass."""
        nest, lines = self.nest, self.nest.row.lines
        rows = [loop.extent for loop in nest.rows if isinstance(loop.extent, int)]
        if not nest.rows or nest.lanes is not None or len(rows) < len(nest.rows):
            return False
        if math.prod(rows) > FEW_ROWS or sum(isinstance(line, PrintedPass) for line in lines) != 1:
            return False
        first = lines[0]
        if not isinstance(first, PrintedPass) or not first.loops:
            return False
        if not first.sums and not first.states:
            return False
        length = first.loops[0].extent
        return not isinstance(length, int) or length >= LONG_ROW

    def row_after_row(self) -> str:
        """One row at a time, its pass divided."""
        nest, task = self.nest, f"{self.name}_part"
        made = nest.row.lines[0]
        assert isinstance(made, PrintedPass)
        indices = [Parameter(loop.name, "int64_t", None, False) for loop in nest.rows]
        extra = self.partial(made) + indices
        top = self.top()
        body = self.part(made, top)  # before what takes its parameters
        lines = [*self.divide(made, task, [p.name for p in indices])]
        lines += self.passes.statements(nest.row.lines[1:])
        for loop in reversed(nest.rows):
            head = f"for (int64_t {loop.name} = 0; {loop.name} < {loop.extent}; {loop.name}++) {{"
            lines = [head, *indented(lines), "}"]
        return self.whole([
            self.structure(task, extra),
            self.function(task, body, extra),
            [self.head(), "{", *indented([*top, *lines]), "}"],
        ])  # fmt: skip

    def partial(self, made: PrintedPass) -> list[Parameter]:
        """What a task of a divided pass is told: its share, and where partial values go."""
        parts = [Parameter(f"{t.name}_parts", partial_type(t), None) for t in made.sums]
        for state in made.states:
            pairs = zip(state.names, state.ctypes, strict=True)
            parts += [Parameter(f"{name}_parts", ctype, None) for name, ctype in pairs]
        return [Parameter("grain", "int64_t", None, False), *parts]

    def divisors(self) -> list[str]:
        """What a task needs to know of how the rows are divided."""
        return ["grain", "rows"] + (["block"] if self.nest.lanes is not None else [])

    def block_size(self) -> list[str]:
        """How many rows are taken side by side: enough that memory is read in long stretches.

        Each row's own order of work does not depend on it, so the number of threads may.
        """
        if self.nest.lanes is None:
            return []
        if not self.has_sums():
            return [f"const int64_t block = {TILE};"]
        share = f"(({self.passes.extent(self.nest.lanes)} + threads - 1) / threads + 63) / 64 * 64"
        return [
            f"int64_t block = {share};",
            f"block = block < 64 ? 64 : block > {LANES} ? {LANES} : block;",
        ]

    def has_sums(self) -> bool:
        """Whether a pass reduces."""
        return any(
            isinstance(line, PrintedPass) and (line.sums or line.states)
            for line in self.nest.row.lines
        )

    def row_work(self) -> str:
        """About how many statements one row takes, as C."""
        parts = []
        for line in self.nest.row.lines:
            if isinstance(line, PrintedPass):
                counts = [str(line.weight)]
                counts += [f"({self.passes.extent(loop)})" for loop in line.loops]
                parts.append(" * ".join(counts))
        lanes = " * block" if self.nest.lanes is not None else ""
        return f"({' + '.join(['1', *parts])}){lanes}"

    def row_indices(self) -> list[str]:
        """The row's number as one index for each row loop, and the block of lanes."""
        nest = self.nest
        outside = len(nest.rows) - (nest.inside if nest.lanes is not None else 0)
        lines, rest = self.indices(nest.rows[outside:], "row", outside == 0 and nest.lanes is None)
        if nest.lanes is not None:
            size = self.passes.extent(nest.lanes)
            blocks = f"(({size} + block - 1) / block)"
            first = f"({rest} % {blocks})" if outside else rest
            lines.append(f"const int64_t first_lane = {first} * block;")
            left = f"({size}) - first_lane"
            count = whole(f"{left} < block ? {left} : block", nest.lanes.extent, self.lanes)
            if isinstance(nest.lanes.extent, int) and nest.lanes.extent <= TILE:
                count = size  # in one block, and known: so few sums are held in registers
            lines.append(f"const int64_t lanes = {count};")
            if outside:
                lines.append(f"const int64_t outer = {rest} / {blocks};")
                rest = "outer"
        more, _ = self.indices(nest.rows[:outside], rest, True)
        return [*lines, *more]

    def indices(self, loops: Sequence[Loop], rest: str, last: bool) -> tuple[list[str], str]:
        """A number as one index for each loop, and what is left of it where these are not the
        ``last``.
        """
        lines = []
        for k in range(len(loops) - 1, -1, -1):
            loop = loops[k]
            if k == 0 and last:
                lines.append(f"const int64_t {loop.name} = {rest};")
                break
            size = self.passes.extent(loop) if loop.extent != 0 else "1"  # never run, but compiled
            lines.append(f"const int64_t {loop.name} = {rest} % ({size});")
            lines.append(f"const int64_t before_{loop.name} = {rest} / ({size});")
            rest = f"before_{loop.name}"
        return lines, rest

    # One pass, divided --------------------------------------------------------------------------

    def divided(self) -> str:
        """Tasks of neighbouring turns of the outermost loop of each pass."""
        nest = self.nest
        top = self.top()
        functions: list[list[str]] = []
        main: list[str] = []
        if not any(isinstance(line, PrintedPass) for line in nest.row.lines):
            main = [*top, *self.passes.statements(nest.row.lines), "(void)threads;"]
        for line in nest.row.lines:
            if isinstance(line, PrintedPass):
                task = f"{self.name}_part{len(functions) // 2 or ''}"
                extra = self.partial(line)
                body = self.part(line, top)  # before what takes its parameters
                functions.append(self.structure(task, extra))
                functions.append(self.function(task, body, extra))
                main += self.divide(line, task)
        ending = self.windows(nest.ending.lines) + self.passes.statements(nest.ending.lines)
        return self.whole([*functions, [self.head(), "{", *indented([*main, *ending]), "}"]])

    def part(self, made: PrintedPass, top: list[str]) -> list[str]:
        """The body of a task: the pass between two bounds, and where its partial values go."""
        lines = [*top]
        bounds = None
        if made.loops:
            size = self.passes.extent(made.loops[0])
            end = f"begin + grain < {size} ? begin + grain : {size}"
            lines += ["const int64_t begin = task * grain;", f"const int64_t end = {end};"]
            bounds = DIVIDED
        else:
            lines.append("(void)grain;")
        past = self.passes.past = Past(self.passing if bounds else None, self.names)
        lines += past.task(self.passes.text(made, bounds, partial=True, flat=self.is_flat(made)))
        self.passes.past = Past(None, self.names)
        blocked = self.passes.accumulation(made).blocked
        for t in made.sums:
            lines.append(f"{t.name}_parts[task] = {wide(t) if t.name in blocked else t.name};")
        names = [name for state in made.states for name in state.names]
        lines += [f"{name}_parts[task] = {name}[0];" for name in names]
        return lines if made.loops or made.sums or names else [*lines, "(void)task;"]

    def is_flat(self, made: PrintedPass) -> bool:
        """Whether a pass is one loop that any division serves and that is known to fill vectors."""
        reduces = made.sums or made.states
        if len(made.loops) != 1 or reduces or made.windows or self.nest.lanes is not None:
            return False
        extent = made.loops[0].extent
        return isinstance(extent, int) and extent % self.lanes == 0

    def divide(self, made: PrintedPass, task: str, indices: Sequence[str] = ()) -> list[str]:
        """The statements that run a pass in parts and combine its partial values in order.

        ``indices`` are variables that the tasks are told.
        """
        size = self.passes.extent(made.loops[0]) if made.loops else "1"
        work = " * ".join(
            [str(made.weight), *(f"({self.passes.extent(loop)})" for loop in made.loops[1:])]
        )
        lines = [
            f"const int64_t size = {size}, work = {work};",
            "int64_t grain = geon_grain(size, work);",
        ]
        if made.sums or made.states:
            lines.append(f"if (grain < (size + {PARTS - 1}) / {PARTS}) "
                         f"grain = (size + {PARTS - 1}) / {PARTS};")  # fmt: skip
        if self.is_flat(made):
            lines.append(f"grain = (grain + {self.lanes - 1}) & -{self.lanes};")
        lines.append("const int64_t parts = (size + grain - 1) / grain;")
        lines += [f"{partial_type(t)} {t.name}_parts[{PARTS}];" for t in made.sums]
        held = [f"{t.name}_parts" for t in made.sums]
        for state in made.states:
            for name, ctype in zip(state.names, state.ctypes, strict=True):
                lines.append(f"{ctype} {name}_parts[{PARTS}];")
                held.append(f"{name}_parts")
        arrays = {name: name for name in held}
        arrays.update({name: name for name in indices})
        lines += self.launch(task, {"grain": "grain", **arrays})
        before, after = [], []
        for t in made.sums:
            each = f"{t.name}_parts[part]"
            if is_float_sum(t):
                before.append(f"double {wide(t)} = 0;")
                combined = f"{wide(t)} += {each}"
                after.append(f"const {t.ctype} {t.name} = ({t.ctype}){wide(t)};")
            else:
                before.append(f"{t.ctype} {t.name} = {t.first};")
                combined = f"{t.name} = {t.step(t.name, each)}"
            lines.append(f"for (int64_t part = 0; part < parts; part++) {combined};")
        for state in made.states:
            for name, ctype, first in zip(state.names, state.ctypes, state.first, strict=True):
                before.append(f"{ctype} {name}[1] = {{{first}}};")
            lines += for_loop("part", "0", "parts", state.combine("[0]", "_parts[part]"))
        return [*before, "{", *indented(lines), "}", *after]


def partial_type(total: Accumulator) -> str:
    """The C type of a partial value of a reduction."""
    return "double" if is_float_sum(total) else total.ctype
