"""Axes of length 1: a nest has no loop over them, wherever they lie."""

import itertools

import numpy as np
import pytest

import geon
from geon.transformers.kernels.ir.nest import Nest, Pass
from tests.golden.emitting import Native

N, M = geon.Axis("N", 40), geon.Axis("M", 30)
ONE, UNIT = geon.Axis("One", 1), geon.Axis("Unit", 1)


def nests(result, *placeholders):
    """The nests that a computation is made of."""
    with Native() as transformer:
        made = transformer.computation(result, *placeholders)
        works = [kernel.work for kernel in made.stages().schedule.kernels]
    return [work for work in works if isinstance(work, Nest)]


def passes(nest):
    """All passes of a nest."""
    return [step for step in (*nest.steps, *nest.ending) if isinstance(step, Pass)]


def loops(nest):
    """All loops of a nest."""
    across = () if nest.across is None else (nest.across,)
    return [*nest.rows, *across, *(loop for step in passes(nest) for loop in step.loops)]


@pytest.mark.parametrize("order", list(itertools.permutations([N, M, ONE, UNIT])))
def test_a_map_has_no_loop_of_one_turn(order):
    x = geon.placeholder(order)
    y = geon.placeholder([UNIT, M, ONE, N])
    for op in (geon.tanh(x) + y, x + y, geon.concat([x, y * 2.0], N), geon.softmax(x, M) + y):
        for nest in nests(op, x, y):
            assert all(loop.extent != 1 for loop in loops(nest))
            assert loops(nest)


@pytest.mark.parametrize("reduce", [geon.sum, geon.max, geon.argmin, geon.any])
def test_nothing_is_reduced_over_one_element(reduce):
    x = geon.placeholder([N, ONE, M])
    for op in (reduce(geon.tanh(x), ONE), geon.tanh(x) * 2.0 + reduce(x, ONE)):
        for nest in nests(op, x):
            assert not any(each.reductions for each in passes(nest))
            assert [loop.extent for loop in loops(nest)] == [1200]


@pytest.mark.parametrize("order", list(itertools.permutations([N, M, ONE])))
def test_values_with_axes_of_one_element(order):
    data = np.random.default_rng(0).normal(size=[axis.length for axis in order])
    x = geon.placeholder(order, "float64")
    y = geon.placeholder([ONE, M], "float64")
    other = np.random.default_rng(1).normal(size=(1, 30))
    results = [
        x + y,
        geon.softmax(x, [ONE, N]),
        geon.argmax(x, [ONE, M]),
        geon.sum(x * y, ONE),
        geon.concat([x, x], ONE),
        geon.flip(geon.cumsum(x, ONE), M),
    ]
    with geon.NativeTransformer() as native, geon.NumPyTransformer() as numpy:
        found = native.computation(results, x, y)(data, other)
        wanted = numpy.computation(results, x, y)(data, other)
    for a, b in zip(found, wanted, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-12)
