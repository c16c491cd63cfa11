"""Transformations of loop trees: any sequence of them computes what the nest does."""

import numpy as np

from geon.testing.cases import for_each
from geon.transformers.loops.from_nest import from_nest
from geon.transformers.loops.rules.cpu import schedule
from geon.transformers.loops.tree import VectorWidth
from tests.kernels.transformer import KernelsTransformer
from tests.loops.programs import Program
from tests.loops.trees import compare, memory_of, nests_of
from tests.tiers import scaled

MOVES = 6  # transformations of a tree one after another
TRIES = 4  # sequences for each nest
OFTEN = 100  # tries of a transformation of which one is done: the preconditions of some are rare


def check(seed, moves, done, make=from_nest):
    """Compute the nests of a program as trees."""
    program = Program(seed)
    random = np.random.default_rng(seed)
    with KernelsTransformer() as transformer:
        for nest in nests_of(transformer.computation(program.results, *program.leaves)):
            memory = memory_of(nest, program.lengths, random)
            for _ in range(TRIES if moves else 1):
                compare(nest, memory, program.lengths, random, moves, done, make)


@for_each("seed", range(40))
def test_naive_trees_compute_what_nests_do(seed):
    check(seed, 0, {})


@for_each("seed", range(40))
@for_each("count", [2, 4, 8])
@for_each("compiled", [False, True])
def test_scheduled_trees_compute_what_nests_do(seed, count, compiled):
    def scheduled(nest):
        itemsize = max(op.dtype.itemsize for op in nest.operands)
        return schedule(nest, VectorWidth(count * itemsize, itemsize, compiled=compiled))

    check(seed, 0, {}, scheduled)


def test_transformed_trees_compute_what_nests_do():
    done = {}
    for seed in range(1000, 1000 + scaled(160)):
        check(seed, MOVES, done)
    often = {name: count for name, count in done.items() if sum(count) >= OFTEN}
    assert all(count[0] for count in often.values()), done  # each was done, not only refused
