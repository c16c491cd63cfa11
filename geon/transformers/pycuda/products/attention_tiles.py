"""Attention kernel for float32: tiles in shared memory, sums in registers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from ...kernels.products.attention import Attention
from ...printing.scalars import c_expressions
from ..kernels.cooperative_threads import Lines
from ..launches.launch_ir import THREADS_PER_BLOCK
from ..launches.naming import CudaKernelNames, indent
from .attention_text import TILE_KEYS, AttentionWriter, up
from .product_tiles import DEFAULT_TILE_DEPTH, NARROW_TILE_SIDE, Tiles
from .tile_loads import TileLoad


@dataclass(slots=True)
class SharedMemorySpace:
    """Shared memory whose arrays may overlap when their lifetimes do not."""

    bytes: int = 0

    def placed(self, ctype: str, itemsize: int, name: str, shape: Sequence[int], at: int) -> str:
        """Return the declaration of an array that begins at byte ``at``."""
        self.bytes = max(self.bytes, at + itemsize * math.prod(shape))
        dims = "".join([f"[{n}]" for n in shape])
        return f"{ctype} (&{name}){dims} = *({ctype} (*){dims})(space + {at});"


class ByTiles(AttentionWriter):
    """Writer of attention without tensor cores: each thread has four rows."""

    rows, held, lanes = (
        NARROW_TILE_SIDE,
        "totals",
        16,
    )  # ``lanes`` is the number of threads that share a row
    files = ("chunks.cuh", "product.cuh", "attention.cuh")

    def __init__(self, work: Attention, names: CudaKernelNames, dtype: str) -> None:
        super().__init__(work, names, dtype)
        self.tiles = Tiles(dtype, NARROW_TILE_SIDE, TILE_KEYS)
        self.value_tiles = Tiles(dtype, NARROW_TILE_SIDE, up(self.part, NARROW_TILE_SIDE))
        self.space = SharedMemorySpace()

    def body(self) -> Lines:
        """Return the complete kernel: shared memory, the loop over keys, and the stores."""
        inner = self.inner()
        own = self.space.placed(
            "float", 4, "own_sums", (self.value_tiles.wide, THREADS_PER_BLOCK), 0
        )
        return [
            f"alignas(16) __shared__ unsigned char space[{self.space.bytes}];",
            *self.tiles.start(),
            *self.which("blockIdx.x"),
            *inner,
            f"geon_join<{self.lanes}>(total);",
            f"geon_share({self.held}, total);",
            *([] if self.is_plain else [own]),
            *self.stored(),
        ]

    def placed(self, fill: TileLoad, at: int) -> tuple[str, int]:
        """Return the declaration of a tile that begins at byte ``at``, and the byte after it."""
        shape = fill.tiles.shape(fill.lines, fill.turned)
        end = up(at + 4 * shape[0] * shape[1], 16)
        return self.space.placed(fill.tiles.ctype, 4, f"{fill.name}_tile", shape, at), end

    def inner(self) -> Lines:
        """Return the loop over tiles of keys."""
        query = self.fill("query", self.tiles, NARROW_TILE_SIDE)
        key = self.fill("key", self.tiles, TILE_KEYS)
        value = self.fill("value", self.value_tiles, self.value_tiles.columns)
        query_tile, end = self.placed(query, 0)
        key_tile, end = self.placed(key, end)
        value_tile, end = self.placed(value, end)
        slices = TILE_KEYS // DEFAULT_TILE_DEPTH
        weights = self.space.placed(
            "float", 4, "weights", (slices, DEFAULT_TILE_DEPTH, NARROW_TILE_SIDE + 4), end
        )
        deep, keys = self.deep, self.key_count
        multiply = f"geon_multiply_tiles<{NARROW_TILE_SIDE}>"
        scores = self.sliced(
            "0", deep, [*query.ahead("first_deep", deep), *key.ahead("first_deep", deep)],
            [f"{multiply}(query_tile, key_tile, sums, down, across);"],
            [*query.put("first_deep", deep), *key.put("first_deep", deep)],
        )  # fmt: skip
        weigh = [
            "#pragma unroll",
            "for (int i = 0; i < 4; i++)",
            "    for (int j = 0; j < 4; j++)",
            "        weights[across / 4][across % 4 * 4 + j][4 * down + i] = sums[i][j];",
        ]
        at = f"(first_deep - first_key) / {DEFAULT_TILE_DEPTH} - 1"
        results = self.sliced(
            "first_key", f"first_key + {TILE_KEYS}", value.ahead("first_deep", keys),
            [f"{multiply}(weights[{at}], value_tile, parts, down, across);"],
            value.put("first_deep", keys),
        )  # fmt: skip
        wide = self.value_tiles.wide
        infinite = ", ".join(["-INFINITY"] * 4)
        body = [
            "float sums[4][4] = {};",
            *scores,
            *self.weighed(f"geon_fours<{NARROW_TILE_SIDE}>{{first_key + 4 * across}}"),
            *weigh,
            f"float parts[4][{wide}] = {{}};",
            *results,
            "geon_shrink(totals, shrink);",
            "geon_add_up(totals, parts);",
        ]
        return [
            query_tile, key_tile, value_tile, weights,
            *query.begun(),
            *key.begun(),
            *value.begun(),
            f"float most[4] = {{{infinite}}}, shrink[4];",
            "double total[4] = {};",
            f"double totals[4][{wide}] = {{}};",
            f"for (int64_t first_key = 0; first_key < {keys}; first_key += {TILE_KEYS}) {{",
            *indent(body),
            "}",
        ]  # fmt: skip

    def sliced(self, low: str, high: str, ahead: Lines, multiply: Lines, put: Lines) -> Lines:
        """Return a software-pipelined loop: load the next tiles, multiply the current ones."""
        body = [
            *([f"if (first_deep < {high}) {{", *indent(ahead), "}"] if ahead else []),
            f"if (first_deep > {low}) {{",
            *indent([*multiply, "__syncthreads();"]),
            "}",
            f"if (first_deep >= {high}) break;",
            *put,
            "__syncthreads();",
        ]
        head = f"for (int64_t first_deep = {low};; first_deep += {DEFAULT_TILE_DEPTH}) {{"
        return [head, *indent(body), "}"]

    def weighed(self, key: str) -> Lines:
        """Return the statements that convert a tile of products to softmax weights."""
        row, _ = self.tiles.places()
        power = c_expressions.expression("exp", ("float32",), "float32", ("x",))
        self.names.calls(c_expressions.calls("exp", ("float32",), "float32"))
        return [
            f"geon_weigh<{self.lanes}>(sums, most, total, shrink, {self.row_count}, "
            f"{self.key_count},",
            f"    {row}, {key},",
            "    [&](int64_t row, int64_t key, float sum) -> float {",
            *indent(self.score()),
            "}, [](float x) { return " + power + "; });",
        ]
