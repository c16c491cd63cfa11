"""Rules that schedule trees for GPUs, in the order in which they are applied.

A task is the work of one thread: iterations of tasks around each other are numbered row by row, and
neighbouring threads have neighbouring numbers. Outermost loops are launched together.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from ...op_graph.axes.affine import AffineIndex, Size
from ...op_graph.axes.lengths import is_multiple
from ..kernels.ir.nest import Nest, Store
from ..kernels.ir.scalar_code import Load, RandomBits
from ..kernels.ir.scalar_code import walk as walk_scalars
from . import transformations as shape
from .from_nest import from_nest
from .schedule_rule import ScheduleRule, applied
from .tree import (
    Body,
    Fold,
    Kind,
    LoopNode,
    Role,
    Tree,
    Write,
    find,
    loops_of,
    require,
    values_of,
    walk,
)
from .work import cost, varying

ELEMENTS_PER_VECTOR = 4  # elements that a thread loads and stores at once: 16 bytes of float32
MAX_VECTOR_WORK = 96  # operations per element; with more, a thread of four needs too many registers


@dataclass(frozen=True, slots=True)
class OperandAlignment:
    """Alignment of a kernel's memory; operands ``unaligned`` may begin between vectors."""

    unaligned: frozenset[int] = frozenset()


def schedule(nest: Nest, alignment: OperandAlignment) -> Tree:
    """Return the tree of a nest, scheduled for a GPU."""
    tree = from_nest(nest)
    for rule in RULES:
        tree = applied(rule, tree, alignment)
    return tree


# Elements -----------------------------------------------------------------------------------------


def with_several(tree: Tree) -> Iterator[str]:
    """Yield the loops that hold several statements and fold nothing, inner ones first."""
    for loop in reversed(loops_of(tree.body)):
        inner = [each for each, _ in walk(loop.body) if not isinstance(each, LoopNode)]
        if len(inner) > 1 and not any(isinstance(each, Fold) for each in inner):
            yield loop.variable


def distributed(tree: Tree, name: str, alignment: OperandAlignment) -> Tree:
    """Give each statement loops of its own, so that each of its elements has a thread."""
    return shape.distribute(tree, name)[0]


def flat(tree: Tree) -> Iterator[str]:
    """Yield the outermost loops that only store."""
    for loop in tree.body:
        if isinstance(loop, LoopNode) and all(isinstance(each, Write) for each in loop.body):
            yield loop.variable


def vectorised(tree: Tree, name: str, alignment: OperandAlignment) -> Tree:
    """Load and store adjacent elements together; what fills no vector has threads of its own."""
    for write in find(tree, name)[0].body:
        assert isinstance(write, Write)
        nodes = list(walk_scalars(*values_of(write)))
        near = [x for x in nodes if isinstance(x, Load) and is_aligned(x.offset, name)]
        require(bool(near), "no load is of adjacent elements")
        stores = [each for each in write.stores if isinstance(each, Store)]
        aligned = all(is_aligned(store.offset, name) for store in stores)
        require(aligned, "a store is not of adjacent elements")
        operands = {x.operand for x in near} | {store.operand for store in stores}
        require(not operands & alignment.unaligned, "memory may begin between vectors")
        drawn = any(isinstance(x, RandomBits) for x in nodes)
        require(not drawn, "random bits are drawn for each element")
        ops = len(stores) + sum(map(cost, varying(write, {name})))
        require(ops <= MAX_VECTOR_WORK, f"an element has {ops} operations")
    made = shape.split(tree, name, ELEMENTS_PER_VECTOR, Kind.LANES)
    tree = shape.set_kind(made.tree, name, Kind.VECTORS)
    reason = f"a thread loads and stores {ELEMENTS_PER_VECTOR} elements at once"
    return shape.set_role(tree, made.inner, Role.VECTOR, reason)


def is_aligned(offset: AffineIndex, lane: str) -> bool:
    """Return True if a loop accesses adjacent elements, the first of them at a vector's begin."""
    others = [(atom, step) for atom, step in offset.terms.items() if atom != lane]
    whole = all(isinstance(atom, str) and is_whole(step) for atom, step in others)
    return whole and offset.step(lane) == 1 and is_whole(offset.constant)


def is_whole(size: Size) -> bool:
    """Return True if a number of elements is known to fill vectors."""
    return is_multiple(size, ELEMENTS_PER_VECTOR)


# Threads ------------------------------------------------------------------------------------------


def outer(tree: Tree) -> Iterator[str]:
    """Yield the loops that hold all of an outermost loop, from outside."""
    for each in tree.body:
        body: Body = (each,)
        while len(body) == 1 and isinstance(loop := body[0], LoopNode):
            if loop.role is Role.SERIAL:
                yield loop.variable
            body = loop.body


def as_threads(tree: Tree, name: str, alignment: OperandAlignment) -> Tree:
    """Give each iteration a thread."""
    _, above = find(tree, name)
    serial = [each.variable for each in above if each.role is not Role.TASK]
    require(not serial, f"iterations of {', '.join(serial)} run one after another")
    return shape.set_role(tree, name, Role.TASK, "a thread for each iteration")


RULES = (
    ScheduleRule("distribute", with_several, distributed),
    ScheduleRule("vectors", flat, vectorised),
    ScheduleRule("threads", outer, as_threads),
)
