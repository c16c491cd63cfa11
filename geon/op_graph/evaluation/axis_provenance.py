"""Finds axes of results that are axes of inputs: index i depends only on index i of the input."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import NamedTuple

from ...lazy_dataclasses import dataclass
from ..axes.affine import AffineIndex, variable
from ..axes.index_map import (
    EVERY,
    SAME_PLACE,
    GuardedElement,
    Index,
    Position,
    atoms,
    identity,
    reads,
)
from ..building.constants import CONSTANT
from ..op_graph import Leaf, Op, Tensor
from ..regions.loop import loop_of
from ..regions.parameters import PARAMETER, REGION_RESULT
from ..rows.sort_and_cumulative import RUNNING

MAX_SEARCH_STATES = (
    100_000  # maximum states of the search along one axis; beyond, the axis counts as moved
)
TRACKED = ""  # variable of the index in the result; no axis has this name
STEP = "step"  # axis name of a state that follows the steps of a loop
SAME = variable(TRACKED)
NOWHERE = AffineIndex()  # depends on no index of the result, so it matches no leaf

# The finding for an element: None if it may depend on other indices; otherwise a bit set of the
# leaves that are read at the same index. No bit is set if all indices are alike; the lowest bit
# means that the finding is an assumption.
Finding = int | None
ALIKE, ASSUMED = 0, 1


class ElementState(NamedTuple):
    """An element at index ``at`` along ``axis`` of ``op``, in the body numbered ``frame``."""

    frame: int
    op: Op
    axis: str
    at: AffineIndex
    inside: bool = False  # the axis is not the op's, but that of the loop whose step computes it


@dataclass(frozen=True, slots=True)
class Sources:
    """The elements from which an element is computed.

    The element is one of ``choices``; each choice is a group of elements that are combined. If all
    choices are alike along the axis, ``condition`` are the elements that select one.
    """

    choices: tuple[tuple[ElementState | Finding, ...], ...]
    condition: tuple[ElementState | Finding, ...] = ()


def kept_axes(result: Tensor) -> dict[str, frozenset[Op]]:
    """Return the axes along which each element of ``result`` depends on the same index of inputs.

    The values are the leaves, and constants from labelled data, that have the axis. A slice that is
    padded again keeps its axis; a reversed or sorted axis is not kept. An empty set means that all
    elements are alike along the axis. For ops that select (``where``, branches, joined tensors),
    each choice must keep an axis. An axis is left out if this is not certain. ``result`` has no
    effects below it.
    """
    positions = {}
    for name in result.axes.names:
        search = _AxisSearch(name, result)
        leaves = search.leaves_of(ElementState(-1, result, name, SAME))
        if leaves is not None:
            positions[name] = leaves
    return positions


class AxisSlice(NamedTuple):
    """A slice of an axis of ``leaves``, from ``start`` on with stride ``step``; 0 for one index."""

    leaves: frozenset[Op]
    start: int
    step: int


def cut_axes(result: Tensor, kept: Iterable[str]) -> dict[str, AxisSlice]:
    """Return the axes along which a result is one slice with constant bounds, except ``kept``.

    The values have the leaves that are sliced. An axis whose elements come from two different
    slices, as in the difference between neighbours, is left out.
    """
    positions = {}
    for name in result.axes.names:
        if name in kept:
            continue
        cuts = _cuts(result, name, SAME)
        if len(cuts) == 1:
            positions[name] = cuts[0]
    return positions


def indexed_axes(result: Tensor) -> dict[str, AxisSlice]:
    """Return the axes that ``result`` lacks because one constant index along them was taken.

    The values have the leaves and the index. An axis along which different indices were taken is
    left out.
    """
    places: dict[str, list[tuple[Op, int]]] = {}
    seen: set[Op] = {result}
    waiting: list[Op] = [result]
    while waiting:
        op = waiting.pop()
        row = op.primitive
        if row.view and row.index_map is not None:
            for piece in row.index_map(op, identity(op.axes.names)):
                arg = op.args[piece.arg]
                for name in arg.axes.names:
                    at = piece.index[name]
                    if not at.terms and isinstance(at.constant, int) and name not in result.axes:
                        places.setdefault(name, []).append((arg, at.constant))
        elif row.kind not in ("elementwise", "contraction", "reduction"):
            continue
        waiting += [arg for arg in op.args if arg not in seen]
        seen.update(op.args)
    positions = {}
    for name, taken in places.items():
        cuts = [cut for arg, at in taken for cut in _cuts(arg, name, SAME + at)]
        if cuts and len({cut.start for cut in cuts}) == 1:
            leaves = frozenset([leaf for cut in cuts for leaf in cut.leaves])
            positions[name] = AxisSlice(leaves, cuts[0].start, 0)
    return positions


def _cuts(op: Op, name: str, at: AffineIndex) -> list[AxisSlice]:
    """Return the slices of leaves that the elements of ``op`` at index ``at`` depend on."""
    root = ElementState(-1, op, name, at)
    first = _AxisSearch(name, op, NOWHERE)
    first.leaves_of(root)
    cuts = []
    for other in first.others:
        leaves = _AxisSearch(name, op, other).leaves_of(root)
        if leaves:
            start, step = other.constant, other.step(TRACKED)
            assert isinstance(start, int) and isinstance(step, int)
            cuts.append(AxisSlice(leaves, start, step))
    return cuts


class _AxisSearch:
    """The search along one axis of a result, for leaves that are read at the index ``wanted``.

    ``wanted`` None means the same index over the whole axis. ``others`` collects other indices,
    each of one slice with constant bounds, at which leaves are read.
    """

    def __init__(self, name: str, result: Op, wanted: AffineIndex | None = None) -> None:
        self.name, self.length = name, result.axes[name].expression
        self.wanted, self.others = wanted, dict[AffineIndex, None]()
        self.leaves: list[Op] = []
        self.frames: list[tuple[Op, int, int]] = []  # region, body number, enclosing frame
        self._numbers: dict[tuple[int, int, int], int] = {}

    def leaves_of(self, root: ElementState) -> frozenset[Op] | None:
        """Return the leaves that are read at the wanted index; None if other indices are too.

        The search assumes that a loop's carry keeps the axis; if that turns out to be false, it
        runs again.
        """
        refuted: set[Hashable] = set()
        while True:
            known, assumed = self._findings(root, refuted)
            wrong = {key for key in assumed if known.get(key) is None} - refuted
            if not wrong:
                value = known[_key(root)]
                bits = 0 if value is None else value >> 1
                leaves = [leaf for k, leaf in enumerate(self.leaves) if bits >> k & 1]
                return None if value is None else frozenset(leaves)
            refuted |= wrong

    def _findings(
        self, root: ElementState, refuted: set[Hashable]
    ) -> tuple[dict[Hashable, Finding], set[Hashable]]:
        """Return the finding for each state, and the states that were assumed to keep the axis."""
        known: dict[Hashable, Finding] = dict.fromkeys(refuted)
        result: dict[Hashable, Sources] = {}
        assumed: set[Hashable] = set()
        waiting = [root]

        def value(part: ElementState | Finding) -> Finding:
            if not isinstance(part, ElementState):
                return part
            key = _key(part)
            if key not in known:
                assumed.add(key)
            return known.get(key, ASSUMED)

        while waiting:
            state = waiting[-1]
            key = _key(state)
            if key not in known and key not in result:
                if len(result) == MAX_SEARCH_STATES:
                    return {_key(root): None}, set()
                result[key] = step = self._sources(state)
                parts = [p for group in (*step.choices, step.condition) for p in group]
                waiting += [
                    p for p in parts if isinstance(p, ElementState) and _key(p) not in result
                ]
                continue
            if key not in known:
                step = result[key]
                each = [_any([value(part) for part in group]) for group in step.choices]
                finding = _all(each)
                if finding == ALIKE and step.condition:
                    finding = _any([value(part) for part in step.condition])
                known[key] = finding
            waiting.pop()
        return known, assumed

    def _sources(self, state: ElementState) -> Sources:
        """Return the elements from which an element is computed."""
        frame, op, axis, at, inside = state
        row = op.primitive
        if not all(atom == TRACKED for atom in at.terms):
            return UNKNOWN
        if row is PARAMETER:
            return self._parameter_sources(state)
        if isinstance(op, Leaf) or row is CONSTANT:
            return self._leaf(state)
        if row.name in SAME_PLACE or row.name in RUNNING:
            return Sources(((state._replace(op=op.args[0]),),))
        if row.name == "where":
            condition, *branches = [state._replace(op=arg) for arg in op.args]
            return Sources(
                tuple([(part,) for part in branches if _has(part)]) or ((ALIKE,),),
                (condition,) if _has(condition) else (),
            )
        if inside:
            sources = tuple([state._replace(op=arg) for arg in op.args])
            return UNKNOWN if row.name == "random_bits" else Sources((sources or (ALIKE,),))
        if row is REGION_RESULT:
            return self._result_sources(state)
        pieces = reads(op, {**identity(op.axes.names), axis: at})
        if row.index_map is not None:
            return Sources(tuple([self._elements_read(state, piece) for piece in pieces]))
        if row.name == "scatter":  # of the index argument, only values count
            pieces = (pieces[0], pieces[2])
        parts = [
            state._replace(op=op.args[piece.arg])
            for piece in pieces
            if piece.index.get(axis, EVERY) is not EVERY
        ]
        if not parts:
            return UNKNOWN
        return Sources(
            tuple([(part,) for part in parts]) if row.name == "scatter" else (tuple(parts),)
        )

    def _leaf(self, state: ElementState) -> Sources:
        op, axis = state.op, state.axis
        if state.inside:
            return Sources(((ALIKE,),))
        labelled = isinstance(op, Leaf) or op.notes().coordinates is not None
        if axis != self.name or not labelled:
            return UNKNOWN
        whole = state.at == SAME and op.axes[axis].expression == self.length
        if not (whole if self.wanted is None else state.at == self.wanted):
            if _is_slice(state.at):
                self.others[state.at] = None
            return UNKNOWN
        number = next((k for k, leaf in enumerate(self.leaves) if leaf is op), len(self.leaves))
        if number == len(self.leaves):
            self.leaves.append(op)
        return Sources(((2 << number,),))

    def _elements_read(
        self, state: ElementState, piece: GuardedElement
    ) -> tuple[ElementState | Finding, ...]:
        """Return the elements that an index map's piece reads.

        If only run-time indices depend on the axis, these are the elements of the index arguments.
        """
        op, arg = state.op, state.op.args[piece.arg]
        computed: list[ElementState | Finding] = []
        chosen: list[ElementState | Finding] = []
        for name in arg.axes.names:
            index = piece.index[name]
            for atom in index.terms:
                if isinstance(atom, Position):
                    places = _tracked(dict(atom.index), op.args[atom.arg])
                    if places and name == self.name:
                        computed.append(None)
                    for along, at in places:
                        chosen.append(ElementState(state.frame, op.args[atom.arg], along, at))
        for name, index in _tracked(piece.index, arg):
            if not any(isinstance(atom, Position) for atom in index.terms):
                computed.append(ElementState(state.frame, arg, name, index))
        return tuple(computed or chosen) or (ALIKE,)

    def _result_sources(self, state: ElementState) -> Sources:
        """Return the sources of a region result: each branch, or the initial and the next carry."""
        frame, op, axis, at, _ = state
        (region,), (number,) = op.args, op.attrs
        loop = loop_of(region)
        if loop is None:
            results = [
                ElementState(self._frame(region, k, frame), body.results[number], axis, at)
                for k, body in enumerate(region.bodies)
            ]
            return Sources(tuple([(result,) for result in results]))
        last = ElementState(
            self._frame(region, loop.number, frame), loop.step_value(number), axis, at
        )
        if number < loop.carries:
            return Sources(((ElementState(frame, region.args[number], axis, at),), (last,)))
        if loop.axis is not None and axis == loop.axis.name:
            return Sources(((last._replace(axis=STEP, inside=True),),))
        return Sources(((last,),))

    def _parameter_sources(self, state: ElementState) -> Sources:
        """Return the sources of a body's parameter outside of the body."""
        if state.frame < 0:
            return UNKNOWN
        region, _, around = self.frames[state.frame]
        number, loop = state.op.attrs.number, loop_of(region)
        if loop is not None and loop.is_step(number):
            return UNKNOWN
        outside = ElementState(around, region.args[number], state.axis, state.at)
        if loop is None:
            return Sources(((outside,),))
        if state.inside:
            if number < loop.carries:
                return UNKNOWN
            if number not in loop.inputs:
                return Sources(((ALIKE,),))
            assert loop.axis is not None  # it has stacked inputs
            return Sources(((outside._replace(axis=loop.axis.name),),))
        if number < loop.carries:
            return Sources(((outside,), (state._replace(op=loop.step_value(number)),)))
        return Sources(((outside,),))

    def _frame(self, region: Op, body: int, around: int) -> int:
        number = self._numbers.setdefault((id(region), body, around), len(self.frames))
        if number == len(self.frames):
            self.frames.append((region, body, around))
        return number


UNKNOWN = Sources(((None,),))


def _is_slice(at: AffineIndex) -> bool:
    """Return True if an index is that of a forward slice with constant bounds."""
    start, step = at.constant, at.step(TRACKED)
    return isinstance(start, int) and isinstance(step, int) and start >= 0 and step > 0


def _key(state: ElementState) -> Hashable:
    return state.frame, id(state.op), state.axis, state.at, state.inside


def _has(state: ElementState) -> bool:
    return state.inside or state.axis in state.op.axes.names


def _any(parts: Iterable[Finding]) -> Finding:
    """Return the finding for elements that are combined: one that keeps the axis suffices."""
    bits, unknown = ALIKE, False
    for part in parts:
        bits |= part or ALIKE
        unknown = unknown or part is None
    return None if unknown and bits == ALIKE else bits


def _all(choices: Iterable[Finding]) -> Finding:
    """Return the finding for an element that is one of several choices."""
    bits = ALIKE
    for choice in choices:
        if choice is None:
            return None
        bits |= choice
    return bits


def _tracked(index: Index, arg: Op) -> list[tuple[str, AffineIndex]]:
    """Return the axes of an argument whose index depends on the index in the result."""
    names = [name for name in arg.axes.names if TRACKED in set(atoms(index[name]))]
    return [(name, index[name]) for name in names]
