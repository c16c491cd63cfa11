"""Shared part of the attention kernels: block indices, scores and stores."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import replace

from ....op_graph.axes.affine import Size
from ....op_graph.op_graph import Op
from ...kernels.analysis.loop_depth import Depths
from ...kernels.ir.scalar_code import Contracted
from ...kernels.products.attention import ONE, Attention, strip_casts, strip_rounding
from ...printing.nests.contractions import ContractionPrinter
from ...printing.nests.loop_lines import indent
from ...printing.nests.scalar_statements import ScalarPrinter
from ...printing.nests.statement_blocks import StatementBlock
from ...printing.scalars.c_types import Dialect
from ..kernels.cooperative_threads import Lines, places
from ..launches.device import PipelineStages
from ..launches.launch_ir import THREADS_PER_BLOCK, Grid
from ..launches.naming import CudaFunction, CudaKernelNames
from .product_forms import size_of, tiles_along
from .product_tiles import NARROW_TILE_SIDE, Tiles
from .tile_loads import TileLoad, narrow

TILE_KEYS = NARROW_TILE_SIDE  # keys per tile
MAX_PART_RESULTS = 128  # max. results per row and block, and max. elements of a query in registers


class AttentionStepNames:
    """The parameters of a kernel, as seen by one of its steps, whose operands have own numbers."""

    dialect: Dialect

    def __init__(self, names: CudaKernelNames, operands: Sequence[Op]) -> None:
        self.names, self.operands, self.dialect = names, operands, names.dialect

    def operand(self, number: int) -> str:
        """Return the pointer to an operand of the step."""
        return self.names.pointer(self.operands[number])

    def length(self, length: Size) -> str:
        """Return the C text of a length."""
        return self.names.length(length)

    def calls(self, helpers: Iterable[str]) -> None:
        """Record that the kernel calls these helpers."""
        self.names.calls(helpers)


def up(size: int, each: int) -> int:
    """Round up to a multiple of ``each``."""
    return -(-size // each) * each


class AttentionWriter(ABC):
    """Base class of the writers of attention kernels; subclasses differ in how they multiply."""

    rows: int  # rows per block
    held: str  # C name of the results' sums
    tiles: Tiles  # tiles of queries and keys
    files: tuple[str, ...]
    threads: int = THREADS_PER_BLOCK
    stages: PipelineStages | None = None

    def __init__(self, work: Attention, names: CudaKernelNames, dtype: str) -> None:
        self.work, self.names, self.dtype = work, names, dtype
        first, second = work.first, work.second
        self.first_names = AttentionStepNames(names, first.operands)
        self.second_names = AttentionStepNames(names, second.operands)
        self.first_printer = ContractionPrinter(first, self.first_names)
        self.second_printer = ContractionPrinter(second, self.second_names)
        for loop in (*self.first_printer.loops, *self.second_printer.loops):
            names.length(loop.extent)
        self.batch = [replace(loop, name=f"batch_{k}") for k, loop in enumerate(first.batch)]
        known = {loop.name: f"batch_{k}" for k, loop in enumerate(first.batch)}
        self.first_batch = known
        self.second_batch = {
            loop.name: known.get(work.places.get(loop.name, ""), "0") for loop in second.batch
        }
        self.row_count = names.length(size_of(work.rows))
        self.key_count = names.length(size_of(work.keys))
        self.deep = names.length(size_of(first.summed))
        width = size_of(work.results)
        assert isinstance(width, int)
        self.width, self.part = width, min(width, MAX_PART_RESULTS)
        self.parts = -(-width // self.part)

    def fill(
        self,
        name: str,
        tiles: Tiles,
        lines: int,
        turned: bool | None = None,
        threads: int = THREADS_PER_BLOCK,
    ) -> TileLoad:
        """Return the loads of the operand ``name`` to its tile, which ``threads`` threads fill."""
        work = self.work
        plain = self.dtype == "float32"
        if name == "value":
            value = work.value if plain else narrow(work.value)
            return TileLoad(name, value, lines, work.results, "column", work.second,
                        self.second_names, self.second_printer, tiles, turned,
                        self.second_batch)  # fmt: skip
        is_query = name == "query"
        value = work.query if is_query else work.key
        return TileLoad(name, value if plain else narrow(value), lines,
                    work.rows if is_query else work.keys, "row" if is_query else "key", work.first,
                    self.first_names, self.first_printer, tiles, turned,
                    self.first_batch, threads)  # fmt: skip

    def function(self) -> CudaFunction:
        """Return the kernel."""
        grid = Grid(self.blocks)
        return self.names.function(
            self.body(), grid, self.threads, True, (), self.files, 1, stages=self.stages
        )

    @property
    def blocks(self) -> Size:
        """Return the number of blocks: batches, times tiles of rows, times parts of results."""
        high = tiles_along(self.work.rows, self.rows)
        return size_of(self.work.first.batch) * high * self.parts

    def which(self, block: str) -> Lines:
        """Return the statements that compute a block's rows, batch and part of wide results."""
        tall = self.names.length(tiles_along(self.work.rows, self.rows))
        batch = places(self.batch, "batch", self.names.length)
        head = f"const unsigned tall = (unsigned)({tall})"  # no launch has more blocks
        if self.parts == 1:
            return [
                f"{head};",
                f"const int64_t first_row = (int64_t)({block} % tall) * {self.rows};",
                f"const int64_t first_column = 0, batch = {block} / tall;",
                *batch,
            ]
        return [
            f"{head}, tile = {block} / {self.parts};",
            f"const int64_t first_row = (int64_t)(tile % tall) * {self.rows};",
            f"const int64_t first_column = {block} % {self.parts} * {self.part};",
            "const int64_t batch = tile / tall;",
            *batch,
        ]

    def score(self) -> Lines:
        """Return the statements that turn the product ``sum`` of a query and a key into a score."""
        work, length = self.work, self.names.length
        printer = self.first_printer
        block = printer.block({})
        printer.scalars.contracted = "sum"
        stored = printer.scalars.value(block, strip_rounding(work.first.stores[0].value))
        lines = [
            *[f"const int64_t {name} = {text};" for name, text in self.first_batch.items()],
            *places(work.rows, "row", length),
            *places(work.keys, "key", length),
            *block.lines,
            *[f"const int64_t {name} = {other};" for name, other in work.indices.items()],
            *[f"const int64_t {name} = 0;" for name in ONE],
        ]
        scalars = ScalarPrinter(AttentionStepNames(self.names, work.nest_operands), Depths({}, 0))
        scalars.count = printer.scalars.count
        inner = StatementBlock()
        inner.names[work.scores] = stored
        text = scalars.value(inner, strip_rounding(work.score))
        return [*lines, *map(str, inner.lines), f"return {text};"]

    @property
    def is_plain(self) -> bool:
        """Return True if results are stored without further computation."""
        stores = self.work.second.stores
        return len(stores) == 1 and isinstance(strip_casts(stores[0].value), Contracted)

    def stored(self) -> Lines:
        """Return the statements that compute and store a thread's results."""
        work, length = self.work, self.names.length
        rows = [replace(loop, name=f"row_{k}") for k, loop in enumerate(work.rows)]
        known = {**self.first_batch, **{old.name: new.name
                 for old, new in zip(work.rows, rows, strict=True)}}  # fmt: skip
        own = {loop.name for loop in (*work.results, *work.second.summed)}
        second = work.second
        aliases = [
            f"const int64_t {loop.name} = {known.get(work.places.get(loop.name, ''), '0')};"
            for loop in (*second.batch, *second.rows, *second.columns)
            if loop.name not in own
        ]
        row, column = self.tiles.places()
        each = "geon_each_plain_sum(" if self.is_plain else "geon_each_sum("
        slots = "" if self.is_plain else "own_sums, "
        return [
            f"{each}{self.held}, {slots}{self.row_count}, {self.width},",
            f"    {row}, {column},",
            "    [&](int64_t row, int64_t column, float sum) {",
            *indent([
                *places(rows, "row", length),
                *aliases,
                *places(work.results, "column", length),
                *self.second_printer.store({}, "sum"),
            ]),
            "});",
        ]  # fmt: skip

    # For subclasses -------------------------------------------------------------------------------

    @abstractmethod
    def body(self) -> Lines:
        """Return the statements of the kernel."""
