"""Emit the statements of a loop tree as C: vectors where a loop is one, scalars elsewhere.

Statements of unrolled copies are interleaved, and a value that copies share is computed once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from ....op_graph.axes.affine import AffineIndex, variable
from ....op_graph.values.dtypes import name_of
from ...kernels.ir.nest import Keep, Store
from ...kernels.ir.scalar_code import Kept, Scalar, indices
from ...kernels.ir.scalar_code import walk as walk_scalars
from ...loops.substitution import Substitution
from ...loops.tree import (
    Body,
    CachePrefetch,
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
from ...printing.nests.loop_lines import for_loop, indent, stepped_loop
from ...printing.nests.parameters import Parameter
from ...printing.nests.statement_blocks import StatementBlock
from ...printing.scalars.c_types import C_TYPES
from ...printing.trees.buffer_names import buffer_name
from ...printing.trees.tree_statements import TreeDepths, TreeStatements
from ...sizes.blocks import CACHE_LINE_BYTES
from ..names.naming import KernelNames
from ..vectors.lanes import Vectors
from ..vectors.vector_ops import vector_type
from .lane_lines import LANE, lane_loops
from .lane_scalars import LaneScalars
from .row_arrays import LaneBuffers


class VectorStatements(TreeStatements):
    """Emits the loops and statements of a tree for one C function.

    ``told`` are the parameters of the function that are private buffers, by number. ``tasks``
    returns the statements that run a loop as tasks.
    """

    scalars: LaneScalars

    def __init__(
        self,
        tree: Tree,
        names: KernelNames,
        vectors: Vectors,
        tasks: Callable[[LoopNode], list[str]] | None = None,
        told: Mapping[int, Parameter] | None = None,
    ) -> None:
        buffers = LaneBuffers(tree, told, names)
        assert tree.vectors is not None
        scalars = LaneScalars(names, TreeDepths(), vectors, tree.vectors)
        super().__init__(tree, names, scalars, buffers)
        self.vectors, self.tasks = vectors, tasks
        self.streamed = frozenset[int]()  # operands whose stores read the flag ``passes``

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
        block.lines += stepped_loop(loop.variable, by, self.text(inner), "0", end)

    def text(self, block: StatementBlock) -> list[str]:
        """Return the statements of a block."""
        return lane_loops(block.lines)

    def combine(self, combine: Combine, block: StatementBlock) -> None:
        """Emit the reduction of the lanes of a vector to its state."""
        self.scalars.vectors = self.vectors.of(combine.count)
        row = combine.reducer.folds
        dtypes = [self.tree.buffers[number].dtype for number in combine.of]
        if row is None or not self.scalars.has_fold(row.name, dtypes[0]):
            self.combine_by_halves(combine, block)
            return
        scalars = self.scalars
        for into, of in zip(combine.into, combine.of, strict=True):
            source, target = (name_of(self.tree.buffers[number].dtype) for number in (of, into))
            vector, name = vector_type(C_TYPES[source], combine.count), buffer_name(of)
            if of not in self.buffers.registers:
                name = scalars.vectors.place(C_TYPES[source], f"{name}[0]")
            folded = f"{vector}_fold_{row.name}({name})"
            part = scalars.let(block, (combine, of), C_TYPES[source], folded)
            part = scalars.cast(block, source, target, part)
            total = scalars.kept_place(block, into, combine.offset)
            value = scalars.expression(block, row.name, [target] * 2, target, [total, part])
            block.lines.append(f"{total} = {value};")

    def combine_by_halves(self, combine: Combine, block: StatementBlock) -> None:
        """Emit loops that combine the states in two halves of the lanes, until one is left."""
        code, inner = self.tree.code, StatementBlock(block)
        half, lane = variable("half"), variable(LANE)

        def state(numbers: Sequence[int], offset: AffineIndex) -> tuple[Scalar, ...]:
            pairs = zip(numbers, (self.tree.buffers[n].dtype for n in numbers), strict=True)
            return tuple([code(Kept, number, offset, dtype) for number, dtype in pairs])

        one, other = (state(combine.of, combine.start + at) for at in (lane, lane + half))
        joined = combine.reducer.combine(code, one, other)
        self.keep_states(combine.of, {combine.start + lane: joined}, inner)
        loop = for_loop(LANE, "0", "half", self.text(inner))
        head = f"for (int64_t half = {combine.count // 2}; half > 0; half /= 2) {{"
        block.lines += [head, *indent(loop), "}"]
        held, found = state(combine.into, combine.offset), state(combine.of, combine.start)
        pairs = zip(found, held, strict=True)
        found = tuple([code.cast(part, total.dtype) for part, total in pairs])
        total = combine.reducer.combine(code, held, found)
        self.keep_states(combine.into, {combine.offset: total}, block)

    def prefetch(
        self, each: CachePrefetch, copies: Sequence[dict[str, AffineIndex]], block: StatementBlock
    ) -> None:
        """Emit the prefetches of the cache lines of a vector; single elements have none."""
        if not self.scalars.lanes_in(each.offset):
            return
        operand, room = self.names.operand(each.operand), each.room
        conditions = [] if isinstance(room, int) else [f"{self.names.length(room)} >= 0"]
        if each.stores and each.operand in self.streamed:
            conditions.append("!passes")
        head = f"if ({' && '.join(conditions)}) " if conditions else ""
        step = CACHE_LINE_BYTES // self.tree.operands[each.operand].dtype.itemsize
        for env in copies:
            fetch = Substitution(self.tree.code, env).statement(each)
            index = self.scalars.index(block, fetch.offset)
            for k in range(0, self.scalars.vectors.count, step):
                place = f"&{operand}[{index}{f' + {k}' if k else ''}]"
                block.lines.append(f"{head}__builtin_prefetch({place}, {int(each.stores)});")

    def store(self, store: Store | Keep, write: Write, block: StatementBlock) -> str:
        """Return the statement that stores a value, past the caches if it may."""
        if isinstance(store, Keep):
            return self.keep(store, block)
        scalars, dtype = self.scalars, name_of(store.dtype)
        value = scalars.value(block, store.value)
        operand = self.names.operand(store.operand)
        if not scalars.lanes_in(store.offset):
            return f"{operand}[{scalars.index(block, store.offset)}] = {value};"
        if not scalars.stores_vector(store):
            place = f"{operand}[{scalars.lane_index(block, store.offset)}]"
            return scalars.of_lanes(f"{place} = {scalars.lane(block, dtype, value)};")
        place, ctype = f"{operand}[{scalars.index(block, store.offset)}]", C_TYPES[dtype]
        value = scalars.whole(block, dtype, value)
        if store.operand in write.streamed:
            value, vector = scalars.put(ctype, value)
            return f"GEON_PUT({vector}, passes, {place}, {value});"
        return scalars.stored(ctype, place, value)

    def keep(self, keep: Keep, block: StatementBlock) -> str:
        """Return the statement that stores to a private buffer; the first one declares it."""
        scalars, ctype = self.scalars, self.buffers.ctype(keep.number)
        dtype = name_of(self.tree.buffers[keep.number].dtype)
        value = scalars.value(block, keep.value)
        place = scalars.kept_place(block, keep.number, keep.offset)
        if scalars.is_lane(place):
            return scalars.of_lanes(f"{place} = {scalars.lane(block, dtype, value)};")
        if scalars.is_vector(place):
            value, ctype = scalars.put(ctype, scalars.whole(block, dtype, value))
            block.names.pop((place, LANE), None)  # its elements are other ones now
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
        if isinstance(each, CachePrefetch):
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
