"""Elements of ops as scalar code: views become index arithmetic, values in memory become loads."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Protocol

import numpy as np

from ....op_graph.axes.affine import (
    AffineIndex,
    Quotient,
    Remainder,
    Size,
    ravel,
    strides,
    variable,
)
from ....op_graph.axes.axes import Axes, Axis
from ....op_graph.axes.index_map import GuardedElement, Index, InRange, Position
from ....op_graph.axes.lengths import exact_quotient
from ....op_graph.building.constants import array_constant, scalar_value
from ....op_graph.core.traversal import is_bound
from ....op_graph.op_graph import Leaf, Op, among
from ....op_graph.values.dtypes import UINT64
from ..analysis.integer_ranges import Bounded
from ..ir.scalar_code import (
    Apply,
    Clamped,
    IndexNumber,
    LengthNumber,
    Load,
    RandomBits,
    Scalar,
    ScalarBuilder,
    Select,
    Wrapped,
)
from .mixed_radix import without_divisions

SEED_AND_DRAW = Axes([Axis("seed and draw", 2)])


def is_same(op: Op) -> bool:
    """Return True if each element of ``op`` equals that of its only argument."""
    return op.primitive.is_selection and len(op.args) == 1


def inspected_values(op: Op) -> tuple[Op, ...]:
    """Return the values that an op with a side effect inspects.

    These are its argument, or reductions of the argument if there are any.
    """
    return op.args[1:] or op.args


def element_arguments(op: Op) -> tuple[Op, ...]:
    """Return the arguments that the elements of an op depend on; not those it only inspects."""
    return op.args[:1] if op.primitive.has_side_effect else op.args


def hoist_clamp(index: AffineIndex) -> AffineIndex:
    """Return an index with its clamp moved outwards: the sum as a whole is 0 where the guards fail.

    A slice adds a start to the clamped index. Where the axis is too short for it, even clamped
    index 0 would lie outside.
    """
    if len(index.terms) != 1:
        return index
    ((atom, step),) = index.terms.items()
    if not isinstance(atom, Clamped):
        return index
    return variable(Clamped(atom.of * step + index.constant, atom.guards))


def whole_steps(index: AffineIndex) -> AffineIndex | None:
    """Simplify a clamped ``floor(n / by) * by`` to ``n - r`` where a guard fixes ``n mod by = r``.

    Return None for other indices. The result is valid only where the guards hold.
    """
    ((atom, step),) = index.terms.items() if len(index.terms) == 1 else ((None, 0),)
    if not isinstance(atom, Clamped) or len(atom.of.terms) != 1:
        return None
    ((quotient, times),) = atom.of.terms.items()
    if not isinstance(quotient, Quotient):
        return None
    remainder = variable(Remainder(quotient.of, quotient.by))
    steps = exact_quotient(times * step, quotient.by)
    for guard in atom.guards:
        one = guard.high - guard.low == 1
        if one and steps is not None and guard.index - guard.index.constant == remainder:
            rest = guard.low - guard.index.constant
            return (quotient.of - rest) * steps + atom.of.constant * step + index.constant
    return None


class Nesting(Protocol):
    """Memory layout of a value."""

    @property
    def order(self) -> tuple[str, ...]:
        """Return its axes, outermost first."""


class OperandInliner:
    """Access of a kernel with these ``results`` to values.

    ``layouts`` gives the memory layout of values. ``base`` maps an op to the value whose memory it
    views. ``computed`` is True for ops that kernels compute into memory. ``numbers`` are the
    numbers of the values in memory that the kernel reads or writes, in the order of first use.
    ``known`` are sizes that are not negative, about the blocks of axes that it covers.
    """

    known: tuple[Size, ...] = ()

    def __init__(
        self,
        layouts: Mapping[Op, Nesting],
        base: Mapping[Op, Op],
        results: Sequence[Op],
        computed: Callable[[Op], bool],
    ) -> None:
        self.layouts, self.base, self.results, self.computed = layouts, base, results, computed
        self.numbers: dict[Op, int] = {}

    def order(self, op: Op) -> tuple[str, ...]:
        """Return the axes of ``op`` in memory, outermost first."""
        return op.axes.names if is_bound(op) else self.layouts[op].order

    def stored(self, op: Op) -> bool:
        """Return True if ``op`` is read from memory that an earlier kernel or the user wrote."""
        if isinstance(op, Leaf):
            return True
        if is_bound(op):
            return bool(len(op.axes))
        return self.computed(op) and not among(op, self.results)

    def number(self, op: Op) -> int:
        """Return the operand number of ``op``; assign the next one at first use."""
        return self.numbers.setdefault(op, len(self.numbers))

    def extent(self, axis: Axis) -> Size:
        """Return the extent of a loop over an axis."""
        return axis.expression

    def at(self, name: str, index: AffineIndex) -> AffineIndex:
        """Return the index along an axis for the loop index ``index``."""
        return index

    def offset(self, op: Op, index: Index) -> AffineIndex:
        """Return the memory offset of the element of ``op`` at ``index``, in elements."""
        order = self.order(op)
        steps = strides(tuple([op.axes[n].expression for n in order]))
        found = AffineIndex()
        for name, step in zip(order, steps, strict=True):
            found = found + index[name] * step
        return found


class Elements:
    """Builds the scalar code of one kernel.

    ``decided`` returns True or False for a guard that holds at all or at no requested indices, else
    None. ``ranges`` are exclusive upper bounds of index atoms, where known. ``known`` gives code
    for ops, valid at the requested indices: finished reductions, kept values, the sum of a
    contraction. ``readable`` are results that an earlier pass of the kernel has stored. ``found``
    caches code since ``forget`` by ``id`` and indices, in order of creation (a key with the op
    itself would compare ops by ``==``).
    """

    def __init__(
        self,
        operands: OperandInliner,
        decided: Callable[[InRange], bool | None] = lambda guard: None,
        ranges: Mapping[Hashable, Size] | None = None,
    ) -> None:
        self.operands, self.decided = operands, decided
        self.ranges = {} if ranges is None else ranges
        self.bounded = Bounded(self.ranges)
        self.code = ScalarBuilder()
        self.known: dict[Op, Callable[[Index], Scalar | None]] = {}
        self.readable: set[Op] = set()
        self.found: dict[tuple[int, tuple[AffineIndex, ...]], tuple[Op, Scalar]] = {}

    def forget(self) -> None:
        """Clear the cache at the start of a pass."""
        self.found = {}
        self.bounded.forget()

    def value(self, op: Op, index: Index) -> Scalar:
        """Return the element of ``op`` at ``index`` (axis name to affine index)."""
        found = self.reached(op, index)
        return self.computed(*found) if isinstance(found, tuple) else found

    def reached(self, op: Op, index: Index) -> Scalar | tuple[Op, Index]:
        """Look through views: return a known or loaded element, or the op to compute and index."""
        while True:
            if op in self.known:
                known = self.known[op](index)
                if known is not None:
                    return known
            if self.operands.stored(op) or op in self.readable:
                return self.load(op, index)
            row = op.primitive
            if row.index_map is not None:
                pieces = row.index_map(op, index)
                if len(pieces) > 1:
                    break
                index = self.unheld(op.args[0], self.resolved(op, pieces[0].index))
            elif not row.has_side_effect and not is_same(op):
                break
            op = op.args[0]
        return op, index

    def load(self, op: Op, index: Index) -> Load:
        """Return a load of the element of ``op``."""
        offset = self.operands.offset(op, index)
        return self.code(Load, self.operands.number(op), offset, op.dtype)

    def computed(self, op: Op, index: Index) -> Scalar:
        """Return the element of an op that is not in memory, without recursion along chains."""
        stack = [(op, index)]
        while stack:
            top, at = stack[-1]
            waiting = self.waiting(top, at) if self.key(top, at) not in self.found else None
            if waiting is not None:
                stack.append(waiting)
                continue
            if self.key(top, at) not in self.found:
                self.found[self.key(top, at)] = top, self.made(top, at)
            stack.pop()
        return self.found[self.key(op, index)][1]

    def key(self, op: Op, index: Index) -> tuple[int, tuple[AffineIndex, ...]]:
        """Return the cache key of an element."""
        return id(op), tuple([index[n] for n in op.axes.names])

    def waiting(self, op: Op, index: Index) -> tuple[Op, Index] | None:
        """Return the first argument of an elementwise op that must be computed first, or None."""
        if op.primitive.kind != "elementwise":
            return None
        for arg in op.args:
            found = self.reached(arg, index)
            if isinstance(found, tuple) and self.key(*found) not in self.found:
                return found
        return None

    def made(self, op: Op, index: Index) -> Scalar:
        """Return the node of an op that is not in memory."""
        name = op.primitive.name
        if name == "constant":
            return self.code.number(scalar_value(op), op.dtype)
        if name == "length":
            return self.code(LengthNumber, op.attrs.length, op.dtype)
        if name == "iota":
            return self.code(IndexNumber, index[op.axes.names[0]], op.dtype)
        if name == "random_bits":
            return self.drawn(op, index)
        if op.primitive.index_map is not None:
            return self.chosen(op, index, op.primitive.index_map(op, index))
        args = tuple([self.value(arg, index) for arg in op.args])
        plain = self.bounded.plainer(op.primitive, args, op.dtype)
        return plain or self.code(Apply, op.primitive, args, op.attrs, op.dtype)

    def drawn(self, op: Op, index: Index) -> RandomBits:
        """Return random bits; seed and draw number are operands, so equal draws share text."""
        told = array_constant(np.array((op.attrs.seed, op.attrs.draw), UINT64), SEED_AND_DRAW)
        seed, draw = (
            self.code(Load, self.operands.number(told), AffineIndex((), k), UINT64)
            for k in range(2)
        )
        call = self.value(op.args[0], {})
        axes = [(index[axis.name], axis.expression) for axis in op.axes]
        position = ravel([at for at, _ in axes], [length for _, length in axes])
        return self.code(RandomBits, seed, draw, call, position, op.axes.size, op.dtype)

    def chosen(
        self, op: Op, index: Index, pieces: tuple[GuardedElement, ...], certain: bool = True
    ) -> Scalar:
        """Return the element of the first piece whose guards hold.

        Guarded indices are clamped to 0 where their guards fail, so that each piece can be
        evaluated everywhere. ``certain`` is True unless guards of earlier pieces may have excluded
        the index.
        """
        there = [piece for piece in pieces if op.args[piece.arg].axes.size != 0]
        first, *others = there or pieces[-1:]  # arguments without elements are not loaded
        arg = op.args[first.arg]
        at = self.resolved(op, first.index)
        if not first.guards or not others:
            return self.value(arg, at if certain else self.within(arg, at, index))
        guards, never = self.undecided(op, first.guards)
        if never:
            return self.chosen(op, index, tuple(others), certain)
        if not guards:
            return self.value(arg, at)
        limited = {atom for guard in guards for atom in guard.index.terms}
        safe = {}
        for name, each in at.items():
            free = each == index.get(name) and limited.isdisjoint(each.terms)
            free = free or self.lies_inside(arg, name, each)
            safe[name] = each if free else variable(Clamped(each, guards))
        value = self.value(arg, safe)
        other = self.chosen(op, index, tuple(others), False)
        return value if other is value else self.code(Select, guards, value, other)

    def within(self, arg: Op, at: Index, index: Index) -> Index:
        """Return the indices of ``arg``, those that may lie outside clamped to 0."""
        found = {}
        for axis in arg.axes:
            each = at[axis.name]
            inside = InRange(each, 0, axis.expression)
            same = each == index.get(axis.name) or self.decided(inside)
            found[axis.name] = each if same else variable(Clamped(each, (inside,)))
        return found

    def lies_inside(self, arg: Op, name: str, index: AffineIndex) -> bool:
        """Return True if an index always lies inside an axis of ``arg``.

        Such an index is not clamped, so that its loads stay contiguous.
        """
        return self.decided(InRange(index, 0, arg.axes[name].expression)) is True

    def unheld(self, arg: Op, index: Index) -> Index:
        """Simplify clamped indices whose simplified form always lies inside ``arg``.

        For example, a slice of values that were placed at each n-th index is read without a
        division.
        """
        found = dict(index)
        for name, each in index.items():
            plain = whole_steps(each)
            if plain is not None and self.lies_inside(arg, name, plain):
                found[name] = plain
        return found

    def undecided(self, op: Op, guards: tuple[InRange, ...]) -> tuple[tuple[InRange, ...], bool]:
        """Return the undecided guards, and True if some guard never holds."""
        found = []
        for guard in guards:
            made = self.guard(op, guard)
            holds = self.decided(made)
            if holds is False:
                return (), True
            if holds is None:
                found.append(made)
        return tuple(found), False

    def guard(self, op: Op, guard: InRange) -> InRange:
        """Return a guard with its positions resolved to scalar code."""
        return InRange(self.resolved(op, {"": guard.index})[""], guard.low, guard.high)

    def resolved(self, op: Op, index: Index) -> dict[str, AffineIndex]:
        """Return indices, simplified, with positions in arguments of ``op`` as scalar code."""
        found = {name: self.without_positions(op, each) for name, each in index.items()}
        return {
            name: hoist_clamp(without_divisions(each, self.ranges)) for name, each in found.items()
        }

    def without_positions(self, op: Op, index: AffineIndex) -> AffineIndex:
        """Return an index with its positions resolved to scalar code."""
        if all(isinstance(atom, str) for atom in index.terms):
            return index
        terms = [(self.position(op, atom), step) for atom, step in index.terms.items()]
        return AffineIndex(terms, index.constant)

    def position(self, op: Op, atom: Hashable) -> Hashable:
        """Return an atom with the positions in it resolved to scalar code."""
        if isinstance(atom, (Quotient, Remainder)):
            return type(atom)(self.without_positions(op, atom.of), atom.by)
        if not isinstance(atom, Position):
            return atom
        where = self.resolved(op, dict(atom.index))
        return self.code(Wrapped, self.value(op.args[atom.arg], where), atom.length)
