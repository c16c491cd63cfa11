"""Emit the statements of a loop tree that one CUDA thread runs."""

from __future__ import annotations

from ....op_graph.axes.affine import AffineIndex
from ....op_graph.values.dtypes import DType, name_of
from ...kernels.ir.nest import Store
from ...kernels.ir.scalar_code import Load
from ...kernels.ir.scalar_code import walk as walk_scalars
from ...loops.gpu_rules import is_aligned
from ...loops.tree import LoopNode, Role, Tree, Write, values_of
from ...printing.nests.statement_blocks import StatementBlock
from ...printing.scalars.c_types import C_TYPES
from ...printing.trees.buffer_names import BufferNames
from ...printing.trees.tree_statements import TreeDepths, TreeScalars, TreeStatements
from ..launches.naming import CudaKernelNames, indent


class ThreadStatements(TreeStatements):
    """Emits the statements that one thread runs."""

    def __init__(self, tree: Tree, names: CudaKernelNames) -> None:
        super().__init__(tree, names, TreeScalars(names, TreeDepths()), BufferNames(tree))

    def together(self, loop: LoopNode, block: StatementBlock) -> None:
        """Emit a vector: all of its elements are loaded first and stored last."""
        assert loop.role is Role.VECTOR, "copies of statements run one after another"
        for each in loop.body:
            assert isinstance(each, Write), "a thread stores vectors, and folds elements"
            self.vector(each, loop, block)

    def vector(self, write: Write, loop: LoopNode, block: StatementBlock) -> None:
        """Emit the stores of a vector."""
        lanes, lane = StatementBlock(block), loop.variable
        self.depths.variables[lane] = lanes.depth
        for load in walk_scalars(*values_of(write)):
            if isinstance(load, Load) and is_aligned(load.offset, lane):
                name, ctype = self.scalars.fresh("in"), f"geon_four<{element_type(load.dtype)}>"
                place = self.first(load.operand, load.offset, lane, block)
                block.lines.append(f"const {ctype} {name} = *(const {ctype} *)({place});")
                text = f"{name}.at[{lane}]"
                lanes.names[load] = f"({text} != 0)" if name_of(load.dtype) == "bool" else text
        puts, after = list[str](), list[str]()
        for store in write.stores:
            assert isinstance(store, Store), "private buffers hold no vectors"
            name, ctype = self.scalars.fresh("out"), f"geon_four<{element_type(store.dtype)}>"
            puts.append(f"{name}.at[{lane}] = {self.scalars.value(lanes, store.value)};")
            place = self.first(store.operand, store.offset, lane, block)
            block.lines.append(f"{ctype} {name};")
            after.append(f"*({ctype} *)({place}) = {name};")
        head = f"for (int {lane} = 0; {lane} < {loop.size}; {lane}++) {{"
        body = indent([*map(str, lanes.lines), *puts])
        block.lines += ["#pragma unroll", head, *body, "}", *after]

    def first(self, operand: int, offset: AffineIndex, lane: str, block: StatementBlock) -> str:
        """Return the pointer to the first element of a vector."""
        start = AffineIndex([x for x in offset.terms.items() if x[0] != lane], offset.constant)
        return f"{self.names.operand(operand)} + {self.scalars.index(block, start)}"


def element_type(dtype: DType) -> str:
    """Return the C type of elements in memory."""
    name = name_of(dtype)
    return "uint8_t" if name == "bool" else C_TYPES[name]
