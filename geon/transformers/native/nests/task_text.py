"""Emit the tasks of a loop nest: their invariants, random buffers and row arrays."""

from __future__ import annotations

from ....op_graph.axes.affine import Size
from ...printing.nests.pass_text import PrintedNest, PrintedPass
from ...printing.nests.scalar_statements import HIDDEN
from ...sizes.scratch import lines
from ..names.naming import KernelNames
from ..trees.row_arrays import on_stack
from ..trees.tasks import Tasks
from ..vectors.nontemporal_stores import Passing
from .pass_loops import Passes
from .random_buffer import declare_buffers


def printed_passes(nest: PrintedNest) -> list[PrintedPass]:
    """Return all passes of a nest."""
    lines = (*nest.row.lines, *nest.ending.lines)
    return [line for line in lines if isinstance(line, PrintedPass)]


class NestTasks(Tasks):
    """The tasks of one nest; ``name`` is the function that divides the work."""

    def __init__(
        self,
        nest: PrintedNest,
        names: KernelNames,
        name: str,
        vector_bytes: int,
        passing: Passing | None,
    ) -> None:
        super().__init__(names, name)
        self.nest, self.passing = nest, passing
        self.passes, self.lanes = Passes(nest, names, vector_bytes), vector_bytes // 4
        loops = [*nest.rows, *(loop for made in printed_passes(nest) for loop in made.loops)]
        for loop in [*loops, nest.lanes] if nest.lanes is not None else loops:
            self.passes.extent(
                loop
            )  # adds the lengths as parameters before the first function is emitted
        self.buffers()  # likewise adds scratch memory

    def top(self) -> list[str]:
        """Return the statements of a task before its first row: invariants, random buffers."""
        return [*map(str, self.nest.top.lines), *self.windows(self.nest.row.lines)]

    def hidden(self, positive: str) -> list[str]:
        """Return the declaration of a factor that is 1 if ``positive`` > 0, if loads use it.

        It hides strides from the compiler.
        """
        return [f"const int64_t {HIDDEN} = {positive} > 0;"] if self.nest.hides else []

    def windows(self, lines: list[object]) -> list[str]:
        """Return the declarations of the random buffers of a block's passes."""
        passes = [line for line in lines if isinstance(line, PrintedPass)]
        return declare_buffers([window for made in passes for window in made.windows])

    def buffers(self) -> list[str]:
        """Return the declarations of row arrays.

        Small arrays are on the stack, others in the thread's scratch memory, aligned to cache
        lines.
        """
        found: list[str] = []
        places = []
        offset: Size = 0
        for array in self.nest.arrays:
            if on_stack(array):
                found.append(f"{array.ctype} {array.name}[{array.size}];")
                continue
            at = f"row_memory + {self.names.length(offset)}"
            places.append(f"{array.ctype} *restrict {array.name} = (void *)({at});")
            offset = offset + lines(array.size * array.itemsize)
        if places:
            found += [f"char *const row_memory = {self.names.own_scratch(offset)};", *places]
        return found
