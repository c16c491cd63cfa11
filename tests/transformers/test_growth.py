"""Compiling takes time that grows as the graph does: no stage looks at everything for each op."""

import gc
import math
import time

import pytest

import geon
from geon.op_graph.core.interning import OwnTable
from geon.op_graph.transforms.functionalize import functional
from geon.transformers.lowering.fusion.layout import lay_out
from geon.transformers.lowering.planning.derivable_values import kept_once
from geon.transformers.lowering.planning.plan import plan_memory
from geon.transformers.lowering.planning.schedule import schedule
from geon.transformers.lowering.rules.program import build_program

N, H = geon.Axis("N", 64), geon.Axis("H", 32)
# Between the two sizes that are compared. A large factor tells squares from caches: a square that
# is a fortieth of the small graph's time is refused, and what misses the caches of a busy machine,
# at most 1.4 of the time that was seen, is not (32 ** 0.15 is 1.68).
FACTOR = 32
SLOPE = 1.15  # log time over log size: 1 for linear time, 2 for quadratic; sorts take some
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


# Sizes at which a small graph takes 10 ms or more, and the large one has thousands of ops.
GRAPHS = {
    layers: 40,
    trained: 8,
    wide: 100,
    wide_sums: 80,
    deep_tree: 100,
    chain: 150,
    results: 150,
    gradient: 30,
}


def spent(functions, target):
    """The processor's seconds in stages 3 to 5 of functions: each stage of all before the next."""
    owns = [OwnTable() for _ in functions]
    gc.collect()
    gc.disable()
    try:
        start = time.process_time()
        made = [build_program(pure, target, own) for pure, own in zip(functions, owns, strict=True)]
        made = [kept_once(each, target, own) for each, own in zip(made, owns, strict=True)]
        for stage in (lay_out, schedule):
            made = [stage(each, target, own) for each, own in zip(made, owns, strict=True)]
        made = [plan_memory(each) for each in made]
        return time.process_time() - start
    finally:
        gc.enable()


def pure_function(made):
    return functional(made if isinstance(made, list) else [made])


@pytest.mark.slow
@pytest.mark.parametrize("graph", GRAPHS, ids=lambda graph: graph.__name__)
def test_time_grows_as_the_graph(transformer, graph):
    """A graph takes as long as as many small ones as it is large.

    They make as many objects, so that both are as far from the processor's caches, which a small
    graph alone would fit. The least of several times is compared; others that use the machine only
    make it longer.
    """
    size = GRAPHS[graph]
    small = [pure_function(graph(size)) for _ in range(FACTOR)]
    large = pure_function(graph(size * FACTOR))
    target = transformer.target
    spent(small[:1], target)
    least = [math.inf, math.inf]
    for _ in range(TRIES):
        least[0] = min(least[0], spent(small, target))
        least[1] = min(least[1], spent([large], target))
        slope = 1 + math.log(least[1] / least[0], FACTOR)
        if slope <= SLOPE:
            break
    said = f"{least[0]:.3f} s for {FACTOR} graphs of {size}, {least[1]:.3f} s for one as large"
    assert slope <= SLOPE, f"a slope of {slope:.2f}: {said}"
