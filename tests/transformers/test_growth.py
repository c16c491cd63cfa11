"""Compiling takes time that grows as the graph does: no stage looks at everything for each op."""

import gc
import math
import time

import pytest

import geon
from geon.op_graph.functional import functional
from geon.op_graph.interning import OwnTable
from geon.transformers.lowering.layout import lay_out
from geon.transformers.lowering.memory import plan_memory
from geon.transformers.lowering.program import build_program
from geon.transformers.lowering.schedule import schedule

N, H = geon.Axis("N", 64), geon.Axis("H", 32)
FACTOR = 8  # between the two sizes that are compared
SLOPE = (
    1.15  # log time over log size: 1 for linear time, 2 for quadratic; caches and sorts take some
)
TRIES = 8  # beside others, few calls have the caches to themselves


def added(values):
    """The sum of values, one after another."""
    total = values[0]
    for value in values[1:]:
        total = total + value
    return total


def layers(count):
    """Layers of a network one after another, and their loss."""
    y = geon.placeholder([N, H])
    for _ in range(count):
        w = geon.Variable([H, H.prime], initial_value=0.1)
        b = geon.Variable([H], initial_value=0)
        y = geon.tanh(geon.rename(geon.dot(y, w, over=[H]), {H.prime: H}) + b)
    return geon.sum(y)


def trained(count):
    """The loss, and a step of every weight."""
    loss = layers(count)
    steps = [geon.assign(v, v - 0.1 * geon.deriv(loss, v)) for v in loss.variables()]
    return [loss, geon.doall(steps)]


def wide(count):
    x = geon.placeholder([N, H])
    return added([geon.exp(x * (k + 1.5)) for k in range(count)])


def wide_sums(count):
    """A sum of many sums."""
    x = geon.placeholder([N, H])
    return added([geon.sum(x * (k + 1.5), H) * geon.sum(x + (k + 0.5), H) for k in range(count)])


def deep_tree(count):
    x = geon.placeholder([N, H])
    level = [x * (k + 0.5) for k in range(count)]
    while len(level) > 1:
        odd = level[-1:] if len(level) % 2 else []
        level = [geon.tanh(a + b) for a, b in zip(level[::2], level[1::2], strict=False)] + odd
    return level[0]


def chain(count):
    x = y = geon.placeholder([N, H])
    for _ in range(count):
        y = geon.sin(y * 1.01) + x
    return y


def results(count):
    x = geon.placeholder([N, H])
    return [geon.exp(x + k) for k in range(count)]


def gradient(count):
    """The slopes of many weights of one sum."""
    x = geon.placeholder([N, H])
    weights = [geon.Variable([H], initial_value=0.1) for _ in range(count)]
    loss = geon.sum(added([geon.tanh(x * w) for w in weights]))
    return geon.deriv(loss, weights)


# Sizes at which the smaller graph takes 10 ms or more, and the larger has thousands of ops.
GRAPHS = {
    layers: 80,
    trained: 16,
    wide: 200,
    wide_sums: 160,
    deep_tree: 200,
    chain: 300,
    results: 300,
    gradient: 60,
}


def spent(pure, target):
    """The processor's seconds in stages 3 to 5."""
    gc.collect()
    gc.disable()
    try:
        start = time.process_time()
        own = OwnTable()
        plan_memory(schedule(lay_out(build_program(pure, target, own), target, own), target, own))
        return time.process_time() - start
    finally:
        gc.enable()


@pytest.mark.parametrize("graph", GRAPHS, ids=lambda graph: graph.__name__)
def test_time_grows_as_the_graph(transformer, graph):
    """The least of several times is compared; others that use the machine only make it longer."""
    size = GRAPHS[graph]
    made = [graph(size * factor) for factor in (1, FACTOR)]
    small, large = (functional(each if isinstance(each, list) else [each]) for each in made)
    target = transformer.target
    spent(small, target)
    least = [math.inf, math.inf]
    for _ in range(TRIES):
        least[0] = min(least[0], *(spent(small, target) for _ in range(3)))
        least[1] = min(least[1], *(spent(large, target) for _ in range(2)))
        slope = math.log(least[1] / least[0], FACTOR)
        if slope <= SLOPE:
            break
    said = f"{least[0]:.3f} s for {size}, {least[1]:.3f} s for {FACTOR} times as many"
    assert slope <= SLOPE, f"a slope of {slope:.2f}: {said}"
