"""Axes of results that are axes of inputs: position i is computed from position i alone."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from typing import NamedTuple

from ..axes.affine import Affine, variable
from ..axes.index_map import Index, Piece, Position, atoms, identity
from ..building.constants import CONSTANT
from ..op_graph import Leaf, Op, Tensor
from ..regions.loop_view import loop_of
from ..regions.parameters import PARAMETER, REGION_RESULT
from ..rows.remat_annotations import AFTER, REMAT, SEGMENTED

STATES = 100_000  # of the search along one axis; past them the axis counts as moved
TRACKED = ""  # the position in the result; no axis has this name
STEP = "step"  # in place of an axis: the number of the step, in what a loop stacks
SAME = variable(TRACKED)
NOWHERE = Affine()  # no position in the result

# What is known of a position: None where it may be another one, else bits of the leaves on which
# it is the same. No bit is set where all positions are alike; the first is that of what is assumed.
Found = int | None
ALIKE, ASSUMED = 0, 1


class State(NamedTuple):
    """An element at ``at`` along an axis of an op, in the body that has the number ``frame``."""

    frame: int
    op: Op
    axis: str
    at: Affine
    inside: bool = False  # the axis is none of the op's but that of the loop it is a step of


@dataclass(frozen=True, slots=True)
class Made:
    """An element that is, of each choice, some of the elements in it together.

    Where all choices are alike along the axis, ``condition`` says which of them it is.
    """

    choices: tuple[tuple[State | Found, ...], ...]
    condition: tuple[State | Found, ...] = ()


def kept_axes(result: Tensor) -> dict[str, frozenset[Op]]:
    """The axes along which each element of ``result`` is made of some at the same position.

    By name the leaves, and constants of labelled data, that have these: along a slice that is
    padded again they are, along a reversed or sorted axis not. No leaves: all elements are alike
    along the axis. Of what chooses (``where``, branches, joined tensors) each choice has to keep
    an axis; an axis is left out where this is not certain. ``result`` has no effects below it.
    """
    found = {}
    for name in result.axes.names:
        search = _Search(name, result)
        leaves = search.leaves_of(State(-1, result, name, SAME))
        if leaves is not None:
            found[name] = leaves
    return found


class Cut(NamedTuple):
    """The part of an axis of ``leaves`` from ``start`` on in steps of ``step``, 0 for one place."""

    leaves: frozenset[Op]
    start: int
    step: int


def cut_axes(result: Tensor, kept: Iterable[str]) -> dict[str, Cut]:
    """The axes, other than those ``kept``, along which a result is one slice of constant bounds.

    By name the leaves that are sliced. An axis of which elements come from two different slices,
    as of the difference between neighbours, is left out.
    """
    found = {}
    for name in result.axes.names:
        if name in kept:
            continue
        cuts = _cuts(result, name, SAME)
        if len(cuts) == 1:
            found[name] = cuts[0]
    return found


def indexed_axes(result: Tensor) -> dict[str, Cut]:
    """The axes that ``result`` lacks because one constant place along them was taken.

    By name the leaves, and the place. An axis along which different places were taken is left out.
    """
    places: dict[str, dict[tuple[Op, int], None]] = {}
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
                        places.setdefault(name, {})[arg, at.constant] = None
        elif row.kind not in ("elementwise", "contraction", "reduction"):
            continue
        waiting += [arg for arg in op.args if arg not in seen]
        seen.update(op.args)
    found = {}
    for name, taken in places.items():
        cuts = [cut for arg, at in taken for cut in _cuts(arg, name, SAME + at)]
        if cuts and len({cut.start for cut in cuts}) == 1:
            leaves = frozenset([leaf for cut in cuts for leaf in cut.leaves])
            found[name] = Cut(leaves, cuts[0].start, 0)
    return found


def _cuts(op: Op, name: str, at: Affine) -> list[Cut]:
    """The slices of leaves that the elements of ``op`` at these positions are, if any."""
    root = State(-1, op, name, at)
    first = _Search(name, op, NOWHERE)
    first.leaves_of(root)
    cuts = []
    for other in first.others:
        leaves = _Search(name, op, other).leaves_of(root)
        if leaves:
            start, step = other.constant, other.step(TRACKED)
            assert isinstance(start, int) and isinstance(step, int)
            cuts.append(Cut(leaves, start, step))
    return cuts


class _Search:
    """The search along one axis of a result, for leaves that have its positions at ``wanted``.

    ``others`` are other positions, in one slice of constant bounds, at which leaves were met.
    """

    def __init__(self, name: str, result: Op, wanted: Affine | None = None) -> None:
        self.name, self.length = name, result.axes[name].expression
        self.wanted, self.others = wanted, dict[Affine, None]()
        self.leaves: list[Op] = []
        self.frames: list[tuple[Op, int, int]] = []  # region, number of the body, frame around it
        self._numbers: dict[tuple[int, int, int], int] = {}

    def leaves_of(self, root: State) -> frozenset[Op] | None:
        """The leaves with the same position, or None.

        A loop's carry is taken to keep the axis until it is found not to: then once more.
        """
        refuted: set[Hashable] = set()
        while True:
            known, assumed = self._found(root, refuted)
            wrong = {key for key in assumed if known.get(key) is None} - refuted
            if not wrong:
                value = known[_key(root)]
                bits = 0 if value is None else value >> 1
                leaves = [leaf for k, leaf in enumerate(self.leaves) if bits >> k & 1]
                return None if value is None else frozenset(leaves)
            refuted |= wrong

    def _found(
        self, root: State, refuted: set[Hashable]
    ) -> tuple[dict[Hashable, Found], set[Hashable]]:
        """What is known of each state, and the states that were assumed to keep the axis."""
        known: dict[Hashable, Found] = dict.fromkeys(refuted)
        made: dict[Hashable, Made] = {}
        assumed: set[Hashable] = set()
        waiting = [root]

        def value(part: State | Found) -> Found:
            if not isinstance(part, State):
                return part
            key = _key(part)
            if key not in known:
                assumed.add(key)
            return known.get(key, ASSUMED)

        while waiting:
            state = waiting[-1]
            key = _key(state)
            if key not in known and key not in made:
                if len(made) == STATES:
                    return {_key(root): None}, set()
                made[key] = step = self._made(state)
                parts = [p for group in (*step.choices, step.condition) for p in group]
                waiting += [p for p in parts if isinstance(p, State) and _key(p) not in made]
                continue
            if key not in known:
                step = made[key]
                each = [_any([value(part) for part in group]) for group in step.choices]
                found = _all(each)
                if found == ALIKE and step.condition:
                    found = _any([value(part) for part in step.condition])
                known[key] = found
            waiting.pop()
        return known, assumed

    def _made(self, state: State) -> Made:
        """What an element is made of."""
        frame, op, axis, at, inside = state
        row = op.primitive
        if not all(atom == TRACKED for atom in at.terms):
            return UNKNOWN
        if row is PARAMETER:
            return self._given(state)
        if isinstance(op, Leaf) or row is CONSTANT:
            return self._leaf(state)
        if row in (REMAT, AFTER, SEGMENTED) or row.name in ("custom", "checked", "converged"):
            return Made(((state._replace(op=op.args[0]),),))
        if row.name == "where":
            condition, *branches = [state._replace(op=arg) for arg in op.args]
            return Made(
                tuple([(part,) for part in branches if _has(part)]) or ((ALIKE,),),
                (condition,) if _has(condition) else (),
            )
        if inside:
            found = tuple([state._replace(op=arg) for arg in op.args])
            return UNKNOWN if row.name == "random_bits" else Made((found or (ALIKE,),))
        if row.index_map is not None:
            index = {**identity(op.axes.names), axis: at}
            return Made(tuple([self._piece(state, piece) for piece in row.index_map(op, index)]))
        if row is REGION_RESULT:
            return self._result(state)
        together = row.kind in ("elementwise", "contraction", "reduction")
        if together or (row.kind == "ordered" and (axis not in op.attrs or row.name in RUNNING)):
            having = [state._replace(op=arg) for arg in op.args if axis in arg.axes.names]
            return Made((tuple(having),)) if having else UNKNOWN
        if row.name == "scatter" and axis != op.attrs[0]:
            having = [state._replace(op=op.args[k]) for k in (0, 2)]
            return Made(tuple([(part,) for part in having if _has(part)]))
        return UNKNOWN

    def _leaf(self, state: State) -> Made:
        op, axis = state.op, state.axis
        if state.inside:
            return Made(((ALIKE,),))
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
        return Made(((2 << number,),))

    def _piece(self, state: State, piece: Piece) -> tuple[State | Found, ...]:
        """What an element of a row that moves elements is, where it is that of one argument.

        Where the axis is that of the positions alone, it is theirs.
        """
        op, arg = state.op, state.op.args[piece.arg]
        moved: list[State | Found] = []
        chosen: list[State | Found] = []
        for name in arg.axes.names:
            index = piece.index[name]
            for atom in index.terms:
                if isinstance(atom, Position):
                    places = _tracked(dict(atom.index), op.args[atom.arg])
                    if places and name == self.name:
                        moved.append(None)
                    for along, at in places:
                        chosen.append(State(state.frame, op.args[atom.arg], along, at))
        for name, index in _tracked(piece.index, arg):
            if not any(isinstance(atom, Position) for atom in index.terms):
                moved.append(State(state.frame, arg, name, index))
        return tuple(moved or chosen) or (ALIKE,)

    def _result(self, state: State) -> Made:
        """What a result of a region is made of: each branch; the first carry and later ones."""
        frame, op, axis, at, _ = state
        (region,), (number,) = op.args, op.attrs
        loop = loop_of(region)
        if loop is None:
            results = [
                State(self._frame(region, k, frame), body.results[number], axis, at)
                for k, body in enumerate(region.bodies)
            ]
            return Made(tuple([(result,) for result in results]))
        last = State(self._frame(region, loop.number, frame), loop.made(number), axis, at)
        if number < loop.carries:
            return Made(((State(frame, region.args[number], axis, at),), (last,)))
        if loop.axis is not None and axis == loop.axis.name:
            return Made(((last._replace(axis=STEP, inside=True),),))
        return Made(((last,),))

    def _given(self, state: State) -> Made:
        """What a body's parameter is made of, outside of it."""
        if state.frame < 0:
            return UNKNOWN
        region, _, around = self.frames[state.frame]
        number, loop = state.op.attrs[0], loop_of(region)
        if loop is not None and loop.is_step(number):
            return UNKNOWN
        outside = State(around, region.args[number], state.axis, state.at)
        if loop is None:
            return Made(((outside,),))
        if state.inside:
            if number < loop.carries:
                return UNKNOWN
            if number not in loop.walked:
                return Made(((ALIKE,),))
            assert loop.axis is not None  # it walks
            return Made(((outside._replace(axis=loop.axis.name),),))
        if number < loop.carries:
            return Made(((outside,), (state._replace(op=loop.made(number)),)))
        return Made(((outside,),))

    def _frame(self, region: Op, body: int, around: int) -> int:
        number = self._numbers.setdefault((id(region), body, around), len(self.frames))
        if number == len(self.frames):
            self.frames.append((region, body, around))
        return number


RUNNING = ("cumsum", "cumprod")
UNKNOWN = Made(((None,),))


def _is_slice(at: Affine) -> bool:
    """Whether positions are those of a slice of constant bounds that goes forward."""
    start, step = at.constant, at.step(TRACKED)
    return isinstance(start, int) and isinstance(step, int) and start >= 0 and step > 0


def _key(state: State) -> Hashable:
    return state.frame, id(state.op), state.axis, state.at, state.inside


def _has(state: State) -> bool:
    return state.inside or state.axis in state.op.axes.names


def _any(parts: Iterable[Found]) -> Found:
    """What is known of an element made of several together: one that keeps the axis will do."""
    bits, unknown = ALIKE, False
    for part in parts:
        bits |= part or ALIKE
        unknown = unknown or part is None
    return None if unknown and bits == ALIKE else bits


def _all(choices: Iterable[Found]) -> Found:
    """What is known of an element that is one of several."""
    bits = ALIKE
    for choice in choices:
        if choice is None:
            return None
        bits |= choice
    return bits


def _tracked(index: Index, arg: Op) -> list[tuple[str, Affine]]:
    """The axes of an argument whose index depends on the position in the result."""
    names = [name for name in arg.axes.names if TRACKED in set(atoms(index[name]))]
    return [(name, index[name]) for name in names]
