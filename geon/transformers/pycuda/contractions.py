"""A contraction as CUDA: tiles of the result by blocks, operands by way of shared memory.

A block makes ``TILE`` rows and columns of the result; each thread has ``EACH`` of both. Operands
are any scalar code: it is computed when a tile is filled. Float32 sums of more than ``LONG`` terms
are put together in float64.
"""

from __future__ import annotations

from collections.abc import Sequence

from ...op_graph.affine import Size
from ...op_graph.dtypes import name_of
from ...op_graph.lengths import product
from ..kernels.contraction import Contraction, unit_of
from ..kernels.scalar import Scalar
from ..kernels.types import Loop
from ..printing.c_expressions import C_TYPES
from ..printing.contractions import ContractionPrinter
from .launches import Grid
from .naming import Function, KernelNames, indented
from .teams import Lines, places

TILE = 64  # rows and columns of a block's part of the result
DEPTH = 16  # summed indices that are in shared memory at one time
EACH = 4  # rows and columns of a thread
SIDE = TILE // EACH
THREADS = SIDE * SIDE
LONG = 512  # terms that are added in float32


def contraction_function(work: Contraction, names: KernelNames) -> Function:
    """The function of a contraction."""
    return _Writer(work, names).function()


class _Writer:
    def __init__(self, work: Contraction, names: KernelNames) -> None:
        self.work, self.names = work, names
        self.printer = ContractionPrinter(work, names)
        self.type = C_TYPES[name_of(work.dtype)]
        for loop in self.printer.loops:
            names.length(loop.extent)

    def size(self, loops: Sequence[Loop]) -> Size:
        """The number of indices of some loops together."""
        return product(loop.extent for loop in loops)

    def function(self) -> Function:
        """The text, and a block for each tile."""
        work, names = self.work, self.names
        rows, columns = self.size(work.rows), self.size(work.columns)
        deep = self.size(work.summed)
        tall, wide = (rows + TILE - 1) // TILE, (columns + TILE - 1) // TILE
        m, n, k = (names.length(each) for each in (rows, columns, deep))
        long = self.type == "float" and not (isinstance(deep, int) and deep <= LONG)
        body = [
            f"__shared__ {self.type} left_tile[{DEPTH}][{TILE + 1}];",
            f"__shared__ {self.type} right_tile[{DEPTH}][{TILE + 1}];",
            f"const int across = threadIdx.x % {SIDE}, down = threadIdx.x / {SIDE};",
            f"const int64_t tall = {names.length(tall)}, wide = {names.length(wide)};",
            f"const int64_t first_column = (int64_t)blockIdx.x % wide * {TILE};",
            f"const int64_t first_row = (int64_t)blockIdx.x / wide % tall * {TILE};",
        ]
        if work.batch:
            body.append("const int64_t batch = (int64_t)blockIdx.x / (wide * tall);")
            body += places(work.batch, "batch", names.length)
        body.append(f"{self.type} sums[{EACH}][{EACH}] = {{}};")
        inner = [
            *self.fill("left", work.left, work.rows, "row", m, k),
            *self.fill("right", work.right, work.columns, "column", n, k),
            "__syncthreads();",
            f"geon_multiply_tiles<{self.type}, {DEPTH}, {SIDE}, {EACH}>(",
            "    left_tile, right_tile, sums, down, across);",
            "__syncthreads();",
        ]
        loop = f"for (int64_t first_deep = {{}}; first_deep < {{}}; first_deep += {DEPTH}) {{{{"
        if long:
            body.append(f"double totals[{EACH}][{EACH}] = {{}};")
            piece = [
                f"const int64_t end = start + {LONG} < {k} ? start + {LONG} : {k};",
                loop.format("start", "end"),
                *indented(inner),
                "}",
                "geon_add_up(totals, sums);",
            ]
            body += [
                f"for (int64_t start = 0; start < {k}; start += {LONG}) {{",
                *indented(piece),
                "}",
            ]
        else:
            body += [loop.format("0", k), *indented(inner), "}"]
        body += self.stores(f"({self.type})totals[i][j]" if long else "sums[i][j]", m, n)
        units = self.size(work.batch) * tall * wide
        return names.function(body, Grid(units), THREADS, True, files=("product.cuh",))

    def fill(
        self, name: str, value: Scalar, loops: Sequence[Loop], side: str, size: str, deep: str
    ) -> Lines:
        """The statements that compute a tile of an operand, along what adjoins in memory."""
        work = self.work
        unit = unit_of(value, self.printer.loops)
        along = any(loop.name == unit for loop in work.summed)
        near, far = (DEPTH, TILE) if along else (TILE, DEPTH)
        at = {"near": f"k % {near}", "far": f"k / {near}"}
        deep_at, side_at = (at["near"], at["far"]) if along else (at["far"], at["near"])
        lines, text = self.printer.element(value)({})
        inside = [
            *places(loops, side, self.names.length),
            *places(work.summed, "deep", self.names.length),
            *lines,
            f"element = {text};",
        ]
        body = [
            f"const int in_depth = {deep_at}, in_{side} = {side_at};",
            f"const int64_t {side} = first_{side} + in_{side}, deep = first_deep + in_depth;",
            f"{self.type} element = 0;",
            f"if ({side} < {size} && deep < {deep}) {{",
            *indented(inside),
            "}",
            f"{name}_tile[in_depth][in_{side}] = element;",
        ]
        head = f"for (int k = threadIdx.x; k < {near * far}; k += {THREADS}) {{"
        return [head, *indented(body), "}"]

    def each(self, statements: Lines) -> Lines:
        """Statements for each element of a thread, ``i`` down and ``j`` across."""
        inner = [f"for (int j = 0; j < {EACH}; j++) {{", *indented(statements), "}"]
        inner = ["#pragma unroll", *inner]
        return ["#pragma unroll", f"for (int i = 0; i < {EACH}; i++) {{", *indented(inner), "}"]

    def stores(self, text: str, rows: str, columns: str) -> Lines:
        """The statements that store the elements of a thread."""
        work = self.work
        body = [
            f"const int64_t row = first_row + down + {SIDE} * i;",
            f"const int64_t column = first_column + across + {SIDE} * j;",
            f"if (row >= {rows} || column >= {columns}) continue;",
            *places(work.rows, "row", self.names.length),
            *places(work.columns, "column", self.names.length),
            f"const {self.type} sum = {text};",
            *self.printer.store({}, "sum"),
        ]
        return self.each(body)
