"""One expression from building to a checkpoint: what breaks here breaks everywhere."""

import numpy as np
import pytest

import geon

N, C, H = geon.Axis("N"), geon.Axis("C", 3), geon.Axis("H", 2)
DATA = np.arange(12.0, dtype=np.float32).reshape(4, 3) / 10
WEIGHTS = np.array([[0.1, -0.2], [0.3, 0.4], [-0.5, 0.6]], np.float32)


def model():
    """Return (x, w, b, loss) of one layer with tanh and a squared cost."""
    x = geon.placeholder([N, C], name="x")
    w = geon.Variable([C, H], initial_value=WEIGHTS, name="w")
    b = geon.Variable([H], initial_value=0.5, name="b")
    return x, w, b, geon.mean(geon.square(geon.tanh(geon.dot(x, w) + b)))


# Building -----------------------------------------------------------------------------------------


def test_equal_expressions_are_one_op():
    x, w, _, loss = model()
    assert geon.dot(x, w) is geon.dot(x, w)
    assert (x + 1) is not (x + 2)
    assert loss.axes is geon.Axes() and loss.dtype == np.float32


def test_results_have_the_axes_of_the_left_operand_first():
    x, w, b, _ = model()
    assert geon.dot(x, w).axes is geon.Axes(N, H)
    assert (b + geon.dot(x, w)).axes is geon.Axes(H, N)
    assert x[{C: 0}].axes is geon.Axes(N)


def test_a_wrong_length_is_refused_at_the_line_that_uses_it():
    _, w, _, _ = model()
    other = geon.placeholder([N, geon.Axis("C", 4)], name="other")
    with pytest.raises(
        geon.AxisError, match=r"axis 'C' has length 4 in other.* and 3 in w"
    ) as told:
        geon.dot(other, w)
    assert "test_tiny.py" in str(told.value)


# Deriving -----------------------------------------------------------------------------------------


def test_gradients_agree_with_differences():
    x, w, b, loss = model()
    gradients = geon.deriv(loss, [w, b])
    with geon.NumPyTransformer() as transformer:
        f = transformer.computation([loss, *gradients], x)
        _, by_w, by_b = f(DATA)
        for variable, gradient in ((w, by_w), (b, by_b)):
            value = transformer.get(variable)
            for place in np.ndindex(*value.shape):
                costs = []
                for step in (1e-2, -1e-2):
                    moved = value.copy()
                    moved[place] += step
                    transformer.set(variable, moved)
                    costs.append(float(f(DATA)[0]))
                transformer.set(variable, value)
                assert gradient[place] == pytest.approx((costs[0] - costs[1]) / 2e-2, abs=2e-4)


def test_a_second_derivative_is_a_derivative_of_a_derivative():
    x = geon.placeholder([], name="x")
    second = geon.deriv(geon.deriv(geon.sin(x), x), x)
    with geon.NumPyTransformer() as transformer:
        assert transformer.computation(second, x)(0.3) == pytest.approx(-np.sin(0.3), rel=1e-6)


# Calling ------------------------------------------------------------------------------------------


def test_one_program_takes_every_length_of_an_open_axis():
    x, _, _, loss = model()
    with geon.NumPyTransformer() as transformer:
        f = transformer.computation(loss, x)
        for rows in (0, 1, 4, 7):
            data = np.resize(DATA, (rows, 3))
            with np.errstate(invalid="ignore"):
                wanted = np.mean(np.tanh(data @ WEIGHTS + np.float32(0.5)) ** 2) if rows else np.nan
            assert f(data) == pytest.approx(wanted, rel=1e-6, nan_ok=True)


def test_a_step_changes_its_variables_and_another_does_not():
    x, w, b, loss = model()
    step = geon.doall([geon.assign(v, v - 0.1 * geon.deriv(loss, v)) for v in (w, b)])
    with geon.NumPyTransformer() as transformer:
        train, look = transformer.computation([loss, step], x), transformer.computation(loss, x)
        losses = [float(train(DATA)[0]) for _ in range(20)]
        assert losses == sorted(losses, reverse=True) and losses[-1] < 0.8 * losses[0]
        assert look(DATA) == look(DATA) < losses[-1]


def test_a_call_that_raises_leaves_variables_as_they_were():
    x, w, _, _ = model()
    index = geon.placeholder([N], dtype="int64", name="index")
    effect = geon.assign(w, w + geon.sum(geon.gather(x, index, C)))
    with geon.NumPyTransformer() as transformer:
        f = transformer.computation(effect, x, index)
        with pytest.raises(geon.IndexRangeError, match="3"):
            f(DATA, [0, 1, 2, 3])
        np.testing.assert_array_equal(transformer.get(w), WEIGHTS)


def test_the_plan_says_what_a_call_takes():
    x, _, _, loss = model()
    with geon.NumPyTransformer() as transformer:
        f = transformer.computation(loss, x)
        assert f.peak_bytes({N: 4}) < f.peak_bytes({N: 400})
        assert "np.matmul" in f.source and "test_tiny.py" in f.source


# Keeping ------------------------------------------------------------------------------------------


def test_a_dump_is_the_same_graph():
    *_, loss = model()
    text = geon.dumps(loss)
    again = geon.loads(text)
    assert geon.dumps(again) == text


def test_a_checkpoint_gives_variables_back(tmp_path):
    x, w, _, loss = model()
    with geon.NumPyTransformer() as transformer:
        f = transformer.computation(loss, x)
        before = f(DATA)
        transformer.save(tmp_path / "model.safetensors")
        transformer.set(w, np.zeros((3, 2)))
        assert f(DATA) != before
        transformer.restore(tmp_path / "model.safetensors")
        assert f(DATA) == before


def test_draws_depend_on_the_seed_alone():
    x = geon.Random(7).normal([geon.Axis("P", 5)])
    with geon.NumPyTransformer() as one, geon.NumPyTransformer() as other:
        np.testing.assert_array_equal(one.computation(x)(), other.computation(x)())
