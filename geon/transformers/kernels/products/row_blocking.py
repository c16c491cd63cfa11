"""Row blocking: chains of kernels that run one after another on each block of rows, as data.

Intermediate results, such as the square matrix between two products, have memory for one block.
"""

from __future__ import annotations

from collections.abc import Mapping

from ....lazy_dataclasses import dataclass
from ....op_graph.axes.affine import AffineIndex, Size, strides
from ....op_graph.axes.axes import Axis
from ....op_graph.axes.index_map import Index
from ....op_graph.axes.lengths import Length, evaluate, product
from ....op_graph.op_graph import Op, among, same_ops
from ...sizes.blocks import Cut
from ..ir.nest import Call, Chain, Fused, Nest
from ..nests.index_set_splitting import make_nest
from ..nests.inlining import OperandInliner
from .contraction import Contraction, make_contraction

# Open lengths of a block; the brackets keep them distinct from axis names of users.
ROWS, FIRST_ROW, BATCH = "<rows of a block>", "<first row of a block>", "<batch index {0}>"
COUNT, FIRST = Length.of(ROWS), Length.of(FIRST_ROW)


@dataclass(frozen=True, eq=False, slots=True)
class Extremes:
    """Positions of the extremes of ``lines`` contiguous lines of a block, by the library's ``op``.

    Each line has ``length`` elements; the first position is stored at ``offset`` of the result.
    ``operands`` are the lines and the result.
    """

    op: Op
    lines: Size
    length: Size
    offset: Size
    operands: tuple[Op, ...]


Step = Nest | Contraction | Extremes
Whole = Nest | Contraction | Call


def batch_index(number: int) -> Length:
    """Return the open length that stands for a block's index along batch axis ``number``."""
    return Length.of(BATCH.format(number))


@dataclass(frozen=True, eq=False, slots=True)
class StepOperand:
    """Memory of a step's operand: operand ``number`` of the chain, or block buffer (``inner``)."""

    number: int
    inner: bool


@dataclass(frozen=True, eq=False, slots=True)
class Blocked:
    """A chain of kernels: ``steps`` run in order for each block that ``cut`` defines.

    ``steps`` process one block: their lengths depend on ``COUNT``, ``FIRST`` and ``batch_index``.
    ``whole`` are the same kernels over all rows. ``places`` gives the memory of each step's
    operands. ``operands`` are the values in memory that the chain reads or writes.
    """

    cut: Cut
    steps: tuple[Step, ...]
    whole: tuple[Whole, ...]
    places: tuple[tuple[StepOperand, ...], ...]
    operands: tuple[Op, ...]

    def bindings(self, block: int, lengths: Mapping[str, int]) -> dict[str, int]:
        """Return the open lengths of the block number ``block``, counted over all batches."""
        parts = self.cut.parts(lengths)
        batch, part = divmod(block, parts)
        rows = evaluate(self.cut.rows, lengths)
        first, end = rows * part // parts, rows * (part + 1) // parts
        found = {**lengths, FIRST_ROW: first, ROWS: end - first}
        for number, size in reversed(list(enumerate(self.cut.batch))):
            batch, found[BATCH.format(number)] = divmod(batch, evaluate(size, lengths))
        return found


class StepOperands(OperandInliner):
    """Operands of a step over all rows, including results of earlier steps."""

    def __init__(self, operands: OperandInliner, results: tuple[Op, ...], chain: Chain) -> None:
        super().__init__(operands.layouts, operands.base, results, operands.computed)
        self.chain, self.inner = chain, set(chain.inner)

    def stored(self, op: Op) -> bool:
        """Return True if ``op`` is read from memory, written by a step, a kernel or the user."""
        return not among(op, self.results) if op in self.inner else super().stored(op)


class BlockOperands(StepOperands):
    """Operands of a step on one block; inner values have memory for the block alone.

    ``aligned`` becomes False if a step reads rows of a block at other indices than its own.
    """

    def __init__(self, operands: OperandInliner, results: tuple[Op, ...], chain: Chain) -> None:
        super().__init__(operands, results, chain)
        axes = {axis.name: axis.expression for op in chain.inner for axis in op.axes}
        lasts = [axes[name] - batch_index(k) - 1 for k, name in enumerate(chain.batch)]
        self.known = (axes[chain.rows] - FIRST - COUNT, *lasts)
        self.here: dict[str, AffineIndex] = {}
        self.aligned = True

    def extent(self, axis: Axis) -> Size:
        """Return the extent of a loop over an axis, within one block."""
        if axis.name == self.chain.rows:
            return COUNT
        return 1 if axis.name in self.chain.batch else axis.expression

    def at(self, name: str, index: AffineIndex) -> AffineIndex:
        """Return the index along an axis of the whole value for loop index ``index``."""
        if name == self.chain.rows:
            index = index + FIRST
        elif name in self.chain.batch:
            index = AffineIndex((), batch_index(self.chain.batch.index(name)))
        self.here[name] = index
        return index

    def offset(self, op: Op, index: Index) -> AffineIndex:
        """Return the memory offset of an element of ``op``, within the block buffer if inner."""
        if op not in self.inner:
            return super().offset(op, index)
        order = self.order(op)
        found = AffineIndex()
        steps = strides(tuple([self.extent(op.axes[name]) for name in order]))
        for name, step in zip(order, steps, strict=True):
            if name == self.chain.rows or name in self.chain.batch:
                self.aligned = self.aligned and index[name] == self.here[name]
            if name not in self.chain.batch:
                local = index[name] - FIRST if name == self.chain.rows else index[name]
                found = found + local * step
        return found


def make_step(fused: Fused, operands: OperandInliner) -> Nest | Contraction:
    """Return the kernel of one step."""
    if fused.kind == "contraction":
        return make_contraction(fused, operands)
    return make_nest(fused, operands, alone=False)


def finds_extremes(op: Op) -> bool:
    """Return True if ``op`` is an argmax or argmin along the innermost axis of its argument."""
    if op.primitive.name not in ("argmax", "argmin"):
        return False
    reduced: tuple[str, ...] = op.attrs.reduced
    return reduced == op.args[0].axes.names[-1:]


def make_extremes(op: Op, operands: BlockOperands) -> Extremes | None:
    """Return the step for an argmax or argmin; None if a block's lines are not contiguous."""
    x, chain = op.args[0], operands.chain
    if x not in operands.inner or operands.order(op) != op.axes.names:
        return None
    if op.axes.names[: len(chain.batch) + 1] != (*chain.batch, chain.rows):
        return None
    at = operands.offset(op, {name: operands.at(name, AffineIndex()) for name in op.axes.names})
    count = product(operands.extent(axis) for axis in op.axes)
    return Extremes(op, count, x.axes.lengths[-1], at.constant, (x, op))


def make_blocked(chain: Chain, operands: OperandInliner) -> Blocked | None:
    """Return the kernel of a chain.

    Return None if a step reads other rows of a block than it computes, or other operands than over
    all rows.
    """
    steps: list[Step] = []
    whole: list[Whole] = []
    places: list[tuple[StepOperand, ...]] = []
    slots = dict(zip(chain.inner, chain.slots, strict=True))
    for result in operands.results:
        operands.number(result)
    for fused, results in chain.steps:
        own = BlockOperands(operands, results, chain)
        if fused.kind == "call":
            extremes = make_extremes(results[0], own)
            if extremes is None:
                return None
            steps.append(extremes)
            whole.append(Call(results[0]))
        else:
            made = make_step(fused, StepOperands(operands, results, chain))
            steps.append(make_step(fused, own))
            whole.append(made)
            if not same_ops(steps[-1].operands, made.operands):
                return None  # a guard is decided for all rows but not for a block
        if not own.aligned:
            return None
        places.append(tuple([
            StepOperand(slots[op], True) if op in slots else StepOperand(operands.number(op), False)
            for op in steps[-1].operands
        ]))  # fmt: skip
    axes = {axis.name: axis for op in chain.inner for axis in op.axes}
    memory: dict[int, Size] = {}
    for op, slot in slots.items():
        others = op.axes.without([chain.rows, *chain.batch])
        memory[slot] = others.size * op.dtype.itemsize
    batch = tuple([axes[name].expression for name in chain.batch])
    held = tuple([memory[slot] for slot in range(len(memory))])
    return Blocked(
        Cut(batch, axes[chain.rows].expression, held),
        tuple(steps),
        tuple(whole),
        tuple(places),
        tuple(operands.numbers),
    )


def whole_sizes(step: Whole) -> tuple[Size, ...]:
    """Return the batches, rows and columns of a contraction over all blocks; () for others."""
    if not isinstance(step, Contraction):
        return ()
    return tuple(
        [product(p.extent for p in each) for each in (step.batch, step.rows, step.columns)]
    )
