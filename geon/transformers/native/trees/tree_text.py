"""Emit a loop tree as C functions: one for each loop over tasks, and one that runs them."""

from __future__ import annotations

from ....op_graph.axes.affine import Size
from ...kernels.analysis.work_estimate import ELEMENTARY_COST_OPS
from ...kernels.ir.nest import Store
from ...kernels.ir.scalar_code import (
    Apply,
    Kept,
    LengthNumber,
    Number,
    RandomBits,
    Scalar,
    Wrapped,
    children_of,
    indices,
)
from ...kernels.ir.scalar_code import walk as walk_scalars
from ...loops.access import most, operands_in, sizes_in
from ...loops.cpu_rules import puts
from ...loops.tree import (
    Body,
    Choose,
    LoopNode,
    Role,
    Tree,
    Write,
    loops_of,
    values_of,
    variables,
    walk,
)
from ...printing.nests.parameters import Parameter
from ...printing.nests.statement_blocks import StatementBlock
from ..names.loop_lines import indent
from ..names.naming import KernelNames
from ..vectors.lanes import Vectors
from ..vectors.nontemporal_stores import Passing
from .tasks import Tasks
from .tree_statements import TreeStatements


def tree_text(tree: Tree, names: KernelNames, name: str, passing: Passing | None = None) -> str:
    """Return the C functions of a tree; ``name`` is the one to call.

    ``passing`` are the stores that may pass by the caches, if there are any.
    """
    names.calls(["geon_vectors"])
    return _TreeFunctions(tree, names, name, passing).text()


def declare(tree: Tree, names: KernelNames, passing: Passing | None) -> None:
    """Declare the parameters of a tree's functions, which all of them have."""
    for number in operands_in(tree):
        names.operand(number)
    touched = () if passing is None else (passing.stored, passing.touched)
    for size in (*sizes_in(tree), *touched):
        names.length(size)


def vectors_of(tree: Tree) -> Vectors:
    """Return the vector types of a tree's loops over lanes."""
    lanes = [loop for loop in loops_of(tree.body) if loop.role is Role.VECTOR]
    store = next(
        store
        for each, above in walk(tree.body)
        if isinstance(each, Write) and above and above[-1].role is Role.VECTOR
        for store in each.stores
        if isinstance(store, Store)
    )
    widest = max(each.size for each in lanes if isinstance(each.size, int))
    return Vectors(widest, store.dtype.itemsize, [each.variable for each in lanes])


class _TreeFunctions(Tasks):
    def __init__(self, tree: Tree, names: KernelNames, name: str, passing: Passing | None) -> None:
        super().__init__(names, name)
        self.tree, self.vectors, self.passing = tree, vectors_of(tree), passing
        self.functions: list[list[str]] = []
        declare(tree, names, passing)

    def text(self) -> str:
        """Return all functions."""
        main = self.printed(self.tree.body)
        return self.whole([*self.functions, [self.head(), "{", *indent(main), "}"]])

    def printed(self, body: Body) -> list[str]:
        """Return the statements of the main function, and add the functions of tasks."""
        lines: list[str] = []
        for each in body:
            if isinstance(each, LoopNode) and each.role is Role.TASK:
                lines += self.task(each)
            elif isinstance(each, Choose):
                lines += self.choice(each)
            else:
                block = StatementBlock()
                TreeStatements(self.tree, self.names, self.vectors).body((each,), block)
                lines += ["{", *indent(list(map(str, block.lines))), "}"]
        return lines

    def choice(self, each: Choose) -> list[str]:
        """Return a choice between forms of the kernel."""
        block, statements = StatementBlock(), TreeStatements(self.tree, self.names, self.vectors)
        found = [text for guard in each.guards for text in statements.scalars.guard(block, guard)]
        lines = [f"if ({' && '.join(found)}) {{", *indent(self.printed(each.then))]
        return [*lines, "} else {", *indent(self.printed(each.otherwise)), "}"]

    def task(self, loop: LoopNode) -> list[str]:
        """Return the statements that run a loop's iterations as tasks; add the task's function."""
        name, length = f"{self.name}_rows{len(self.functions) // 2 or ''}", self.names.length
        assert loop.size is not None
        size = length(loop.size)
        block = StatementBlock()
        statements = TreeStatements(self.tree, self.names, self.vectors)
        statements.serial(loop, block, "begin", "end")
        body = [
            "const int64_t begin = task * grain;",
            f"const int64_t end = begin + grain < {size} ? begin + grain : {size};",
            *self.past(loop),
            *map(str, block.lines),
        ]
        if self.passes(loop):
            body.append("geon_past_done(passes);")
        extra = [Parameter("grain", "int64_t", None, False)]
        self.functions += [self.structure(name, extra), self.function(name, body, extra)]
        return ["{", *indent([
            f"const int64_t size = {size}, grain = geon_grain(size, {length(work(loop.body))});",
            "const int64_t parts = (size + grain - 1) / grain;",
            *self.launch(name, {"grain": "grain"}),
        ]), "}"]  # fmt: skip

    def passes(self, loop: LoopNode) -> frozenset[int]:
        """Return the operands of stores in a loop that may pass by the caches."""
        writes = [each for each, _ in walk(loop.body) if isinstance(each, Write)]
        return frozenset().union(*[write.streamed for write in writes])

    def past(self, loop: LoopNode) -> list[str]:
        """Return the declaration of the flag that stores pass by the caches."""
        operands = sorted(self.passes(loop))
        if not operands:
            return []
        assert self.passing is not None
        self.names.calls(["geon_past_put"])  # its file defines the functions called here
        test = self.passing.test(self.names)
        parts = [f"(uintptr_t){self.names.operand(k)}" for k in operands]
        for store in [store for k in operands for store, _ in puts(self.tree, k)]:
            steps = [*store.offset.terms.values(), store.offset.constant]
            open_ones = [step for step in steps if not isinstance(step, int)]
            parts += [f"({self.names.length(x * store.dtype.itemsize)})" for x in open_ones]
        width = self.vectors.count * self.vectors.itemsize
        low = f"(({' | '.join(dict.fromkeys(parts))}) & {width - 1})"
        return [f"const _Bool passes = {test} && {low} == 0;"]


def work(body: Body) -> Size:
    """Return the approximate number of machine operations of statements."""
    total: Size = 0
    for each, above in walk(body):
        times: Size = 1
        for loop in above:
            size = most(loop.extent)
            times = times * (1 if size is None else size)
        if isinstance(each, Write):
            inner = {loop.variable for loop in above[-2:]}
            total = total + times * (len(each.stores) + sum(map(cost, varying(each, inner))))
    return total


def varying(write: Write, inner: set[str]) -> list[Scalar]:
    """Return the values of a statement that change with some variables."""
    found: dict[int, Scalar] = {}
    for node in walk_scalars(*values_of(write)):
        own = any(variables(index) & inner for index in indices(node))
        if own or any(id(part) in found for part in children_of(node)):
            found[id(node)] = node
    return list(found.values())


def cost(node: Scalar) -> int:
    """Return the approximate number of machine operations of a value, without its operands."""
    if isinstance(node, (Number, LengthNumber, Kept, Wrapped)):
        return 0
    costly = isinstance(node, RandomBits) or (
        isinstance(node, Apply) and node.row.cost == "expensive"
    )
    return ELEMENTARY_COST_OPS if costly else 1
