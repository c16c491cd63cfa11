"""``f.trace``: every op's value with its axes and line; no variable is changed."""

import numpy as np
import pytest

import geon
from tests.places import here

N, C = geon.Axis("N"), geon.Axis("C", 3)
ARRAY = np.arange(6, dtype=np.float32).reshape(2, 3) / 10


def test_every_op_with_its_axes_and_line(transformer):
    x = geon.placeholder([N, C], name="x")
    w = geon.Variable(axes=[C], initial_value=2.0, name="w")
    y = geon.tanh(x * w, name="y")
    line = here(-1)
    entries = transformer.computation(geon.sum(y, C), x).trace(ARRAY)
    found = {entry.op.primitive.name: entry for entry in entries}
    assert list(found) == ["placeholder", "variable", "multiply", "tanh", "sum"]
    np.testing.assert_allclose(found["tanh"].value, np.tanh(2 * ARRAY), rtol=1e-6)
    np.testing.assert_array_equal(found["variable"].value, [2, 2, 2])
    text = str(found["tanh"])
    assert text.startswith("tanh y(N, C:3) float32, made at ") and line in text.splitlines()[0]
    assert text.splitlines()[1] == str(found["tanh"].value).splitlines()[0]


def test_values_are_those_of_the_next_call_and_change_nothing(transformer):
    stream = geon.Random(3)
    w = geon.Variable(axes=[C], initial_value=1.0)
    noise = stream.normal([C])
    f = transformer.computation([geon.sequential([geon.assign(w, w + noise), w * 2])])
    f()
    before = transformer.get(w)
    traced = f.trace()[-1]
    assert traced.op.primitive.name in ("multiply", "add")
    again = {entry.op: entry.value for entry in f.trace()}
    np.testing.assert_array_equal(transformer.get(w), before)
    assert int(transformer.get(stream.counter)) == 1
    (result,) = f()
    np.testing.assert_array_equal(again[f.pure.outputs[0]], result)
    np.testing.assert_array_equal(again[f.pure.updates[w]], transformer.get(w))


def test_derivatives_say_where_they_come_from(transformer):
    x = geon.placeholder([C])
    f = transformer.computation(geon.deriv(geon.sum(geon.exp(x) * x), x), x)
    places = [entry.op.file_info for entry in f.trace(np.ones(3))]
    assert any("derivative of multiply" in place for place in places)


def test_keywords_and_refusals_are_those_of_a_call(transformer):
    x, y = geon.placeholder([N], name="x"), geon.placeholder([N], name="y")
    f = transformer.computation(x[0:2] + y[0:2], x, y)
    assert list(f.trace([1, 2, 3], y=[4, 5, 6])[-1].value) == [5, 7]
    with pytest.raises(geon.ArgumentError):
        f.trace([1, 2, 3])
    with pytest.raises(geon.FeedError):
        f.trace([1, 2, 3], [1, 2])
    with pytest.raises(geon.GuardError):
        f.trace([1], [2])


def test_values_are_copies(transformer):
    w = geon.Variable(axes=[C], initial_value=1.0)
    array = np.ones(3, np.float32)
    x = geon.placeholder([C])
    for entry in transformer.computation(w + x, x).trace(array):
        entry.value[...] = -1
    np.testing.assert_array_equal(transformer.get(w), np.ones(3))
    np.testing.assert_array_equal(array, np.ones(3))


def test_overridden_values_are_traced(transformer):
    x = geon.placeholder([C])
    hidden = geon.tanh(x)
    f = transformer.computation(hidden * 2, x, keep=[hidden])
    f.override(hidden, [1.0, 2.0, 3.0])
    values = {entry.op: entry.value for entry in f.trace(np.zeros(3))}
    np.testing.assert_array_equal(values[f.pure.outputs[0]], f(np.zeros(3)))


def test_steps_on_request(transformer):
    T, K, H = geon.Axis("T"), geon.Axis("K"), geon.Axis("H", 2)
    x, y = geon.placeholder([T, H], name="x"), geon.placeholder([K], name="y")

    def step(c, e):
        inner, _ = geon.scan(lambda d, v: (geon.tanh(d * v, name="inner"), None), c, y, over=K)
        z = geon.cond(geon.sum(e) > 0, lambda: geon.exp(inner), lambda: -inner)
        return z + e, geon.sum(z)

    last, _ = geon.scan(step, geon.broadcast(1.0, [H]), x, over=T, reverse=True)
    f = transformer.computation(last, x, y)
    given = np.array([[1, 2], [3, -4]], np.float32), np.array([0.5, 2.0], np.float32)
    plain, rows = f.trace(*given), f.trace(*given, steps=True)
    assert [row.op for row in rows if not row.steps] == [row.op for row in plain]
    assert all(not row.steps for row in plain)
    tanh = [row for row in rows if row.op.primitive.name == "tanh"]
    assert [row.steps for row in tanh] == [(("T", t), ("K", k)) for t in (1, 0) for k in (0, 1)]
    state, want = np.ones(2), []
    for t in (1, 0):
        for v in given[1]:
            state = np.tanh(state * v)
            want.append(state)
        state = (np.exp(state) if given[0][t].sum() > 0 else -state) + given[0][t]
    np.testing.assert_allclose([row.value for row in tanh], want, rtol=1e-5)
    np.testing.assert_allclose(rows[-1].value, state, rtol=1e-5)
    first = str(tanh[0]).partition("\n")[0]
    assert first.startswith("tanh inner(H:2) float32, made at ") and "test_trace.py" in first
    assert first.endswith(", at step 1 along T, at step 0 along K")
    taken = [row for row in rows if row.op.primitive.name in ("exp", "negative")]
    assert [row.op.primitive.name for row in taken] == ["negative", "exp"]
    assert [row.steps for row in taken] == [(("T", 1), ("branch", 0)), (("T", 0), ("branch", 1))]
    assert ", at step 0 along T, in branch 1\n" in str(taken[1])
    assert len(f.trace(given[0][:0], given[1], steps=True)) == len(plain)


@pytest.mark.parametrize("most", [None, 9])
def test_steps_of_loops_that_a_condition_ends(transformer, most):
    a = geon.placeholder([], name="a")
    last = geon.while_loop(lambda c: c < 20, lambda c: c * a, 3.0, max_steps=most)
    f = transformer.computation(last, a)
    rows = [row for row in f.trace(2.0, steps=True) if row.steps]
    found = [(row.op.primitive.name, row.steps[0], row.value.tolist()) for row in rows]
    for k, value in enumerate([3, 6, 12]):
        assert ("less", ("while_loop", k), True) in found
        assert ("multiply", ("while_loop", k), value * 2) in found
    assert ("less", ("while_loop", 3), False) in found
    assert max(step for _, (_, step), _ in found) == 3
    assert ", at step 0 of while_loop\n" in str(rows[0])
    assert not [row for row in f.trace(2.0) if row.steps]


def test_steps_of_a_fixed_point(transformer):
    a = geon.placeholder([], name="a")
    x = geon.fixed_point(lambda x: geon.cos(x * a), 0.5)
    f = transformer.computation([x, geon.deriv(x, a)], a)
    rows = [row for row in f.trace(0.9, steps=True) if row.op.primitive.name == "cos"]
    inside, value = [row for row in rows if row.steps], 0.5
    assert [row.steps for row in inside] == [(("fixed_point", k),) for k in range(len(inside))]
    for row in inside:
        value = np.cos(value * 0.9)
        np.testing.assert_allclose(row.value, value, rtol=1e-5)


def test_a_placeholder_named_steps_is_given_by_position(transformer):
    steps = geon.placeholder([C], name="steps")
    f = transformer.computation(steps * 2, steps)
    np.testing.assert_array_equal(f.trace(np.ones(3), steps=True)[-1].value, [2, 2, 2])
