"""Loads of a product's operand to a tile in shared memory.

Operands that are contiguous in memory are loaded in chunks, ahead of the tile that uses them. Other
operands are computed element by element when the tile is filled.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from ....op_graph.axes.lengths import product
from ....op_graph.rows.elementwise import CAST
from ....op_graph.values.dtypes import FLOAT32, HALVES, name_of
from ...kernels.ir.nest import Loop
from ...kernels.ir.scalar_code import Apply, Scalar
from ...kernels.products.contraction import Contraction, access, merge_loops, unit_of
from ...printing.nests.contractions import ContractionPrinter
from ...printing.nests.loop_lines import indent
from ...printing.nests.scalar_statements import MemoryNames
from ..kernels.cooperative_threads import Lines, places
from ..launches.launch_ir import THREADS_PER_BLOCK
from .product_tiles import Tiles

PANEL_LINE_HALVES = 64  # half-precision elements per line of a panel
CHUNK_BYTES = 16  # max. bytes per load of a thread; the limits in elements follow
MAX_CHUNK_ELEMENTS = {"float16": 8, "bfloat16": 8}
DEFAULT_CHUNK_ELEMENTS = 4


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

    ``along`` are the loops along contiguous memory, ``across`` those of the tile's other side.
    ``steps`` has the C texts of the operand's strides by loop, and ``batch`` those of batch
    indices.
    """

    each: int
    start: str
    along: tuple[Loop, ...]
    across: tuple[Loop, ...]
    batch: tuple[tuple[str, str], ...]
    steps: dict[str, str]


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
        unit = unit_of(value, printer.loops)
        self.deep_adjoins = any(loop.name == unit for loop in work.summed)
        self.turned = tiles.is_turned(self.deep_adjoins) if turned is None else turned
        self.size = names.length(product(loop.extent for loop in side))
        self.chunks = self.chunked()

    @property
    def extents(self) -> tuple[int, int]:
        """Return the extents of the tile along contiguous memory, and across."""
        pair = (self.tiles.depth, self.lines)
        return pair if self.deep_adjoins else (pair[1], pair[0])

    def chunked(self) -> Chunks | None:
        """Return how the operand is loaded in chunks, or None if it is computed."""
        found = access(self.value, self.printer.loops)
        if found is None or name_of(self.value.dtype) != self.tiles.dtype:
            return None
        near, far = self.work.summed, tuple(self.side)
        if not self.deep_adjoins:
            near, far = far, near
        along, steps = merge_loops(near, found.strides)
        across, more = merge_loops(far, found.strides)
        each = min(
            MAX_CHUNK_ELEMENTS.get(self.tiles.dtype, DEFAULT_CHUNK_ELEMENTS),
            CHUNK_BYTES // self.value.dtype.itemsize,
        )
        if not along or steps[along[-1].name] != 1 or not whole_chunks(along, each):
            return None
        length = self.names.length
        batch = [
            (self.batch.get(loop.name, loop.name), length(found.strides[loop.name]))
            for loop in self.work.batch
            if found.strides.get(loop.name, 0) != 0
        ]
        texts = {name: length(step) for name, step in {**steps, **more}.items()}
        for loop in (*along, *across):
            length(loop.extent)
        behind = "" if found.start == 0 else f" + {length(found.start)}"
        start = f"{self.names.operand(found.operand)}{behind}"
        return Chunks(each, start, along, across, tuple(batch), texts)

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
        batch = "".join([f" + {name} * ({step})" for name, step in self.chunks.batch])
        return f"const auto *const {self.name}_start = {self.chunks.start}{batch};"

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
            step = chunks.steps[chunks.across[0].name]
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
            step = chunks.steps[loop.name]
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


def whole_chunks(along: Sequence[Loop], each: int) -> bool:
    """Return True if chunks that begin at multiples of ``each`` are contiguous."""
    return len(along) == 1 or (isinstance(along[-1].extent, int) and along[-1].extent % each == 0)
