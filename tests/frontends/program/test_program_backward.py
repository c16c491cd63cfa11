"""Gradient operators: sums, pruning, zeros, given gradients, selected rows, second order."""

import subprocess
import sys

import numpy as np
import pytest

import geon
from geon.frontends.positional.elementwise import elementwise
from geon.frontends.positional.movement import split
from geon.frontends.program import layers
from geon.frontends.program.backward import append_backward, calc_gradient
from geon.frontends.program.registry import operator_info, register_operator

from .program_cases import new_program


def parameter(name, shape):
    return layers.create_parameter(shape, attr=layers.ParamAttr(name, layers.Constant(0.5)))


def types(run):
    return [op.type for op in run.main.global_block().ops]


def test_shared_weights_give_a_sum():
    draw = np.random.default_rng(0)
    data, value = draw.normal(size=(5, 4)), draw.normal(size=(4, 4))
    with new_program() as run:
        x, w = layers.data("x", [4]), parameter("w", [4, 4])
        loss = layers.mean(layers.mul(layers.mul(x, w), w))
        ((found, gradient),) = append_backward(loss)
    assert found is w and gradient.name == "w@GRAD"
    (added,) = [op for op in run.main.global_block().ops if op.type == "sum"]
    names = [run.main.values[k].name for k in added.inputs["X"]]
    assert names == ["w@GRAD@RENAME@0", "w@GRAD@RENAME@1"]
    run.start(w=value)
    one = np.full((5, 4), 1 / 20)
    expected = (data @ value).T @ one + data.T @ (one @ value.T)
    np.testing.assert_allclose(run({"x": data}, [gradient])[0], expected, rtol=1e-5)


def test_one_variable_in_two_slots_gives_a_sum():
    with new_program() as run:
        w = parameter("w", [3])
        ((_, gradient),) = append_backward(layers.mean(layers.elementwise_mul(w, w)))
    run.start(w=[1, 2, 3])
    np.testing.assert_allclose(run({}, [gradient])[0], [2 / 3, 4 / 3, 2], rtol=1e-6)


def test_inputs_and_branches_that_need_no_gradient_have_none():
    with new_program() as run:
        x, w, v = layers.data("x", [4]), parameter("w", [4, 4]), parameter("v", [4, 4])
        side = layers.tanh(layers.mul(x, v))
        hidden = layers.elementwise_add(layers.mul(x, w), side)
        unrelated = layers.relu(hidden)
        loss = layers.mean(hidden)
        pairs = append_backward(loss, no_grad_set=[side])
    assert [p.name for p, _ in pairs] == ["w"]
    written = {run.main.values[k].name for op in run.main.global_block().ops for k in op.writes}
    assert not {"x@GRAD", "v@GRAD", f"{side.name}@GRAD", f"{unrelated.name}@GRAD"} & written
    assert "tanh_grad" not in types(run) and "relu_grad" not in types(run)


def test_parameters_that_are_not_reached_are_left_out_or_refused():
    with new_program():
        w, unused = parameter("w", [3]), parameter("unused", [3])
        loss = layers.mean(layers.ceil(w))
        assert append_backward(loss) == []  # ceil is registered without a gradient
        with pytest.raises(geon.DerivativeError, match="does not depend on 'unused'"):
            append_backward(loss, [unused])
        with pytest.raises(geon.DerivativeError, match=r"has more than one element"):
            append_backward(layers.tanh(w))
        with pytest.raises(geon.DerivativeError, match="is no parameter; use calc_gradient"):
            append_backward(loss, [loss])
        with pytest.raises(geon.DerivativeError, match="registered without a gradient"):
            operator_info("ceil_grad")


def test_a_frozen_parameter_has_no_gradient():
    with new_program():
        frozen = layers.create_parameter([3], attr=layers.ParamAttr("f", trainable=False))
        w = parameter("w", [3])
        loss = layers.mean(layers.elementwise_mul(frozen, w))
        assert [p.name for p, _ in append_backward(loss)] == ["w"]


register_operator(
    "test_halves", lambda X: tuple(split(X, 0, [2, 2])), ["X"], ["Low", "High"], positional=True
)
register_operator(
    "test_sum_and_difference",
    lambda X, Y: (X + Y, X - Y),
    ["X", "Y"],
    ["Sum", "Difference"],
    gradient=lambda Sum_grad, Difference_grad: {
        "X": Sum_grad + Difference_grad,
        "Y": 10 * (Sum_grad - Difference_grad),
    },
)


def test_unused_outputs_give_zeros():
    with new_program() as run:
        w, v = parameter("w", [4]), parameter("v", [2])
        low, _ = layers.test_halves(w)
        _, difference = layers.test_sum_and_difference(low, v)
        pairs = append_backward(layers.reduce_sum(difference, reduce_all=True))
    run.start()
    found = dict(zip([p.name for p, _ in pairs], run({}, [g for _, g in pairs]), strict=True))
    np.testing.assert_array_equal(found["w"], [1, 1, 0, 0])
    np.testing.assert_array_equal(found["v"], [-10, -10])  # the gradient that was registered


def test_second_order_and_cotangents():
    with new_program() as run:
        x = layers.data("x", [3])
        seed = layers.data("seed", [3])
        x.stop_gradient = False
        y = layers.elementwise_mul(layers.elementwise_mul(x, x), x)
        (first,) = calc_gradient(y, x, seed)
        second, by_seed, third = calc_gradient(first, [x, seed, layers.tanh(x)])
        with pytest.raises(geon.DerivativeError, match="another shape or dtype"):
            calc_gradient(y, x, layers.mean(seed))
    assert third is None
    data, seeds = np.array([[1, 2, 3]]), np.array([[1, 10, 100]])
    found = run({"x": data, "seed": seeds}, [first, second, by_seed])
    np.testing.assert_allclose(found[0], 3 * data**2 * seeds)
    np.testing.assert_allclose(found[1], 6 * data * seeds)
    np.testing.assert_allclose(found[2], 3 * data**2)


def test_a_gradient_penalty_has_gradients_of_parameters():
    draw = np.random.default_rng(2)
    data, value = draw.normal(size=(3, 4)), draw.normal(size=(4, 1))
    with new_program() as run:
        x, w = layers.data("x", [4]), parameter("w", [4, 1])
        x.stop_gradient = False
        y = layers.mul(x, w)
        (slope,) = calc_gradient(layers.elementwise_mul(y, y), x)
        penalty = layers.mean(layers.elementwise_mul(slope, slope))
        ((_, gradient),) = append_backward(penalty)
    run.start(w=value)

    def energy(w):
        return np.mean((2 * (data @ w) @ w.T) ** 2)

    numeric = np.zeros_like(value)
    for k in range(4):
        step = np.zeros_like(value)
        step[k] = 1e-5
        numeric[k] = (energy(value + step) - energy(value - step)) / 2e-5
    np.testing.assert_allclose(run({"x": data}, [gradient])[0], numeric, rtol=1e-3)


def test_the_value_that_was_read_has_the_gradient_also_if_its_name_is_written_again():
    with new_program() as run:
        w = parameter("w", [3])
        square = layers.elementwise_mul(w, w)
        layers.fill_any_like(w, value=100.0, Out=w)
        ((_, gradient),) = append_backward(layers.mean(square))
    run.start(w=[1, 2, 3])
    np.testing.assert_allclose(run({}, [gradient, square])[1], [1, 4, 9])
    run.start(w=[1, 2, 3])
    np.testing.assert_allclose(run({}, [gradient])[0], [2 / 3, 4 / 3, 2], rtol=1e-6)
    np.testing.assert_array_equal(run.scope.find_var("w").get().array, [100, 100, 100])


def test_sparse_gradients_of_embeddings_stay_selected_rows():
    with new_program() as run:
        words = layers.data("words", [1], dtype="int64")
        size = [6, 2]
        read = [
            layers.embedding(words, size, is_sparse=sparse, param_attr="table")
            for sparse in (True, True)
        ]
        loss = layers.reduce_sum(layers.elementwise_mul(*read), reduce_all=True)
        ((_, gradient),) = append_backward(loss)
        assert gradient.spec.kind == "selected_rows" and gradient.shape == (6, 2)
        dense = layers.sum([gradient, layers.fill_constant(shape=size)])
    assert dense.spec.kind == "tensor"
    table = np.arange(12).reshape(6, 2)
    run.start(table=table)
    (rows, values), whole = run({"words": [[3], [1], [3]]}, [gradient, dense])
    np.testing.assert_array_equal(rows, [3, 1, 3, 3, 1, 3])
    np.testing.assert_array_equal(values, table[rows])
    expected = 2 * table * np.array([0, 1, 0, 2, 0, 0])[:, None]
    np.testing.assert_array_equal(whole, expected)


def test_a_gradient_names_what_it_needs():
    with pytest.raises(Exception, match="takes 'Y', which is no slot"):
        register_operator("test_wrong", geon.tanh, gradient=lambda Y: {})
    register_operator("test_strange", geon.tanh, gradient=lambda Out_grad: {"Z": Out_grad})
    with new_program():
        w = parameter("w", [3])
        y = layers.mean(layers.test_strange(w))
        with pytest.raises(geon.DerivativeError, match="returned one for 'Z'"):
            append_backward(y)


def test_gradients_of_a_user_operator_with_an_unknown_derivative_name_the_operator():
    register_operator("test_rounded", lambda X: geon.argmax(X, "d0"))
    with new_program():
        y = layers.test_rounded(parameter("w", [3]))
        assert y.dtype == "int64"
        assert calc_gradient(layers.cast(y), [layers.assign(y)]) == [None]


def test_programs_without_gradients_import_no_derivative_code():
    code = """
import sys
import geon.frontends.program.operators, geon.frontends.program.layers as layers
from geon.frontends.program.executor import CPUPlace, Executor
x = layers.data("x", [3])
y = layers.fc(x, 2, act="relu")
executor = Executor(CPUPlace("numpy"))
from geon.frontends.program.program import default_startup_program
executor.run(default_startup_program())
print(executor.run(feed={"x": [[1, 2, 3]]}, fetch_list=[y])[0].shape)
print([m for m in sys.modules if m.startswith("geon.frontends.program") and "grad" in m])
print([m for m in sys.modules if m.endswith(("program.backward", "gradient_check", "jacobians"))])
"""
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.splitlines() == ["(1, 2)", "[]", "[]"]


def test_elementwise_stays_apart_from_another_input_that_it_depends_on():
    """The gradient of an operator by X leaves out the way through Y, which is computed from X."""
    register_operator("test_product", lambda X, Y: elementwise(geon.multiply, X, Y), ["X", "Y"],
                      positional=True)  # fmt: skip
    with new_program() as run:
        w = parameter("w", [2])
        y = layers.tanh(w)
        y.stop_gradient = True
        ((_, gradient),) = append_backward(layers.mean(layers.test_product(w, y)))
    run.start(w=[1, 2])
    np.testing.assert_allclose(run({}, [gradient])[0], np.tanh([1, 2]) / 2, rtol=1e-6)
