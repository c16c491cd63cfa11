"""Kernels that run one after another on one block of rows after the other, as data.

What only they read, such as the square between two products, has memory for one block alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ....op_graph.axes.affine import Affine, Size, strides
from ....op_graph.axes.axes import Axis
from ....op_graph.axes.index_map import Index
from ....op_graph.axes.lengths import Length, evaluate, product
from ....op_graph.op_graph import Op, among, same_ops
from ...sizes.blocks import Cut
from ..ir.nest import Call, Chain, Fused, Nest
from ..nests.index_set_splitting import make_nest
from ..nests.inlining import Operands
from .contraction import Contraction, make_contraction

# Open lengths of a block, which no axis of a user is called.
ROWS, FIRST_ROW, BATCH = "<rows of a block>", "<first row of a block>", "<batch index {0}>"
COUNT, FIRST = Length.of(ROWS), Length.of(FIRST_ROW)


@dataclass(frozen=True, eq=False, slots=True)
class Extremes:
    """The position of the extreme of each of so many ``lines`` of a block, which adjoin, by the
    library's function for ``op``; the first goes to ``offset`` of the result.

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
    """The index of the batch axis of this number that a block belongs to."""
    return Length.of(BATCH.format(number))


@dataclass(frozen=True, eq=False, slots=True)
class Place:
    """Where an operand of a step lies: operand ``number`` of all, or inner memory ``number``."""

    number: int
    inner: bool


@dataclass(frozen=True, eq=False, slots=True)
class Blocked:
    """The ``steps`` in order, for one block after the other of those that ``cut`` makes.

    ``steps`` are those of one block: their lengths depend on ``COUNT``, ``FIRST`` and
    ``batch_index``; ``whole`` are the same over all rows. ``places`` say for each step where its
    operands lie.
    """

    cut: Cut
    steps: tuple[Step, ...]
    whole: tuple[Whole, ...]
    places: tuple[tuple[Place, ...], ...]
    operands: tuple[Op, ...]

    def bindings(self, block: int, lengths: Mapping[str, int]) -> dict[str, int]:
        """The lengths of the block of this number, among those of all batches."""
        parts = self.cut.parts(lengths)
        batch, part = divmod(block, parts)
        rows = evaluate(self.cut.rows, lengths)
        first, end = rows * part // parts, rows * (part + 1) // parts
        found = {**lengths, FIRST_ROW: first, ROWS: end - first}
        for number, size in reversed(list(enumerate(self.cut.batch))):
            batch, found[BATCH.format(number)] = divmod(batch, evaluate(size, lengths))
        return found


class StepOperands(Operands):
    """The operands of a step over all rows, what earlier steps computed among them."""

    def __init__(self, operands: Operands, results: tuple[Op, ...], chain: Chain) -> None:
        super().__init__(operands.layouts, operands.base, results, operands.computed)
        self.chain, self.inner = chain, set(chain.inner)

    def stored(self, op: Op) -> bool:
        """Whether ``op`` is read from memory that an earlier step or kernel, or the user, wrote."""
        return not among(op, self.results) if op in self.inner else super().stored(op)


class BlockOperands(StepOperands):
    """The operands of a step on one block: what is of the block alone lies in memory by itself.

    ``aligned`` turns false where a step reads rows of a block at other indices than its own.
    """

    def __init__(self, operands: Operands, results: tuple[Op, ...], chain: Chain) -> None:
        super().__init__(operands, results, chain)
        axes = {axis.name: axis.expression for op in chain.inner for axis in op.axes}
        lasts = [axes[name] - batch_index(k) - 1 for k, name in enumerate(chain.batch)]
        self.known = (axes[chain.rows] - FIRST - COUNT, *lasts)
        self.here: dict[str, Affine] = {}
        self.aligned = True

    def extent(self, axis: Axis) -> Size:
        """The turns of a loop over an axis: those of one block."""
        if axis.name == self.chain.rows:
            return COUNT
        return 1 if axis.name in self.chain.batch else axis.expression

    def at(self, name: str, index: Affine) -> Affine:
        """The index of an axis in the whole value where a loop over it is at ``index``."""
        if name == self.chain.rows:
            index = index + FIRST
        elif name in self.chain.batch:
            index = Affine((), batch_index(self.chain.batch.index(name)))
        self.here[name] = index
        return index

    def offset(self, op: Op, index: Index) -> Affine:
        """Where the element of ``op`` at ``index`` lies in its memory, which may be of a block."""
        if op not in self.inner:
            return super().offset(op, index)
        order = self.order(op)
        found = Affine()
        steps = strides(tuple([self.extent(op.axes[name]) for name in order]))
        for name, step in zip(order, steps, strict=True):
            if name == self.chain.rows or name in self.chain.batch:
                self.aligned = self.aligned and index[name] == self.here[name]
            if name not in self.chain.batch:
                local = index[name] - FIRST if name == self.chain.rows else index[name]
                found = found + local * step
        return found


def make_step(fused: Fused, operands: Operands) -> Nest | Contraction:
    """The work of one step."""
    if fused.kind == "contraction":
        return make_contraction(fused, operands)
    return make_nest(fused, operands, alone=False)


def finds_extremes(op: Op) -> bool:
    """Whether ``op`` finds the extreme of each line along the innermost axis of its argument."""
    if op.primitive.name not in ("argmax", "argmin"):
        return False
    reduced: tuple[str, ...] = op.attrs[0]
    return reduced == op.args[0].axes.names[-1:]


def make_extremes(op: Op, operands: BlockOperands) -> Extremes | None:
    """The work of a step that finds extremes; None where a block's lines do not adjoin."""
    x, chain = op.args[0], operands.chain
    if x not in operands.inner or operands.order(op) != op.axes.names:
        return None
    if op.axes.names[: len(chain.batch) + 1] != (*chain.batch, chain.rows):
        return None
    at = operands.offset(op, {name: operands.at(name, Affine()) for name in op.axes.names})
    count = product(operands.extent(axis) for axis in op.axes)
    return Extremes(op, count, x.axes.lengths[-1], at.constant, (x, op))


def make_blocked(chain: Chain, operands: Operands) -> Blocked | None:
    """The work of a chain; None where a step reads other rows of a block than it computes, or
    other values than it reads for all rows together.
    """
    steps: list[Step] = []
    whole: list[Whole] = []
    places: list[tuple[Place, ...]] = []
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
                return None  # what is chosen is known for the whole, and for a block is not
        if not own.aligned:
            return None
        places.append(tuple([
            Place(slots[op], True) if op in slots else Place(operands.number(op), False)
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
    """The batches, rows and columns of a contraction, of all its blocks together; else none."""
    if not isinstance(step, Contraction):
        return ()
    return tuple(
        [product(p.extent for p in each) for each in (step.batch, step.rows, step.columns)]
    )
