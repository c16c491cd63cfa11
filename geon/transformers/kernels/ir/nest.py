"""Kernels as data: loop nests with what they reduce and store, in scalar code.

Nothing here is text, and nothing is of one target.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ....op_graph.axes.affine import Affine, Size
from ....op_graph.axes.axes import Axis
from ....op_graph.op_graph import Leaf, Op, among
from ....op_graph.regions.while_op import WhileAttributes
from ....op_graph.rows.reducers import Reducer
from ....op_graph.values.dtypes import DType
from .scalar_code import Scalar

WHILE = "a while loop"  # what errors call the turns of one, as they call others by an axis
ENDLESS = 1 << 32  # the turns that one without a limit counts as, where turns are numbered


@dataclass(frozen=True, eq=False, slots=True)
class Fused:
    """How a fused kernel computes: ``nest``, ``contraction`` (of ``dot``), ``blocked`` (a
    ``chain`` of these) or ``call``.

    ``rows`` are the axes that its passes share, outermost; None for one pass over all axes.
    ``names`` are what the results call the axes of ``dot``, where that differs. ``straight`` are
    reductions that need no loop of their own.
    """

    kind: str
    rows: frozenset[str] | None = None
    dot: Op | None = None
    reductions: tuple[Op, ...] = ()
    names: tuple[tuple[str, str], ...] = ()
    chain: Chain | None = None
    straight: tuple[Op, ...] = ()

    def __str__(self) -> str:
        if self.chain is not None:
            steps = ", then ".join(str(fused) for fused, _ in self.chain.steps)
            return f"blocks of {self.chain.rows}: {steps}"
        if self.rows is None:
            return self.kind
        by = f"by {', '.join(sorted(self.rows))}" if self.rows else "of one row"
        return f"{self.kind} {by}"


@dataclass(frozen=True, eq=False, slots=True)
class Chain:
    """Kernels that run one after another on one block of ``rows`` after the other.

    ``steps`` are these kernels with their results; ``batch`` the axes that are taken one index at a
    time. ``inner`` are the values that nothing else reads, of which there is memory for one block;
    ``slots`` the number of that memory for each: what is not needed any more gives its own away.
    """

    steps: tuple[tuple[Fused, tuple[Op, ...]], ...]
    batch: tuple[str, ...]
    rows: str
    inner: tuple[Op, ...]
    slots: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Loop:
    """A loop variable and the axes it walks, outermost first, as one."""

    name: str
    axes: tuple[str, ...]
    extent: Size


# Rows whose folds keep partial values in vector lanes as they are, as compilers know how to.
FOLDED = frozenset({"add", "multiply", "maximum", "minimum", "logical_or", "logical_and"})


def folded_row(reducer: Reducer) -> str | None:
    """The name of the row of ``FOLDED`` that a reducer folds; None for one that has a state."""
    row = reducer.folds
    return row.name if row is not None and row.name in FOLDED else None


@dataclass(frozen=True, eq=False, slots=True)
class Reduction:
    """A reduction of a pass: of one element, or of products of two.

    ``states`` are the dtypes of its reducer's state, of which later code reads what it found as
    ``Reduced(number, part)``; ``position`` is that of the element where the reducer asks for it.
    """

    number: int
    reducer: Reducer
    states: tuple[DType, ...]
    elements: tuple[Scalar, ...]
    position: Scalar | None = None

    @property
    def folds(self) -> str | None:
        """The name of the row that is all it does, where loops fold that row in vector lanes."""
        return folded_row(self.reducer)


@dataclass(frozen=True, eq=False, slots=True)
class Store:
    """``value`` put at ``offset`` of operand number ``operand``."""

    operand: int
    offset: Affine
    value: Scalar
    dtype: DType


@dataclass(frozen=True, eq=False, slots=True)
class RowArray:
    """An array of ``size`` elements for each row, filled in one pass and read in later ones."""

    number: int
    size: Size
    dtype: DType


@dataclass(frozen=True, eq=False, slots=True)
class Keep:
    """``value`` put at ``offset`` of row array ``number``, for later passes."""

    number: int
    offset: Affine
    value: Scalar


@dataclass(frozen=True, eq=False, slots=True)
class Pass:
    """Loops, outermost first, with what is reduced, stored and kept for each element.

    Of a nest without rows the loop of the number ``divided`` is.
    """

    loops: tuple[Loop, ...]
    reductions: tuple[Reduction, ...] = ()
    stores: tuple[Store, ...] = ()
    keeps: tuple[Keep, ...] = ()
    divided: int = 0

    @property
    def reduced(self) -> list[Scalar]:
        """What it computes of each element to reduce it; no positions of states."""
        return [element for reduction in self.reductions for element in reduction.elements]

    @property
    def computed(self) -> list[Scalar]:
        """What it computes of each element to reduce, store or keep it; no positions of states."""
        puts: list[Store | Keep] = [*self.stores, *self.keeps]
        return [*self.reduced, *(each.value for each in puts)]


@dataclass(frozen=True, eq=False, slots=True)
class Fill:
    """All of operand ``source`` copied to ``operand``, unless they lie in one place."""

    operand: int
    source: int


@dataclass(frozen=True, eq=False, slots=True)
class Nest:
    """Loops over rows, and for each row passes, and stores of values of the row, in order.

    Of one element of a pass all is loaded before anything is stored, and so it is of the stores of
    a row between two passes: a result may lie where they read the same element.

    Without ``rows`` each pass is divided, and ``ending`` is stored when all of it was combined.
    ``across`` is the loop over rows that adjoin in memory, which may be taken side by side; so many
    of the last ``rows`` as are ``inside`` should follow each other for each of its parts, because
    they adjoin more closely still.
    ``operands`` are the values in memory, by the numbers of loads and stores. ``fill`` comes before
    all, where only a part is stored.

    ``pieces`` are nests that together compute the same where none of the sizes in ``holds`` is
    negative: each is over a region in which choices are decided.

    ``short`` is a nest that computes the same by rows side by side, for where none of the sizes in
    ``shortness`` is negative: then rows of open length are too short for vectors. Without such
    sizes they always are. Where it is ``flat``, its rows adjoin, and one loop goes over the
    elements of many. Loops of open length of its passes have ``most`` turns, where that is not 0.
    """

    rows: tuple[Loop, ...]
    across: Loop | None
    steps: tuple[Pass | Store, ...]
    ending: tuple[Pass | Store, ...]
    arrays: tuple[RowArray, ...]
    operands: tuple[Op, ...]
    fill: Fill | None = None
    pieces: tuple[Nest, ...] = ()
    holds: tuple[Size, ...] = ()
    inside: int = 0
    short: Nest | None = None
    shortness: tuple[Size, ...] = ()
    flat: bool = False
    most: int = 0

    @property
    def passes(self) -> tuple[Pass, ...]:
        """The passes, in order."""
        steps = (*self.steps, *self.ending)
        return tuple([step for step in steps if isinstance(step, Pass)])


@dataclass(frozen=True, eq=False, slots=True)
class Inner:
    """A body of a region: its ``schedule``, in which ``leaves`` stand for its parameters."""

    leaves: tuple[Leaf, ...]
    schedule: Any

    @property
    def held(self) -> frozenset[int]:
        """The numbers of the carries that a step changes where they lie."""
        return frozenset(k for k, leaf in enumerate(self.leaves) if among(leaf, self.schedule.held))


@dataclass(frozen=True, eq=False, slots=True)
class Region:
    """A loop or branch, ``op``, whose ``bodies`` have kernels of their own.

    ``results`` are those of the kernel, in the order of their ``numbers``.
    """

    op: Op
    bodies: tuple[Inner, ...]
    results: tuple[Op, ...]

    @property
    def numbers(self) -> tuple[int, ...]:
        """Which results of the region there are."""
        return tuple([op.attrs[0] for op in self.results])

    @property
    def held(self) -> frozenset[int]:
        """The numbers of the carries that stay where they lie, from before the first step on."""
        return self.bodies[-1].held

    @property
    def loops(self) -> tuple[tuple[str, Size], ...]:
        """The name and the length of the axis that its body is run along; none of a branch."""
        if self.op.primitive.name == "while":
            return ((WHILE, WhileAttributes(self.op.attrs).limit or ENDLESS),)
        axes = [value for value in self.op.attrs if isinstance(value, Axis)]
        return tuple([(axis.name, axis.expression) for axis in axes])


@dataclass(frozen=True, eq=False, slots=True)
class Call:
    """One op by a function of the target's library."""

    op: Op
