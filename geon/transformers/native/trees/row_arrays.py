"""Private buffers of a loop tree in C: vectors in registers, and row arrays in scratch memory."""

from __future__ import annotations

from collections.abc import Mapping

from ....op_graph.axes.affine import Size
from ...kernels.ir.loop_variables import variables
from ...loops.access import accesses
from ...loops.tree import Combine, PrivateBuffer, Role, Tree, loops_of, walk
from ...printing.nests.parameters import Parameter
from ...printing.trees.buffer_names import BufferNames, buffer_name
from ...sizes.blocks import L1_BYTES
from ...sizes.scratch import lines
from ..names.naming import KernelNames
from ..vectors.vector_ops import is_number

LANE_FOLDS = ("add", "multiply", "maximum", "minimum")  # functions of c/vectors.h
MAX_STACK_ELEMENTS = L1_BYTES // 8  # maximum elements of a row array on the task's stack


def on_stack(array: PrivateBuffer) -> bool:
    """Return True if a row array is on the stack of the task."""
    return isinstance(array.size, int) and array.size <= MAX_STACK_ELEMENTS


def scratch_each(tree: Tree) -> Size:
    """Return the bytes of scratch memory that each thread of a tree needs."""
    return sum_of_lines([tree.buffers[k] for k in in_scratch(tree)])


def sum_of_lines(arrays: list[PrivateBuffer]) -> Size:
    """Return the bytes of arrays that begin at cache lines."""
    total: Size = 0
    for each in arrays:
        total = total + lines(each.size * each.dtype.itemsize)
    return total


def in_scratch(tree: Tree) -> list[int]:
    """Return the row arrays of a tree that are in scratch memory."""
    return [k for k, each in enumerate(tree.buffers) if each.of_rows and not on_stack(each)]


class LaneBuffers(BufferNames):
    """The private buffers of a C function; those over lanes that are no vectors are arrays."""

    def __init__(
        self, tree: Tree, told: Mapping[int, Parameter] | None, names: KernelNames
    ) -> None:
        lanes = {loop.variable for loop in loops_of(tree.body) if loop.role is Role.VECTOR}
        super().__init__(tree, told, " GEON_IN_LINES" if lanes else "")
        self.names = names
        assert tree.vectors is not None
        itemsize = tree.vectors.itemsize
        for combine in [each for each, _ in walk(tree.body) if isinstance(each, Combine)]:
            if combine.reducer.folds is None or combine.reducer.folds.name not in LANE_FOLDS:
                self.registers -= {*combine.of}
        for each in accesses(tree.body):
            memory, number = each.memory
            if memory == "buffer" and not is_number(tree.buffers[number].dtype, itemsize):
                if variables(each.offset) & lanes:
                    self.registers.discard(number)

    def array(self, number: int) -> str:
        """Return the declaration of an array, of a large row array the pointer to it."""
        large = in_scratch(self.tree)
        if number not in large:
            return super().array(number)
        before = [self.tree.buffers[k] for k in large[: large.index(number)]]
        place = f"{self.scratch()} + {self.names.length(sum_of_lines(before))}"
        return f"{self.ctype(number)} *restrict {buffer_name(number)} = (void *)({place});"

    def scratch(self) -> str:
        """Return the pointer to the thread's scratch memory."""
        return self.names.own_scratch(scratch_each(self.tree))

    def declare_scratch(self) -> None:
        """Declare the parameters that row arrays need."""
        for number in in_scratch(self.tree):
            self.array(number)
