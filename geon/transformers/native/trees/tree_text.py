"""Emit a loop tree as C functions: one for each loop over tasks, and one that runs them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from ....op_graph.values.dtypes import name_of
from ...loops.access import READ, accesses, operands_in, private, sizes_in
from ...loops.tree import Body, LoopNode, Role, Tree, Write, find, loops_of, vector_stores, walk
from ...loops.work import work
from ...printing.nests.loop_lines import indent
from ...printing.nests.parameters import NamedQuotients, Parameter
from ...printing.nests.statement_blocks import StatementBlock
from ...printing.scalars.c_types import C_TYPES
from ...printing.trees.buffer_names import buffer_name
from ..names.naming import KernelNames
from ..vectors.lanes import Vectors
from ..vectors.nontemporal_stores import Passing
from .row_arrays import LaneBuffers
from .tasks import Tasks
from .vector_statements import VectorStatements


def tree_text(tree: Tree, names: KernelNames, name: str, passing: Passing | None = None) -> str:
    """Return the C functions of a tree; ``name`` is the one to call.

    ``passing`` are the stores that may pass by the caches, if there are any.
    """
    if vectors_of(tree).variables:
        names.calls(["geon_vectors"])
    else:
        names.plain = True
    return _TreeFunctions(tree, names, name, passing).text()


def declare(tree: Tree, names: KernelNames, passing: Passing | None) -> None:
    """Declare the parameters of a tree's functions, which all of them have."""
    for number in operands_in(tree):
        names.operand(number)
    touched = () if passing is None else (passing.stored, passing.touched)
    for size in (*sizes_in(tree), *touched):
        names.length(size)
    LaneBuffers(tree, {}, names).declare_scratch()


def vectors_of(tree: Tree) -> Vectors:
    """Return the vector types of a tree's loops over lanes."""
    lanes = [loop.variable for loop in loops_of(tree.body) if loop.role is Role.VECTOR]
    assert tree.vectors is not None
    return Vectors(tree.vectors.count, tree.vectors.itemsize, lanes)


class _TreeFunctions(Tasks):
    def __init__(self, tree: Tree, names: KernelNames, name: str, passing: Passing | None) -> None:
        super().__init__(names, name)
        self.tree, self.vectors, self.passing = tree, vectors_of(tree), passing
        self.functions: list[list[str]] = []
        declare(tree, names, passing)

    def text(self) -> str:
        """Return all functions."""
        block = StatementBlock()
        statements = VectorStatements(self.tree, self.names, self.vectors, self.task)
        streamed = statements.streamed = self.streamed(self.tree.body)
        with self.quotients() as quotients:
            statements.body(self.tree.body, block)
            body = [*self.past(streamed), *statements.text(block), *statements.ends()]
        main = [*quotients, *statements.begins, *body]
        if not self.functions:
            main.append("(void)threads;")
        return self.whole([*self.functions, [self.head(), "{", *indent(main), "}"]])

    @contextmanager
    def quotients(self) -> Iterator[list[str]]:
        """Name the quotients of lengths in one function; yield their statements."""
        outer, self.names.quotients = self.names.quotients, NamedQuotients()
        yield self.names.quotients.lines
        self.names.quotients = outer

    def task(self, loop: LoopNode) -> list[str]:
        """Return the statements that run a loop's iterations as tasks; add the task's function."""
        name, shared = f"{self.name}_rows{len(self.functions) // 2 or ''}", self.shared(loop)
        block = StatementBlock()
        statements = VectorStatements(self.tree, self.names, self.vectors, told=shared)
        streamed = statements.streamed = self.streamed(loop.body)

        def size() -> str:
            return statements.scalars.index(block, loop.extent)

        with self.quotients() as quotients:
            statements.serial(loop, block, "begin", "end")
            body = [
                "const int64_t begin = task * grain;",
                f"const int64_t end = begin + grain < {size()} ? begin + grain : {size()};",
                *self.past(streamed),
                *statements.text(block),
                *statements.ends(),
            ]
            body = [*quotients, *statements.begins, *body]
        _, above = find(self.tree, loop.variable)
        counts = [
            Parameter(x, "int64_t", None, False) for x in ("grain", *(y.variable for y in above))
        ]
        extra = [*counts, *shared.values()]
        self.functions += [self.structure(name, extra), self.function(name, body, extra)]
        each = self.names.length(work(loop.body, loop.variable))
        return ["{", *indent([
            f"const int64_t size = {size()};",
            f"const int64_t grain = geon_grain(size, {each});",
            "const int64_t parts = (size + grain - 1) / grain;",
            *self.launch(name, {each.name: each.name for each in extra}),
        ]), "}"]  # fmt: skip

    def shared(self, loop: LoopNode) -> dict[int, Parameter]:
        """Return the parameters of a task that are private buffers of the kernel: by value those
        that it only reads, if they are one element.
        """
        found = {}
        uses = [each for each in accesses(loop.body) if each.memory[0] == "buffer"]
        own = {*private(self.tree, loop.variable)}
        for number in sorted({each.memory[1] for each in uses} - own):
            written = any(each.way != READ for each in uses if each.memory[1] == number)
            buffer = self.tree.buffers[number]
            pointer = written or buffer.size != 1
            ctype = C_TYPES[name_of(buffer.dtype)]
            found[number] = Parameter(buffer_name(number), ctype, None, pointer)
        return found

    def streamed(self, body: Body) -> frozenset[int]:
        """Return the operands of stores of one function that may pass by the caches.

        Tasks in its body have functions of their own.
        """
        writes = [
            each
            for each, above in walk(body)
            if isinstance(each, Write) and not any(x.role is Role.TASK for x in above)
        ]
        return frozenset().union(*[write.streamed for write in writes])

    def past(self, streamed: frozenset[int]) -> list[str]:
        """Return the declaration of the flag that stores to operands pass by the caches."""
        operands = sorted(streamed)
        if not operands:
            return []
        assert self.passing is not None
        self.names.calls(["geon_past_put"])  # its file defines the functions called here
        test = self.passing.test(self.names)
        if not vectors_of(self.tree).variables:
            return [f"const _Bool passes = {test};"]
        parts = [f"(uintptr_t){self.names.operand(k)}" for k in operands]
        for store in [store for k in operands for store, _ in vector_stores(self.tree, k)]:
            steps = [*store.offset.terms.values(), store.offset.constant]
            open_ones = [step for step in steps if not isinstance(step, int)]
            parts += [f"({self.names.length(x * store.dtype.itemsize)})" for x in open_ones]
        width = self.vectors.count * self.vectors.itemsize
        low = f"(({' | '.join(dict.fromkeys(parts))}) & {width - 1})"
        return [f"const _Bool passes = {test} && {low} == 0;"]
