"""Attention kernel on tensor cores, with queries and weights in registers.

It is persistent and warp-specialised: a block loops over units of rows, and four of its warps load
keys and values, those of the next unit during the last stores of the present one.
"""

from __future__ import annotations

from ...kernels.ir.scalar_code import Load, walk
from ...kernels.products.attention import Attention, scale_of
from ...printing.scalars import c_expressions
from ..kernels.cooperative_threads import WARP_SIZE, Lines
from ..launches.device import PipelineStages
from ..launches.naming import CudaKernelNames, indent
from .attention_text import TILE_KEYS, AttentionWriter, size_of, up
from .large_products import LOADER_THREADS, bringing, step
from .product_tiles import NARROW_TILE_SIDE, TALL_TILE_ROWS, Tiles

WMMA_DEPTH = 16  # reduced elements per tensor core operation, and rows per warp
# number of groups of four multiplying warps, by whether a thread needs few registers
WARP_GROUPS = {True: 3, False: 2}
MAX_STAGES = 8
EACH = "for (unsigned block = blockIdx.x; block < units; block += gridDim.x) {"


class ByMatrices(AttentionWriter):
    """Writer of attention on tensor cores; a warp has 16 rows."""

    held = "found"
    files = ("chunks.cuh", "matrices.cuh", "stages.cuh", "attention.cuh", "attend.cuh")

    def __init__(self, work: Attention, names: CudaKernelNames, dtype: str) -> None:
        super().__init__(work, names, dtype)
        deep = size_of(work.first.summed)
        assert isinstance(deep, int)
        self.tiles = Tiles(dtype, TALL_TILE_ROWS, TILE_KEYS, up(deep, WMMA_DEPTH))
        self.value_tiles = Tiles(dtype, TALL_TILE_ROWS, up(self.part, WMMA_DEPTH), TILE_KEYS)
        self.key = self.fill("key", self.tiles, TILE_KEYS)
        self.value = self.fill("value", self.value_tiles, up(self.part, WMMA_DEPTH))
        size = self.key.panels().bytes + self.value.panels().bytes
        few = self.part <= NARROW_TILE_SIDE and self.tiles.depth <= NARROW_TILE_SIDE
        self.multiplying = WARP_GROUPS[few] * 4 * WARP_SIZE
        self.rows = WARP_GROUPS[few] * 4 * WMMA_DEPTH
        self.threads = self.multiplying + LOADER_THREADS
        self.stages = PipelineStages(size, least=3, most=MAX_STAGES, goes_on=True)

    def body(self) -> Lines:
        """Return the complete kernel, for loading and for multiplying warps."""
        assert self.stages is not None
        units = self.names.length(self.blocks)
        warps = self.multiplying // WARP_SIZE
        return [
            f"GEON_STAGES({self.stages.bytes})",
            # blocks of an equivalent launch that is not persistent
            f"const unsigned units = (unsigned)({units});",
            f"stages.begin({warps});",
            *bringing(self.multiplying, [EACH, *indent(self.bring()), "}"]),
            *indent([*self.own(warps), EACH, *indent(self.inner()), "}"]),
            "}",
        ]

    def bring(self) -> Lines:
        """Return the statements that load keys and values for a unit of rows."""
        behind = self.key.panels().bytes
        key = self.key.brought("tiles", "0", self.deep)
        value = self.value.brought(f"tiles + {behind}", "first_key", self.key_count)
        return [
            *self.which("block"),
            *[fill.started() for fill in (self.key, self.value) if fill.chunks is not None],
            f"for (int64_t first_key = 0; first_key < {self.key_count}; first_key += "
            f"{TILE_KEYS}) {{",
            *indent(step(key, value)),
            "}",
        ]

    def own(self, warps: int) -> Lines:
        """Return a warp's indices and its shared memory, used for queries, then for results."""
        high, deep = self.tiles.shape(WMMA_DEPTH, turned=False)
        wide = self.value_tiles.columns // 4
        space = max(2 * high * deep, 4 * wide * WARP_SIZE)
        own = f"float (&own_sums)[{wide}][32] = *(float (*)[{wide}][32])space[warp];"
        return [
            f"alignas(16) __shared__ unsigned char space[{warps}][{space}];",
            "const int warp = threadIdx.x / 32, own_row = warp * 16 + threadIdx.x % 32 / 4;",
            "const int own_column = threadIdx.x % 4 * 2;",
            f"uint16_t (&query_tile)[{high}][{deep}] = *(uint16_t (*)[{high}][{deep}])space[warp];",
            *([] if self.is_plain else [own]),
        ]

    def inner(self) -> Lines:
        """Return the statements that compute the rows of a unit."""
        query = self.fill("query", self.tiles, WMMA_DEPTH, turned=False, threads=WARP_SIZE)
        key, value = self.key, self.value
        kind, deep = f"geon_{self.dtype}", self.deep
        steps = self.tiles.depth // WMMA_DEPTH
        of_key, of_value = key.panels(), value.panels()
        hold = [
            *query.begun(),
            *query.ahead("0", deep),
            *query.put("0", deep),
            "__syncwarp(0xffffffffu);",
            "geon_hold_lines(queries, query_tile, 0);",
            "__syncwarp(0xffffffffu);",
        ]
        scores = [f"geon_begin_held<{kind}, {of_key.text}>(queries, tiles, sums);"]
        take = [
            f"geon_begin_held<{kind}, {of_value.text}>(",
            f"    weights, before + {of_key.bytes}, found);",
        ]
        hold_weights = f"geon_hold_weights<{kind}>(weights, sums);"
        clear = "geon_clear(sums);"
        return [
            *self.which("block"),
            f"uint32_t queries[{steps}][4];",
            "const int64_t block_row = first_row;",
            "{",
            "    const int64_t first_row = block_row + warp * 16;",
            *indent(hold),
            "}",
            "float most[2] = {-INFINITY, -INFINITY}, shrink[2], total[2] = {};",
            f"float found[2][{self.value_tiles.columns // 4}] = {{}}, sums[2][{TILE_KEYS // 4}];",
            f"uint32_t weights[{TILE_KEYS // WMMA_DEPTH}][4];",
            f"geon_attend<{TILE_KEYS}>(",
            f"    stages, {self.key_count},",
            "    [&](const unsigned char *tiles) {",
            "    const int64_t first_key = 0;",
            *indent([clear, *scores, "geon_end_held<0>(sums);", *self.weighed(), hold_weights]),
            "},",
            "    [&](const unsigned char *tiles, const unsigned char *before, int64_t first_key) {",
            *indent([clear, *scores, *take, "geon_end_held<1>(sums);", *self.weighed()]),
            "    geon_end_held<0>(found);",
            "}, [&] {",
            "    geon_shrink(found, shrink);",
            f"    {hold_weights}",
            "}, [&](const unsigned char *before) {",
            *indent([*take, "geon_end_held<0>(found);"]),
            "});",
            "geon_share_halves(found, total);",
            *self.stored(),
            "__syncwarp(0xffffffffu);",
        ]

    def weighed(self) -> Lines:
        """Return the statements that convert a tile of products to softmax weights."""
        scale = scale_of(self.work)
        ending: Lines = []
        codes = (self.work.score, self.work.first.stores[0].value)
        loads = {node for node in walk(*codes) if isinstance(node, Load)}
        guarded = str(bool(loads - {self.work.scores})).lower()
        row, _ = self.tiles.places()
        factor = "1" if scale is None else c_expressions.literal(scale, "float32")
        lines = [
            f"geon_score<{guarded}>(sums, {self.row_count}, {self.key_count},",
            f"    {row}, geon_pairs{{first_key + own_column}},",
            "    [&](int64_t row, int64_t key, float sum) -> float {",
            *indent(self.score()),
            "});",
        ]
        keys = size_of(self.work.keys)
        if not (isinstance(keys, int) and keys % TILE_KEYS == 0):
            ending.append(f"geon_end_scores(sums, own_column, {self.key_count} - first_key);")
        return [
            *(lines if scale is None else []),
            *ending,
            f"geon_weigh_halves(sums, {factor}, most, total, shrink);",
        ]
