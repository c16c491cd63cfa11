"""Carries of which a step changes parts: in the memory where they lie, and the values are right."""

import numpy as np
import pytest

import geon

T = geon.Axis("T", 12)
R = geon.Axis("R", 12)
N = geon.Axis("N", 5000)
BYTES = 4 * 12 * 5000
x = geon.placeholder([T, N], name="x")
table = geon.placeholder([R, N], name="table")
ZERO = geon.constant(0, dtype="int64")
RNG = np.random.default_rng(3)
XS = RNG.standard_normal((12, 5000)).astype(np.float32)
TABLE = RNG.standard_normal((12, 5000)).astype(np.float32)


def put(whole, at, value):
    """The whole with a value at a place of R."""
    return geon.sequential([geon.assign(whole[{R: at}], value), whole])


def noted(carry, x_t):
    """A step that adds to one row."""
    at, whole = carry
    row = geon.mod(at * 5, 7)
    return (at + 1, put(whole, row, whole[{R: row}] + x_t)), None


def as_noted(whole, xs):
    whole = whole.copy()
    for at, x_t in enumerate(xs):
        whole[at * 5 % 7] += x_t
    return whole


def test_no_step_copies_what_it_does_not_change(make):
    transformer = make()
    (_, last), _ = geon.scan(noted, (ZERO, table), x, over=T)
    f = transformer.computation(last, table, x)
    before = TABLE.copy()
    np.testing.assert_array_equal(f(TABLE, XS), as_noted(TABLE, XS))
    np.testing.assert_array_equal(TABLE, before)
    assert BYTES <= f.peak_bytes() < 1.5 * BYTES


def test_a_carry_that_is_no_result_has_one_place(make):
    (_, _), sums = geon.scan(
        lambda c, x_t: (noted(c, x_t)[0], geon.sum(c[1][{R: 0}])), (ZERO, table), x, over=T
    )
    f = make().computation(sums, table, x)
    expected = [as_noted(TABLE, XS[:k])[0].sum(dtype=np.float64) for k in range(12)]
    np.testing.assert_allclose(f(TABLE, XS), expected, rtol=1e-3, atol=1e-2)
    assert f.peak_bytes() < 1.5 * BYTES


@pytest.mark.parametrize("steps", [0, 1, 2, 3])
def test_any_number_of_steps(make, steps):
    xs = geon.placeholder([geon.Axis("T"), N], name="xs")
    (_, last), _ = geon.scan(noted, (ZERO, table), xs, over="T")
    f = make().computation(last, table, xs)
    np.testing.assert_array_equal(f(TABLE, XS[:steps]), as_noted(TABLE, XS[:steps]))


@pytest.mark.parametrize("steps", [0, 1, 5])
def test_in_a_while_loop(make, steps):
    n = geon.placeholder([], dtype="int64", name="n")
    _, last = geon.while_loop(lambda c: c[0] < n, lambda c: noted(c, 1.0)[0], (ZERO, table))
    f = make().computation(last, table, n)
    np.testing.assert_array_equal(f(TABLE, steps), as_noted(TABLE, np.ones((steps, 1), "f4")))
    assert f.peak_bytes() < 1.5 * BYTES


def test_a_variable_takes_one_copy_beside_it(make):
    transformer = make()
    kept = geon.Variable([R, N], initial_value=TABLE, name="kept")
    _, effect = geon.scan(
        lambda at, x_t: (at + 1, geon.assign(kept[{R: at}], x_t + kept[{R: at}])), ZERO, x, over=T
    )
    f = transformer.computation(effect, x)
    f(XS)
    np.testing.assert_array_equal(transformer.get(kept), TABLE + XS)
    assert f.peak_bytes() < 1.5 * BYTES


def test_a_variable_over_the_axis_of_the_loop_takes_one_too(make):
    transformer = make()
    kept = geon.Variable([T, N], initial_value=TABLE, name="kept")
    _, effect = geon.scan(
        lambda at, x_t: (at + 1, geon.assign(kept[{T: at}], x_t - kept[{T: at}])), ZERO, x, over=T
    )
    f = transformer.computation(effect, x)
    f(XS)
    np.testing.assert_array_equal(transformer.get(kept), XS - TABLE)
    assert f.peak_bytes() < 1.5 * BYTES


def test_derivatives(make):
    (_, last), _ = geon.scan(noted, (ZERO, table), x, over=T)
    loss = geon.sum(last * last * last)
    f = make().computation(geon.deriv(loss, [table, x]), table, x)
    by_table, by_x = f(TABLE, XS)
    slope = 3 * as_noted(TABLE, XS) ** 2
    np.testing.assert_allclose(by_table, slope, rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(by_x, slope[[k * 5 % 7 for k in range(12)]], rtol=1e-4, atol=1e-4)


def swapped(a, b, at, e):
    return put(b, at, e), put(a, at, -e)


def crossed(a, b, at, e):
    return put(a, at, b[{R: at}] + e), put(b, at, a[{R: at}] - e)


def seen_after(a, b, at, e):
    new = put(a, at, e)
    return new, put(b, at, geon.sum(new, R) * 0.25)


def seen_before(a, b, at, e):
    return put(a, at, e), put(b, at, geon.sum(a, R) * 0.25)


def twice(a, b, at, e):
    effects = [geon.assign(a[{R: at}], e), geon.assign(a[{R: 11 - at}], 2 * e)]
    return geon.sequential([*effects, a]), b


def turned(a, b, at, e):
    return put(geon.flip(a, R), at, e), put(b, at, e)


STEPS = [swapped, crossed, seen_after, seen_before, twice, turned]


def in_python(step, a, b, xs):
    """The same step on arrays."""
    for at, e in enumerate(xs):
        old_a, old_b = a.copy(), b.copy()
        if step is swapped:
            a, b = old_b, old_a
            a[at], b[at] = e, -e
        elif step is crossed:
            a[at], b[at] = old_b[at] + e, old_a[at] - e
        elif step is seen_after:
            a[at] = e
            b[at] = a.sum(axis=0) * 0.25
        elif step is seen_before:
            a[at] = e
            b[at] = old_a.sum(axis=0) * 0.25
        elif step is twice:
            a[at] = e
            a[11 - at] = 2 * e
        else:
            a = a[::-1].copy()
            a[at], b[at] = e, e
    return a, b


@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("plan", [True, False])
def test_two_carries_that_read_each_other(make, step, plan):
    other = geon.placeholder([R, N], name="other")

    def both(carry, x_t):
        at, a, b = carry
        return (at + 1, *step(a, b, at, x_t)), None

    (_, *last), _ = geon.scan(both, (ZERO, table, other), x, over=T)
    found = make().computation(last, table, other, x, plan=plan)(TABLE, XS, XS)
    expected = in_python(step, TABLE.astype(np.float64), XS.astype(np.float64), XS)
    for array, right in zip(found, expected, strict=True):
        np.testing.assert_allclose(array, right, rtol=1e-4, atol=1e-4)


def test_a_position_outside_raises_and_the_variable_is_as_it_was(make):
    transformer = make()
    kept = geon.Variable([R, N], initial_value=TABLE, name="kept")
    start = geon.placeholder([], dtype="int64", name="start")
    _, effect = geon.scan(
        lambda at, x_t: (at + 1, geon.assign(kept[{R: at}], x_t)), start, x, over=T
    )
    f = transformer.computation(effect, start, x)
    with pytest.raises(geon.IndexRangeError):
        f(3, XS)
    np.testing.assert_array_equal(transformer.get(kept), TABLE)


def test_a_loop_in_a_loop(make):
    def outer(c, x_t):
        (_, whole), _ = geon.scan(noted, (ZERO, c), geon.broadcast(x_t, [T.prime, N]), over=T.prime)
        return whole, None

    xs = geon.placeholder([T.with_length(3), N], name="xs")
    last, _ = geon.scan(outer, table, xs, over="T")
    expected = TABLE
    for x_t in XS[:3]:
        expected = as_noted(expected, [x_t] * 12)
    found = make().computation(last, table, xs)(TABLE, XS[:3])
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5)
