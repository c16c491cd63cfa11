"""Emit the statements of a loop tree that one CUDA thread runs."""

from __future__ import annotations

from collections.abc import Hashable, Set

from ....op_graph.axes.affine import AffineIndex, Size
from ....op_graph.axes.index_map import InRange
from ....op_graph.axes.lengths import exact_quotient
from ....op_graph.values.dtypes import DType, name_of
from ...kernels.analysis.integer_ranges import index_bounds
from ...kernels.analysis.loop_depth import Depths
from ...kernels.ir.nest import Store
from ...kernels.ir.scalar_code import Load
from ...kernels.ir.scalar_code import walk as walk_scalars
from ...loops.access import is_natural, ranges
from ...loops.rules.gpu_threads import is_aligned
from ...loops.tree import (
    Body,
    Choose,
    Fold,
    Kind,
    LoopNode,
    Role,
    Space,
    Tree,
    Write,
    loops_of,
    values_of,
)
from ...printing.nests.loop_lines import for_loop, indent
from ...printing.nests.statement_blocks import StatementBlock
from ...printing.scalars.c_types import C_TYPES
from ...printing.trees.buffer_names import BufferNames
from ...printing.trees.tree_statements import TreeScalars, TreeStatements
from ..launches.naming import CudaKernelNames


class ThreadScalars(TreeScalars):
    """Emits scalar code of one thread, in its part of buffers; variables are not negative.

    ``ranks`` are the variables of loops over the threads of a team, ``positions`` named indices.
    """

    ranks: Set[str] = frozenset()

    def __init__(self, tree: Tree, names: CudaKernelNames) -> None:
        super().__init__(names, Depths.of_tree())
        self.positions: dict[str, AffineIndex] = {}
        extents = ranges(loops_of(tree.body))
        self.extents: dict[Hashable, Size] = {name: extents[name] for name in extents}

    def dividend_type(self, index: AffineIndex) -> str:
        """Return the cast of an index that is divided: divisions of 32 bits are faster."""
        bounds = index_bounds(index, self.extents)
        narrow = bounds is not None and bounds[0] >= 0 and bounds[1] < 1 << 31
        return "(uint32_t)" if narrow else ""

    def kept_place(self, block: StatementBlock, number: int, offset: AffineIndex) -> str:
        """Return the element of a private buffer at ``offset``, in the part of this thread."""
        if self.buffers.tree.buffers[number].space is Space.REGISTER:
            terms = [x for x in offset.terms.items() if x[0] not in self.ranks]
            offset = AffineIndex(terms, offset.constant)
        return super().kept_place(block, number, offset)

    def index(self, block: StatementBlock, index: AffineIndex) -> str:
        """Return an index as C, by means of one of the ``positions`` that it is a multiple of."""
        for name, known in self.positions.items():
            (first, step), *others = known.terms.items()
            factor = exact_quotient(index.step(first), step)
            if factor is None or factor == 0:
                continue
            if all(index.step(atom) == each * factor for atom, each in others):
                rest = [x for x in index.terms.items() if x[0] not in known.terms]
                constant = index.constant - known.constant * factor
                index = AffineIndex([(name, factor), *rest], constant)
        return super().index(block, index)

    def guard(self, block: StatementBlock, guard: InRange) -> list[str]:
        """Return the conditions of a guard, without those that always hold."""
        conditions = super().guard(block, guard)
        return conditions[-1:] if guard.low == 0 and is_natural(guard.index) else conditions


class ThreadStatements(TreeStatements):
    """Emits the statements that one thread runs."""

    scalars: ThreadScalars

    def __init__(self, tree: Tree, names: CudaKernelNames, buffers: BufferNames) -> None:
        super().__init__(tree, names, ThreadScalars(tree, names), buffers)
        self.is_apart = names.is_apart

    def loop(self, loop: LoopNode, block: StatementBlock) -> None:
        """Emit a loop; vectors have statements of their own."""
        if loop.role in (Role.VECTOR, Role.UNROLLED) and loop.kind is Kind.LANES:
            self.together(loop, block)
        else:
            self.counted(loop, block)

    def repeated(self, loop: LoopNode, low: str, high: str, lines: list[str]) -> list[str]:
        """Return a C loop between bounds, unrolled if it has that role."""
        unrolled = ["#pragma unroll"] if loop.role is Role.UNROLLED else []
        return [*unrolled, *for_loop(loop.variable, low, high, lines)]

    def choose(self, choose: Choose, block: StatementBlock) -> None:
        """Emit a choice between statements; its last guard's index has a name in them."""
        named = dict(self.scalars.positions)
        index = choose.guards[-1].index
        here = self.depths.index(index) == block.depth  # no value outside has a multiple of it
        if here and len(index.terms) > 1 and all(isinstance(x, str) for x in index.terms):
            name = self.scalars.fresh("at")
            block.lines.append(f"const int64_t {name} = {self.scalars.index(block, index)};")
            self.scalars.positions[name] = index
        super().choose(choose, block)
        self.scalars.positions = named

    def together(self, loop: LoopNode, block: StatementBlock) -> None:
        """Emit a vector: its elements are loaded first, computed in turn, and stored last."""
        lanes, lane, after = StatementBlock(block), loop.variable, list[str]()
        self.depths.variables[lane] = lanes.depth
        body, inside, (choose, *_) = loop.body, None, loop.body
        if isinstance(choose, Choose):  # a vector of which only the first elements are there
            ((guard,), body) = choose.guards, choose.then
            first = AffineIndex([x for x in guard.index.terms.items() if x[0] != lane])
            inside = self.scalars.index(block, first * -1 + (guard.high - guard.index.constant))
            block.lines.append(f"const int64_t {lane}_end = {inside};")
            inside = f"{lane}_end"
        self.loads(body, lane, block, lanes, inside)
        for each in body:
            if isinstance(each, Fold):
                self.straight((each,), [{}], lanes)
                continue
            assert isinstance(each, Write), "vectors hold straight code"
            for part in values_of(each):
                self.scalars.value(lanes, part)  # before the first store
            for store in each.stores:
                if not isinstance(store, Store) or not self.is_vector(store, lane):
                    lanes.lines.append(self.store(store, each, lanes))
                    continue
                name, ctype = self.scalars.fresh("out"), f"geon_four<{element_type(store.dtype)}>"
                value = self.scalars.value(lanes, store.value)
                lanes.lines.append(f"{name}.at[{lane}] = {value};")
                block.lines.append(f"{ctype} {name};")
                after.append(f"*({ctype} *)({self.first(store, lane, block)}) = {name};")
        end = str(loop.size) if inside is None else f"{loop.size} && {lane} < {inside}"
        head = f"for (int {lane} = 0; {lane} < {end}; {lane}++) {{"
        block.lines += ["#pragma unroll", head, *indent(list(map(str, lanes.lines))), "}", *after]

    def loads(
        self,
        body: Body,
        lane: str,
        block: StatementBlock,
        lanes: StatementBlock,
        inside: str | None = None,
    ) -> None:
        """Emit the loads of vectors, of ``inside`` elements each, before the loop over these."""
        for load in walk_scalars(*[value for each in body for value in values_of(each)]):
            if isinstance(load, Load) and self.is_vector(load, lane):
                name, ctype = self.scalars.fresh("in"), f"geon_four<{element_type(load.dtype)}>"
                place = self.first(load, lane, block)
                whole = f"*(const {ctype} *)({place})"
                some = whole if inside is None else f"geon_read_fours({place}, {inside})"
                block.lines.append(f"const {ctype} {name} = {some};")
                text = f"{name}.at[{lane}]"
                lanes.names[load] = f"({text} != 0)" if name_of(load.dtype) == "bool" else text

    def is_vector(self, access: Load | Store, lane: str) -> bool:
        """Return True if a vector accesses adjacent, aligned elements."""
        return is_aligned(access.offset, lane) and not self.is_apart(access.operand)

    def first(self, access: Load | Store, lane: str, block: StatementBlock) -> str:
        """Return the pointer to the first element of a vector."""
        offset = access.offset
        start = AffineIndex([x for x in offset.terms.items() if x[0] != lane], offset.constant)
        return f"{self.names.operand(access.operand)} + {self.scalars.index(block, start)}"


def element_type(dtype: DType) -> str:
    """Return the C type of elements in memory."""
    name = name_of(dtype)
    return "uint8_t" if name == "bool" else C_TYPES[name]
