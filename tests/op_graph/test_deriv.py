"""Derivatives: the places where other systems were wrong, errors, orders, and size."""

import gc
import time

import numpy as np
import pytest

import geon
from geon.op_graph.op_graph import interned_count, post_order

from .computing import compute

A, B, N = geon.Axis("A", 2), geon.Axis("B", 3), geon.Axis("N")
X = np.array([[0.2, -0.7, 1.3], [2.0, -1.6, 0.4]])


@pytest.fixture
def x():
    return geon.placeholder([A, B], "float64", name="x")


def scalar(value, name=None):
    """A float64 scalar placeholder and its feed."""
    leaf = geon.placeholder((), "float64", name=name)
    return leaf, {leaf: np.asarray(value, np.float64)}


def slope(f, *point):
    """The derivatives of ``f`` at a point, in each argument."""
    xs = [geon.placeholder((), "float64") for _ in point]
    feeds = dict(zip(xs, map(np.asarray, point), strict=True))
    return [float(compute(g, feeds)) for g in geon.deriv(f(*xs), xs, unreached="zero")]


# Points where conventions decide -----------------------------------------------------------------


def test_divide_at_zero():
    assert slope(geon.divide, 1.0, 0.0) == [np.inf, -np.inf]
    assert slope(geon.divide, 0.0, 2.0) == [0.5, -0.0]


@pytest.mark.parametrize(
    ("x", "y", "expected"),
    [
        (0.0, 2.0, [0.0, 0.0]),
        (0.0, 1.0, [1.0, 0.0]),
        (0.0, 0.0, [0.0, 0.0]),
        (0.0, 0.5, [np.inf, 0.0]),
        (0.0, -1.0, [-np.inf, 0.0]),
        (3.0, 0.0, [0.0, np.log(3.0)]),
        (np.inf, 0.0, [0.0, np.inf]),
    ],
)
def test_power_at_zero(x, y, expected):
    found = slope(geon.power, x, y)
    assert found[0] == expected[0] or (x, y) == (np.inf, 0.0)
    assert found[1] == pytest.approx(expected[1])


@pytest.mark.parametrize(
    ("exponent", "first", "second"),
    [(0, 0.0, 0.0), (1, 1.0, 0.0), (2, 0.0, 2.0), (3, 0.0, 0.0), (2.0, 0.0, 2.0)],
)
def test_power_by_a_number_at_zero(exponent, first, second):
    x, feeds = scalar(0.0)
    d = geon.deriv(x**exponent, x)
    assert compute(d, feeds) == first
    assert compute(geon.deriv(d, x, unreached="zero"), feeds) == second


def test_absolute_sqrt_and_sign_at_zero():
    assert slope(geon.absolute, 0.0) == [0.0]
    assert slope(geon.sqrt, 0.0) == [np.inf]
    assert slope(geon.sign, 0.0) == [0.0]


@pytest.mark.parametrize("extreme", [geon.maximum, geon.minimum])
def test_ties_are_shared(extreme):
    assert slope(extreme, 1.5, 1.5) == [0.5, 0.5]
    assert slope(lambda x: extreme(x, x), 1.5) == [1.0]
    larger = [1.0, 0.0] if extreme is geon.maximum else [0.0, 1.0]
    assert slope(extreme, 2.0, 1.0) == larger


def test_relu_at_zero_has_half():
    assert slope(lambda x: geon.maximum(x, 0.0), 0.0) == [0.5]


@pytest.mark.parametrize("reduce", [geon.max, geon.min])
def test_ties_in_a_reduction_are_shared(x, reduce):
    array = np.array([[1.0, 1.0, 1.0], [2.0, 2.0, 3.0]])
    found = compute(geon.deriv(geon.sum(reduce(x, B)), x), {x: array})
    ends = [[0, 0, 1.0], [0.5, 0.5, 0]]
    np.testing.assert_allclose(found, [[1 / 3] * 3, ends[reduce is geon.min]])


def test_stop_gradient(x):
    y = geon.sum(x * geon.stop_gradient(x))
    np.testing.assert_array_equal(compute(geon.deriv(y, x), {x: X}), X)
    with pytest.raises(geon.DerivativeError, match="not reached"):
        geon.deriv(geon.sum(geon.stop_gradient(x)), x)
    zero = geon.deriv(geon.sum(geon.stop_gradient(x)), x, unreached="zero")
    np.testing.assert_array_equal(compute(zero), np.zeros((2, 3)))


def test_two_slices_of_one_variable():
    v = geon.Variable(axes=[B], dtype="float64")
    y = geon.sum(v[0:2] * v[1:3]) + v[0] * v[0]
    found = compute(geon.deriv(y, v), {v: np.array([2.0, 3.0, 5.0])})
    np.testing.assert_array_equal(found, [3 + 4, 2 + 5, 3])


def test_derivative_in_a_slice_itself():
    v = geon.Variable(axes=[B], dtype="float64")
    part = v[1:3]
    d = geon.deriv(geon.sum(part * part) + geon.sum(v), part)
    np.testing.assert_array_equal(compute(d, {v: np.array([2.0, 3.0, 5.0])}), [6, 10])


# State -------------------------------------------------------------------------------------------


def test_sequential_reads_after_assignments():
    v = geon.Variable(dtype="float64")
    y = geon.sequential([geon.assign(v, v * v), geon.assign(v, v * 3.0), v * v])
    assert compute(geon.deriv(y, v), {v: np.asarray(2.0)}) == 9 * 4 * 2**3


def test_sequential_with_a_set_on_a_slice():
    v = geon.Variable(axes=[B], dtype="float64")
    s = geon.Variable(dtype="float64")
    y = geon.sequential([geon.assign(v[1], s * s), geon.sum(v * v)])
    feeds = {v: np.array([1.0, 7.0, 3.0]), s: np.asarray(2.0)}
    in_v, in_s = (compute(g, feeds) for g in geon.deriv(y, [v, s]))
    np.testing.assert_array_equal(in_v, [2, 0, 6])
    assert in_s == 2 * 4 * 4


def test_value_at_entry_beside_value_after():
    v = geon.Variable(dtype="float64")
    y = v * geon.sequential([geon.assign(v, v * 2.0), v])
    assert compute(geon.deriv(y, v), {v: np.asarray(3.0)}) == 12.0


# Errors ------------------------------------------------------------------------------------------


def test_a_constant_is_refused(x):
    c = geon.constant([1.0, 2.0], axes=[A], dtype="float64", name="c")
    with pytest.raises(geon.DerivativeError, match=r"c\(A:2\).*test_deriv.py:\d+.*is a constant"):
        geon.deriv(geon.sum(x * 2.0), c)
    zero = geon.deriv(geon.sum(x), c, unreached="zero")
    assert zero.axes is c.axes and zero.dtype is c.dtype
    np.testing.assert_array_equal(compute(zero), [0, 0])


def test_a_constant_that_is_used_has_a_derivative(x):
    c = geon.constant([1.0, 2.0], axes=[A], dtype="float64")
    np.testing.assert_allclose(compute(geon.deriv(geon.sum(x * c), c), {x: X}), X.sum(1))


def test_an_unreached_variable_is_refused(x):
    v = geon.Variable(axes=[A, N], name="v")
    with pytest.raises(geon.DerivativeError, match=r"v\(A:2, N\).*test_deriv.py:\d+.*not reached"):
        geon.deriv(geon.sum(x), v)
    zero = geon.deriv(geon.sum(x), [x, v], unreached="zero")[1]
    np.testing.assert_array_equal(compute(zero, lengths={"N": 4}), np.zeros((2, 4)))


def test_integers_are_refused(x):
    n = geon.placeholder([A], "int32", name="n")
    with pytest.raises(geon.DerivativeError, match=r"n\(A:2\) of dtype int32.*test_deriv.py:\d+"):
        geon.deriv(geon.sum(x * n), n)
    with pytest.raises(geon.DerivativeError, match=r"y is .* int64.*test_deriv.py:\d+"):
        geon.deriv(geon.sum(n), x)
    zero = geon.deriv(geon.sum(x * n), n, unreached="zero")
    assert zero.dtype is n.dtype and zero.axes is n.axes


def test_a_path_through_integers_is_not_reached(x):
    rounded = geon.cast(geon.cast(x, "int64"), "float64")
    with pytest.raises(geon.DerivativeError, match="not reached"):
        geon.deriv(geon.sum(rounded), x)


def test_a_tensor_needs_a_seed(x):
    with pytest.raises(geon.DerivativeError, match=r"seed=.*\(A:2, B:3\)"):
        geon.deriv(x * x, x)
    with pytest.raises(geon.AxisError, match="axis 'A' for many at once, and x.* has it too"):
        geon.deriv(geon.sum(x * x), x, seed=x)
    with pytest.raises(geon.DTypeError, match="int32"):
        geon.deriv(x * x, x, seed=geon.placeholder([A, B], "int32"))
    with pytest.raises(geon.DerivativeError, match="unreached="):
        geon.deriv(geon.sum(x), x, unreached="maybe")


def test_jvp_counts_its_tangents(x):
    with pytest.raises(geon.DerivativeError, match="1 tensors but 2"):
        geon.jvp(x, [x], [x, x])
    with pytest.raises(geon.DerivativeError, match="int32"):
        geon.jvp(x, geon.placeholder((), "int32"), 1)


def test_a_row_without_a_rule_is_named_with_its_line(x, monkeypatch):
    y = geon.sum(geon.erf(x))
    monkeypatch.setattr(type(geon.erf), "__setattr__", object.__setattr__)
    monkeypatch.setattr(geon.erf, "partials", None)
    for derive in (lambda: geon.deriv(y, x), lambda: geon.jvp(y, x, 1.0)):
        with pytest.raises(geon.DerivativeError, match=r"erf has no.*test_deriv.py:\d+.*custom_d"):
            derive()


def test_derived_ops_say_whose_derivative_they_are(x):
    d = geon.deriv(geon.sum(geon.tanh(x)), x)
    assert "test_deriv.py:" in d.file_info and "derivative of tanh" in d.file_info
    assert "tangent of tanh" in geon.jvp(geon.tanh(x), x, x).file_info


# Seeds and several targets -----------------------------------------------------------------------


def test_seed_weighs_the_elements(x):
    seed = geon.constant([1.0, -2.0], axes=[A], dtype="float64")
    found = compute(geon.deriv(x * x, x, seed=seed), {x: X})
    np.testing.assert_allclose(found, 2 * X * np.array([[1], [-2]]))
    np.testing.assert_allclose(compute(geon.deriv(x * x, x, seed=1), {x: X}), 2 * X)
    np.testing.assert_allclose(compute(geon.vjp(x * x, x, X), {x: X}), 2 * X * X)


def test_several_targets_share_one_sweep():
    xs = [geon.placeholder([B], "float64") for _ in range(3)]

    def network():
        h = xs[0]
        for k in range(40):
            h = geon.tanh(h * xs[k % 3])
        return geon.sum(h)

    y = network()
    before = interned_count()
    together = geon.deriv(y, xs)
    built = interned_count() - before
    del together
    before = interned_count()
    alone = geon.deriv(y, xs[0])
    assert built < 1.5 * (interned_count() - before)
    assert alone is geon.deriv(y, xs)[0]


def test_deriv_of_a_list_is_a_list_and_of_a_tuple_too(x):
    y = geon.sum(x)
    assert isinstance(geon.deriv(y, [x]), list) and isinstance(geon.deriv(y, (x, x)), list)
    assert geon.deriv(y, y).axes is y.axes


# Orders ------------------------------------------------------------------------------------------


def test_tanh_to_the_fourth_order():
    x, feeds = scalar(0.3)
    t = np.tanh(0.3)
    expected = [
        1 - t**2,
        -2 * t * (1 - t**2),
        -2 * (1 - t**2) * (1 - 3 * t**2),
        8 * t * (1 - t**2) * (2 - 3 * t**2),
    ]
    y = geon.tanh(x)
    for value in expected:
        y = geon.deriv(y, x)
        assert compute(y, feeds) == pytest.approx(value, rel=1e-13)


def test_hessian_vector_product_against_the_dense_hessian(x):
    w = geon.placeholder([B], "float64")
    y = geon.sum(geon.tanh(x * w) * geon.exp(w) + x * x * x)
    feeds = {x: X, w: np.array([0.5, -0.3, 0.9])}
    rng = np.random.default_rng(0)
    vx, vw = rng.normal(size=(2, 3)), rng.normal(size=3)
    found = geon.hvp(y, [x, w], [geon.constant(vx, axes=[A, B]), geon.constant(vw, axes=[B])])
    gx, gw = geon.deriv(y, [x, w])

    def row(g, axes, index):
        picked = g[tuple(index)] if axes else g
        return [compute(d, feeds) for d in geon.deriv(picked, [x, w], unreached="zero")]

    for g, hv in zip((gx, gw), found, strict=True):
        dense = np.zeros([a.length for a in g.axes])
        for index in np.ndindex(dense.shape):
            hx, hw = row(g, g.axes, index)
            dense[index] = np.vdot(hx, vx) + np.vdot(hw, vw)
        np.testing.assert_allclose(compute(hv, feeds), dense, rtol=1e-12)


def test_hvp_of_one_tensor(x):
    hv = geon.hvp(geon.sum(x * x * x), x, geon.constant(X, axes=[A, B]))
    np.testing.assert_allclose(compute(hv, {x: X}), 6 * X * X)


def test_jvp_of_several_results_and_of_none_reached(x):
    first, second, third = geon.jvp([x * x, geon.sum(x), geon.constant(2.0)], x, 1.0)
    np.testing.assert_allclose(compute(first, {x: X}), 2 * X)
    assert compute(second) == 6 and compute(third) == 0


# Broadcasting and provenance ---------------------------------------------------------------------


def test_the_factor_of_a_broadcast_is_kept():
    x, w = geon.placeholder([N], "float64"), geon.placeholder((), "float64")
    d = geon.deriv(geon.sum(geon.tanh(x) + w), w)
    assert compute(d, {x: np.zeros(4), w: np.zeros(())}, {"N": 4}) == 4


def test_the_derivative_has_the_axes_of_x_in_order():
    x, w = geon.placeholder([A, B], "float64"), geon.placeholder([B, A], "float64")
    d = geon.deriv(geon.sum(x * w), w)
    assert d.axes is w.axes
    np.testing.assert_array_equal(compute(d, {x: X, w: X.T}), X.T)


def test_mixed_dtypes(x):
    w = geon.placeholder([B], "float32")
    d = geon.deriv(geon.sum(x * w), w)
    assert d.dtype is w.dtype
    np.testing.assert_allclose(compute(d, {x: X, w: np.ones(3)}), X.sum(0), rtol=1e-6)


# Derivatives with respect to something that is computed ------------------------------------------


def test_in_an_intermediate_that_stabilise_rewrites():
    z, feeds = scalar(-800.0)
    s = geon.sigmoid(z)
    log_s = geon.log(s)
    d = geon.deriv(log_s, s)
    assert d is geon.divide(1.0, s)
    z_small = {z: np.asarray(0.3)}
    assert compute(d, z_small) == pytest.approx(1 + np.exp(-0.3))
    assert compute(geon.deriv(log_s, z), feeds) == 1.0


def test_in_an_intermediate_and_what_is_below_it():
    z, feeds = scalar(0.7)
    e = geon.exp(geon.log(geon.exp(z)))
    y = geon.log(e) * e
    in_e, in_z = geon.deriv(y, [e, z])
    assert compute(in_e, feeds) == pytest.approx(1 + 0.7)
    assert compute(in_z, feeds) == pytest.approx((1 + 0.7) * np.exp(0.7))


def test_no_rule_makes_another_op_the_target():
    z, feeds = scalar(0.7)
    t = geon.softplus(-z)
    y = t * geon.log(geon.sigmoid(z))  # the second factor is -softplus(-z) when stable
    assert compute(geon.deriv(y, t), feeds) == pytest.approx(-np.log1p(np.exp(-0.7)))
    assert compute(geon.jvp(y, t, 1.0), feeds) == pytest.approx(-np.log1p(np.exp(-0.7)))


def test_a_target_that_is_rewritten_away():
    z, feeds = scalar(0.7)
    t = geon.log(geon.exp(z))
    assert compute(geon.deriv(t * z, t), feeds) == pytest.approx(0.7)
    assert compute(geon.deriv(t * z, z), feeds) == pytest.approx(1.4)


def test_results_hold_the_target_itself(x):
    h = geon.tanh(x)
    d = geon.deriv(geon.sum(h * h), h)
    assert h in set(post_order([d]))
    assert all(op.primitive.name != "copy" for op in post_order([d]))


def test_derivative_of_something_in_itself(x):
    np.testing.assert_array_equal(compute(geon.deriv(x, x, seed=2.0)), np.full((2, 3), 2.0))


# Stability ---------------------------------------------------------------------------------------


def test_log_of_a_softmax_far_out():
    z = geon.placeholder([B], "float64")
    e = geon.exp(z - geon.max(z))
    y = geon.log(e / geon.sum(e))[0]
    feeds = {z: np.array([-2000.0, 0.0, 1000.0])}
    np.testing.assert_allclose(compute(geon.deriv(y, z), feeds), [1, 0, -1], atol=1e-300)


# Size --------------------------------------------------------------------------------------------

DEPTH = 100_000


def chain(x, depth):
    """A chain of that many ops above x."""
    y = x
    for k in range(depth // 2):
        y = geon.sin(y) * 1.0001 if k % 2 else geon.tanh(y) + 0.5
    return y


@pytest.mark.slow
def test_a_deep_chain_is_derived_without_recursion():
    x, _ = scalar(0.5)
    y = chain(x, DEPTH)
    started = time.perf_counter()
    d = geon.deriv(y, x)
    forward = geon.jvp(y, x, 1.0)
    assert time.perf_counter() - started < 60
    assert len(post_order([d])) > DEPTH and len(post_order([forward])) > DEPTH


def test_a_long_chain_has_one_value_in_both_modes():
    x, feeds = scalar(0.5)
    y = chain(x, 2000)
    reverse, forward = compute([geon.deriv(y, x), geon.jvp(y, x, 1.0)], feeds)
    assert forward == pytest.approx(float(reverse), rel=1e-11)


def test_a_deep_chain_of_linearised_rows_takes_linear_time():
    x, feeds = scalar(0.5)
    spent = []
    for depth in (150, 1200):
        y = x
        for _ in range(depth):
            y = geon.max(geon.stack([y, y * 0.5], geon.Axis("S")))
        gc.collect()  # what other tests left is not collected meanwhile
        started = time.thread_time()  # of this thread alone, whatever else runs
        d = geon.deriv(y, x)
        spent.append(time.thread_time() - started)
        if depth == 150:
            assert compute(d, feeds) == 1.0
    assert spent[1] < 30 * spent[0]  # linear is 8, quadratic is 64
