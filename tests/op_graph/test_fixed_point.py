"""``fixed_point``: what it finds, its derivatives by what it fulfils, and what it refuses."""

import numpy as np
import pytest

import geon
from geon.op_graph.evaluation.interpreter import interpret
from geon.op_graph.op_graph import deep_order, post_order
from geon.op_graph.text.fingerprint import canonical

N = geon.Axis("N")
k = geon.placeholder([N], "float64", name="k")
m = geon.placeholder([], "float64", name="m")
PLACES = np.array([0.0, 0.3, -0.6])


def zeros(*axes):
    return geon.broadcast(geon.cast(0.0, "float64"), axes)


def kepler(x0=None, tolerance=1e-13, **options):
    """e with e = k sin(e) + m."""
    x0 = zeros(N) if x0 is None else x0
    return geon.fixed_point(lambda e: k * geon.sin(e) + m, x0, tolerance, **options)


def values(roots, **known):
    given = {k: PLACES, m: 0.5, **{k if n == "k" else m: v for n, v in known.items()}}
    found = interpret(roots, given, {"N": len(given[k])})
    return [found[op] for op in roots]


def regions(roots):
    return [op for op in deep_order(roots) if op.primitive.kind == "region"]


def test_it_fulfils_the_equation():
    (e,) = values([kepler()])
    np.testing.assert_allclose(e, PLACES * np.sin(e) + 0.5, rtol=1e-12)


def test_it_ends_within_the_tolerance_or_after_max_steps():
    half = geon.placeholder([], "float64", name="half")

    def after(**options):
        root, _ = geon.fixed_point(lambda y: y / 2, half, converged=True, **options)
        return interpret([root], {half: 1.0}, {})[root]

    assert after(max_steps=0) == 1 and after(max_steps=3) == 0.125
    assert after(tolerance=0.25) == 0.25  # the change from 0.5 is within the tolerance
    assert after(tolerance=0.2) == 0.125
    assert after(tolerance=geon.constant(0.2)) == 0.125


def test_what_is_no_number_ends_it():
    root, converged = geon.fixed_point(lambda y: geon.log(y), m, converged=True)
    found, flag = values([root, converged], m=0.5)
    assert np.isnan(found) and not flag
    with pytest.raises(geon.ConvergenceError, match="1000 steps"):
        values([geon.fixed_point(lambda y: geon.log(y), m)], m=0.5)


def test_derivatives_are_those_of_the_equation():
    e = kepler()
    by_k, by_m = geon.deriv(geon.sum(e), [k, m])
    along = geon.jvp(e, k, geon.cos(k))
    e, by_k, by_m, along = values([e, by_k, by_m, along])
    slope = 1 / (1 - PLACES * np.cos(e))
    np.testing.assert_allclose(by_k, slope * np.sin(e), rtol=1e-10)
    np.testing.assert_allclose(by_m, slope.sum(), rtol=1e-10)
    np.testing.assert_allclose(along, np.cos(PLACES) * slope * np.sin(e), rtol=1e-10)


def test_derivatives_to_order_3():
    e = kepler()
    first = geon.deriv(geon.sum(geon.square(e)), k)
    second = geon.deriv(geon.sum(geon.sin(first)), m)
    roots = [first, second, geon.jvp(first, m, 1.0), geon.deriv(second, m)]
    here, low, high = (values(roots, m=0.5 + step) for step in (0, -1e-5, 1e-5))
    slopes = [(b - a) / 2e-5 for a, b in zip(low, high, strict=True)]
    np.testing.assert_allclose(here[1], (np.cos(here[0]) * slopes[0]).sum(), rtol=1e-7)
    np.testing.assert_allclose(here[2], slopes[0], rtol=1e-7)
    np.testing.assert_allclose(here[3], slopes[1], rtol=1e-7)


def test_where_it_begins_does_not_count():
    start = geon.placeholder([N], "float64", name="start")
    e = kepler(start)
    by_start = geon.deriv(geon.sum(e), start, unreached="zero")
    by_k = geon.deriv(geon.sum(e), k)
    found = interpret([by_start, by_k], {k: PLACES, m: 0.5, start: PLACES + 1}, {"N": 3})
    np.testing.assert_array_equal(found[by_start], np.zeros(3))
    np.testing.assert_allclose(found[by_k], values([geon.deriv(geon.sum(kepler()), k)])[0])


@pytest.mark.parametrize("size", [1e-30, 1e-8, 1.0, 1e30])
def test_small_and_large_gradients_are_as_exact(size):
    e = kepler(tolerance=1e-9)
    (small,) = values([geon.deriv(geon.sum(e) * size, k)])
    (one,) = values([geon.deriv(geon.sum(kepler()), k)])
    np.testing.assert_allclose(small / size, one, rtol=1e-7)


def test_a_cotangent_of_nothing():
    e = kepler()
    (found,) = values([geon.deriv(geon.sum(e) * 0.0, k)])
    np.testing.assert_array_equal(found, np.zeros(3))


def test_no_elements():
    e = kepler()
    by_k, by_m = geon.deriv(geon.sum(e), [k, m])
    found = values([e, by_k, by_m, geon.deriv(by_m, m)], k=np.zeros(0))
    assert [each.shape for each in found] == [(0,), (0,), (), ()] and found[2] == 0


def test_structures():
    start = {"a": zeros(N), "b": [m]}

    def f(x):
        return {"a": 0.3 * geon.sin(x["a"]) * x["b"][0] + k, "b": [geon.mean(x["a"]) / 3]}

    x = geon.fixed_point(f, start, 1e-13)
    assert isinstance(x, dict) and x["b"][0].axes == geon.Axes()
    loss = geon.sum(geon.square(x["a"])) * x["b"][0]
    by_k, along = geon.deriv(loss, k), geon.jvp(loss, k, geon.cos(k))
    here, by_k, along = values([loss, by_k, along])
    step = 1e-6 * np.cos(PLACES)
    (low,), (high,) = (values([loss], k=PLACES + sign * step) for sign in (-1, 1))
    np.testing.assert_allclose(along, (high - low) / 2e-6, rtol=1e-6)
    np.testing.assert_allclose((by_k * np.cos(PLACES)).sum(), along, rtol=1e-9)


def test_a_matrix_of_an_equation():
    h = geon.Axis("H", 3)
    w = geon.placeholder([h.prime, h], "float64", name="w")
    b = geon.placeholder([h], "float64", name="b")
    x = geon.fixed_point(
        lambda x: geon.cast_axes(geon.dot(w, x), [h]) + b, zeros(h), 1e-13
    )  # x = (1 - w)^-1 b
    jacobian = geon.jacobian(x, b)
    weights = np.array([[0.1, 0.2, 0.0], [0.0, -0.3, 0.1], [0.2, 0.2, 0.2]])
    found = interpret([x, jacobian], {w: weights, b: np.ones(3)}, {})
    inverse = np.linalg.inv(np.eye(3) - weights)
    np.testing.assert_allclose(found[x], inverse @ np.ones(3), rtol=1e-10)
    np.testing.assert_allclose(found[jacobian], inverse, rtol=1e-9, atol=1e-12)


def test_the_derivative_of_each_example():
    e = kepler()
    each = geon.deriv(e, m, per=N)
    found, e = values([each, e])
    np.testing.assert_allclose(found, 1 / (1 - PLACES * np.cos(e)), rtol=1e-9)


def test_in_loops_and_branches():
    t = geon.Axis("T", 3)

    def step(c, _):
        found = geon.fixed_point(lambda y: 0.3 * geon.sin(y * m) + c, c, 1e-13)
        return geon.cond(found > 0, lambda: found * 0.5, lambda: found + m), found

    last, seen = geon.scan(step, m, over=t)
    first = geon.deriv(last * geon.sum(seen), m)
    second = geon.deriv(first, m)
    here, low, high = (values([first, second], m=0.7 + step) for step in (0, -1e-6, 1e-6))
    np.testing.assert_allclose(here[1], (high[0] - low[0]) / 2e-6, rtol=1e-6)


def test_the_derivative_keeps_nothing_of_the_steps():
    by_k = geon.deriv(geon.sum(kepler()), k)
    assert {op.primitive.name for op in regions([by_k])} == {"fixed_point"}
    assert all(len(op.axes) < 2 for op in deep_order([by_k]))


def test_dumps_and_loads():
    by_k = geon.deriv(geon.sum(kepler()), k)
    text = geon.dumps(by_k)
    again = geon.loads(text)
    assert geon.dumps(*again) == text and canonical(again)[0] == canonical([by_k])[0]


def test_bodies_in_dumps_are_checked():
    text = geon.dumps(kepler(), notes=False)
    assert '"attrs": [1000, 1, ' in text
    with pytest.raises(geon.DumpError, match="1 results of 2 values"):
        geon.loads(text.replace('"attrs": [1000, 1, ', '"attrs": [1000, 2, '))


def test_f_is_called_once_and_equal_ones_are_one_op():
    calls = []
    geon.fixed_point(lambda y: calls.append(y) or y / 2, m)
    assert len(calls) == 1 and kepler() is kepler()
    assert all(op.primitive.name != "sin" for op in post_order([kepler()]))


x = geon.placeholder([N], name="x")
REFUSED = [
    (lambda: geon.fixed_point(lambda y: geon.sum(y), x), geon.AxisError, "f returns.*must stay"),
    (lambda: geon.fixed_point(lambda y: geon.cast(y, "float64"), x), geon.DTypeError, "float64"),
    (lambda: geon.fixed_point(lambda y: y, geon.iota(N)), geon.DTypeError, "int64.*no float"),
    (lambda: geon.fixed_point(lambda y: (y, y), x), geon.ArgumentError, "x0 is a tensor, and f"),
    (lambda: geon.fixed_point(lambda y: y, ()), geon.ArgumentError, "has no tensor"),
    (lambda: geon.fixed_point(lambda y: y, x, max_steps=-1), geon.ArgumentError, "max_steps=-1"),
    (lambda: geon.fixed_point(lambda y: y, x, tolerance=x), geon.DTypeError, "no float scalar"),
    (lambda: geon.fixed_point(lambda y: y, x, geon.iota(N)), geon.DTypeError, "no float scalar"),
    (lambda: geon.fixed_point(lambda y: geon.print(y), x), geon.ArgumentError, "runs the effect"),
    (
        lambda: geon.fixed_point(0.5, x),
        geon.ArgumentError,
        "f=0.5 is no function.*such as geon.cos",
    ),
]


@pytest.mark.parametrize(("call", "error", "message"), REFUSED)
def test_what_is_refused_names_both_sides(call, error, message):
    with pytest.raises(error, match=message) as raised:
        call()
    assert "test_fixed_point.py" in str(raised.value)
