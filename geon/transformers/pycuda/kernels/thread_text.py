"""Emit a loop tree as a CUDA function whose threads are independent: one for each task."""

from __future__ import annotations

from ....op_graph.axes.affine import Size
from ....op_graph.axes.lengths import product
from ...kernels.ir.nest import Loop
from ...loops.access import operands_in, sizes_in, used_buffers
from ...loops.tree import Body, LoopNode, Role, Space, Tree
from ...printing.nests.loop_lines import indent
from ...printing.nests.parameters import NamedQuotients
from ...printing.nests.statement_blocks import StatementBlock
from ...printing.trees.buffer_names import BufferNames, buffer_name
from ..launches.launch_ir import THREADS_PER_BLOCK, Grid
from ..launches.naming import CudaFunction, CudaKernelNames
from .cooperative_threads import Lines, places
from .scratch_layout import scratch_layout
from .thread_statements import ThreadStatements


def thread_function(tree: Tree, names: CudaKernelNames) -> CudaFunction:
    """Return the function of a tree; threads are numbered through its outermost statements."""
    declare(tree, names)
    buffers = BufferNames(tree, together=Role.THREAD)
    lines = scratch_pointers(tree, buffers, names)
    lines += [f"int64_t at = (int64_t)blockIdx.x * {THREADS_PER_BLOCK} + threadIdx.x;"]
    counts: list[Size] = []
    for loops, body in launched(tree):
        if counts:
            lines += [*indent(["return;"]), "}", f"at -= {names.length(counts[-1])};"]
        counts.append(product(loop.extent for loop in loops))
        block = StatementBlock()
        ThreadStatements(tree, names, buffers).body(body, block)
        lines.append(f"if (at < {names.length(counts[-1])}) {{")
        lines += indent([*places(loops, "at", names.length), *map(str, block.lines)])
    grid = Grid(sum(counts, start=0), THREADS_PER_BLOCK)
    return names.function([*lines, "}"], grid, THREADS_PER_BLOCK, False)


def declare(tree: Tree, names: CudaKernelNames) -> None:
    """Declare the operands and lengths of a tree as parameters, and name quotients of lengths."""
    names.quotients = NamedQuotients()
    for number in operands_in(tree):
        names.operand(number)
    for size in sizes_in(tree):
        names.length(size)


def scratch_pointers(tree: Tree, buffers: BufferNames, names: CudaKernelNames) -> Lines:
    """Return the declarations of the pointers to the buffers that all tasks share."""
    lines, used = list[str](), used_buffers(tree.body)
    for number, offset in scratch_layout(tree, Space.SCRATCH).offsets.items():
        if number in used:
            ctype, name = buffers.ctype(number), buffer_name(number)
            buffers.registers.discard(number)
            buffers.declare(number)
            place = f"{names.scratch()} + {names.length(offset)}"
            lines.append(f"{ctype} *const {name} = ({ctype} *)({place});")
    return lines


def launched(tree: Tree) -> list[tuple[list[Loop], Body]]:
    """Return the tasks that are launched together: their loops, and the statements of one task.

    Statements outside of tasks are those of one thread, which keeps the buffers that they share.
    """
    found: list[tuple[list[Loop], Body]] = []
    lone: int | None = None  # the position of the statements outside of tasks
    for each in tree.body:
        loops: list[Loop] = []
        body: Body = (each,)
        while len(body) == 1 and isinstance(loop := body[0], LoopNode) and loop.role is Role.TASK:
            assert loop.size is not None, "the number of tasks changes with no loop"
            loops.append(Loop(loop.variable, (), loop.size))
            body = loop.body
        if not loops and lone is not None:
            found[lone] = [], (*found[lone][1], *body)
            continue
        if not loops:
            lone = len(found)
        found.append((loops, body))
    return found
