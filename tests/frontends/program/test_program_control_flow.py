"""Loops, branches, recurrences and arrays of tensors, with their gradients."""

import numpy as np
import pytest

import geon
from geon.frontends.program import layers
from geon.frontends.program.backward import append_backward, calc_gradient
from geon.frontends.program.control_flow import ConditionalBlock
from geon.frontends.program.registry import ProgramError, register_operator

from .program_cases import count_up, counter, new_program, total

F = np.float32


def input_with_gradient(name, shape, **options):
    x = layers.data(name, shape, **options)
    x.stop_gradient = False
    return x


def test_while_carries_what_its_block_writes(transformer_name):
    with new_program() as run:
        x = input_with_gradient("x", [3])
        i, n = counter(0), counter(3)
        y = layers.fill_any_like(x, value=1.0)
        cond = layers.less_than(i, n)
        with layers.While(cond, max_steps=10).block() as block:
            layers.elementwise_mul(y, x, Out=y)
            count_up(i, n, cond)
        (gradient,) = calc_gradient(total(y), x)
    assert block.written == [y.name, i.name, cond.name]
    found = run({"x": [[1, 2, 3]]}, [y, gradient, i], transformer_name)
    np.testing.assert_array_equal(found[0], [[1, 8, 27]])
    np.testing.assert_array_equal(found[1], [[3, 12, 27]])
    np.testing.assert_array_equal(found[2], [3])


def test_a_while_that_does_not_run_leaves_its_variables():
    with new_program() as run:
        x = input_with_gradient("x", [2])
        i, n = counter(5), counter(3)
        y = layers.assign(x)
        cond = layers.less_than(i, n)
        with layers.While(cond).block():
            layers.elementwise_mul(y, x, Out=y)
            count_up(i, n, cond)
        (gradient,) = calc_gradient(total(y), x)
    found = run({"x": [[4, 5]]}, [y, gradient])
    np.testing.assert_array_equal(found, [[[4, 5]], [[1, 1]]])


def test_nested_while_reads_a_variable_of_its_grandparent():
    with new_program() as run:
        x = input_with_gradient("x", [2])
        total_of = layers.fill_any_like(x, value=0.0)
        zero, three = counter(0), counter(3)
        i = layers.assign(zero)
        outer = layers.less_than(i, three)
        with layers.While(outer, max_steps=8).block() as middle:
            j = layers.assign(zero)
            inner = layers.less_than(j, three)
            with layers.While(inner, max_steps=8).block() as deep:
                layers.elementwise_add(total_of, layers.elementwise_mul(x, x), Out=total_of)
                count_up(j, three, inner)
            count_up(i, three, outer)
        (gradient,) = calc_gradient(total(total_of), x)
    assert "x" in middle.parameters and "x" in deep.parameters
    assert deep.parent is middle and "x" not in middle.variables
    found = run({"x": [[1, 2]]}, [total_of, gradient])
    np.testing.assert_array_equal(found, [[[9, 36]], [[18, 36]]])


def test_second_order_through_a_while():
    with new_program() as run:
        x = input_with_gradient("x", [2])
        i, n = counter(0), counter(3)
        y = layers.fill_any_like(x, value=1.0)
        cond = layers.less_than(i, n)
        with layers.While(cond, max_steps=4).block():
            layers.elementwise_mul(y, x, Out=y)
            count_up(i, n, cond)
        (first,) = calc_gradient(total(y), x)
        (second,) = calc_gradient(total(first), x)
    np.testing.assert_allclose(run({"x": [[1, 2]]}, [second])[0], [[6, 12]])


def test_while_refuses_a_condition_that_never_changes_and_a_carry_that_changes_its_shape():
    with new_program() as run:
        x = layers.data("x", [2])
        cond = layers.less_than(counter(0), counter(3))
        with (
            pytest.raises(ProgramError, match=r"does not write the condition .*would not end"),
            layers.While(cond).block(),
        ):
            layers.tanh(x)
        assert run.main.current_block() is run.main.global_block()
        y = layers.assign(x)
        expected = r"reduce_sum at .*test_program_control_flow.py:\d+: it writes \(-1\) float32 to "
        with pytest.raises(ProgramError, match=expected), layers.While(cond).block():
            layers.reduce_sum(y, dim=[1], Out=y)
        assert len(run.main.blocks) == 1  # what failed leaves no block


def test_conditional_block_keeps_values_if_the_condition_is_false():
    with new_program() as run:
        x = input_with_gradient("x", [2])
        y = layers.assign(x)
        with ConditionalBlock(
            layers.greater_than(total(x), layers.fill_constant(shape=[1]))
        ).block():
            layers.elementwise_mul(y, x, Out=y)
        (gradient,) = calc_gradient(total(y), x)
    np.testing.assert_array_equal(run({"x": [[1, 2]]}, [y, gradient]), [[[1, 4]], [[2, 4]]])
    np.testing.assert_array_equal(run({"x": [[1, -2]]}, [y, gradient]), [[[1, -2]], [[1, 1]]])


def test_switch_runs_the_first_branch_whose_condition_is_true():
    with new_program() as run:
        step = layers.data("step", [1], append_batch_size=False)
        rate = layers.create_global_var([1], 0.0, name="rate")
        bounds = [layers.fill_constant(shape=[1], value=v) for v in (1.0, 2.0)]
        with layers.Switch() as switch:
            for bound, value in zip(bounds, (10.0, 20.0), strict=True):
                with switch.case(layers.less_than(step, bound)):
                    layers.fill_constant(shape=[1], value=value, Out=rate)
            with switch.default():
                layers.fill_constant(shape=[1], value=30.0, Out=rate)
        with pytest.raises(ProgramError, match="no case before it"), layers.Switch().default():
            pass
    run.start()
    assert [run({"step": [v]}, [rate])[0][0] for v in (0.5, 1.5, 2.5)] == [10, 20, 30]
    assert run.scope.find_var("rate").get("tensor").array == [30]


def test_if_else_takes_each_row_through_its_own_branch():
    with new_program() as run:
        x = input_with_gradient("x", [2])
        cond = layers.greater_than(
            layers.reduce_sum(x, dim=[1], keep_dim=True), layers.fill_constant(shape=[1])
        )
        choice = layers.IfElse(cond)
        with choice.true_block():
            choice.output(layers.sqrt(choice.input(x)))
        with choice.false_block():
            rows = choice.input(x)
            choice.output(layers.elementwise_mul(rows, rows))
        (y,) = choice()
        (gradient,) = calc_gradient(total(y), x)
    for rows in ([[1, 4], [-1, -2], [9, 1]], [[-1, -2]], [[1, 4]], np.zeros((0, 2))):
        array = np.reshape(np.asarray(rows, F), (-1, 2))
        positive = array.sum(1, keepdims=True) > 0
        root = np.sqrt(np.where(positive, array, 1))
        found = run({"x": array}, [y, gradient])
        np.testing.assert_allclose(found[0], np.where(positive, root, array**2), rtol=1e-6)
        np.testing.assert_allclose(found[1], np.where(positive, 0.5 / root, 2 * array), rtol=1e-6)


def test_if_else_refuses_what_combines_rows_and_incomplete_branches():
    with new_program():
        x = layers.data("x", [2])
        other = layers.data("other", [3, 2], append_batch_size=False)
        choice = layers.IfElse(
            layers.greater_than(layers.reduce_sum(x, dim=[1]), layers.fill_constant(shape=[1]))
        )
        with pytest.raises(ProgramError, match="belongs into"):
            choice.input(x)
        with choice.true_block():
            rows = choice.input(x)
            choice.output(layers.elementwise_sub(rows, layers.mean(rows)))
            with pytest.raises(ProgramError, match=r"other: \(3, 2\) float32 has other rows"):
                choice.input(other)
        with pytest.raises(ProgramError, match="needs both branches"):
            choice()
        with choice.false_block():
            choice.output(choice.input(x))
        with pytest.raises(geon.DerivativeError, match="puts elements of different places along"):
            choice()


def reference_rnn(sequences, w, u):
    """Hidden states of tanh(x w + h u), the last ones, and the mean's gradients, by hand."""
    states = [[np.zeros((1, len(u)))] for _ in sequences]
    for rows, own in zip(sequences, states, strict=True):
        for row in rows:
            own.append(np.tanh(row[None] @ w + own[-1] @ u))
    count = sum(len(rows) for rows in sequences) * len(u)
    dw, du = np.zeros_like(w), np.zeros_like(u)
    for rows, own in zip(sequences, states, strict=True):
        back = np.zeros_like(own[0])
        for t in reversed(range(len(rows))):
            d = (1 / count + back) * (1 - own[t + 1] ** 2)
            dw += rows[t][:, None] * d
            du += own[t].T @ d
            back = d @ u.T
    return (
        [np.concatenate(own[1:]) for own in states if own[1:]],
        [own[-1] for own in states],
        dw,
        du,
    )


def recurrence(rnn, x):
    w = layers.create_parameter([3, 4], attr="w")
    u = layers.create_parameter([4, 4], attr="u")
    with rnn.step():
        row, old = rnn.step_input(x), rnn.memory(shape=[4])
        new = layers.tanh(layers.elementwise_add(layers.mul(row, w), layers.mul(old, u)))
        rnn.update_memory(old, new)
        rnn.output(new)
    hidden = rnn()
    pairs = append_backward(layers.mean(hidden))
    return hidden, rnn.last[0], *[gradient for _, gradient in pairs]


@pytest.mark.parametrize("is_reverse", [False, True])
def test_static_rnn_passes_its_memory_from_step_to_step(is_reverse):
    draw = np.random.default_rng(0)
    data, w, u = (draw.normal(size=s).astype(F) for s in ((5, 2, 3), (3, 4), (4, 4)))
    with new_program() as run:
        x = layers.data("x", [5, "N", 3], append_batch_size=False)
        results = recurrence(layers.StaticRNN(is_reverse), x)
    assert results[0].shape == (5, -1, 4)
    run.start(w=w, u=u)
    hidden, last, dw, du = run({"x": data}, results)
    order = data[::-1] if is_reverse else data
    states, ends, *gradients = reference_rnn([order[:, n] for n in range(2)], w, u)
    stacked = np.stack(states, 1)
    np.testing.assert_allclose(hidden, stacked[::-1] if is_reverse else stacked, atol=1e-5)
    np.testing.assert_allclose(last, np.concatenate(ends), atol=1e-5)
    np.testing.assert_allclose(dw, gradients[0], atol=1e-5)
    np.testing.assert_allclose(du, gradients[1], atol=1e-5)


def test_dynamic_rnn_runs_over_sequences_of_different_lengths(transformer_name):
    draw = np.random.default_rng(1)
    w, u = (draw.normal(size=s).astype(F) for s in ((3, 4), (4, 4)))
    with new_program() as run:
        x = layers.data("x", [3], lod_level=1)
        results = recurrence(layers.DynamicRNN(), x)
    run.start(w=w, u=u)
    for lengths in ([3, 0, 1, 2], [1], [4, 4]):
        sequences = [draw.normal(size=(n, 3)).astype(F) for n in lengths]
        hidden, last, dw, du = run(layers.sequence_feed("x", sequences), results, transformer_name)
        states, ends, *gradients = reference_rnn(sequences, w, u)
        np.testing.assert_allclose(hidden, np.concatenate(states), atol=1e-5)
        np.testing.assert_allclose(last, np.concatenate(ends), atol=1e-5)
        np.testing.assert_allclose(dw, gradients[0], atol=1e-5)
        np.testing.assert_allclose(du, gradients[1], atol=1e-5)


def test_recurrences_refuse_incomplete_steps():
    with new_program() as run:
        x = layers.data("x", [4, 3], append_batch_size=False)
        rnn = layers.StaticRNN()
        with (
            pytest.raises(ProgramError, match=r"update_memory for 'fill_\w+.Out_0.step"),
            rnn.step(),
        ):
            rnn.step_input(x)
            rnn.memory(init=layers.fill_constant(shape=[3]))
        rnn = layers.StaticRNN()
        with pytest.raises(ProgramError, match="call step_input"), rnn.step():
            pass
        with pytest.raises(ProgramError, match="belongs into the block of a step"):
            rnn.step_input(x)
        rnn = layers.StaticRNN()
        with pytest.raises(ProgramError, match=r".* is updated by .*its shape"), rnn.step():
            row = rnn.step_input(x)
            rnn.update_memory(rnn.memory(init=layers.fill_constant(shape=[2])), row)
        rnn, flag = layers.StaticRNN(), layers.less_than(counter(0), counter(1))
        with (
            pytest.raises(ProgramError, match="step_input at .* belongs into the block of a step"),
            rnn.step(),
            ConditionalBlock(flag).block(),
        ):
            rnn.step_input(x)
        assert len(run.main.blocks) == 1
        dynamic = layers.DynamicRNN()
        with pytest.raises(ProgramError, match="no rows of sequences"), dynamic.block():
            dynamic.step_input(x)
        assert run.main.current_block() is run.main.global_block()


def test_tensor_arrays_are_carries_of_loops(transformer_name):
    with new_program() as run:
        x = input_with_gradient("x", [2])
        i, n = counter(0), counter(3)
        array = layers.array_write(x, i, capacity=5)
        cond = layers.less_than(i, n)
        with layers.While(cond, max_steps=5).block():
            value = layers.elementwise_mul(layers.read_from_array(array, i), x)
            layers.increment(i, step=1.0, Out=i)
            layers.array_write(value, i, array)
            layers.less_than(i, n, Out=cond)
        (gradient,) = calc_gradient(total(layers.read_from_array(array, n)), x)
        length = layers.array_length(array)
        with pytest.raises(ProgramError, match="needs its capacity"):
            layers.array_write(x, i)
    found = run({"x": [[1, 2]]}, [array, gradient, length], transformer_name)
    np.testing.assert_array_equal(found[0], [[[1, 2]], [[1, 4]], [[1, 8]], [[1, 16]]])
    np.testing.assert_array_equal(found[1], [[4, 32]])
    np.testing.assert_array_equal(found[2], [4])


def test_draws_inside_of_a_loop_are_those_of_its_gradient():
    with new_program() as run:
        x = input_with_gradient("x", [100])
        i, n = counter(0), counter(2)
        y = layers.assign(x)
        cond = layers.less_than(i, n)
        with layers.While(cond, max_steps=2).block():
            layers.assign(layers.dropout(y, dropout_prob=0.3), Out=y)
            count_up(i, n, cond)
        (gradient,) = calc_gradient(total(y), x)
    ones = np.ones((1, 100), F)
    y_now, gradient_now = run({"x": ones}, [y, gradient])
    assert 0 < (y_now == 0).sum() < 100
    np.testing.assert_array_equal(y_now, gradient_now)


register_operator(
    "test_straight_through",
    lambda X: (geon.round(X), 2 * X),
    outputs=["Out", "Other"],
    gradient=lambda X, Out_grad, Other_grad: {"X": 10 * Out_grad + X * Other_grad},
)


def test_a_gradient_that_was_registered_holds_inside_of_loops():
    with new_program() as run:
        x = input_with_gradient("x", [2])
        i, n = counter(0), counter(2)
        y, z = layers.assign(x), layers.assign(x)
        cond = layers.less_than(i, n)
        with layers.While(cond, max_steps=4).block():
            once, twice = layers.test_straight_through(x)
            layers.elementwise_add(y, once, Out=y)
            layers.elementwise_add(z, twice, Out=z)
            count_up(i, n, cond)
        (by_first,) = calc_gradient(total(y), x)
        (by_second,) = calc_gradient(total(z), x)
    found = run({"x": [[1.4, 2]]}, [y, by_first, by_second])
    np.testing.assert_allclose(found[0], [[3.4, 6]], rtol=1e-6)
    np.testing.assert_array_equal(found[1], [[21, 21]])
    np.testing.assert_allclose(found[2], [[1 + 2 * 1.4, 5]], rtol=1e-6)


@pytest.mark.parametrize("has_memory", [False, True])
def test_a_recurrence_with_dropout_has_the_gradient_of_its_draws(has_memory):
    with new_program() as run:
        x = input_with_gradient("x", [3, 4, 2], append_batch_size=False)
        rnn = layers.StaticRNN()
        with rnn.step():
            row = layers.dropout(rnn.step_input(x), dropout_prob=0.5)
            if has_memory:
                count = rnn.memory(shape=[1])
                rnn.update_memory(count, layers.increment(count))
            rnn.output(row)
        y = rnn()
        (gradient,) = calc_gradient(total(y), x)
    kept, found = run({"x": np.ones((3, 4, 2))}, [y, gradient])
    np.testing.assert_array_equal(found, kept)
    assert 0 < kept.mean() < 1
