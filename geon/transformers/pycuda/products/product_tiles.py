"""Tile shapes of a product within a block, for tensor cores or for sums per thread.

Operands are staged in shared memory, ``depth`` reduced elements at a time. Each thread has ``high``
rows and ``wide`` columns of the tile.
"""

from __future__ import annotations

from ....lazy_dataclasses import dataclass
from ....op_graph.axes.affine import Size
from ....op_graph.values.dtypes import HALVES, named_dtype
from ...printing.scalars.c_expressions import C_TYPES
from ..kernels.cooperative_threads import Lines

NARROW_TILE_SIDE, TALL_TILE_ROWS, WIDE_TILE_COLUMNS = 64, 128, 128  # rows and columns of tiles
WMMA_DEPTH = 16  # reduced elements per tensor core operation, and rows per warp
DEFAULT_TILE_DEPTH = WMMA_DEPTH  # reduced elements per stage; half precision has twice as many
# Rows, columns and reduced elements per stage of large tiles of half precision.
STAGED_ROWS, STAGED_COLUMNS, STAGED_DEPTH = 128, 256, 64
# Max. terms that are added plainly in float32: an error of about 1e-6 for equal terms.
MAX_SERIAL_TERMS = 64
# padding elements per line of a half-precision tile, so that 8 lines lie in different banks
BANK_PADDING_HALVES = 8


@dataclass(frozen=True, slots=True)
class Tiles:
    """Tiles of ``rows`` x ``columns`` for operands of ``dtype``.

    Half precision, and float32 with ``tf32``, use tensor cores. ``deep`` overrides the number of
    reduced elements per stage. ``turns`` means double buffering: one tile is filled while the other
    is multiplied. If ``staged``, some warps copy tiles ahead to stages of a pipeline, and others
    multiply.
    """

    dtype: str
    rows: int
    columns: int
    deep: int = 0
    tf32: bool = False
    turns: bool = False
    staged: bool = False

    @property
    def by_matrices(self) -> bool:
        """Return True if tensor cores multiply."""
        return self.tf32 or self.dtype in HALVES

    @property
    def depth(self) -> int:
        """Return the reduced elements per stage."""
        return self.deep or DEFAULT_TILE_DEPTH * (2 if self.dtype in HALVES else 1)

    @property
    def ctype(self) -> str:
        """Return the C type of elements in shared memory."""
        return "uint16_t" if self.dtype in HALVES else C_TYPES[self.dtype]

    @property
    def sum_type(self) -> str:
        """Return the C type of sums."""
        return "float" if self.dtype in HALVES else C_TYPES[self.dtype]

    @property
    def kind(self) -> str:
        """Return the C type that selects the tensor core operation."""
        return "geon_tf32" if self.tf32 else f"geon_{self.dtype}"

    @property
    def warps_down(self) -> int:
        """Return the number of warps along rows, of 8 in a block, with tensor cores."""
        return 2 if self.columns == WIDE_TILE_COLUMNS else 4 if self.rows == TALL_TILE_ROWS else 2

    @property
    def high(self) -> int:
        """Return the rows per thread."""
        return self.rows // self.warps_down // 8 if self.by_matrices else self.rows // 16

    @property
    def wide(self) -> int:
        """Return the columns per thread."""
        if self.by_matrices:
            return self.columns // (8 // self.warps_down) // 4
        return self.columns // 16

    @property
    def files(self) -> tuple[str, ...]:
        """Return the files of ``cuda/`` that the kernel includes."""
        return ("chunks.cuh", "matrices.cuh" if self.by_matrices else "product.cuh")

    def is_turned(self, deep_adjoins: bool) -> bool:
        """Return True if rows of a tile in shared memory are reduced elements."""
        return not self.by_matrices or not deep_adjoins

    def shape(self, lines: int, turned: bool) -> tuple[int, int]:
        """Return the shape of an operand's tile in shared memory, with padding."""
        apart = BANK_PADDING_HALVES if self.dtype in HALVES or (self.tf32 and turned) else 4
        high, wide = (self.depth, lines) if turned else (lines, self.depth)
        return high, wide + apart

    def declared(self, name: str, lines: int, turned: bool) -> str:
        """Return the declaration of an operand's tile, or of its two buffers."""
        high, wide = self.shape(lines, turned)
        two = "[2]" if self.turns else ""
        return f"alignas(16) __shared__ {self.ctype} {name}_tile{two}[{high}][{wide}];"

    def bytes(self, lines: int, turned: bool) -> int:
        """Return the bytes of an operand's tile, or of its two buffers."""
        high, wide = self.shape(lines, turned)
        return (1 + self.turns) * high * wide * named_dtype(self.dtype).itemsize

    def start(self) -> Lines:
        """Return the statements that compute a thread's position in the tile."""
        if not self.by_matrices:
            return ["const int across = threadIdx.x % 16, down = threadIdx.x / 16;"]
        return [
            f"const int down = threadIdx.x / 32 % {self.warps_down} * {8 * self.high},"
            f" across = threadIdx.x / 32 / {self.warps_down} * {4 * self.wide};",
            "const int own_row = down + threadIdx.x % 32 / 4,"
            " own_column = across + threadIdx.x % 4 * 2;",
        ]

    def multiply(self, left_turned: bool, right_turned: bool) -> Lines:
        """Return the statements that add the products of two tiles to ``sums``."""
        if not self.by_matrices:
            of = "[at ^ 1]" if self.turns else ""
            pair = f"left_tile{of}, right_tile{of}"
            return [f"geon_multiply_tiles<{NARROW_TILE_SIDE}>({pair}, sums, down, across);"]
        turned = ", ".join(str(each).lower() for each in (left_turned, right_turned))
        return [
            f"geon_multiply_matrices<{self.kind}, {self.depth}, {turned}>(",
            "    left_tile, right_tile, sums, down, across);",
        ]

    def places(self) -> tuple[str, str]:
        """Return C functors that map a thread's row and column numbers to those of the matrix."""
        if self.by_matrices:
            return "geon_eighths{first_row + own_row}", "geon_pairs{first_column + own_column}"
        return (
            f"geon_fours<{NARROW_TILE_SIDE}>{{first_row + 4 * down}}",
            f"geon_fours<{NARROW_TILE_SIDE}>{{first_column + 4 * across}}",
        )


def tiles_for(dtype: str, rows: Size, columns: Size, tf32: bool = False) -> Tiles:
    """Return the tiles of a product with these numbers of rows and columns."""
    tf32 = tf32 and dtype == "float32"
    wide = WIDE_TILE_COLUMNS if tf32 or dtype in HALVES else NARROW_TILE_SIDE
    if isinstance(rows, int) and rows <= NARROW_TILE_SIDE:
        tall = NARROW_TILE_SIDE
    else:
        tall = TALL_TILE_ROWS
    if isinstance(columns, int) and columns <= NARROW_TILE_SIDE:
        wide = NARROW_TILE_SIDE
    return Tiles(dtype, tall, wide, tf32=tf32)


def large_tiles(dtype: str) -> Tiles | None:
    """Return the tiles of large products, or None if they gain nothing.

    In float32, a thread has twice the sums per load from shared memory, and a block all registers
    of a multiprocessor. Half precision reads a third less from the device's cache than tiles of 128
    by 128 do.
    """
    if dtype in HALVES:
        return Tiles(dtype, STAGED_ROWS, STAGED_COLUMNS, STAGED_DEPTH, staged=True)
    if dtype == "float32":
        return Tiles(dtype, TALL_TILE_ROWS, WIDE_TILE_COLUMNS, turns=True)
    return None
