"""Emit the statements of a loop tree that the threads of a team run together.

Each thread runs all statements of a task, its own iteration of a loop over threads, and its own
part of a buffer in registers. One thread stores what is not stored in such a loop.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby

from ....op_graph.axes.affine import Size
from ....op_graph.axes.lengths import product
from ....op_graph.rows.elementwise import add
from ....op_graph.values.dtypes import kind
from ...kernels.ir.loop_variables import variables
from ...kernels.ir.nest import Keep, Store
from ...kernels.ir.scalar_code import Kept, Running
from ...loops.access import READ, accesses
from ...loops.tree import (
    Body,
    Combine,
    Fold,
    LoopNode,
    Role,
    Space,
    Statement,
    Tree,
    Write,
    loops_of,
    walk,
)
from ...printing.nests.statement_blocks import StatementBlock
from ...printing.trees.buffer_names import BufferNames, buffer_name
from ..launches.naming import CudaKernelNames
from .cooperative_threads import Lines, Team, Value
from .thread_statements import ThreadStatements


class TeamBuffers(BufferNames):
    """The private buffers of a team; each thread has its part of those in registers."""

    def __init__(self, tree: Tree, team: Team) -> None:
        super().__init__(tree, together=Role.THREAD)
        ranks = {loop.variable for loop in loops_of(tree.body) if loop.role is Role.THREAD}
        uses = [each for each in accesses(tree.body) if each.memory[0] == "buffer"]
        self.divided = {each.memory[1] for each in uses if variables(each.offset) & ranks}
        self.team = team

    def size(self, number: int) -> Size:
        """Return the number of elements of an array, in registers those of one thread."""
        size = super().size(number)
        own = number in self.divided and self.tree.buffers[number].space is Space.REGISTER
        return size // self.team.size if own else size


class TeamStatements(ThreadStatements):
    """Emits the statements of a task that a team of threads runs."""

    def __init__(self, tree: Tree, names: CudaKernelNames, team: Team) -> None:
        super().__init__(tree, names, TeamBuffers(tree, team))
        self.team, self.place_of, self.operands = team, names.place_of, names.operands
        self.ranks = {loop.variable for loop in loops_of(tree.body) if loop.role is Role.THREAD}
        self.scalars.spelled = dict(rank_texts(tree.body))
        self.scalars.ranks = self.ranks
        self.is_divided, self.task_depth, self.passes = False, 0, set[str]()
        buffers = tree.buffers
        self.shared = {n for n, x in enumerate(buffers) if x.space is Space.SCRATCH}
        self.read, self.written = set[object](), set[object]()  # since the last barrier

    def shared_task(self, body: Body, block: StatementBlock) -> None:
        """Emit the statements of a task, with barriers before what others have read or stored."""
        self.task_depth = block.depth
        block.lines += self.buffers.arrays(body)
        for _, group in groupby(body, lambda x: isinstance(x, Combine)):
            statements = list(group)
            self.joined([each for each in statements if isinstance(each, Combine)], block)
            for each in statements:
                block.lines += self.meet(each)
                if isinstance(each, LoopNode):
                    self.loop(each, block)
                elif not isinstance(each, Combine):
                    self.straight((each,), [{}], block)

    def meet(self, statement: Statement) -> Lines:
        """Return the barrier before a statement, if threads need what others do before."""
        read, written = set[object](), set[object]()
        for each in accesses((statement,)):
            name, number = each.memory
            buffer = name == "buffer"
            if buffer and self.tree.buffers[number].space is Space.REGISTER:
                continue
            place = each.memory if buffer else self.place_of(self.operands[number])
            (read if each.way == READ else written).add(place)
        meets = written & (self.read | self.written) or read & self.written
        if meets:
            self.read, self.written = set(), set()
        self.read |= read
        self.written |= written
        return self.team.meet() if meets else []

    def loop(self, loop: LoopNode, block: StatementBlock) -> None:
        """Emit a loop; of one over threads, the iteration of this thread."""
        if loop.role is not Role.THREAD:
            super().loop(loop, block)
            return
        assert is_divided_by(loop, self.team.size), "each thread has an iteration"
        self.is_divided = True
        self.depths.variables[loop.variable] = block.depth
        inner = loop.body[0]
        if isinstance(inner, LoopNode) and inner.role is Role.THREAD:
            self.depths.variables[inner.variable] = block.depth
            loop = inner
        self.body(loop.body, block)
        self.is_divided = False

    def counted(self, loop: LoopNode, block: StatementBlock) -> None:
        """Emit a loop over all iterations."""
        if self.is_divided and block.depth == self.task_depth:
            self.passes.add(loop.variable)
        super().counted(loop, block)

    def repeated(self, loop: LoopNode, low: str, high: str, lines: list[str]) -> list[str]:
        """Return a C loop between bounds; those over terms of columns keep to few registers.

        Threads without a column have no pass.
        """
        text = super().repeated(loop, low, high, lines)
        if not self.team.beside:
            return text
        return [
            *(["if (inside)"] if loop.variable in self.passes else []),
            "#pragma unroll 1",
            *text,
        ]

    def store(self, store: Store | Keep, write: Write, block: StatementBlock) -> str:
        """Return the statement that stores a value, by one thread if it is none of its own."""
        text = super().store(store, write, block)
        one = "inside && rank == 0" if self.team.beside else "rank == 0"
        own = isinstance(store, Keep) and store.number not in self.shared
        return text if self.is_divided or own else f"if ({one}) {text}"

    def joined(self, combines: list[Combine], block: StatementBlock) -> None:
        """Emit the combination of states of all threads; each of them gets the result."""
        block.lines += self.team.joined([self.value_of(each) for each in combines])
        if combines and self.team.meet() == ["__syncthreads();"]:
            self.read, self.written = set(), set()
        for each in combines:
            types = [self.tree.buffers[number].dtype for number in each.of]
            pairs = zip(each.of, types, strict=True)
            states = [self.tree.code(Kept, number, each.start, dtype) for number, dtype in pairs]
            fold = Fold(each.reducer, each.into, each.offset, tuple(states), merges=True)
            self.straight((fold,), [{}], block)

    def value_of(self, combine: Combine) -> Value:
        """Return the variables of a thread's state, and how two states are merged."""
        code, reducer, buffers = self.tree.code, combine.reducer, self.tree.buffers
        names = [buffer_name(number) for number in combine.of]
        types = [buffers[number].dtype for number in combine.of]

        def merged(ending: str) -> Lines:
            block = StatementBlock()
            for k, name in enumerate(names):
                self.scalars.running[k, False] = name
                self.scalars.running[k, True] = name + ending
            both = [
                tuple([code(Running, k, other, dtype) for k, dtype in enumerate(types)])
                for other in (False, True)
            ]
            texts = [self.scalars.value(block, each) for each in reducer.combine(code, *both)]
            pairs = zip(names, texts, strict=True)
            return [*map(str, block.lines), *(f"{name} = {text};" for name, text in pairs)]

        parts = [(name, self.buffers.ctype(n)) for name, n in zip(names, combine.of, strict=True)]
        adds = reducer.folds is add and kind(types[0]) == "f"
        return Value(tuple(parts), merged, adds)


def thread_loops(loop: LoopNode) -> list[LoopNode]:
    """Return a loop over threads, and that which is all of its body, if there is one."""
    inner = loop.body[0]
    nested = isinstance(inner, LoopNode) and inner.role is Role.THREAD
    return [loop, inner] if nested and isinstance(inner, LoopNode) else [loop]


def is_divided_by(loop: LoopNode, team: int) -> bool:
    """Return True if loops over threads have as many iterations as a team has threads."""
    return product(each.size for each in thread_loops(loop) if each.size is not None) == team


def rank_texts(body: Body) -> Iterator[tuple[str, str]]:
    """Yield the variables of loops over threads, and their values from the thread's rank."""
    for each, above in walk(body):
        outermost = not any(loop.role is Role.THREAD for loop in above)
        if isinstance(each, LoopNode) and each.role is Role.THREAD and outermost:
            outer, *inner = thread_loops(each)
            yield outer.variable, f"rank / {inner[0].size}" if inner else "rank"
            yield from [(loop.variable, f"rank % {loop.size}") for loop in inner]
