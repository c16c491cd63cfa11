"""Emit non-temporal stores for results that are larger than the caches.

A cache line that is written as a whole by non-temporal stores is not read first, so that a sum of
two arrays moves three arrays instead of four. Some iterations of an innermost loop write to a
buffer in the L1 cache, which is then copied. Each call decides this by the bytes that the nest
stores and reads.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from ....op_graph.axes.affine import Size
from ....op_graph.axes.lengths import product
from ...kernels.ir.nest import Loop, Nest, Pass, Store
from ...kernels.ir.scalar_code import Load, Scalar, walk
from ...loops.rules.streaming_copies import (
    MAX_STREAMED_STORES,
    MAX_STREAMED_WORK,
    MIN_STREAMED_TURNS,
    STREAMED_BLOCK_BYTES,
)
from ...printing.nests.loop_lines import indent
from ...printing.nests.pass_text import PrintedPass, PrintedStore, first_turn
from ...sizes.blocks import CACHE_LINE_BYTES
from ..machine.caches import MIN_CACHE_BYTES
from ..names.naming import KernelNames
from .transpose_tiles import TILE_ROW_BYTES, width

MIN_SINGLE_TEXT_TURNS = (
    256  # iterations from which on one loop serves plain and non-temporal stores
)
MIN_STREAMING_PIECE_BYTES = 1 << 16  # minimum bytes that a piece of a nest stores non-temporally
TRANSPOSED_STORE_WEIGHT = (
    2  # weight of bytes that are stored transposed, where lines are not prefetched
)
RESULT_LIMIT, REREAD_LIMIT = "geon_past_bytes", "geon_reread_bytes"


@dataclass(frozen=True, slots=True)
class Passing:
    """The stores of a nest that may be non-temporal.

    ``operands`` are the numbers of their operands. ``stored_bytes`` are the bytes that the nest
    stores, ``touched`` those that it stores or reads. ``limit`` is the C variable that has the
    bytes from which on they are.
    """

    operands: frozenset[int]
    stored: Size
    touched: Size
    limit: str = RESULT_LIMIT

    def test(self, names: KernelNames) -> str:
        """Return the C expression that decides in a call."""
        sizes = [names.length(size) for size in (self.stored, self.touched)]
        return f"geon_is_past({', '.join([*sizes, self.limit])})"


def passing(work: Nest, names: KernelNames) -> Passing | None:
    """Return the stores of a nest that may be non-temporal; None if there are none or too few
    bytes.

    Operands that the nest also reads are excluded: their lines are already in the cache. What lies
    in the arena is read again by a later kernel, so the whole cache counts for it.
    """
    nests = work.pieces or (work,)
    size: Size = 0
    for nest in nests:
        size = size + stored_bytes(nest)
    if isinstance(size, int) and size < MIN_CACHE_BYTES:
        return None
    nodes = [node for nest in (work, *nests) for node in walk(*values(nest))]
    read = {x.operand: work.operands[x.operand] for x in nodes if isinstance(x, Load)}
    places = {names.place(op) for op in read.values()}
    written = {store.operand for nest in (work, *nests) for store in stores(nest)}
    free = [k for k in written if names.place(work.operands[k]) not in places]
    touched = size
    for op in read.values():
        touched = touched + op.axes.size * op.dtype.itemsize
    if all(nest.across is not None and stores_only(nest) for nest in nests):
        size, touched = (each * TRANSPOSED_STORE_WEIGHT for each in (size, touched))
    again = any(names.place(work.operands[k])[0] == "arena" for k in free)
    limit = REREAD_LIMIT if again else RESULT_LIMIT
    return Passing(frozenset(free), size, touched, limit) if free else None


def stores_only(nest: Nest) -> bool:
    """Return True if a nest only stores elements."""
    return bool(nest.passes) and not any(each.reductions for each in nest.passes)


def may_pass(piece: Nest, whole: Size) -> bool:
    """Return True if a piece of a nest that stores ``whole`` bytes stores enough for non-temporal
    stores.

    A border piece has fewer open lengths as factors than the whole, so it is a small part of it.
    """
    size = stored_bytes(piece)
    return (
        size >= MIN_STREAMING_PIECE_BYTES
        if isinstance(size, int)
        else degree(size) >= degree(whole)
    )


def degree(size: Size) -> int:
    """Return the maximum degree of a term in open lengths."""
    if isinstance(size, int):
        return 0
    return max(sum(power for _, power in monomial) for monomial, _ in size.terms)


def may_begin(store: PrintedStore) -> bool:
    """Return True if the stores of all rows may begin at cache lines."""
    return not isinstance(store.apart, int) or store.apart * store.itemsize % CACHE_LINE_BYTES == 0


def stores(nest: Nest) -> list[Store]:
    """Return all stores of a nest."""
    steps = (*nest.steps, *nest.ending)
    return [x for each in steps for x in (each.stores if isinstance(each, Pass) else (each,))]


def values(nest: Nest) -> list[Scalar]:
    """Return all values that a nest stores, reduces or keeps in row arrays."""
    found = [store.value for store in stores(nest)]
    for step in nest.passes:
        found += [*step.reduced, *(keep.value for keep in step.keeps)]
    return found


def stored_bytes(nest: Nest) -> Size:
    """Return the bytes that the passes of a nest store."""
    rows = product([loop.extent for loop in nest.rows])
    if nest.across is not None:
        rows = rows * nest.across.extent
    size: Size = 0
    for step in nest.passes:
        each = sum(store.dtype.itemsize for store in step.stores)
        size = size + rows * product([loop.extent for loop in step.loops]) * each
    return size


class Past:
    """Emits the non-temporal stores of one task and records the functions that they need."""

    def __init__(self, passing: Passing | None, names: KernelNames) -> None:
        self.passing, self.names = passing, names
        self.used: dict[str, None] = {}
        self.plain = False  # there are such stores that are not transposed
        self.fenced = False  # there are such stores without a stream: rows of tiles

    def chosen(self, made: PrintedPass, inner: Loop) -> list[PrintedStore]:
        """Return the stores of a pass with innermost loop ``inner`` that may be non-temporal.

        A pass with reductions has none: its terms are added in blocks of another size. Nor has one
        that computes much.
        """
        short = isinstance(inner.extent, int) and inner.extent < MIN_STREAMED_TURNS
        if self.passing is None or made.sums or made.states or (short and not made.flat):
            return []
        if made.weight > MAX_STREAMED_WORK * sum(store.itemsize for store in made.stores):
            return []
        if made.crosses and not isinstance(self.passing.stored, int):
            return []  # small results would be a tenth slower
        free = self.passing.operands
        found = [x for x in made.stores if x.start is not None and x.operand in free]
        wide = width(made) if made.crosses else 0
        found = [
            x
            for x in found
            if may_begin(x) or wide * x.itemsize >= TILE_ROW_BYTES or x.apart == wide
        ]
        return found if len(found) <= MAX_STREAMED_STORES else []

    def statements(self, chosen: list[PrintedStore], lines: Iterable[object]) -> list[object]:
        """Return statements in which the ``chosen`` stores write to buffers."""
        numbers = {store.start: k for k, store in enumerate(chosen)}

        def put(line: object) -> object:
            if not isinstance(line, PrintedStore):
                return line
            k = numbers.get(line.start)
            return line.at(line.place if k is None else f"near_{k}[{line.index}]")

        return [put(line) for line in lines]

    def loop(
        self,
        chosen: list[PrintedStore],
        inner: Loop,
        bounds: tuple[str, str],
        run: Callable[[str, str], list[str]],
    ) -> list[str]:
        """Return the loop ``run`` over lanes between bounds, in blocks that are copied.

        With few bytes stored, one block without copies can use the same text. That is done if the
        nest's size is known, and for a loop of at least ``MIN_SINGLE_TEXT_TURNS`` iterations. Other
        loops have a second version without blocks, as a block would cost too much. Blocks end at
        cache lines. Stores are buffered only if all runs begin at cache lines: otherwise two lines
        of each run would be written in parts.
        """
        assert self.passing is not None
        self.plain = True
        first, size, (low, high) = first_turn(inner.name), inner.extent, bounds
        flags = ["past"]
        if not isinstance(size, int):
            flags.append(f"{high} - {low} >= {MIN_STREAMED_TURNS}")
        step = self.names.length(chosen[0].apart * chosen[0].itemsize)
        flags.append(f"(((uintptr_t)({chosen[0].start}) | ({step})) & {CACHE_LINE_BYTES - 1}) == 0")
        begin = [
            f"const int64_t {first} = {low};",
            f"const _Bool passes = {' && '.join(flags)};",
        ]
        known = isinstance(self.passing.stored, int) or (
            isinstance(size, int) and size >= MIN_SINGLE_TEXT_TURNS
        )
        if known:
            lines = self.blocks(chosen, inner, bounds, run, "passes", False)
        else:
            lines = [
                "if (passes) {",
                *indent(self.blocks(chosen, inner, bounds, run, "", False)),
                "} else {",
                *indent([*_near(chosen, "false"), *run(low, high)]),
                "}",
            ]
        return ["{", *indent([*begin, *lines]), "}"]

    def row_of_tile(
        self,
        chosen: list[PrintedStore],
        inner: Loop,
        wide: int,
        bounds: tuple[str, str],
        run: Callable[[str, str], list[str]],
    ) -> list[str]:
        """Return the loop ``run`` along a row of a tile of ``wide`` columns.

        Rows of a tile are contiguous if the tile has all columns.
        """
        if not chosen:
            return run(*bounds)
        adjoin = all(store.apart == wide for store in chosen)
        self.fenced = self.fenced or not adjoin
        return self.blocks(chosen, inner, bounds, run, "past", True, rows=not adjoin)

    def blocks(
        self,
        chosen: list[PrintedStore],
        inner: Loop,
        bounds: tuple[str, str],
        run: Callable[[str, str], list[str]],
        flag: str,
        whole: bool,
        rows: bool = False,
    ) -> list[str]:
        """Return the loop over blocks of iterations, which are copied if ``flag`` holds ("":
        always).

        Blocks of ``rows`` of tiles are separate; other blocks continue where the previous one
        ended.
        """
        first, stop, (low, high) = first_turn(inner.name), f"{inner.name}_to", bounds
        start, each = chosen[0].start, chosen[0].itemsize
        turns = STREAMED_BLOCK_BYTES // max(store.itemsize for store in chosen)
        place = "NULL" if whole else start
        part = f"{first} + geon_past_turns({place}, {each}, {high} - {first}, {turns})"
        streams = [""] * len(chosen) if rows else self.streams(chosen)
        self.names.calls(["geon_past_row"] if rows else [])
        copies = []
        for k, (store, stream) in enumerate(zip(chosen, streams, strict=True)):
            put = "geon_past_row(" if rows else f"geon_past_put(&{stream}, "
            count = f"({stop} - {first}) * {store.itemsize}"
            copies.append(f"{put}{store.start}, held_{k}, {count});")
        lines = [
            f"{stop} = {flag} ? {part} : {high};" if flag else f"{stop} = {part};",
            *[f"{x.ctype} held_{k}[{turns}] GEON_LINES;" for k, x in enumerate(chosen)],
            *["{", *indent([*_near(chosen, flag), *run(first, stop)]), "}"],
            *([f"if ({flag}) {{", *indent(copies), "}"] if flag else copies),
        ]
        head = f"for (int64_t {first} = {low}, {stop}; {first} < {high}; {first} = {stop}) {{"
        return [head, *indent(lines), "}"]

    def streams(self, chosen: list[PrintedStore]) -> list[str]:
        """Return the names of the streams through which these stores are written.

        Passes of a row share the stream of an operand, as their stores are contiguous.
        """
        found: list[str] = []
        for store in chosen:
            beside = sum(name.startswith(f"past_{store.operand}_") for name in found)
            found.append(f"past_{store.operand}_{beside}")
        self.used.update(dict.fromkeys(found))
        return found

    def task(self, lines: list[str]) -> list[str]:
        """Return the statements of a task with the flag ``past`` and the streams that they use."""
        if not self.used and not self.fenced:
            return lines
        assert self.passing is not None
        test = self.passing.test(self.names)
        self.names.calls(["geon_past_put"])  # its file defines the functions called here
        begin = [f"const _Bool past = {test};"]
        begin += [f"struct geon_past {name} = {{.held = 0}};" for name in self.used]
        ends = [f"geon_past_end(&{name});" for name in self.used]
        ends += ["geon_past_done(past);"] if self.fenced else []
        return [*begin, *lines, *ends]


def _near(chosen: list[PrintedStore], flag: str) -> list[str]:
    """Return the pointers through which a block stores: to buffers if ``flag`` holds, else to the
    result.
    """
    found = []
    for k, store in enumerate(chosen):
        places = {"": f"held_{k}", "false": store.start}
        place = places.get(flag, f"{flag} ? held_{k} : {store.start}")
        found.append(f"{store.ctype} *const restrict near_{k} = {place};")
    return found
