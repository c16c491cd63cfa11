"""``fixed_point`` on each transformer: values, derivatives, lengths and plans."""

import numpy as np
import pytest

import geon
from geon.transformers.lowering.planning.plan_verifier import verify_plan
from tests.transformers.test_scan import agree, floats

N, H = geon.Axis("N"), geon.Axis("H", 3)
x = geon.placeholder([N, H], name="x")
w = geon.placeholder([H.prime, H], name="w")


def layer(tolerance=1e-6, **options):
    """h with h = tanh(0.3 h w + x)."""
    return geon.fixed_point(
        lambda h: geon.tanh(0.3 * geon.cast_axes(geon.dot(h, w), [N, H]) + x),
        geon.broadcast(0.0, [N, H]),
        tolerance,
        **options,
    )


@pytest.mark.parametrize("rows", [0, 1, 5, 17])
def test_values_and_derivatives(transformer, rows):
    h = layer()
    gx, gw = geon.deriv(geon.sum(geon.square(h)), [x, w])
    results = [h, gx, gw, geon.jvp(h, w, geon.sin(w)), geon.deriv(geon.sum(geon.sin(gw)), x)]
    f = agree(transformer, results, {x: floats(rows, 3), w: floats(3, 3)})
    verify_plan(f.plan)


def test_a_limit_that_ends_it(transformer):
    for limit in (0, 1, 2):
        h, _ = layer(max_steps=limit, converged=True)
        agree(transformer, [h, geon.deriv(geon.sum(h), w)], {x: floats(2, 3), w: floats(3, 3)})


def test_a_loop_that_does_not_converge_raises_or_says_so(transformer):
    y, n = geon.placeholder([H], name="y"), geon.Variable([], initial_value=0, name="n")
    here = np.array([0.0, 0.3, 0.0], np.float32)
    turns, grows = (lambda z: 1 - z), (lambda z: 2 * z + 1)
    starts = [(turns, y), (grows, y), (lambda z: geon.log(z - 1), y), (geon.cos, y)]
    failed = []
    for f, start in starts[:3]:
        x = geon.fixed_point(f, start, max_steps=300, name="found")
        compute = transformer.computation([geon.assign(n, n + 1), geon.sum(x)], y)
        with pytest.raises(geon.ConvergenceError) as caught:
            compute(here)
        if "test_fixed_point.py" not in str(caught.value) or transformer.get(n) != 0:
            failed.append(str(caught.value))
    assert not failed
    assert str(caught.value).partition("made at ")[2].partition(".py:")[2].partition(", ")[2] == (
        "in the forward pass, of 300 steps at most, did not converge: the last step changed an "
        "element by more than the tolerance, or the values grew to infinity or NaN; variables are "
        "as they were; begin nearer to the solution, give a larger tolerance= or max_steps=, or "
        "ask with converged=True whether the loop converged"
    )
    flags = [geon.fixed_point(f, start, converged=True)[1] for f, start in starts]
    assert list(transformer.computation(flags, y)(here)) == [False, False, False, True]
    unreached = geon.broadcast(np.inf, [H])  # infinite at first, so it may be so at the end
    least = transformer.computation(geon.fixed_point(lambda z: geon.minimum(z, y), unreached), y)
    np.testing.assert_array_equal(least([1, np.inf, 2]), [1, np.inf, 2])


def test_a_gradient_that_does_not_converge_raises_where_the_loop_does(transformer):
    """The loop begins at the solution of an equation that is no contraction."""

    def gradients(**options):
        x = geon.placeholder(name="x")
        made = geon.fixed_point(lambda z: 2 * z + x, -x, **options)
        z = made[0] if options else made
        return [transformer.computation(g, x) for g in (z, geon.deriv(z, x), geon.jvp(z, x, 1.0))]

    value, *slopes = gradients()
    assert value(1.0) == -1
    for slope in slopes:
        with pytest.raises(geon.ConvergenceError, match="in the derivative pass, .*not converge"):
            slope(1.0)
    value, *slopes = gradients(converged=True)
    assert value(1.0) == -1 and not np.isfinite([slope(1.0) for slope in slopes]).any()


def test_a_step_of_a_loop_that_does_not_converge_is_named(transformer):
    x = geon.placeholder(name="x")

    def step(c, _):
        found = geon.fixed_point(lambda z: geon.where(c > 1.5, 1 - z, z / 2), 0.25 + 0 * c)
        return c + 1 + found, None

    last, _ = geon.scan(step, x, over=geon.Axis("T", 3))
    with pytest.raises(geon.ConvergenceError, match="did not converge, at step 2 along T: "):
        transformer.computation(last, x)(0.0)


def test_a_structure_of_other_axes_and_dtypes(transformer):
    n = geon.placeholder([N], "float64", name="n")

    def f(c):
        a, b = c
        return 0.5 * geon.sin(a) + geon.cast(geon.mean(b), "float32"), 0.25 * b + n

    a, b = geon.fixed_point(f, (geon.constant(0.0), n), 1e-6)
    agree(transformer, [a, b, geon.deriv(geon.cast(a, "float64"), n)], {n: floats(5) * 1.0})


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float64"])
def test_other_dtypes(transformer, dtype):
    y = geon.placeholder([N], dtype, name="y")
    z = geon.fixed_point(lambda z: 0.3 * geon.sin(z) + y, y, 1e-3)
    (c, _) = geon.while_loop(lambda c: c[1] < 3, lambda c: (geon.sin(c[0]) * 1.5, c[1] + 1), (y, 0))
    results = [z, c, *(geon.deriv(geon.sum(each), y) for each in (z, c))]
    assert {op.dtype for op in results} == {y.dtype}
    agree(transformer, results, {y: floats(4).astype(y.dtype)}, rtol=2e-2)


def test_a_variable_that_is_solved_for(transformer):
    v = geon.Variable([H], initial_value=1.0, name="v")
    b = geon.placeholder([H], name="b")
    h = geon.fixed_point(lambda h: geon.cos(h) * 0.5 + b, v)
    f = transformer.computation(geon.assign(v, h), b)
    given = np.array([0.0, 1.0, -1.0], np.float32)
    f(given)
    found = transformer.get(v)
    np.testing.assert_allclose(found, np.cos(found) * 0.5 + given, atol=2e-6)


def test_peak_bytes_do_not_depend_on_steps(transformer):
    def sizes(h):
        f = transformer.computation([geon.deriv(geon.sum(h), w)], x, w)
        return f.peak_bytes({N: 4})

    assert sizes(layer(max_steps=10)) == sizes(layer(max_steps=100000))


def test_what_explain_says(transformer):
    f = transformer.computation(layer(), x, w)
    assert "= fixed_point(" in f.explain("build")
    assert "= while(" in f.explain("simplify")
