"""Sort, argsort and top-k along lines: three algorithms, of which the plan has the one to use."""

from __future__ import annotations

from enum import Enum
from typing import Any, NamedTuple

from ....lazy_dataclasses import dataclass
from ....op_graph.axes.affine import Size
from ....op_graph.axes.lengths import product
from ....op_graph.op_graph import Op
from ....op_graph.values.dtypes import name_of
from ...kernels.ir.nest import Call
from ...lowering.planning.kernel_forms import choice
from ...printing.nests.parameters import Parameter
from ...printing.scalars.c_types import SUFFIXES
from ...sizes.scratch import lines as up_to_lines
from ..launches.launch_ir import THREADS_PER_BLOCK, FixedNumber, Grid
from ..launches.naming import CudaFunction, CudaKernelNames, Part

SORTS = frozenset(("sort", "argsort", "top_k"))
MAX_ALL_PAIRS_ELEMENTS = 32  # max. elements of a line that is sorted by comparing all pairs
# Max. elements of a line that is sorted in shared memory: four per thread.
MAX_SHARED_SORT_ELEMENTS = 4 * THREADS_PER_BLOCK
TILE_ELEMENTS = 8 * THREADS_PER_BLOCK  # elements of a long line per block
RADIX = THREADS_PER_BLOCK  # values of a digit: each thread counts one
FILES = ("sort.cuh",)


def key_of(x: Op, names: CudaKernelNames, text: str) -> tuple[str, str]:
    """Return the C type of an element's unsigned sort key, and the C text of the key."""
    helper = f"geon_key_{SUFFIXES[name_of(x.dtype)]}"
    names.calls([helper])
    return f"uint{8 * x.dtype.itemsize}_t", f"{helper}({text})"


def around(op: Op, at: int) -> tuple[Size, Size, Size]:
    """Return the shape of a contiguous value as (outer, axis, inner)."""
    lengths = op.axes.lengths
    return product(lengths[:at]), lengths[at], product(lengths[at + 1 :])


@dataclass(frozen=True, slots=True)
class SortMemory:
    """Scratch memory of a radix sort of ``lines`` lines of ``n`` elements, by ``digits`` bytes.

    It holds digit counts by tile and in total, two arrays of indices, and two arrays of keys of
    ``key`` bytes each.
    """

    lines: Size
    n: Size
    key: int
    digits: int

    @property
    def tiles(self) -> Size:
        """Return the number of tiles per line."""
        return (self.n + TILE_ELEMENTS - 1) // TILE_ELEMENTS

    @property
    def parts(self) -> tuple[Size, ...]:
        """Return the bytes of counts, count totals, two arrays of indices and two of keys."""
        counts = self.lines * RADIX * 4
        elements = self.lines * self.n
        sizes = (counts * self.tiles, counts, *[elements * 4] * 2, *[elements * self.key] * 2)
        return tuple([up_to_lines(size) for size in sizes])


class SortWay(Enum):
    """An algorithm that sorts lines, in words."""

    ALL_PAIRS = "a thread for each element counts the smaller elements of its line"
    IN_BLOCK = "a block sorts each line in shared memory"
    BY_DIGITS = "a radix sort of tiles"


class LineSort(NamedTuple):
    """A sort of lines; a radix sort takes ``memory``."""

    way: SortWay
    memory: SortMemory

    @property
    def summary(self) -> str:
        """Return the algorithm in words."""
        return self.way.value


def sort_forms(op: Op) -> tuple[Any, ...]:
    """Return the sort of an op's lines, by their length."""
    x = op.args[0]
    outer, n, inner = around(x, x.axes.index(op.attrs.axis))
    memory = SortMemory(outer * inner, n, x.dtype.itemsize, x.dtype.itemsize)
    pairs, block, digits = [(LineSort(way, memory),) for way in SortWay]
    longer = choice([MAX_SHARED_SORT_ELEMENTS - n], block, digits)
    return choice([MAX_ALL_PAIRS_ELEMENTS - n], pairs, longer)


def sort_parts(form: LineSort, names: CudaKernelNames) -> list[Part]:
    """Return the functions of a sort."""
    writer = _SortWriter(form.memory, names)
    if form.way is SortWay.ALL_PAIRS:
        return [writer.by_pairs()]
    return [writer.in_block()] if form.way is SortWay.IN_BLOCK else writer.by_digits()


class _SortWriter:
    def __init__(self, memory: SortMemory, names: CudaKernelNames) -> None:
        assert isinstance(names.kernel.work, Call)
        op = names.kernel.work.op
        self.op, self.names = op, names
        x = self.x = op.args[0]
        at = x.axes.index(op.attrs.axis)
        _, self.n, self.inner = around(x, at)
        self.memory = memory
        kept = op.axes.lengths[at] if op.primitive.name == "top_k" else self.n
        self.n_text, self.inner_text, self.kept = map(names.length, (self.n, self.inner, kept))
        self.x_name, self.out = names.memory(x), names.memory(op)
        self.key_type, key = key_of(x, names, f"{self.x_name}[line_start + (place) * inner]")
        is_largest = op.primitive.name == "top_k" and op.attrs.largest
        self.key = f"({self.key_type})~{key}" if is_largest else key

    def line(self, number: str) -> list[str]:
        """Return the statements that define a line's offsets in the operand and in the result."""
        return [
            f"const int64_t n = {self.n_text}, inner = {self.inner_text};",
            f"const int64_t line = {number}, column = line % inner;",
            "const int64_t line_start = line / inner * n * inner + column;",
            f"const int64_t result_start = line / inner * ({self.kept}) * inner + column;",
        ]

    def stored(self, place: str, position: str) -> str:
        """Return the statement that stores the element at ``position`` to rank ``place``."""
        value = position
        if self.op.primitive.name == "sort":
            value = f"{self.x_name}[line_start + ({position}) * inner]"
        return f"{self.out}[result_start + ({place}) * inner] = {value};"

    def by_pairs(self) -> CudaFunction:
        """Return the function with one thread per element, which counts the smaller elements."""
        body = [
            *self.line(f"at / ({self.n_text} * ({self.inner_text})) * ({self.inner_text}) "
                       f"+ at % ({self.inner_text})"),
            "const int64_t own = at / inner % n;",
            f"const auto key = [&](int64_t place) -> {self.key_type} {{ return {self.key}; }};",
            f"const {self.key_type} mine = key(own);",
            "int64_t before = 0;",
            "for (int64_t other = 0; other < n; other++) {",
            f"    const {self.key_type} its = key(other);",
            "    before += its < mine || (its == mine && other < own);",
            "}",
            f"if (before < {self.kept}) {self.stored('before', 'own')}",
        ]  # fmt: skip
        return self.names.by_elements(self.x.axes.size, body)

    def in_block(self) -> CudaFunction:
        """Return the function with one block per line."""
        body = [
            *self.line("blockIdx.x"),
            f"geon_sort_line<{self.key_type}>((int)n,",
            f"    [&](int64_t place) -> {self.key_type} {{ return {self.key}; }},",
            "    [&](int64_t place, int64_t position) {",
            f"    if (place < {self.kept}) {self.stored('place', 'position')}",
            "});",
        ]
        return self.names.function(
            body, Grid(self.memory.lines), THREADS_PER_BLOCK, True, files=FILES
        )

    def by_digits(self) -> list[Part]:
        """Return the radix sort, followed by the stores of the result."""
        sort = DigitSort(self.names, self.memory, self.key_type, self.key)
        body = [
            *self.line(f"at / ({self.n_text} * ({self.inner_text})) * ({self.inner_text}) "
                       f"+ at % ({self.inner_text})"),
            "const int64_t place = at / inner % n;",
            f"if (place >= {self.kept}) return;",
            *sort.arrays,
            f"const int64_t position = positions[{sort.last}][line * n + place];",
            self.stored("place", "position"),
        ]  # fmt: skip
        last = self.names.by_elements(self.x.axes.size, body)
        return [*sort.parts(self.line("(int64_t)blockIdx.x / tiles")), last]


class DigitSort:
    """LSD radix sort of lines; ``key`` is the C text of the key at ``place``.

    The sorted indices and keys end up in the arrays with index ``last`` of those in ``arrays``.
    """

    def __init__(self, names: CudaKernelNames, memory: SortMemory, key_type: str, key: str) -> None:
        self.names, self.memory, self.key_type, self.key = names, memory, key_type, key
        self.last = (memory.digits - 1) % 2
        works = names.scratch()
        offsets: list[str] = []
        total: Size = 0
        for size in memory.parts:
            offsets.append(names.length(total))
            total = total + size
        self.tiles = names.length(memory.tiles)
        self.counted = [
            f"uint32_t *const counts = (uint32_t *){works};",
            f"uint32_t *const totals = (uint32_t *)({works} + {offsets[1]});",
        ]
        self.arrays = [
            f"uint32_t *const positions[2] = {{(uint32_t *)({works} + {offsets[2]}), "
            f"(uint32_t *)({works} + {offsets[3]})}};",
            f"{key_type} *const keys[2] = {{({key_type} *)({works} + {offsets[4]}), "
            f"({key_type} *)({works} + {offsets[5]})}};",
        ]

    def parts(self, line: list[str]) -> list[Part]:
        """Return, for each digit, the kernels that count by tile, sum the counts and move elements.

        ``line`` has the statements that define a block's ``line`` and its offset.
        """
        return [part for digit in range(self.memory.digits) for part in self.digit(digit, line)]

    def digit(self, digit: int, line: list[str]) -> list[Part]:
        """Return the functions of one digit."""
        lines, tiles = self.memory.lines, self.memory.tiles
        tiled = [
            f"const int64_t tiles = {self.tiles}, tile = (int64_t)blockIdx.x % tiles;",
            *line,
            *self.counted,
            *self.arrays,
        ]
        down = Parameter("down", "int64_t", FixedNumber(8 * digit), False)
        turn = Parameter("from", "int64_t", FixedNumber((digit + 1) % 2), False)
        key, position, to = self.key, "(uint32_t)place", "0"
        further: tuple[Parameter, ...] = (down,)
        if digit:
            key, position = "keys[from][line * n + place]", "positions[from][line * n + place]"
            further, to = (down, turn), "1 - from"
        own = f"counts + line * {RADIX} * tiles"
        by_key = f"[&](int64_t place) -> {self.key_type} {{ return {key}; }}"
        count = [*tiled, f"geon_count_digits(n, tile, (int)down, {own}, tiles,", f"    {by_key});"]
        sums = [
            f"const int64_t tiles = {self.tiles};",
            *self.counted,
            "const int64_t digit = blockIdx.x;",
            "geon_sum_counts(counts + digit * tiles, tiles, totals + digit);",
        ]
        move = [
            *tiled,
            f"geon_move_by_digit<{self.key_type}>(n, tile, (int)down, {own}, tiles,",
            f"    totals + line * {RADIX}, {by_key},",
            f"    [&](int64_t place) -> uint32_t {{ return {position}; }},",
            f"    keys[{to}] + line * n, positions[{to}] + line * n);",
        ]

        def made(body: list[str], units: Size, further: tuple[Parameter, ...]) -> CudaFunction:
            return self.names.function(body, Grid(units), THREADS_PER_BLOCK, True, further, FILES)

        return [
            made(count, lines * tiles, further),
            made(sums, lines * RADIX, ()),
            made(move, lines * tiles, further),
        ]
