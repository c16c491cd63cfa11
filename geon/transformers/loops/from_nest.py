"""Lower a nest to a tree of naive loops: one loop for each row loop and for each loop of a pass."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Any

from ...op_graph.axes.affine import AffineIndex, variable
from ...op_graph.axes.index_map import InRange
from ...op_graph.rows.elementwise import multiply
from ..kernels.ir.nest import Keep, Loop, Nest, Pass, Reduction, Store
from ..kernels.ir.scalar_code import Kept, Reduced, Scalar, ScalarBuilder, Select
from .gather_prefetch import asked_ahead, lookups
from .prefetch import prefetches
from .substitution import Substitution
from .tree import (
    Body,
    Fold,
    Kind,
    LoopNode,
    PrivateBuffer,
    Space,
    Statement,
    Tree,
    Write,
    constant,
)
from .values_ahead import Ahead, Block

FIRST_LANE = "first_lane"  # start of a block of rows in lanes, which naive loops do not have


def from_nest(nest: Nest, *, fetches: bool = False, ahead: bool = False) -> Tree:
    """Return the naive loops of a nest without its pieces, short forms and fill.

    With ``fetches``, passes that compute elementary functions prefetch what is needed after them.
    With ``ahead``, values that compilers do not vectorise are computed before innermost loops, and
    gathered rows are prefetched.
    """
    return _NestLowering(nest, fetches, ahead).tree()


class _NestLowering:
    def __init__(self, nest: Nest, fetches: bool, ahead: bool) -> None:
        self.nest, self.code, self.fetches, self.ahead = nest, ScalarBuilder(), fetches, ahead
        self.buffers = [
            PrivateBuffer(each.dtype, each.size, Space.STACK, True) for each in nest.arrays
        ]
        self.taken: set[str] = set()
        self.fixed: list[Statement] = []  # that fill buffers for all rows
        self.reduced: dict[tuple[int, int], int] = {}  # buffers by reduction and part

    def tree(self) -> Tree:
        """Return the tree."""
        nest = self.nest
        columns = [] if nest.across is None else [nest.across]
        env = {FIRST_LANE: AffineIndex()} | self.named([*nest.rows, *columns])
        body: list[Statement] = []
        stores: list[Store] = []
        for step in (*nest.steps, *nest.ending):
            if isinstance(step, Store):
                stores.append(step)
                continue
            body += self.written(stores, env)
            stores = []
            body += self.run(step, env)
        body += self.written(stores, env)
        found = self.nested(columns, env, tuple(body), Kind.COLUMNS)
        found = self.nested(nest.rows, env, found)
        return Tree((*self.fixed, *found), nest.operands, tuple(self.buffers), self.code)

    def named(self, loops: Sequence[Loop]) -> dict[str, AffineIndex]:
        """Return a unique variable for each loop."""
        return {loop.name: variable(self.unique(loop.name)) for loop in loops}

    def unique(self, name: str) -> str:
        """Return a variable that no other loop has."""
        while name in self.taken:
            name += "_"
        self.taken.add(name)
        return name

    def nested(
        self, loops: Sequence[Loop], env: dict[str, AffineIndex], body: Body, kind: Kind = Kind.MAIN
    ) -> Body:
        """Return ``body`` inside of loops, outermost first."""
        for loop in reversed(loops):
            (name,) = env[loop.name].terms
            assert isinstance(name, str)
            body = (LoopNode(name, constant(loop.extent), body, kind=kind),)
        return body

    def run(self, step: Pass, env: dict[str, AffineIndex]) -> list[Statement]:
        """Return the statements of a pass: initial states, and its loops."""
        inner = {**env, **self.named(step.loops)}
        ahead = Ahead(self.nest, step, self.code, len(self.buffers)) if self.ahead else None
        block: Block | None = None
        filled: list[Statement] = []
        if ahead:
            name = step.loops[-1].name
            block = ahead.block(self.unique(f"{name}_block"), self.unique(f"{name}_at"))
            fixed, filled = ahead.filled(block, inner)
            self.fixed += fixed
            self.buffers += ahead.buffers
            inner[step.loops[-1].name] = block.begin + variable(block.at)
        firsts: list[Keep] = []
        body: list[Statement] = []
        change = self.lowered(inner, ahead)
        for reduction in step.reductions:
            numbers = self.states(reduction, firsts)
            body.append(self.folded(reduction, numbers, change))
        puts: list[Store | Keep] = [*step.stores, *step.keeps]
        if puts:
            body.append(Write(tuple([change.store(put) for put in puts])))
        if self.fetches:
            body += [change.statement(each) for each in prefetches(self.nest, step)]
        loops = (
            self.nested(step.loops[-1:], inner, tuple(body))
            if block is None
            else block.loops(filled, tuple(body))
        )
        asked = [change.statement(each) for each in self.asked(step)] if self.ahead else []
        around = step.loops[:-1]
        here = asked if around else []
        loops = self.nested(around, inner, (*here, *loops))
        return [
            *([Write(tuple(firsts))] if firsts else []),
            *([] if around else asked),
            *loops,
        ]

    def asked(self, step: Pass) -> list[Statement]:
        """Return the prefetches of rows that a pass gathers."""
        around = [*self.nest.rows, *step.loops[:-1]]
        return [
            asked_ahead(each, around[-1], step.loops[-1], self.code)
            for each in lookups(self.nest, step)
        ]

    def lowered(self, env: dict[str, AffineIndex], ahead: Ahead | None = None) -> _Lowered:
        """Return the change of a nest's code to that of a tree."""
        values = {} if ahead is None else ahead.values
        return _Lowered(self.code, env, self.reduced, values)

    def states(self, reduction: Reduction, firsts: list[Keep]) -> tuple[int, ...]:
        """Add the buffers of a reduction's state; append the stores of its initial value."""
        numbers = []
        values = reduction.reducer.identity(reduction.states)
        for part, (value, dtype) in enumerate(zip(values, reduction.states, strict=True)):
            number = len(self.buffers)
            self.buffers.append(PrivateBuffer(dtype, 1))
            firsts.append(Keep(number, AffineIndex(), self.code.number(value, dtype)))
            self.reduced[reduction.number, part] = number
            numbers.append(number)
        return tuple(numbers)

    def folded(self, reduction: Reduction, into: tuple[int, ...], change: _Lowered) -> Fold:
        """Return the step of a reduction; a product of two factors is one element."""
        elements: list[Scalar] = [change.value(each) for each in reduction.elements]
        if len(elements) == 2:
            elements = [self.code.apply(multiply, *elements)]
        position = None if reduction.position is None else change.value(reduction.position)
        return Fold(reduction.reducer, into, AffineIndex(), tuple(elements), position)

    def written(self, stores: list[Store], env: dict[str, AffineIndex]) -> list[Statement]:
        """Return the stores of values of a row as one statement."""
        change = self.lowered(env)
        return [Write(tuple([change.store(store) for store in stores]))] if stores else []


class _Lowered(Substitution):
    """Renames loops; the result of a reduction becomes a load from its buffer.

    So do values that are computed ``ahead``.
    A selection from a selection with the same alternative becomes one.
    """

    def __init__(
        self,
        code: ScalarBuilder,
        env: dict[str, AffineIndex],
        reduced: dict[tuple[int, int], int],
        ahead: Mapping[Hashable, Scalar],
    ) -> None:
        super().__init__(code, {name: to for name, to in env.items() if name not in to.terms})
        self.reduced, self.ahead = reduced, ahead

    def guards(self, guards: tuple[InRange, ...]) -> tuple[InRange, ...]:
        """Return guards with variables replaced; those computed ahead are bytes that are 1."""
        truth = self.ahead.get(guards)
        return super().guards(guards) if truth is None else (InRange(variable(truth), 1, 2),)

    def node(self, node: Any) -> Any:
        """Return a node whose children are replaced."""
        ahead = self.ahead.get(node)
        if ahead is not None:
            return ahead
        if isinstance(node, Reduced):
            number = self.reduced[node.number, node.part]
            return self.code(Kept, number, AffineIndex(), node.dtype)
        made = super().node(node)
        inner = made.value if isinstance(made, Select) else None
        if isinstance(inner, Select) and inner.other is made.other:
            return self.code(Select, (*made.guards, *inner.guards), inner.value, inner.other)
        return made
