"""Fused attention kernels (flash attention): the matrix of weights is never in memory.

A block has some rows of queries and iterates over tiles of keys. It keeps a running maximum of
scores and rescales its partial results when the maximum grows. Wide results are divided among
blocks, each of which computes all scores.

``ByTiles`` is the kernel for float32: tiles in shared memory, sums in registers. ``ByMatrices`` is
that for half precision on tensor cores, with queries and weights in registers.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from ....lazy_dataclasses import dataclass
from ....op_graph.op_graph import Op
from ....op_graph.values.dtypes import name_of
from ...kernels.ir.scalar_code import Load, walk
from ...kernels.products.attention import Attention, attention_of, scale_of
from ...kernels.products.row_blocking import Blocked
from ...lowering.facts.target import Target
from ...lowering.fusion import loop_groups
from ...lowering.fusion.chain_fusion import Worth, by_blocks
from ...lowering.fusion.fusion_groups import Group
from ...lowering.fusion.layout import LaidOut
from ...printing.nests.loop_lines import indent
from ...printing.scalars import c_expressions
from ..kernels.cooperative_threads import WARP_GROUP_THREADS, WARP_SIZE, Lines
from ..launches.device import PipelineStages
from ..launches.launch_ir import THREADS_PER_BLOCK
from ..launches.naming import CudaFunction, CudaKernelNames
from .attention_text import MAX_PART_RESULTS, TILE_KEYS, AttentionWriter, up
from .large_products import bringing, step
from .product_forms import size_of
from .product_tiles import (
    DEFAULT_TILE_DEPTH,
    NARROW_TILE_SIDE,
    TALL_TILE_ROWS,
    WMMA_DEPTH,
    Tiles,
)
from .tile_loads import TileLoad, factors_of, narrow

EACH = "for (unsigned block = blockIdx.x; block < units; block += gridDim.x) {"


class ByMatrices(AttentionWriter):
    """Writer of attention on tensor cores; a warp has 16 rows.

    The kernel is persistent and warp-specialised: a block loops over units of rows, and four of its
    warps load keys and values, those of the next unit during the last stores of the present one.
    """

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
        self.groups = 3 if few else 2
        self.multiplying = self.groups * WARP_GROUP_THREADS
        self.rows = self.multiplying // WARP_SIZE * WMMA_DEPTH
        self.threads = self.multiplying + WARP_GROUP_THREADS
        self.stages = PipelineStages(size, least=3, goes_on=True)

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
            *bringing(self.groups, [EACH, *indent(self.bring()), "}"]),
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

    # ``lanes`` is the number of threads that share a row.
    rows, held, lanes = NARROW_TILE_SIDE, "totals", 16
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


# Max. results per row; blocks divide them, and each recomputes all scores.
MAX_ROW_RESULTS = 4 * MAX_PART_RESULTS


def fits(work: Attention) -> bool:
    """Return True if a few blocks can hold the sums of a row's results."""
    size = size_of(work.results)
    return isinstance(size, int) and 0 < size <= MAX_ROW_RESULTS


def is_attention(work: Blocked) -> bool:
    """Return True if a fused chain is attention that one CUDA kernel can compute."""
    found = attention_of(work)
    return found is not None and fits(found)


ATTENTION = Worth(large=0, fewest=1, more=0, accepts=is_attention)


def groups(laid_out: LaidOut, target: Target, ops: list[Op], check: bool) -> list[Group]:
    """Return the fusion groups of a program, one per kernel: loops are fused as on all targets."""
    found = loop_groups(laid_out, target, ops, check)
    return found if check or len(ops) == 1 else by_blocks(laid_out, found, ops, ATTENTION)


def half_of(work: Attention) -> str | None:
    """Return the half-precision dtype that tensor cores multiply, or None without them."""
    found = factors_of(work.first)[2]
    deep = size_of(work.first.summed)
    if work.rounded is None or found != name_of(work.rounded):
        return None
    if narrow(work.value).dtype is not work.rounded:
        return None
    return found if isinstance(deep, int) and 0 < deep <= MAX_PART_RESULTS else None


class FusedAttention(NamedTuple):
    """One kernel computes attention; tensor cores multiply if ``half`` is a dtype."""

    half: str | None


def attention_forms(work: Blocked) -> tuple[FusedAttention]:
    """Return the kernel of a chain that is attention."""
    return (FusedAttention(half_of(found_attention(work))),)


def attention_function(form: FusedAttention, names: CudaKernelNames) -> CudaFunction:
    """Return the attention kernel."""
    assert isinstance(names.kernel.work, Blocked)
    work = found_attention(names.kernel.work)
    if form.half is None:
        return ByTiles(work, names, "float32").function()
    return ByMatrices(work, names, form.half).function()


def found_attention(work: Blocked) -> Attention:
    """Return the attention that a chain computes."""
    attention = attention_of(work)
    assert attention is not None, "no other kernel goes over blocks of rows"
    return attention
