"""What goes wrong inside of loops is told with the steps of all loops around it."""

import subprocess
import sys

import numpy as np
import pytest

import geon
from tests.places import here

T, K, H = geon.Axis("T"), geon.Axis("K"), geon.Axis("H", 3)
rows = geon.placeholder([T, H], name="rows")
y = geon.placeholder([K], name="y")
at = geon.placeholder([T], "int64", name="at")


def told(f, *args):
    """The text of the error that a call raises, the same again and again."""
    texts = set()
    for _ in range(3):
        with pytest.raises(geon.GeonError) as caught:
            f(*args)
        texts.add(str(caught.value))
    (text,) = texts
    return text


def checked(transformer, results, *placeholders, **options):
    return transformer.computation(results, *placeholders, check="nan", **options)


@pytest.mark.parametrize("plan", [True, False])
@pytest.mark.parametrize(("reverse", "step"), [(False, 2), (True, 4)])
def test_the_op_and_the_step_are_named(transformer, reverse, step, plan):
    def body(c, e):
        return geon.log(c) + e, None

    place = here(-2)
    last, _ = geon.scan(body, geon.broadcast(2.0, [H]), rows, over=T, reverse=reverse)
    f = checked(transformer, last, rows, plan=plan)
    assert np.isfinite(f(np.full((2, 3), 3.0))).all()
    text = told(f, np.full((7, 3), -0.5))
    assert text.startswith("log(H:3) made at ") and place in text
    assert f", at step {step} along T: 3 of 3 values" in text


def nested(kind):
    def inner(d, v):
        made = geon.log(d * v)
        if kind == "branch":
            made = geon.cond(v > 0, lambda: d * 1, lambda: geon.log(d * v))
        return made + 2, None

    def outer(c, e):
        then = c
        if kind == "two":  # a loop before the one that fails
            then, _ = geon.scan(lambda d, v: (d + 0 * v, None), c, y, over=K)
        found, _ = geon.scan(inner, then, y, over=K)
        return geon.sqrt(found + e) * 0 + 2, None

    return geon.scan(outer, geon.broadcast(2.0, [H]), rows, over=T, reverse=True)[0]


@pytest.mark.parametrize("kind", ["one", "two", "branch"])
def test_nests_name_the_steps_of_both(transformer, kind):
    f = checked(transformer, nested(kind), rows, y)
    given = np.full((4, 3), 9.0)
    f(given, [1.0, 1.5])
    assert ", at step 3 along T, step 2 along K: 3 of 3" in told(f, given, [1, 1.5, -9, 1])
    given[1] = -50
    assert "sqrt(H:3)" in told(f, given, [1, 1])
    assert ", at step 1 along T: 3 of 3" in told(f, given, [1, 1])  # after the inner loop


@pytest.mark.parametrize("limit", [None, 9])
def test_while_loops_are_told_by_their_turns(transformer, limit):
    def until(c, e):
        found, _ = geon.while_loop(
            lambda d: d[1] < 5,
            lambda d: (geon.log(d[0]) + e, d[1] + 1),
            (c, 0),
            max_steps=limit,
        )
        return found * 0 + 2, None

    last, _ = geon.scan(until, geon.broadcast(2.0, [H]), rows, over=T)
    f = checked(transformer, last, rows)
    assert np.isfinite(f(np.full((3, 3), 3.0))).all()
    given = np.full((6, 3), 3.0)
    given[2] = -2.0
    text = told(f, given)
    assert ", at step 2 along T, step 1 along a while loop: 3 of 3" in text


def test_products_that_leave_loops_stay_where_each_value_is_checked(transformer):
    w = geon.placeholder([H, H.prime], name="w")

    def body(c, e):
        return c + geon.sum(geon.dot(e, w)), None

    last, _ = geon.scan(body, 0.0, rows, over=T)
    f = checked(transformer, [last, geon.deriv(last, w)], rows, w)
    given = np.ones((5, 3), np.float32)
    assert f(given, np.ones((3, 3)))[0] == 45
    given[3, 1] = np.inf
    text = told(f, given, np.ones((3, 3)))
    assert ") was fed 1 of 15 values that are not finite" in text
    assert "dot(" in text and "at step 3 along T" in text


def test_a_named_op_of_a_step_is_called_by_its_name(transformer):
    w = geon.placeholder([H, H.prime], name="w")

    def body(c, e):
        both = geon.sum(geon.dot(e, w))
        return geon.cond(c > 0, lambda: geon.log(both, name="depth"), lambda: both + c), None

    last, _ = geon.scan(body, 1.0, rows, over=T)
    f = checked(transformer, last, rows, w)
    assert told(f, np.full((3, 3), -1), np.ones((3, 3))).startswith("depth() (log) made at")


def test_a_derivative_names_its_step(transformer):
    last, _ = geon.scan(lambda c, e: (c + geon.sum(geon.sqrt(e)), None), 0.0, rows, over=T)
    gradient = geon.deriv(last, rows)
    f = checked(transformer, gradient, rows)
    given = np.ones((4, 3), np.float32)
    given[1, 2] = 0
    text = told(f, given)
    assert "derivative of sqrt" in text and "at step 1 along T" in text


def test_positions_outside_name_their_step(transformer):
    last, _ = geon.scan(lambda c, k: (c + c[{H: k}], None), geon.broadcast(2.0, [H]), at, over=T)
    f = transformer.computation(last, at)
    f([0, 1, 2])
    text = told(f, [0, 1, 2, 7, 1])
    assert "at step 3 along T: 7 where the axis has length 3" in text


def test_what_is_outside_of_loops_names_none(transformer):
    last, _ = geon.scan(lambda c, e: (c + geon.sum(e), None), 0.0, rows, over=T)
    f = checked(transformer, geon.log(last), rows)
    assert "along" not in told(f, np.full((4, 3), -1.0))


def test_variables_stay_as_they_were(transformer):
    v = geon.Variable([H], initial_value=2.0, name="v")
    last, _ = geon.scan(lambda c, e: (geon.log(c) + e, None), v, rows, over=T)
    f = checked(transformer, geon.assign(v, last), rows)
    f(np.full((2, 3), 3.0))
    before = transformer.get(v)
    assert "at step 1 along T" in told(f, np.full((4, 3), -1.5))
    np.testing.assert_array_equal(transformer.get(v), before)


def test_written_modules_name_the_step(tmp_path):
    transformer = geon.make_transformer("numpy")
    checked(transformer, nested("one"), rows, y, name="run")
    place = here(-1)
    transformer.write(tmp_path / "written.py")
    code = "import numpy as np, written; written.run(np.full((4, 3), 9.0), [1, 1.5, -9, 1])"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert place.partition(":")[0] in done.stderr
    assert ", at step 3 along T, step 2 along K: 3 of 3" in done.stderr
