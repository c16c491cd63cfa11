"""No walk recurses: graphs far deeper than Python's stack build, derive, compute, print and go.

The stages that a hundred thousand ops pass are in ``tests/test_limits.py``; here every other way
of being deep, and everything else that walks a graph, at a few times Python's own limit.
"""

import gc
import sys

import numpy as np
import pytest

import geon
from geon.op_graph.op_graph import interned_count
from tests.kinds import numpy_only

DEEP = 3 * sys.getrecursionlimit()
K = geon.Axis("K", 2)


def chain(start, step, times=DEEP):
    """``step`` applied again and again."""
    for _ in range(times):
        start = step(start)
    return start


@pytest.fixture
def deep():
    """A placeholder, and an expression far above it."""
    x = geon.placeholder(K, name="x")
    return x, chain(x, lambda y: geon.sin(y * 1.0001), DEEP // 2)


@numpy_only  # a C compiler takes minutes for as many ops; what is here is before the text
@pytest.mark.parametrize("stage", ["build", "functional", "simplify", "schedule", "plan", "emit"])
def test_every_stage_is_shown(transformer, deep, stage):
    x, y = deep
    assert transformer.computation(y, x).explain(stage).count("\n") > DEEP // 2


@numpy_only
def test_it_is_traced_dumped_written_and_measured(transformer, deep, tmp_path):
    x, y = deep
    f = transformer.computation(y, x, name="deep")
    assert len(f.trace([0.5, 1])) > DEEP
    assert len(geon.loads(f.dumps([0.5, 1]))) == 1
    assert f.peak_bytes() == 8
    assert f.source and f._repr_html_()
    transformer.write(tmp_path / "deep.py")
    assert (tmp_path / "deep.py").stat().st_size > 20 * DEEP


def test_every_derivative_of_it(deep):
    x, y = deep
    total = geon.sum(y)
    for made in (
        geon.jvp(y, x, x),
        geon.hvp(total, x, x),
        geon.deriv(geon.sum(geon.deriv(total, x)), x),
    ):
        assert made.axes is x.axes


def test_it_is_compared_with_the_interpreter(deep):
    x, y = deep
    f = geon.NumPyTransformer().computation(y, x)
    assert geon.testing.first_difference(f, [0.5, 1]) is None


LINEAR = {
    "stop_gradient": lambda y, x: geon.stop_gradient(y) + x,
    "cumsum": lambda y, x: geon.cumsum(y, K) * 0.5,
    "sort": lambda y, x: geon.sort(y, K) + x,
    "where": lambda y, x: geon.where(x > 0, y, x),
    "cast": lambda y, x: geon.cast(geon.cast(y, "float64"), "float32"),
    "rename": lambda y, x: geon.rename(y, {y.axes[0]: "J" if y.axes[0].name == "K" else "K"}),
    "broadcast": lambda y, x: geon.broadcast(y, [geon.Axis("J", 2), K])[0],
    "flip": lambda y, x: geon.flip(y, K),
    "update": lambda y, x: geon.update(y, 1.0, {K: 0}),
}


@numpy_only
@pytest.mark.parametrize("kind", LINEAR)
def test_a_chain_of_one_kind(transformer, kind):
    x = geon.placeholder(K, name="x")
    y = chain(x, lambda y: LINEAR[kind](y, x), sys.getrecursionlimit() + 100)
    f = transformer.computation([y, geon.deriv(geon.sum(y), x)], x)
    value, slope = f([1, 2])
    assert value.shape == slope.shape == (2,)


def test_parts_of_parts_of_an_open_axis(transformer):
    """Slices of an open axis stay slices: nothing but the text of a program puts them together."""
    N = geon.Axis("N", "N of parts")
    x = geon.placeholder(N)
    count = sys.getrecursionlimit() + 200
    last = chain(x, lambda y: y[1:], count)
    f = transformer.computation(last * 2, x)
    np.testing.assert_array_equal(f(np.arange(count + 3)), 2 * np.arange(count, count + 3))


@numpy_only  # C for as many updates of updates takes a minute
def test_a_part_of_a_part_is_assigned(transformer):
    count = sys.getrecursionlimit() + 200
    v = geon.Variable(geon.Axis("L", count + 3), initial_value=0)
    transformer.computation(geon.assign(chain(v, lambda y: y[1:], count), 1.0))()
    np.testing.assert_array_equal(transformer.get(v), np.arange(count + 3) >= count)


@numpy_only
@pytest.mark.parametrize("form", ["sequential", "doall", "follows"])
def test_effects_within_effects(transformer, form):
    v = geon.Variable(initial_value=0)
    effect = geon.assign(v, v + 1)
    for _ in range(DEEP // 2):
        if form == "sequential":
            effect = geon.sequential([effect, geon.assign(v, v + 1)])
        elif form == "doall":
            effect = geon.doall([effect])
        else:
            effect = geon.assign(v, v + 1, follows=[effect])
    transformer.computation(effect)()
    assert transformer.get(v) == (1 if form == "doall" else DEEP // 2 + 1)


def test_first_values_that_read_others(transformer):
    v = geon.Variable(initial_value=1)
    for _ in range(sys.getrecursionlimit() + 100):
        v = geon.Variable(initial_value=v + 1)
    assert transformer.get(v) == sys.getrecursionlimit() + 101


@numpy_only
def test_sums_of_lengths(transformer):
    N = geon.Axis("N", "N of sums")
    x = geon.placeholder(N)
    count = sys.getrecursionlimit() + 100
    f = transformer.computation(geon.sum(chain(x, lambda y: geon.concat([y, x], N), count)), x)
    assert f([1, 2]) == 3 * (count + 1)


def test_what_is_deep_is_freed(deep):
    x, y = deep
    before = interned_count()
    slope = geon.deriv(geon.sum(chain(y, geon.exp)), x)
    text = geon.dumps(slope)
    assert interned_count() > before + DEEP
    del slope, text
    gc.collect()
    assert interned_count() <= before + 10
