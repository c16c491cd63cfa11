"""Quantiles, searches in sorted elements and running extremes, against NumPy."""

import numpy as np
import pytest

import geon
from geon.op_graph.functions.quantiles import METHODS

A, B, M = geon.Axis("A"), geon.Axis("B"), geon.Axis("M")
SHARES = [0, 0.1, 0.25, 0.5, 0.77, 1]
x = geon.placeholder([A, B], "float64", name="x")


def normal(*shape):
    return np.random.default_rng(sum(shape)).normal(size=shape)


@pytest.mark.filterwarnings("ignore:All-NaN")
def test_quantiles_by_each_method():
    q = geon.constant(SHARES, [geon.Axis("Q", 6)])
    results = [
        {m: geon.quantile(x, q, B, method=m) for m in METHODS},
        {m: geon.nanquantile(x, q, A, method=m) for m in METHODS},
        [geon.median(x), geon.nanmedian(x, B), geon.percentile(x, 30, out_axes=A)],
    ]
    f = geon.NumPyTransformer().computation(results, x)
    for n in (1, 2, 7, 10):
        given = normal(5, n)
        gaps = given.copy()
        gaps[0, 0] = np.nan
        for values in (given, gaps):
            found, without, others = f(values)
            for m in METHODS:
                wanted = np.quantile(values, SHARES, axis=1, method=m).T
                np.testing.assert_allclose(found[m], wanted, err_msg=m)
                wanted = np.nanquantile(values, SHARES, axis=0, method=m).T
                np.testing.assert_allclose(without[m], wanted, err_msg=m)
            wanted = np.median(values), np.nanmedian(values, 1), np.percentile(values, 30, 1)
            with np.errstate(all="ignore"):
                for got, expected in zip(others, wanted, strict=True):
                    np.testing.assert_allclose(got, expected)


def test_medians_and_their_slopes(transformer):
    slope = geon.deriv(geon.sum(geon.median(x, B)), x)
    most, count = geon.mode(geon.floor(x), B)
    second, at = geon.kthvalue(x, 2, B)
    results = [geon.median(x, B), slope, most, count, second, at, *geon.aminmax(x, B),
               geon.nansum(x), geon.nanmean(x, B), geon.quantile(x, 0.3)]  # fmt: skip
    values = normal(4, 6)
    found = transformer.computation(results, x)(values)
    order = np.argsort(values, 1)
    wanted = np.zeros_like(values)
    np.put_along_axis(wanted, order[:, 2:4], 0.5, 1)
    np.testing.assert_allclose(found[0], np.median(values, 1))
    np.testing.assert_array_equal(found[1], wanted)
    for row, got, times in zip(np.floor(values), found[2], found[3], strict=True):
        each, counts = np.unique(row, return_counts=True)
        assert got == each[counts.argmax()] and times == counts.max()
    np.testing.assert_array_equal(found[4], np.sort(values, 1)[:, 1])
    np.testing.assert_array_equal(found[5], order[:, 1])
    np.testing.assert_array_equal(found[6:8], [values.min(1), values.max(1)])
    np.testing.assert_allclose(found[8], values.sum())
    np.testing.assert_allclose(found[9], values.mean(1))
    np.testing.assert_allclose(found[10], np.quantile(values, 0.3))


def test_sums_without_missing_values():
    values = normal(3, 5)
    values[0, 1], values[1] = np.nan, np.nan
    results = [geon.nansum(x, B), geon.nanmean(x, B), geon.nanmedian(x, B)]
    found = geon.NumPyTransformer().computation(results, x)(values)
    np.testing.assert_allclose(found[0], np.nansum(values, 1))
    np.testing.assert_allclose(found[1], [np.nanmean(values[0]), np.nan, values[2].mean()])
    np.testing.assert_allclose(found[2], [np.nanmedian(values[0]), np.nan, np.median(values[2])])


@pytest.mark.parametrize("axis", [A, geon.Axis("A", 13)], ids=["open", "fixed"])
@pytest.mark.parametrize("dtype", ["int16", "float32"])
def test_searches(transformer, axis, dtype):
    values, wanted = geon.placeholder([axis], dtype), geon.placeholder([B], dtype)
    results = [geon.searchsorted(values, wanted), geon.searchsorted(values, wanted, side="right"),
               geon.bucketize(wanted, values), geon.isin(wanted, values)]  # fmt: skip
    f = transformer.computation(results, values, wanted)
    random = np.random.default_rng(3)
    for n in [13] if axis is not A else [1, 2, 3, 8, 64, 129]:
        table = np.sort(random.integers(-9, 9, n)).astype(dtype)
        keys = random.integers(-12, 12, 50).astype(dtype)
        if dtype == "float32":
            table[-1], keys[3], keys[4] = np.nan, np.nan, np.inf
        found = f(table, keys)
        for got, side in zip(found, ("left", "right", "left"), strict=False):
            np.testing.assert_array_equal(got, np.searchsorted(table, keys, side))
        np.testing.assert_array_equal(found[3], np.isin(keys, table))


def test_a_search_in_each_row():
    table = geon.placeholder([A, M])
    f = geon.NumPyTransformer().computation(geon.searchsorted(table, x, M), table, x)
    rows, keys = np.sort(normal(3, 7), 1), normal(3, 4)
    wanted = [np.searchsorted(*each) for each in zip(rows.astype("f4"), keys, strict=True)]
    np.testing.assert_array_equal(f(rows, keys), wanted)


def test_values_between_points(transformer):
    points, keys = geon.placeholder([M], name="points"), geon.placeholder([A], name="keys")
    levels, table = geon.placeholder([M], name="levels"), geon.placeholder([M, B], name="table")
    made = geon.interp(keys, points, levels)
    results = [made, geon.interp(keys, points, table), geon.deriv(geon.sum(made), keys)]
    f = transformer.computation(results, keys, points, levels, table)
    for n in (1, 2, 6):
        at, values = np.sort(normal(n)), normal(n, 3)
        wanted = np.concatenate([at, [-9, 9], normal(20)]).astype("f4").astype(float)
        at = at.astype("f4").astype(float)
        found = f(wanted, at, values[:, 0], values)
        for got, expected in zip((found[0], *found[1].T), (values[:, 0], *values.T), strict=True):
            np.testing.assert_allclose(got, np.interp(wanted, at, expected), rtol=1e-4, atol=1e-5)
        slopes = np.append(np.diff(values[:, 0]) / np.diff(at), 0)
        part = np.clip(np.searchsorted(at, wanted, "right") - 1, 0, max(n - 2, 0))
        inside = (wanted >= at[0]) & (wanted <= at[-1]) & (n > 1)
        np.testing.assert_allclose(found[2], np.where(inside, slopes[part], 0), rtol=1e-3)


def test_numbers_take_the_dtype_of_what_is_searched():
    keys = geon.placeholder([A], "float32", name="keys")
    table = geon.constant([0.1, 0.7], [geon.Axis("E", 2)])
    results = [geon.isin(keys, table), geon.searchsorted(table, keys, side="right")]
    found = geon.NumPyTransformer().computation(results, keys)([0.1, 0.5, 0.7])
    assert found[0].tolist() == [True, False, True] and found[1].tolist() == [1, 1, 2]


def test_a_search_in_nothing(transformer):
    nothing, keys = geon.placeholder([M], name="nothing"), geon.placeholder([A], name="keys")
    none = geon.constant(np.zeros(0, np.float32), [geon.Axis("Z", 0)])
    results = [geon.searchsorted(nothing, keys), geon.searchsorted(none, keys)]
    found = transformer.computation(results, nothing, keys)(np.zeros(0), [1, 2, 3])
    np.testing.assert_array_equal(found, np.zeros((2, 3)))


def test_running_extremes_and_their_positions(transformer):
    results = [geon.cummax(x, B), geon.cummin(x, A, reverse=True), geon.argcummax(x, B),
               geon.argcummin(x, A, reverse=True), geon.cummax(x > 0, B, exclusive=True),
               geon.deriv(geon.sum(geon.cummax(x, B) * geon.iota(B)), x)]  # fmt: skip
    values = np.round(normal(5, 40))
    values[1, 3] = values[2, 0] = np.nan
    found = transformer.computation(results, x)(values)
    most, least = np.maximum.accumulate(values, 1), np.minimum.accumulate(values[::-1], 0)[::-1]
    np.testing.assert_array_equal(found[0], most)
    np.testing.assert_array_equal(found[1], least)
    np.testing.assert_array_equal(np.take_along_axis(values, found[2], 1), most)
    np.testing.assert_array_equal(np.take_along_axis(values, found[3], 0), least)
    for row, positions in zip(values, found[2], strict=True):  # the first of equal elements
        with np.errstate(invalid="ignore"):
            is_new = np.r_[True, ~(row[1:] <= np.maximum.accumulate(row)[:-1])]
        is_new[1:] &= ~np.isnan(np.maximum.accumulate(row)[:-1])
        np.testing.assert_array_equal(positions, np.maximum.accumulate(is_new * np.arange(40)))
    before = np.maximum.accumulate(values > 0, 1)[:, :-1]
    np.testing.assert_array_equal(found[4], np.pad(before, [(0, 0), (1, 0)]))
    slope = np.zeros_like(values)
    np.add.at(slope, (np.arange(5)[:, None], found[2]), np.arange(40))
    np.testing.assert_array_equal(found[5], slope)


def test_running_log_sums(transformer):
    given = geon.placeholder([A, B], name="given")
    made = geon.logcumsumexp(given, B)
    results = [made, geon.logcumsumexp(given, A, reverse=True),
               geon.deriv(geon.sum(made * geon.iota(B)), given)]  # fmt: skip
    values = (normal(4, 9) * 50).astype(np.float32)
    values[1, :3], values[2, 4] = -np.inf, np.inf
    found = transformer.computation(results, given)(values)
    wide = values.astype(float)
    with np.errstate(invalid="ignore"):
        forward = np.logaddexp.accumulate(wide, 1)
        backward = np.logaddexp.accumulate(wide[::-1], 0)[::-1]
        parts = np.exp(wide[:, :, None] - forward[:, None, :]) * np.arange(9)
    np.testing.assert_allclose(found[0], forward, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(found[1], backward, rtol=1e-5, atol=1e-5)
    later = np.triu(np.ones((9, 9), bool))
    finite = [0, 1, 3]
    wanted = np.where(later & ~np.isnan(parts), parts, 0).sum(2)[finite]
    np.testing.assert_allclose(found[2][finite], wanted, rtol=1e-4, atol=1e-5)


def test_orders(transformer):
    given = geon.placeholder([A, B], name="given")
    first = geon.placeholder([B], "int64", name="first")
    results = [geon.argsort(given, B, descending=True), *geon.top_k(given, 3, B, largest=False),
               geon.lexsort([first, given], B)]  # fmt: skip
    values, numbers = np.round(normal(3, 30)).astype(np.float32), np.arange(30) % 3
    values[0, 4] = np.nan
    found = transformer.computation(results, given, first)(values, numbers)
    backwards = 29 - np.argsort(values[:, ::-1], 1, kind="stable")[:, ::-1]
    np.testing.assert_array_equal(found[0], backwards)
    order = np.argsort(values, 1, kind="stable")[:, :3]
    np.testing.assert_array_equal(found[1], np.take_along_axis(values, order, 1))
    np.testing.assert_array_equal(found[2], order)
    for row, got in zip(values, found[3], strict=True):
        np.testing.assert_array_equal(got, np.lexsort([row, numbers]))


D, E, P = geon.Axis("D", 3), geon.Axis("E", 5), geon.Axis("P", 3)
GROUPS = geon.constant([0, 1, 1, 0, 1], [E])
ROWS, COLUMNS = geon.constant([0, 2, 1], [P]), geon.constant([4, 0, 0], [P])
FUNCTIONS = {
    "cummax": lambda x: geon.cummax(x, E),
    "cummin": lambda x: geon.cummin(x, E, exclusive=True, reverse=True)[{E: slice(0, 4)}],
    "logcumsumexp": lambda x: geon.logcumsumexp(x, E),
    "quantile": lambda x: geon.quantile(x, 0.3, E),
    "nanmean": lambda x: geon.nanmean(x, E),
    "mode": lambda x: geon.mode(x, E)[0],
    "kthvalue": lambda x: geon.kthvalue(x, 2, E)[0],
    "renorm": lambda x: geon.renorm(x, E, 1.0),
    "segment_max": lambda x: geon.segment_max(x, GROUPS, geon.Axis("S", 2)),
    "segment_prod": lambda x: geon.segment_prod(x, GROUPS, geon.Axis("S", 2)),
    "compress": lambda x: geon.compress(x, GROUPS, geon.Axis("K", 4)).values,
    "unique": lambda x: geon.unique(x).values,
    "gather": lambda x: geon.gather(x, {D: ROWS, E: COLUMNS}),
    "scatter": lambda x: geon.scatter(x, {D: ROWS, E: COLUMNS}, geon.sum(x), mode="mean"),
    "histogram": lambda x: geon.histogram(geon.stop_gradient(x), P, -1, 1, weights=x),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_derivatives_of_both_orders_and_of_each_row(name):
    given = geon.placeholder([D, E], "float64", name="given")
    y = geon.sum(geon.square(FUNCTIONS[name](given)))
    values = np.random.default_rng(1).normal(size=(3, 5))
    geon.check_gradients(y, {given: values})
    geon.check_gradients(geon.sum(geon.square(geon.deriv(y, given))), {given: values})
    scale = geon.placeholder([E], "float64", name="scale")
    rows = FUNCTIONS[name](given * scale)
    if D not in rows.axes or name == "scatter":
        return
    each = geon.sum(geon.square(rows), out_axes=[D])
    results = [geon.deriv(each, scale, per=D), geon.jacobian(each, scale)]
    found = geon.NumPyTransformer().computation(results, given, scale)(values, normal(5))
    np.testing.assert_allclose(*found, rtol=1e-9)


@pytest.mark.parametrize("order", [1, 2, 3.5, np.inf])
def test_norms_that_are_limited(order):
    values = normal(4, 3) * [[0], [0.1], [1], [10]]
    made = geon.renorm(x, B, 1.5, order=order)
    found, slope = geon.NumPyTransformer().computation([made, geon.deriv(geon.sum(made), x)], x)(
        values
    )
    sizes = np.linalg.norm(values, order, axis=1, keepdims=True)
    wanted = values * np.where(sizes > 1.5, 1.5 / np.maximum(sizes, 1e-9), 1)
    np.testing.assert_allclose(found, wanted)
    assert np.isfinite(slope).all()


def test_what_is_refused():
    with pytest.raises(geon.ArgumentError, match="q = 30 is no share .* 0 to 1;"):
        geon.quantile(x, 30, B)
    with pytest.raises(geon.ArgumentError, match="method='best' is none of inverted_cdf"):
        geon.quantile(x, 0.5, method="best")
    with pytest.raises(geon.AxisError, match="both have the axis 'B'"):
        geon.quantile(x, geon.placeholder([B], name="q"), A)
    with pytest.raises(geon.AxisError, match="no value for 0 elements"):
        geon.median(geon.constant(np.zeros(0), [geon.Axis("Z", 0)]))
    with pytest.raises(geon.AxisError, match="has no element number 0"):
        geon.kthvalue(x, 0, B)
    with pytest.raises(geon.AxisError, match="no -1 smallest elements"):
        geon.top_k(x, -1, B, largest=False)
    with pytest.raises(geon.ArgumentError, match="side='middle' is neither"):
        geon.searchsorted(x, 1.0, A, side="middle")
    with pytest.raises(geon.ArgumentError, match="order=0.5 is below 1"):
        geon.renorm(x, B, 1.0, order=0.5)
    with pytest.raises(geon.ArgumentError, match="there are no keys"):
        geon.lexsort([], B)
