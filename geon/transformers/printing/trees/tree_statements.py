"""Emit the loops and statements of a tree as text of the C family.

A value is computed in the innermost loop that it changes with. What a target has its own text for,
tasks, vectors and combined lanes, is left to its subclass.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence

from ....op_graph.axes.affine import AffineIndex
from ...kernels.ir.nest import Keep, Store
from ...kernels.ir.scalar_code import (
    Kept,
    Least,
    Scalar,
    operands_of,
)
from ...kernels.ir.scalar_code import walk as walk_scalars
from ...loops.access import is_unrolled
from ...loops.substitution import Substitution
from ...loops.tree import (
    Body,
    CachePrefetch,
    Choose,
    Combine,
    Draw,
    Fold,
    LoopNode,
    Role,
    Tree,
    Write,
    loops_of,
    values_of,
)
from ..nests.loop_lines import for_loop, indent
from ..nests.scalar_statements import DIRECT, MemoryNames, ScalarPrinter
from ..nests.statement_blocks import StatementBlock
from .buffer_names import BufferNames, buffer_name, is_serial


class TreeScalars(ScalarPrinter):
    """Emits scalar code in a tree, whose private ``buffers`` its statements set."""

    buffers: BufferNames

    def atom(self, block: StatementBlock, atom: Hashable) -> str:
        """Return the text of an atom of an index."""
        if not isinstance(atom, Least):
            return super().atom(block, atom)
        found = block.find(atom)
        if found is not None:
            return found
        depth = self.depths.atom(atom)
        block = block.at(depth)
        text, *others = (self.index(block, each) for each in atom.of)
        for k, other in enumerate(others):
            last = k == len(others) - 1 and depth
            text = f"{text} < {other} ? {text} : {other}"
            text = text if last else f"({text})"
        return self.let(block, atom, "int64_t", text) if depth else text

    def direct(self, block: StatementBlock, value: Scalar) -> str | None:
        """Return the text of a value that needs no name, or None."""
        if isinstance(value, Kept):
            return self.kept_place(block, value.number, value.offset)
        return super().direct(block, value)

    def kept_place(self, block: StatementBlock, number: int, offset: AffineIndex) -> str:
        """Return the element of a private buffer at ``offset``."""
        name = buffer_name(number)
        if number in self.buffers.registers:
            return name
        return f"{name}[{self.index(block, offset)}]"

    def is_innermost(self, block: StatementBlock) -> bool:
        """Return True if a block is the body of a loop without loops inside."""
        return block.is_innermost

    def share(self, copies: Sequence[Write]) -> None:
        """Prepare statements that are copies of each other; a hook for subclasses."""


class TreeStatements:
    """Emits the loops and statements of a tree for one function."""

    def __init__(
        self, tree: Tree, names: MemoryNames, scalars: TreeScalars, buffers: BufferNames
    ) -> None:
        self.tree, self.names, self.scalars, self.buffers = tree, names, scalars, buffers
        self.depths = scalars.depths
        scalars.buffers = buffers

    def body(self, body: Body, block: StatementBlock) -> None:
        """Emit statements into a block."""
        block.lines += self.buffers.arrays(body)
        for each in body:
            if isinstance(each, LoopNode):
                self.loop(each, block)
            elif isinstance(each, Choose):
                self.choose(each, block)
            elif isinstance(each, Combine):
                self.combine(each, block)
            else:
                self.straight((each,), [{}], block)

    def loop(self, loop: LoopNode, block: StatementBlock) -> None:
        """Emit a loop: as statements if it is a vector or unrolled."""
        if loop.role is Role.TASK:
            self.task(loop, block)
        elif loop.role is Role.VECTOR or (loop.role is Role.UNROLLED and is_unrolled(loop)):
            self.together(loop, block)
        else:
            self.counted(loop, block)

    def task(self, loop: LoopNode, block: StatementBlock) -> None:
        """Emit the statements that run a loop as tasks."""
        raise NotImplementedError

    def together(self, loop: LoopNode, block: StatementBlock) -> None:
        """Emit a loop whose iterations run together: a vector, or copies."""
        raise NotImplementedError

    def combine(self, combine: Combine, block: StatementBlock) -> None:
        """Emit the reduction of lanes to one state."""
        raise NotImplementedError

    def prefetch(
        self, each: CachePrefetch, copies: Sequence[dict[str, AffineIndex]], block: StatementBlock
    ) -> None:
        """Emit a prefetch; a hook for targets that have them."""

    def draw(self, draw: Draw, block: StatementBlock) -> None:
        """Emit the random bits of a buffer; a hook for targets that have such buffers."""
        raise NotImplementedError

    def counted(self, loop: LoopNode, block: StatementBlock) -> None:
        """Emit a loop over all iterations."""
        self.serial(loop, block, "0", self.scalars.index(block, loop.extent))

    def serial(self, loop: LoopNode, block: StatementBlock, low: str, high: str) -> None:
        """Emit a C loop between bounds."""
        inner = StatementBlock(block)
        inner.is_innermost = not any(map(is_serial, loops_of(loop.body)))
        self.depths.variables[loop.variable] = inner.depth
        self.body(loop.body, inner)
        if loop.ends:
            inner.lines += self.early_end(loop, inner)
        block.lines += self.repeated(loop, low, high, self.text(inner))

    def early_end(self, loop: LoopNode, block: StatementBlock) -> list[str]:
        """Return the statements that may end a loop; a hook for targets that end loops early."""
        return []

    def repeated(self, loop: LoopNode, low: str, high: str, lines: list[str]) -> list[str]:
        """Return a C loop between bounds over the lines of its body."""
        return for_loop(loop.variable, low, high, lines)

    def text(self, block: StatementBlock) -> list[str]:
        """Return the statements of a block."""
        return list(map(str, block.lines))

    def choose(self, choose: Choose, block: StatementBlock) -> None:
        """Emit a choice between statements."""
        guards = [text for guard in choose.guards for text in self.scalars.guard(block, guard)]
        lines, holds = [], " && ".join(guards)
        sides = [(f"if ({holds}) {{", choose.then), ("} else {", choose.otherwise)]
        if not choose.then:
            sides = [(f"if (!({holds})) {{", choose.otherwise)]
        elif not choose.otherwise:
            sides.pop()
        for head, body in sides:
            inner = StatementBlock(block)
            inner.depth = block.depth  # values of the loop around belong to this block
            self.body(body, inner)
            lines += [head, *indent(self.text(inner))]
        block.lines += [*lines, "}"]

    def straight(
        self, statements: Body, copies: Sequence[dict[str, AffineIndex]], block: StatementBlock
    ) -> None:
        """Emit statements without loops, each value of all copies before the next value."""
        for each in statements:
            if isinstance(each, Fold):
                self.fold(each, copies, block)
                continue
            if isinstance(each, CachePrefetch):
                self.prefetch(each, copies, block)
                continue
            if isinstance(each, Draw):
                self.draw(each, block)
                continue
            assert isinstance(each, Write)
            made = [Substitution(self.tree.code, env) for env in copies if env]
            writes = [change.statement(each) for change in made] or [each]
            if len(copies) > 1:
                self.scalars.share(writes)
            for node in walk_scalars(*values_of(each)) if made else ():
                if not isinstance(node, DIRECT):
                    for change in made:
                        self.scalars.value(block, change.known[id(node)])
            for write in writes:
                for value in values_of(write):
                    self.scalars.value(block, value)  # before the first store
            for write in writes:
                block.lines += [self.store(store, write, block) for store in write.stores]

    def fold(
        self, fold: Fold, copies: Sequence[dict[str, AffineIndex]], block: StatementBlock
    ) -> None:
        """Emit a fold; copies with the same state load and store it once."""
        code, states = self.tree.code, dict[AffineIndex, tuple[Scalar, ...]]()
        for env in copies:
            each = Substitution(code, env).statement(fold)
            state = states.get(each.offset)
            if state is None:
                types = [self.tree.buffers[number].dtype for number in each.into]
                pairs = zip(each.into, types, strict=True)
                state = tuple([code(Kept, number, each.offset, dtype) for number, dtype in pairs])
            if each.merges:
                states[each.offset] = each.reducer.combine(code, state, each.elements)
            else:
                step = each.reducer.step(code, state, each.elements[0], each.position)
                states[each.offset] = step
        self.keep_states(fold.into, states, block)

    def keep_states(
        self,
        into: Sequence[int],
        states: Mapping[AffineIndex, tuple[Scalar, ...]],
        block: StatementBlock,
    ) -> None:
        """Emit the stores of states, by their offsets in the buffers ``into``."""
        puts = [
            Keep(number, offset, value)
            for offset, state in states.items()
            for number, value in zip(into, state, strict=True)
        ]
        for put in puts:
            self.scalars.value(block, put.value)
        write = Write(tuple(puts))
        block.lines += [self.store(put, write, block) for put in puts]
        old: set[int] = set()  # ids of values of the former state, which a later fold has anew
        for node in walk_scalars(*[put.value for put in puts]):
            kept = isinstance(node, Kept) and node.number in into
            if kept or any(id(part) in old for part in operands_of(node)):
                old.add(id(node))
                block.names.pop(node, None)

    def store(self, store: Store | Keep, write: Write, block: StatementBlock) -> str:
        """Return the statement that stores a value."""
        if isinstance(store, Keep):
            return self.keep(store, block)
        value = self.scalars.value(block, store.value)
        place = f"{self.names.operand(store.operand)}[{self.scalars.index(block, store.offset)}]"
        return f"{place} = {value};"

    def keep(self, keep: Keep, block: StatementBlock) -> str:
        """Return the statement that stores to a private buffer; the first one declares it."""
        value = self.scalars.value(block, keep.value)
        place = self.scalars.kept_place(block, keep.number, keep.offset)
        declared = self.buffers.declare(keep.number)
        return (
            f"{self.buffers.ctype(keep.number)} {place} = {value};"
            if declared
            else f"{place} = {value};"
        )
