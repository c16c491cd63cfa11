"""Name and declare the private buffers of a loop tree in a C function."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from ....op_graph.axes.affine import Size
from ....op_graph.values.dtypes import name_of
from ...kernels.ir.loop_variables import variables
from ...loops.access import accesses, used_buffers
from ...loops.tree import Body, LoopNode, Role, Tree, loops_of
from ..nests.parameters import Parameter
from ..scalars.c_types import C_TYPES

SERIAL = (Role.SERIAL, Role.SIMD, Role.TASK)  # roles of loops that are loops in C


def buffer_name(number: int) -> str:
    """Return the name of a private buffer."""
    return f"b{number}"


class BufferNames:
    """The private buffers of a function; ``told`` are those that are its parameters.

    A buffer in ``registers`` is a scalar or vector variable, declared by its first store. Others
    are arrays, declared in the innermost body that has all their accesses, with ``attribute``.
    Elements of iterations of loops with role ``together`` are one variable.
    """

    def __init__(
        self,
        tree: Tree,
        told: Mapping[int, Parameter] | None = None,
        attribute: str = "",
        together: Role = Role.VECTOR,
    ) -> None:
        self.tree, self.attribute = tree, attribute
        told = told or {}
        self.declared = {*told}
        self.registers = set(range(len(tree.buffers))) - arrays_of(tree, together)
        self.registers |= {number for number, each in told.items() if not each.pointer}

    def ctype(self, number: int) -> str:
        """Return the C type of an element."""
        return C_TYPES[name_of(self.tree.buffers[number].dtype)]

    def size(self, number: int) -> Size:
        """Return the number of elements of an array."""
        return self.tree.buffers[number].size

    def declare(self, number: int) -> bool:
        """Return True for a buffer that is not declared yet, and take it as declared."""
        if number in self.declared:
            return False
        self.declared.add(number)
        return True

    def arrays(self, body: Body) -> list[str]:
        """Return the declarations of the arrays that begin in a body."""
        uses = Counter([number for each in body for number in used_buffers((each,))])
        here = used_buffers(tuple([each for each in body if not is_serial(each)]))
        begin = [n for n, count in sorted(uses.items()) if count > 1 or n in here]
        return [
            self.array(number)
            for number in begin
            if number not in self.registers and self.declare(number)
        ]

    def array(self, number: int) -> str:
        """Return the declaration of an array."""
        size, name = self.size(number), buffer_name(number)
        return f"{self.ctype(number)} {name}[{size}]{self.attribute};"


def is_serial(statement: object) -> bool:
    """Return True for a loop that is a loop in C."""
    return isinstance(statement, LoopNode) and statement.role in SERIAL


def arrays_of(tree: Tree, together: Role) -> set[int]:
    """Return the buffers with more elements than one for each iteration of a loop ``together``."""
    lanes = {loop.variable for loop in loops_of(tree.body) if loop.role is together}
    return {
        number
        for (memory, number), offset in ((each.memory, each.offset) for each in accesses(tree.body))
        if memory == "buffer" and (offset.constant != 0 or variables(offset) - lanes)
    }
