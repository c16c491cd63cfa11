"""Scans in segments: values and derivatives as without, in less memory, of any length."""

import re

import numpy as np
import pytest

import geon
from geon.op_graph.regions.scan import root_segments

T, C = geon.Axis("T"), geon.Axis("C", 5)
LONG, WIDE = 10_000, 1000


def leaves(length):
    along = T if length is None else geon.Axis("T", length)
    x = geon.placeholder([along, C], name="x")
    return x, geon.placeholder([C], name="w"), geon.placeholder([C.prime, C], name="m")


def feeds(length):
    random = np.random.default_rng(length)
    shapes = (length, 5), (5,), (5, 5)
    return [0.5 * random.normal(size=shape).astype(np.float32) for shape in shapes]


def net(x, w, m, **options):
    """Carries of two dtypes, draws, products, what is stacked, and a loop over what is stacked."""
    random, along = geon.Random(3), x.axes[0]

    def step(carry, each):
        h, n = carry["h"], carry["n"]
        product = geon.rename(geon.dot(m, h), {C.prime: C})
        new = geon.tanh(product * w + each * random.uniform([C], 0, 1))
        return {"h": new, "n": n + 1}, (h * geon.cast(n, "float32"), geon.sum(new * new))

    init = {"h": geon.broadcast(w[0], [C]), "n": 0}
    last, (a, b) = geon.scan(step, init, x, over=along, **options)
    end, seen = geon.scan(lambda s, y: (geon.sin(s * y), s * y), w[1], b * b, over=along)
    loss = geon.sum(geon.square(last["h"])) + geon.sum(a) + end + geon.sum(seen * seen)
    return loss, a, last["n"]


def slopes(loss, wanted, order):
    found = []
    for _ in range(order):
        each = geon.deriv(loss, wanted)
        found += each
        loss = sum(geon.sum(geon.sin(g) * g) for g in each)
    return found


def close(one, other, **options):
    for a, b in zip(one, other, strict=True):
        scale = np.abs(b).max() if np.size(b) else 1.0
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5 * max(scale, 1e-3), **options)


CASES = [
    (12, "sqrt", 2, False), (13, (2, 2), 2, True), (17, 3, 1, False), (2, 7, 1, False),
    (None, (2, 2), 1, True), (None, 3, 2, False), (None, "sqrt", 1, False),
]  # fmt: skip


@pytest.mark.parametrize(("length", "segments", "order", "reverse"), CASES)
def test_values_and_derivatives_are_those_of_all_steps_at_once(
    length, segments, order, reverse, make
):
    found = []
    lengths = (0, 1, 11, 70) if length is None else (length,)
    for options in ({}, {"segments": segments}):
        inputs, transformer = leaves(length), make()
        made = net(*inputs, reverse=reverse, **options)
        f = transformer.computation([*made, *slopes(made[0], inputs, order)], *inputs)
        found.append([f(*feeds(each)) for each in lengths])
    for one, other in zip(found[1], found[0], strict=True):
        close(one, other)


@pytest.mark.slow
def test_forward_mode_and_many_seeds(make):
    found = []
    for segments in (None, (2, 2)):
        x, w, m = leaves(9)
        loss, *_ = net(x, w, m, segments=segments)
        slope = geon.deriv(loss, w)
        results = [geon.jvp(slope, w, geon.sin(w)), geon.jacobian(slope, w)]
        found.append(make().computation(results, x, w, m)(*feeds(9)))
    close(found[1], found[0])


def nested(x, w, m, segments):
    """A loop in each step of a loop, a while loop and a branch in it, all in segments."""

    def step(carry, each):
        inner, seen = geon.scan(
            lambda c, v: (geon.sin(c * v + geon.sum(carry)), c), w[0], each, segments=segments
        )
        turned = geon.while_loop(lambda c: geon.sum(c) < 1, lambda c: c + 0.4, carry * 0.5, 5)
        new = geon.cond(inner > 0, lambda: turned * inner, lambda: geon.tanh(turned))
        return new, geon.sum(seen) + inner

    last, seen = geon.scan(step, w, x, over=x.axes[0], segments=segments)
    return geon.sum(last * last) + geon.sum(seen * seen)


@pytest.mark.parametrize("segments", [2, (2, 3)])
def test_loops_in_loops(segments, make):
    found = []
    for each in (None, segments):
        inputs = leaves(None)
        loss = nested(*inputs, each)
        results = [loss, *geon.deriv(loss, inputs[:2])]
        found.append(make().computation(results, *inputs)(*feeds(7)))
    close(found[1], found[0])


def walked(x, segments, reverse):
    """A loop that others walk: one that only maps what it stacks, and one over what that makes."""
    step = lambda c, each: (geon.sum(each) * c + 1, c)  # noqa: E731  # beside two others
    end, steps = geon.scan(step, 1.0, x, over="A", segments=segments, reverse=reverse)
    _, mapped = geon.scan(lambda c, s: (c + s, geon.sin(s) * s), 0.0, steps, reverse=reverse)
    last, _ = geon.scan(lambda c, s: (geon.tanh(c * s), None), 1.0, mapped, reverse=reverse)
    return end, last, steps, mapped


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("length", [13, 16])
def test_loops_without_carries_are_run_in_the_segments_of_others(length, reverse, transformer):
    """Where nobody needs their stacks as a whole, they have no result outside of segments.

    So it is in a segment in segments whose stack is a result: there it only begins those of others.
    """
    x = geon.placeholder([geon.Axis("A", length), geon.Axis("R", 2)], name="x")
    found = []
    for segments in (None, 2, (2, 2), (2, 2, 2)):
        end, last, steps, mapped = walked(x, segments, reverse)
        results = (
            [steps, geon.deriv(end, x)],
            [geon.deriv(last, x)],
            [steps, mapped, geon.deriv(end + last, x)],
        )
        values = []
        for each in results if transformer.target.name == "numpy" else results[:1]:
            f = transformer.computation(each, x)
            values += f(feeds(length)[0][:, :2])
        found.append(values)
    for several in found[1:]:
        close(several, found[0])


# Memory -------------------------------------------------------------------------------------------


def long_loop(**options):
    x, w = geon.placeholder([geon.Axis("T", LONG)]), geon.placeholder([geon.Axis("W", WIDE)])
    last, _ = geon.scan(lambda c, each: (geon.tanh(c * w + each), None), w, x, **options)
    return [geon.deriv(geon.sum(geon.square(last)), w)], (x, w)


def test_a_gradient_over_ten_thousand_steps_keeps_two_hundred(transformer):
    results, inputs = long_loop(segments="sqrt")
    f = transformer.computation(results, *inputs)
    carry = 4 * WIDE
    assert 2 * 100 * carry <= f.peak_bytes() <= 2.1 * 100 * carry


def test_levels_take_the_roots_of_the_steps(transformer):
    peaks = []
    for segments in (None, 100, (21, 22), (10, 10, 10)):
        results, inputs = long_loop(segments=segments)
        peaks.append(transformer.computation(results, *inputs).peak_bytes() / (4 * WIDE))
    whole, *several = peaks
    assert whole >= LONG
    # Two levels: 21 starts, 22 of one of these segments, and its 21 or 22 steps; 25 left behind.
    assert several[0] == pytest.approx(200, rel=0.1)
    assert several[1] < 130 and several[2] < 70
    assert several == sorted(several, reverse=True)


def test_products_of_a_segment_are_not_made_of_all_steps(make):
    """What each step multiplies is one product of a segment, and no stack of all steps is made."""
    H = geon.Axis("H", 64)
    x = geon.placeholder([geon.Axis("T", 400), H], name="x")
    w, u = (geon.placeholder([H.prime, H], name=name) for name in "wu")

    def step(h, each):
        new = geon.dot(w, h) + geon.dot(u, each)
        return geon.tanh(geon.rename(new, {H.prime: H})), None

    peaks, values = [], []
    random = np.random.default_rng(0)
    given = [0.1 * random.normal(size=s).astype(np.float32) for s in ((400, 64), *[(64, 64)] * 2)]
    for segments in (None, "sqrt"):
        last, _ = geon.scan(step, geon.broadcast(0.0, [H]), x, over="T", segments=segments)
        slope = geon.deriv(geon.sum(geon.square(last)), [w, u])
        f = make().computation(slope, x, w, u)
        peaks.append(f.peak_bytes())
        values.append(f(*given))
    results = 2 * 4 * 64 * 64
    assert peaks[1] - results < 0.4 * (peaks[0] - results)
    close(values[1], values[0])


def test_what_nobody_reads_step_by_step_is_no_loop_in_segments():
    x = geon.placeholder([T])
    for segments in (None, 3):
        last, seen = geon.scan(lambda c, each: (geon.tanh(c + each), c), 0.0, x, segments=segments)
        f = geon.NumPyTransformer().computation([last, seen], x)
        assert f.explain("simplify").count("scan(") == 1 and "segment:" not in f.source


def test_what_is_in_segments_is_shown():
    results, inputs = long_loop(segments="sqrt")
    f = geon.NumPyTransformer().computation(results, *inputs)
    shown = f.explain("simplify").splitlines()
    assert "computed again: 1 scan of 100 steps along T" in shown
    assert re.fullmatch(r"peak bytes: \d+ instead of \d+", shown[-1])
    assert any("(segment:100, W:1000)" in line for line in shown)


def test_segments_are_text_too():
    results, _ = long_loop(segments=(3, 4))
    text = geon.dumps(results[0])
    assert geon.dumps(geon.loads(text)) == text and '"segmented"' in text


@pytest.mark.parametrize("budget", ["1MB", "300kB"])
def test_a_budget_runs_loops_in_segments(budget, transformer):
    results, inputs = long_loop()
    f = transformer.computation(results, *inputs, memory=budget)
    assert f.peak_bytes() <= {"1MB": 1_000_000, "300kB": 300_000}[budget]
    assert "steps along T" in f.explain("simplify")


@pytest.mark.slow
def test_a_budget_of_a_loop_gives_the_same(make):
    inputs = leaves(60)
    loss, _, n = net(*inputs)
    results = [loss, n, geon.deriv(loss, inputs[1])]
    f = make().computation(results, *inputs)
    with pytest.raises(geon.SizeError) as caught:
        make().computation(results, *inputs, memory=1).peak_bytes()
    least = int(re.search(r"(\d+) are the least", str(caught.value))[1])
    assert least < f.peak_bytes()  # by how much differs: some targets have kernels side by side
    expected = f(*feeds(60))  # of the first call: the next one draws other numbers
    for budget in (least, (least + f.peak_bytes()) // 2):
        g = make().computation(results, *inputs, memory=budget)
        assert g.peak_bytes() <= budget
        close(g(*feeds(60)), expected)


def test_the_least_of_a_budget_knows_of_segments():
    results, inputs = long_loop()
    f = geon.NumPyTransformer().computation(results, *inputs, memory=1000)
    with pytest.raises(geon.SizeError, match="too few: a call takes") as caught:
        f.explain("plan")
    least = int(re.search(r"(\d+) are the least", str(caught.value))[1])
    assert least < 60 * 4 * WIDE
    assert geon.NumPyTransformer().computation(results, *inputs, memory=least).peak_bytes() == least


# What is refused ----------------------------------------------------------------------------------


@pytest.mark.parametrize("segments", [0, 1, -3, 2.0, True, "root", (), (3, 1), [2, "sqrt"]])
def test_other_numbers_are_refused(segments):
    x = geon.placeholder([T])
    with pytest.raises(geon.ArgumentError, match=r"segments=.* is no number.*several ones"):
        geon.scan(lambda c, each: (c + each, None), 0.0, x, segments=segments)


def test_numbers_of_numpy_are_numbers():
    x = geon.placeholder([T])
    one, other = (
        geon.scan(lambda c, each: (c + each, None), 0.0, x, segments=each)[0]
        for each in (np.int64(3), [3])
    )
    assert one is other


def test_root_segments_divide_the_steps_where_they_may():
    assert [root_segments(n) for n in (0, 1, 2, 4, 12, 100, 10_000)] == [1, 1, 2, 2, 4, 10, 100]
    for length in range(2, 3000):
        number = root_segments(length)
        least = 2 * length**0.5
        assert number + length // number <= 1.25 * least + 3
