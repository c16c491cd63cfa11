"""Scatter: set or combine values at indices, in the order of the indices.

Few indices are handled by one thread per column. More are sorted first, so that equal ones are
adjacent; then one thread per run and column applies a run in order.
"""

from __future__ import annotations

from enum import Enum
from functools import cached_property
from typing import Any, NamedTuple

from ....op_graph.axes.affine import Size
from ....op_graph.op_graph import Op
from ....op_graph.values.dtypes import HALVES, name_of
from ...kernels.ir.nest import Call
from ...lowering.planning.buffer_slots import place_of
from ...lowering.planning.kernel_forms import choice
from ...lowering.planning.plan import Plan
from ...printing.nests.parameters import Place
from ...printing.scalars import c_expressions
from ...printing.scalars.c_functions import C_TYPES
from ..launches.launch_ir import THREADS_PER_BLOCK, Copy, Grid
from ..launches.naming import CudaFunction, CudaKernelNames, Part, copied
from .sorting import FILES, MAX_SHARED_SORT_ELEMENTS, DigitSort, SortMemory, around

MAX_UNSORTED_POSITIONS = 8  # max. indices that are not sorted


class ScatterWay(Enum):
    """A step of a scatter, in words."""

    COPY = "copy the operand, unless the result is in its place"
    BY_COLUMNS = "a thread for each column applies the values in order"
    SORT_IN_BLOCK = "a block sorts the indices in shared memory"
    SORT_BY_DIGITS = "a radix sort of the indices by tiles"
    BY_RUNS = "a thread for each column of a run of equal indices applies its values in order"


class ScatterStep(NamedTuple):
    """A step of a scatter; those with sorted indices have them in ``memory``."""

    way: ScatterWay
    memory: SortMemory

    @property
    def summary(self) -> str:
        """Return the step in words."""
        return self.way.value


def scatter_forms(op: Op) -> tuple[Any, ...]:
    """Return the steps of a scatter, by the number of its indices."""
    x, index, _ = op.args
    m, n = index.axes.size, x.axes.lengths[x.axes.index(op.attrs.axis)]
    digits = -(-max(n - 1, 1).bit_length() // 8) if isinstance(n, int) else 4
    memory = SortMemory(1, m, 4, min(digits, 4))
    copy, columns, short, long, runs = [(ScatterStep(way, memory),) for way in ScatterWay]
    sort = choice([MAX_SHARED_SORT_ELEMENTS - m], short, long)
    return (*copy, *choice([MAX_UNSORTED_POSITIONS - m], columns, (*sort, *runs)))


def scatter_parts(form: ScatterStep, names: CudaKernelNames) -> list[Part]:
    """Return the functions and other parts of a step of a scatter."""
    assert isinstance(names.kernel.work, Call)
    op = names.kernel.work.op
    if form.way is ScatterWay.COPY:
        copy = operand_copy(op, names.plan)
        return [] if copy is None else [copied(copy, names.chosen)]
    writer = _ScatterWriter(op, form.memory, names)
    if form.way is ScatterWay.BY_COLUMNS:
        return [writer.by_columns()]
    return [writer.by_runs()] if form.way is ScatterWay.BY_RUNS else writer.sort(form.way)


def columns_of(op: Op) -> Size:
    """Return the number of columns that a scatter's values have for each index."""
    x = op.args[0]
    outer, _, inner = around(x, x.axes.index(op.attrs.axis))
    return outer * inner


def operand_copy(op: Op, plan: Plan) -> Copy[Place] | None:
    """Return the copy of a scatter's operand to its result; None if these share memory."""
    target, source = (place_of(plan, plan.schedule.base[each]) for each in (op, op.args[0]))
    return None if target == source else Copy(target, source, op.axes.size * op.dtype.itemsize)


class _ScatterWriter:
    def __init__(self, op: Op, memory: SortMemory, names: CudaKernelNames) -> None:
        self.op, self.memory, self.names = op, memory, names
        x, index, value = op.args
        self.outer, n, self.inner = around(x, x.axes.index(op.attrs.axis))
        self.m = index.axes.size
        self.out, self.index, self.value = (names.memory(each) for each in (op, index, value))
        self.n, self.inner_text, self.m_text = map(names.length, (n, self.inner, self.m))
        self.dtype = name_of(op.dtype)
        self.sets = op.attrs.mode == "set"
        self.stored = "element" if self.sets else _combined(op.attrs.mode, self.dtype, names)

    @cached_property
    def sorting(self) -> DigitSort:
        """Return the sort of the indices, whose arrays are in scratch memory."""
        key = f"(uint32_t)({self.position('place')})"
        return DigitSort(self.names, self.memory, "uint32_t", key)

    def position(self, place: str) -> str:
        """Return the C text of index number ``place``, with negative indices wrapped."""
        found = f"(int64_t){self.index}[{place}]"
        return f"{found} < 0 ? {found} + {self.n} : {found}"

    def taken(self, place: str) -> list[str]:
        """Return the statements that combine value number ``place`` into index ``line``."""
        held = held_type(self.dtype)
        return [
            f"const int64_t to = (before * ({self.n}) + line) * inner + column;",
            f"const {held} element = "
            f"{self.value}[(before * ({self.m_text}) + {place}) * inner + column];",
            f"const {held} old = {self.out}[to];",
            f"{self.out}[to] = {self.stored};",
        ]

    def by_columns(self) -> CudaFunction:
        """Return the function with one thread per column."""
        body = [
            f"const int64_t inner = {self.inner_text}, before = at / inner, column = at % inner;",
            f"for (int64_t k = 0; k < {self.m_text}; k++) {{",
            f"    const int64_t line = {self.position('k')};",
            *["    " + line for line in self.taken("k")],
            "}",
        ]
        return self.names.by_elements(columns_of(self.op), body)

    def sort(self, way: ScatterWay) -> list[Part]:
        """Return the functions that sort the indices."""
        sort = self.sorting
        line = [f"const int64_t n = {self.m_text}, line = 0;"]
        if way is ScatterWay.SORT_BY_DIGITS:
            return sort.parts(line)
        body = [
            *line,
            *sort.arrays,
            f"const auto key = [&](int64_t place) -> uint32_t {{ return {sort.key}; }};",
            "geon_sort_line<uint32_t>((int)n, key, [&](int64_t place, int64_t position) {",
            f"    positions[{sort.last}][place] = (uint32_t)position;",
            f"    keys[{sort.last}][place] = key(position);",
            "});",
        ]
        return [self.names.function(body, Grid(1), THREADS_PER_BLOCK, True, files=FILES)]

    def by_runs(self) -> CudaFunction:
        """Return the function with one thread per column of each run of equal indices."""
        sort = self.sorting
        size: Size = self.outer * self.m * self.inner
        goes_on = f"k < {self.m_text} && sorted[k] == sorted[first]"
        if self.sets:  # the last value of a run wins
            run = [f"if (first + 1 < {self.m_text} && sorted[first + 1] == sorted[first]) return;",
                   *self.taken("order[first]")]  # fmt: skip
        else:
            run = [
                "if (first > 0 && sorted[first - 1] == sorted[first]) return;",
                f"for (int64_t k = first; {goes_on}; k++) {{",
                *["    " + line for line in self.taken("order[k]")],
                "}",
            ]
        body = [
            f"const int64_t inner = {self.inner_text}, column = at % inner;",
            f"const int64_t first = at / inner % ({self.m_text});",
            f"const int64_t before = at / inner / ({self.m_text});",
            *sort.arrays,
            f"const uint32_t *const sorted = keys[{sort.last}];",
            f"const uint32_t *const order = positions[{sort.last}];",
            "const int64_t line = sorted[first];",
            *run,
        ]
        return self.names.by_elements(size, body)


def _combined(mode: str, dtype: str, names: CudaKernelNames) -> str:
    """Return the C expression that combines ``old`` and ``element``."""
    if dtype in HALVES:
        names.calls([*c_expressions.cast_calls(dtype, "float32"),
                     *c_expressions.cast_calls("float32", dtype)])  # fmt: skip
    return c_expressions.combine_expression(mode, dtype, ("old", "element"), wraps=False)


def held_type(dtype: str) -> str:
    """Return the C type of elements in memory."""
    return "uint8_t" if dtype == "bool" else C_TYPES[dtype]
