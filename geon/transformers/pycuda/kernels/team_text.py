"""Emit a loop tree as a CUDA function in which teams of threads share tasks."""

from __future__ import annotations

from collections.abc import Sequence

from ....op_graph.axes.lengths import product
from ...kernels.ir.nest import Loop
from ...loops.access import used_buffers
from ...loops.tree import Space, Tree
from ...printing.nests.loop_lines import indent
from ...printing.nests.statement_blocks import StatementBlock
from ...printing.trees.buffer_names import BufferNames, buffer_name
from ..launches.naming import CudaFunction, CudaKernelNames
from .cooperative_threads import Lines, Team, places
from .launch_shapes import launch_shape
from .scratch_layout import scratch_layout
from .team_statements import TeamStatements
from .thread_text import declare, launched, scratch_pointers
from .tree_choice import TeamTree


def team_function(form: TeamTree, names: CudaKernelNames) -> CudaFunction:
    """Return the function of a tree. Without tasks, one team runs all."""
    team, tree, _ = form
    declare(tree, names)
    ((loops, body),) = launched(tree)
    statements, block = TeamStatements(tree, names, team), StatementBlock()
    pointers = scratch_pointers(tree, statements.buffers, names)
    arrays = array_declarations(tree, statements.buffers, names)
    statements.shared_task(body, block)
    lines, shape = list(map(str, block.lines)), launch_shape(form)
    if scratch_layout(tree, Space.STACK).size != 0:
        size = names.length(product(loop.extent for loop in loops))
        head = f"for (int64_t row = blockIdx.x; row < {size}; row += gridDim.x) {{"
        inner = [*places(loops, "row", names.length), *lines, *team.meet()]
        lines = [*arrays, head, *indent(inner), "}"]
    elif team.beside:
        *rows, column = loops
        lines = [*arrays, *column_of(team, rows, column, names), *lines]
    else:
        lines = [*arrays, *row_of(team, loops, names), *lines]
    lines = [*team.start(), *pointers, *lines]
    return names.function(lines, shape.grid, shape.threads, shape.meets)


def row_of(team: Team, rows: Sequence[Loop], names: CudaKernelNames) -> Lines:
    """Return the statements that find the task of a thread, and end those without one."""
    if not rows:
        return []
    row, end = "(int64_t)blockIdx.x", []
    if team.rows > 1:
        count = names.length(product(loop.extent for loop in rows))
        row = f"{row} * {team.rows} + threadIdx.x / {team.size}"
        end = [f"if (row >= {count}) return;"]
    return [f"const int64_t row = {row};", *end, *places(rows, "row", names.length)]


def column_of(team: Team, rows: Sequence[Loop], column: Loop, names: CudaKernelNames) -> Lines:
    """Return the statements that find the task of a thread where teams are beside each other.

    Threads without one have the first column of their block, and go to the barriers.
    """
    size, name = names.length(column.extent), column.name
    blocks = names.length((column.extent + team.beside - 1) // team.beside)
    lines = [
        f"const int64_t first_column = (int64_t)blockIdx.x % ({blocks}) * {team.beside};",
        f"int64_t {name} = first_column + threadIdx.x % {team.beside};",
        f"const bool inside = {name} < {size};",
        f"if (!inside) {name} = first_column;",
    ]
    if rows:
        lines.append(f"const int64_t row = (int64_t)blockIdx.x / ({blocks});")
    return [*lines, *places(rows, "row", names.length)]


def array_declarations(tree: Tree, buffers: BufferNames, names: CudaKernelNames) -> Lines:
    """Return the declarations of buffers in shared memory or in a slot of scratch memory."""
    lines, used, slots = list[str](), used_buffers(tree.body), scratch_layout(tree, Space.STACK)
    for number, buffer in enumerate(tree.buffers):
        if number not in used or buffer.space not in (Space.SHARED, Space.STACK):
            continue
        ctype, name = buffers.ctype(number), buffer_name(number)
        buffers.registers.discard(number)
        buffers.declare(number)
        if buffer.space is Space.SHARED:
            assert isinstance(buffer.size, int)
            lines.append(f"__shared__ {ctype} {name}[{max(buffer.size, 1)}];")
        else:
            offset = names.length(slots.offsets[number])
            lines.append(f"{ctype} *const {name} = ({ctype} *)(slot + {offset});")
    if slots.size != 0:
        slot = f"{names.scratch()} + (int64_t)blockIdx.x * ({names.length(slots.size)})"
        lines.insert(0, f"char *const slot = {slot};")
    return lines
