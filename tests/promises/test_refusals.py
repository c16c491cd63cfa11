"""What must be refused, tried in bulk: values that do not fit, assignments that have no order."""

import warnings

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import geon
from tests.tiers import scaled

N = geon.Axis("N")
FLOATS = {
    "float16": np.dtype("float16"),
    "bfloat16": np.dtype(ml_dtypes.bfloat16),
    "float32": np.dtype("float32"),
    "float64": np.dtype("float64"),
}
INTEGERS = [f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)]


def halfway(name):
    """The least number that rounds to infinity: half a unit beyond the largest."""
    info = ml_dtypes.finfo(FLOATS[name])
    largest = np.longdouble(float(info.max))
    unit = np.longdouble(2.0) ** (info.maxexp - 1 - info.nmant)
    return largest + unit / 2


def fed(transformer, dtype, value):
    """What arrives of a value, fed, set, and as a first value."""
    axes = [N] * np.ndim(value)
    x = geon.placeholder(axes, dtype)
    yield lambda: transformer.computation(x, x)(value)
    v = geon.Variable([geon.Axis("M", np.size(value))] * np.ndim(value), dtype)

    def put():
        transformer.set(v, value)
        return transformer.get(v)

    yield put


@pytest.mark.parametrize("many", [False, True], ids=["number", "array"])
@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize("name", FLOATS)
def test_what_would_become_infinite_is_refused_and_nothing_less(transformer, name, sign, many):
    end = sign * halfway(name)
    below = np.nextafter(end, np.longdouble(0))
    if name != "float64":  # what users have, beside long doubles
        end, below = np.float64(end), np.float64(sign * float(ml_dtypes.finfo(name).max))
    for value, fits in ((end, False), (below, True), (sign * np.inf, True), (np.nan, True)):
        value = np.array([1, value, 2], np.asarray(value).dtype) if many else value
        for attempt in fed(transformer, name, value):
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                if fits:
                    found = np.asarray(attempt(), np.float64)
                    assert np.isfinite(found).all() == np.isfinite(np.asarray(value)).all()
                else:
                    with pytest.raises(geon.FeedError, match=f"too large for {name}"):
                        attempt()


@pytest.mark.parametrize("name", INTEGERS)
def test_integers_beyond_the_dtype_are_refused_and_none_within(transformer, name):
    info = np.iinfo(name)
    for value in (info.min, info.max):
        for attempt in fed(transformer, name, value):
            assert attempt() == value
    wide = [np.int64, np.uint64]
    for value in (info.min - 1, info.max + 1):
        arrays = [
            np.array([0, value], t) for t in wide if np.iinfo(t).min <= value <= np.iinfo(t).max
        ]
        for given_value in (value, *arrays):
            for attempt in fed(transformer, name, given_value):
                with pytest.raises(geon.FeedError):
                    attempt()
    for value in (1.0, np.float32(1), [0.5]):
        for attempt in fed(transformer, name, value):
            with pytest.raises(geon.FeedError, match="round and convert"):
                attempt()


# Order ------------------------------------------------------------------------------------------

ROWS, COLUMNS = 6, 4


@st.composite
def targets(draw):
    """A slice of a slice, as indices for geon and NumPy alike."""
    chain, shape = [], (ROWS, COLUMNS)
    for _ in range(draw(st.integers(0, 2))):
        key = []
        for length in shape:
            kind = draw(st.sampled_from(["at", "range", "reversed", "all"]))
            if kind == "at" and length:
                key.append(draw(st.integers(-length, length - 1)))
            elif kind == "range":
                start = draw(st.integers(0, length))
                stop = draw(st.integers(start, length))
                key.append(slice(start, stop, draw(st.integers(1, 3))))
            else:
                key.append(slice(None, None, -1 if kind == "reversed" else 1))
        chain.append(tuple(key))
        shape = np.empty(shape)[tuple(key)].shape
        if not shape:
            break
    return chain


def part(whole, chain):
    for key in chain:
        whole = whole[key]
    return whole


@settings(settings.default, max_examples=scaled(400))
@given(targets(), targets(), st.booleans())
def test_unordered_assignments_that_overlap_are_always_an_error(first, second, grouped):
    """And those that pass do what NumPy does, in either order."""
    v = geon.Variable([geon.Axis("R", ROWS), geon.Axis("C", COLUMNS)], initial_value=0)
    places = np.arange(ROWS * COLUMNS).reshape(ROWS, COLUMNS)
    one, two = geon.assign(part(v, first), 1.0), geon.assign(part(v, second), 2.0)
    overlap = np.intersect1d(part(places, first), part(places, second)).size
    transformer = geon.NumPyTransformer()
    try:
        f = transformer.computation(geon.doall([one, two]) if grouped else [one, two])
    except geon.OrderError as error:
        assert "geon.sequential([first, second])" in str(error)
        assert str(error).count("test_refusals.py:") >= 2
        return
    assert not overlap
    f()
    expected = np.zeros((ROWS, COLUMNS), np.float32)
    expected[np.isin(places, part(places, first))] = 1
    expected[np.isin(places, part(places, second))] = 2
    np.testing.assert_array_equal(transformer.get(v), expected)


@settings(settings.default, max_examples=scaled(100))
@given(targets(), targets())
def test_an_order_settles_every_overlap(first, second):
    v = geon.Variable([geon.Axis("R", ROWS), geon.Axis("C", COLUMNS)], initial_value=0)
    effects = [geon.assign(part(v, first), 1.0), geon.assign(part(v, second), 2.0)]
    transformer = geon.NumPyTransformer()
    transformer.computation(geon.sequential(effects))()
    expected = np.zeros((ROWS, COLUMNS), np.float32)
    for value, chain in ((1, first), (2, second)):
        chosen = part(np.arange(ROWS * COLUMNS).reshape(ROWS, COLUMNS), chain)
        expected.reshape(-1)[chosen] = value
    np.testing.assert_array_equal(transformer.get(v), expected)


# Warnings ---------------------------------------------------------------------------------------


def test_nothing_warns_and_no_setting_of_numpy_is_read_or_changed(make):
    """Divisions by 0 and overflows are values, whatever the user told NumPy to do about them."""
    K = geon.Axis("K", 4)
    x = geon.placeholder(K)
    y = geon.log(x) / x + geon.exp(x * 1000) + geon.lgamma(x) + geon.erf(x) + geon.sqrt(x)
    results = [
        y,
        geon.deriv(geon.sum(y), x),
        geon.cast(x * 1e30, "int32"),
        geon.cast(x * 1e30, "float16"),
        geon.constant(1.0) / geon.constant(0.0) + x,
        geon.mean(x[0:0]),
        geon.prod(geon.cast(x, "int64") + 2**62),
    ]
    with warnings.catch_warnings(), np.errstate(all="raise"):
        warnings.simplefilter("error")
        before = np.geterr()
        transformer = make()
        v = geon.Variable(initial_value=geon.log(geon.constant(0.0)))
        assert transformer.get(v) == -np.inf
        f = transformer.computation(results, x)
        for _ in range(3):
            f([0, -1, 1e-45, 1e38])
            f(np.array([0, -1, 1e-45, 1e38], np.float32))
        assert len(f.trace([0, -1, 1e-45, 1e38])) > 10
        assert np.geterr() == before
        with pytest.raises(FloatingPointError):
            np.log(np.zeros(1))
