"""``associative_scan`` on each transformer: against running sums and products, linear recurrences
and products of matrices, at any length, with derivatives."""

import dataclasses

import numpy as np
import pytest

import geon
from geon.op_graph.evaluation.interpreter import interpret
from geon.transformers.kernels.scans.sequential_scan import OrderedLoop

T, N, H = geon.Axis("T"), geon.Axis("N"), geon.Axis("H", 2)
LENGTHS = [0, 1, 2, 7]


def floats(*shape):
    return np.random.default_rng(sum(shape) + 1).normal(size=shape).astype(np.float32)


def agree(transformer, results, feeds, rtol=2e-4):
    """The results, which are those of the interpreter, also without a plan."""
    lengths = {
        axis.name: size
        for leaf, array in feeds.items()
        for axis, size in zip(leaf.axes, np.shape(array), strict=True)
        if axis.open_name
    }
    want = interpret(results, feeds, lengths)
    f = transformer.computation(results, *feeds)
    found = f(*feeds.values())
    apart = transformer.computation(results, *feeds, plan=False)(*feeds.values())
    for op, array, other in zip(results, found, apart, strict=True):
        largest = np.abs(want[op]).max(initial=1)
        np.testing.assert_allclose(array, want[op], rtol=rtol, atol=1e-5 * largest)
        np.testing.assert_array_equal(array, other)
        assert array.dtype == op.dtype
    return f, found


x = geon.placeholder([N, T, H], name="x")


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("count", LENGTHS)
def test_running_sums_and_products(transformer, count, reverse):
    both = [geon.associative_scan(f, x, over=T, reverse=reverse) for f in (geon.add, geon.multiply)]
    assert all(y.axes == x.axes for y in both)
    losses = [geon.sum(y * geon.sin(y)) for y in both]
    first = [geon.deriv(loss, x) for loss in losses]
    second = [geon.deriv(geon.sum(geon.square(g)), x) for g in first]
    feeds = {x: floats(3, count, 2)}
    f, found = agree(transformer, [*both, *first, *second], feeds)
    known = [geon.cumsum(x, T, reverse=reverse), geon.cumprod(x, T, reverse=reverse)]
    first = [geon.deriv(geon.sum(y * geon.sin(y)), x) for y in known]
    second = [geon.deriv(geon.sum(geon.square(g)), x) for g in first]
    want = transformer.computation([*known, *first, *second], x)(*feeds.values())
    for one, other in zip(found, want, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-3, atol=1e-4 * np.abs(other).max(initial=1))
    if transformer.target.orders:
        assert any(isinstance(kernel.work, OrderedLoop) for kernel in f.plan.schedule.kernels)


@dataclasses.dataclass
class Affine:
    """x -> scale * x + shift."""

    scale: geon.Tensor
    shift: geon.Tensor


def then(first, second):
    return Affine(first.scale * second.scale, second.scale * first.shift + second.shift)


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("count", LENGTHS)
def test_linear_recurrences(transformer, count, reverse):
    a, b = geon.placeholder([N, T], name="a"), geon.placeholder([T, N], name="b")
    found = geon.associative_scan(then, Affine(a, b), over=T, reverse=reverse)
    assert isinstance(found, Affine) and found.scale.axes == a.axes and found.shift.axes == b.axes
    _, seen = geon.scan(
        lambda c, e: (e[0] * c + e[1],) * 2, geon.broadcast(0.0, [N]), (a, b), over=T,
        reverse=reverse,
    )  # fmt: skip
    feeds = {a: floats(5, count), b: floats(count, 5)}
    results = []
    for y in (found.shift, seen):
        results += [y, *geon.deriv(geon.sum(geon.square(y)), [a, b])]
        results.append(geon.jvp(geon.sum(y * y), a, geon.cos(a)))
    _, values = agree(transformer, results, feeds)
    for one, other in zip(values[:4], values[4:], strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("reverse", [False, True])
def test_what_comes_before_is_the_left_one(transformer, reverse):
    m = geon.placeholder([H, H.prime, T], name="m")
    inner = H.prime.prime

    def product(left, right):
        left = geon.rename(left, {H.prime: inner})
        return geon.cast_axes(geon.dot(left, geon.rename(right, {H: inner})), [H, H.prime])

    y = geon.associative_scan(product, m, over=T, reverse=reverse)
    third = geon.sum(geon.sin(y))
    for _ in range(3):
        third = geon.sum(geon.square(geon.deriv(third, m)))
    for count in LENGTHS:
        given = floats(2, 2, count)
        want, total = np.empty_like(given), None
        for t in range(count)[:: -1 if reverse else 1]:
            total = given[..., t] if total is None else total @ given[..., t]
            want[..., t] = total
        _, (found, *_) = agree(transformer, [y, geon.deriv(geon.sum(y * y), m)], {m: given})
        np.testing.assert_allclose(found, want, rtol=1e-4, atol=1e-5)
    agree(transformer, [third], {m: 0.3 * floats(2, 2, 3)}, rtol=1e-2)


@pytest.mark.parametrize("count", LENGTHS)
def test_dtypes_and_lengths_that_are_known(transformer, count):
    t = geon.Axis("T", count)
    n, b = geon.placeholder([t], "int32", name="n"), geon.placeholder([t], "bool", name="b")
    d = geon.placeholder([t], "float64", name="d")
    found = geon.associative_scan(
        lambda one, other: {
            "n": geon.maximum(one["n"], other["n"]),
            "b": one["b"] | other["b"],
            "d": one["d"] + other["d"],
        },
        {"n": n, "b": b, "d": d},
        over=t,
    )
    given = np.array([3, -1, 5, 2, 7, 7, -9][:count], np.int32)
    truth, wide = given == 5, given * 0.1
    got = transformer.computation(found, n, b, d)(given, truth, wide)
    np.testing.assert_array_equal(got["n"], np.maximum.accumulate(given))
    np.testing.assert_array_equal(got["b"], np.logical_or.accumulate(truth))
    np.testing.assert_allclose(got["d"], np.cumsum(wide), rtol=1e-14)


def test_values_that_are_not_finite_and_signs_of_zeros(transformer):
    v = geon.placeholder([T], name="v")
    both = [geon.associative_scan(f, v) for f in (geon.add, geon.maximum)]
    f = transformer.computation([*both, geon.deriv(geon.sum(both[0]), v)], v)
    for given in ([-0.0, -0.0], [-np.inf, 1, np.inf], [1, np.nan, 2], [-0.0]):
        given = np.array(given, np.float32)
        sums, largest, slope = f(given)
        with np.errstate(all="ignore"):
            np.testing.assert_array_equal(sums, np.cumsum(given))
            assert np.signbit(sums[0]) == np.signbit(given[0])
            np.testing.assert_array_equal(largest, np.maximum.accumulate(given))
        np.testing.assert_array_equal(slope, np.arange(len(given), 0, -1))


def test_what_nobody_reads_spoils_no_derivative(transformer):
    v = geon.placeholder([T], name="v")
    y = geon.associative_scan(lambda a, b: geon.log(geon.exp(a) + geon.exp(b)), v)
    ratio = geon.associative_scan(lambda a, b: 1 / (1 / a + 1 / b), v)
    f = transformer.computation([y, geon.deriv(geon.sum(y), v), geon.deriv(geon.sum(ratio), v)], v)
    for given in ([5.0, 1, 2], [0.5], [3.0, 4]):
        assert all(np.isfinite(each).all() for each in f(given))


def test_threads_change_no_bit():
    y = geon.associative_scan(then, Affine(x, geon.sin(x)), over=T)
    results, given = [y.scale, y.shift], floats(301, 40, 2)
    one, two = [geon.NativeTransformer(threads=k).computation(results, x)(given) for k in (1, 2)]
    for left, right in zip(one, two, strict=True):
        np.testing.assert_array_equal(left, right)


def test_what_is_refused():
    t = geon.Axis("T", 4)
    v = geon.placeholder([t, H], name="v")
    with pytest.raises(geon.AxisError, match=r"associative_scan at .*: an element is \(H:2\)"):
        geon.associative_scan(lambda a, b: geon.sum(a + b), v, over=t)
    with pytest.raises(geon.DTypeError, match="float64"):
        geon.associative_scan(lambda a, b: geon.cast(a + b, "float64"), v, over=t)
    with pytest.raises(geon.ArgumentError, match="return what is like xs"):
        geon.associative_scan(lambda a, b: (a, b), v, over=t)
    with pytest.raises(geon.AxisError, match="lacks the axis 'N'"):
        geon.associative_scan(geon.add, v, over=geon.Axis("N", 4))
    with pytest.raises(geon.ArgumentError, match="f=None is no function"):
        geon.associative_scan(None, v, over=t)
    with pytest.raises(geon.ArgumentError, match="no tensor"):
        geon.associative_scan(geon.add, [], over=t)
