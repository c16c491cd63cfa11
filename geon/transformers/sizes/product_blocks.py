"""Block sizes of matrix products, which the C files receive as macros."""

import math
from collections.abc import Mapping
from dataclasses import replace

from ...lazy_dataclasses import dataclass
from .blocks import L1_BYTES, L2_BYTES

VECTOR_SIZES_BYTES = (16, 32, 64)
"""Bytes of vectors that products know: a plan of memory must serve all of them."""

ROWS_PER_GROUP = 48
"""Rows of the left operand packed at a time: a multiple of every tile height."""

FEW_ROWS_PANELS = 4
"""Panels of columns that few rows are multiplied by in one block."""

TRANSPOSE_TILE_SIDE = 64
"""Rows and columns of sums that are turned at a time, where stores are across: so many float32 stay
in the first cache until they are stored. It is a multiple of every vector."""

MAX_BAND_ROWS = 4 * ROWS_PER_GROUP
"""The most rows of windows whose places are brought into memory at a time: what they share is
copied once."""

MAX_BAND_BYTES = L2_BYTES
"""The most memory for that, and for the columns packed once that bands are multiplied by: their
panels stay in the second cache."""

WINDOW_TILE_ROWS = 8
"""Rows of a tile of windows that is one vector wide: multiplications take four cycles, and two
begin in each."""

MAX_WINDOW_RUNS = 64
"""The most runs of elements of a row of windows that tiles read where they overlap."""

PACKING_CYCLES_PER_ELEMENT = 2
"""How many cycles it takes to pack one element of windows; in one, two vectors are multiplied."""

MIN_WINDOW_RUN_ELEMENTS = 5
"""The fewest elements that adjoin in windows that tiles read where they overlap."""

MAX_DIRECT_ROWS = {"stream": 32, "dots": 12}
"""Up to so many rows, a right operand in memory is read in place."""

MIN_STREAM_VECTORS = 3
"""The fewest vectors of columns that are read as a stream."""

MIN_DOT_VECTORS = 4
"""The fewest vectors of summed indices of a row's dot products with columns where they lie,"""

MAX_DOT_ROWS = 4
"""times the rows, up to so many."""

MAX_THIN_RESULTS = 400
"""Up to so many results of rows and columns that are no more than a group each, a deep product is
one of dot products along lines of both operands."""

MIN_THIN_VECTORS = 8
"""The fewest vectors of summed indices of such dot products."""

MAX_THIN_BYTES = 2 * L1_BYTES
"""The most bytes of these lines in one block."""

DIRECT_COLUMN_BLOCKS = {8: 8, MAX_DIRECT_ROWS["stream"]: 2}
"""For up to so many rows that read the right operand in place: blocks of `Shape.columns` columns
that one item has, as streams go through long runs."""

DIRECT_DEPTH_BLOCKS = {4: 32, 16: 10, MAX_DIRECT_ROWS["stream"]: 1}
"""The same for blocks of `Shape.depth` summed indices."""

MULADDS_PER_NANOSECOND = 100
"""Multiply-adds of a nanosecond, of one thread: how long runs are taken to last, about."""

TASK_MULADDS = 2_000 * MULADDS_PER_NANOSECOND
"""Multiply-adds of a task: two microseconds."""

MAX_SHALLOW_DEPTH = 64
"""Up to so many summed indices, rows are packed without a gap between them."""

MAX_TRANSPOSED_COLUMNS = 8
"""Up to so many columns of a computed left operand that adjoins along rows, these are columns."""

MAX_LOW_TILE_DEPTH = 8
"""Up to so many summed indices, tiles of two vectors are low."""

MAX_DIRECT_BLOCK_BYTES = L1_BYTES
"""An operand's block that spans no more bytes than this is read where it lies by register tiles."""

MIN_UNPACKED_STRIDE_BYTES = 16384
"""From so many bytes between them on, elements of a bordered operand are not packed one after
another: each comes from a page of its own, and its neighbours are fetched again."""

MAX_UNPACKED_PANELS = 4
"""Up to so many panels of columns, packing rows that lie close costs more than it saves."""

MIN_PACK_CACHE_ROWS = MAX_DIRECT_ROWS["dots"]
"""From so many rows on, a product keeps a packed copy of an operand that stays as it is: fewer rows
read it in place."""

MAX_PACK_CACHE_ROWS = 4096
"""Up to so many rows: packing takes about 50 / rows of a product with vectors of 64 bytes, and the
copy of a right operand that is larger than the rows doubles its memory."""

MIN_PACK_CACHE_COLUMNS = 64
"""From so many columns on."""

MAX_SERIAL_TERMS = 48
"""The most terms of a long sum that are added one after another in its own type: equal float32 are
then off by 7.5e-7 at most."""

MAX_BLOCK_ROWS = 10 * ROWS_PER_GROUP
"""The most rows of one block."""

MAX_PACKED_BYTES = 8 << 20
"""The most memory for a right operand that is packed once for all rows."""

MIN_PACK_FIRST_MULADDS = 5_000_000 * MULADDS_PER_NANOSECOND
"""The fewest multiply-adds of a product that packs first, five milliseconds: threads then wait for
each other, and read what another one wrote."""

MIN_HALF_VECTOR_MULADDS = 1 << 20
"""The fewest multiply-adds of a product of few columns that vectors of half the width are taken
for: a compiler takes a second for these, once."""

MIN_STREAM_COST_ROWS = 4
"""A right operand that is read where it lies takes as long for one row as for so many: as long as
it takes to come from the last cache."""

PART_DEPTH = 8192
"""Summed indices of a part of a long sum."""

MAX_SUM_PARTS = 16
"""The most parts of sums that are added up by several tasks."""

MIN_PART_DEPTH = 128
"""The fewest summed indices of a part of a stream: what parts come to is added up by one thread, in
a hundredth of the time that the parts take."""

MIN_PART_BYTES = 1 << 17
"""The fewest bytes that a part of a stream reads: three microseconds from the last cache."""

MAX_DURATION_NANOSECONDS = (1 << 31) - 1
"""Runs of tasks that last longer are said to last so long: the pool has 32 bits for it."""

MIN_STREAM_DEPTH = 4
"""The fewest summed indices whose products a stream adds up before it adds them to the result."""

TAGS = {"float": "f32", "double": "f64"}
SIZES = {"float": 4, "double": 8}


def blocks_for(rows: int, blocks: Mapping[int, int]) -> int:
    """Return the number of blocks in a table by the maximum of rows."""
    return next((count for most, count in blocks.items() if rows <= most), min(blocks.values()))


@dataclass(frozen=True)
class Shape:
    """Block sizes of a product of one type, in elements."""

    type: str
    vector: int
    halved: bool = False
    """Of a product whose columns fill half of a vector at most: its vectors are half as wide."""

    @property
    def tag(self) -> str:
        """Return the suffix of function names."""
        return TAGS[self.type] + "_half" * self.halved

    @property
    def bytes(self) -> int:
        """Return the bytes of one element."""
        return SIZES[self.type]

    @property
    def panel(self) -> int:
        """Return the columns of a packed panel of the right operand: two vectors."""
        return 2 * self.vector

    @property
    def depth(self) -> int:
        """Return the maximum summed indices of one block: twelve rows fit a 32 KB L1 cache."""
        return 384 if self.type == "float" else 256

    @property
    def long_depth(self) -> int:
        """Return the summed indices above which a product accumulates partial sums in double.

        Below, the relative error of a sum of equal float32 is at most 8e-6. Sums in double need no
        blocks: the error of 2**28 equal terms is 4e-9.
        """
        return PART_DEPTH if self.type == "float" else 1 << 62

    @property
    def long_stream(self) -> int:
        """Return the same limit for few rows, whose sums are in memory, not in registers."""
        return 1024 if self.type == "float" else 1 << 62

    @property
    def line(self) -> int:
        """Return the stride of packed rows of the left operand; not a multiple of a cache's set
        stride.
        """
        return self.depth + 64 // SIZES[self.type]

    @property
    def few_elements(self) -> int:
        """Return the maximum elements of a result that is summed in parts: 16 KB for each part."""
        return 16384 // SIZES[self.type]

    @property
    def columns(self) -> int:
        """Return the columns whose panels, with `depth`, fit the L2 cache: 400 KB at most."""
        return 1024 // SIZES[self.type]

    @property
    def packed(self) -> int:
        """Return the maximum elements of a right operand that are packed at a time for all rows."""
        return MAX_PACKED_BYTES // SIZES[self.type]

    @property
    def band_packed(self) -> int:
        """Return the maximum elements of the columns packed once that bands are multiplied by."""
        return MAX_BAND_BYTES // SIZES[self.type]

    @property
    def packed_columns(self) -> int:
        """Return the maximum columns of one block: the sums of a group of rows fit the L2 cache."""
        return 4 * self.columns

    @property
    def heights(self) -> tuple[int, int]:
        """Return the rows of the high and the low register tile: the high one fills 32 or 16
        registers.

        The low one has eight accumulators, enough to hide the latency of additions.
        """
        registers = 2 if self.halved else 1  # half-width vectors have the wide ones' registers
        return (12, 4) if self.vector * self.bytes * registers == 64 else (6, 4)

    @property
    def row_step(self) -> int:
        """Return the rows of which blocks have a multiple: both tiles fill them."""
        return math.lcm(*self.heights)

    @property
    def placed(self) -> int:
        """Return the rows of a tile that is three vectors wide, for columns that are windows."""
        return 8 if self.heights[0] == 12 else 4

    def macros(self) -> dict[str, object]:
        """Return the macros of the products' C files."""
        high, low = self.heights
        return {
            "TYPE_BYTES": self.bytes,
            "VECTOR": self.vector,
            "PANEL": self.panel,
            "HIGH": high,
            "LOW": low,
            "ROW_STEP": self.row_step,
            "GROUP": ROWS_PER_GROUP,
            "HANDED": TRANSPOSE_TILE_SIDE,
            "BAND": MAX_BAND_ROWS,
            "TALL": WINDOW_TILE_ROWS,
            "PLACED": self.placed,
            "LOWERED": MAX_LOW_TILE_DEPTH,
            "NEAR": MAX_DIRECT_BLOCK_BYTES,
            "NARROW": MAX_UNPACKED_PANELS,
            "CHAIN": MAX_SERIAL_TERMS,
            "STREAMED": MIN_STREAM_DEPTH,
            "MOST_COLUMNS": self.columns,
            "MOST_DEPTH": self.depth,
        }


def shape(type: str, vector_bytes: int) -> Shape:
    """Return block sizes for sums of `type` with vectors of `vector_bytes` (16, 32 or 64)."""
    if vector_bytes not in VECTOR_SIZES_BYTES:
        raise ValueError(f"vector_bytes is {vector_bytes}; products know {VECTOR_SIZES_BYTES}")
    return Shape(type, vector_bytes // SIZES[type])


def half_vector_shape(of: Shape) -> Shape | None:
    """Return the shape with half as wide vectors, or None unless vectors are the widest."""
    if of.vector * of.bytes < VECTOR_SIZES_BYTES[-1]:
        return None
    return replace(of, vector=of.vector // 2, halved=True)
