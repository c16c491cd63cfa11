"""Rules that schedule trees for GPUs, in the order in which they are applied.

A task is the work of one thread, or of a team of them. Iterations of tasks around each other are
numbered row by row, and neighbouring threads have neighbouring numbers. Outermost loops are
launched together.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from ...kernels.analysis.op_counts import operations
from ...kernels.ir.nest import Nest, Store
from ...kernels.ir.scalar_code import Load, RandomBits
from ...kernels.ir.scalar_code import walk as walk_scalars
from .. import transformations as shape
from ..access import used_buffers
from ..from_nest import from_nest
from ..simplify import grouped, simplified
from ..tree import (
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
from ..work import varying
from .gpu_threads import ELEMENTS_PER_VECTOR, Threads, is_aligned
from .reductions import hoisted
from .schedule_rule import ScheduleRule, applied
from .teams import first_pass, in_team, passes, passes_of

MAX_VECTOR_WORK = 96  # operations per element; with more, a thread of four needs too many registers


def schedule(nest: Nest, threads: Threads) -> Tree:
    """Return the tree of a nest, scheduled for a GPU."""
    return scheduled(from_nest(nest), threads)


def scheduled(tree: Tree, threads: Threads) -> Tree:
    """Return a tree, scheduled for a GPU."""
    if any(loop.size == 0 for loop in loops_of(tree.body)):
        tree = simplified(tree)  # no thread is launched for nothing
    for rule in RULES:
        tree = applied(rule, tree, threads)
    return tree


# Elements -----------------------------------------------------------------------------------------


def with_several(tree: Tree) -> Iterator[str]:
    """Yield the loops that hold several statements and fold nothing, inner ones first."""
    for loop in reversed(loops_of(tree.body)):
        inner = [each for each, _ in walk(loop.body) if not isinstance(each, LoopNode)]
        if len(inner) > 1 and not any(isinstance(each, Fold) for each in inner):
            yield loop.variable


def distributed(tree: Tree, name: str, threads: Threads) -> Tree:
    """Give each statement loops of its own, so that each of its elements has a thread."""
    if threads.team > 1:
        return tree
    uses = Counter([n for each in find(tree, name)[0].body for n in used_buffers((each,))])
    require(max(uses.values(), default=1) == 1, "statements share values, which one thread keeps")
    return shape.distribute(tree, name)[0]


def flat(tree: Tree) -> Iterator[str]:
    """Yield the outermost loops that only store."""
    for loop in tree.body:
        if isinstance(loop, LoopNode) and all(isinstance(each, Write) for each in loop.body):
            yield loop.variable


def vectorised(tree: Tree, name: str, threads: Threads) -> Tree:
    """Load and store adjacent elements together; what fills no vector has threads of its own."""
    if threads.team > 1:
        return tree
    for write in find(tree, name)[0].body:
        assert isinstance(write, Write)
        nodes = list(walk_scalars(*values_of(write)))
        near = [x for x in nodes if isinstance(x, Load) and is_aligned(x.offset, name)]
        require(bool(near), "no load is of adjacent elements")
        stores = [each for each in write.stores if isinstance(each, Store)]
        aligned = all(is_aligned(store.offset, name) for store in stores)
        require(aligned, "a store is not of adjacent elements")
        operands = {x.operand for x in near} | {store.operand for store in stores}
        require(not operands & threads.unaligned, "memory may begin between vectors")
        drawn = any(isinstance(x, RandomBits) for x in nodes)
        require(not drawn, "random bits are drawn for each element")
        ops = len(stores) + sum(map(operations, varying(write, {name})))
        require(ops <= MAX_VECTOR_WORK, f"an element has {ops} operations")
    made = shape.split(tree, name, ELEMENTS_PER_VECTOR, Kind.LANES)
    tree = shape.set_kind(grouped(made.tree, made.inner), name, Kind.VECTORS)
    reason = f"a thread loads and stores {ELEMENTS_PER_VECTOR} elements at once"
    return shape.set_role(tree, made.inner, Role.VECTOR, reason)


# Threads ------------------------------------------------------------------------------------------


def outer(tree: Tree) -> Iterator[str]:
    """Yield the loops that hold all of an outermost loop, from outside."""
    for each in tree.body:
        body: Body = (each,)
        while len(body) == 1 and isinstance(loop := body[0], LoopNode):
            if loop.role is Role.SERIAL:
                yield loop.variable
            body = loop.body


def as_threads(tree: Tree, name: str, threads: Threads) -> Tree:
    """Give each iteration a thread, or each row a team."""
    loop, above = find(tree, name)
    shared = {each.variable for each in passes_of(tree)} if threads.team > 1 else set()
    if shared & {each.variable for each in (*above, loop)}:
        return tree
    serial = [each.variable for each in above if each.role is not Role.TASK]
    require(not serial, f"iterations of {', '.join(serial)} run one after another")
    who = "a thread" if threads.team == 1 else f"a team of {threads.team} threads"
    return shape.set_role(tree, name, Role.TASK, f"{who} for each iteration")


RULES: tuple[ScheduleRule[Threads], ...] = (
    ScheduleRule("distribute", with_several, distributed),
    ScheduleRule("vectors", flat, vectorised),
    ScheduleRule("values of rows", passes, hoisted),
    ScheduleRule("threads", outer, as_threads),
    ScheduleRule("team", first_pass, in_team),
)
