"""Attention by tensor cores, which hold queries and weights in registers."""

from __future__ import annotations

from ..kernels.attention import Attention
from ..kernels.scalar import Load, walk
from .attention_text import KEYS, AttentionWriter, size_of, up
from .device import Stages
from .naming import KernelNames, indented
from .product_tiles import NARROW, TALL, Tiles
from .teams import Lines

STEP = 16  # summed indices that tensor cores take at once


class ByMatrices(AttentionWriter):
    """By tensor cores: a warp has 16 rows."""

    rows, held, lanes = TALL, "found", 4
    files = ("chunks.cuh", "matrices.cuh", "stages.cuh", "attention.cuh", "attend.cuh")

    def __init__(self, work: Attention, names: KernelNames, dtype: str) -> None:
        super().__init__(work, names, dtype)
        deep = size_of(work.first.summed)
        assert isinstance(deep, int)
        self.tiles = Tiles(dtype, TALL, KEYS, up(deep, STEP))
        self.value_tiles = Tiles(dtype, TALL, up(self.part, STEP), KEYS)
        self.key = self.fill("key", self.tiles, KEYS)
        self.value = self.fill("value", self.value_tiles, up(self.part, STEP))
        size = self.key.panels().bytes + self.value.panels().bytes
        # Two blocks have 128 registers for each thread: queries and results of 64 fit these.
        few = self.part <= NARROW and self.tiles.depth <= NARROW
        self.stages = Stages(size, least=3, together=2 if few else 1)

    def start(self) -> Lines:
        return [
            "const int warp = threadIdx.x / 32, own_row = warp * 16 + threadIdx.x % 32 / 4;",
            "const int own_column = threadIdx.x % 4 * 2;",
        ]

    def results_wide(self) -> int:
        return up(self.part, STEP) // 4

    def inner(self) -> Lines:
        """The statements of one block of keys."""
        query = self.fill("query", self.tiles, NARROW, turned=False)
        key, value = self.key, self.value
        query_tile, _ = self.placed(query, 0)
        kind, deep = f"geon_{self.dtype}", self.deep
        steps = self.tiles.depth // STEP
        of_key, of_value = key.panels(), value.panels()
        hold = [
            *query.ahead("0", deep),
            *query.put("0", deep),
            "__syncthreads();",
            "if (warp / 4 == half) geon_hold_lines(queries, query_tile, warp % 4 * 16);",
            "__syncthreads();",
        ]
        bring = [
            *key.brought("tiles", "0", deep),
            *value.brought(f"tiles + {of_key.bytes}", "first_key", self.key_count),
        ]
        scores = [f"geon_begin_held<{kind}, {of_key.text}>(queries, tiles, sums);"]
        take = [
            f"geon_begin_held<{kind}, {of_value.text}>(",
            f"    weights, before + {of_key.bytes}, found);",
        ]
        hold_weights = f"geon_hold_weights<{kind}>(weights, sums);"
        sums = f"float sums[2][{KEYS // 4}] = {{}};"
        starts = [fill.started() for fill in (key, value) if fill.chunks is not None]
        return [
            f"uint32_t queries[{steps}][4];",
            "const int64_t block_row = first_row;",
            "for (int half = 0; half < 2; half++) {",
            f"    const int64_t first_row = block_row + {NARROW} * half;",
            *indented([query_tile, *query.begun(), *hold]),
            "}",
            *starts,
            *self.begun(2, self.results_wide(), "float"),
            f"uint32_t weights[{KEYS // STEP}][4];",
            f"geon_attend<{KEYS}, {of_key.bytes + of_value.bytes}>(",
            f"    space, stages, {self.key_count},",
            "    [&](unsigned char *tiles, int64_t first_key) {",
            *indented(bring),
            "}, [&](const unsigned char *tiles) {",
            "    const int64_t first_key = 0;",
            *indented(
                [sums, *scores, "geon_end_held<0>(sums);", *self.weighed_halves(), hold_weights]
            ),
            "},",
            "    [&](const unsigned char *tiles, const unsigned char *before, int64_t first_key) {",
            *indented([sums, *scores, *take, "geon_end_held<1>(sums);", *self.weighed_halves()]),
            "    geon_end_held<0>(found);",
            "    geon_shrink(found, shrink);",
            f"    {hold_weights}",
            "}, [&](const unsigned char *before) {",
            *indented([*take, "geon_end_held<0>(found);"]),
            "});",
        ]

    def weighed_halves(self) -> Lines:
        """The statements that make weights of the sums of a tile."""
        codes = (self.work.score, self.work.first.stores[0].value)
        loads = {node for node in walk(*codes) if isinstance(node, Load)}
        guarded = str(bool(loads - {self.work.scores})).lower()
        row, _ = self.tiles.places()
        return [
            f"geon_score<{guarded}>(sums, {self.row_count}, {self.key_count},",
            f"    first_key + {KEYS - 1}, {row}, geon_pairs{{first_key + own_column}},",
            "    [&](int64_t row, int64_t key, float sum) -> float {",
            *indented(self.score()),
            "});",
            "geon_weigh_halves(sums, most, total, shrink);",
        ]
