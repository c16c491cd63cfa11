"""A loop nest as text without its loops: statements of its passes, stores and reductions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from ....op_graph.axes.affine import Size
from ...kernels.ir.nest import Loop
from ..scalars import c_expressions
from ..scalars.dialect import Lanes
from .buffered_loads import PrintedStage
from .gather_prefetch import PrintedLookup
from .statement_blocks import Block, StripCall


def turn_of(number: int) -> str:
    """The array of lanes' turns, of those that pass ``number`` takes beside each other."""
    return f"turn_of{number or ''}"


@dataclass(eq=False, slots=True)
class Accumulator:
    """A reduction that folds a row: ``text`` is put into ``name``; ``spoiled`` notes a NaN.

    ``narrow`` is the text of a term of 16 bits or fewer as an int32, of a sum of wider integers.
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
class NarrowPosition:
    """A position in 32 bits, where turns of the innermost loop are one apart; ``start`` is that of
    the turn that is called ``lanes_start``, from which lanes count in 32 bits, too: what is wider
    takes compilers vectors of twice the size, which they then narrow."""

    name: str
    text: str
    start: str

    def __str__(self) -> str:
        return f"const int32_t {self.name} = (int32_t)({self.text});"


@dataclass(frozen=True, slots=True)
class PositionOfRun:
    """A position by the turn of a loop; ``beside`` is the same where turns are taken beside each
    other, and the lanes of all of them have the number of theirs in an array."""

    name: str
    ctype: str
    text: str
    beside: str

    def __str__(self) -> str:
        return self.by(self.text)

    def by(self, text: str) -> str:
        """The statement with the position as ``text``."""
        return f"const {self.ctype} {self.name} = ({self.ctype})({text});"


@dataclass(frozen=True, slots=True)
class PrintedStore:
    """``value`` put at ``place``, which is memory of operand number ``operand``.

    Where the elements of the innermost loop adjoin, ``start`` is the pointer to that of the turn
    ``first_turn`` of the loop's variable, and ``index`` the place of the one at hand behind it.
    Where rows are taken side by side, such elements lie ``apart`` elements from the next. Where the
    value is that of all elements of a strip, the function ``put`` writes it from the place on;
    where it is a ``vector`` of that type, it begins there.
    """

    place: str
    value: str
    ctype: str
    operand: int
    itemsize: int
    start: str | None = None
    index: str = ""
    apart: Size = 0
    put: str = ""
    vector: str = ""

    def __str__(self) -> str:
        return str(self.at(self.place))

    def at(self, place: str) -> str | StripCall:
        """The statement that puts the value at a place."""
        if self.put:
            return StripCall(self.put, f"&{place}", (self.value,))
        if self.vector:
            place = f"GEON_AT({self.vector}, {place})"
        return f"{place} = {self.value};"


@dataclass(frozen=True, slots=True)
class Fetched:
    """What is brought near while a strip is computed, from ``place`` on: what the next row reads,
    or what a later pass of this one ``stores`` of an operand, where ``room`` is not negative.
    """

    place: str
    operand: int
    itemsize: int
    stores: bool
    room: Size


@dataclass(frozen=True, slots=True)
class TurnedLoad:
    """A load whose neighbours adjoin along lanes, in a pass that stores along its last loop.

    It is read from a tile called ``name`` of ``ctype``, which is filled from ``source`` on; one
    turn of the last loop lies ``step`` elements behind the one before, one lane ``lane_step``.
    """

    name: str
    ctype: str
    itemsize: int
    source: str
    step: str
    lane_step: str = "1"


@dataclass(eq=False, slots=True)
class PrintedTiles:
    """Values of each element of a tile of short rows: ``lines`` compute them for one ``turn`` of a
    row, and ``tiles`` are the name, the type and the text of each.
    """

    lines: list[str] = field(default_factory=list)
    tiles: list[tuple[str, str, str]] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class PrintedWindow:
    """Random bits that are made ahead of the innermost loop, as an array of ``ctype``.

    An element takes so many ``words`` of 32 bits. ``base`` is the position of the element of turn
    0, ``end`` the position behind the last that is worth making; ``stream`` the texts of seed,
    draw and call.
    """

    name: str
    ctype: str
    words: int
    base: str
    end: str
    stream: tuple[str, ...]


@dataclass(slots=True)
class PrintedPass:
    """Loops, outermost first, with the statements of one element, what it reduces and stores.

    ``weight`` is about how many statements of a processor one element takes. ``strip`` is the same
    for a strip of the innermost loop, where some of it is done for all elements at once; meanwhile
    what is ``fetched`` comes from memory. Where a pass over lanes ``crosses`` memory, ``turned``
    are the loads that it reads from tiles; those of ``stages`` it reads ahead of its innermost
    loop. Where its rows are short and adjoin, it is ``flat``: its loop's variable counts the
    elements of all lanes of a tile, which also has the ``patterns`` that are the same in all rows,
    those that are ``grouped``, the same in all lanes, and ``others`` that are no vectors. One over
    lanes that is ``one_run`` reads on behind the last lane what the next turn reads, and
    ``of_lanes`` are the arrays that it reads with an element for each lane. One that does nothing
    but fold truths has ``only_truths``. ``number`` counts the passes of a nest; rows of ``lookups``
    are fetched ahead. What is ``around`` the innermost loop is computed in each turn of the next
    one.
    """

    loops: tuple[Loop, ...]
    body: Block
    weight: int
    sums: list[Accumulator] = field(default_factory=list)
    states: list[StateAccumulator] = field(default_factory=list)
    stores: list[PrintedStore] = field(default_factory=list)
    strip: Block | None = None
    fetched: list[Fetched] = field(default_factory=list)
    crosses: bool = False
    flat: bool = False
    turned: list[TurnedLoad] = field(default_factory=list)
    windows: list[PrintedWindow] = field(default_factory=list)
    one_run: bool = False
    of_lanes: dict[str, str] = field(default_factory=dict)
    only_truths: bool = False
    number: int = 0
    stages: list[PrintedStage] = field(default_factory=list)
    patterns: PrintedTiles = field(default_factory=PrintedTiles)
    grouped: PrintedTiles = field(default_factory=PrintedTiles)
    others: PrintedTiles = field(default_factory=PrintedTiles)
    lookups: list[PrintedLookup] = field(default_factory=list)
    around: Block | None = None
    abreast: int = 0  # the bytes of an element where some vectors are computed abreast
    copies: bool = False  # the one load from a tile is all that is stored
    divided: int = 0  # the number of the loop that is
    most: int = 0  # turns of loops of open length, where these are few
    taken: int = 1  # elements along the last loop that its statements are of


class RowStore(str):
    """The statement that stores a value of a row."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class PrintedArray:
    """An array of one row, filled in one pass and read in later ones."""

    name: str
    ctype: str
    size: Size
    itemsize: int


@dataclass(frozen=True, slots=True)
class PrintedTurns:
    """Some neighbouring ``turns`` of the innermost loop ``outer`` of rows as one pass, for that of
    this ``number``, whose statements are of vectors of ``lanes`` elements. Where turns ``divide``
    all, none is left, and no element is where vectors are all ``filled``. What turns load may
    ``overlap``; else they share what is the same for all rows. What is ``known`` of these rows is
    computed before all vectors.
    """

    made: PrintedPass
    known: Block
    number: int
    outer: Loop
    turns: int
    lanes: int
    divide: bool
    filled: bool
    overlap: bool


@dataclass(slots=True)
class PrintedNest:
    """The blocks of a nest: ``top`` runs once in each task, ``row`` for each row.

    ``ending`` is computed after all partial values were combined; ``arrays`` are what a task
    declares for its rows. Some turns of the innermost loop of rows may be ``jammed``. Statements of
    rows side by side are ``over`` these.
    """

    rows: tuple[Loop, ...]
    lanes: Loop | None
    top: Block
    row: Block
    ending: Block
    arrays: list[PrintedArray]
    over: Lanes
    inside: int = 0  # the last rows that follow each other for each part of the lanes
    apart: bool = False  # what is loaded to be reduced does not adjoin along lanes
    far: bool = False  # from turn to turn it lies further apart than from row to row
    hides: bool = False  # how far what is loaded lies apart is not for compilers to know
    jammed: PrintedTurns | None = None

    @property
    def passes(self) -> list[PrintedPass]:
        """The passes of rows, in their order."""
        return [line for line in self.row.lines if isinstance(line, PrintedPass)]


def first_turn(variable: str) -> str:
    """The name of the first of some turns of an innermost loop."""
    return f"{variable}_from"


def lanes_start(variable: str) -> str:
    """The name of the turn of an innermost loop that the first of some lanes takes."""
    return f"{variable}_first"
