"""Transformations of loop trees: any sequence of them computes what the nest does."""

import re
from pathlib import Path

import numpy as np

from geon.testing.cases import for_each
from geon.transformers.loops import guarded_loops, partial_states, transformations
from geon.transformers.loops.from_nest import from_nest
from geon.transformers.loops.rules import streaming_copies
from geon.transformers.loops.rules.cpu import schedule
from geon.transformers.loops.tree import VectorWidth
from tests.kernels.transformer import KernelsTransformer
from tests.loops.moves import MOVES
from tests.loops.programs import Program
from tests.loops.trees import compare, memory_of, nests_of
from tests.tiers import scaled

MOVES_OF_A_TREE = 6  # one after another
TRIES = 4  # sequences for each nest


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
        vectors = VectorWidth(count * itemsize, itemsize, compiled=compiled)
        return schedule(nest, vectors, fetches=seed % 2 == 0)

    check(seed, 0, {}, scheduled)


def test_transformed_trees_compute_what_nests_do(monkeypatch):
    """Each move is done by a run of this size, not only refused."""
    monkeypatch.setattr(streaming_copies, "STREAMED_BLOCK_BYTES", 40)
    monkeypatch.setattr(streaming_copies, "MAX_BLOCK_TURNS", 6)
    monkeypatch.setattr(streaming_copies, "MIN_STREAMED_TURNS", 3)
    monkeypatch.setattr(streaming_copies, "MIN_WORK", 0)
    done = {name: [0, 0] for name in MOVES}
    for seed in range(1000, 1000 + scaled(160)):
        check(seed, MOVES_OF_A_TREE, done)
    assert all(count[0] for count in done.values()), done


def test_each_transformation_of_the_documentation_has_moves():
    page = (Path(__file__).parents[2] / "docs" / "loop-trees.md").read_text()
    table = re.findall(r"^\| (`[^|]+) \|", page, re.MULTILINE)
    documented = {name for row in table for name in re.findall(r"`(\w+)`", row)}
    assert documented == {name.partition(" ")[0] for name in MOVES}
    modules = (transformations, partial_states, guarded_loops, streaming_copies)
    assert documented <= {name for module in modules for name in vars(module)}
