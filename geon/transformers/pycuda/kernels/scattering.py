"""Scatter: set or combine values at indices, in the order of the indices.

Up to ``MAX_UNSORTED_POSITIONS`` indices are handled by one thread per column. More are sorted
first, so that equal
ones are adjacent; then one thread per run and column applies a run in order.
"""

from __future__ import annotations

from functools import partial

from ....op_graph.axes.affine import Size
from ....op_graph.op_graph import Op
from ....op_graph.values.dtypes import HALVES, name_of
from ...printing.scalars import c_expressions
from ...printing.scalars.c_functions import C_TYPES
from ..launches.launch_ir import THREADS_PER_BLOCK, Copy, Grid
from ..launches.naming import CudaFunction, CudaKernelNames, Part, copied, variants
from .sorting import FILES, MAX_SHARED_SORT_ELEMENTS, DigitSort, SortMemory, around

MAX_UNSORTED_POSITIONS = 8  # max. indices that are not sorted


def position_memory(op: Op) -> SortMemory:
    """Return the scratch memory of the sort of the indices."""
    return SortMemory(1, op.args[1].axes.size, 4, MAX_UNSORTED_POSITIONS)


def scatter_parts(op: Op, names: CudaKernelNames, number: int) -> list[Part]:
    """Return the parts of a scatter; an open number of indices chooses a variant at run time."""
    writer = _ScatterWriter(op, names)
    base = names.plan.schedule.base
    target, source = names.place_of(op), names.place_of(base[op.args[0]])
    found: list[Part] = []
    if target != source:
        copy = Copy(target, source, op.axes.size * op.dtype.itemsize)
        found.append(copied(copy, names.chosen))
    m = writer.m

    def many() -> list[Part]:
        """Sort indices, then apply runs of equal ones."""
        short = partial(writer.sort, True)
        sort = variants([MAX_SHARED_SORT_ELEMENTS - m], short, partial(writer.sort, False))
        return [*sort, writer.by_runs()]

    return [*found, *variants([MAX_UNSORTED_POSITIONS - m], writer.few, many)]


class _ScatterWriter:
    def __init__(self, op: Op, names: CudaKernelNames) -> None:
        self.op, self.names = op, names
        x, index, value = op.args
        self.outer, n, self.inner = around(x, x.axes.index(op.attrs.axis))
        self.m = index.axes.size
        self.out, self.index, self.value = (names.memory(each) for each in (op, index, value))
        self.n, self.inner_text, self.m_text = map(names.length, (n, self.inner, self.m))
        self.dtype = name_of(op.dtype)
        self.sets = op.attrs.mode == "set"
        self.stored = "element" if self.sets else _combined(op.attrs.mode, self.dtype, names)
        digits = -(-max(n - 1, 1).bit_length() // 8) if isinstance(n, int) else 4
        key = f"(uint32_t)({self.position('place')})"
        memory = position_memory(op)
        self.sorting = (
            None
            if isinstance(self.m, int) and self.m <= MAX_UNSORTED_POSITIONS
            else DigitSort(names, memory, "uint32_t", key, min(digits, 4))
        )

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

    def few(self) -> list[Part]:
        """Return the variant with one thread per column."""
        size: Size = self.outer * self.inner
        body = [
            f"const int64_t inner = {self.inner_text}, before = at / inner, column = at % inner;",
            f"for (int64_t k = 0; k < {self.m_text}; k++) {{",
            f"    const int64_t line = {self.position('k')};",
            *["    " + line for line in self.taken("k")],
            "}",
        ]
        return [self.names.by_elements(size, body)]

    def sort(self, short: bool) -> list[Part]:
        """Return the functions that sort the indices."""
        sort = self.sorting
        assert sort is not None
        line = [f"const int64_t n = {self.m_text}, line = 0;"]
        if not short:
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
        assert sort is not None
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
