"""Computations: x + 1, logistic regression with open axes, calls, state between calls."""

import subprocess
import sys
from types import SimpleNamespace

import numpy as np
import pytest

import geon
from tests.kinds import numpy_only

PLUS_ONE = """
import geon

x = geon.placeholder(axes=geon.Axes())
transformer = geon.make_transformer("NAME")
plus_one = transformer.computation(x + 1, x)
for i in range(5):
    print(plus_one(i))
"""


def test_the_plus_one_program_prints_what_it_should(transformer_name):
    source = PLUS_ONE.replace("NAME", transformer_name)
    done = subprocess.run([sys.executable, "-c", source], capture_output=True, text=True)
    assert done.stderr == ""
    assert done.stdout == "1.0\n2.0\n3.0\n4.0\n5.0\n"


# Logistic regression ----------------------------------------------------------------------------

REGRESSION = """
C = geon.Axis("C")
N = geon.Axis("N")
X = geon.placeholder(axes=geon.Axes([C, N]))
Y = geon.placeholder(axes=geon.Axes([N]))
alpha = geon.placeholder(axes=geon.Axes())

W = geon.Variable(axes=geon.Axes([C]), initial_value=0)
b = geon.Variable(axes=geon.Axes(), initial_value=0)
Y_hat = geon.sigmoid(geon.dot(W, X) + b)
L = geon.cross_entropy_binary(Y_hat, Y, out_axes=geon.Axes())

updates = [
    geon.assign(v, v - alpha * geon.deriv(L, v) / geon.tensor_size(Y_hat))
    for v in L.variables()
]
all_updates = geon.doall(updates)
LENGTHS
update_fun = transformer.computation([L, W, b, all_updates], alpha, X, YOPTIONS)
eval_fun = transformer.computation(L, X, YOPTIONS)
"""
WAYS = {
    "set after the graph was built": {"LENGTHS": "\nC.length = 4; N.length = 128\n"},
    "taken from the data": {},
    "given to the computations": {"OPTIONS": ", lengths={C: 4, N: 128}"},
}
RATE = 0.1


@pytest.fixture
def regression(monkeypatch, transformer):
    """The program's namespace for one way of giving lengths; default lengths end with the test."""
    monkeypatch.setattr(geon.op_graph.axes.length_defaults, "_set", {})

    def build(way="taken from the data"):
        text = REGRESSION
        for word in ("LENGTHS", "OPTIONS"):
            text = text.replace(word, WAYS[way].get(word, ""))
        space = {"geon": geon, "transformer": transformer}
        exec(text, space)
        return SimpleNamespace(**space)

    return build


def batches(count, n=128, seed=0):
    """Batches of points in four dimensions and on which side of a plane they lie."""
    random = np.random.default_rng(seed)
    for _ in range(count):
        xs = random.normal(size=(4, n)).astype(np.float32)
        yield xs, (np.array([1.0, -2.0, 0.5, 3.0]) @ xs > 0.3).astype(np.float32)


def by_hand(data):
    """(loss, W, b) at the entry of each step, in plain NumPy."""
    W, b = np.zeros(4), 0.0
    for xs, ys in data:
        guess = 1 / (1 + np.exp(-(W @ xs + b)))
        yield -np.sum(ys * np.log(guess) + (1 - ys) * np.log(1 - guess)), W, b
        error = guess - ys
        W, b = W - RATE * (xs @ error) / len(ys), b - RATE * error.sum() / len(ys)


@pytest.mark.parametrize("way", WAYS)
def test_logistic_regression(regression, way):
    program = regression(way)
    losses = []
    for (xs, ys), (loss, W, b) in zip(batches(10), by_hand(batches(10)), strict=True):
        result = program.update_fun(RATE, xs, ys)
        assert isinstance(result, tuple) and len(result) == 4
        np.testing.assert_allclose(result[0], loss, rtol=1e-4)
        np.testing.assert_allclose(result[1], W, rtol=1e-3, atol=1e-5)
        np.testing.assert_allclose(result[2], b, rtol=1e-3, atol=1e-5)
        assert result[3] is None
        losses.append(float(result[0]))
    assert all(after < before for before, after in zip(losses, losses[1:], strict=False))
    assert program.eval_fun(*next(batches(1, seed=1))) < 0.9 * losses[0]


@numpy_only
def test_the_updates_are_made_in_place(regression):
    source = regression().update_fun.source
    assert len([line for line in source.splitlines() if "out=v" in line]) == 2
    assert "copyto(v" not in source


def test_a_second_computation_may_be_made_after_the_first_ran(regression):
    program = regression()
    for xs, ys in batches(3):
        program.update_fun(RATE, xs, ys)
    W = program.transformer.get(program.W)
    later = program.transformer.computation(
        [program.L, geon.sum(program.W * program.W)], program.X, program.Y
    )
    xs, ys = next(batches(1, seed=2))
    loss, square = later(xs, ys)
    assert loss == program.eval_fun(xs, ys)
    np.testing.assert_allclose(square, (W * W).sum(), rtol=1e-6)
    np.testing.assert_array_equal(program.transformer.get(program.W), W)


def test_batches_of_different_length(regression):
    program = regression()
    for n in (128, 3, 128, 50):
        program.update_fun(RATE, *next(batches(1, n)))
    W, b = program.transformer.get(program.W), program.transformer.get(program.b)
    for n in (128, 1, 37, 128, 0):
        xs, ys = next(batches(1, n))
        guess = 1 / (1 + np.exp(-(W @ xs + b)))
        expected = -np.sum(ys * np.log(guess) + (1 - ys) * np.log(1 - guess))
        np.testing.assert_allclose(program.eval_fun(xs, ys), expected, rtol=1e-4, atol=1e-6)


def test_a_default_length_can_be_set_again_and_is_read_at_the_first_call(monkeypatch, make):
    monkeypatch.setattr(geon.op_graph.axes.length_defaults, "_set", {})
    axis = geon.Axis("D")
    x = geon.placeholder(axes=axis)
    transformer = make()
    first = transformer.computation(geon.sum(x), x)
    axis.length = 3
    assert axis.length == geon.Axis("D").length == 3
    assert first([1, 2, 3]) == 6
    axis.length = 4
    assert transformer.computation(geon.sum(x), x)([1, 2, 3, 4]) == 10
    assert first([1, 2, 3]) == 6
    wins = transformer.computation(geon.sum(x), x, lengths={axis: 2})
    assert wins([1, 2]) == 3


# Calls ------------------------------------------------------------------------------------------

N = geon.Axis("N")


def test_results_are_the_callers_own(transformer):
    x = geon.placeholder(axes=N)
    v = geon.Variable(axes=geon.Axis("K", 2), initial_value=1)
    f = transformer.computation([x * 2, v, x], x)
    given = np.ones(3, np.float32)
    first = f(given)
    second = f(np.zeros(3, np.float32))
    np.testing.assert_array_equal(first[0], [2, 2, 2])
    assert not np.shares_memory(first[0], second[0])
    first[1][:] = 9
    first[2][:] = 9
    np.testing.assert_array_equal(transformer.get(v), [1, 1])
    np.testing.assert_array_equal(given, [1, 1, 1])


def test_the_form_of_results(transformer):
    x = geon.placeholder(axes=N)
    v = geon.Variable(initial_value=0)
    one = transformer.computation(geon.sum(x), x)([1, 2])
    assert isinstance(one, np.ndarray) and one.shape == () and one.dtype == np.float32
    assert isinstance(transformer.computation([x], x)([1, 2]), tuple)
    assert transformer.computation([], x)([1, 2]) == ()
    assert transformer.computation(geon.assign(v, 1))() is None
    assert transformer.computation([geon.assign(v, 1)])() == (None,)
    assert transformer.computation(geon.doall([]))() is None


def test_keyword_calls_where_a_placeholder_has_a_name(transformer):
    x = geon.placeholder(axes=N, name="x")
    y = geon.placeholder(name="y")
    f = transformer.computation(geon.sum(x) - y, x, y)
    assert f([1, 2], 10) == f([1, 2], y=10) == f(y=10, x=[1, 2]) == -7


def test_get_and_set(transformer):
    v = geon.Variable(axes=geon.Axes(N), initial_value=0, name="v")
    transformer.set(v, np.array([1.0, 2.0, 3.0]))
    np.testing.assert_array_equal(transformer.get(v), [1, 2, 3])
    got = transformer.get(v)
    got[:] = 0
    np.testing.assert_array_equal(transformer.get(v), [1, 2, 3])
    f = transformer.computation(geon.assign(v, v * 2))
    f()
    np.testing.assert_array_equal(transformer.get(v), [2, 4, 6])
    transformer.set(v, [0, 0, 7])
    f()
    np.testing.assert_array_equal(transformer.get(v), [0, 0, 14])


def test_initializers_run_in_dependency_order(transformer):
    first = geon.Variable(initial_value=2, name="first")
    count = geon.Variable(initial_value=0, name="count")
    second = geon.Variable(
        initial_value=first * 3,
        name="second",
        initializers=[geon.assign(count, count + 1)],
    )
    assert transformer.get(second) == 6
    assert transformer.get(count) == 1
    transformer.set(first, 5)
    transformer.initialize()
    assert transformer.get(second) == 6  # what is set is not set again
    transformer.initialize(force=True)
    assert (transformer.get(first), transformer.get(second)) == (2, 6)


def test_two_transformers_have_values_of_their_own(make):
    v = geon.Variable(initial_value=1)
    step = geon.assign(v, v + 1)
    with make() as a, make() as b:
        a.computation(step)()
        assert (a.get(v), b.get(v)) == (2, 1)


def test_a_program_is_shared_by_structure_and_its_storage_is_not(transformer):
    made = []
    for value in (1, 10):
        x = geon.placeholder(axes=N)
        v = geon.Variable(initial_value=value)
        made.append(transformer.computation(x * v, x))
    np.testing.assert_array_equal(made[0]([1, 2]), [1, 2])
    np.testing.assert_array_equal(made[1]([1, 2]), [10, 20])


def test_make_transformer_is_the_class_of_that_name():
    with geon.make_transformer("numpy") as made:
        assert type(made) is geon.NumPyTransformer
        assert isinstance(made, geon.Transformer)
    with geon.make_transformer() as made:
        compiles = geon.NativeTransformer.unavailable() is None
        assert type(made) is (geon.NativeTransformer if compiles else geon.NumPyTransformer)
