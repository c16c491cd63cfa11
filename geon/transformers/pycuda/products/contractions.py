"""Tiled contraction kernels: a block computes a tile of the result, via shared memory.

Operands may be any scalar expressions. Float32 sums of more than ``MAX_SERIAL_TERMS`` terms use
compensated summation; half-precision products accumulate in float32 on tensor cores. For few
results of long sums, blocks compute parts of a sum (split-K), which are added in order.
"""

from __future__ import annotations

from ....op_graph.values.dtypes import name_of
from ...printing.nests.contractions import ContractionPrinter
from ...printing.nests.loop_lines import indent
from ...printing.nests.parameters import Parameter
from ...printing.scalars.c_expressions import C_TYPES
from ..kernels.cooperative_threads import Lines, places
from ..launches.launch_ir import THREADS_PER_BLOCK, Grid
from ..launches.naming import CudaFunction, CudaKernelNames
from .large_products import large_function
from .product_forms import PartialSums, TiledProduct, blocks_of, results, size_of, tiles_along
from .product_tiles import MAX_SERIAL_TERMS
from .tile_loads import TileLoad, factors_of


def product_function(form: TiledProduct, names: CudaKernelNames) -> CudaFunction:
    """Return the kernel of a tiled product."""
    return (large_function if form.tiles.staged else by_tiles)(form, names)


def by_tiles(form: TiledProduct, names: CudaKernelNames) -> CudaFunction:
    """Return the kernel with a block per tile, or per part of a tile's sums."""
    return _ContractionWriter(form, names).by_tiles()


def sum_of_parts(form: PartialSums, names: CudaKernelNames) -> CudaFunction:
    """Return the kernel that adds the parts of each sum."""
    return _ContractionWriter(form.product, names).joined()


class _ContractionWriter:
    def __init__(self, form: TiledProduct, names: CudaKernelNames) -> None:
        self.work, self.tiles, self.cut = form
        self.names, work = names, form.work
        self.printer = ContractionPrinter(work, names)
        self.type = C_TYPES[name_of(work.dtype)]
        for loop in self.printer.loops:
            names.length(loop.extent)
        left, right, _ = factors_of(work)
        shared = (work, names, self.printer, self.tiles)
        self.left = TileLoad("left", left, self.tiles.rows, work.rows, "row", *shared)
        self.right = TileLoad("right", right, self.tiles.columns, work.columns, "column", *shared)
        self.sizes = tuple([
            names.length(size_of(loops)) for loops in (work.rows, work.columns, work.summed)
        ])  # fmt: skip
        self.number = Parameter("parts", "int64_t", self.cut, False)
        self.scratch = "" if self.cut is None else names.scratch()

    @property
    def further(self) -> list[Parameter]:
        """Return the parameter with the number of parts, if sums are split."""
        return [] if self.cut is None else [self.number]

    def by_tiles(self) -> CudaFunction:
        """Return the kernel with a block per tile, or per part of a tile's sums."""
        work, names, tiles = self.work, self.names, self.tiles
        tall, wide = (
            names.length(tiles_along(loops, each))
            for loops, each in ((work.rows, tiles.rows), (work.columns, tiles.columns))
        )
        deep = self.sizes[2]
        body = [
            *tiles.start(),
            f"const int64_t tall = {tall}, wide = {wide};",
            "int64_t tile = blockIdx.x;",
        ]
        if self.cut is not None:
            share = f"(({deep} + parts - 1) / parts + {tiles.depth - 1}) / {tiles.depth}"
            body += [
                "const int64_t part = tile % parts;",
                "tile /= parts;",
                f"const int64_t share = {share} * {tiles.depth}, begin = part * share;",
                f"const int64_t end = begin + share < {deep} ? begin + share : {deep};",
            ]
        else:
            body.append(f"const int64_t begin = 0, end = {deep};")
        body += [
            f"const int64_t first_column = tile % wide * {tiles.columns};",
            f"const int64_t first_row = tile / wide % tall * {tiles.rows};",
        ]
        if work.batch:
            body.append("const int64_t batch = tile / (wide * tall);")
            body += places(work.batch, "batch", names.length)
        body += [*self.left.declared(), *self.right.declared(), *self.summed()]
        body.append(f"__shared__ {self.type} own_sums[{tiles.wide}][{THREADS_PER_BLOCK}];")
        stores = self.stored()
        if self.cut is not None:
            place = f"(({self.type} *){self.scratch})[part * ({self.count}) + {self.place}]"
            stores = ["if (parts > 1) {", f"    {place} = sum;", "    return;", "}", *stores]
        body += self.each(stores)
        grid = Grid(blocks_of(work, tiles), parts=self.cut)
        files = tiles.files
        two = tiles.by_matrices or tiles.dtype == "float32"
        together = 2 if two and not tiles.turns else 1
        return names.function(body, grid, THREADS_PER_BLOCK, True, self.further, files, together)

    @property
    def long(self) -> bool:
        """Return True if sums are so long that compensated summation is used."""
        deep = size_of(self.work.summed)
        tiles = self.tiles
        return (
            tiles.dtype == "float32"
            and not tiles.tf32
            and not (isinstance(deep, int) and deep <= MAX_SERIAL_TERMS)
        )

    @property
    def held(self) -> str:
        """Return the C name of a thread's final sums."""
        return "totals" if self.long else "sums"

    @property
    def count(self) -> str:
        """Return the C text of the number of sums."""
        return self.names.length(results(self.work))

    @property
    def place(self) -> str:
        """Return the C text of the index of a sum among all."""
        rows, columns, _ = self.sizes
        line = f"(batch * ({rows}) + row)" if self.work.batch else "row"
        return f"{line} * ({columns}) + column"

    def summed(self) -> Lines:
        """Return the loop that computes a thread's sums from ``begin`` to ``end``."""
        tiles = self.tiles
        names, flush, ending = ["sums"], [], []
        if self.long:
            names += ["totals", "rests"]
            flush = [f"if ((first_deep - begin) % {MAX_SERIAL_TERMS} == 0 || first_deep >= end)",
                     "    geon_add_up(totals, rests, sums);"]  # fmt: skip
            ending = ["geon_add_rests(totals, rests);"]
        shape = f"[{tiles.high}][{tiles.wide}] = {{}}"
        begun = [f"{tiles.sum_type} {', '.join(name + shape for name in names)};"]
        next_deep = [*self.left.ahead("first_deep", "end"), *self.right.ahead("first_deep", "end")]
        read = ["if (first_deep < end) {", *indent(next_deep), "}"] if next_deep else []
        multiply = [*tiles.multiply(self.left.turned, self.right.turned), *flush]
        body = [
            *read,
            "if (first_deep > begin) {",
            *indent(multiply if tiles.turns else [*multiply, "__syncthreads();"]),
            "}",
            "if (first_deep >= end) break;",
            *self.left.put("first_deep", "end"),
            *self.right.put("first_deep", "end"),
            "__syncthreads();",
        ]
        # double buffering: a barrier has passed since the tile that is filled next was read
        if tiles.turns:
            begun.append("int at = 0;")
            body.append("at ^= 1;")
        head = f"for (int64_t first_deep = begin;; first_deep += {tiles.depth}) {{"
        return [*begun, head, *indent(body), "}", *ending]

    def each(self, statements: Lines) -> Lines:
        """Return ``statements`` in a loop over each ``sum`` of a thread with its indices."""
        rows, columns, _ = self.sizes
        row, column = self.tiles.places()
        return [
            f"geon_each_sum({self.held}, own_sums, {rows}, {columns},",
            f"    {row}, {column},",
            f"    [&](int64_t row, int64_t column, {self.type} sum) {{",
            *indent(statements),
            "});",
        ]

    def stored(self) -> Lines:
        """Return the statements that compute and store the results of one ``sum``."""
        return [
            *places(self.work.rows, "row", self.names.length),
            *places(self.work.columns, "column", self.names.length),
            *self.printer.store({}, "sum"),
        ]

    def joined(self) -> CudaFunction:
        """Return the kernel that adds the parts of each sum, one thread per result."""
        rows, columns, _ = self.sizes
        wide = "double" if self.type == "float" else self.type
        body = [
            f"const int64_t at = (int64_t)blockIdx.x * {THREADS_PER_BLOCK} + threadIdx.x;",
            f"if (at >= {self.count}) return;",
            f"{wide} total = 0;",
            "for (int64_t part = 0; part < parts; part++)",
            f"    total += (({self.type} *){self.scratch})[part * ({self.count}) + at];",
            f"const int64_t column = at % ({columns}), row = at / ({columns}) % ({rows});",
        ]
        if self.work.batch:
            body.append(f"const int64_t batch = at / (({columns}) * ({rows}));")
            body += places(self.work.batch, "batch", self.names.length)
        body += [f"const {self.type} sum = ({self.type})total;", *self.stored()]
        grid = Grid(results(self.work), THREADS_PER_BLOCK)
        return self.names.function(body, grid, THREADS_PER_BLOCK, False, self.further)
