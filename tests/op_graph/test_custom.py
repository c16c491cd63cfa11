"""A user's own derivative rule: both modes, higher orders, and what a wrong rule says."""

import numpy as np
import pytest

import geon
from geon.op_graph.building.rebuild import with_args
from geon.op_graph.op_graph import post_order, same_ops
from geon.op_graph.rewriting.driver import rewrite
from geon.op_graph.rewriting.simplify import simplify_rules

from .computing import compute

A, B = geon.Axis("A", 2), geon.Axis("B", 3)
X = np.array([[0.2, -0.7, 1.3], [2.0, -1.6, 0.4]])


@pytest.fixture
def x():
    return geon.placeholder([A, B], "float64", name="x")


@geon.custom_deriv(lambda g, out, x: [g])
def rounded(x):
    """x rounded, whose derivative is that of x: a straight-through estimator."""
    return geon.round(x)


@geon.custom_deriv(lambda g, out, x: [geon.minimum(geon.maximum(g, -0.5), 0.5)])
def clipped(x):
    """x, whose cotangent is held in [-0.5, 0.5]."""
    return x


def _tanh_rule(g, out, x):
    return [g * (1 - out * out)]


@geon.custom_deriv(_tanh_rule)
def own_tanh(x):
    """tanh with a rule of its own."""
    return geon.tanh(x)


def test_straight_through(x):
    y = geon.sum(rounded(x) * rounded(x))
    assert compute(y, {x: X}) == np.sum(np.round(X) ** 2)
    np.testing.assert_allclose(compute(geon.deriv(y, x), {x: X}), 2 * np.round(X))
    tangent = geon.constant(X, axes=[A, B])
    np.testing.assert_allclose(
        compute(geon.jvp(y, x, tangent), {x: X}), np.sum(2 * np.round(X) * X)
    )


def test_clipped_gradient(x):
    d = geon.deriv(geon.sum(clipped(x) * clipped(x)), x)
    np.testing.assert_allclose(compute(d, {x: X}), np.clip(2 * X, -0.5, 0.5))


def test_forward_mode_of_a_rule_that_is_not_linear_raises(x):
    with pytest.raises(geon.DerivativeError, match="not linear.*reverse mode"):
        geon.jvp(clipped(x), x, 1.0)


def test_second_and_third_derivatives_go_through_the_rule(x):
    own, built_in = own_tanh(x), geon.tanh(x)
    for _ in range(3):
        own, built_in = (geon.deriv(geon.sum(y * y), x) for y in (own, built_in))
        np.testing.assert_allclose(compute(own, {x: X}), compute(built_in, {x: X}), rtol=1e-12)


def test_hessian_vector_product(x):
    vector = geon.constant(X[::-1].copy(), axes=[A, B])
    found, expected = (geon.hvp(geon.sum(f(x) * x * x), x, vector) for f in (own_tanh, geon.tanh))
    np.testing.assert_allclose(compute(found, {x: X}), compute(expected, {x: X}), rtol=1e-12)


def test_rule_is_called_once_for_all_inputs(x):
    calls = []

    def rule(g, out, a, b):
        calls.append(out)
        return [g * b, g * a]

    y = geon.custom_deriv(rule)(geon.multiply)(x, geon.sin(x))
    d = geon.deriv(geon.sum(y), x)
    np.testing.assert_allclose(compute(d, {x: X}), np.sin(X) + X * np.cos(X))
    assert same_ops(calls, [y])


def test_none_and_numbers_are_cotangents(x):
    y = geon.custom_deriv(lambda g, out, a, n, c: [2.0, None, None])(lambda a, n, c: a + n + c)
    n = geon.placeholder([A], "int64")
    d = geon.deriv(geon.sum(y(x, n, 1.5)), x)
    np.testing.assert_array_equal(compute(d, {x: X, n: np.array([1, 2])}), np.full((2, 3), 2.0))
    assert geon.jvp(y(x, n, 1.5), x, 1.0).axes is x.axes


def test_a_cotangent_in_another_order_of_axes_is_taken(x):
    f = geon.custom_deriv(lambda g, out, a: [geon.reorder(g * 3.0, [B, A])])(geon.negative)
    d = geon.deriv(geon.sum(f(x)), x)
    assert d.axes is x.axes
    np.testing.assert_array_equal(compute(d, {x: X}), np.full((2, 3), 3.0))


@pytest.mark.parametrize(
    ("returned", "message"),
    [
        (lambda g: [geon.sum(g, A)], r"wrong_rule.*\(B:3\).*whose axes are \(A:2, B:3\)"),
        (lambda g: [geon.cast(g, "float32")], "wrong_rule.*float32.*float64"),
        (lambda g: [g, g], "wrong_rule.*returned 2, not a list of 1"),
        (lambda g: g, "wrong_rule.*not a list of 1"),
    ],
)
def test_a_wrong_rule_is_named(x, returned, message):
    def wrong_rule(g, out, a):
        return returned(g)

    y = geon.custom_deriv(wrong_rule)(geon.tanh)(x)
    with pytest.raises(geon.DerivativeError, match=message) as caught:
        geon.deriv(geon.sum(y), x)
    assert "test_custom.py:" in str(caught.value)


def test_a_cotangent_for_integers_is_refused(x):
    n = geon.placeholder([B], "int64")
    f = geon.custom_deriv(lambda g, out, a, n: [g, g])(lambda a, n: a + n)
    with pytest.raises(geon.DerivativeError, match="return None"):
        geon.deriv(geon.sum(f(x, n)), x)


def test_a_function_must_return_a_tensor(x):
    with pytest.raises(geon.DerivativeError, match="must return one tensor"):
        geon.custom_deriv(lambda g, out, a: [g])(lambda a: (a, a))(x)


def test_captured_tensors_are_constants(x):
    w = geon.placeholder([B], "float64")
    y = geon.custom_deriv(lambda g, out, a: [g])(lambda a: a * w)(x)
    with pytest.raises(geon.DerivativeError, match="not reached"):
        geon.deriv(geon.sum(y), w)


def test_arguments_can_be_replaced(x):
    y = own_tanh(x)
    z = geon.placeholder([A, B], "float64")
    moved = with_args(y, (geon.tanh(z), z))
    assert moved.attrs == y.attrs
    found = compute(geon.deriv(geon.sum(moved), z), {z: X})
    np.testing.assert_allclose(found, 1 - np.tanh(X) ** 2)


def test_equal_calls_are_one_op_and_simplify_to_the_value(x):
    assert own_tanh(x) is own_tanh(x)
    (simple,) = rewrite([own_tanh(x) * 2.0], simplify_rules(), {})
    assert all(op.primitive.name != "custom" for op in post_order([simple]))


def test_the_function_keeps_its_name_and_doc():
    assert own_tanh.__name__ == "own_tanh" and own_tanh.__doc__.startswith("tanh")
    assert own_tanh.rule is _tanh_rule and "_tanh_rule" in repr(own_tanh)


def test_through_sequential(x):
    v = geon.Variable(axes=[A, B], dtype="float64")
    y = geon.sequential([geon.assign(v, v * 2.0), geon.sum(own_tanh(v))])
    found = compute(geon.deriv(y, v), {v: X})
    np.testing.assert_allclose(found, 2 * (1 - np.tanh(2 * X) ** 2))


def test_a_rule_that_is_left_out_is_refused_where_it_is_written(x):
    takes = "is no rule, which takes the cotangent, the result and the inputs; write @geon.custom"
    one = "where the one function of tensors stands; write @geon.custom_deriv"
    refused = [
        (lambda: geon.custom_deriv(lambda a: a), takes),
        (lambda: geon.custom_deriv(lambda a, b: a), takes),
        (lambda: geon.custom_deriv(None), "the rule None is no function; write @geon.custom_deriv"),
        (lambda: geon.custom_deriv(lambda a, b, c: a)(x, x, x), one),
        (lambda: geon.custom_deriv(geon.tanh)(x), one),
    ]
    for call, message in refused:
        with pytest.raises(geon.ArgumentError) as caught:
            call()
        line = call.__code__.co_firstlineno
        assert message in str(caught.value) and f"test_custom.py:{line}" in str(caught.value)
    geon.custom_deriv(lambda g, out, a, b, c: [g, g, g])
    geon.custom_deriv(lambda *args: [])
