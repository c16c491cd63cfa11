"""``while_loop`` on each transformer: values and derivatives, lengths, state, errors and plans."""

import re
import subprocess
import sys

import numpy as np
import pytest

import geon
from geon.op_graph.core.primitive import PRIMITIVES
from geon.op_graph.evaluation.interpreter import interpret
from geon.op_graph.regions.scan_op import make_scan
from geon.transformers.lowering.planning.plan_verifier import verify_plan
from tests.transformers.test_scan import agree, floats

N, H = geon.Axis("N"), geon.Axis("H", 3)
x = geon.placeholder([N, H], name="x")
w = geon.placeholder([H.prime, H], name="w")
count = geon.placeholder([], "int64", name="count")


def net(limit=None, left=count):
    """Layers of one weight, as many as are asked for or until something is large."""

    def body(c):
        h = geon.tanh(geon.cast_axes(geon.dot(c["h"], w), [N, H]) + x)
        return {"h": h, "left": c["left"] - 1, "any": c["any"] | (geon.sum(h) > 0.5)}

    init = {"h": geon.broadcast(0.25, [N, H]), "left": left, "any": geon.constant(False)}
    return geon.while_loop(lambda c: c["left"] > 0, body, init, limit, count=True)


def feeds(rows, steps):
    return {x: floats(rows, 3), w: floats(3, 3), count: np.asarray(steps)}


@pytest.mark.parametrize("limit", [4, 600, None])
@pytest.mark.parametrize(("steps", "rows"), [(0, 2), (1, 1), (4, 5), (3, 0), (2, 17)])
def test_values_and_derivatives(transformer, limit, steps, rows):
    last, taken = net(limit)
    loss = geon.sum(geon.square(last["h"]))
    gx, gw = geon.deriv(loss, [x, w])
    along = geon.jvp(loss, w, geon.sin(w))
    results = [last["h"], last["any"], taken, gx, gw, along]
    if limit == 4 or (steps, rows) == (4, 5):
        results.append(geon.deriv(geon.sum(geon.square(gw)), x))
    f = agree(transformer, results, feeds(rows, steps))
    verify_plan(f.plan)


def test_a_limit_that_ends_it(transformer):
    for limit in (0, 1, 2, 3):
        last, taken = net(limit)
        results = [last["h"], taken, geon.deriv(geon.sum(last["h"]), w)]
        agree(transformer, results, feeds(2, 9))


def test_scalars(transformer):
    def body(c):
        k, steps = c
        return geon.where(k % 2 == 0, k // 2, 3 * k + 1), steps + 1

    steps = geon.while_loop(lambda c: c[0] != 1, body, (count, 0))[1]
    f = transformer.computation(steps, count)
    assert [int(f(k)) for k in (1, 2, 6, 27)] == [0, 1, 8, 111]


def test_a_call_of_another_number_of_steps(transformer):
    last, taken = net()
    results = [last["h"], taken, geon.deriv(geon.sum(last["h"]), w)]
    f = transformer.computation(results, x, w, count)
    for steps in (3, 0, 5, 3, 1, 300):
        known = feeds(4, steps)
        want = interpret(results, known, {"N": 4})
        for op, array in zip(results, f(*known.values()), strict=True):
            np.testing.assert_allclose(array, want[op], rtol=1e-4, atol=1e-5)


def test_lengths_that_are_fixed(transformer):
    last, taken = net(3)
    agree(transformer, [last["h"], taken], feeds(4, 2), specialize={N: 4})


def test_carries_that_swap_stay_and_are_views(transformer):
    a, b = (geon.placeholder([H], name=n) for n in "ab")
    m = geon.placeholder([H, H.prime], name="m")

    def body(c):
        p, q, r, s, left = c
        turned = geon.cast_axes(geon.reorder(s, [H.prime, H]), s.axes)
        return q, p + 1, r, turned, left - 1

    init = (a, b, a, m, count)
    *last, _ = geon.while_loop(lambda c: c[-1] > 0, body, init)
    for steps in range(4):
        known = {a: floats(3), b: floats(3) + 1, m: floats(3, 3), count: np.asarray(steps)}
        agree(transformer, last, known)


def test_arguments_that_are_views(transformer):
    other = geon.placeholder([H.prime], name="other")
    init = geon.cast_axes(geon.sin(other), [H])
    turned = geon.flip(geon.cast_axes(other, [H]), H)
    (c, _) = geon.while_loop(
        lambda c: c[1] < count, lambda c: (geon.cumsum(c[0], H) + turned, c[1] + 1), (init, 0)
    )
    results = [c, geon.deriv(geon.sum(geon.square(c)), other)]
    agree(transformer, results, {other: floats(3), count: np.asarray(3)})


def test_nests(transformer):
    t = geon.Axis("T")
    rows = geon.placeholder([t, H], name="rows")

    def step(carry, each):
        def body(c):
            inner = geon.while_loop(
                lambda d: geon.sum(abs(d)) < 1.5, lambda d: d * 1.25 + 0.1, c[0], 20
            )
            found = geon.cond(
                geon.sum(inner) > 0,
                lambda: geon.while_loop(lambda d: geon.sum(d) > 1, lambda d: d * 0.5, inner),
                lambda: geon.flip(inner, H),
            )
            return found * each, c[1] + 1

        last, steps = geon.while_loop(lambda c: c[1] < count, body, (carry, 0))
        return geon.tanh(last), steps

    last, steps = geon.scan(step, geon.broadcast(0.5, [H]), rows, over=t)
    results = [last, steps, geon.deriv(geon.sum(last), rows)]
    for number, each in ((0, 2), (1, 1), (3, 2)):
        agree(transformer, results, {rows: floats(number, 3), count: np.asarray(each)})


def test_a_loop_in_a_branch_that_is_not_taken_is_not_run(transformer):
    a = geon.placeholder([H], name="a")
    y = geon.case_of(
        count,
        [
            lambda: geon.while_loop(lambda c: geon.sum(c) < 100, lambda c: c * 2, a),
            lambda: a + 1,
        ],
    )
    results = [y, geon.deriv(geon.sum(y), a)]
    agree(transformer, results, {a: floats(3) ** 2 + 1, count: np.asarray(0)})
    # From nothing the loop would never end.
    agree(transformer, results, {a: np.zeros(3, np.float32), count: np.asarray(1)})


def test_draws_are_others_in_each_step(transformer):
    stream, n = geon.Random(7), geon.Axis("N", 5)
    first = geon.placeholder([n], name="first")

    def body(c):
        noise = stream.uniform([n])

        def inner(q):
            u = stream.uniform([n])
            return q[0] + u * first, q[1] + geon.sum(u), q[2] + 1

        q, total, _ = geon.while_loop(lambda q: q[2] < 3, inner, (c[0], c[1], 0))
        return q + noise, total + geon.sum(noise), c[2] + 1

    last, total, _ = geon.while_loop(lambda c: c[2] < 4, body, (first, 0.0, 0))
    along = geon.deriv(geon.sum(geon.square(last)), first)
    results = [last, total, along, stream.uniform([n])]
    f = transformer.computation(results, first)
    given, totals = np.arange(5, dtype=np.float32), set()
    for call in range(2):
        known = {first: given, stream.counter: np.uint64(call)}
        want = interpret(results, known, {})
        for op, array in zip(results, f(given), strict=True):
            np.testing.assert_allclose(array, want[op], rtol=1e-5, atol=1e-4)
        totals.add(float(want[total]))
    assert len(totals) == 2 and transformer.get(stream.counter) == 2


def test_marks_of_what_is_computed_again(transformer):
    rows, left = geon.placeholder([N, H], name="rows"), count
    f = geon.checkpoint(lambda h: geon.exp(geon.sin(h) * rows) - geon.cumsum(h, H))

    def body(c):
        inner, _ = geon.scan(lambda h, _: (geon.tanh(f(h)), None), c[0], over=geon.Axis("K", 2))
        return geon.cond(c[1] > 1, lambda: geon.tanh(f(f(inner))), lambda: f(inner)), c[1] - 1

    for limit in (5, None):
        h, _ = geon.while_loop(lambda c: c[1] > 0, body, (f(rows), left), limit)
        results = [h, geon.deriv(geon.sum(geon.square(h)), rows)]
        agree(transformer, results, {rows: floats(4, 3), count: np.asarray(2)})


def test_a_budget_of_memory(transformer):
    last, _ = net()
    along = geon.deriv(geon.sum(last["h"]), w)
    f = transformer.computation([along], x, w, count, memory="200kB", specialize={N: 4})
    assert f.peak_bytes({N: 4}) <= 200_000
    least = transformer.computation([along], x, w, count, memory="1kB", specialize={N: 4})
    with pytest.raises(geon.GeonError, match="memory"):
        least(*feeds(4, 3).values())


# State --------------------------------------------------------------------------------------------


def test_a_variable_is_carried_and_assigned_back(transformer):
    v = geon.Variable([H], initial_value=1.0, name="v")
    last, _ = geon.while_loop(lambda c: c[1] > 0, lambda c: (c[0] * 0.5 + 1, c[1] - 1), (v, count))
    f = transformer.computation([geon.sum(v), geon.assign(v, last)], count)
    want = np.ones(3, np.float32)
    for steps in (3, 0, 2):
        f(steps)
        for _ in range(steps):
            want = want * np.float32(0.5) + 1
        np.testing.assert_allclose(transformer.get(v), want, rtol=1e-6)


def test_positions_outside_are_told_and_leave_variables(transformer):
    v = geon.Variable([H], initial_value=1.0, name="v")
    last, _ = geon.while_loop(
        lambda c: c[1] < count, lambda c: (c[0] + v[{H: c[1]}], c[1] + 1), (v, 0)
    )
    f = transformer.computation([geon.assign(v, last)], count)
    f(3)
    before = transformer.get(v)
    with pytest.raises(geon.IndexRangeError, match="length 3") as raised:
        f(5)
    assert "test_while.py" in str(raised.value)
    np.testing.assert_array_equal(transformer.get(v), before)


def test_a_position_outside_ends_a_loop_that_would_not_end(transformer):
    rows = geon.placeholder([H], name="rows")

    def body(c):
        total, at = c
        return total + rows[{H: at}], at + 1

    total, _ = geon.while_loop(lambda c: c[0] < 10, body, (0.0, 0))
    f = transformer.computation(total, rows)
    assert f([4, 5, 6]) == 15
    with pytest.raises(geon.IndexRangeError, match="length 3"):
        f([0, 0, 0])


def test_values_that_are_not_finite_are_told(transformer):
    a = geon.placeholder([H], name="a")
    last, _ = geon.while_loop(lambda c: c[1] < 3, lambda c: (geon.log(c[0]), c[1] + 1), (a, 0))
    f = transformer.computation(last, a, check="nan")
    f(np.full(3, 1e9, np.float32))
    with pytest.raises(geon.NonFiniteError, match="log.*test_while.py"):
        f(np.full(3, 2.0, np.float32))


# Programs -----------------------------------------------------------------------------------------


def test_the_same_bits_for_any_number_of_threads():
    last, _ = net()
    results = [last["h"], geon.deriv(geon.sum(geon.square(last["h"])), w)]
    given = floats(400, 3), floats(3, 3), np.asarray(9)
    one, two = [
        geon.NativeTransformer(threads=k).computation(results, x, w, count)(*given) for k in (1, 2)
    ]
    for left, right in zip(one, two, strict=True):
        np.testing.assert_array_equal(left, right)


def test_a_written_module(tmp_path):
    transformer = geon.make_transformer("numpy")
    last, taken = net(30)
    along = geon.deriv(geon.sum(last["h"]), x)
    f = transformer.computation([last["h"], taken, along], x, w, count, name="run")
    given = floats(2, 3), floats(3, 3), 4
    want = f(*given)
    transformer.write(tmp_path / "written.py")
    text = (tmp_path / "written.py").read_text()
    assert re.search(r"for t\d+, w\d+ in enumerate\(rt.turns\(.*, 30\)\):", text)
    code = (
        "import numpy as np, written;"
        f"found = written.run(np.array({given[0].tolist()}, np.float32),"
        f" np.array({given[1].tolist()}, np.float32), 4);"
        "print([each.tolist() for each in found])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    for found, array in zip(eval(done.stdout), want, strict=True):
        np.testing.assert_array_equal(np.asarray(found, array.dtype), array)


def test_peak_bytes_do_not_grow_with_steps(transformer):
    last, _ = net()
    f = transformer.computation([geon.deriv(geon.sum(last["h"]), w)], x, w, count)
    known = feeds(4, 3)
    f(*known.values())
    before = f.peak_bytes({N: 4})
    f(*feeds(4, 700).values())
    assert isinstance(before, int) and f.peak_bytes({N: 4}) == before
    assert before >= 512 * 4 * 3 * 4  # the record of carries is part of it


def test_what_explain_says(transformer):
    last, taken = net()
    f = transformer.computation([last["h"], taken], x, w, count)
    f(*feeds(2, 3).values())
    for stage in ("build", "functional", "simplify", "schedule", "plan", "emit"):
        assert f.explain(stage)
    text = f.explain("simplify")
    loop = text[text.index("= while(") :]
    assert re.search(r"\n    %\d+ = tanh\(%\d+\) .*test_while.py:\d+\n", loop)
    assert len(re.findall(r"\n    gives %\d+", loop)) == 2


def test_a_dump_is_replayed():
    last, taken = net()
    known = feeds(3, 2)
    text = geon.dumps(last["h"], taken, feeds=known)
    case = geon.op_graph.text.dumps.loads_case(text)
    f = geon.make_transformer("numpy").computation(case.results, *case.feeds)
    want = interpret([last["h"]], known, {"N": 3})[last["h"]]
    np.testing.assert_allclose(f(*case.feeds.values())[0], want, rtol=1e-5)


@pytest.mark.parametrize("reverse", [False, True])
def test_a_scan_of_so_many_steps(transformer, reverse):
    t = geon.Axis("T")
    rows = geon.placeholder([t, H], name="rows")
    carry, each = geon.placeholder([H]), geon.placeholder([H])
    at = geon.placeholder([], "int64")
    new = geon.sin(geon.flip(carry, H) + each) + geon.cast(at, "float32")
    start = geon.broadcast(0.5, [H])
    steps = geon.minimum(count, 9)
    row = PRIMITIVES["scan"]
    last, seen, other = make_scan(
        row, t, reverse, [start], [rows], [carry, each, at], [new, new * 2, at], count=steps
    )
    loss = geon.sum(geon.square(seen)) + geon.sum(last)
    gradient = geon.deriv(loss, rows)
    results = [last, seen, other, gradient, geon.jvp(loss, rows, geon.cos(rows))]
    for length in (0, 1, 5):
        for number in (-1, 0, 1, 3, 5, 8):
            known = {rows: floats(length, 3), count: np.asarray(number)}
            f = agree(transformer, results, known)
            taken = min(max(number, 0), length)
            found = f(*known.values())
            assert not found[1][taken:].any() and not found[3][taken:].any()
            assert found[2].tolist() == [*range(taken), *[0] * (length - taken)]


# Many steps ---------------------------------------------------------------------------------------

a, b = (geon.placeholder([], "float64", name=name) for name in "ab")


def decay(limit):
    """a * (1 - b) ** count, and its derivatives by b to order 2."""
    y, _ = geon.while_loop(
        lambda c: c[1] < count, lambda c: (c[0] * (1 - b), c[1] + 1), (a, 0), limit
    )
    first = geon.deriv(y, b)
    return [y, first, geon.deriv(first, b), geon.deriv(y, a)]


LONG = [255, 256, 257, 511, 512, 513, 65535, 65536, 65537, 131073, 200000]


@pytest.mark.parametrize("limit", [512, 513, 65536, 65537, None])
def test_derivatives_over_many_steps(transformer, limit):
    f = transformer.computation(decay(limit), a, b, count)
    most = 200000 if transformer.target.name == "native" else 600
    for steps in LONG:
        if steps <= most:
            taken = steps if limit is None else min(steps, limit)
            d = 1.0 / taken
            power = np.float64(1 - d) ** (taken - 2)
            want = [
                2 * power * (1 - d) ** 2,
                -2 * taken * power * (1 - d),
                2 * taken * (taken - 1) * power,
                power * (1 - d) ** 2,
            ]
            np.testing.assert_allclose(f(2.0, d, steps), want, rtol=1e-9, err_msg=str(steps))


def test_lengths_are_read_after_a_loop_of_so_many_steps(transformer):
    parts = [geon.placeholder([geon.Axis(name)]) for name in "ABCDEF"]
    slope = geon.deriv(geon.sum(net(4)[0]["h"]), w)
    sizes = [geon.sum(slope) * geon.tensor_size(part) for part in parts]
    given = {part: floats(k + 2) for k, part in enumerate(parts)}
    agree(transformer, sizes, {**feeds(2, 3), **given})
