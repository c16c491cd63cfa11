"""How an operand of a product comes to a tile in shared memory.

What adjoins in memory is read some neighbours at once, ahead of the tile that it is for; other
operands are computed element by element when the tile is filled.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ...op_graph.dtypes import FLOAT32, HALVES, name_of
from ...op_graph.elementwise import CAST
from ...op_graph.lengths import product
from ..kernels.contraction import Contraction, access, merged, unit_of
from ..kernels.scalar import Apply, Scalar
from ..kernels.types import Loop
from ..printing.contractions import ContractionPrinter
from .naming import KernelNames, indented
from .product_tiles import THREADS, Tiles
from .teams import Lines, places

CHUNK = 16  # bytes that a thread reads at once, of no more than so many elements:
MOST = {"float16": 8, "bfloat16": 8}
FEW = 4


def narrow(value: Scalar) -> Scalar:
    """The half that an operand is of which the product takes the float32; else the operand."""
    if isinstance(value, Apply) and value.row is CAST and value.dtype is FLOAT32:
        (inner,) = value.args
        if name_of(inner.dtype) in HALVES:
            return inner
    return value


def multiplied(work: Contraction) -> tuple[Scalar, Scalar, str]:
    """Both operands as they are multiplied, and their dtype: halves as such where both are."""
    left, right = narrow(work.left), narrow(work.right)
    if left.dtype is right.dtype and name_of(left.dtype) in HALVES:
        return left, right, name_of(left.dtype)
    return work.left, work.right, name_of(work.dtype)


@dataclass(frozen=True, slots=True)
class Chunks:
    """Neighbouring elements of an operand in memory, ``each`` of them read at once.

    ``along`` are the loops along which they adjoin, ``across`` those of the tile's other side;
    ``steps`` are the operand's strides, of these loops and of the ``batch``.
    """

    each: int
    start: str
    along: tuple[Loop, ...]
    across: tuple[Loop, ...]
    batch: tuple[tuple[str, str], ...]
    steps: dict[str, str]


class Fill:
    """The operand ``name``, whose lines are over ``side`` loops, on its way to a tile."""

    def __init__(
        self,
        name: str,
        value: Scalar,
        side: Sequence[Loop],
        work: Contraction,
        names: KernelNames,
        printer: ContractionPrinter,
        tiles: Tiles,
    ) -> None:
        self.name, self.value, self.side, self.work = name, value, side, work
        self.names, self.printer, self.tiles = names, printer, tiles
        self.index = "row" if name == "left" else "column"
        self.lines = tiles.rows if name == "left" else tiles.columns
        unit = unit_of(value, printer.loops)
        self.deep_adjoins = any(loop.name == unit for loop in work.summed)
        self.turned = tiles.is_turned(self.deep_adjoins)
        self.size = names.length(product(loop.extent for loop in side))
        self.chunks = self.chunked()

    @property
    def extents(self) -> tuple[int, int]:
        """The elements of the tile along memory, and across."""
        pair = (self.tiles.depth, self.lines)
        return pair if self.deep_adjoins else (pair[1], pair[0])

    def chunked(self) -> Chunks | None:
        """How the operand is read some elements at once; None where it is computed."""
        found = access(self.value, self.printer.loops)
        if found is None or name_of(self.value.dtype) != self.tiles.dtype:
            return None
        near, far = self.work.summed, tuple(self.side)
        if not self.deep_adjoins:
            near, far = far, near
        along, steps = merged(near, found.strides)
        across, more = merged(far, found.strides)
        each = min(MOST.get(self.tiles.dtype, FEW), CHUNK // self.value.dtype.itemsize)
        if not along or steps[along[-1].name] != 1 or not whole_chunks(along, each):
            return None
        length = self.names.length
        batch = [
            (loop.name, length(found.strides[loop.name]))
            for loop in self.work.batch
            if found.strides.get(loop.name, 0) != 0
        ]
        texts = {name: length(step) for name, step in {**steps, **more}.items()}
        for loop in (*along, *across):
            length(loop.extent)
        start = f"{self.names.operand(found.operand)} + {length(found.start)}"
        return Chunks(each, start, along, across, tuple(batch), texts)

    def declared(self) -> Lines:
        """The tile, what is on its way to it, and where the operand begins."""
        found = [self.tiles.declared(self.name, self.lines, self.turned)]
        chunks = self.chunks
        if chunks is not None:
            near, far = self.extents
            count = -(-near * far // chunks.each // THREADS)
            found.append(
                f"geon_chunk<{self.tiles.ctype}, {chunks.each}> {self.name}_next[{count}];"
            )
            batch = "".join([f" + {name} * ({step})" for name, step in chunks.batch])
            found.append(f"const auto *const {self.name}_start = {chunks.start}{batch};")
        return found

    def ahead(self, deep: str, end: str) -> Lines:
        """The statements that read the elements from the summed index ``deep`` on."""
        chunks = self.chunks
        if chunks is None:
            return []
        along, across = (deep, f"first_{self.index}")
        high, sizes = (end, self.size), ("deep", self.index)
        if not self.deep_adjoins:
            along, across, high, sizes = across, along, high[::-1], sizes[::-1]
        near, far = sizes
        inner = [
            *places(chunks.along, near, self.names.length),
            *places(chunks.across, far, self.names.length),
            f"{self.name}_next[k] = geon_load_chunk<{chunks.each}>(",
            f"    {self.name}_start + {self.offset(chunks)}, {high[0]} - {near});",
        ]
        body = [
            f"const int64_t {near} = {along} + in_near, {far} = {across} + in_far;",
            f"{self.name}_next[k] = {{}};",
            f"if ({near} < {high[0]} && {far} < {high[1]}) {{",
            *indented(inner),
            "}",
        ]
        return self.each(chunks.each, body)

    def offset(self, chunks: Chunks) -> str:
        """Where the first element of a chunk lies behind the operand's start."""
        terms = []
        for loop in (*chunks.across, *chunks.along):
            step = chunks.steps[loop.name]
            if step != "0":
                terms.append(loop.name if step == "1" else f"{loop.name} * ({step})")
        return " + ".join(terms) or "0"

    def each(self, size: int, statements: Lines) -> Lines:
        """Statements for each chunk ``k`` of a thread, or each element where ``size`` is 1."""
        near, far = self.extents
        count = near * far // size
        inner = [
            f"const int chunk = threadIdx.x + k * {THREADS};",
            *([f"if (chunk >= {count}) break;"] if count % THREADS else []),
            f"const int in_near = chunk % {near // size}"
            + (f" * {size}, " if size > 1 else ", ")
            + f"in_far = chunk / {near // size};",
            *statements,
        ]
        unroll = ["#pragma unroll"] if size > 1 else []
        turns = -(-count // THREADS)
        return [*unroll, f"for (int k = 0; k < {turns}; k++) {{", *indented(inner), "}"]

    def put(self, deep: str, end: str) -> Lines:
        """The statements that fill the tile from the summed index ``deep`` on."""
        if self.chunks is None:
            return self.computed(deep, end)
        straight = self.turned != self.deep_adjoins  # as it lies in memory
        size = self.chunks.each
        if straight:
            chunk = f"geon_chunk<{self.tiles.ctype}, {size}>"
            place = f"&{self.name}_tile[in_far][in_near]"
            return self.each(size, [f"*({chunk} *){place} = {self.name}_next[k];"])
        body = [
            "#pragma unroll",
            f"for (int at = 0; at < {size}; at++)",
            f"    {self.name}_tile[in_near + at][in_far] = {self.name}_next[k].at[at];",
        ]
        return self.each(size, body)

    def computed(self, deep: str, end: str) -> Lines:
        """The statements that compute each element of the tile."""
        near, far = ("deep", self.index) if self.deep_adjoins else (self.index, "deep")
        firsts = {"deep": deep, self.index: f"first_{self.index}"}
        high = {"deep": end, self.index: self.size}
        lines, text = self.printer.element(self.value)({})
        inside = [
            *places(self.side, self.index, self.names.length),
            *places(self.work.summed, "deep", self.names.length),
            *lines,
            f"element = {text};",
        ]
        at = {near: "in_near", far: "in_far"}
        pair = [at["deep"], at[self.index]] if self.turned else [at[self.index], at["deep"]]
        body = [
            f"const int64_t {near} = {firsts[near]} + in_near, {far} = {firsts[far]} + in_far;",
            f"{self.tiles.ctype} element = 0;",
            f"if ({near} < {high[near]} && {far} < {high[far]}) {{",
            *indented(inside),
            "}",
            f"{self.name}_tile[{pair[0]}][{pair[1]}] = element;",
        ]
        return self.each(1, body)


def whole_chunks(along: Sequence[Loop], each: int) -> bool:
    """Whether the elements of a chunk that begins at a multiple of ``each`` adjoin."""
    return len(along) == 1 or (isinstance(along[-1].extent, int) and along[-1].extent % each == 0)
