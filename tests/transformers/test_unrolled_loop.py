"""Scans of small tensors as one kernel: their elements as carries, alone or in an ensemble."""

import numpy as np
import pytest

import geon
from geon.op_graph.evaluation.interpreter import interpret
from geon.transformers.kernels.ir.nest import Region
from geon.transformers.kernels.scans import scan_fusion
from geon.transformers.kernels.scans.scalarised_scans import MAX_SCALARISED_LENGTH
from geon.transformers.kernels.scans.sequential_scan import OrderedLoop

T, N = geon.Axis("T"), geon.Axis("N")
ROWS = [0, 1, 2, 63, 64, 65, 129]


def floats(*shape):
    return np.random.default_rng(sum(shape) + 1).normal(size=shape).astype(np.float32)


def agree(transformer, results, feeds, kinds=None, rtol=2e-4):
    lengths = {
        axis.name: size
        for leaf, array in feeds.items()
        for axis, size in zip(leaf.axes, np.shape(array), strict=True)
        if axis.open_name
    }
    wide = {leaf: np.asarray(array, np.float64) for leaf, array in feeds.items()}
    want = interpret(results, wide, lengths)
    f = transformer.computation(results, *feeds)
    apart = transformer.computation(results, *feeds, plan=False)(*feeds.values())
    for op, found, other in zip(results, f(*feeds.values()), apart, strict=True):
        largest = np.abs(want[op], where=np.isfinite(want[op]), out=np.ones(want[op].shape))
        largest = largest.max(initial=1)
        np.testing.assert_allclose(found, want[op], rtol=rtol, atol=0.1 * rtol * largest)
        np.testing.assert_array_equal(found, other)
    if kinds is not None and transformer.target.orders:
        works = [type(kernel.work) for kernel in f.plan.schedule.kernels]
        assert [each for each in works if each in (OrderedLoop, Region)] == kinds
    return f


def products(n, reverse=False):
    a, b = geon.Axis("A", n), geon.Axis("B", n)
    m = geon.placeholder([T, a, a.prime], name="m")
    start = geon.placeholder([a, b], name="start")

    def step(s, each):
        return geon.dot(each, geon.cast_axes(s, [a.prime, b])), geon.sum(s, b)

    last, seen = geon.scan(step, start, m, over=T, reverse=reverse)
    slopes = geon.deriv(geon.sum(geon.square(last)) + geon.sum(geon.sin(seen)), [m, start])
    return m, start, [last, seen, *slopes]


def orthogonal(count, n):
    random = np.random.default_rng(n)
    return np.linalg.qr(random.normal(size=(count, n, n)))[0].astype(np.float32)


@pytest.mark.parametrize("n", [1, 2, 3, 4, 7, 8])
@pytest.mark.parametrize("reverse", [False, True])
def test_products_of_matrices(transformer, n, reverse):
    m, start, results = products(n, reverse)
    for count in (0, 1, 6):
        feeds = {m: orthogonal(count, n), start: floats(n, n)}
        agree(transformer, results, feeds, [OrderedLoop, OrderedLoop] if n < 8 else None)


@pytest.mark.parametrize(
    "n", [MAX_SCALARISED_LENGTH - 5, MAX_SCALARISED_LENGTH, MAX_SCALARISED_LENGTH + 1]
)
def test_larger_ones_stay_loops_of_kernels(transformer, n):
    m, start, results = products(n)
    feeds = {m: orthogonal(3, n), start: floats(n, n)}
    agree(transformer, results, feeds, [Region, Region])


A, B = geon.Axis("A", 3), geon.Axis("B", 2)


@pytest.mark.parametrize("rows", ROWS)
@pytest.mark.parametrize("first", [True, False])
def test_an_ensemble_of_filters(transformer, rows, first):
    """The rows of an ensemble do not meet, wherever their axis is."""
    axes = [N, A] if first else [A, N]
    state = geon.placeholder(axes, name="state")
    spread = geon.placeholder([N, A, A.prime], name="spread")
    move = geon.placeholder([A.prime, A], name="move")
    see = geon.placeholder([B, A], name="see")
    y = geon.placeholder([T, N, B], name="y")

    def step(carry, each):
        x, p = carry
        x = geon.dot(geon.cast_axes(x, [*(A.prime if a is A else a for a in axes)]), move)
        p = 0.9 * p + geon.cast_axes(geon.dot(geon.rename(p, {A: "Q"}), move, over=A.prime), p.axes)
        missed = each - geon.dot(see, x, over=A)
        x = x + 0.1 * geon.dot(missed, see, over=B)
        return (geon.reorder(x, axes), geon.tanh(p)), (geon.sum(missed * missed, B), missed)

    (x, p), (errors, missed) = geon.scan(step, (state, spread), y, over=T)
    loss = geon.sum(errors) + geon.sum(x)
    results = [x, p, errors, missed, *geon.deriv(loss, [y, state])]
    sizes = {"N": rows, "T": 4}
    feeds = {leaf: floats(*(sizes.get(axis.name, axis.length) for axis in leaf.axes))
             for leaf in (state, spread, move, see, y)}  # fmt: skip
    agree(transformer, results, feeds, [OrderedLoop, OrderedLoop], rtol=1e-3)


def test_parts_that_are_moved_and_joined(transformer):
    x = geon.placeholder([T, A], name="x")

    def step(c, e):
        turned = geon.flip(c, A) * geon.cast(geon.iota(A), "float32")
        last = c[{A: slice(2, 3)}]
        joined = geon.concat([last, c[{A: slice(0, 2)}]], A)
        padded = geon.pad(c[{A: slice(1, 3)}], {A: (1, 0)})
        return turned + joined + 0.5 * padded + e, geon.roll(c, {A: 1})

    last, seen = geon.scan(step, geon.broadcast(0.5, [A]), x, over=T)
    results = [last, seen, geon.deriv(geon.sum(seen * seen), x)]
    for count in (0, 1, 5):
        agree(transformer, results, {x: floats(count, 3)}, [OrderedLoop, OrderedLoop])


def test_nothing_to_sum_and_values_that_are_not_finite(transformer):
    none = geon.Axis("Z", 0)
    x = geon.placeholder([T, A], name="x")
    empty, other = geon.placeholder([none, A], name="empty"), geon.placeholder([none])

    def step(c, e):
        return geon.maximum(c * geon.sum(e, A), e) - geon.dot(other, empty), geon.sum(c, A)

    last, seen = geon.scan(step, geon.broadcast(1.0, [A]), x, over=T)
    values = floats(6, 3)
    values[1, 1], values[3, 0], values[4] = np.nan, np.inf, -0.0
    feeds = {x: values, empty: floats(0, 3), other: floats(0)}
    agree(transformer, [last, seen], feeds, [OrderedLoop])


def test_what_meets_other_rows_or_takes_the_largest_stays_a_loop_of_kernels(transformer):
    y = geon.placeholder([T, N, A], name="y")
    for step in (
        lambda c, e: (geon.flip(c, N) + geon.flip(e, A), None),
        lambda c, e: (c + geon.sum(e, N), None),
        lambda c, e: (c + geon.max(e, A), None),
    ):
        last, _ = geon.scan(step, y[{T: 0}], y, over=T)
        agree(transformer, [last], {y: floats(3, 66, 3)}, [Region])


@pytest.mark.parametrize("n", [8, 9, 10, 11])
def test_bodies_of_many_statements_stay_loops_of_kernels(transformer, n):
    """A product of two n×n matrices has 2 n³ statements, and one of each element that is loaded."""
    m, start, results = products(n)
    bounds = transformer.target.orders
    kind = OrderedLoop if bounds and 2 * n**3 + n**2 <= bounds.single else Region
    agree(transformer, results[:1], {m: orthogonal(3, n), start: floats(n, n)}, [kind])


@pytest.mark.parametrize("wide", [3, 4, 5, 6, 11])
def test_rows_of_many_statements_stay_loops_of_kernels(transformer, wide):
    """The same of rows side by side, whose statements take a compiler longer."""
    a, b = geon.Axis("A", wide), geon.Axis("B", 7)
    m, start = geon.placeholder([a, a.prime], name="m"), geon.placeholder([N, a, b], name="start")

    def step(s, _):
        return geon.reorder(
            geon.dot(m, geon.rename(s, {a: a.prime}), over=a.prime), [N, a, b]
        ), None

    last, _ = geon.scan(step, start, over=geon.Axis("S", 3))
    bounds = transformer.target.orders
    kind = OrderedLoop if bounds and 14 * wide**2 + wide**2 <= bounds.lanes else Region
    agree(transformer, [last], {m: floats(wide, wide), start: floats(5, wide, 7)}, [kind])


def test_second_derivatives_and_float64(transformer):
    a = geon.Axis("A", 2)
    x = geon.placeholder([T, a], "float64", name="x")
    w = geon.placeholder([a.prime, a], "float64", name="w")

    def step(c, e):
        return geon.tanh(geon.dot(geon.cast_axes(c, [a.prime]), w) + e), None

    last, _ = geon.scan(step, geon.constant(np.zeros(2), [a]), x, over=T)
    slope = geon.deriv(geon.sum(last), w)
    results = [last, slope, geon.deriv(geon.sum(slope * slope), x)]
    feeds = {x: floats(5, 2).astype(np.float64), w: floats(2, 2).astype(np.float64)}
    agree(transformer, results, feeds, rtol=1e-9)


def test_threads_and_plans_change_no_bit():
    a = geon.Axis("A", 4)
    x, w = geon.placeholder([T, N, a], name="x"), geon.placeholder([a.prime, a], name="w")

    def step(c, e):
        c = geon.sin(geon.dot(geon.cast_axes(c, [N, a.prime]), w) + e)
        return c, geon.sum(c, a)

    last, seen = geon.scan(step, geon.broadcast(0.0, [N, a]), x, over=T)
    results = [last, seen, geon.deriv(geon.sum(seen), x)]
    feeds = floats(20, 5000, 4), floats(4, 4)
    found = [
        geon.NativeTransformer(threads=threads).computation(results, x, w, plan=plan)(*feeds)
        for threads, plan in [(1, True), (2, True), (2, False)]
    ]
    for other in found[1:]:
        for one, two in zip(found[0], other, strict=True):
            np.testing.assert_array_equal(one, two)


def test_whether_a_loop_is_one_kernel_is_tried_once(monkeypatch):
    """To try is to make the kernel: once to know, and once with what it reads."""
    made, way = [], scan_fusion.scalarise_scan

    def counted(*given):
        made.append(given[0])
        return way(*given)

    monkeypatch.setattr(scan_fusion, "scalarise_scan", counted)
    T, H = geon.Axis("T"), geon.Axis("H", 4)
    x, w = geon.placeholder([T, H]), geon.placeholder([H.prime, H])

    def step(carry, each):
        return geon.tanh(geon.rename(geon.dot(w, carry), {H.prime: H}) + each), None

    last, _ = geon.scan(step, geon.broadcast(0.0, [H]), x, over=T)
    f = geon.NativeTransformer().computation([last, geon.deriv(geon.sum(last), w)], x, w)
    kernels = f.plan.schedule.kernels
    assert made and len(made) == 2 * sum(isinstance(kernel.work, OrderedLoop) for kernel in kernels)
