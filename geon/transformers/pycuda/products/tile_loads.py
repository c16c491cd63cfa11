"""Loads of a product's operand to a tile in shared memory.

Operands that are contiguous in memory are loaded in chunks, ahead of the tile that uses them. Other
operands are computed element by element when the tile is filled.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from ....lazy_dataclasses import dataclass
from ....op_graph.axes.affine import Size
from ....op_graph.axes.lengths import product
from ....op_graph.rows.elementwise import CAST
from ....op_graph.values.dtypes import FLOAT32, HALVES, name_of
from ...kernels.ir.nest import Loop
from ...kernels.ir.scalar_code import Apply, Scalar
from ...kernels.products.contraction import (
    Contraction,
    StridedAccess,
    access,
    merge_loops,
    unit_of,
)
from ...printing.nests.contractions import ContractionPrinter
from ...printing.nests.loop_lines import indent
from ...printing.nests.scalar_statements import MemoryNames
from ..kernels.cooperative_threads import Lines, places
from ..launches.launch_ir import THREADS_PER_BLOCK
from .product_tiles import Tiles

PANEL_LINE_HALVES = 64  # half-precision elements per line of a panel
CHUNK_BYTES = 16  # max. bytes per load of a thread


def narrow(value: Scalar) -> Scalar:
    """Return the half-precision operand of a cast to float32, else the operand itself."""
    if isinstance(value, Apply) and value.row is CAST and value.dtype is FLOAT32:
        (inner,) = value.args
        if name_of(inner.dtype) in HALVES:
            return inner
    return value


def factors_of(work: Contraction) -> tuple[Scalar, Scalar, str]:
    """Return both operands as they are multiplied, and their dtype; half precision if both are."""
    left, right = narrow(work.left), narrow(work.right)
    if left.dtype is right.dtype and name_of(left.dtype) in HALVES:
        return left, right, name_of(left.dtype)
    return work.left, work.right, name_of(work.dtype)


@dataclass(frozen=True, slots=True)
class Chunks:
    """A contiguous operand, loaded in chunks of ``each`` elements.

    ``access`` is how it lies in memory. ``along`` are the loops along contiguous memory, ``across``
    those of the tile's other side, and ``steps`` the strides of both by loop, in elements.
    """

    each: int
    access: StridedAccess
    along: tuple[Loop, ...]
    across: tuple[Loop, ...]
    steps: dict[str, Size]


def chunks_of(value: Scalar, work: Contraction, side: Sequence[Loop], dtype: str) -> Chunks | None:
    """Return how an operand is loaded in chunks, or None if it is computed.

    The loops ``side`` index its rows or columns, and tiles have elements of ``dtype``.
    """
    loops = (*work.batch, *work.rows, *work.columns, *work.summed)
    found = access(value, loops)
    if found is None or name_of(value.dtype) != dtype:
        return None
    near, far = work.summed, tuple(side)
    if not is_along(work.summed, value, loops):
        near, far = far, near
    along, steps = merge_loops(near, found.strides)
    across, more = merge_loops(far, found.strides)
    each = chunk_elements(value.dtype)
    if not along or steps[along[-1].name] != 1 or not whole_chunks(along, each):
        return None
    return Chunks(each, found, along, across, {**steps, **more})


def is_along(summed: Sequence[Loop], value: Scalar, loops: Sequence[Loop]) -> bool:
    """Return True if reduced elements of an operand are adjacent in memory."""
    unit = unit_of(value, loops)
    return any(loop.name == unit for loop in summed)


class Panels(NamedTuple):
    """A tile in panels: its bytes, and as C text if it is transposed, and lines per panel."""

    bytes: int
    text: str


class TileLoad:
    """Loads of the operand ``name`` to a tile of ``lines`` lines, which the loops ``side`` index.

    ``index`` is the C name of a line's number. ``turned`` overrides the tile's orientation.
    ``batch`` has the C texts of batch indices. ``threads`` is the number of threads that fill the
    tile, unless it is in panels.
    """

    def __init__(
        self,
        name: str,
        value: Scalar,
        lines: int,
        side: Sequence[Loop],
        index: str,
        work: Contraction,
        names: MemoryNames,
        printer: ContractionPrinter,
        tiles: Tiles,
        turned: bool | None = None,
        batch: Mapping[str, str] | None = None,
        threads: int = THREADS_PER_BLOCK,
    ) -> None:
        self.name, self.value, self.side, self.work = name, value, side, work
        self.names, self.printer, self.tiles = names, printer, tiles
        self.index, self.lines, self.batch, self.threads = index, lines, batch or {}, threads
        self.deep_adjoins = is_along(work.summed, value, printer.loops)
        self.turned = tiles.is_turned(self.deep_adjoins) if turned is None else turned
        self.size = names.length(product(loop.extent for loop in side))
        self.chunks = chunks_of(value, work, side, tiles.dtype)
        self.batch_steps: list[tuple[str, str]] = []
        if self.chunks is not None:
            self.name_lengths(self.chunks)

    @property
    def extents(self) -> tuple[int, int]:
        """Return the extents of the tile along contiguous memory, and across."""
        pair = (self.tiles.depth, self.lines)
        return pair if self.deep_adjoins else (pair[1], pair[0])

    def name_lengths(self, chunks: Chunks) -> None:
        """Make the lengths and the pointer of a contiguous operand parameters of the kernel."""
        length, strides = self.names.length, chunks.access.strides
        self.batch_steps = [
            (self.batch.get(loop.name, loop.name), length(strides[loop.name]))
            for loop in self.work.batch
            if strides.get(loop.name, 0) != 0
        ]
        for size in chunks.steps.values():
            length(size)
        for loop in (*chunks.along, *chunks.across):
            length(loop.extent)
        start = chunks.access.start
        behind = "" if start == 0 else f" + {length(start)}"
        self.start = f"{self.names.operand(chunks.access.operand)}{behind}"

    def declared(self) -> Lines:
        """Return the declarations of the tile, the registers and the operand's start."""
        return [self.tiles.declared(self.name, self.lines, self.turned), *self.begun()]

    def begun(self) -> Lines:
        """Return the declarations of the registers and the operand's start, unless computed."""
        found: Lines = []
        chunks = self.chunks
        if chunks is not None:
            near, far = self.extents
            count = -(-near * far // chunks.each // self.threads)
            found.append(
                f"geon_chunk<{self.tiles.ctype}, {chunks.each}> {self.name}_next[{count}];"
            )
            found.append(self.started())
        return found

    def started(self) -> str:
        """Return the declaration of the pointer to the operand's start."""
        assert self.chunks is not None
        batch = "".join([f" + {name} * ({step})" for name, step in self.batch_steps])
        return f"const auto *const {self.name}_start = {self.start}{batch};"

    def ahead(self, deep: str, end: str) -> Lines:
        """Return the loads to registers, from the reduced index ``deep`` on."""
        chunks = self.chunks
        if chunks is None:
            return []
        into = f"{self.name}_next"
        return self.read("geon_read", self.teamed, into, chunks, deep, end)

    def brought(self, tile: str, deep: str, end: str) -> Lines:
        """Return the asynchronous copies to a tile in panels, or the statements that compute it."""
        chunks = self.chunks
        if chunks is None:
            return self.filled(f"geon_fill_panels<{self.shape}>({tile}", deep, end)
        return self.read("geon_bring", self.shape, tile, chunks, deep, end)

    def read(
        self, function: str, shape: str, into: str, chunks: Chunks, deep: str, end: str
    ) -> Lines:
        """Return the call that loads chunks; it is simpler if lines have a constant stride."""
        near, far, bounds = self.bounds(deep, end)
        start = f"<{shape}>({into}, {self.name}_start,"
        if len(chunks.along) == len(chunks.across) == 1:
            step = self.names.length(chunks.steps[chunks.across[0].name])
            return [f"{function}_lines{start} {step}, {bounds});"]
        inner = [
            *places(chunks.along, near, self.names.length),
            *places(chunks.across, far, self.names.length),
            f"return {self.offset(chunks)};",
        ]
        head = f"{function}_tile{start} {bounds}, [&](int64_t {near}, int64_t {far}) {{"
        return [head, *indent(inner), "});"]

    @property
    def shape(self) -> str:
        """Return the C text of the tile's extents."""
        return "{}, {}".format(*self.extents)

    @property
    def teamed(self) -> str:
        """Return the same, with the number of threads if it is not the whole block."""
        return self.shape if self.threads == THREADS_PER_BLOCK else f"{self.shape}, {self.threads}"

    def panels(self) -> Panels:
        """Return the tile's layout in panels with lines of 64 half-precision elements."""
        near, far = self.extents
        turned = str(not self.deep_adjoins).lower()
        return Panels(
            -(-near // PANEL_LINE_HALVES) * far * PANEL_LINE_HALVES * 2, f"{turned}, {far}"
        )

    def bounds(self, deep: str, end: str) -> tuple[str, str, str]:
        """Return the names of the indices along memory and across, and the text of bounds."""
        pairs = {"deep": f"{deep}, {end}", self.index: f"first_{self.index}, {self.size}"}
        near, far = ("deep", self.index) if self.deep_adjoins else (self.index, "deep")
        return near, far, f"{pairs[near]}, {pairs[far]}"

    def offset(self, chunks: Chunks) -> str:
        """Return the C text of a chunk's offset from the operand's start."""
        terms = []
        for loop in (*chunks.across, *chunks.along):
            step = self.names.length(chunks.steps[loop.name])
            if step != "0":
                terms.append(loop.name if step == "1" else f"{loop.name} * ({step})")
        return " + ".join(terms) or "0"

    def put(self, deep: str, end: str) -> Lines:
        """Return the statements that fill the tile, from the reduced index ``deep`` on."""
        if self.chunks is None:
            return self.computed(deep, end)
        straight = self.turned != self.deep_adjoins  # same orientation as in memory
        function = "geon_put_tile" if straight else "geon_put_tile_turned"
        return [f"{function}<{self.teamed}>({self.filled_tile}, {self.name}_next);"]

    @property
    def filled_tile(self) -> str:
        """Return the C text of the tile that is filled."""
        return f"{self.name}_tile[at]" if self.tiles.turns else f"{self.name}_tile"

    def computed(self, deep: str, end: str) -> Lines:
        """Return the statements that compute each element of the tile."""
        turned = str(self.turned == self.deep_adjoins).lower()
        team = "" if self.threads == THREADS_PER_BLOCK else f", {self.threads}"
        head = f"geon_fill_tile<{self.shape}, {turned}{team}>({self.filled_tile}"
        return self.filled(head, deep, end)

    def filled(self, head: str, deep: str, end: str) -> Lines:
        """Return the call, beginning with ``head``, of a helper that evaluates each element."""
        near, far, bounds = self.bounds(deep, end)
        block = self.printer.block({})
        text = self.printer.scalars.value(block, self.value)
        inner = [
            *[f"const int64_t {name} = {text};" for name, text in self.batch.items()],
            *places(self.side, self.index, self.names.length),
            *places(self.work.summed, "deep", self.names.length),
            *block.lines,
            f"return {text};",
        ]
        return [
            f"{head}, {bounds},",
            f"    [&](int64_t {near}, int64_t {far}) -> {self.tiles.ctype} {{",
            *indent(inner),
            "});",
        ]


def chunk_elements(dtype: np.dtype[Any]) -> int:
    """Return the elements per load of a thread: of dtypes below 4 bytes, halves alone have more."""
    itemsize = dtype.itemsize if name_of(dtype) in HALVES else max(dtype.itemsize, 4)
    return CHUNK_BYTES // itemsize


def whole_chunks(along: Sequence[Loop], each: int) -> bool:
    """Return True if chunks that begin at multiples of ``each`` are contiguous."""
    return len(along) == 1 or (isinstance(along[-1].extent, int) and along[-1].extent % each == 0)
