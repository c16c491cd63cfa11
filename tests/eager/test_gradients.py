"""Gradients of arrays, variables in eager computation, optimisers, functions and graphs."""

import gc
import threading
import tracemalloc

import numpy as np
import pytest

import geon
from geon import eager
from geon.eager import evaluation
from geon.frontends import neon
from geon.op_graph.op_graph import post_order

N, C, H = geon.Axis("N"), geon.Axis("C", 3), geon.Axis("H", 2)


@pytest.fixture(autouse=True)
def numpy_transformer():
    with eager.use("numpy") as transformer:
        yield transformer


def data(*shape):
    return np.random.default_rng(len(shape)).normal(size=shape).astype(np.float32)


def x_of(n=2):
    return eager.array(data(n, 3), [N, C])


def test_gradients_of_arrays_to_any_order():
    x = x_of()
    y = geon.sum(x**3)
    print(y)  # a value that was read does not end the graph
    first = eager.grad(y, x)
    np.testing.assert_allclose(first, 3 * data(2, 3) ** 2, rtol=1e-5)
    (second,) = eager.grad(first.sum(), [x])
    np.testing.assert_allclose(second, 6 * data(2, 3), rtol=1e-5)
    np.testing.assert_allclose(second.sum().deriv(x), np.full((2, 3), 6.0))
    np.testing.assert_allclose(geon.jvp(y, x, x), (3 * data(2, 3) ** 3).sum(), rtol=1e-5)


def test_a_gradient_with_respect_to_an_array_in_the_middle_and_to_itself():
    x = x_of()
    middle = geon.sin(x)
    y = geon.sum(middle * middle)
    np.testing.assert_allclose(eager.grad(y, middle), 2 * np.sin(data(2, 3)), rtol=1e-5)
    np.testing.assert_array_equal(eager.grad(y, y), 1)


def ops_computed_by(read):
    """Return the names of the ops of the program that is compiled for a read."""
    before = len(evaluation.programs)
    read()
    (program,) = list(evaluation.programs.values())[before:]
    return [op.primitive.name for op in post_order(program.pure.roots)]


@pytest.mark.parametrize("held", [True, False])
def test_a_gradient_takes_values_in_memory_and_computes_others_again(held):
    w, x = eager.variable([C, H], initial_value=data(3, 2)), x_of(4)
    hidden = geon.tanh(geon.dot(x, w))
    loss = geon.sum(geon.exp(hidden))
    if not held:
        del hidden
    float(loss)
    names = ops_computed_by(lambda: np.asarray(eager.grad(loss, w)))
    assert names.count("tanh") == (not held) and names.count("dot") == 2 - held
    want = np.tanh(data(4, 3) @ data(3, 2))
    loss.backward()
    np.testing.assert_allclose(w.grad, data(4, 3).T @ (np.exp(want) * (1 - want**2)), rtol=1e-4)


def test_gradients_of_values_in_memory_derive_again_and_share_a_program_of_all_lengths():
    programs = []
    for n in (2, 3, 4):
        x = x_of(n)
        hidden = geon.tanh(x)
        print(hidden)
        made = len(evaluation.programs)
        first = eager.grad(geon.sum(hidden * hidden), x)
        t = np.tanh(data(n, 3))
        np.testing.assert_allclose(first, 2 * t * (1 - t * t), rtol=1e-5, atol=1e-6)
        second = eager.grad(first.sum(), x)
        want = 2 * (1 - t * t) * (1 - 3 * t * t)
        np.testing.assert_allclose(second, want, rtol=1e-4, atol=1e-5)
        programs.append(list(evaluation.programs.values())[made:])
    assert programs[1] == programs[2] and len(programs[1]) == 2  # from the second length on


def test_seeds_are_never_stale():
    x = x_of()
    y = x * x
    for factor in (1.0, 2.0, 3.0):
        seed = np.full((2, 3), factor, np.float32)
        for derive in (eager.grad, geon.deriv):
            np.testing.assert_allclose(derive(y, x, seed=seed), 2 * factor * data(2, 3), rtol=1e-6)


def test_backward_accumulates_and_frees():
    w = eager.variable([C], initial_value=[1.0, 2.0, 3.0], name="w")
    fixed = geon.persistent_tensor([C], initial_value=1.0)
    assert w.grad is None

    def loss():
        return geon.sum(x_of() * w * fixed)

    loss().backward()
    np.testing.assert_allclose(w.grad, data(2, 3).sum(0), rtol=1e-5)
    kept = loss()
    assert kept.variables() == [w.leaf]
    kept.backward(retain_graph=True)
    kept.backward()
    np.testing.assert_allclose(w.grad, 3 * data(2, 3).sum(0), rtol=1e-5)
    with pytest.raises(geon.DerivativeError, match="backward.. freed; give retain_graph=True"):
        kept.backward()
    w.grad = None
    assert w.grad is None
    with pytest.raises(geon.DerivativeError, match="depends on no trainable variable"):
        x_of().sum().backward()


def test_detach_and_no_grad_are_constants_of_derivatives():
    x = x_of()
    with eager.no_grad():
        scale = x * 2.0
    y = geon.sum(x * scale + x.detach() * x)
    np.testing.assert_allclose(eager.grad(y, x), data(2, 3) * 3, rtol=1e-5)


def test_versions_of_variables_are_never_stale():
    w = eager.variable([C], initial_value=[1.0, 2.0, 3.0])
    before = w * 1.0
    w.assign(w * 2.0)
    after = w * 1.0
    w.assign([0.0, 0.0, 5.0])
    np.testing.assert_array_equal(before, [1, 2, 3])
    np.testing.assert_array_equal(after, [2, 4, 6])
    np.testing.assert_array_equal(w, [0, 0, 5])
    geon.assign(w.leaf[{C: 0}], eager.array(7.0))
    np.testing.assert_array_equal(w, [7, 0, 5])
    y = geon.sum(w * x_of(1)[{N: 0}])
    np.testing.assert_array_equal(eager.grad(y, w.leaf), data(1, 3)[0])
    w.assign(0.0)
    with pytest.raises(geon.DerivativeError, match="was assigned after the array"):
        eager.grad(y, w.leaf)


def test_variables_begin_as_in_a_transformer(numpy_transformer):
    first = geon.Random(3).normal([C, H])
    w = geon.Variable([C, H], initial_value=first * 2.0)
    x_of() + geon.Random(3).normal([C])
    np.testing.assert_array_equal(eager.array(w), numpy_transformer.get(w))


def test_variables_begin_with_arrays():
    x = x_of()
    first, second = geon.Variable([N, C], initial_value=x), eager.variable(initial_value=x * 2.0)
    np.testing.assert_array_equal(eager.array(first), data(2, 3))
    np.testing.assert_array_equal(second, data(2, 3) * 2)
    np.testing.assert_array_equal(eager.grad(geon.sum(second * x), second), data(2, 3))
    third = eager.variable([C], initial_value=geon.Variable([C], initial_value=2.0) * 2.0)
    np.testing.assert_array_equal(third, [4, 4, 4])


def test_effects_take_variables_made_here_and_refuse_arrays():
    w = eager.variable([C], initial_value=1.0)
    geon.assign(w, w + 1.0)
    geon.doall([geon.assign(w, w * x_of(1)[{N: 0}] * 0.0 + 3.0)])
    np.testing.assert_array_equal(w, [3, 3, 3])
    neon.SGD(0.5)(geon.sum(w * w), [w])
    np.testing.assert_array_equal(w, [0, 0, 0])
    np.testing.assert_array_equal(w.sum() + geon.max(w), 0)
    for target in (x_of(), w[{C: 0}]):
        with pytest.raises(geon.AssignError, match="is a value and cannot be assigned to"):
            geon.assign(target, 1.0)


@pytest.mark.parametrize("make", [
    lambda: neon.SGD(0.1, momentum=0.9), lambda: neon.Adam(0.1), lambda: neon.RMSProp(),
    lambda: neon.AdamW(
        neon.schedules.Exponential(0.1, 0.9), decay=0.01, clip=neon.ByGlobalNorm(1.0)
    ),
])  # fmt: skip
def test_optimisers_train_as_in_symbolic_computation(make, numpy_transformer):
    def weights():
        return geon.Variable([C, H], initial_value=data(3, 2), name="w")

    def cost(x, w):
        return geon.mean(geon.square(geon.tanh(geon.dot(x, w)) - 0.5))

    w, place, optimiser = weights(), geon.placeholder([N, C]), make()
    symbolic = cost(place, w)
    f = numpy_transformer.computation([symbolic, optimiser(symbolic)], place)
    own, again = weights(), make()
    for _ in range(4):
        want, _ = f(data(2, 3))
        loss = cost(x_of(), own)
        again(loss)
        np.testing.assert_allclose(loss, want, rtol=1e-5)
    np.testing.assert_allclose(eager.array(own), numpy_transformer.get(w), rtol=1e-4)
    again.rate = 0.0
    before = np.asarray(eager.array(own))
    again.decay = 0.0
    if make.__code__.co_names[-1] != "ByGlobalNorm" and not hasattr(again, "momentum"):
        again(cost(x_of(), own))
        np.testing.assert_array_equal(eager.array(own), before)


def test_layers_dropout_and_running_statistics():
    model = neon.Sequential([
        neon.Affine([H], neon.Glorot(geon.Random(1))), neon.BatchNorm(H),
        neon.Dropout(0.5, geon.Random(2)),
    ])  # fmt: skip
    training = neon.Training()
    first, second = (model(x_of(4), training=training) for _ in range(2))
    assert not np.array_equal(first, second)
    assert 0 < np.count_nonzero(np.asarray(first) == 0) < 8
    assert len(training.updates) == 2  # and they have run


def test_a_function_is_recorded_once():
    runs = []

    @eager.function
    def f(x, factor, parts):
        runs.append(factor)
        return {"y": geon.tanh(x * factor), "z": x + parts[0]}

    for _ in range(3):
        made = f(x_of(), 2.0, [x_of()])
    assert runs == [2.0]
    np.testing.assert_allclose(made["y"], np.tanh(2 * data(2, 3)), rtol=1e-6)
    np.testing.assert_allclose(made["z"], 2 * data(2, 3), rtol=1e-6)
    np.testing.assert_allclose(eager.grad(made["y"].sum(), made["y"]), np.ones((2, 3)))


@pytest.mark.parametrize("read", [
    lambda x: x if x.sum() > 0 else -x, lambda x: x * float(x[0, 0]),
    lambda x: x * np.asarray(x)[0, 0],
])  # fmt: skip
def test_a_function_that_reads_says_that_its_graph_would_depend_on_data(read):
    with pytest.raises(
        geon.SymbolicError, match="geon.eager.function, whose graph must not depend"
    ):
        eager.function(read)(x_of())


def test_the_graph_of_an_array_is_a_tensor_for_all_lengths(numpy_transformer):
    w = geon.Variable([C], initial_value=[1.0, 2.0, 3.0])
    y = geon.sum(x_of() * w, C)
    float(y.sum())
    made = eager.graph(y)
    (place,) = made.placeholders()
    assert str(made.axes) == "(N)" and made.variables() == [w]
    f = numpy_transformer.computation(made, place)
    np.testing.assert_allclose(f(data(5, 3)), (data(5, 3) * [1, 2, 3]).sum(1), rtol=1e-5)


def test_two_threads_build_and_read():
    w = eager.variable([C], initial_value=1.0)
    failures = []

    def work(seed):
        try:
            for k in range(40):
                n = 2 + (k + seed) % 3
                x = x_of(n)
                y = geon.sum(geon.tanh(x * w) * float(seed + 1))
                want = np.tanh(data(n, 3)).sum() * (seed + 1)
                np.testing.assert_allclose(y, want, rtol=1e-4, atol=1e-5)
                np.testing.assert_allclose(
                    eager.grad(y, x).sum().item() / (seed + 1),
                    (1 - np.tanh(data(n, 3)) ** 2).sum(),
                    rtol=1e-4,
                )
        except Exception as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(k,)) for k in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures


def train(steps, x, t, w):
    for step in range(steps):
        loss = geon.mean(geon.square(geon.tanh(geon.dot(x(), w)) - t))
        loss.backward()
        w.assign(w - 0.01 * w.grad)
        w.grad = None
        if step % 10 == 0:
            float(loss)


def bytes_after(steps):
    w = eager.variable([C, H], initial_value=data(3, 2))
    t = eager.array(data(2, 2), [N, H])
    kept = eager.kept_bytes(100_000)
    try:
        train(300, x_of, t, w)
        gc.collect()
        tracemalloc.start()
        train(steps, x_of, t, w)
        gc.collect()
        return tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()
        eager.kept_bytes(kept)


def test_memory_does_not_grow_with_steps():
    assert bytes_after(200) < 200_000


@pytest.mark.slow
def test_memory_does_not_grow_over_ten_thousand_steps():
    assert bytes_after(10_000) < 400_000
