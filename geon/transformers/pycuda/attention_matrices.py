"""Attention by tensor cores, which hold queries and weights in registers."""

from __future__ import annotations

from ..kernels.attention import Attention
from .attention_text import KEYS, AttentionWriter, size_of, up
from .naming import KernelNames, indented
from .product_tiles import NARROW, TALL, Tiles
from .teams import Lines

STEP = 16  # summed indices that tensor cores take at once


class ByMatrices(AttentionWriter):
    """By tensor cores: a warp has 16 rows."""

    rows, held, lanes = TALL, "found", 4
    files = ("chunks.cuh", "matrices.cuh", "attention.cuh", "held.cuh")

    def __init__(self, work: Attention, names: KernelNames, dtype: str) -> None:
        super().__init__(work, names, dtype)
        deep = size_of(work.first.summed)
        assert isinstance(deep, int)
        self.tiles = Tiles(dtype, TALL, KEYS, up(deep, STEP))
        self.value_tiles = Tiles(dtype, TALL, up(self.part, STEP), KEYS)

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
        key = self.fill("key", self.tiles, KEYS)
        value = self.fill("value", self.value_tiles, up(self.part, STEP))
        query_tile, _ = self.placed(query, 0)
        key_tile, end = self.placed(key, 0)
        value_tile, _ = self.placed(value, end)
        kind, deep = f"geon_{self.dtype}", self.deep
        steps = self.tiles.depth // STEP
        of_key, of_value = (str(fill.turned).lower() for fill in (key, value))
        hold = [
            *query.ahead("0", deep),
            *query.put("0", deep),
            "__syncthreads();",
            "if (warp / 4 == half) geon_hold_lines(queries, query_tile, warp % 4 * 16);",
            "__syncthreads();",
        ]
        multiply = [
            f"float sums[2][{KEYS // 4}] = {{}};",
            f"geon_multiply_held<{kind}, {of_key}>(queries, key_tile, sums);",
            *self.weighed(f"geon_pairs{{first_key - {KEYS} + own_column}}"),
            "geon_shrink(found, shrink);",
            f"uint32_t weights[{KEYS // STEP}][4];",
            f"geon_hold_weights<{kind}>(weights, sums);",
            f"geon_multiply_held<{kind}, {of_value}>(weights, value_tile, found);",
            "__syncthreads();",
        ]
        ahead = [*key.ahead("0", deep), *value.ahead("first_key", self.key_count)]
        loop = [
            *(["if (first_key < keys) {", *indented(ahead), "}"] if ahead else []),
            "if (first_key > 0) {",
            *indented(multiply),
            "}",
            "if (first_key >= keys) break;",
            *key.put("0", deep),
            *value.put("first_key", self.key_count),
            "__syncthreads();",
        ]
        return [
            query_tile, key_tile, value_tile,
            f"uint32_t queries[{steps}][4];",
            "const int64_t block_row = first_row;",
            "for (int half = 0; half < 2; half++) {",
            f"    const int64_t first_row = block_row + {NARROW} * half;",
            *indented([*query.begun(), *hold]),
            "}",
            *key.begun(),
            *value.begun(),
            *self.begun(2, self.results_wide(), "float"),
            f"const int64_t keys = {self.key_count};",
            f"for (int64_t first_key = 0;; first_key += {KEYS}) {{",
            *indented(loop),
            "}",
        ]  # fmt: skip
