"""Compute values of a pass before its innermost loop, into buffers that the loop reads.

Compilers do not vectorise loads along short axes that memory does not traverse as one, nor random
bits. Loops over the digits of such an axis, or a function for consecutive bits, fill a buffer for a
block of iterations.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import NamedTuple

from ...op_graph.axes.affine import AffineIndex, Size, ravel, variable
from ...op_graph.axes.index_map import InRange
from ...op_graph.axes.lengths import exact_quotient, is_multiple
from ...op_graph.values.dtypes import BOOL, DType
from ..kernels.analysis.loop_depth import Depths
from ..kernels.ir.nest import Keep, Nest, Pass
from ..kernels.ir.scalar_code import IndexNumber, Kept, Load, Scalar, ScalarBuilder, Select
from ..kernels.nests.buffered_loads import Staged, choose_buffered
from ..kernels.nests.random_runs import RandomRun, runs
from ..sizes.limits import AVX2_BYTES, L1_BLOCK_BYTES
from .substitution import Substitution
from .tree import (
    BYTE,
    Body,
    Draw,
    Kind,
    LoopNode,
    PrivateBuffer,
    Space,
    Statement,
    Write,
    constant,
    divided,
    least,
)

# Maximum iterations that are buffered: arrays stay in the L1 cache.
MAX_BUFFERED_TURNS = L1_BLOCK_BYTES // 4
# The same for groups of open length, most of which are shorter.
MAX_OPEN_BUFFERED_TURNS = 4 * MAX_BUFFERED_TURNS
SPREAD_BYTES = AVX2_BYTES  # bytes of a vector that repeats an element
# Maximum words of random bits of a buffer, for the same reason.
MAX_BUFFERED_WORDS = 2 * MAX_BUFFERED_TURNS


class Block(NamedTuple):
    """The iterations of a loop that are computed at once: at most ``most`` groups of ``period``.

    ``outer`` counts the blocks of all ``total`` groups, and is None if there is one. ``at`` is an
    iteration of a block.
    """

    most: int
    period: Size
    total: Size
    outer: str | None
    at: str

    @property
    def first_group(self) -> AffineIndex:
        """Return the first group of a block."""
        return AffineIndex() if self.outer is None else variable(self.outer) * self.most

    @property
    def begin(self) -> AffineIndex:
        """Return the first iteration of a block."""
        return self.first_group * self.period

    def groups(self, of: Size = 1) -> AffineIndex:
        """Return the number of groups of ``of`` iterations, 1 or the period, in a block."""
        each: Size = 1 if of == self.period else self.period
        if self.outer is None:
            return constant(self.total * each)
        whole = constant(self.most * each)
        if is_multiple(self.total, self.most):
            return whole
        return least([whole, constant(self.total * each) - variable(self.outer) * whole.constant])

    def loops(self, filled: Sequence[Statement], body: Body) -> Body:
        """Return the loops over iterations with ``body``, after the ``filled`` buffers."""
        found: Body = (*filled, LoopNode(self.at, self.groups(), body))
        if self.outer is None:
            return found
        blocks = (self.total + (self.most - 1)) // self.most
        return (LoopNode(self.outer, constant(blocks), found),)


class Ahead:
    """The values of a pass that are computed ahead in a native kernel, in buffers from ``first``.

    ``values`` are the values and guards with the code that reads them in the loop; ``filled`` are
    the statements that fill the buffers, in terms of the nest's loops, and ``buffers`` these.
    """

    def __init__(self, nest: Nest, step: Pass, code: ScalarBuilder, first: int) -> None:
        self.code, self.first, self.loop = code, first, step.loops[-1] if step.loops else None
        self.most = nest.most  # of open lengths
        self.staged = choose_buffered(step, nest.most)
        self.runs = runs(nest, step, Depths.of(nest))
        self.buffers: list[PrivateBuffer] = []
        self.values: dict[Hashable, Scalar] = {}

    def __bool__(self) -> bool:
        return bool(self.staged or self.runs)

    def block(self, outer: str, at: str) -> Block:
        """Return the block of iterations of the innermost loop, over the variables given."""
        assert self.loop is not None
        words = max([run.node.dtype.itemsize // 4 for run in self.runs], default=1)
        turns = MAX_BUFFERED_WORDS // words if self.runs else MAX_BUFFERED_TURNS
        turns = min(turns, MAX_BUFFERED_TURNS) if self.staged else turns
        period = next((each.period for each in self.staged if each.digits), 1)
        turns = turns if isinstance(period, int) else MAX_OPEN_BUFFERED_TURNS
        groups = max(turns // self.bound(period), 1)
        count = exact_quotient(self.loop.extent, period)
        assert count is not None, "periods are whole"
        if isinstance(count, int) and count <= groups:
            return Block(count, period, count, None, at)
        return Block(groups, period, count, outer, at)

    def bound(self, period: Size) -> int:
        """Return the maximum of a period."""
        return period if isinstance(period, int) else self.most

    def filled(
        self, block: Block, env: Mapping[str, AffineIndex]
    ) -> tuple[list[Statement], list[Statement]]:
        """Return the statements that fill buffers once for all blocks, and those for each block.

        ``env`` are the indices of the loops around.
        """
        assert self.loop is not None
        fixed: list[Statement] = []
        found: list[Statement] = []
        for each in self.staged:
            number = self.buffer(BYTE if each.dtype is BOOL else each.dtype, block)
            self.values[each.value] = self.read(each, number, block)
            if is_fixed(each):
                groups = block._replace(total=block.most) if block.outer else block
                fixed += self.stage(each, number, groups._replace(outer=None), env)
            else:
                found += self.stage(each, number, block, env)
        for run in self.runs:
            number = self.buffer(run.node.dtype, block)
            self.values[run.node] = self.code(Kept, number, variable(block.at), run.node.dtype)
            found.append(self.draw(run, number, block, env))
        return fixed, found

    def buffer(self, dtype: DType, block: Block) -> int:
        """Return the number of a further buffer for a block."""
        size = block.most * self.bound(block.period)
        if not isinstance(block.period, int):  # rows are repeated in vectors, also the last one
            size += SPREAD_BYTES // dtype.itemsize
        self.buffers.append(PrivateBuffer(dtype, size, Space.STACK))
        return self.first + len(self.buffers) - 1

    def read(self, stage: Staged, number: int, block: Block) -> Scalar:
        """Return the code that reads a buffered value: a byte for guards."""
        dtype = BYTE if stage.dtype is BOOL else stage.dtype
        kept = self.code(Kept, number, variable(block.at), dtype)
        truth = stage.dtype is BOOL and isinstance(stage.value, Load)
        return self.code.cast(kept, BOOL) if truth else kept

    def stage(
        self, stage: Staged, number: int, block: Block, env: Mapping[str, AffineIndex]
    ) -> list[Statement]:
        """Return the loops that evaluate a value for a block."""
        assert self.loop is not None
        if stage.every:
            return self.sparse(stage, number, block, env)
        period, digits = stage.period, list(stage.digits)
        first = f"{block.at}_{number}"
        begin = block.first_group if period == block.period else block.begin
        names = {name: f"{first}_{k}" for k, (name, _) in enumerate(digits, 1)}
        inner = {name: variable(new) for name, new in names.items()}
        change = Substitution(self.code, {**env, **inner, stage.first: begin + variable(first)})
        lengths: list[Size] = [0, *(length for _, length in digits)]
        at = ravel([variable(first), *inner.values()], lengths)
        body: Body = (Write((Keep(number, at, self.evaluated(stage, change)),)),)
        for name, length in reversed(digits):
            body = (LoopNode(names[name], constant(length), body, kind=Kind.DIGIT),)
        return [LoopNode(first, block.groups(period), body)]

    def evaluated(self, stage: Staged, change: Substitution) -> Scalar:
        """Return the code of a buffered value, over the loops that fill its buffer."""
        if isinstance(stage.value, tuple):
            return self.truth(change.guards(stage.guards))
        index = change.index(stage.index)
        if isinstance(stage.value, IndexNumber):
            return self.code(IndexNumber, index, stage.value.dtype)
        dtype = BYTE if stage.dtype is BOOL else stage.dtype  # as they are in memory
        return self.code(Load, stage.value.operand, index, dtype)

    def truth(self, guards: tuple[InRange, ...]) -> Scalar:
        """Return 1 where guards hold, else 0."""
        yes, no = (self.code.number(value, BYTE) for value in (1, 0))
        return self.code(Select, guards, yes, no) if guards else yes

    def sparse(
        self, stage: Staged, number: int, block: Block, env: Mapping[str, AffineIndex]
    ) -> list[Statement]:
        """Return the loops that set truths of which few hold: all to 0, then each so many."""
        assert self.loop is not None
        every, zero, at = stage.every, f"{block.at}_{number}", f"{block.at}_{number}_1"
        shift = Substitution(self.code, env).index(stage.index) + block.begin
        start = divided(negative(shift, every), every)[1]
        place = variable(at) * every + start
        here = Substitution(self.code, {**env, stage.first: block.begin + place})
        count = divided(block.groups() - start + (every - 1), every)[0]
        clear = Write((Keep(number, variable(zero), self.code.number(0, BYTE)),))
        truth = self.truth(here.guards(stage.guards))
        return [
            LoopNode(zero, block.groups(), (clear,)),
            LoopNode(at, count, (Write((Keep(number, place, truth),)),)),
        ]

    def draw(
        self, run: RandomRun, number: int, block: Block, env: Mapping[str, AffineIndex]
    ) -> Draw:
        """Return the statement that draws the bits of a block."""
        change = Substitution(self.code, env)
        assert run.end is not None, "rows in lanes have no buffers"
        node = change.value(run.node)
        position = change.index(run.base) + block.begin
        bits = self.code(
            type(node), node.seed, node.draw, node.call, position, node.size, node.dtype
        )
        return Draw(number, bits, block.groups(), change.index(run.end))


def is_fixed(stage: Staged) -> bool:
    """Return True if a value only changes with the inner digits: it is the same in all groups."""
    inner = {name for name, _ in stage.digits}
    used = (stage.index, *[each.index for each in stage.guards])
    return (
        bool(inner)
        and not stage.every
        and all(isinstance(atom, str) and atom in inner for index in used for atom in index.terms)
    )


def negative(index: AffineIndex, every: int) -> AffineIndex:
    """Return ``-index`` plus a multiple of ``every``, so that it is not negative."""

    def turned(step: Size) -> Size:
        return -step % every if isinstance(step, int) else step * (every - 1)

    terms = [(atom, turned(step)) for atom, step in index.terms.items()]
    return AffineIndex(terms, turned(index.constant))
