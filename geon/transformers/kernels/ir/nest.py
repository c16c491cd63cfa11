"""Kernel IR: loop nests with their reductions and stores in scalar code.

The nodes are data: no text, and independent of the target.
"""

from __future__ import annotations

from typing import Any, Final

from ....lazy_dataclasses import dataclass
from ....op_graph.axes.affine import AffineIndex, Size
from ....op_graph.axes.axes import Axis
from ....op_graph.op_graph import Leaf, Op, among
from ....op_graph.rows.reducers import Reducer
from ....op_graph.values.dtypes import DType
from .scalar_code import Scalar

WHILE = "a while loop"  # name of its iterations in errors, in place of an axis name
UNLIMITED_TURNS = 1 << 32  # nominal number of iterations of a while loop without a limit


@dataclass(frozen=True, eq=False, slots=True)
class Fused:
    """Form of a fused kernel.

    ``kind`` is ``nest``, ``contraction``, ``blocked`` (a chain), ``update`` or ``call``. ``rows``
    are the outermost axes that its passes share; None for one pass over all axes. ``dot`` is the op
    that a contraction computes. ``reductions`` are the reductions with loops of their own.
    ``names`` maps axes of ``dot`` to the names that the results give them, where these differ.
    ``chain`` is that of a blocked kernel. ``straight`` are reductions that are unrolled without a
    loop. ``collapsed`` is the maximum of known elements of a row that is transposed in one loop
    with rows around it; columns of longer rows are in vector lanes.
    """

    kind: str
    rows: frozenset[str] | None = None
    dot: Op | None = None
    reductions: tuple[Op, ...] = ()
    names: tuple[tuple[str, str], ...] = ()
    chain: Chain | None = None
    straight: tuple[Op, ...] = ()
    collapsed: int = 0

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
    """Kernels that run one after another on each block of ``rows``.

    ``steps`` are these kernels with their results. ``batch`` are axes that are iterated one index
    at a time. ``inner`` are the values that nothing else reads; they are stored for one block only.
    ``slots`` has the number of the block buffer of each of them; buffers are reused after the last
    use.
    """

    steps: tuple[tuple[Fused, tuple[Op, ...]], ...]
    batch: tuple[str, ...]
    rows: str
    inner: tuple[Op, ...]
    slots: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Loop:
    """A loop variable and the axes that it covers, collapsed, outermost first."""

    name: str
    axes: tuple[str, ...]
    extent: Size


# Primitives whose reduction compilers vectorise: each lane has a partial value.
FOLDED = frozenset(
    "add multiply maximum minimum logical_or logical_and bitwise_or bitwise_and".split()
)


def folded_row(reducer: Reducer) -> str | None:
    """Return the name of the primitive in ``FOLDED`` that a reducer folds, else None."""
    row = reducer.folds
    return row.name if row is not None and row.name in FOLDED else None


@dataclass(frozen=True, eq=False, slots=True)
class Reduction:
    """A reduction of a pass, over one element or over products of two.

    ``number`` identifies it: later code reads the result as ``Reduced(number, part)``. ``states``
    are the dtypes of the reducer's state. ``elements`` are the element, or the two factors.
    ``position`` is the element's position where the reducer needs it.
    """

    number: int
    reducer: Reducer
    states: tuple[DType, ...]
    elements: tuple[Scalar, ...]
    position: Scalar | None = None

    @property
    def folds(self) -> str | None:
        """Return the name of the primitive it folds if vector lanes can fold it, else None."""
        return folded_row(self.reducer)


@dataclass(eq=False, slots=True)
class Store:
    """Store ``value`` at ``offset`` of operand number ``operand``."""

    operand: Final[int]
    offset: Final[AffineIndex]
    value: Final[Scalar]
    dtype: Final[DType]


@dataclass(frozen=True, eq=False, slots=True)
class RowArray:
    """Scratch array of ``size`` elements per row, written in one pass and read in later ones."""

    number: int
    size: Size
    dtype: DType


@dataclass(eq=False, slots=True)
class Keep:
    """Store ``value`` at ``offset`` of row array ``number``, for later passes."""

    number: Final[int]
    offset: Final[AffineIndex]
    value: Final[Scalar]


@dataclass(frozen=True, eq=False, slots=True)
class Pass:
    """Loops, outermost first, with the reductions, stores and keeps of each element.

    In a nest without rows, threads share loop number ``divided``.
    """

    loops: tuple[Loop, ...]
    reductions: tuple[Reduction, ...] = ()
    stores: tuple[Store, ...] = ()
    keeps: tuple[Keep, ...] = ()
    divided: int = 0

    @property
    def reduced(self) -> list[Scalar]:
        """Return the elements that the pass reduces, without their positions."""
        return [element for reduction in self.reductions for element in reduction.elements]

    @property
    def computed(self) -> list[Scalar]:
        """Return the elements that the pass reduces, stores or keeps, without positions."""
        puts: list[Store | Keep] = [*self.stores, *self.keeps]
        return [*self.reduced, *(each.value for each in puts)]


@dataclass(frozen=True, eq=False, slots=True)
class Fill:
    """Copy all of operand ``source`` to ``operand``, unless they share memory."""

    operand: int
    source: int


@dataclass(frozen=True, eq=False, slots=True, weakref_slot=True)
class Nest:
    """Loops over rows; each row runs ``steps``: passes, and stores of values of the row, in order.

    An element's loads in a pass precede its stores, and so it is for the stores of a row between
    two passes: a result may share memory with an operand that is read at the same element.

    ``rows``: the outer loops. Without them each pass is split among threads, and ``ending`` runs
    when the partial results are combined. ``across``: the loop over rows that are adjacent in
    memory, which may run in vector lanes. ``arrays``: the scratch arrays of a row. ``operands``:
    the values in memory, by the numbers that loads and stores use. ``fill``: a copy before
    everything else, if only a part is stored. ``pieces``: nests that together compute the same if
    no size in ``holds`` is negative. Each covers a region in which guards are decided. ``short``: a
    nest that computes the same with rows in vector lanes. It runs if no size in ``shortness`` is
    negative: the rows are then too short for vectors. Empty ``shortness``: always. ``most``:
    maximum open length of its rows; 0 for no limit.
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
    short: Nest | None = None
    shortness: tuple[Size, ...] = ()
    most: int = 0

    @property
    def passes(self) -> tuple[Pass, ...]:
        """Return the passes, in order."""
        steps = (*self.steps, *self.ending)
        return tuple([step for step in steps if isinstance(step, Pass)])


@dataclass(frozen=True, eq=False, slots=True)
class Inner:
    """A body of a region: its ``schedule``, in which ``leaves`` stand for its parameters."""

    leaves: tuple[Leaf, ...]
    schedule: Any

    @property
    def held(self) -> frozenset[int]:
        """Return the numbers of the carries that a step updates in place."""
        return frozenset(k for k, leaf in enumerate(self.leaves) if among(leaf, self.schedule.held))


@dataclass(frozen=True, eq=False, slots=True)
class Region:
    """A loop or branch ``op``, whose ``bodies`` have kernels of their own.

    ``results`` are the results of the kernel, in the order of their ``numbers``.
    """

    op: Op
    bodies: tuple[Inner, ...]
    results: tuple[Op, ...]

    @property
    def numbers(self) -> tuple[int, ...]:
        """Return the numbers of the region's results that are computed."""
        return tuple([op.attrs.number for op in self.results])

    @property
    def held(self) -> frozenset[int]:
        """Return the numbers of the carries that stay in one buffer throughout the loop."""
        return self.bodies[-1].held

    @property
    def loops(self) -> tuple[tuple[str, Size], ...]:
        """Return the name and length of the axis that the body iterates over; () for a branch."""
        if self.op.primitive.name == "while":
            return ((WHILE, self.op.attrs.limit or UNLIMITED_TURNS),)
        axes = [value for value in self.op.attrs if isinstance(value, Axis)]
        return tuple([(axis.name, axis.expression) for axis in axes])


@dataclass(frozen=True, eq=False, slots=True)
class Call:
    """One op, computed by a function of the target's library."""

    op: Op
