"""Text of a loop nest without its loops: statements of passes, stores and reductions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from ....op_graph.axes.affine import Size
from ...kernels.ir.nest import Loop
from ..scalars import c_expressions
from ..scalars.dialect import Lanes
from .statement_blocks import StatementBlock


@dataclass(eq=False, slots=True)
class Accumulator:
    """A reduction that folds a primitive: ``text`` is folded into ``name``.

    ``row`` is the primitive, ``dtype`` and ``ctype`` its type, ``first`` its identity. ``spoiled``
    is the flag that records a NaN, if any. ``narrow`` is the term as an int32, for sums of wide
    integers whose terms have at most 16 bits.
    """

    name: str
    ctype: str
    row: str
    dtype: str
    text: str
    first: str
    spoiled: str | None = None
    narrow: str | None = None

    def step(self, held: str, text: str) -> str:
        """Return the text of ``held`` folded with one more element or partial result."""
        return c_expressions.expression(self.row, [self.dtype] * 2, self.dtype, [held, text])


@dataclass(eq=False, slots=True)
class StateAccumulator:
    """A reduction whose state is several scalars, called ``names``, of ``ctypes``.

    ``first`` is the initial state. ``step`` are the statements that add an element. ``combine(into,
    other)`` returns the statements that merge two states, given suffixes of names.
    """

    names: tuple[str, ...]
    ctypes: tuple[str, ...]
    first: tuple[str, ...]
    step: list[str]
    combine: Callable[[str, str], list[str]]


@dataclass(frozen=True, slots=True)
class NarrowPosition:
    """A position in 32 bits that increases by one with the innermost loop.

    ``start`` is its text at iteration ``lanes_start``, from which lanes count in 32 bits, too: for
    wider integers, compilers would use vectors of twice the size and narrow them.
    """

    name: str
    text: str
    start: str

    def __str__(self) -> str:
        return f"const int32_t {self.name} = (int32_t)({self.text});"


@dataclass(frozen=True, slots=True)
class PrintedStore:
    """A store of ``value`` to ``place``, in memory of operand number ``operand``.

    ``ctype`` and ``itemsize`` are those of an element. ``start`` is the pointer to the element of
    iteration ``first_turn`` of the innermost loop if its elements are contiguous, else None, and
    ``index`` the offset of the current one from there. ``apart`` is the stride, in elements,
    between such runs where rows are in lanes.
    """

    place: str
    value: str
    ctype: str
    operand: int
    itemsize: int
    start: str | None = None
    index: str = ""
    apart: Size = 0

    def __str__(self) -> str:
        return self.at(self.place)

    def at(self, place: str) -> str:
        """Return the statement that stores the value at ``place``."""
        return f"{place} = {self.value};"


@dataclass(frozen=True, slots=True)
class TurnedLoad:
    """A load that is contiguous along lanes, in a pass that stores along its last loop.

    It is read from a transposition tile ``name`` of ``ctype``, filled from ``source``. ``step`` is
    the stride of the last loop, ``lane_step`` that of lanes, in elements.
    """

    name: str
    ctype: str
    itemsize: int
    source: str
    step: str
    lane_step: str = "1"


@dataclass(eq=False, slots=True)
class PrintedTiles:
    """Tiles of values of short rows: ``lines`` compute them for one iteration ``turn`` of a row.

    ``tiles`` has the name, type and text of each.
    """

    lines: list[str] = field(default_factory=list)
    tiles: list[tuple[str, str, str]] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class PrintedWindow:
    """A buffer of random bits of ``ctype``, filled before the innermost loop.

    An element takes ``words`` words of 32 bits. ``base`` is the position of the element of
    iteration 0, ``end`` the end of the useful positions. ``stream`` are the texts of seed, draw and
    call.
    """

    name: str
    ctype: str
    words: int
    base: str
    end: str
    stream: tuple[str, ...]


@dataclass(slots=True)
class PrintedPass:
    """Text of a pass.

    ``loops``: its loops, outermost first. ``body``: the statements of one element. ``weight``: the
    approximate number of machine operations per element. ``sums``, ``states``: its reductions that
    fold a primitive, and those with other states. ``stores``: its stores. ``crosses``: True if a
    pass over lanes stores across memory. ``flat``: True if short contiguous rows are collapsed: the
    loop variable counts the elements of all lanes of a tile. ``turned``: loads that it reads from
    tiles. ``windows``: buffers of random bits. ``patterns``, ``grouped``, ``others``: tiles of a
    flat pass that are equal in all rows, equal in all lanes, or
    computed one by one. ``around``: statements before the innermost loop, in each iteration of the
    next one. ``copies``: True if the only load from a tile is stored unchanged. ``divided``: the
    number of the loop that threads share. ``most``: the maximum extent of loops of open length if
    these are short, else 0.
    """

    loops: tuple[Loop, ...]
    body: StatementBlock
    weight: int
    sums: list[Accumulator] = field(default_factory=list)
    states: list[StateAccumulator] = field(default_factory=list)
    stores: list[PrintedStore] = field(default_factory=list)
    crosses: bool = False
    flat: bool = False
    turned: list[TurnedLoad] = field(default_factory=list)
    windows: list[PrintedWindow] = field(default_factory=list)
    patterns: PrintedTiles = field(default_factory=PrintedTiles)
    grouped: PrintedTiles = field(default_factory=PrintedTiles)
    others: PrintedTiles = field(default_factory=PrintedTiles)
    around: StatementBlock | None = None
    copies: bool = False
    divided: int = 0
    most: int = 0


class RowStore(str):
    """The statement that stores a value of a row."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class PrintedArray:
    """A scratch array of one row, filled in one pass and read in later ones."""

    name: str
    ctype: str
    size: Size
    itemsize: int


@dataclass(slots=True)
class PrintedNest:
    """The blocks of a nest.

    ``rows`` and ``lanes`` are its row loops. ``top`` runs once per task, ``row`` once per row,
    ``ending`` after all partial results are combined. ``arrays`` are declared once per task.
    ``over`` is the representation of lanes. ``inside`` is the number of last row loops that run
    inside each block of lanes. ``hides`` is True if strides are hidden from the compiler.
    """

    rows: tuple[Loop, ...]
    lanes: Loop | None
    top: StatementBlock
    row: StatementBlock
    ending: StatementBlock
    arrays: list[PrintedArray]
    over: Lanes
    inside: int = 0
    hides: bool = False

    @property
    def passes(self) -> list[PrintedPass]:
        """Return the passes of rows, in order."""
        return [line for line in self.row.lines if isinstance(line, PrintedPass)]


def first_turn(variable: str) -> str:
    """Return the name of the first of several iterations of an innermost loop."""
    return f"{variable}_from"


def lanes_start(variable: str) -> str:
    """Return the name of the iteration of an innermost loop that lane 0 processes."""
    return f"{variable}_first"
