"""Stores of a nest that pass by the caches, as C: where results are more than caches hold.

A line of cache that is written as a whole past the caches need not be read first, so that a sum of
two arrays moves three of them and not four. The elements of some turns of an innermost loop are
computed into the nearest cache and copied from there; whether that is done is known in each call,
by the bytes that the nest stores and reads. Vectors of rows side by side are whole parts of lines,
and are stored past them as they are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from ....op_graph.axes.affine import Size
from ....op_graph.axes.lengths import product
from ...kernels.ir.nest import Loop, Nest, Pass, Store
from ...kernels.ir.scalar_code import Load, Scalar, walk
from ...printing.nests.pass_text import PrintedPass, PrintedStore, first_turn
from ..machine.caches import LEAST
from ..names.loop_lines import indented
from ..names.naming import KernelNames
from .transpose_tiles import WIDE, width

LINE = 64  # bytes of a line of cache
STAGE = 1 << 10  # bytes of each store that are computed before they are copied
SHORT = 64  # turns of a loop below which it is not worth it
LONG = 256  # turns of a loop from which on one text does for both ways
PIECE = 1 << 16  # bytes of a piece below which it is not, however much others store
ACROSS = 2  # as much counts what is stored across memory, where no line is read ahead
MOST = 8  # stores of a loop that have such memory: 8 KiB


@dataclass(frozen=True, slots=True)
class Passing:
    """What a nest may store past the caches: the numbers of operands.

    ``stored`` are the bytes that it stores, ``touched`` these and those of what it reads.
    """

    operands: frozenset[int]
    stored: Size
    touched: Size


def passing(work: Nest, names: KernelNames) -> Passing | None:
    """What a nest may store past the caches; None where it stores too little for that.

    What it also reads is not among it: its lines are in the cache when they are written.
    """
    nests = work.pieces or (work,)
    size: Size = 0
    for nest in nests:
        size = size + stored(nest)
    if isinstance(size, int) and size < LEAST:
        return None
    nodes = [node for nest in (work, *nests) for node in walk(*values(nest))]
    read = {x.operand: work.operands[x.operand] for x in nodes if isinstance(x, Load)}
    places = {names.place(op) for op in read.values()}
    written = {store.operand for nest in (work, *nests) for store in stores(nest)}
    free = [k for k in written if names.place(work.operands[k]) not in places]
    touched = size
    for op in read.values():
        touched = touched + op.axes.size * op.dtype.itemsize
    return Passing(frozenset(free), size, touched) if free else None


def may_pass(piece: Nest, whole: Size) -> bool:
    """Whether a piece of a nest, of whose stores ``whole`` are the bytes, stores enough of them to
    do so past the caches.

    A border is of fewer open lengths than the whole is, and so a small part of what is much.
    """
    size = stored(piece)
    return size >= PIECE if isinstance(size, int) else degree(size) >= degree(whole)


def degree(size: Size) -> int:
    """The most open lengths that are factors of one term."""
    if isinstance(size, int):
        return 0
    return max(sum(power for _, power in monomial) for monomial, _ in size.terms)


def may_begin(store: PrintedStore) -> bool:
    """Whether elements that lie apart may all begin with a line."""
    return not isinstance(store.apart, int) or store.apart * store.itemsize % LINE == 0


def stores(nest: Nest) -> list[Store]:
    """All stores of a nest."""
    steps = (*nest.steps, *nest.ending)
    return [x for each in steps for x in (each.stores if isinstance(each, Pass) else (each,))]


def values(nest: Nest) -> list[Scalar]:
    """All that a nest reduces, stores and keeps."""
    found = [store.value for store in stores(nest)]
    for step in nest.passes:
        found += [*step.reduced, *(keep.value for keep in step.keeps)]
    return found


def stored(nest: Nest) -> Size:
    """The bytes that the passes of a nest store."""
    rows = product([loop.extent for loop in nest.rows])
    if nest.across is not None:
        rows = rows * nest.across.extent
    size: Size = 0
    for step in nest.passes:
        each = sum(store.dtype.itemsize for store in step.stores)
        size = size + rows * product([loop.extent for loop in step.loops]) * each
    return size


class Past:
    """Writes what one task needs to store past the caches, and notes what that is."""

    def __init__(self, passing: Passing | None, names: KernelNames) -> None:
        self.passing, self.names = passing, names
        self.used: dict[str, None] = {}
        self.plain = False  # whether what is not across memory is stored past the caches,
        self.fenced = False  # and whether something that nothing ends is: rows of tiles, vectors
        self.asked = False  # whether a statement goes by it

    def chosen(self, made: PrintedPass, inner: Loop) -> list[PrintedStore]:
        """The stores of a pass, whose innermost loop is ``inner``, that may pass by the caches.

        Those beside sums stay as they are: terms are added in blocks of their own.
        """
        short = isinstance(inner.extent, int) and inner.extent < SHORT
        if self.passing is None or made.sums or made.states or (short and not made.flat):
            return []
        if made.crosses and not isinstance(self.passing.stored, int):
            return []  # small ones would be a tenth slower
        free = self.passing.operands
        found = [x for x in made.stores if x.start is not None and x.operand in free]
        wide = width(made) if made.crosses else 0
        found = [x for x in found if may_begin(x) or wide * x.itemsize >= WIDE or x.apart == wide]
        return found if len(found) <= MOST else []

    def statements(
        self, chosen: list[PrintedStore], lines: Iterable[object], direct: bool = False
    ) -> list[object]:
        """Statements where the stores that are ``chosen`` go into memory to be copied from, or are
        themselves past the caches where they are ``direct``.
        """
        numbers = {store.start: k for k, store in enumerate(chosen)}

        def put(line: object) -> object:
            if not isinstance(line, PrintedStore):
                return line
            k = numbers.get(line.start)
            if k is not None and direct:
                return f"GEON_PUT({line.vector}, passes, {line.place}, {line.value});"
            return line.at(line.place if k is None else f"near_{k}[{line.index}]")

        return [put(line) for line in lines]

    def loop(
        self,
        chosen: list[PrintedStore],
        inner: Loop,
        bounds: tuple[str, str],
        run: Callable[[str, str], list[str]],
        *,
        divided: bool = False,
        whole: bool = False,
        apart: bool = False,
    ) -> list[str]:
        """The loop ``run`` between bounds, block by block where its stores are copied.

        Where much is stored in any case, or by each turn of the loop around it, as by a ``divided``
        loop and by one whose length is known to be ``LONG``, what is not copied is one block of the
        same text. Others are there for each way, since a block would cost too much. Blocks are of
        ``whole`` vectors, or end at lines. Of stores that lie ``apart`` from those of the run
        before, those are copied that all begin with a line: else two lines of each run would be
        written in parts.
        """
        if not chosen:
            return run(*bounds)
        assert self.passing is not None
        self.plain = True
        first, size, (low, high) = first_turn(inner.name), inner.extent, bounds
        flags = []
        if not isinstance(size, int):
            flags.append(f"{high} - {low} >= {SHORT}")
        if apart:
            step = self.names.length(chosen[0].apart * chosen[0].itemsize)
            flags.append(f"(((uintptr_t)({chosen[0].start}) | ({step})) & {LINE - 1}) == 0")
        flag = "passes" if flags else "past"
        begin = [f"const int64_t {first} = {low};"] if apart else []
        if flags:
            begin.append(f"const _Bool passes = {' && '.join(['past', *flags])};")
        known = isinstance(self.passing.stored, int) or (isinstance(size, int) and size >= LONG)
        if divided or known:
            lines = self.blocks(chosen, inner, bounds, run, flag, whole)
        else:
            start = [] if apart else [f"const int64_t {first} = {low};"]
            lines = [
                f"if ({flag}) {{",
                *indented(self.blocks(chosen, inner, bounds, run, "", whole)),
                "} else {",
                *indented([*start, *_near(chosen, "false"), *run(low, high)]),
                "}",
            ]
        return ["{", *indented([*begin, *lines]), "}"] if begin else lines

    def direct(
        self,
        chosen: list[PrintedStore],
        inner: Loop,
        bounds: tuple[str, str],
        run: Callable[[str, str], list[str]],
    ) -> list[str]:
        """The loop ``run`` between bounds, whose stores are ``direct``: of whole vectors, which
        pass by the caches where the first of each loop begins a line.
        """
        self.plain = self.fenced = True
        first = first_turn(inner.name)
        starts = [f"(uintptr_t)({store.start})" for store in chosen]
        steps = [f"({self.names.length(x.apart * x.itemsize)})" for x in chosen]
        lies = f"(({' | '.join(dict.fromkeys([*starts, *steps]))}) & {LINE - 1}) == 0"
        begin = [f"const int64_t {first} = {bounds[0]};", f"const _Bool passes = past && {lies};"]
        return ["{", *indented([*begin, *run(*bounds)]), "}"]

    def fetched(self, operand: int, fetch: str) -> str:
        """The statement that brings near what will be stored, unless it is stored past the caches:
        then its lines are never read.
        """
        if self.passing is None or operand not in self.passing.operands:
            return fetch
        self.asked = True
        return f"if (!past) {fetch}"

    def row_of_tile(
        self,
        chosen: list[PrintedStore],
        inner: Loop,
        wide: int,
        bounds: tuple[str, str],
        run: Callable[[str, str], list[str]],
    ) -> list[str]:
        """The loop ``run`` along a row of a tile, which has ``wide`` turns.

        The next row adjoins it where these are all.
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
        """The loop over blocks of turns that are copied, where ``flag`` does not say otherwise.

        Those of ``rows`` of tiles are by themselves, others go on where the one before ended.
        """
        first, stop, (low, high) = first_turn(inner.name), f"{inner.name}_to", bounds
        start, each = chosen[0].start, chosen[0].itemsize
        turns = STAGE // max(store.itemsize for store in chosen)
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
            *["{", *indented([*_near(chosen, flag), *run(first, stop)]), "}"],
            *([f"if ({flag}) {{", *indented(copies), "}"] if flag else copies),
        ]
        head = f"for (int64_t {first} = {low}, {stop}; {first} < {high}; {first} = {stop}) {{"
        return [head, *indented(lines), "}"]

    def streams(self, chosen: list[PrintedStore]) -> list[str]:
        """The names of what these stores are written through.

        Passes of a row share those of an operand: what they store one after another adjoins.
        """
        found: list[str] = []
        for store in chosen:
            beside = sum(name.startswith(f"past_{store.operand}_") for name in found)
            found.append(f"past_{store.operand}_{beside}")
        self.used.update(dict.fromkeys(found))
        return found

    def task(self, lines: list[str]) -> list[str]:
        """The statements of a task, with what they are written through."""
        if not self.used and not self.fenced and not self.asked:
            return lines
        assert self.passing is not None
        times = 1 if self.plain else ACROSS
        sizes = (self.passing.stored * times, self.passing.touched * times)
        stored, touched = map(self.names.length, sizes)
        self.names.calls(["geon_past_put"])  # whose text has what is called here
        begin = [f"const _Bool past = geon_is_past({stored}, {touched});"]
        begin += [f"struct geon_past {name} = {{.held = 0}};" for name in self.used]
        ends = [f"geon_past_end(&{name});" for name in self.used]
        ends += ["geon_past_done(past);"] if self.fenced else []
        return [*begin, *lines, *ends]


def _near(chosen: list[PrintedStore], flag: str) -> list[str]:
    """The pointers that a block's stores are made through, by whether ``flag`` is set: to what is
    copied, or to its place.
    """
    found = []
    for k, store in enumerate(chosen):
        places = {"": f"held_{k}", "false": store.start}
        place = places.get(flag, f"{flag} ? held_{k} : {store.start}")
        found.append(f"{store.ctype} *const restrict near_{k} = {place};")
    return found
