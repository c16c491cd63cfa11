"""``scan`` on each transformer: values and derivatives, lengths, state, errors and plans."""

import dataclasses
import re
import subprocess
import sys

import numpy as np
import pytest

import geon
from geon.op_graph.evaluation.interpreter import interpret
from geon.transformers.lowering.planning.plan_verifier import verify_plan
from tests.transformers.wild_names import WILD

T, N, H = geon.Axis("T"), geon.Axis("N"), geon.Axis("H", 3)


def agree(transformer, results, feeds, rtol=2e-4, **options):
    """The results are those of the naive interpreter, with the plan and without it."""
    leaves = list(feeds)
    lengths = {
        axis.name: size
        for leaf, array in feeds.items()
        for axis, size in zip(leaf.axes, array.shape, strict=True)
        if axis.open_name
    }
    want = interpret(results, feeds, lengths)
    f = transformer.computation(results, *leaves, **options)
    found = f(*feeds.values())
    for op, array in zip(results, found, strict=True):
        largest = np.abs(want[op]).max(initial=1)
        np.testing.assert_allclose(array, want[op], rtol=rtol, atol=1e-5 * largest)
        assert array.dtype == op.dtype
    apart = transformer.computation(results, *leaves, plan=False, **options)(*feeds.values())
    for one, other in zip(found, apart, strict=True):
        np.testing.assert_array_equal(one, other)
    return f


def floats(*shape):
    return np.random.default_rng(sum(shape) + 1).normal(size=shape).astype(np.float32)


x = geon.placeholder([T, N, H], name="x")
w = geon.placeholder([H.prime, H], name="w")


def net(x, w, reverse=False):
    def step(carry, each):
        h = geon.tanh(geon.cast_axes(geon.dot(carry["h"], w), [N, H]) + each)
        return {"h": h, "n": carry["n"] + 1, "any": carry["any"] | (geon.sum(h) > 0.5)}, (
            h * 2,
            geon.argmax(h, H),
        )

    init = {"h": geon.broadcast(0.25, [N, H]), "n": 0, "any": geon.constant(False)}
    return geon.scan(step, init, x, over=T, reverse=reverse)


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize(("count", "rows"), [(0, 2), (1, 1), (2, 5), (5, 0), (7, 17)])
def test_values_and_derivatives(transformer, count, rows, reverse):
    last, (h, places) = net(x, w, reverse)
    loss = geon.sum(geon.square(h)) + geon.sum(last["h"])
    gx, gw = geon.deriv(loss, [x, w])
    along = geon.jvp(loss, w, geon.sin(w))
    second = geon.deriv(geon.sum(geon.square(gw)), x)
    results = [last["h"], last["n"], last["any"], h, places, gx, gw, along, second]
    agree(transformer, results, {x: floats(count, rows, 3), w: floats(3, 3)})


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("steps", [-1, 0, 2, 5, 9])
def test_the_first_steps_alone(transformer, steps, reverse):
    """The last carries, stacks that are 0 elsewhere, and derivatives, against a shorter input."""
    count, taken = geon.placeholder([], "int64", name="count"), min(max(steps, 0), 5)

    def results(x, **options):
        def step(h, each):
            h = geon.tanh(h + each)
            return h, h * 2

        init = geon.broadcast(0.25, [N, H])
        last, stacked = geon.scan(step, init, x, over=T, reverse=reverse, **options)
        loss = geon.sum(geon.square(stacked)) + geon.sum(last)
        by = geon.deriv(loss, x)
        return [last, stacked, by, geon.deriv(geon.sum(geon.square(by)), x)]

    data = floats(5, 2, 3)
    f = agree(transformer, results(x, steps=count), {x: data, count: np.asarray(steps)})
    short = transformer.computation(results(x), x)(data[:taken])
    for found, expected in zip(f(data, steps), short, strict=True):
        if found.ndim == 3:
            np.testing.assert_array_equal(found[taken:], 0)
            found = found[:taken]
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)


def test_nests(transformer):
    k = geon.Axis("K")
    y = geon.placeholder([k], name="y")

    def step(carry, each):
        inner, seen = geon.scan(
            lambda c, v: (geon.tanh(c + each * v), geon.sum(c)), carry, y, over=k
        )
        return inner, geon.sum(seen) + geon.sum(each)

    rows = geon.placeholder([T, H], name="rows")
    last, sums = geon.scan(step, geon.broadcast(0.5, [H]), rows, over=T)
    loss = geon.sum(last) * geon.sum(sums)
    results = [last, sums, *geon.deriv(loss, [rows, y])]
    for count, inner in [(4, 3), (1, 1), (2, 0), (0, 2)]:
        agree(transformer, results, {rows: floats(count, 3), y: floats(inner)})


def test_a_length_that_no_array_has(transformer):
    a = geon.placeholder([], name="a")
    last, seen = geon.scan(lambda c, n: (c * a + geon.cast(n, "float32"), c), 1.0, geon.iota(T))
    for count in (0, 1, 6):
        f = transformer.computation([last, seen], a, lengths={T: count})
        want = interpret([last, seen], {a: np.float32(0.5)}, {"T": count})
        found = f(0.5)
        np.testing.assert_allclose(found[0], want[last], rtol=1e-6)
        np.testing.assert_allclose(found[1], want[seen], rtol=1e-6)


def test_lengths_that_are_fixed(transformer):
    last, (h, _) = net(x, w)
    feeds = {x: floats(5, 4, 3), w: floats(3, 3)}
    agree(transformer, [last["h"], h], feeds, specialize={T: 5, N: 4})


def test_a_carry_that_swaps_and_one_that_stays(transformer):
    a, b = (geon.placeholder([H], name=n) for n in "ab")
    rows = geon.placeholder([T, H], name="rows")
    (p, q, r), _ = geon.scan(lambda c, e: ((c[1], c[0] + e, c[2]), None), (a, b, a), rows, over=T)
    for count in range(5):
        agree(transformer, [p, q, r], {a: floats(3), b: floats(3) + 1, rows: floats(count, 3)})


def test_a_view_is_carried_and_stacked(transformer):
    m = geon.placeholder([H, H.prime], name="m")
    rows = geon.placeholder([N, T], name="rows")  # the loop's axis is not the first one

    def step(carry, each):
        turned = geon.cast_axes(geon.reorder(carry, [H.prime, H]), carry.axes)
        return turned + geon.sum(each), geon.flip(each, N)

    last, seen = geon.scan(step, m, rows, over=T)
    agree(transformer, [last, seen], {m: floats(3, 3), rows: floats(5, 4)})


def test_arguments_that_are_views(transformer):
    rows = geon.placeholder([T, H], name="rows")
    other = geon.placeholder([H.prime], name="other")
    turned = geon.placeholder([H.prime, T], name="turned")
    init = geon.cast_axes(geon.sin(other), [H])

    def step(c, e):
        return geon.flip(c, H) + e[0] + geon.cast_axes(e[1], [H]), geon.cumsum(c, H)

    last, seen = geon.scan(step, init, (rows, turned), over=T)
    feeds = {rows: floats(4, 3), other: floats(3), turned: floats(3, 4)}
    agree(transformer, [last, seen, geon.deriv(geon.sum(seen), turned)], feeds)


def test_one_carry_feeds_the_next_scan(transformer):
    rows = geon.placeholder([T, H], name="rows")
    first, seen = geon.scan(lambda c, e: (c * 0.5 + e, c), geon.broadcast(1.0, [H]), rows, over=T)
    then, again = geon.scan(lambda c, e: (c * 0.5 + e, c + e), first, seen, over=T, reverse=True)
    agree(transformer, [then, again, first], {rows: floats(6, 3)})


def test_draws_are_others_in_each_step(transformer):
    stream, k, n = geon.Random(7), geon.Axis("K", 3), geon.Axis("N", 5)
    first = geon.placeholder([n], name="first")

    def step(c, _):
        noise = stream.normal([n])

        def inner(q, _):
            u = stream.uniform([n])
            return q + u * first, u

        q, seen = geon.scan(inner, c, over=k)
        return q + noise, (noise, seen)

    last, (noise, seen) = geon.scan(step, first, over=geon.Axis("T", 4))
    again = geon.deriv(geon.sum(geon.square(last)), first)
    results = [last, noise, seen, again, stream.normal([n])]
    f = transformer.computation(results, first)
    bits = set()
    for call in range(2):
        known = {first: np.arange(5, dtype=np.float32), stream.counter: np.uint64(call)}
        want = interpret(results, known, {})
        found = f(np.arange(5, dtype=np.float32))
        for op, array in zip(results, found, strict=True):
            np.testing.assert_allclose(array, want[op], rtol=1e-5, atol=1e-5)
        bits |= {*found[1].ravel(), *found[2].ravel(), *found[4]}
    assert len(bits) == 2 * (4 * 5 + 4 * 3 * 5 + 5)
    assert transformer.get(stream.counter) == 2


# State --------------------------------------------------------------------------------------------


def test_a_variable_is_carried_and_assigned_back(transformer):
    v = geon.Variable([H], initial_value=1.0, name="v")
    rows = geon.placeholder([T, H], name="rows")
    last, seen = geon.scan(lambda c, e: (c * 0.5 + e, c), v, rows, over=T)
    f = transformer.computation([seen, geon.assign(v, last)], rows)
    want = np.ones(3, np.float32)
    for count in (3, 0, 2):
        given = floats(count, 3)
        found = f(given)[0]
        for each, row in zip(found, given, strict=True):
            np.testing.assert_allclose(each, want, rtol=1e-6)
            want = want * np.float32(0.5) + row
        np.testing.assert_allclose(transformer.get(v), want, rtol=1e-6)


def test_positions_outside_are_told_and_leave_variables(transformer):
    v = geon.Variable([H], initial_value=1.0, name="v")
    at = geon.placeholder([T], "int64", name="at")
    last, _ = geon.scan(lambda c, k: (c + v[{H: k}], None), v, at, over=T)
    f = transformer.computation([geon.assign(v, last)], at)
    f([0, 1, 2])
    before = transformer.get(v)
    with pytest.raises(geon.IndexRangeError, match=r"(?s)length 3.*") as raised:
        f([0, 1, 7, 2])
    assert "test_scan.py" in str(raised.value)
    np.testing.assert_array_equal(transformer.get(v), before)


def test_values_that_are_not_finite_are_told(transformer):
    rows = geon.placeholder([T, H], name="rows")
    last, _ = geon.scan(
        lambda c, e: (geon.log(c) + e, None), geon.broadcast(2.0, [H]), rows, over=T
    )
    f = transformer.computation(last, rows, check="nan")
    f(np.full((2, 3), 3.0, np.float32))
    with pytest.raises(geon.NonFiniteError, match="log.*test_scan.py"):
        f(np.full((3, 3), -0.5, np.float32))


# Programs -----------------------------------------------------------------------------------------


def test_the_same_bits_for_any_number_of_threads():
    last, (h, _) = net(x, w)
    results = [h, geon.deriv(geon.sum(geon.square(h)), w)]
    feeds = floats(9, 400, 3), floats(3, 3)
    one, two = [
        geon.NativeTransformer(threads=k).computation(results, x, w)(*feeds) for k in (1, 2)
    ]
    for left, right in zip(one, two, strict=True):
        np.testing.assert_array_equal(left, right)


def test_a_written_module(tmp_path):
    transformer = geon.make_transformer("numpy")
    v = geon.Variable([H], initial_value=1.0, name="v")
    rows = geon.placeholder([T, H], name="rows")
    last, seen = geon.scan(lambda c, e: (c * 0.5 + e, c), v, rows, over=T, name="decay")
    f = transformer.computation([seen, geon.assign(v, last)], rows, name="run")
    given = floats(4, 3)
    want = f(given)[0]
    path = tmp_path / "written.py"
    transformer.initialize(force=True)
    transformer.write(path)
    text = path.read_text()
    assert re.search(r"for w0, t0 in zip\(.*range\(.*# along T", text)
    code = (
        "import numpy as np, written;"
        f"print(repr(written.run(np.array({given.tolist()}, np.float32))[0].tolist()))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    np.testing.assert_array_equal(np.array(eval(done.stdout), np.float32), want)


def test_peak_bytes_are_exact(transformer):
    last, (h, _) = net(x, w)
    f = transformer.computation([last["h"], h], x, w)
    sizes = [f.peak_bytes({T: count, N: 4}) for count in (10, 20)]
    assert isinstance(sizes[0], int)
    assert sizes[1] - sizes[0] <= 10 * (4 * 3 * 4 + 8 * 4)  # the stacked results alone grow


def test_a_plan_whose_loop_works_in_what_lives_is_refused(transformer):
    wide = geon.Axis("W", 17)  # no tensor that is taken apart
    rows = geon.placeholder([T, wide], name="rows")
    last, seen = geon.scan(
        lambda c, e: (geon.sin(geon.flip(c, wide)) + e, c), geon.sin(rows[{T: 0}]), rows, over=T
    )
    f = transformer.computation([geon.sum(seen * geon.sum(last))], rows)
    plan = f.plan
    (inside,) = plan.inside.values()
    ((number, spare),) = inside.spare.items()
    loop = next(k for k in plan.schedule.kernels if k.op in plan.inside)
    taken = next(plan.homes[value].number for value in loop.reads if value in plan.homes)
    wrong = dataclasses.replace(inside, spare={number: (taken, *spare[1:])})
    with pytest.raises(geon.PlanError, match="works in the memory"):
        verify_plan(dataclasses.replace(plan, inside={loop.op: wrong}))


def test_what_explain_says(transformer):
    last, (h, _) = net(x, w)
    f = transformer.computation([last["h"], geon.sum(h)], x, w)
    f(floats(3, 2, 3), floats(3, 3))
    for stage in ("build", "functional", "simplify", "schedule", "plan", "emit"):
        assert f.explain(stage)
    text = f.explain("simplify")
    loop = text[text.index("= scan(") :]
    assert re.search(r"\n    %\d+ = tanh\(%\d+\) .*test_scan.py:\d+\n", loop)
    assert re.search(r"\n    gives %\d+", loop)


def test_a_dump_is_replayed():
    last, (h, _) = net(x, w)
    feeds = {x: floats(3, 2, 3), w: floats(3, 3)}
    text = geon.dumps(h, last["n"], feeds=feeds)
    case = geon.op_graph.text.dumps.loads_case(text)
    f = geon.make_transformer("numpy").computation(case.results, *case.feeds)
    want = interpret([h], feeds, {"T": 3, "N": 2})[h]
    np.testing.assert_allclose(f(*case.feeds.values())[0], want, rtol=1e-5)


@pytest.mark.parametrize("name", WILD)
@pytest.mark.parametrize("check", [None, "nan"])
def test_names_of_axes_never_break_out_of_the_text(transformer, name, check):
    rows, columns = geon.Axis(name), geon.Axis(name + name, 2)
    x = geon.placeholder([rows, columns], "float32", name=name)
    start = geon.constant(np.float32(0), axes=[columns])
    last, sums = geon.scan(lambda c, row: (c * 0.5 + row, geon.sum(c)), start, x, over=rows)
    grown = geon.while_loop(lambda a: geon.sum(a) < 20, lambda a: a + 1, last)
    f = transformer.computation([last, sums, grown], x, check=check)
    found = f(np.ones((3, 2), np.float32))
    for array, wanted in zip(found, [[1.75] * 2, [0, 2, 3], [10.75] * 2], strict=True):
        np.testing.assert_allclose(array, wanted)
