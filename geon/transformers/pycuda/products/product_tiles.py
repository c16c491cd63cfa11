"""How a block makes a tile of a product: by each thread's own sums, or by tensor cores.

Operands come to shared memory ``depth`` summed indices at a time. Each thread has ``high`` rows and
``wide`` columns of the tile.
"""

from __future__ import annotations

from dataclasses import dataclass

from ....op_graph.axes.affine import Size
from ....op_graph.values.dtypes import HALVES, named_dtype
from ...printing.scalars.c_expressions import C_TYPES
from ..kernels.cooperative_threads import Lines

THREADS = 256
NARROW, TALL, WIDE = 64, 128, 128  # rows and columns of tiles
DEPTH = {"float16": 32, "bfloat16": 32}  # summed indices that are in shared memory at one time
SHALLOW = 16  # the same of other dtypes
BANK = 8  # halves between the lines of a tile, so that 8 of them lie in different banks


@dataclass(frozen=True, slots=True)
class Tiles:
    """Tiles of ``rows`` by ``columns``, of operands of ``dtype``: two halves take tensor cores, and
    so does float32 rounded to ``tf32``.

    Where ``deep`` is given, so many summed indices are in shared memory at one time. Of tiles in
    ``turns`` there are two, and one is filled while the other is multiplied.
    """

    dtype: str
    rows: int
    columns: int
    deep: int = 0
    tf32: bool = False
    turns: bool = False

    @property
    def by_matrices(self) -> bool:
        """Whether tensor cores multiply."""
        return self.tf32 or self.dtype in HALVES

    @property
    def depth(self) -> int:
        """The summed indices that are in shared memory at one time."""
        return self.deep or DEPTH.get(self.dtype, SHALLOW)

    @property
    def ctype(self) -> str:
        """The type of elements in shared memory."""
        return "uint16_t" if self.dtype in HALVES else C_TYPES[self.dtype]

    @property
    def sum_type(self) -> str:
        """The type of sums."""
        return "float" if self.dtype in HALVES else C_TYPES[self.dtype]

    @property
    def kind(self) -> str:
        """What tensor cores multiply."""
        return "geon_tf32" if self.tf32 else f"geon_{self.dtype}"

    @property
    def warps_down(self) -> int:
        """How many warps of the 8 lie below each other, where tensor cores multiply."""
        return 2 if self.columns == WIDE else 4 if self.rows == TALL else 2

    @property
    def high(self) -> int:
        """The rows of a thread."""
        return self.rows // self.warps_down // 8 if self.by_matrices else self.rows // 16

    @property
    def wide(self) -> int:
        """The columns of a thread."""
        if self.by_matrices:
            return self.columns // (8 // self.warps_down) // 4
        return self.columns // 16

    @property
    def files(self) -> tuple[str, ...]:
        """What the text needs of ``cuda/``."""
        return ("chunks.cuh", "matrices.cuh" if self.by_matrices else "product.cuh")

    def is_turned(self, deep_adjoins: bool) -> bool:
        """Whether a tile in shared memory has a row for each summed index, not for each line."""
        return not self.by_matrices or not deep_adjoins

    def shape(self, lines: int, turned: bool) -> tuple[int, int]:
        """The rows and columns of an operand's tile in shared memory."""
        apart = BANK if self.dtype in HALVES or (self.tf32 and turned) else 4
        high, wide = (self.depth, lines) if turned else (lines, self.depth)
        return high, wide + apart

    def declared(self, name: str, lines: int, turned: bool) -> str:
        """The declaration of an operand's tile, or of its two."""
        high, wide = self.shape(lines, turned)
        two = "[2]" if self.turns else ""
        return f"alignas(16) __shared__ {self.ctype} {name}_tile{two}[{high}][{wide}];"

    def bytes(self, lines: int, turned: bool) -> int:
        """The bytes of an operand's tile, or of its two."""
        high, wide = self.shape(lines, turned)
        return (1 + self.turns) * high * wide * named_dtype(self.dtype).itemsize

    def start(self) -> Lines:
        """The statements that say which part of the tile is a thread's."""
        if not self.by_matrices:
            return ["const int across = threadIdx.x % 16, down = threadIdx.x / 16;"]
        return [
            f"const int down = threadIdx.x / 32 % {self.warps_down} * {8 * self.high},"
            f" across = threadIdx.x / 32 / {self.warps_down} * {4 * self.wide};",
            "const int own_row = down + threadIdx.x % 32 / 4,"
            " own_column = across + threadIdx.x % 4 * 2;",
        ]

    def multiply(self, left_turned: bool, right_turned: bool) -> Lines:
        """The statements that add the products of two tiles to ``sums``."""
        if not self.by_matrices:
            of = "[at ^ 1]" if self.turns else ""
            pair = f"left_tile{of}, right_tile{of}"
            return [f"geon_multiply_tiles<{NARROW}>({pair}, sums, down, across);"]
        turned = ", ".join(str(each).lower() for each in (left_turned, right_turned))
        return [
            f"geon_multiply_matrices<{self.kind}, {self.depth}, {turned}>(",
            "    left_tile, right_tile, sums, down, across);",
        ]

    def places(self) -> tuple[str, str]:
        """What gives the row, and the column, of a number of a thread's."""
        if self.by_matrices:
            return "geon_eighths{first_row + own_row}", "geon_pairs{first_column + own_column}"
        return (
            f"geon_fours<{NARROW}>{{first_row + 4 * down}}",
            f"geon_fours<{NARROW}>{{first_column + 4 * across}}",
        )


def tiles_for(dtype: str, rows: Size, columns: Size, tf32: bool = False) -> Tiles:
    """The tiles of a product of so many rows and columns."""
    tf32 = tf32 and dtype == "float32"
    wide = WIDE if tf32 or dtype in HALVES else NARROW
    if isinstance(rows, int) and rows <= NARROW:
        tall = NARROW
    else:
        tall = TALL
    if isinstance(columns, int) and columns <= NARROW:
        wide = NARROW
    return Tiles(dtype, tall, wide, tf32=tf32)


def large_tiles(dtype: str) -> Tiles | None:
    """The tiles of products that have many: a thread has twice the sums for what it reads of shared
    memory, and a block all of a processor's registers. None where they gain nothing.
    """
    return Tiles(dtype, TALL, WIDE, turns=True) if dtype == "float32" else None
