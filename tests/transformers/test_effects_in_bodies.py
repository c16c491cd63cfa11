"""Assignments in steps and branches: as a loop in Python does them; prints are refused."""

import gc
import warnings

import numpy as np
import pytest

import geon

T = geon.Axis("T")
N = geon.Axis("N", 3)
x = geon.placeholder([T], name="x")
v = geon.Variable([], initial_value=1.0, name="v")
XS = [1.0, 2.0, -0.5]


def assigned(c):
    """A step that assigns, and reads what it assigned."""
    return geon.sequential([geon.assign(v, v + c), c * v])


def both(c, xs, now):
    """The same in Python: the carry and the variable after the steps."""
    for x_t in xs:
        now += c
        c = c * now + x_t
    return c, now


def test_steps_see_what_those_before_assigned(make):
    transformer = make()
    last, seen = geon.scan(lambda c, x_t: (assigned(c) + x_t, v), 0.5, x)
    f = transformer.computation((last, seen), x)
    expected, now = both(0.5, XS, 1.0)
    found, stacked = f(XS)
    assert (found, transformer.get(v)) == (pytest.approx(expected), pytest.approx(now))
    np.testing.assert_allclose(stacked, [1.0, *(both(0.5, XS[:k], 1.0)[1] for k in (1, 2))])
    expected, then = both(0.5, XS, now)
    assert f(XS)[0] == pytest.approx(expected, rel=1e-5)
    assert transformer.get(v) == pytest.approx(then, rel=1e-5)


def test_a_loop_of_no_steps_assigns_what_was_there(make):
    transformer = make()
    last, _ = geon.scan(lambda c, x_t: (assigned(c), None), 0.5, x)
    assert transformer.computation(last, x)([]) == 0.5
    assert transformer.get(v) == 1.0


@pytest.mark.parametrize("result", ["carry", "value", "effect"])
def test_any_result_of_a_loop_runs_its_assignments(make, result):
    transformer = make()
    last, (value, effect) = geon.scan(
        lambda c, x_t: (c + x_t, (c, geon.assign(v, v * x_t))), 0.0, x
    )
    asked = {"carry": last, "value": value, "effect": effect}[result]
    found = transformer.computation(asked, x)(XS)
    assert transformer.get(v) == -1.0
    assert (found is None) == (result == "effect")


def test_other_reads_see_the_variable_as_it_was(make):
    transformer = make()
    last, _ = geon.scan(lambda c, x_t: (c + x_t, geon.assign(v, c)), v, x)
    f = transformer.computation((v + 0.0, last, geon.sequential([last, v + 0.0])), x)
    assert [float(each) for each in f(XS)] == [1.0, 3.5, 4.0]


def test_a_variable_over_the_axis_of_the_loop_is_set_place_by_place(make):
    transformer, axis = make(), T.with_length(3)
    whole = geon.Variable([axis], initial_value=np.zeros(3, np.float32), name="whole")
    xs = geon.placeholder([axis], name="xs")

    def step(at, x_t):
        return at + 1, geon.assign(whole[{axis: at}], x_t + geon.sum(whole))

    _, effect = geon.scan(step, geon.constant(0, dtype="int64"), xs)
    transformer.computation(effect, xs)([1.0, 2.0, 3.0])
    np.testing.assert_array_equal(transformer.get(whole), [1.0, 3.0, 7.0])


def test_a_placeholder_is_assigned_for_what_comes_later(make):
    h = geon.placeholder([N], name="h")
    _, effect = geon.scan(lambda c, x_t: (c, geon.assign(h, 2 * h + x_t)), (), x)
    given = np.ones(3, np.float32)
    f = make().computation((geon.sequential([effect, h]), h), h, x)
    after, before = f(given, XS)
    np.testing.assert_array_equal(after, [15.5] * 3)
    np.testing.assert_array_equal([before, given], np.ones((2, 3)))


def test_what_stands_for_a_carry_may_be_assigned_within_its_step(make):
    def step(c, x_t):
        return geon.sequential([geon.assign(c, c + x_t), c * c]), None

    assert make().computation(geon.scan(step, 1.0, x)[0], x)([1.0, 2.0]) == 36.0


def test_a_loop_in_a_loop_assigns_in_each_step(make):
    transformer = make()

    def outer(c, x_t):
        inner, _ = geon.scan(lambda d, e: (d + v, geon.assign(v, v + e)), 0.0, x)
        return c + inner * x_t, None

    last, _ = geon.scan(outer, 0.0, x)
    found, now, expected = transformer.computation(last, x)(XS), 1.0, 0.0
    for x_t in XS:
        inner = 0.0
        for e in XS:
            inner, now = inner + now, now + e
        expected += inner * x_t
    assert (found, transformer.get(v)) == (pytest.approx(expected), pytest.approx(now))


def test_an_assignment_from_before_is_run_in_each_step(make):
    transformer, more = make(), geon.assign(v, v + 1)
    transformer.computation(geon.scan(lambda c, x_t: (c, more), (), x)[1], x)(XS)
    assert transformer.get(v) == 4.0


def test_a_while_loop_assigns_and_its_condition_sees_it(make):
    transformer = make()
    last, count = geon.while_loop(lambda c: v < 100, assigned, 2.0, count=True)
    found, now, c, steps = transformer.computation((last, count))(), 1.0, 2.0, 0
    while now < 100:
        now += c
        c, steps = c * now, steps + 1
    assert (float(found[0]), int(found[1])) == (c, steps)
    assert transformer.get(v) == now


def test_the_branch_that_is_taken_assigns(make):
    transformer = make()
    w = geon.Variable([N], initial_value=np.zeros(3, np.float32), name="w")
    i = geon.placeholder([], dtype="int64", name="i")
    branches = [
        lambda: (geon.assign(v, 5.0), geon.sum(w)),
        lambda: (None, geon.sequential([geon.assign(w, w + v), geon.sum(w)])),
        lambda: (geon.doall([geon.assign(v, v * 2), geon.assign(w[{N: 0}], v)]), geon.sum(w)),
    ]
    f = transformer.computation(geon.case_of(i, branches), i)
    seen = []
    for k in (0, 2, 1, 1):
        total = float(f(k)[1])
        seen.append((total, float(transformer.get(v)), transformer.get(w).tolist()))
    assert seen == [
        (0.0, 5.0, [0.0, 0.0, 0.0]),
        (0.0, 10.0, [5.0, 0.0, 0.0]),
        (35.0, 10.0, [15.0, 10.0, 10.0]),
        (65.0, 10.0, [25.0, 20.0, 20.0]),
    ]


def test_branches_of_effects_alone_give_an_effect(make):
    transformer = make()
    t = geon.placeholder([], dtype="bool", name="t")
    effect = geon.cond(t, lambda: geon.assign(v, v + 1), lambda: None)
    f = transformer.computation(effect, t)
    f(True)
    f(False)
    assert transformer.get(v) == 2.0


def test_derivatives_go_through_what_is_assigned(make):
    last, _ = geon.scan(lambda c, x_t: (assigned(c) + x_t, None), 0.5, x)
    slopes = make().computation((geon.deriv(last, v), geon.deriv(last, x)), x)(XS)
    step = 1e-6
    by_v = (both(0.5, XS, 1.0 + step)[0] - both(0.5, XS, 1.0 - step)[0]) / (2 * step)
    by_x = [
        (both(0.5, [*XS[:k], XS[k] + step, *XS[k + 1 :]], 1.0)[0] - both(0.5, XS, 1.0)[0]) / step
        for k in range(3)
    ]
    np.testing.assert_allclose(slopes[0], by_v, rtol=1e-4)
    np.testing.assert_allclose(slopes[1], by_x, rtol=1e-4)


def test_segments_carry_what_is_assigned(make):
    def loop(**options):
        last, _ = geon.scan(lambda c, x_t: (assigned(c) * 0.1 + x_t, None), 0.5, x, **options)
        return geon.deriv(last, x)

    f = make().computation((loop(), loop(segments=2)), x)
    plain, cut = f([0.1, 0.2, 0.3, 0.4, 0.5])
    np.testing.assert_allclose(cut, plain, rtol=1e-5)


def test_a_graph_with_assignments_in_steps_is_text_and_back(make):
    last, _ = geon.scan(lambda c, x_t: (assigned(c) + x_t, None), 0.5, x)
    transformer = make()
    back = geon.loads(geon.dumps([last]))[0]
    given = {p.name: p for p in back.placeholders()}
    found = transformer.computation(back, given["x"])(XS)
    assert found == pytest.approx(both(0.5, XS, 1.0)[0])


def test_what_a_loop_took_over_does_not_warn_and_a_loop_that_is_dropped_does():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        last, _ = geon.scan(lambda c, x_t: (assigned(c), None), 0.5, x)
        gc.collect()
    with pytest.warns(RuntimeWarning, match=r"the assignment to v\(\)"):
        del last, _
        gc.collect()


def test_two_loops_that_assign_in_no_order_are_refused(make):
    first, second = [
        geon.scan(lambda c, x_t, k=k: (c, geon.assign(v, v + k * x_t)), (), x)[1] for k in (1, 2)
    ]
    with pytest.raises(geon.OrderError, match=r"two unordered assignments to v\(\).*sequential"):
        make().computation([first, second], x)
    transformer = make()
    transformer.computation(geon.sequential([first, second]), x)(XS)
    assert transformer.get(v) == 1.0 + 3 * sum(XS)


REFUSED = [
    (
        lambda: geon.while_loop(lambda c: assigned(c) < 3, lambda c: c + 1, 0.0),
        r"while_loop at .*: it runs the effect assign\(v\(\)\).*assign v\(\) in the body",
    ),
    (
        lambda: geon.while_loop(lambda c: geon.assign(v, c), lambda c: c, 0.0),
        r"while_loop at .*: it runs the effect assign\(v\(\)\).*assign v\(\) in the body",
    ),
    (
        lambda: geon.fixed_point(assigned, 0.5),
        r"fixed_point at .*: it runs the effect assign\(v\(\)\).*geon.assign\(v\(\), ...\)",
    ),
    (
        lambda: geon.scan(lambda c, e: (geon.assign(v, c), None), 0.0, x),
        r"init is a tensor, and step returned carries that are an effect; return carries of the",
    ),
    (
        lambda: geon.cond(geon.sum(x) > 0, lambda: geon.assign(v, 1.0), lambda: v),
        r"then gives an effect, and otherwise gives a tensor; return one structure",
    ),
    (
        lambda: geon.scan(lambda c, e: (geon.print(c + e), None), 0.0, x),
        r"scan at .*: it runs the effect print\(\).*geon.print what comes out",
    ),
    (
        lambda: geon.while_loop(lambda c: c < 3, lambda c: geon.print(c), 0.0),
        r"while_loop at .*: it runs the effect print\(\).*geon.print what comes out",
    ),
    (
        lambda: geon.case_of(geon.constant(0), [lambda: geon.print(v)]),
        r"case_of at .*: it runs the effect print\(\).*geon.print what comes out",
    ),
]


@pytest.mark.filterwarnings("ignore:the assignment to:RuntimeWarning")
@pytest.mark.parametrize(("build", "message"), REFUSED)
def test_what_is_refused_says_what_to_do(build, message):
    with pytest.raises(geon.ArgumentError, match=message) as raised:
        build()
    assert "test_effects_in_bodies.py" in str(raised.value)


def test_a_variable_may_be_what_a_loop_begins_with(make):
    transformer = make()
    last, seen = geon.scan(lambda c, e: (c + e, c), v, x)
    kept = geon.cond(last > 3, lambda: last, lambda: geon.sum(seen))
    f = transformer.computation([geon.assign(v, kept), seen], x)
    np.testing.assert_array_equal(f([1.0, 2.0])[1], [1.0, 2.0])
    assert transformer.get(v) == 4.0
    f([-2.0, -1.0])
    assert transformer.get(v) == 6.0
