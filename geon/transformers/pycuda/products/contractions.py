"""A contraction as CUDA: tiles of the result by blocks, operands by way of shared memory.

Operands are any scalar code. Float32 sums of more than ``LONG`` terms are put together with what
rounding takes from them; those of halves are summed by tensor cores in float32. Where there are few
results of long sums, blocks find parts of them, which are put together in their order.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ....op_graph.axes.affine import Size
from ....op_graph.axes.lengths import product
from ....op_graph.values.dtypes import name_of
from ...kernels.ir.nest import Loop
from ...kernels.products.contraction import Contraction
from ...printing.nests.contractions import ContractionPrinter
from ...printing.nests.parameters import Parameter
from ...printing.scalars.c_expressions import C_TYPES
from ..kernels.cooperative_threads import Lines, places
from ..launches.launch_ir import LEAST, Grid, Parts
from ..launches.naming import Either, Function, KernelNames, Part, indented
from ..launches.target import takes_tf32
from .large_products import BLOCKS, large_function, large_holds
from .product_tiles import THREADS, Tiles, large_tiles, tiles_for
from .tile_loads import Fill, multiplied

LONG = 64  # terms that are added in float32: equal ones are right to 1e-6
SHORTEST = 2 * LONG  # terms of sums that large tiles of float32 are worth it for
FILLING = 256  # blocks that fill a device: fewer are cut


def size_of(loops: Sequence[Loop]) -> Size:
    """The number of indices of some loops together."""
    return product(loop.extent for loop in loops)


def tiles_of(work: Contraction, tf32: bool) -> Tiles:
    """The tiles of a contraction; with ``tf32`` tensor cores take float32 too."""
    return tiles_for(multiplied(work)[2], size_of(work.rows), size_of(work.columns), tf32)


def blocks_of(work: Contraction, tiles: Tiles) -> Size:
    """How many tiles its results take."""
    tall = (size_of(work.rows) + tiles.rows - 1) // tiles.rows
    wide = (size_of(work.columns) + tiles.columns - 1) // tiles.columns
    return size_of(work.batch) * tall * wide


def results(work: Contraction) -> Size:
    """How many sums there are."""
    return size_of([*work.batch, *work.rows, *work.columns])


def cut_deep(work: Contraction, tiles: Tiles) -> Parts | None:
    """How long sums are cut into parts; None where they are never."""
    deep, blocks = size_of(work.summed), blocks_of(work, tiles)
    if isinstance(deep, int) and deep <= LEAST:
        return None
    if isinstance(blocks, int) and 2 * blocks > FILLING:
        return None
    return Parts(deep, blocks, FILLING)


def contraction_parts(work: Contraction, names: KernelNames) -> list[Part]:
    """The functions of a contraction."""
    small = tiles_of(work, takes_tf32(names.plan.schedule.target))
    large = large_function(work, names)
    if large is not None:
        return chosen(large_holds(work), [large], lambda: _Writer(work, names, small).parts())
    tiles = None if small.tf32 else large_tiles(small.dtype)
    holds = () if tiles is None else wide_holds(work, tiles)
    if tiles is None or any(isinstance(size, int) and size < 0 for size in holds):
        return _Writer(work, names, small).parts()
    writer = _Writer(work, names, tiles)
    if writer.left.chunks is None or writer.right.chunks is None:
        return _Writer(work, names, small).parts()
    return chosen(holds, [writer.by_tiles("")], lambda: _Writer(work, names, small).parts())


def chosen(
    holds: Sequence[Size], large: Sequence[Part], small: Callable[[], Sequence[Part]]
) -> list[Part]:
    """Large tiles where none of these sizes is negative, else small ones."""
    open_sizes = tuple([size for size in holds if not isinstance(size, int)])
    return [Either(open_sizes, tuple(large), tuple(small()))] if open_sizes else [*large]


def wide_holds(work: Contraction, tiles: Tiles) -> tuple[Size, ...]:
    """Sizes none of which is negative where large tiles of float32 are worth it, of operands that
    lie in memory: they are full by half at least, sums take more time than what is done with them,
    and most of a large device has one.
    """
    rows, columns = size_of(work.rows), size_of(work.columns)
    full = rows - tiles.rows // 2 - 1, columns - tiles.columns // 2 - 1
    return blocks_of(work, tiles) - BLOCKS, size_of(work.summed) - SHORTEST, *full


class _Writer:
    def __init__(self, work: Contraction, names: KernelNames, tiles: Tiles) -> None:
        self.work, self.names, self.tiles = work, names, tiles
        self.printer = ContractionPrinter(work, names)
        self.type = C_TYPES[name_of(work.dtype)]
        for loop in self.printer.loops:
            names.length(loop.extent)
        left, right, _ = multiplied(work)
        shared = (work, names, self.printer, self.tiles)
        self.left = Fill("left", left, self.tiles.rows, work.rows, "row", *shared)
        self.right = Fill("right", right, self.tiles.columns, work.columns, "column", *shared)
        self.sizes = tuple([
            names.length(size_of(loops)) for loops in (work.rows, work.columns, work.summed)
        ])  # fmt: skip
        self.cut = None if tiles.turns else cut_deep(work, tiles)
        self.number = Parameter("parts", "int64_t", self.cut, False)

    @property
    def further(self) -> list[Parameter]:
        """The parameter that has the number of parts."""
        return [] if self.cut is None else [self.number]

    def parts(self) -> list[Part]:
        """The function of tiles, and the one that puts parts of sums together."""
        scratch = self.names.scratch() if self.cut is not None else ""
        found: list[Part] = [self.by_tiles(scratch)]
        if self.cut is not None:
            joined = self.joined(scratch)
            holds = (
                FILLING - 2 * blocks_of(self.work, self.tiles),
                size_of(self.work.summed) - LEAST - 1,
            )
            if all(isinstance(size, int) for size in holds):
                return [*found, joined]
            found.append(Either(holds, (joined,), ()))
        return found

    def by_tiles(self, scratch: str) -> Function:
        """A block for each tile, or for each part of its sums."""
        work, names, tiles = self.work, self.names, self.tiles
        tall, wide = (
            names.length((size_of(loops) + each - 1) // each)
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
        body.append(f"__shared__ {self.type} own_sums[{tiles.wide}][{THREADS}];")
        stores = self.stored()
        if self.cut is not None:
            place = f"(({self.type} *){scratch})[part * ({self.count}) + {self.place}]"
            stores = ["if (parts > 1) {", f"    {place} = sum;", "    return;", "}", *stores]
        body += self.each(stores)
        grid = Grid(blocks_of(work, tiles), parts=self.cut)
        files = tiles.files
        two = tiles.by_matrices or tiles.dtype == "float32"
        together = 2 if two and not tiles.turns else 1
        return names.function(
            body, grid, THREADS, True, self.further, files, together, self.shared()
        )

    def shared(self) -> int:
        """The bytes of shared memory: the tiles of both operands, and sums on their way."""
        tiles = self.tiles
        found = tiles.wide * THREADS * self.work.dtype.itemsize
        return found + sum(tiles.bytes(fill.lines, fill.turned) for fill in (self.left, self.right))

    @property
    def long(self) -> bool:
        """Whether sums are so long that what rounding takes from them is kept."""
        deep = size_of(self.work.summed)
        tiles = self.tiles
        return (
            tiles.dtype == "float32"
            and not tiles.tf32
            and not (isinstance(deep, int) and deep <= LONG)
        )

    @property
    def held(self) -> str:
        """What a thread has its sums in at the end."""
        return "totals" if self.long else "sums"

    @property
    def count(self) -> str:
        """How many sums there are, as text."""
        return self.names.length(results(self.work))

    @property
    def place(self) -> str:
        """Where the sum of a row and column lies among all, as text."""
        rows, columns, _ = self.sizes
        line = f"(batch * ({rows}) + row)" if self.work.batch else "row"
        return f"{line} * ({columns}) + column"

    def summed(self) -> Lines:
        """The statements that find a thread's sums from ``begin`` to ``end``."""
        tiles = self.tiles
        names, flush, ending = ["sums"], [], []
        if self.long:
            names += ["totals", "rests"]
            flush = [f"if ((first_deep - begin) % {LONG} == 0 || first_deep >= end)",
                     "    geon_add_up(totals, rests, sums);"]  # fmt: skip
            ending = ["geon_add_rests(totals, rests);"]
        shape = f"[{tiles.high}][{tiles.wide}] = {{}}"
        begun = [f"{tiles.sum_type} {', '.join(name + shape for name in names)};"]
        next_deep = [*self.left.ahead("first_deep", "end"), *self.right.ahead("first_deep", "end")]
        read = ["if (first_deep < end) {", *indented(next_deep), "}"] if next_deep else []
        multiply = [*tiles.multiply(self.left.turned, self.right.turned), *flush]
        body = [
            *read,
            "if (first_deep > begin) {",
            *indented(multiply if tiles.turns else [*multiply, "__syncthreads();"]),
            "}",
            "if (first_deep >= end) break;",
            *self.left.put("first_deep", "end"),
            *self.right.put("first_deep", "end"),
            "__syncthreads();",
        ]
        if tiles.turns:  # nobody reads any more what is filled next: all have met since
            begun.append("int at = 0;")
            body.append("at ^= 1;")
        head = f"for (int64_t first_deep = begin;; first_deep += {tiles.depth}) {{"
        return [*begun, head, *indented(body), "}", *ending]

    def each(self, statements: Lines) -> Lines:
        """Statements for each ``sum`` of a thread, of a ``row`` and ``column``."""
        rows, columns, _ = self.sizes
        row, column = self.tiles.places()
        return [
            f"geon_each_sum({self.held}, own_sums, {rows}, {columns},",
            f"    {row}, {column},",
            f"    [&](int64_t row, int64_t column, {self.type} sum) {{",
            *indented(statements),
            "});",
        ]

    def stored(self) -> Lines:
        """The statements that store all results of the ``sum`` of a row and column."""
        return [
            *places(self.work.rows, "row", self.names.length),
            *places(self.work.columns, "column", self.names.length),
            *self.printer.store({}, "sum"),
        ]

    def joined(self, scratch: str) -> Function:
        """A thread for each result, which adds the parts of its sum."""
        rows, columns, _ = self.sizes
        wide = "double" if self.type == "float" else self.type
        body = [
            f"const int64_t at = (int64_t)blockIdx.x * {THREADS} + threadIdx.x;",
            f"if (at >= {self.count}) return;",
            f"{wide} total = 0;",
            "for (int64_t part = 0; part < parts; part++)",
            f"    total += (({self.type} *){scratch})[part * ({self.count}) + at];",
            f"const int64_t column = at % ({columns}), row = at / ({columns}) % ({rows});",
        ]
        if self.work.batch:
            body.append(f"const int64_t batch = at / (({columns}) * ({rows}));")
            body += places(self.work.batch, "batch", self.names.length)
        body += [f"const {self.type} sum = ({self.type})total;", *self.stored()]
        grid = Grid(results(self.work), THREADS)
        return self.names.function(body, grid, THREADS, False, self.further)
