"""A transformer that computes nests as trees: naive ones, or after random transformations."""

import dataclasses

import numpy as np

from geon.op_graph.axes.lengths import evaluate
from geon.transformers.kernels.ir.nest import Nest
from geon.transformers.loops.access import ONLY, accesses, joined, used
from geon.transformers.loops.from_nest import from_nest
from geon.transformers.loops.show import show
from geon.transformers.loops.tree import Choose, LoopNode, body_of, loops_in, walk
from tests.kernels import running

from .interpreter import run_trees
from .moves import move


def nests_of(f):
    """The nests of a computation, with their pieces."""
    for kernel in f.stages().schedule.kernels:
        if isinstance(kernel.work, Nest):
            yield from (kernel.work, *kernel.work.pieces)


def compare(nest, memory, lengths, random, moves, done, make=from_nest):
    """Compute a nest as the tree that ``make`` returns, after random moves, against the nest."""
    tree, steps = make(nest), []
    for _ in range(moves):
        name, after = move(tree, random, done)
        done[name][after is None or after is tree] += 1
        if after is None:
            continue
        tree = after
        steps.append(name)
        if random.integers(4) == 0:
            show(tree)  # reads values, which later moves then find computed
        check_facts(tree)
    agree(nest, tree, memory, lengths, random, steps)


def check_facts(tree):
    """What loops and choices know of themselves, some of it since before a change, is so."""
    for outer in [x for x, _ in walk(tree.body) if isinstance(x, (LoopNode, Choose))]:
        body = body_of(outer)
        ways = [(each.memory, ONLY[each.way]) for each in accesses(body)]
        assert [*used(outer).items()] == [*joined(ways).items()], show(tree)
        inside = [each for each, _ in walk(body) if isinstance(each, LoopNode)]
        assert [*loops_in(outer).values()] == inside
        assert [*loops_in(outer)] == [each.variable for each in inside]


def agree(nest, tree, memory, lengths, random, steps=()):
    """Compute a nest as a tree, which ``steps`` made, or as several, against the nest itself."""
    trees = tree if isinstance(tree, list) else [tree]
    wanted = [np.array(each) for each in memory]
    running.run(dataclasses.replace(nest, pieces=(), short=None, holds=()), wanted, lengths)
    found = [np.array(each) for each in memory]
    fill = nest.fill
    if fill is not None and len(found[fill.operand]):
        found[fill.operand][:] = found[fill.source]
    run_trees(trees, found, lengths, random)
    message = "\n".join([str(steps), *map(show, trees)])
    for ours, theirs in zip(found, wanted, strict=True):
        if ours.dtype.kind == "f":
            np.testing.assert_allclose(ours, theirs, 1e-4, 1e-4, err_msg=message)
        else:
            np.testing.assert_array_equal(ours, theirs, err_msg=message)


def memory_of(nest, lengths, random):
    """An array of small numbers for each operand."""
    found = []
    for op in nest.operands:
        numbers = random.normal(size=evaluate(op.axes.size, lengths)) * 3
        found.append(numbers.astype(op.dtype))
    return found
