"""Print the trees of packing functions as C: what only copies calls functions of all products."""

from __future__ import annotations

from ....op_graph.axes.affine import AffineIndex, variable
from ...kernels.ir.loop_variables import variables
from ...kernels.ir.nest import Keep, Loop
from ...kernels.ir.scalar_code import Kept, Load, Number
from ...loops.tree import LoopNode, Role, Tree, Write
from ...printing.nests.parameters import NamedQuotients, Parameter
from ...printing.nests.statement_blocks import StatementBlock
from ...printing.trees.buffer_names import buffer_name
from ..names.naming import KernelNames
from ..trees.vector_statements import VectorStatements
from ..vectors.lanes import Vectors
from .multi_index import index_name
from .packing_trees import PARAMETERS, STAGED, TO


def packing_text(
    tree: Tree, names: KernelNames, batch: tuple[Loop, ...], ctype: str, tag: str
) -> list[str]:
    """Return the statements of a packing function; the indices of ``batch`` are in scope.

    ``tag`` is the suffix of the functions of products with elements of type ``ctype``.
    """
    outer = names.quotients, names.own
    names.quotients, names.own = NamedQuotients(), PARAMETERS
    statements = PackingStatements(tree, names, tag, ctype)
    statements.scalars.spelled = {loop.name: index_name(loop.name) for loop in batch}
    block = StatementBlock()
    statements.body(tree.body, block)
    lines = [*statements.begins, *statements.text(block)]
    if names.quotients.lines:  # by lengths that are 0 only where there is nothing to pack
        lines = ["if (count == 0 || depth_run == 0) return;", *names.quotients.lines, *lines]
    names.quotients, names.own = outer
    return lines


class PackingStatements(VectorStatements):
    """Prints a tree whose buffers are the parameters of a packing function."""

    def __init__(self, tree: Tree, names: KernelNames, tag: str, ctype: str) -> None:
        assert tree.vectors is not None
        vectors = Vectors(tree.vectors.count, tree.vectors.itemsize, ())
        own = {k: Parameter(buffer_name(k), ctype, None) for k in (TO, STAGED)}
        super().__init__(tree, names, vectors, told=own)
        self.tag = tag

    def counted(self, loop: LoopNode, block: StatementBlock) -> None:
        """Emit a loop; one or two that copy, transpose or clear elements are a call."""
        inner = loop.body[0] if len(loop.body) == 1 else None
        loops = [loop, inner] if isinstance(inner, LoopNode) else [loop]
        (write, *others) = loops[-1].body
        kept = write.stores[0] if isinstance(write, Write) and not others else None
        plain = all(each.role in (Role.SERIAL, Role.SIMD) for each in loops)
        call = self.call(loops, kept, block) if plain and isinstance(kept, Keep) else None
        if call is None:
            super().counted(loop, block)
            return
        limits = [self.scalars.index(block, each.extent) for each in loops if each.extent.terms]
        head = f"if ({' && '.join([f'{each} > 0' for each in limits])}) " if limits else ""
        block.lines.append(f"{head}{call}")

    def call(self, loops: list[LoopNode], keep: Keep, block: StatementBlock) -> str | None:
        """Return the call that does what loops around a store do, or None."""
        outer, inner = loops[0].variable if len(loops) > 1 else "", loops[-1].variable
        value, names = keep.value, {each.variable for each in loops}
        places = [keep.offset, *([value.offset] if isinstance(value, (Load, Kept)) else [])]
        atoms = [atom for place in places for atom in place.terms if not isinstance(atom, str)]
        if any(variables(variable(atom)) & names for atom in atoms):
            return None
        kind = "clear" if isinstance(value, Number) else None
        sides = [loops[0].extent if outer else AffineIndex((), 1), loops[-1].extent]
        if isinstance(value, (Load, Kept)) and value.dtype is self.tree.buffers[TO].dtype:
            steps = [value.offset.step(name) for name in (outer, inner)]
            if steps[1] == 1:
                kind = "copy"
            elif steps[0] == 1:
                kind, sides = "transpose", sides[::-1]
        if kind is None or keep.offset.step(inner) != 1:
            return None
        arguments = [self.place(buffer_name(keep.number), keep.offset, names, block)]
        arguments.append(self.names.length(keep.offset.step(outer)))
        if isinstance(value, (Load, Kept)):
            arguments.append(self.place(self.memory(value), value.offset, names, block))
            arguments.append(self.names.length(steps[1] if kind == "transpose" else steps[0]))
        arguments += [self.scalars.index(block, each) for each in sides]
        return f"geon_{kind}_{self.tag}({', '.join(arguments)});"

    def place(
        self, memory: str, offset: AffineIndex, names: set[str], block: StatementBlock
    ) -> str:
        """Return the pointer to an element where the variables ``names`` are 0."""
        terms = [(atom, step) for atom, step in offset.terms.items() if atom not in names]
        return f"{memory} + {self.scalars.index(block, AffineIndex(terms, offset.constant))}"
