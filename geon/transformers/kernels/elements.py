"""Elements of ops as scalar code: views become index arithmetic, what lies in memory a load."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence, Set
from typing import Protocol

from ...op_graph.affine import Affine, Quotient, Remainder, Size, strides, variable
from ...op_graph.axes import Axis
from ...op_graph.bound import is_bound
from ...op_graph.constants import scalar_value
from ...op_graph.index_map import Guard, Index, Piece, Position
from ...op_graph.op_graph import Leaf, Op, among
from .scalar import (
    Apply,
    Clamped,
    Code,
    IndexNumber,
    LengthNumber,
    Load,
    Scalar,
    Select,
    Wrapped,
)


def is_same(op: Op) -> bool:
    """Whether each element of ``op`` is that of its only argument."""
    return op.primitive.picks and len(op.args) == 1


class Nesting(Protocol):
    """How a value lies in memory."""

    @property
    def order(self) -> tuple[str, ...]:
        """Its axes, outermost first."""


class Operands:
    """How a kernel with these ``results`` finds values: in memory, where they are ``computed`` by
    kernels, or not. ``base`` is the value whose memory an op shows.

    ``numbers`` are the values in memory that it reads or writes, in the order they were asked for.
    """

    def __init__(
        self,
        layouts: Mapping[Op, Nesting],
        base: Mapping[Op, Op],
        results: Sequence[Op],
        computed: Set[Op] | Mapping[Op, object],
    ) -> None:
        self.layouts, self.base, self.results, self.computed = layouts, base, results, computed
        self.numbers: dict[Op, int] = {}

    def order(self, op: Op) -> tuple[str, ...]:
        """The nesting of the axes of ``op`` in memory, outermost first."""
        return op.axes.names if is_bound(op) else self.layouts[op].order

    def stored(self, op: Op) -> bool:
        """Whether ``op`` is read from memory that an earlier kernel, or the user, has written."""
        if isinstance(op, Leaf):
            return True
        if is_bound(op):
            return bool(len(op.axes))
        return op in self.computed and not among(op, self.results)

    def number(self, op: Op) -> int:
        """The number of the operand ``op``."""
        return self.numbers.setdefault(op, len(self.numbers))

    def extent(self, axis: Axis) -> Size:
        """The turns of a loop over an axis."""
        return axis.expression

    def at(self, name: str, index: Affine) -> Affine:
        """The index of an axis where a loop over it is at ``index``."""
        return index

    def offset(self, op: Op, index: Index) -> Affine:
        """Where the element of ``op`` at ``index`` lies in its memory."""
        order = self.order(op)
        steps = strides(tuple([op.axes[n].expression for n in order]))
        found = Affine()
        for name, step in zip(order, steps, strict=True):
            found = found + index[name] * step
        return found


class Elements:
    """Makes the scalar code of one kernel.

    ``known`` gives ops code that is valid at the indices where it is asked for: reductions that
    were finished, what was kept of them, the sum of a contraction. ``readable`` are results that
    an earlier pass of the same kernel has stored. ``found`` is what was made since ``forget``, by
    ``id`` (equal hashes would compare ops by ``==``) and indices, in order.
    """

    def __init__(self, operands: Operands) -> None:
        self.operands = operands
        self.code = Code()
        self.known: dict[Op, Callable[[Index], Scalar | None]] = {}
        self.readable: set[Op] = set()
        self.found: dict[tuple[int, tuple[Affine, ...]], tuple[Op, Scalar]] = {}

    def forget(self) -> None:
        """Begin a pass: what an earlier one computed is gone."""
        self.found = {}

    def value(self, op: Op, index: Index) -> Scalar:
        """The element of ``op`` at ``index`` (axis name to affine index)."""
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
                index = self.resolved(op, pieces[0].index)
            elif not row.acts and not is_same(op):
                break
            op = op.args[0]
        return self.computed(op, index)

    def load(self, op: Op, index: Index) -> Load:
        """The element of ``op`` read from memory."""
        offset = self.operands.offset(op, index)
        return self.code(Load, self.operands.number(op), offset, op.dtype)

    def computed(self, op: Op, index: Index) -> Scalar:
        """The element of an op that is not in memory, from its arguments."""
        key = (id(op), tuple([index[n] for n in op.axes.names]))
        if key not in self.found:
            made = self.made(op, index)
            self.found[key] = op, made
        return self.found[key][1]

    def made(self, op: Op, index: Index) -> Scalar:
        """The node of an op that is not in memory."""
        name = op.primitive.name
        if name == "constant":
            return self.code.number(scalar_value(op), op.dtype)
        if name == "length":
            return self.code(LengthNumber, op.attrs[0], op.dtype)
        if name == "iota":
            return self.code(IndexNumber, index[op.axes.names[0]], op.dtype)
        if op.primitive.index_map is not None:
            return self.chosen(op, index, op.primitive.index_map(op, index))
        args = tuple([self.value(arg, index) for arg in op.args])
        return self.code(Apply, op.primitive, args, op.attrs, op.dtype)

    def chosen(
        self, op: Op, index: Index, pieces: tuple[Piece, ...], certain: bool = True
    ) -> Scalar:
        """The element of the first piece whose guards hold.

        Indices that guards limit are held at 0 where they do not hold, so that every piece can be
        computed everywhere. It is ``certain`` that none of other pieces holds before the first.
        """
        there = [piece for piece in pieces if op.args[piece.arg].axes.size != 0]
        first, *others = there or pieces[-1:]  # of nothing, nothing can be read
        arg = op.args[first.arg]
        at = self.resolved(op, first.index)
        if not first.guards or not others:
            return self.value(arg, at if certain else self.within(arg, at, index))
        guards = tuple([self.guard(op, guard) for guard in first.guards])
        limited = {atom for guard in guards for atom in guard.index.terms}
        safe = {}
        for name, each in at.items():
            free = each == index.get(name) and limited.isdisjoint(each.terms)
            safe[name] = each if free else variable(Clamped(each, guards))
        value = self.value(arg, safe)
        return self.code(Select, guards, value, self.chosen(op, index, tuple(others), False))

    def within(self, arg: Op, at: Index, index: Index) -> Index:
        """Indices that may lie outside ``arg`` held at 0 there: those that are not the result's."""
        found = {}
        for axis in arg.axes:
            each = at[axis.name]
            inside = Guard(each, 0, axis.expression)
            same = each == index.get(axis.name)
            found[axis.name] = each if same else variable(Clamped(each, (inside,)))
        return found

    def guard(self, op: Op, guard: Guard) -> Guard:
        """A guard with its positions as scalar code."""
        return Guard(self.resolved(op, {"": guard.index})[""], guard.low, guard.high)

    def resolved(self, op: Op, index: Index) -> dict[str, Affine]:
        """Indices with what stands for positions in the arguments of ``op`` as scalar code."""
        return {name: self.without_positions(op, each) for name, each in index.items()}

    def without_positions(self, op: Op, index: Affine) -> Affine:
        """An index with its positions as scalar code."""
        if all(isinstance(atom, str) for atom in index.terms):
            return index
        terms = [(self.position(op, atom), step) for atom, step in index.terms.items()]
        return Affine(terms, index.constant)

    def position(self, op: Op, atom: Hashable) -> Hashable:
        """The scalar code of a position, where an atom is one or divides one."""
        if isinstance(atom, (Quotient, Remainder)):
            return type(atom)(self.without_positions(op, atom.of), atom.by)
        if not isinstance(atom, Position):
            return atom
        where = self.resolved(op, dict(atom.index))
        return self.code(Wrapped, self.value(op.args[atom.arg], where), atom.length)
