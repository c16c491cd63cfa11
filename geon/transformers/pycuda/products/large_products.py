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
from ...printing.nests.loop_lines import indent
from ..kernels.cooperative_threads import WARP_GROUP_THREADS, WARP_SIZE, Lines, places
from ..launches.device import PipelineStages
from ..launches.launch_ir import NOMINAL_DEVICE, THREADS_PER_BLOCK, Grid
from ..launches.naming import CudaFunction, CudaKernelNames
from .product_tiles import Tiles
from .tile_loads import TileLoad, factors_of

TILE_ROWS, TILE_COLUMNS, TILE_DEPTH = 128, 256, 64
STAGES = PipelineStages(
    2 * TILE_DEPTH * (TILE_ROWS + TILE_COLUMNS), least=2
)  # bytes of both operands' tiles per stage
MIN_LARGE_TILES = NOMINAL_DEVICE.processors * 3 // 4  # min. tiles: one fills a multiprocessor
MIN_LARGE_DEPTH = (
    4 * TILE_DEPTH
)  # min. reduced elements, so that the pipeline is full most of the time
# Tiles of small matrices in a batch would be mostly empty: require half of each side.
MIN_LARGE_ROWS, MIN_LARGE_COLUMNS = TILE_ROWS // 2, TILE_COLUMNS // 2
# Registers per loading and per multiplying thread, by the number of multiplying warp groups;
# together they use all registers.
REGISTERS_PER_THREAD = {2: (96, 200), 3: (72, 144)}
BAND_TILE_ROWS = 8  # rows of tiles that run concurrently, so that they share columns in the cache
FILES = ("chunks.cuh", "matrices.cuh", "stages.cuh", "large.cuh")


def large_holds(work: Contraction) -> tuple[Size, ...]:
    """Return sizes that are all >= 0 if large tiles pay."""
    tall, wide = tiles_along(work.rows, TILE_ROWS), tiles_along(work.columns, TILE_COLUMNS)
    batch, deep = (product(loop.extent for loop in loops) for loops in (work.batch, work.summed))
    rows, columns = (product(loop.extent for loop in loops) for loops in (work.rows, work.columns))
    return (
        batch * tall * wide - MIN_LARGE_TILES,
        deep - MIN_LARGE_DEPTH,
        rows - MIN_LARGE_ROWS,
        columns - MIN_LARGE_COLUMNS,
    )


def tiles_along(loops: Sequence[Loop], each: int) -> Size:
    """Return the number of tiles along loops."""
    return (product(loop.extent for loop in loops) + each - 1) // each


def large_function(work: Contraction, names: CudaKernelNames) -> CudaFunction | None:
    """Return the kernel of a large half-precision product in memory; None for others."""
    left, right, dtype = factors_of(work)
    if dtype not in HALVES or any(isinstance(n, int) and n < 0 for n in large_holds(work)):
        return None
    tiles, printer = (
        Tiles(dtype, TILE_ROWS, TILE_COLUMNS, TILE_DEPTH),
        ContractionPrinter(work, names),
    )
    shared = (work, names, printer, tiles)
    fills = (
        TileLoad("left", left, TILE_ROWS, work.rows, "row", *shared),
        TileLoad("right", right, TILE_COLUMNS, work.columns, "column", *shared),
    )
    if any(fill.chunks is None for fill in fills):
        return None
    grid = Grid(
        product(loop.extent for loop in work.batch)
        * tiles_along(work.rows, TILE_ROWS)
        * tiles_along(work.columns, TILE_COLUMNS)
    )
    body = [
        *place_tile(work, names),
        f"using large = geon_large<{tiles.kind}, {turned_of(fills)}>;",
        f"const int64_t end = {names.length(product(loop.extent for loop in work.summed))};",
        f"stages.begin({THREADS_PER_BLOCK // WARP_SIZE});",
        *bringing(THREADS_PER_BLOCK // WARP_GROUP_THREADS, [
            *[fill.started() for fill in fills],
            "for (int64_t first_deep = 0; first_deep < end; first_deep += GEON_STEP) {",
            *indent(step(
                fills[0].brought("tiles", "first_deep", "end"),
                fills[1].brought("tiles + large::LEFT_BYTES", "first_deep", "end"),
            )),
            "}",
        ]),
        "    float sums[large::HIGH][large::WIDE] = {};",
        "    geon_multiply_in_steps<large>(stages, end, sums);",
        *indent(store_sums(work, names, printer)),
        "}",
    ]  # fmt: skip
    return names.function(
        body, grid, THREADS_PER_BLOCK + WARP_GROUP_THREADS, True, files=FILES, stages=STAGES
    )


def turned_of(fills: Sequence[TileLoad]) -> str:
    """Return the C text of which tiles are transposed."""
    return ", ".join([str(fill.turned).lower() for fill in fills])


def bringing(groups: int, body: Lines) -> Lines:
    """Return the branch of the loading threads, and the start of that of the multiplying threads.

    The latter are ``groups`` warp groups. The loading threads give them registers.
    """
    give, take = REGISTERS_PER_THREAD[groups]
    return [
        f"if (threadIdx.x >= {groups * WARP_GROUP_THREADS}) {{",
        f"    geon_give_registers<{give}>();",
        *indent(body),
        "    geon_wait_for_copies();",
        "} else {",
        f"    geon_take_registers<{take}>();",
    ]


def step(first: Lines, second: Lines) -> Lines:
    """Return the statements of one pipeline stage, which load its two tiles to ``tiles``."""
    head = ["stages.wait_to_fill();", "unsigned char *const tiles = stages.tiles();"]
    return [*head, *first, *second, "stages.pass();"]


def place_tile(work: Contraction, names: CudaKernelNames) -> Lines:
    """Return the statements that compute a block's tile: bands of rows, column by column."""
    tall, wide = (
        names.length(tiles_along(loops, each))
        for loops, each in ((work.rows, TILE_ROWS), (work.columns, TILE_COLUMNS))
    )
    found = [
        f"GEON_STAGES({STAGES.bytes})",
        f"const int64_t tall = {tall}, wide = {wide};",
        "const int64_t tile = (int64_t)blockIdx.x % (tall * wide);",
        f"const int64_t band = tile / ({BAND_TILE_ROWS} * wide) * {BAND_TILE_ROWS}, "
        "in_band = tile - band * wide;",
        f"const int64_t high = tall - band < {BAND_TILE_ROWS} ? tall - band : {BAND_TILE_ROWS};",
        f"const int64_t first_row = (band + in_band % high) * {TILE_ROWS};",
        f"const int64_t first_column = in_band / high * {TILE_COLUMNS};",
    ]
    if work.batch:
        found.append("const int64_t batch = (int64_t)blockIdx.x / (tall * wide);")
        found += places(work.batch, "batch", names.length)
    return found


def store_sums(work: Contraction, names: CudaKernelNames, printer: ContractionPrinter) -> Lines:
    """Return the statements that compute and store the results."""
    rows, columns = (
        names.length(product(loop.extent for loop in loops)) for loops in (work.rows, work.columns)
    )
    return [
        "geon_each_of_large<large>(",
        f"    stages.space, sums, first_row, {rows}, first_column, {columns},",
        "    [&](int64_t row, int64_t column, float sum) {",
        *indent([
            *places(work.rows, "row", names.length),
            *places(work.columns, "column", names.length),
            *printer.store({}, "sum"),
        ]),
        "});",
    ]  # fmt: skip
