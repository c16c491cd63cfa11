"""The statements of a loop nest: what each pass computes, as text without its loops."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from ...op_graph.affine import Size
from ...op_graph.dtypes import kind, name_of
from ..kernels.depths import Depths
from ..kernels.scalar import Code, Running
from ..kernels.types import Keep, Loop, Nest, Pass, Reduction, RowArray, Store
from ..kernels.weights import weight
from . import c_expressions
from .scalars import Block, Names, ScalarPrinter, StripCall
from .strips import takes_strips


@dataclass(eq=False, slots=True)
class Accumulator:
    """A reduction that folds a row: ``text`` is put into ``name``; ``spoiled`` notes a NaN."""

    name: str
    ctype: str
    row: str
    dtype: str
    text: str
    first: str
    spoiled: str | None = None

    def step(self, held: str, text: str) -> str:
        """``held`` with one more element or part."""
        return c_expressions.expression(self.row, [self.dtype] * 2, self.dtype, [held, text])


@dataclass(eq=False, slots=True)
class StateAccumulator:
    """A reduction whose state is several scalars, one array of ``ctypes`` each.

    ``first`` are the values of a state that has seen nothing, ``step`` the statements that take an
    element; ``combine(into, other)`` are those that put one state into another.
    """

    names: tuple[str, ...]
    ctypes: tuple[str, ...]
    first: tuple[str, ...]
    step: list[str]
    combine: Callable[[str, str], list[str]]


@dataclass(frozen=True, slots=True)
class PrintedStore:
    """``value`` put at ``place``; ``direct`` where the place needs no statement of the body."""

    place: str
    value: str
    ctype: str
    direct: bool

    def __str__(self) -> str:
        return f"{self.place} = {self.value};"


@dataclass(slots=True)
class PrintedPass:
    """Loops, outermost first, with the statements of one element, what it reduces and stores.

    ``weight`` is about how many statements of a processor one element takes. ``strip`` is the same
    for a strip of the innermost loop, where some of it is done for all lanes at once.
    """

    loops: tuple[Loop, ...]
    body: Block
    weight: int
    sums: list[Accumulator] = field(default_factory=list)
    states: list[StateAccumulator] = field(default_factory=list)
    stores: list[PrintedStore] = field(default_factory=list)
    strip: Block | None = None


@dataclass(frozen=True, slots=True)
class PrintedArray:
    """An array of one row, filled in one pass and read in later ones."""

    name: str
    ctype: str
    size: Size
    itemsize: int


@dataclass(slots=True)
class PrintedNest:
    """The blocks of a nest: ``top`` runs once in each task, ``row`` for each row.

    ``ending`` is computed after all partial values were combined; ``arrays`` are what a task
    declares for its rows.
    """

    rows: tuple[Loop, ...]
    lanes: Loop | None
    top: Block
    row: Block
    ending: Block
    arrays: list[PrintedArray]


def print_nest(nest: Nest, names: Names, strips: bool = False) -> PrintedNest:
    """The statements of a nest; with ``strips`` the machine has functions of strips."""
    return _NestPrinter(nest, names, strips).printed()


class _NestPrinter:
    def __init__(self, nest: Nest, names: Names, strips: bool) -> None:
        self.nest, self.names, self.strips = nest, names, strips
        self.depths = Depths.of(nest)
        self.scalars = ScalarPrinter(names, self.depths)
        self.top = Block()
        self.row = Block(self.top, "lanes" if nest.across is not None else None)
        self.ending = Block()
        self.arrays: dict[int, PrintedArray] = {}
        self.divided = not nest.rows and nest.across is None

    def printed(self) -> PrintedNest:
        """All blocks."""
        nest = self.nest
        for block, steps in ((self.row, nest.steps), (self.ending, nest.ending)):
            for step in steps:
                if isinstance(step, Store):
                    self.store_row(block, step)
                else:
                    block.lines.append(self.print_pass(block, step))
        assert self.divided or not nest.ending, "only what is divided ends"
        arrays = [self.arrays[array.number] for array in nest.arrays]
        return PrintedNest(nest.rows, nest.across, self.top, self.row, self.ending, arrays)

    def store_row(self, block: Block, store: Store) -> None:
        """A store of a value of the row itself."""
        line = str(self.store(block, store))
        if block.lanes is not None:
            line = f"for (int64_t lane = 0; lane < {block.lanes}; lane++) {line}"
        block.lines.append(line)

    def store(self, block: Block, store: Store) -> PrintedStore:
        """A store, with what it needs written into ``block``."""
        value = self.scalars.value(block, store.value)
        offset = self.scalars.index(block, store.offset)
        direct = all(isinstance(atom, str) for atom in store.offset.terms)
        ctype = c_expressions.C_TYPES[name_of(store.dtype)]
        place = f"{self.names.operand(store.operand)}[{offset}]"
        return PrintedStore(place, value, ctype, direct)

    def print_pass(self, row: Block, step: Pass) -> PrintedPass:
        """What a pass computes for each element."""
        body = Block(row)
        made = PrintedPass(step.loops, body, weight(step, self.depths))
        for reduction in step.reductions:
            if reduction.folds is not None:
                made.sums.append(self.accumulator(body, reduction, row.lanes is not None))
            else:
                made.states.append(self.state(body, reduction, row))
        for store in step.stores:
            made.stores.append(self.store(body, store))
        for keep in step.keeps:
            value = self.scalars.value(body, keep.value)
            self.array(self.nest.arrays[keep.number])
            self.keep(body, keep, value)
        if self.strips and row.lanes is None and takes_strips(step, self.depths):
            made.strip = self.print_strip(row, step, made)
        return made

    def keep(self, body: Block, keep: Keep, value: str) -> None:
        """The statement that puts a value into a row array."""
        place = f"{self.scalars.kept[keep.number]}[{self.scalars.index(body, keep.offset)}]"
        body.lines.append(f"{place} = {value};")

    def print_strip(self, row: Block, step: Pass, made: PrintedPass) -> Block:
        """What a pass computes for each lane of a strip; sums have one for each lane."""
        body, inner = Block(row, strip=True), step.loops[-1].name
        self.scalars.spelled = {inner: f"({inner}_strip + lane)"}
        for reduction, total in zip(step.reductions, made.sums, strict=True):
            term = self.scalars.fresh()
            text = self.element(body, reduction, total.dtype)
            self.scalars.put_in_lanes(body, total.ctype, term, text)
            add = c_expressions.strip_function("add", total.dtype)
            assert add is not None, "strips reduce sums of floats alone"
            body.lines.append(StripCall(add, f"&{total.name}_lanes", term))
        for keep in step.keeps:
            self.keep(body, keep, self.scalars.value(body, keep.value))
        body.lines += [str(self.store(body, store)) for store in step.stores]
        self.scalars.spelled = {}
        return body

    def element(self, body: Block, reduction: Reduction, dtype: str) -> str:
        """What a reduction that folds a row takes of one element."""
        texts = [self.scalars.value(body, element) for element in reduction.elements]
        if len(texts) == 2:
            return c_expressions.expression("multiply", [dtype] * 2, dtype, texts)
        return c_expressions.cast(name_of(reduction.elements[0].dtype), dtype, texts[0])

    def accumulator(self, body: Block, reduction: Reduction, lanes: bool) -> Accumulator:
        """The step of a reduction that folds a row."""
        dtype, row = name_of(reduction.states[0]), str(reduction.folds)
        text = self.element(body, reduction, dtype)
        name = self.scalars.fresh("s")
        self.scalars.reduced[reduction.number, 0] = f"{name}[lane]" if lanes else name
        nan = row in ("maximum", "minimum") and kind(reduction.states[0]) == "f"
        first = c_expressions.literal(reduction.reducer.identity(reduction.states)[0], dtype)
        spoiled = f"{name}_nan" if nan else None
        return Accumulator(name, c_expressions.C_TYPES[dtype], row, dtype, text, first, spoiled)

    def state(self, body: Block, reduction: Reduction, row: Block) -> StateAccumulator:
        """The step of any other reduction, which its reducer says in scalar code."""
        states, reducer, code = reduction.states, reduction.reducer, Code()
        dtypes = [name_of(dtype) for dtype in states]
        stem = self.scalars.fresh("s")
        names = tuple([f"{stem}_{k}" for k in range(len(states))])
        for k, name in enumerate(names):
            self.scalars.running[k, False] = f"{name}[lane]"
            at = "[lane]" if row.lanes is not None else "[0]"
            self.scalars.reduced[reduction.number, k] = name + at

        def running(other: bool) -> tuple[Running, ...]:
            return tuple([code(Running, k, other, dtype) for k, dtype in enumerate(states)])

        def combine(into: str, other: str) -> list[str]:
            """``into`` and ``other`` end the names of the two states."""
            block = Block()
            for k, name in enumerate(names):
                self.scalars.running[k, False] = name + into
                self.scalars.running[k, True] = name + other
            new = reducer.combine(code, running(False), running(True))
            texts = [self.scalars.value(block, each) for each in new]
            puts = [f"{name}{into} = {text};" for name, text in zip(names, texts, strict=True)]
            return [*block.lines, *puts]

        new = reducer.step(code, running(False), reduction.elements[0], reduction.position)
        texts = [self.scalars.value(body, each) for each in new]
        identity = reducer.identity(states)
        return StateAccumulator(
            names,
            tuple([c_expressions.C_TYPES[dtype] for dtype in dtypes]),
            tuple([c_expressions.literal(v, d) for v, d in zip(identity, dtypes, strict=True)]),
            [f"{name}[lane] = {text};" for name, text in zip(names, texts, strict=True)],
            combine,
        )

    def array(self, array: RowArray) -> None:
        """Names a row array."""
        name = self.scalars.fresh("w")
        ctype = c_expressions.C_TYPES[name_of(array.dtype)]
        self.arrays[array.number] = PrintedArray(name, ctype, array.size, array.dtype.itemsize)
        self.scalars.kept[array.number] = name
