"""Large products of halves as CUDA: tiles come to shared memory steps before they are multiplied.

A block makes 128 rows by 256 columns: so large that what it reads again and again from the cache
of the device is a third less than with tiles of 128 by 128. Four warps of it bring tiles, as many
steps ahead as a device has room for, while eight multiply.
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
STAGES = Stages(2 * STEP * (ROWS + COLUMNS), least=2)  # of both tiles of a step
BLOCKS = 96  # tiles that use most of a large device
DEEP = 4 * STEP  # summed indices from which on copies are ahead most of the time
# Tiles of a batch of small matrices would be mostly empty: half of each way is to be full.
LEAST_ROWS, LEAST_COLUMNS = ROWS // 2, COLUMNS // 2
BRINGING = 128  # threads that bring tiles
# Of a thread that brings, and of one that multiplies, where so many multiply: as many as there are.
REGISTERS = {256: (96, 200), 384: (72, 144)}
BAND = 8  # rows of tiles that are made together, so that they find their columns in the cache
FILES = ("chunks.cuh", "matrices.cuh", "stages.cuh", "large.cuh")


def large_holds(work: Contraction) -> tuple[Size, ...]:
    """Sizes none of which is negative where large tiles are worth it."""
    tall, wide = tiles_along(work.rows, ROWS), tiles_along(work.columns, COLUMNS)
    batch, deep = (product(loop.extent for loop in loops) for loops in (work.batch, work.summed))
    rows, columns = (product(loop.extent for loop in loops) for loops in (work.rows, work.columns))
    return batch * tall * wide - BLOCKS, deep - DEEP, rows - LEAST_ROWS, columns - LEAST_COLUMNS


def tiles_along(loops: Sequence[Loop], each: int) -> Size:
    """How many tiles lie along some loops."""
    return (product(loop.extent for loop in loops) + each - 1) // each


def large_function(work: Contraction, names: KernelNames) -> Function | None:
    """The function of a product of halves that lie in memory; None for others, and small ones."""
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
    """Which tiles are turned, as text."""
    return ", ".join([str(fill.turned).lower() for fill in fills])


def bringing(multiply: int, body: Lines) -> Lines:
    """The statements for the threads that bring tiles to those that ``multiply``, and the beginning
    of what these do: the others' registers are theirs.
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
    """The statements of a step, of those that bring its two tiles to where ``tiles`` lie."""
    head = ["stages.wait_to_fill();", "unsigned char *const tiles = stages.tiles();"]
    return [*head, *first, *second, "stages.pass();"]


def placed(work: Contraction, names: KernelNames) -> Lines:
    """The statements that say which tile is a block's: bands of rows, column by column."""
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
    """The statements that store what is made of the sums."""
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
