"""Emit the statements of a loop tree as C: vectors where a loop is one, scalars elsewhere.

Statements of unrolled copies are interleaved, and a value that copies share is computed once.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from typing import Any

from ....op_graph.axes.affine import AffineIndex, variable
from ....op_graph.values.dtypes import name_of
from ...kernels.ir.nest import Keep, Store
from ...kernels.ir.scalar_code import Apply, Load, Scalar, indices
from ...kernels.ir.scalar_code import walk as walk_scalars
from ...loops.tree import (
    Body,
    Combine,
    Fold,
    LoopNode,
    Role,
    Statement,
    Tree,
    Write,
    constant,
    loops_of,
    values_of,
    variables,
    walk,
)
from ...printing.nests.loop_lines import stepped_loop
from ...printing.nests.parameters import Parameter
from ...printing.nests.statement_blocks import StatementBlock
from ...printing.scalars.c_types import C_TYPES
from ...printing.trees.buffer_names import BufferNames, buffer_name
from ...printing.trees.tree_statements import TreeDepths, TreeScalars, TreeStatements
from ..names.naming import KernelNames
from ..vectors.lanes import Vectors
from ..vectors.vector_ops import vector_type
from ..vectors.vector_scalar_code import VectorScalars


class VectorTreeScalars(VectorScalars, TreeScalars):
    """Emits scalar code in a tree; loop variables of vectors count as 0."""

    def __init__(self, names: KernelNames, depths: Any, vectors: Vectors) -> None:
        super().__init__(names, depths, vectors)
        self.registers: set[Scalar] = set()  # values that compilers would load or compute again
        self.scales: dict[Hashable, int] = {}  # steps of the C loops over variables, where not 1

    def index(self, block: StatementBlock, index: AffineIndex) -> str:
        """Return an index as C, of the first element of a vector."""
        lanes = self.vectors.variables
        if any(atom in lanes or atom in self.scales for atom in index.terms):
            terms = [
                (atom, step // self.scales.get(atom, 1))
                for atom, step in index.terms.items()
                if atom not in lanes
            ]
            index = AffineIndex(terms, index.constant)
        return super().index(block, index)

    def kept_place(self, block: StatementBlock, number: int, offset: AffineIndex) -> str:
        """Return the element of a private buffer at ``offset``, or the vector that begins there."""
        name, ctype = buffer_name(number), self.buffers.ctype(number)
        steps = {offset.step(lane) for lane in self.vectors.variables}
        assert steps <= {0, 1}, f"elements of a vector in {name} are {steps} apart"
        lanes = 1 in steps
        if number not in self.buffers.registers:
            name = f"{name}[{self.index(block, offset)}]"
            name = self.vectors.place(ctype, name) if lanes else name
        return self.vector(name) if lanes else name

    def let(self, block: StatementBlock, key: Hashable, ctype: str, text: str) -> str:
        """Emit ``text`` once in ``block`` and return its name."""
        is_vector = text in self.texts
        name = super().let(block, key, ctype, text)
        if is_vector and key in self.registers:
            block.lines[-1] = block.lines[-1].removeprefix("const ")
            block.lines.append(f"GEON_KEPT({name})")
        return name

    def share(self, copies: Sequence[Write]) -> None:
        """Keep in registers what copies of a statement load or compute again."""
        self.registers.update(kept_values(copies))


class VectorStatements(TreeStatements):
    """Emits the loops and statements of a tree for one C function.

    ``told`` are the parameters of the function that are private buffers, by number. ``tasks``
    returns the statements that run a loop as tasks.
    """

    scalars: VectorTreeScalars

    def __init__(
        self,
        tree: Tree,
        names: KernelNames,
        vectors: Vectors,
        tasks: Callable[[LoopNode], list[str]] | None = None,
        told: Mapping[int, Parameter] | None = None,
    ) -> None:
        scalars = VectorTreeScalars(names, TreeDepths(), vectors)
        super().__init__(tree, names, scalars, BufferNames(tree, told, " GEON_IN_LINES"))
        self.vectors, self.tasks = vectors, tasks

    def task(self, loop: LoopNode, block: StatementBlock) -> None:
        """Emit the statements that run a loop as tasks."""
        assert self.tasks is not None, "tasks have no tasks"
        block.lines += self.tasks(loop)

    def together(self, loop: LoopNode, block: StatementBlock) -> None:
        """Emit a vector, or copies of statements, each of all copies before the next one."""
        for statement, copies, lanes in straight_copies(loop, [{}]):
            self.scalars.vectors = self.vectors.of(lanes)
            self.straight((statement,), copies, block)

    def counted(self, loop: LoopNode, block: StatementBlock) -> None:
        """Emit a loop over all iterations; one over vectors may count elements."""
        by = next((x.size for x in loops_of(loop.body) if x.role is Role.VECTOR), None)
        if isinstance(by, int) and counts_elements(loop, by):
            self.blocks(loop, by, block)
        else:
            super().counted(loop, block)

    def blocks(self, loop: LoopNode, by: int, block: StatementBlock) -> None:
        """Emit a C loop over vectors of ``by`` elements, which counts elements."""
        inner = StatementBlock(block)
        self.depths.variables[loop.variable] = inner.depth
        self.scalars.scales[loop.variable] = by
        self.body(loop.body, inner)
        end = self.scalars.index(block, loop.extent * by)
        lines = list(map(str, inner.lines))
        block.lines += stepped_loop(loop.variable, by, lines, "0", end)

    def combine(self, combine: Combine, block: StatementBlock) -> None:
        """Emit the reduction of the lanes of a vector to its state."""
        scalars, row = self.scalars, combine.reducer.folds.name
        for into, of in zip(combine.into, combine.of, strict=True):
            source, target = (name_of(self.tree.buffers[number].dtype) for number in (of, into))
            vector = vector_type(C_TYPES[source], combine.count)
            folded = f"{vector}_fold_{row}({buffer_name(of)})"
            part = scalars.let(block, (combine, of), C_TYPES[source], folded)
            part = scalars.cast(block, source, target, part)
            total = scalars.kept_place(block, into, combine.offset)
            value = scalars.expression(block, row, [target] * 2, target, [total, part])
            block.lines.append(f"{total} = {value};")

    def store(self, store: Store | Keep, write: Write, block: StatementBlock) -> str:
        """Return the statement that stores a value, past the caches if it may."""
        if isinstance(store, Keep):
            return self.keep(store, block)
        scalars, ctype = self.scalars, C_TYPES[name_of(store.dtype)]
        value = scalars.value(block, store.value)
        place = f"{self.names.operand(store.operand)}[{scalars.index(block, store.offset)}]"
        if all(store.offset.step(lane) == 0 for lane in scalars.vectors.variables):
            return f"{place} = {value};"
        if store.operand in write.streamed:
            value, vector = scalars.put(ctype, value)
            return f"GEON_PUT({vector}, passes, {place}, {value});"
        return scalars.stored(ctype, place, value)

    def keep(self, keep: Keep, block: StatementBlock) -> str:
        """Return the statement that stores to a private buffer; the first one declares it."""
        scalars, ctype = self.scalars, self.buffers.ctype(keep.number)
        value = scalars.value(block, keep.value)
        place = scalars.kept_place(block, keep.number, keep.offset)
        if scalars.is_vector(place):
            value, ctype = scalars.put(ctype, value)
        declared = self.buffers.declare(keep.number)
        return f"{ctype} {place} = {value};" if declared else f"{place} = {value};"


def counts_elements(loop: LoopNode, by: int) -> bool:
    """Return True if a loop is over vectors, and all indices in it are multiples of ``by``."""
    inner = loops_of(loop.body)
    if not any(each.role is Role.VECTOR for each in inner) or loop.extent.terms:
        return False
    if not all(each.role in (Role.VECTOR, Role.UNROLLED) for each in inner):
        return False
    steps = [index.step(loop.variable) for index in indices_in(loop.body)]
    nested = [atom for index in indices_in(loop.body) for atom in index.terms]
    return all(isinstance(step, int) and step % by == 0 for step in steps) and all(
        isinstance(atom, str) or loop.variable not in variables(variable(atom)) for atom in nested
    )


def indices_in(body: Body) -> Iterator[AffineIndex]:
    """Yield the indices of the stores and values in statements."""
    for each, _ in walk(body):
        for store in each.stores if isinstance(each, Write) else ():
            yield store.offset
        if isinstance(each, Fold):
            yield each.offset
        for node in walk_scalars(*values_of(each)):
            yield from indices(node)


Copies = list[dict[str, AffineIndex]]  # indices of unrolled loops in each copy of a statement


def straight_copies(
    loop: LoopNode, copies: Copies, lanes: int = 1
) -> Iterator[tuple[Statement, Copies, int]]:
    """Yield the statements inside of unrolled loops and vectors, in order, with their copies.

    The last entry is the number of elements of a vector.
    """
    assert isinstance(loop.size, int)
    if loop.role is Role.VECTOR:
        lanes = loop.size
    else:
        turns = [{loop.variable: constant(turn)} for turn in range(loop.size)]
        copies = [{**copy, **turn} for copy in copies for turn in turns]
    for each in loop.body:
        if isinstance(each, LoopNode):
            yield from straight_copies(each, copies, lanes)
        else:
            yield each, copies, lanes


def kept_values(writes: Sequence[Write]) -> Iterator[Scalar]:
    """Yield the values of copies that stay in registers: shared loads, and sums of sums.

    gcc loads a vector again for each use, as long as memory holds it, and computes sums when they
    are stored, so that all terms wait in registers.
    """
    nodes = list(walk_scalars(*[value for write in writes for value in values_of(write)]))
    applied = [node for node in nodes if isinstance(node, Apply)]
    users = Counter([id(arg) for node in applied for arg in node.args])
    for node in nodes:
        again = isinstance(node, Load) and users[id(node)] > 1
        summed = isinstance(node, Apply) and any(isinstance(arg, Apply) for arg in node.args)
        if name_of(node.dtype) != "bool" and (again or summed):
            yield node
