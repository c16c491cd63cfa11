"""Scans of elements as one kernel: any number of rows, any axes, halves, integers and truth values,
bits that do not depend on threads, and what stays a loop of kernels."""

import numpy as np
import pytest

import geon
from geon.op_graph.evaluation.interpreter import interpret
from geon.transformers.kernels.ir.nest import Region
from geon.transformers.kernels.scans.sequential_scan import OrderedLoop
from geon.transformers.native.toolchain.compilers import find_toolchain
from geon.transformers.native.vectors.scan_text import between_looks

T, N, M = geon.Axis("T"), geon.Axis("N"), geon.Axis("M", 3)
ROWS = [0, 1, 2, 63, 64, 65, 127, 129, 1000]


def floats(*shape):
    return np.random.default_rng(sum(shape) + 1).normal(size=shape).astype(np.float32)


def agree(transformer, results, feeds, kinds=None):
    lengths = {
        axis.name: size
        for leaf, array in feeds.items()
        for axis, size in zip(leaf.axes, np.shape(array), strict=True)
        if axis.open_name
    }
    want = interpret(results, feeds, lengths)
    f = transformer.computation(results, *feeds)
    for op, found in zip(results, f(*feeds.values()), strict=True):
        largest = np.abs(want[op].astype(np.float64)).max(initial=1)
        tolerance = 1e-2 if op.dtype.itemsize == 2 and op.dtype.kind != "i" else 2e-4
        found, wanted = found.astype(np.float64), want[op].astype(np.float64)
        np.testing.assert_allclose(found, wanted, rtol=tolerance, atol=0.1 * tolerance * largest)
    if kinds is not None and transformer.target.orders:
        works = [type(kernel.work) for kernel in f.plan.schedule.kernels]
        assert [each for each in works if each in (OrderedLoop, Region)] == kinds
    return f


@pytest.mark.parametrize("count", [0, 1, 2, 7, 100])
def test_scalars(transformer, count):
    x, a = geon.placeholder([T], name="x"), geon.placeholder([], name="a")

    def step(c, e):
        return (geon.sin(c[1] * a) + e, c[0] + 1, c[2] + 1), (c[0] * e, c[0] > c[1])

    (p, q, n), (s, b) = geon.scan(step, (a, 0.5, 0), x, over=T)
    results = [p, q, n, s, b, *geon.deriv(geon.sum(s) + p * q, [x, a])]
    feeds = {x: floats(count), a: np.float32(0.3)}
    agree(transformer, results, feeds, [OrderedLoop, OrderedLoop])


@pytest.mark.parametrize("rows", ROWS)
@pytest.mark.parametrize("reverse", [False, True])
def test_rows(transformer, rows, reverse):
    y, z = geon.placeholder([T, N], name="y"), geon.placeholder([N], name="z")
    g, v = geon.placeholder([], name="g"), geon.placeholder([T], name="v")

    def step(c, e):
        return (geon.tanh(c[1] * g) + e[0] * z, c[0] + e[1]), (c[0] * c[1], c[0] > 0)

    init = (z, geon.broadcast(0.0, [N]))
    (u, w), (ys, signs) = geon.scan(step, init, (y, v), over=T, reverse=reverse)
    loss = geon.sum(geon.square(ys)) + geon.sum(u * w)
    results = [u, w, ys, signs, *geon.deriv(loss, [y, z])]
    feeds = {y: floats(4, rows), z: floats(rows), g: np.float32(0.3), v: floats(4)}
    agree(transformer, results, feeds, [OrderedLoop, OrderedLoop])


@pytest.mark.parametrize("rows", [0, 1, 21, 22, 43])
def test_rows_of_several_axes(transformer, rows):
    y, z = geon.placeholder([T, N, M], name="y"), geon.placeholder([N, M], name="z")
    last, seen = geon.scan(lambda c, e: (geon.sin(c) + e * z, c * e), z, y, over=T)
    feeds = {y: floats(5, rows, 3), z: floats(rows, 3)}
    results = [last, seen, geon.deriv(geon.sum(seen), y)]
    agree(transformer, results, feeds, [OrderedLoop, OrderedLoop])


@pytest.mark.parametrize("count", [0, 5])
def test_renamed_arguments_of_rows_of_several_axes(transformer, count):
    y, z = geon.placeholder([T, N, M], name="y"), geon.placeholder([N, M], name="z")
    of, to = {N: "B", M: "C"}, {"T": slice(None, None, 2)}
    renamed = geon.rename(y, of)[to]  # where it is empty, it lies nowhere
    last, seen = geon.scan(lambda c, e: (c * 0.5 + e, c), geon.rename(z, of), renamed, over=T)
    agree(transformer, [last, seen], {y: floats(count, 7, 3), z: floats(7, 3)}, [OrderedLoop])


def test_stacks_that_lie_otherwise(transformer):
    y = geon.placeholder([N, T], name="y")  # the axis of the loop lies innermost
    first = geon.placeholder([geon.Axis("K", 5), N], name="first")
    last, seen = geon.scan(lambda c, e: (c * 0.5 + e, c - e), first[{"K": 3}], y, over=T)
    agree(transformer, [last, seen], {y: floats(70, 6), first: floats(5, 70)}, [OrderedLoop])


def test_parts_of_what_all_steps_read(transformer):
    rates = geon.placeholder([M], name="rates")
    x = geon.placeholder([T], name="x")

    def step(c, e):
        return [c[k] + rates[{M: k}] * ((c[k - 1] if k else e) - c[k]) for k in range(3)], None

    last, _ = geon.scan(step, [0.5, 0.25, 1.0], x, over=T)
    total = sum(each * each for each in last)
    results = [*last, *geon.deriv(total, [rates, x])]
    agree(transformer, results, {x: floats(9), rates: floats(3)}, [OrderedLoop, OrderedLoop])


@pytest.mark.parametrize("axes", [[N, M], [geon.Axis("K", 2), M]])
@pytest.mark.parametrize("value", [0.0, 7.0])
def test_a_step_gives_the_constant_that_a_carry_began_with(transformer, axes, value):
    x, same = geon.placeholder(axes), geon.broadcast(value, axes)
    last, _ = geon.scan(lambda c, _: ([same, c[0] + c[1]], None), [x, same], over=geon.Axis("S", 5))
    agree(transformer, last, {x: floats(2, 3)}, [OrderedLoop])


@pytest.mark.parametrize("length", [1, 2])
def test_a_computed_stack_is_turned_along_an_axis_of_one(transformer, length):
    axes = [geon.Axis("K", length), M]
    x = geon.placeholder([T, *axes])
    last, _ = geon.scan(lambda c, e: (c + geon.flip(e, "K"), None), geon.broadcast(5.0, axes),
                        x * 2 + 1, over=T)  # fmt: skip
    for count in (0, 1, 3):
        agree(transformer, [last], {x: floats(count, length, 3)}, [OrderedLoop])


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float64", "int8", "uint32", "bool"])
def test_dtypes(transformer, dtype):
    y = geon.placeholder([T, N], dtype, name="y")
    first = geon.placeholder([N], dtype, name="first")

    def step(c, e):
        return (c ^ e if dtype == "bool" else c + e), c

    last, seen = geon.scan(step, first, y, over=T)
    random = np.random.default_rng(0)
    values = [random.integers(0, 2, shape).astype(y.dtype) for shape in ((6, 65), (65,))]
    agree(transformer, [last, seen], dict(zip((y, first), values, strict=True)), [OrderedLoop])


def test_the_number_of_the_row_and_of_the_step(transformer):
    def step(c, n):
        return c + geon.cast(geon.iota(N) * n, "float32"), c * 2

    y = geon.placeholder([N], name="y")
    last, seen = geon.scan(step, y, geon.iota(T.with_length(7)))
    agree(transformer, [last, seen], {y: floats(70)}, [OrderedLoop])


def test_values_that_are_not_finite(transformer):
    y = geon.placeholder([T], name="y")
    last, seen = geon.scan(lambda c, e: (geon.maximum(c, e) - c, c / e), 1.0, y)
    values = np.array([np.nan, 1, np.inf, -0.0, 0.0, -np.inf], np.float32)
    want = interpret([last, seen], {y: values}, {"T": 6})
    found = transformer.computation([last, seen], y)(values)
    for op, each in zip((last, seen), found, strict=True):
        np.testing.assert_array_equal(each, want[op])
        np.testing.assert_array_equal(np.signbit(each), np.signbit(want[op]))


def test_what_reads_other_rows_stays_a_loop_of_kernels(transformer):
    y = geon.placeholder([T, N], name="y")
    for step in (
        lambda c, e: (geon.flip(c, N) + e, None),
        lambda c, e: (c + geon.sum(e), None),
        lambda c, e: (geon.cumsum(c, N) + e, None),
    ):
        last, _ = geon.scan(step, y[{T: 0}], y, over=T)
        agree(transformer, [last], {y: floats(3, 66)}, [Region])


def test_threads_and_plans_change_no_bit():
    y, z = geon.placeholder([T, N], name="y"), geon.placeholder([N], name="z")
    last, seen = geon.scan(lambda c, e: (geon.sin(c) + e, c * e), z, y, over=T)
    results = [last, seen, geon.deriv(geon.sum(seen), y)]
    feeds = floats(50, 20_000), floats(20_000)
    found = [
        geon.NativeTransformer(threads=threads).computation(results, y, z, plan=plan)(*feeds)
        for threads, plan in [(1, True), (2, True), (2, False)]
    ]
    for other in found[1:]:
        for one, two in zip(found[0], other, strict=True):
            np.testing.assert_array_equal(one, two)


@pytest.mark.skipif(find_toolchain() is None, reason="there is no C compiler")
@pytest.mark.parametrize("rows", [1, 70])
@pytest.mark.parametrize("reverse", [False, True])
def test_turns_between_looks_for_an_interrupt(rows, reverse):
    x = geon.placeholder([T], name="x")
    n = geon.Axis("N", rows)
    first = geon.placeholder([n], name="first")

    def step(c, e):
        return 0.5 * c + e, c * e

    last, seen = geon.scan(step, first, x, over=T, reverse=reverse)
    f = geon.NativeTransformer(threads=2).computation([last, seen], x, first)
    (kernel,) = [each for each in f.plan.schedule.kernels if isinstance(each.work, OrderedLoop)]
    some = between_looks(kernel.work)
    for turns in (some - 1, some, some + 1, 2 * some, 2 * some + 3):
        given, c = floats(turns), np.linspace(0, 1, rows, dtype=np.float32)
        found, stack = f(given, c)
        want = np.empty_like(stack)
        for turn in range(turns)[:: -1 if reverse else 1]:
            want[turn] = c * given[turn]
            c = np.float32(0.5) * c + given[turn]
        np.testing.assert_array_equal(found, c)
        np.testing.assert_array_equal(stack, want)


@pytest.mark.parametrize("lengths", [(3, 0), (0, 3), (0,)])
def test_rows_of_no_element(make, lengths):
    rows = [geon.Axis(name, length) for name, length in zip("AB", lengths, strict=False)]
    steps = geon.Axis("T", 3)
    x = geon.placeholder([steps, *rows], name="x")
    last, seen = geon.scan(
        lambda c, x_t: (2 * x_t + c, c), geon.broadcast(0.0, rows), x, over=steps
    )
    f = make().computation((last, seen), x)
    found = f(np.zeros((3, *lengths), np.float32))
    assert [each.shape for each in found] == [lengths, (3, *lengths)]


@pytest.mark.parametrize("make", [geon.NumPyTransformer, geon.NativeTransformer])
@pytest.mark.parametrize("other", [0, 3])
@pytest.mark.parametrize("turns", [0, 1, 5])
def test_values_without_elements_are_carried(make, other, turns):
    """Beside such with elements or alone, in derivatives of derivatives; and they are explained."""
    none, some, time = geon.Axis("N", 0), geon.Axis("M", other), geon.Axis("T", turns)
    u, v = geon.placeholder([none]), geon.placeholder([some])

    def step(carry, _):
        a, b = carry
        return (geon.tanh(a) + geon.sum(b), b * 0.5), a + geon.sum(a)

    (a, b), stack = geon.scan(step, (u, v), over=time)
    first = geon.deriv(geon.sum(geon.square(b)) + geon.sum(a) + geon.sum(stack), [u, v])
    slopes = geon.sum(geon.square(first[0])) + geon.sum(geon.square(first[1]))
    second = geon.deriv(slopes, [u, v])
    given = np.arange(1.0, 1.0 + other, dtype=np.float32)
    with make() as transformer:
        f = transformer.computation([a, b, stack, *first, *second], u, v)
        found = f(np.zeros(0), given)
        for stage in ("simplify", "schedule", "plan"):
            assert f.explain(stage)
    half = 0.5**turns
    shapes = [(0,), (other,), (turns, 0), (0,), (other,), (0,), (other,)]
    assert sorted(map(np.shape, found)) == sorted(shapes)
    np.testing.assert_allclose(found[1], given * half)
    np.testing.assert_allclose(found[4], 2 * given * half**2)
    np.testing.assert_allclose(found[6], 8 * given * half**4)
