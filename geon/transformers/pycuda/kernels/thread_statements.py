"""Emit the statements of a loop tree that one CUDA thread runs."""

from __future__ import annotations

from collections.abc import Hashable, Set

from ....op_graph.axes.affine import AffineIndex, Size
from ....op_graph.axes.index_map import InRange
from ....op_graph.values.dtypes import DType, name_of
from ...kernels.ir.nest import Store
from ...kernels.ir.scalar_code import Load
from ...kernels.ir.scalar_code import walk as walk_scalars
from ...loops.access import is_natural, largest, ranges
from ...loops.gpu_threads import is_aligned
from ...loops.tree import Body, Fold, Kind, LoopNode, Role, Space, Tree, Write, loops_of, values_of
from ...printing.nests.loop_lines import for_loop, indent
from ...printing.nests.statement_blocks import StatementBlock
from ...printing.scalars.c_types import C_TYPES
from ...printing.trees.buffer_names import BufferNames
from ...printing.trees.tree_statements import TreeDepths, TreeScalars, TreeStatements
from ..launches.naming import CudaKernelNames


class ThreadScalars(TreeScalars):
    """Emits scalar code of one thread, in its part of buffers; variables are not negative.

    ``ranks`` are the variables of loops over the threads of a team.
    """

    ranks: Set[str] = frozenset()

    def __init__(self, tree: Tree, names: CudaKernelNames) -> None:
        super().__init__(names, TreeDepths())
        extents = ranges(loops_of(tree.body))
        self.extents: dict[Hashable, Size] = {name: extents[name] for name in extents}

    def dividend_type(self, index: AffineIndex) -> str:
        """Return the cast of an index that is divided: divisions of 32 bits are faster."""
        bound = largest(index, self.extents)
        return "(uint32_t)" if bound is not None and bound < 1 << 31 else ""

    def kept_place(self, block: StatementBlock, number: int, offset: AffineIndex) -> str:
        """Return the element of a private buffer at ``offset``, in the part of this thread."""
        if self.buffers.tree.buffers[number].space is Space.REGISTER:
            terms = [x for x in offset.terms.items() if x[0] not in self.ranks]
            offset = AffineIndex(terms, offset.constant)
        return super().kept_place(block, number, offset)

    def guard(self, block: StatementBlock, guard: InRange) -> list[str]:
        """Return the conditions of a guard, without those that always hold."""
        conditions = super().guard(block, guard)
        return conditions[-1:] if guard.low == 0 and is_natural(guard.index) else conditions


class ThreadStatements(TreeStatements):
    """Emits the statements that one thread runs."""

    scalars: ThreadScalars

    def __init__(
        self, tree: Tree, names: CudaKernelNames, buffers: BufferNames | None = None
    ) -> None:
        buffers = buffers or BufferNames(tree, together=Role.THREAD)
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

    def together(self, loop: LoopNode, block: StatementBlock) -> None:
        """Emit a vector: its elements are loaded first, computed in turn, and stored last."""
        lanes, lane, after = StatementBlock(block), loop.variable, list[str]()
        self.depths.variables[lane] = lanes.depth
        self.loads(loop.body, lane, block, lanes)
        for each in loop.body:
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
        head = f"for (int {lane} = 0; {lane} < {loop.size}; {lane}++) {{"
        block.lines += ["#pragma unroll", head, *indent(list(map(str, lanes.lines))), "}", *after]

    def loads(self, body: Body, lane: str, block: StatementBlock, lanes: StatementBlock) -> None:
        """Emit the loads of whole vectors before the loop over their elements."""
        for load in walk_scalars(*[value for each in body for value in values_of(each)]):
            if isinstance(load, Load) and self.is_vector(load, lane):
                name, ctype = self.scalars.fresh("in"), f"geon_four<{element_type(load.dtype)}>"
                place = self.first(load, lane, block)
                block.lines.append(f"const {ctype} {name} = *(const {ctype} *)({place});")
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
