"""Lower a nest to a tree of naive loops: one loop for each row loop and for each loop of a pass."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...op_graph.axes.affine import AffineIndex, variable
from ...op_graph.rows.elementwise import multiply
from ..kernels.ir.nest import Keep, Loop, Nest, Pass, Reduction, Store
from ..kernels.ir.scalar_code import Kept, Reduced, Scalar, ScalarBuilder, Select
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

FIRST_LANE = "first_lane"  # start of a block of rows in lanes, which naive loops do not have


def from_nest(nest: Nest, *, fetches: bool = False) -> Tree:
    """Return the naive loops of a nest without its pieces, short forms and fill.

    With ``fetches``, passes that compute elementary functions prefetch what is needed after them.
    """
    return _NestLowering(nest, fetches).tree()


class _NestLowering:
    def __init__(self, nest: Nest, fetches: bool) -> None:
        self.nest, self.code, self.fetches = nest, ScalarBuilder(), fetches
        self.buffers = [
            PrivateBuffer(each.dtype, each.size, Space.STACK, True) for each in nest.arrays
        ]
        self.taken: set[str] = set()
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
        return Tree(found, nest.operands, tuple(self.buffers), self.code)

    def named(self, loops: Sequence[Loop]) -> dict[str, AffineIndex]:
        """Return a unique variable for each loop."""
        found = {}
        for loop in loops:
            name = loop.name
            while name in self.taken:
                name += "_"
            self.taken.add(name)
            found[loop.name] = variable(name)
        return found

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
        firsts: list[Keep] = []
        body: list[Statement] = []
        for reduction in step.reductions:
            numbers = self.states(reduction, firsts)
            body.append(self.folded(reduction, numbers, inner))
        change = _Lowered(self.code, inner, self.reduced)
        puts: list[Store | Keep] = [*step.stores, *step.keeps]
        if puts:
            body.append(Write(tuple([change.store(put) for put in puts])))
        if self.fetches:
            body += [change.statement(each) for each in prefetches(self.nest, step)]
        loops = self.nested(step.loops, inner, tuple(body))
        return [*([Write(tuple(firsts))] if firsts else []), *loops]

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

    def folded(
        self, reduction: Reduction, into: tuple[int, ...], env: dict[str, AffineIndex]
    ) -> Fold:
        """Return the step of a reduction; a product of two factors is one element."""
        change = _Lowered(self.code, env, self.reduced)
        elements: list[Scalar] = [change.value(each) for each in reduction.elements]
        if len(elements) == 2:
            elements = [self.code.apply(multiply, *elements)]
        position = None if reduction.position is None else change.value(reduction.position)
        return Fold(reduction.reducer, into, AffineIndex(), tuple(elements), position)

    def written(self, stores: list[Store], env: dict[str, AffineIndex]) -> list[Statement]:
        """Return the stores of values of a row as one statement."""
        change = _Lowered(self.code, env, self.reduced)
        return [Write(tuple([change.store(store) for store in stores]))] if stores else []


class _Lowered(Substitution):
    """Renames loops; the result of a reduction becomes a load from its buffer.

    A selection from a selection with the same alternative becomes one.
    """

    def __init__(
        self,
        code: ScalarBuilder,
        env: dict[str, AffineIndex],
        reduced: dict[tuple[int, int], int],
    ) -> None:
        super().__init__(code, {name: to for name, to in env.items() if name not in to.terms})
        self.reduced = reduced

    def node(self, node: Any) -> Any:
        """Return a node whose children are replaced."""
        if isinstance(node, Reduced):
            number = self.reduced[node.number, node.part]
            return self.code(Kept, number, AffineIndex(), node.dtype)
        made = super().node(node)
        inner = made.value if isinstance(made, Select) else None
        if isinstance(inner, Select) and inner.other is made.other:
            return self.code(Select, (*made.guards, *inner.guards), inner.value, inner.other)
        return made
