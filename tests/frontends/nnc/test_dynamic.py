"""The dynamic graph: values, derivatives of any order, detached variables, aliases, minimisers."""

import gc
import math

import numpy as np
import pytest

import geon
from geon import eager
from geon.frontends import neon
from geon.frontends.nnc import cmd, cnnp
from geon.frontends.nnc.dynamic import DynamicGraph


def number(graph, value):
    return graph.variable(np.array([value], "float64"))


def test_five_logarithms_with_their_first_and_second_derivative(transformer):
    """z = log(z * y) * v five times, against the recurrences of z, z' and z''."""
    x0, y0, v0 = 0.84, 3.0, 1.9
    z, first, second = x0, 1.0, 0.0
    for _ in range(5):
        first, second = v0 * first / z, v0 * (second / z - (first / z) ** 2)
        z = math.log(z * y0) * v0
    with eager.use(transformer):
        graph = DynamicGraph()
        x, y, v = (number(graph, n) for n in (x0, y0, v0))
        found = x
        for _ in range(5):
            (found,) = graph.exec(cmd.mul(), [found, y])
            (found,) = graph.exec(cmd.ewlog(), [found])
            (found,) = graph.exec(cmd.mul(), [found, v])
        (slope,) = graph.backward([found], [x])
        (curvature,) = graph.backward([slope], [x])
        assert np.isclose(found.numpy()[0], z, rtol=1e-12)
        assert np.isclose(slope.numpy()[0], first, rtol=1e-12)
        assert np.isclose(curvature.numpy()[0], second, rtol=1e-12)


def test_a_detached_variable_is_a_constant_until_it_is_attached():
    graph = DynamicGraph()
    x = number(graph, 2.0)
    (y,) = graph.exec(cmd.mul(), [x, x])
    graph.detach(y)
    (z,) = graph.exec(cmd.mul(), [y, x])
    assert graph.backward([z], [x])[0].numpy() == 4.0  # not 12: y is a constant
    with pytest.raises(geon.DerivativeError, match=r"was detached; attach\(x\)"):
        graph.backward([z], [y])
    graph.attach(y)
    with pytest.raises(geon.DerivativeError, match="no effect to the losses"):
        graph.backward([z], [y])  # z is of the value before
    (z,) = graph.exec(cmd.mul(), [y, x])
    by_x, by_y = graph.backward([z], [x, y])
    assert (by_x.numpy(), by_y.numpy()) == (4.0, 2.0)
    assert graph.backward([by_x], [y])[0].numpy() == 1.0
    graph.exec(cmd.mul(), [x, x], [y])  # as an output it has a history again
    (z,) = graph.exec(cmd.mul(), [y, x])
    (slope,) = graph.backward([z], [x])
    assert (slope.numpy(), graph.backward([slope], [x])[0].numpy()) == (12.0, 12.0)


def test_gradients_of_outputs_and_shared_variables():
    graph = DynamicGraph()
    w = graph.variable(np.arange(6.0).reshape(2, 3))
    a, b = (graph.constant(np.full((3, 2), n)) for n in (1.0, 2.0))
    (p,), (q,) = (graph.exec(cmd.gemm(), [w, each]) for each in (a, b))
    seed = graph.constant(np.array([[1.0, 0], [0, 3]]))
    (found,) = graph.backward([p, q], [w], [seed, None])
    assert np.allclose(found.numpy(), seed.numpy() @ a.numpy().T + b.numpy().sum(1))
    with pytest.raises(geon.DerivativeError, match="constant or was detached"):
        graph.backward([p], [a])
    with pytest.raises(geon.AxisError, match="gradient of output 0 is .* must have the"):
        graph.backward([p], [w], [a])


def test_an_alias_reads_and_writes_a_part():
    graph = DynamicGraph()
    whole = graph.variable(shape=(4, 6), dtype="float64")
    x = graph.variable(np.full((2, 3), 2.0))
    part = graph.alias(whole, (2, 3), (1, 0), (1, 2))
    graph.exec(cmd.mul(), [x, x], [part])
    known = np.zeros((4, 6))
    known[1:3, ::2] = 4.0
    assert np.array_equal(whole.numpy(), known) and np.array_equal(part.numpy(), np.full((2, 3), 4))
    flat = graph.alias(whole, (24,))
    (y,) = graph.exec(cmd.mul(), [flat, flat])
    (slope,) = graph.backward([y], [x])
    assert np.array_equal(slope.numpy(), np.full((2, 3), 4 * 2.0**3))
    graph.exec(cmd.scalar_mul(a=1.0), [graph.constant(np.arange(24.0))], [flat])
    assert np.array_equal(whole.numpy().ravel(), np.arange(24.0))
    row = graph.alias(whole, (1, 6), (3, 0))
    row.set(np.ones((1, 6)))
    assert whole.numpy()[3].tolist() == [1] * 6
    with pytest.raises(geon.ArgumentError, match="is not inside of a"):
        graph.alias(whole, (2, 6), (3, 0))
    with pytest.raises(geon.ArgumentError, match="a reshape keeps the number of elements"):
        graph.alias(whole, (5,))


def test_bookkeeping_counts_what_is_remembered_and_freeing_forgets():
    graph = DynamicGraph()
    x = number(graph, 3.0)
    assert graph.bookkeeping_count == 1
    y = x
    for _ in range(4):
        (y,) = graph.exec(cmd.mul(), [y, x])
    gc.collect()
    assert graph.bookkeeping_count == 5  # x and four calls
    assert graph.dot().count('[label="mul"]') == 4 and graph.dot().startswith("digraph {")
    assert graph.has_effect_to(x, y) and not graph.has_effect_to(y, x)
    with graph.no_grad():
        (z,) = graph.exec(cmd.mul(), [y, y])
    assert z.numpy() == 3.0**10 and not graph.has_effect_to(x, z)
    graph.detach(y)
    graph.free(z)
    gc.collect()
    assert graph.bookkeeping_count == 2  # x, and y as data
    with pytest.raises(geon.ArgumentError, match="has no value: nothing was written"):
        z.numpy()


def test_random_commands_draw_anew_and_equal_work_is_found_again():
    graph = DynamicGraph(seed=4)
    x = graph.variable(np.ones((3, 40)))
    first, second = (graph.exec(cmd.dropout(p=0.5), [x])[0].numpy() for _ in range(2))
    assert not np.array_equal(first, second)
    (y,) = graph.exec(cmd.mul(), [x, x])
    y.numpy()
    again = graph.exec(cmd.mul(), [x, x])[0]
    assert again.value.tensor._node.value is not None  # known before it was read


@pytest.mark.parametrize(
    "command",
    [
        cmd.sgd(rate=0.1, momentum=0.9),
        cmd.adam(rate=0.2),
        cmd.rmsprop(rate=0.1),
        cmd.lamb(rate=0.1),
    ],
    ids=lambda c: c.name,
)
def test_minimize_moves_variables_to_the_minimum(command):
    graph = DynamicGraph()
    x = graph.variable(np.array([3.0, -2.0]))
    target = graph.constant(np.array([1.0, 0.5]))
    for _ in range(120):
        (loss,) = graph.exec(cmd.smooth_l1(beta=2.0), [x, target])
        graph.minimize(command, [loss], [x])
    assert np.allclose(x.numpy(), target.numpy(), atol=0.2)


def test_models_are_evaluated_and_trained_in_the_graph():
    random = np.random.default_rng(0)
    inputs = random.normal(size=(64, 5)).astype("float32")
    wanted = inputs @ random.normal(size=(5, 2)).astype("float32")
    model = cnnp.dense(2)
    model.compile(inputs, minimizer=neon.SGD(0.2))
    graph = DynamicGraph()
    scale = graph.variable(np.full((1, 1), 0.5, "float32"))
    x, y = graph.constant(inputs), graph.constant(wanted)
    for _ in range(150):
        (out,) = graph.evaluate(model, [x])
        (out,) = graph.exec(cmd.mul(), [out, scale])
        (losses,) = graph.exec(cmd.mse(), [out, y])
        (loss,) = graph.exec(cmd.reduce_mean(), [losses])
        graph.minimize(cmd.sgd(rate=0.05, momentum=0.0), [loss], [scale])
    assert loss.numpy()[0] < 1e-3
    assert np.allclose(model(inputs) * scale.numpy(), out.numpy(), atol=0.1)


@pytest.mark.parametrize(
    ("make", "error", "match"),
    [
        (
            lambda g: g.exec(
                cmd.gemm(), [g.variable(np.ones((2, 3))), g.variable(np.ones((2, 3)))]
            ),
            geon.AxisError,
            "command gemm of .*the summed lengths are 3 and 2",
        ),
        (lambda g: g.exec(cmd.mul(), [g.variable()]), geon.ArgumentError, "has no value"),
        (
            lambda g: g.exec(cmd.mul(), [number(g, 1.0)], [g.variable(), g.variable()]),
            geon.ArgumentError,
            "mul has 1 outputs, and 2 variables were given",
        ),
        (
            lambda g: g.backward([number(g, 1.0)], [number(g, 2.0)]),
            geon.DerivativeError,
            "no effect to the losses",
        ),
    ],
)
def test_errors_say_what_is_wrong(make, error, match):
    with pytest.raises(error, match=match):
        make(DynamicGraph())


def test_a_command_on_several_groups_of_inputs():
    graph = DynamicGraph()
    a, b, c, d = (graph.variable(np.full((2,), n, "float32")) for n in (1.0, 2.0, 3.0, 4.0))
    found = graph.exec(cmd.mul(), [a, b, c, d], parallel=2)
    assert [y.numpy().tolist() for y in found] == [[2, 2], [12, 12]]
    (slope,) = graph.backward(found, [c])
    assert slope.numpy().tolist() == [4, 4]
    targets = [graph.variable() for _ in range(2)]
    assert graph.exec(cmd.ewexp(), [a, b], targets, parallel=2) == targets
    np.testing.assert_allclose(targets[1].numpy(), np.exp([2.0, 2.0]), rtol=1e-6)
    for inputs, outputs in (([a, b, c], None), ([a, b, c, d], [targets[0]])):
        with pytest.raises(geon.ArgumentError, match=r"exec at .*parallel=2; give as many"):
            graph.exec(cmd.mul(), inputs, outputs, parallel=2)
