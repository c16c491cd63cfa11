"""Random programs of reads, assignments, drops, gradients and lengths against the interpreter."""

import pytest

import geon
from tests.eager.random_programs import Program


def test_programs_by_numpy():
    transformer = geon.make_transformer("numpy")
    compared = 0
    for seed in range(100):
        program = Program(seed, transformer)
        program.run()
        compared += program.compared
    assert compared > 800


@pytest.mark.slow
def test_many_programs_by_numpy():
    transformer = geon.make_transformer("numpy")
    for seed in range(100, 1000):
        Program(seed, transformer).run()


@pytest.mark.slow
def test_programs_by_each_transformer(transformer):
    for seed in range(1000, 1010):
        Program(seed, transformer).run()
