"""``first_difference``: the first op at which two computations of one graph differ."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from ..errors import ArgumentError
from ..op_graph.building.rebuild import with_args
from ..op_graph.evaluation.interpreter import interpret
from ..op_graph.op_graph import Leaf, Op, Tensor, post_order
from ..op_graph.rewriting.driver import rewrite
from ..op_graph.rewriting.stabilise import STABLE
from ..op_graph.rows.leaves import stand_in
from ..op_graph.text.fingerprint import canonical
from ..op_graph.transforms.functionalize import Functional
from ..transformers.binding.entry_values import at_entry
from ..transformers.compile import CompileStages
from ..transformers.computation import Computation
from ..transformers.reports.trace import op_title
from .comparison import close, same_bits, worst
from .rounding import explained, spreads

Array = np.ndarray[Any, Any]
INTERPRETER = "the naive interpreter"


@dataclass(frozen=True, eq=False)
class Difference:
    """An op whose values differ, though those of its arguments agree.

    ``left`` and ``right`` are the values at the element with the largest difference, ``at`` its
    index by axis name. ``count`` of ``size`` elements differ. ``names`` are those of the two sides.
    """

    op: Op
    names: tuple[str, str]
    left: Any
    right: Any
    at: dict[str, int]
    count: int
    size: int

    @property
    def place(self) -> str:
        """The user's line that made the op, as file:line."""
        return self.op.file_info

    def __str__(self) -> str:
        first, second = self.names
        where = ", ".join(f"{name} = {k}" for name, k in self.at.items()) or "its only element"
        width = max(map(len, self.names))
        return (
            f"{first} and {second} part at {op_title(self.op)}\n"
            f"  at {where} ({self.count} of {self.size} elements differ)\n"
            f"  {first:{width}}  {self.left!r}\n"
            f"  {second:{width}}  {self.right!r}"
        )


def first_difference(
    f: Computation, g: Any = None, *inputs: Any, exact: bool = False
) -> Difference | None:
    """The first op, arguments before users, for which ``f`` and ``g`` compute different values.

    Both are computations of one graph, made by two transformers; ``inputs`` are those of a call. If
    ``g`` is no computation, it is the first input, and ``f`` is compared with the reference
    interpreter. Values differ if rounding does not explain it, or with ``exact`` in any bit.
    Variables have their present values, and none is changed. None if nothing differs. Raises
    ``ArgumentError`` for different graphs.
    """
    other = g if isinstance(g, Computation) else None
    if other is None and g is not None:
        inputs = (g, *inputs)
    left = _Side(f, inputs)
    right = _Side(other, inputs) if other is not None else _Naive(f, left.leaves, left.lengths)
    if other is not None and _form(f) != _form(other):
        raise ArgumentError(f"{f!r} and {other!r} are not computations of the same graph")
    search = _DifferenceSearch(left, right, exact)
    return search.among_leaves() or search.all_at_once() or search.one_by_one()


def _tensors_below(op: Op) -> list[Op]:
    """Return the values that an op depends on directly; loops are replaced by their arguments."""
    found: list[Op] = []
    for arg in op.args:
        found += [arg] if isinstance(arg, Tensor) else _tensors_below(arg)
    return found


def _form(f: Computation) -> str:
    return canonical(f.pure.roots)[0]


class _Naive:
    """The reference interpreter on the stable form of a graph, as programs use."""

    name = INTERPRETER

    def __init__(self, f: Computation, leaves: dict[Leaf, Array], lengths: dict[str, int]) -> None:
        self.ops = post_order(f.pure.roots)
        self.leaves, self.lengths = leaves, lengths

    def compute(self, numbers: Sequence[int]) -> list[Array]:
        """Return the values of the ops with these numbers."""
        roots = self.stable(numbers)
        values = interpret(roots, self.leaves, self.lengths)
        return [values[root] for root in roots]

    def spreads(self, numbers: Sequence[int]) -> list[Array]:
        """Return how far rounding moves the values of the ops with these numbers."""
        return spreads(self.stable(numbers), self.leaves, self.lengths)

    def stable(self, numbers: Sequence[int]) -> list[Op]:
        """Return the ops with these numbers in their stable form."""
        return rewrite([self.ops[n] for n in numbers], STABLE, {})


class _Side:
    """A computation of which any selection of ops can be computed, by its own transformer.

    Variables are replaced by placeholders fed with their values, so that none is changed.
    """

    def __init__(self, f: Computation, inputs: Sequence[Any]) -> None:
        self.f, self.name = f, f.transformer.target.name
        self.leaves, self.lengths = at_entry(f.transformer, f.stages(), f.arranged(inputs, {}))
        self.ops = post_order(f.pure.roots)
        self.images: list[Op] = []
        self.stand_ins: dict[Leaf, Leaf] = {}
        self._stand_in()

    def _stand_in(self) -> None:
        known: dict[Op, Op] = {}
        for op in self.ops:
            if isinstance(op, Leaf):
                known[op] = self.stand_ins[op] = stand_in(op)
            elif op.primitive.name == "print":
                known[op] = known[op.args[0]]
            else:
                known[op] = with_args(op, tuple(known[arg] for arg in op.args))
        self.images = [known[op] for op in self.ops]

    def compute(self, numbers: Sequence[int]) -> list[Array]:
        """Return the values of the ops with these numbers, from one compiled program."""
        wanted = tuple(op for n in numbers if isinstance(op := self.images[n], Tensor))
        pure, owner = Functional(wanted, {}, ()), self.f.transformer
        stages = CompileStages(self.f.request, pure, list(self.stand_ins.values()), owner)
        call = owner.make_call(stages)
        return list(call(*(self.leaves[leaf] for leaf in self.stand_ins)))


class _DifferenceSearch:
    """Finds where two sides differ, comparing few programs of many ops before many of few."""

    def __init__(self, left: _Side, right: _Side | _Naive, exact: bool) -> None:
        self.left, self.right = left, right
        self.ops = left.ops
        self.number = {op: n for n, op in enumerate(self.ops)}
        self.computed = [
            n
            for n, op in enumerate(self.ops)
            if isinstance(op, Tensor)  # of a loop, its results are compared
            and not isinstance(op, Leaf)
            and op.primitive.name not in ("constant", "length")
        ]
        self.exact = exact
        self.alone: dict[int, Difference | None] = {}

    @cached_property
    def spreads(self) -> dict[int, Array]:
        """Return how far rounding moves the values of all computed ops, by number."""
        naive = self.right
        if not isinstance(naive, _Naive):
            naive = _Naive(self.left.f, self.left.leaves, self.left.lengths)
        return dict(zip(self.computed, naive.spreads(self.computed), strict=True))

    def same(self, n: int, left: Array, right: Array) -> Array:
        """Return for each element of an op whether rounding explains its difference."""
        if self.exact:
            return same_bits(left, right)
        fine = close(left, right)
        if fine.all() or n not in self.computed:
            return fine
        return fine | explained(left, right, self.spreads[n])

    def difference(self, n: int, left: Array, right: Array) -> Difference | None:
        """Return the difference of the op with this number, or None."""
        fine = self.same(n, left, right)
        if fine.all():
            return None
        at = worst(left, right, fine)
        op = self.ops[n]
        return Difference(
            op,
            (self.left.name, self.right.name),
            left[at],
            right[at],
            dict(zip(op.axes.names, at, strict=True)),
            int((~fine).sum()),
            fine.size,
        )

    def among(self, numbers: Sequence[int]) -> Difference | None:
        """Return the first difference if one program computes the values of all these ops."""
        values = zip(self.left.compute(numbers), self.right.compute(numbers), strict=True)
        for n, (left, right) in zip(numbers, values, strict=True):
            found = self.difference(n, left, right)
            if found is not None:
                return found
        return None

    def among_leaves(self) -> Difference | None:
        """Return the first variable whose values differ before anything is computed."""
        others = [op for op in self.right.ops if isinstance(op, Leaf)]
        for leaf, other in zip(self.left.stand_ins, others, strict=True):
            values = self.left.leaves[leaf], self.right.leaves[other]
            found = self.difference(self.number[leaf], *values)
            if found is not None:
                return found
        return None

    def all_at_once(self) -> Difference | None:
        """Return the first difference if every op is a result."""
        return self.among(self.computed) if self.computed else None

    def one_by_one(self) -> Difference | None:
        """Return the op that differs though its arguments do not, computed alone.

        A defect of memory sharing shows only if intermediate values are not results.
        """
        roots = [self.number[op] for op in self.left.f.pure.roots if self.number[op] in
                 set(self.computed)]  # fmt: skip
        found = self.among(roots) if roots else None
        if found is None:
            return None
        last = next((d for n in roots if (d := self.by_itself(n)) is not None), None)
        while last is not None:
            found = last
            below = [self.number[arg] for arg in _tensors_below(found.op)]
            last = next((d for n in below if (d := self.by_itself(n)) is not None), None)
        return found

    def by_itself(self, n: int) -> Difference | None:
        """Return the difference of one op that is the only result."""
        if n not in self.alone:
            self.alone[n] = self.among([n]) if n in self.computed else None
        return self.alone[n]
