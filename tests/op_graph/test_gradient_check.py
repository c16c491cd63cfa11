"""``check_gradients``: what it accepts, what it finds, and what it says."""

import numpy as np
import pytest

import geon

from .. import places

N, C = geon.Axis("N"), geon.Axis("C", 3)
X = np.array([[0.5, -1.0, 2.0], [0.25, 1.5, -0.75]])


@geon.custom_deriv(lambda g, out, x: [2 * g * x])
def squared(x):
    return x * x


@geon.custom_deriv(lambda g, out, x: [geon.where(x > 1.7, 3.0, 2.0) * g * x])
def wrong(x):
    return x * x


def test_right_derivatives_pass_in_any_dtype():
    for dtype in ("float16", "float32", "float64"):
        x = geon.placeholder([N, C], dtype, name="x")
        w = geon.Variable([C], dtype, initial_value=geon.Random(0).normal([C]), name="w")
        at = geon.placeholder([N], "int64", name="at")

        def step(c, row, w=w):
            return geon.tanh(c * w + row), geon.sum(squared(c))

        last, sums = geon.scan(step, geon.broadcast(0.1, [C]).cast(dtype), x, over=N)
        y = geon.scatter(sums, at, (geon.mean(last) + geon.iota(N) / 3).cast(dtype), N, mode="max")
        for each in (False, True):
            geon.check_gradients(y, {x: X, at: [0, 0]}, each=each)
            geon.check_gradients(y, {x: X, at: [1, 0], w: [1.0, 2.0, 3.0]}, each=each)
        geon.check_gradients(squared, {x: X})
        geon.check_gradients(lambda x, w: geon.dot(x, w) ** 2, {x: X, w: [1, 2, 3]})
        slope = geon.deriv(geon.sum(y), w)
        geon.check_gradients(slope, {w: [0.5, 1.0, 2.0], x: X, at: [0, 1]})
        with geon.make_transformer("numpy") as transformer:
            transformer.set(w, np.full(3, 0.5))
            geon.check_gradients(y, {x: X, at: [0, 1]}, transformer=transformer)


def test_a_wrong_rule_is_named_with_its_position_and_both_values():
    x = geon.placeholder([N, C], name="x")
    for each in (False, True):
        with pytest.raises(geon.GradientError) as raised:
            geon.check_gradients(lambda x: geon.sum(wrong(x)), {x: X}, each=each)
        line = places.here(-1).rpartition(":")[2]
        message = str(raised.value)
        for part in (
            f"test_gradient_check.py:{line}", "deriv of sum", "with respect to x(N, C:3)",
            "at N = 0, C = 2 is 6", "central differences give 4", "mend the rule of wrong",
        ):  # fmt: skip
            assert part in message
    assert isinstance(raised.value, AssertionError)


def test_a_kink_is_found_and_a_smaller_step_passes():
    x = geon.placeholder([C], name="x")
    y = geon.relu(x)
    geon.check_gradients(y, {x: [0.5, -1.0, 2.0]}, each=True)
    with pytest.raises(geon.GradientError, match="C = 1 .* a kink or a jump"):
        geon.check_gradients(y, {x: [0.5, 1e-6, 2.0]}, each=True)
    geon.check_gradients(y, {x: [0.5, 1e-6, 2.0]}, each=True, step=1e-7)
    with pytest.raises(geon.GradientError, match="is inf|is nan"):
        geon.check_gradients(geon.sqrt(x), {x: [0.0, 1.0, 2.0]})


def test_what_is_refused():
    x = geon.placeholder([N, C], name="x")
    w, at = geon.placeholder([C], name="w"), geon.placeholder([N], "int64", name="at")
    v = geon.Variable([C], name="v")
    for call, error, message in (
        (lambda: geon.check_gradients(x, [X]), geon.ArgumentError, "at, a list, maps no"),
        (lambda: geon.check_gradients(x, {at: [1]}), geon.ArgumentError, "none of at.* float"),
        (lambda: geon.check_gradients(x * w, {x: X}), geon.ArgumentError, "reads w.* no value"),
        (lambda: geon.check_gradients(x * v, {x: X}), geon.ArgumentError, "reads v.* no value"),
        (lambda: geon.check_gradients(x, {x: X[:, :2]}), geon.FeedError, "2 along C, which has"),
        (lambda: geon.check_gradients(x, {x: X[0]}), geon.FeedError, "of shape \\(3,\\)"),
        (lambda: geon.check_gradients(x, {x: X, at: [1]}), geon.FeedError, "1 along N, which has"),
    ):  # fmt: skip
        with pytest.raises(error, match=message):
            call()
