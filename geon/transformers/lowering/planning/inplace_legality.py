"""Legality of in-place results: checks that each element is read before it is overwritten.

It replays the loads and stores of a kernel at sample lengths, independently of the planner. All
printers follow this model: pieces run one after another. Rows run in any order. Within a row,
passes and the stores between two passes run one after another. The elements of a pass run in any
order. Of one element, or of the stores of a row, all loads precede all stores.
"""

from __future__ import annotations

import itertools
from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from ....lazy_dataclasses import dataclass
from ....op_graph.axes.affine import AffineIndex, Quotient, Remainder, Size
from ....op_graph.axes.lengths import evaluate
from ....op_graph.op_graph import Op, among
from ...kernels.ir.nest import UNLIMITED_TURNS, Nest, Store
from ...kernels.ir.scalar_code import (
    Apply,
    Clamped,
    LengthNumber,
    Load,
    Number,
    Scalar,
    Wrapped,
    walk,
)
from ...kernels.kernel_lowering import Work
from ...kernels.products.contraction import Contraction
from ...kernels.products.row_blocking import Blocked, Extremes, Step
from ...loops.from_nest import from_nest
from ...loops.tree import Fold, LoopNode, Write, values_of
from ...loops.tree import walk as walk_tree
from ...sizes.limits import LONG_LOOP_TURNS

MAX_SIMULATED_ELEMENTS = 1 << 16  # maximum elements of a pass that are all replayed
SIMULATED_END_ELEMENTS = 4  # iterations replayed at either end of each loop of larger passes
PASS_NUMBER_STRIDE = UNLIMITED_TURNS  # distance of element numbers between passes in any order
# Increments of open lengths: some kernels have variants for short and long ones.
LENGTH_INCREMENTS = (0, LONG_LOOP_TURNS)
SHARED = (Number, LengthNumber, Apply, Wrapped)  # nodes that have one value without a loop's index
Array = Any  # indices over rows and loops
Loops = tuple[tuple[str, Size], ...]  # variables and extents, outermost loop first


@dataclass(frozen=True, eq=False, slots=True)
class _Moment:
    """One step of a row: its loops by variable and extent, the values computed in it, its stores,
    and whether it folds elements.
    """

    rows: Loops
    loops: Loops
    values: tuple[Scalar, ...]
    stores: tuple[Store, ...]
    folds: bool = False


@dataclass(frozen=True, eq=False, slots=True)
class _Accesses:
    """Memory offsets, with row and element number of each, of piece ``piece`` at step ``time``.

    ``given`` are terms of all offsets that are read once for all elements, from other memory.
    """

    offsets: Array
    row: Array
    element: Array
    piece: int
    time: int
    given: dict[Hashable, Size]


def reads_first(work: Work, value: Op, result: Op, lengths: Mapping[str, int]) -> bool:
    """Return True if each element of ``value`` is read before ``result`` overwrites it.

    Return False for regions, ordered loops and chains of blocks.
    """
    if not isinstance(work, (Nest, Contraction)) or not among(value, work.operands):
        return False
    pair = _number(work, value), _number(work, result)
    longer = [{name: size + more for name, size in lengths.items()} for more in LENGTH_INCREMENTS]
    return all(_is_sound(form, *pair, each) for each in longer for form in _forms(work, each))


def _number(work: Nest | Contraction, op: Op) -> int:
    return next(k for k, operand in enumerate(work.operands) if operand is op)


def _forms(
    work: Nest | Contraction, lengths: Mapping[str, int]
) -> list[Sequence[Nest | Contraction]]:
    """Return the alternative forms of a kernel at these lengths, each as a sequence of nests.

    Pieces are used only where no size in ``holds`` is negative.
    """
    found: list[Sequence[Nest | Contraction]] = [(work,)]
    holds = work.holds if isinstance(work, Nest) else ()
    together = all(evaluate(size, lengths) >= 0 for size in holds)
    if work.pieces and together:
        found.append(work.pieces)
    for each in (work, *(work.pieces if together else ())):
        if isinstance(each, Nest) and each.short is not None:
            found.append((each.short,))
    return found


def _is_sound(
    form: Sequence[Nest | Contraction], value: int, result: int, lengths: Mapping[str, int]
) -> bool:
    """Return True if a sequence of nests reads each element before it is overwritten."""
    loads: list[_Accesses | None] = []
    stores: list[_Accesses | None] = []
    for piece, work in enumerate(form):
        if _loads_of(value, _read_anywhere(work, value)):
            return False
        moments = _moments(work)
        in_order = any(moment.folds for moment in moments)
        for number, moment in enumerate(moments):
            time, apart = (number, 0) if in_order else (0, number * PASS_NUMBER_STRIDE)
            played = _Played(moment, lengths, apart)
            read = [load.offset for load in _loads_of(value, moment.values)]
            written = [store.offset for store in moment.stores if store.operand == result]
            loads += [played.accesses(offset, piece, time) for offset in read]
            stores += [played.accesses(offset, piece, time) for offset in written]
    return all(_comes_before(load, store) for load in loads for store in stores)


def _loads_of(value: int, roots: Iterable[Scalar]) -> list[Load]:
    """Return the loads of an operand in scalar code, including those in indices."""
    return [x for x in walk(*roots) if isinstance(x, Load) and x.operand == value]


def _read_anywhere(work: Nest | Contraction, value: int) -> Sequence[Scalar]:
    """Return the values computed at unknown times, or after everything was written."""
    if isinstance(work, Contraction):
        return work.left, work.right
    if work.fill is None or work.fill.source == value:
        return ()  # a fill from the operand itself copies nothing
    return [node for moment in _moments(work) for node in moment.values]


def _moments(work: Nest | Contraction) -> list[_Moment]:
    """Return the steps of each row in order: the statements that share their loops in a nest's
    tree. A contraction is one pass.
    """
    if isinstance(work, Contraction):
        whole = [(loop.name, loop.extent) for loop in (*work.batch, *work.rows, *work.columns)]
        return [_Moment((), tuple(whole), tuple([x.value for x in work.stores]), work.stores)]
    rows = len(work.rows) + (work.across is not None)
    statements = [
        each for each in walk_tree(from_nest(work).body) if not isinstance(each[0], LoopNode)
    ]
    found = []
    for around, run in itertools.groupby(statements, lambda each: each[1]):
        steps = [statement for statement, _ in run]
        loops = [(loop.variable, loop.extent.constant) for loop in around]
        values = [value for step in steps for value in values_of(step)]
        stores = [x for step in steps if isinstance(step, Write) for x in step.stores]
        folds = any(isinstance(step, Fold) for step in steps)
        kept = tuple([store for store in stores if isinstance(store, Store)])
        found.append(_Moment(tuple(loops[:rows]), tuple(loops[rows:]), tuple(values), kept, folds))
    return found


class _Played:
    """Indices of a moment's loops at given ``lengths``, as broadcastable arrays.

    Elements are numbered from ``first``.
    """

    def __init__(self, moment: _Moment, lengths: Mapping[str, int], first: int) -> None:
        self.lengths = lengths
        loops = [*moment.rows, *moment.loops]
        extents = [max(self.size(extent), 0) for _, extent in loops]
        few = np.prod(extents, dtype=np.float64) <= MAX_SIMULATED_ELEMENTS
        taken = [
            np.arange(n) if few or n <= 2 * SIMULATED_END_ELEMENTS else _ends(n) for n in extents
        ]
        self.shape = tuple(map(len, taken))
        self.variables: dict[Hashable, Array] = {}
        numbers: list[Array] = [np.int64(0), np.int64(first)]  # row number, element number
        for k, ((name, _), count, each) in enumerate(zip(loops, extents, taken, strict=True)):
            at = each.reshape([-1, *[1] * (len(loops) - 1 - k)])
            inside = k >= len(moment.rows)
            numbers[inside] = numbers[inside] * count + at
            self.variables[name] = at
        self.row, self.element = map(self.each, numbers)

    def size(self, size: Size) -> int:
        """Return a length as an integer."""
        return evaluate(size, self.lengths)

    def accesses(self, offset: AffineIndex, piece: int, time: int) -> _Accesses | None:
        """Return the accesses at an offset; None if data of the elements decide it."""
        given = {atom: step for atom, step in offset.terms.items() if _is_given(atom)}
        rest = [(atom, step) for atom, step in offset.terms.items() if atom not in given]
        at = self.index(AffineIndex(rest, offset.constant))
        if at is None:
            return None
        return _Accesses(self.each(at), self.row, self.element, piece, time, given)

    def each(self, index: Array) -> Array:
        """Return an index broadcast to all rows and elements."""
        return np.broadcast_to(index, self.shape).reshape(-1)

    def index(self, index: AffineIndex) -> Array | None:
        """Return the values of an index; None if it depends on data."""
        found = np.int64(self.size(index.constant))
        for atom, step in index.terms.items():
            value = self.atom(atom)
            if value is None:
                return None
            found = found + value * self.size(step)
        return found

    def atom(self, atom: Hashable) -> Array | None:
        """Return the values of an atom of an index; None if it depends on data."""
        if isinstance(atom, str):
            return self.variables[atom]
        if not isinstance(atom, (Quotient, Remainder, Clamped)):
            return None
        of = self.index(atom.of)
        if of is None:
            return None
        if isinstance(atom, Clamped):
            for guard in atom.guards:
                at = self.index(guard.index)
                if at is None:
                    return None
                of = np.where((at >= self.size(guard.low)) & (at < self.size(guard.high)), of, 0)
            return of
        by = max(self.size(atom.by), 1)  # 0 only where the loop has no iterations
        return of // by if isinstance(atom, Quotient) else of % by


def _ends(count: int) -> Array:
    """Return the first and last ``SIMULATED_END_ELEMENTS`` of ``count`` indices."""
    return np.r_[:SIMULATED_END_ELEMENTS, count - SIMULATED_END_ELEMENTS : count]


def _is_given(atom: Hashable) -> bool:
    """Return True if an atom of an index is a position that all elements of a kernel share."""
    if not isinstance(atom, Wrapped):
        return False
    nodes = list(walk(atom))
    return all(
        not node.offset.terms if isinstance(node, Load) else isinstance(node, SHARED)
        for node in nodes
    )


def _comes_before(load: _Accesses | None, store: _Accesses | None) -> bool:
    """Return True if no loaded element may have been overwritten by the store before."""
    if load is None or store is None or load.given != store.given:
        return False
    if load.piece < store.piece or not len(load.offsets) or not len(store.offsets):
        return True
    order = np.argsort(store.offsets, kind="stable")
    places = store.offsets[order]
    at = np.minimum(np.searchsorted(places, load.offsets), len(places) - 1)
    both = places[at] == load.offsets
    if load.piece > store.piece:
        return not both.any()
    own = load.row == store.row[order][at]
    if load.time == store.time:
        own &= load.element == store.element[order][at]
    return bool((own | ~both).all()) and (load.time <= store.time or not both.any())


# Chains -----------------------------------------------------------------------------------------


def wrong_step(work: Blocked, lengths: Mapping[str, int]) -> Op | None:
    """Return a value that a chain's step reads after its block buffer was overwritten, or None."""
    bound = work.bindings(0, lengths)
    held: dict[int, Op] = {}
    for step, places in zip(work.steps, work.places, strict=True):
        pairs = zip(step.operands, places, strict=True)
        inner = {op: place.number for op, place in pairs if place.inner}
        written = _written(step)
        for op, slot in inner.items():
            if among(op, written):
                continue
            over = [result for result in written if inner.get(result) == slot]
            if held.get(slot) is not op or not all(_is_before(step, op, r, bound) for r in over):
                return op
        held.update((inner[op], op) for op in written if op in inner)
    return None


def _is_before(step: Step, value: Op, result: Op, lengths: Mapping[str, int]) -> bool:
    """Return True if a step of a chain reads each element before a result overwrites it."""
    return not isinstance(step, Extremes) and reads_first(step, value, result, lengths)


def _written(step: Step) -> list[Op]:
    """Return the values that a step of a chain computes."""
    if isinstance(step, Extremes):
        return [step.op]
    stores = [store for moment in _moments(step) for store in moment.stores]
    return list({step.operands[store.operand]: None for store in stores})
