"""Large half-precision products: warp-specialised kernels with multi-stage pipelines.

A block computes a tile of 128 x 256, which reads a third less from the device's cache than tiles of
128 x 128. Four of its warps load tiles, as many stages ahead as shared memory allows, while eight
warps multiply.
"""

from __future__ import annotations

from collections.abc import Sequence

from ...kernels.products.contraction import Contraction
from ...printing.nests.contractions import ContractionPrinter
from ...printing.nests.loop_lines import indent
from ..kernels.cooperative_threads import WARP_GROUP_THREADS, WARP_SIZE, Lines, places
from ..launches.device import PipelineStages
from ..launches.launch_ir import THREADS_PER_BLOCK, Grid
from ..launches.naming import CudaFunction, CudaKernelNames
from .product_forms import TiledProduct, blocks_of, size_of, tiles_along
from .product_tiles import Tiles
from .tile_loads import TileLoad, factors_of

# Registers per loading and per multiplying thread, by the number of multiplying warp groups;
# together they use all registers.
REGISTERS_PER_THREAD = {2: (96, 200), 3: (72, 144)}
BAND_TILE_ROWS = 8  # rows of tiles that run concurrently, so that they share columns in the cache
FILES = ("chunks.cuh", "matrices.cuh", "stages.cuh", "large.cuh")


def stages_of(tiles: Tiles) -> PipelineStages:
    """Return the stages of a pipeline, each of which holds the tiles of both operands."""
    return PipelineStages(2 * tiles.depth * (tiles.rows + tiles.columns), least=2)


def large_function(form: TiledProduct, names: CudaKernelNames) -> CudaFunction:
    """Return the kernel of a large half-precision product whose operands lie in memory."""
    work, tiles, _ = form
    left, right, _ = factors_of(work)
    printer, stages = ContractionPrinter(work, names), stages_of(tiles)
    shared = (work, names, printer, tiles)
    fills = (
        TileLoad("left", left, tiles.rows, work.rows, "row", *shared),
        TileLoad("right", right, tiles.columns, work.columns, "column", *shared),
    )
    body = [
        *place_tile(form, names),
        f"using large = geon_large<{tiles.kind}, {turned_of(fills)}>;",
        f"const int64_t end = {names.length(size_of(work.summed))};",
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
        body, Grid(blocks_of(work, tiles)), THREADS_PER_BLOCK + WARP_GROUP_THREADS, True,
        files=FILES, stages=stages,
    )  # fmt: skip


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


def place_tile(form: TiledProduct, names: CudaKernelNames) -> Lines:
    """Return the statements that compute a block's tile: bands of rows, column by column."""
    work, tiles, _ = form
    tall, wide = (
        names.length(tiles_along(loops, each))
        for loops, each in ((work.rows, tiles.rows), (work.columns, tiles.columns))
    )
    found = [
        f"GEON_STAGES({stages_of(tiles).bytes})",
        f"const int64_t tall = {tall}, wide = {wide};",
        "const int64_t tile = (int64_t)blockIdx.x % (tall * wide);",
        f"const int64_t band = tile / ({BAND_TILE_ROWS} * wide) * {BAND_TILE_ROWS}, "
        "in_band = tile - band * wide;",
        f"const int64_t high = tall - band < {BAND_TILE_ROWS} ? tall - band : {BAND_TILE_ROWS};",
        f"const int64_t first_row = (band + in_band % high) * {tiles.rows};",
        f"const int64_t first_column = in_band / high * {tiles.columns};",
    ]
    if work.batch:
        found.append("const int64_t batch = (int64_t)blockIdx.x / (tall * wide);")
        found += places(work.batch, "batch", names.length)
    return found


def store_sums(work: Contraction, names: CudaKernelNames, printer: ContractionPrinter) -> Lines:
    """Return the statements that compute and store the results."""
    rows, columns = (names.length(size_of(loops)) for loops in (work.rows, work.columns))
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
