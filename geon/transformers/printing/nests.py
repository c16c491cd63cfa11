"""The statements of a loop nest: what each pass computes, as text without its loops."""

from __future__ import annotations

from dataclasses import dataclass, field

from ...op_graph.affine import Size
from ...op_graph.dtypes import kind, name_of
from ..kernels.depths import Depths
from ..kernels.types import Loop, Nest, Pass, Reduction, RowArray, Store
from ..kernels.weights import weight
from . import c_expressions
from .scalars import Block, Names, ScalarPrinter


@dataclass(eq=False, slots=True)
class Accumulator:
    """A reduction in a pass: ``text`` is combined into ``name``; ``spoiled`` notes a NaN."""

    name: str
    ctype: str
    kind: str
    dtype: str
    text: str
    spoiled: str | None = None


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

    ``weight`` is about how many statements of a processor one element takes.
    """

    loops: tuple[Loop, ...]
    body: Block
    weight: int
    sums: list[Accumulator] = field(default_factory=list)
    stores: list[PrintedStore] = field(default_factory=list)


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


def print_nest(nest: Nest, names: Names) -> PrintedNest:
    """The statements of a nest."""
    return _NestPrinter(nest, names).printed()


class _NestPrinter:
    def __init__(self, nest: Nest, names: Names) -> None:
        self.nest, self.names = nest, names
        self.depths = Depths.of(nest)
        self.scalars = ScalarPrinter(names, self.depths)
        self.top = Block()
        self.row = Block(self.top, "lanes" if nest.across is not None else None)
        self.ending = Block()
        self.arrays: dict[int, PrintedArray] = {}

    def printed(self) -> PrintedNest:
        """All blocks."""
        nest = self.nest
        divided = not nest.rows and nest.across is None
        for block, steps in ((self.row, nest.steps), (self.ending, nest.ending)):
            for step in steps:
                if isinstance(step, Store):
                    self.store_row(block, step)
                else:
                    block.lines.append(self.print_pass(block, step))
        assert divided or not nest.ending, "only what is divided ends"
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
            made.sums.append(self.accumulator(body, reduction))
        for store in step.stores:
            made.stores.append(self.store(body, store))
        for keep in step.keeps:
            value = self.scalars.value(body, keep.value)
            array = self.array(self.nest.arrays[keep.number])
            body.lines.append(f"{array}[{self.scalars.index(body, keep.offset)}] = {value};")
        for reduction, total in zip(step.reductions, made.sums, strict=True):
            lanes = "[lane]" if row.lanes is not None else ""
            self.scalars.reduced[reduction.number] = total.name + lanes
        return made

    def accumulator(self, body: Block, reduction: Reduction) -> Accumulator:
        """The step of a reduction."""
        dtype = name_of(reduction.dtype)
        texts = [self.scalars.value(body, element) for element in reduction.elements]
        what = reduction.kind
        if what == "dot":
            text, what = c_expressions.expression("multiply", [dtype] * 2, dtype, texts), "sum"
        else:
            source = name_of(reduction.elements[0].dtype)
            text = c_expressions.ELEMENTS[what](source, dtype, texts[0])
        name = self.scalars.fresh("s")
        spoiled = f"{name}_nan" if what in ("max", "min") and kind(reduction.dtype) == "f" else None
        return Accumulator(name, c_expressions.C_TYPES[dtype], what, dtype, text, spoiled)

    def array(self, array: RowArray) -> str:
        """The name of a row array."""
        name = self.scalars.fresh("w")
        ctype = c_expressions.C_TYPES[name_of(array.dtype)]
        self.arrays[array.number] = PrintedArray(name, ctype, array.size, array.dtype.itemsize)
        self.scalars.kept[array.number] = name
        return name
