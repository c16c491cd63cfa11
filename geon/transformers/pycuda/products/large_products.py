"""Large half-precision products: warp-specialised kernels with multi-stage pipelines.

A block computes a tile of 128 x 256, which reads a third less from the device's cache than tiles of
128 x 128. Four of its warps load tiles, as many stages ahead as shared memory allows, while eight
warps multiply.
"""

from __future__ import annotations

from collections.abc import Sequence

from ....op_graph.axes.affine import Size
from ....op_graph.axes.lengths import product
from ....op_graph.values.dtypes import HALVES
from ...kernels.ir.nest import Loop
from ...kernels.products.contraction import Contraction
from ...printing.nests.contractions import ContractionPrinter
from ..kernels.cooperative_threads import WARP, Lines, places
from ..launches.device import Stages
from ..launches.launch_ir import Grid
from ..launches.naming import Function, KernelNames, indented
from .product_tiles import THREADS, Tiles
from .tile_loads import Fill, multiplied

ROWS, COLUMNS, STEP = 128, 256, 64
STAGES = Stages(2 * STEP * (ROWS + COLUMNS), least=2)  # bytes of both operands' tiles per stage
BLOCKS = 96  # min. tiles, so that most of a large device is busy
DEEP = 4 * STEP  # min. reduced elements, so that the pipeline is full most of the time
# Tiles of small matrices in a batch would be mostly empty: require half of each side.
LEAST_ROWS, LEAST_COLUMNS = ROWS // 2, COLUMNS // 2
BRINGING = 128  # threads that load tiles
# Registers per loading and per multiplying thread, by the number of multiplying threads; together
# they use all registers.
REGISTERS = {256: (96, 200), 384: (72, 144)}
BAND = 8  # rows of tiles that run concurrently, so that they share columns in the cache
FILES = ("chunks.cuh", "matrices.cuh", "stages.cuh", "large.cuh")


def large_holds(work: Contraction) -> tuple[Size, ...]:
    """Return sizes that are all >= 0 if large tiles pay."""
    tall, wide = tiles_along(work.rows, ROWS), tiles_along(work.columns, COLUMNS)
    batch, deep = (product(loop.extent for loop in loops) for loops in (work.batch, work.summed))
    rows, columns = (product(loop.extent for loop in loops) for loops in (work.rows, work.columns))
    return batch * tall * wide - BLOCKS, deep - DEEP, rows - LEAST_ROWS, columns - LEAST_COLUMNS


def tiles_along(loops: Sequence[Loop], each: int) -> Size:
    """Return the number of tiles along loops."""
    return (product(loop.extent for loop in loops) + each - 1) // each


def large_function(work: Contraction, names: KernelNames) -> Function | None:
    """Return the kernel of a large half-precision product in memory; None for others."""
    left, right, dtype = multiplied(work)
    if dtype not in HALVES or any(isinstance(n, int) and n < 0 for n in large_holds(work)):
        return None
    tiles, printer = Tiles(dtype, ROWS, COLUMNS, STEP), ContractionPrinter(work, names)
    shared = (work, names, printer, tiles)
    fills = (
        Fill("left", left, ROWS, work.rows, "row", *shared),
        Fill("right", right, COLUMNS, work.columns, "column", *shared),
    )
    if any(fill.chunks is None for fill in fills):
        return None
    grid = Grid(
        product(loop.extent for loop in work.batch)
        * tiles_along(work.rows, ROWS)
        * tiles_along(work.columns, COLUMNS)
    )
    body = [
        *placed(work, names),
        f"using large = geon_large<{tiles.kind}, {turned_of(fills)}>;",
        f"const int64_t end = {names.length(product(loop.extent for loop in work.summed))};",
        f"stages.begin({THREADS // WARP});",
        *bringing(THREADS, [
            *[fill.started() for fill in fills],
            "for (int64_t first_deep = 0; first_deep < end; first_deep += GEON_STEP) {",
            *indented(step(
                fills[0].brought("tiles", "first_deep", "end"),
                fills[1].brought("tiles + large::LEFT_BYTES", "first_deep", "end"),
            )),
            "}",
        ]),
        "    float sums[large::HIGH][large::WIDE] = {};",
        "    geon_multiply_in_steps<large>(stages, end, sums);",
        *indented(stored(work, names, printer)),
        "}",
    ]  # fmt: skip
    return names.function(body, grid, THREADS + BRINGING, True, files=FILES, stages=STAGES)


def turned_of(fills: Sequence[Fill]) -> str:
    """Return the C text of which tiles are transposed."""
    return ", ".join([str(fill.turned).lower() for fill in fills])


def bringing(multiply: int, body: Lines) -> Lines:
    """Return the branch of the loading threads, and the start of that of the multiplying threads.

    ``multiply`` is the number of the latter. The loading threads give them registers.
    """
    give, take = REGISTERS[multiply]
    return [
        f"if (threadIdx.x >= {multiply}) {{",
        f"    geon_give_registers<{give}>();",
        *indented(body),
        "    geon_wait_for_copies();",
        "} else {",
        f"    geon_take_registers<{take}>();",
    ]


def step(first: Lines, second: Lines) -> Lines:
    """Return the statements of one pipeline stage, which load its two tiles to ``tiles``."""
    head = ["stages.wait_to_fill();", "unsigned char *const tiles = stages.tiles();"]
    return [*head, *first, *second, "stages.pass();"]


def placed(work: Contraction, names: KernelNames) -> Lines:
    """Return the statements that compute a block's tile: bands of rows, column by column."""
    tall, wide = (
        names.length(tiles_along(loops, each))
        for loops, each in ((work.rows, ROWS), (work.columns, COLUMNS))
    )
    found = [
        f"GEON_STAGES({STAGES.bytes})",
        f"const int64_t tall = {tall}, wide = {wide};",
        "const int64_t tile = (int64_t)blockIdx.x % (tall * wide);",
        f"const int64_t band = tile / ({BAND} * wide) * {BAND}, in_band = tile - band * wide;",
        f"const int64_t high = tall - band < {BAND} ? tall - band : {BAND};",
        f"const int64_t first_row = (band + in_band % high) * {ROWS};",
        f"const int64_t first_column = in_band / high * {COLUMNS};",
    ]
    if work.batch:
        found.append("const int64_t batch = (int64_t)blockIdx.x / (tall * wide);")
        found += places(work.batch, "batch", names.length)
    return found


def stored(work: Contraction, names: KernelNames, printer: ContractionPrinter) -> Lines:
    """Return the statements that compute and store the results."""
    rows, columns = (
        names.length(product(loop.extent for loop in loops)) for loops in (work.rows, work.columns)
    )
    return [
        "geon_each_of_large<large>(",
        f"    stages.space, sums, first_row, {rows}, first_column, {columns},",
        "    [&](int64_t row, int64_t column, float sum) {",
        *indented([
            *places(work.rows, "row", names.length),
            *places(work.columns, "column", names.length),
            *printer.store({}, "sum"),
        ]),
        "});",
    ]  # fmt: skip
