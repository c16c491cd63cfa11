"""float8 dtypes: rounding, what is refused, derivatives, dumps, constants and feeds."""

import numpy as np
import pytest

import geon
from geon.op_graph.core.primitive import PRIMITIVES
from geon.op_graph.values.arrays import rounded
from geon.op_graph.values.dtypes import FLOAT8S, as_dtype

from .computing import compute

A = geon.Axis("A", 3)
B = geon.Axis("B", 2)


def nearest(values, dtype):
    """Round to the nearest number of a dtype by a search; of two, to that with even bits."""
    bits = np.arange(0x7F, dtype=np.uint8)
    numbers = bits.view(as_dtype(dtype)).astype(np.float64)
    finite = np.isfinite(numbers)
    numbers, bits = numbers[finite], bits[finite]
    limit = numbers[-1] + (numbers[-1] - numbers[-2]) / 2
    found = []
    for value in np.asarray(values, np.float64):
        away = np.abs(numbers - abs(value))
        near = bits[away == away.min()] if np.isfinite(value) else bits[:1]
        best = near[0] if len(near) == 1 else near[near % 2 == 0][0]
        # A tie beyond the largest number rounds to it if its bits are even, as those of e4m3fn.
        if abs(value) > limit or (abs(value) == limit and bits[-1] % 2):
            best = 0x7C if dtype == "float8_e5m2" else 0x7F
        if np.isnan(value):
            best = 0x7E if dtype == "float8_e5m2" else 0x7F
        found.append(best | (0x80 if np.signbit(value) else 0))
    return np.array(found, np.uint8)


@pytest.mark.parametrize("dtype", FLOAT8S)
def test_float64_and_float32_round_once_to_the_nearest(dtype):
    numbers = np.arange(256, dtype=np.uint8).view(as_dtype(dtype)).astype(np.float64)
    numbers = np.unique(numbers[np.isfinite(numbers)])
    ties = (numbers[1:] + numbers[:-1]) / 2
    edges = [464.0, 61440.0, np.inf, np.nan, 1e300, 5e-324, 1e-45, 0.0]
    at = np.concatenate([numbers, ties, ties * (1 + 2.0**-40), ties * (1 - 2.0**-40), edges])
    at = np.concatenate([at, -at, np.nextafter(at, 0), np.nextafter(at, np.inf)])
    random = np.random.default_rng(0).integers(0, 2**32, 500, dtype=np.uint32).view(np.float32)
    with np.errstate(all="ignore"):
        for values in (at, at.astype(np.float32), random):
            found = rounded(values, as_dtype(dtype)).view(np.uint8)
            np.testing.assert_array_equal(found, nearest(values, dtype))


@pytest.mark.parametrize("dtype", FLOAT8S)
def test_what_computes_is_refused_and_names_the_cure(dtype):
    x, y = geon.placeholder([A, B], dtype, name="x"), geon.placeholder([A, B], name="y")
    for build in [
        lambda: x + x,
        lambda: x * 2.0,
        lambda: -x,
        lambda: x < x,
        lambda: x == 0.5,
        lambda: x + y,
        lambda: geon.exp(x),
        lambda: geon.maximum(x, x),
        lambda: geon.isnan(x),
        lambda: geon.sum(x),
        lambda: geon.mean(x, A),
        lambda: geon.max(x, A),
        lambda: geon.argmax(x, A),
        lambda: geon.dot(x, x),
        lambda: geon.contract([x, x], [A]),
        lambda: geon.sort(x, A),
        lambda: geon.cumsum(x, A),
        lambda: geon.softmax(x, A),
        lambda: geon.signbit(x),
        lambda: geon.log2(x),
        lambda: geon.any(x, A),
        lambda: geon.float_power(x, 2),
        lambda: geon.nan_to_num(x),
        lambda: geon.L2_norm(x),
        lambda: geon.scatter(x, geon.constant([0], [geon.Axis("K", 1)]), 1.0, A, mode="add"),
    ]:
        with pytest.raises(geon.DTypeError, match=r'float8.*geon\.cast.*"float32"') as caught:
            build()
        assert "test_float8.py" in str(caught.value)


def test_every_row_that_computes_refuses_float8():
    taking = {row.name for row in PRIMITIVES.values() if row.own and row.takes_float8}
    elementwise = {name for name in taking if PRIMITIVES[name].kind == "elementwise"}
    assert elementwise == {"where", "cast", "bitcast", "copy", "stop_gradient"}
    assert not {PRIMITIVES[name].kind for name in taking} & {"reduction", "ordered", "contraction"}


def test_float8_meets_no_other_dtype():
    x, y = geon.placeholder([A], "float8_e4m3fn"), geon.placeholder([A], "float8_e5m2")
    for other in (y, geon.placeholder([A]), geon.placeholder([A], "int8")):
        for build in (lambda z: geon.where(z.cast("bool"), x, z), lambda z: geon.concat([x, z], A)):
            with pytest.raises(geon.DTypeError, match="no common dtype.*geon.cast"):
                build(other)


def test_python_numbers_take_float8_if_they_fit():
    x = geon.placeholder([A], "float8_e4m3fn")
    kept = geon.where(x.cast("bool"), x, 448)
    assert kept.dtype == x.dtype
    for number in (500.0, float("inf")):
        with pytest.raises(geon.DTypeError, match="too large for float8_e4m3fn"):
            geon.where(x.cast("bool"), x, number)
    found = compute([geon.cast(1e9, "float8_e4m3fn"), geon.cast(1e9, "float8_e5m2")], {})
    assert np.isnan(found[0].astype(np.float32)) and np.isinf(found[1].astype(np.float32))


def test_feeds_and_constants_are_rounded_once_and_checked():
    x = geon.placeholder([A], "float8_e4m3fn", name="x")
    f = geon.NumPyTransformer().computation(x, x)
    halfway = 1 + 2.0**-4
    data = np.array([halfway, halfway + 2.0**-40, -448])
    for found in (f(data), compute(geon.constant(data, [A], dtype=x.dtype), {})):
        assert found.dtype == as_dtype("float8_e4m3fn")
        np.testing.assert_array_equal(found.astype(np.float64), [1, 1.125, -448])
    with pytest.raises(geon.FeedError, match="500.0, which is too large for float8_e4m3fn"):
        f(np.array([1, 2, 500.0]))
    with pytest.raises(geon.DTypeError, match="500.0 does not fit float8_e4m3fn"):
        geon.constant([1, 2, 500.0], [A], dtype="float8_e4m3fn")
    y = geon.placeholder([], "float8_e5m2")
    assert geon.NumPyTransformer().computation(y, y)(2.5) == 2.5


def test_derivatives_through_float8_raise():
    x = geon.placeholder([A], name="x")
    small = geon.cast(x, "float8_e4m3fn", name="small")
    back = geon.cast(small, "float32")
    cure = "goes through small.*test_float8.py.*stop_gradient"
    with pytest.raises(geon.DerivativeError, match=cure):
        geon.deriv(geon.sum(back * x), x)
    with pytest.raises(geon.DerivativeError, match=cure):
        geon.jvp(back, x, x)
    with pytest.raises(geon.DerivativeError, match="float8_e4m3fn"):
        geon.deriv(geon.sum(back), small)


def test_derivatives_of_loops_with_float8_raise():
    x = geon.placeholder([A], name="x")
    small = geon.cast(x, "float8_e5m2")
    read, _ = geon.scan(lambda c, p: (c + p.cast("float32"), c), geon.constant(0.0), small, over=A)
    start = geon.constant(np.zeros((), as_dtype("float8_e5m2")))
    carried, _ = geon.scan(
        lambda c, p: (geon.cast(c.cast("float32") + p, c.dtype), p), start, x, over=A
    )
    for y in (read, carried.cast("float32")):
        with pytest.raises(geon.DerivativeError, match="float8_e5m2"):
            geon.deriv(y, x)
        with pytest.raises(geon.DerivativeError, match="float8_e5m2"):
            geon.jvp(y, x, x)


def test_derivatives_beside_float8():
    x, w = geon.placeholder([A], name="x"), geon.placeholder([A], "float8_e4m3fn", name="w")
    small = geon.cast(geon.cast(x, "float8_e4m3fn"), "float32")
    straight = geon.square(x + geon.stop_gradient(small - x))
    weighted = geon.sum(x * w.cast("float32"))
    data = {
        x: np.array([1.06, 2, 3], np.float32),
        w: np.array([1, 2, 0.5]).astype(as_dtype(w.dtype)),
    }
    found = compute([geon.deriv(geon.sum(straight), x), geon.deriv(weighted, x)], data)
    np.testing.assert_allclose(found[0], [2, 4, 6], rtol=1e-6)
    np.testing.assert_array_equal(found[1], [1, 2, 0.5])
    assert geon.jvp(weighted, x, x).dtype == x.dtype


@pytest.mark.parametrize("dtype", FLOAT8S)
def test_dumps(dtype):
    v = geon.Variable([A], initial_value=0.5, dtype=dtype, name="v")
    table = geon.constant(np.arange(300).astype(as_dtype(dtype)), [geon.Axis("N", 300)])
    y = geon.concat([geon.where(v.cast("bool"), v, 1.5), table.rename({"N": "A"})], "A")
    [again] = geon.loads(geon.dumps(y))
    assert again.dtype == as_dtype(dtype)
    first, second = (geon.NumPyTransformer().computation(each)() for each in (y, again))
    np.testing.assert_array_equal(first.view(np.uint8), second.view(np.uint8))


def test_names_of_other_libraries():
    for name in FLOAT8S:
        with pytest.raises(AttributeError, match=f'"{name}", a string'):
            getattr(geon, name)
