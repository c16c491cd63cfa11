"""Reductions of segments, counts and histograms, against NumPy on each segment."""

import numpy as np
import pytest

import geon

A, B, S = geon.Axis("A"), geon.Axis("B"), geon.Axis("S", 5)
x = geon.placeholder([A, B], name="x")
line = geon.placeholder([B], "int64", name="line")
grid = geon.placeholder([A, B], "int64", name="grid")
REDUCTIONS = {
    "segment_sum": np.sum,
    "segment_prod": np.prod,
    "segment_max": lambda part, axis: part.max(axis, initial=-np.inf),
    "segment_min": lambda part, axis: part.min(axis, initial=np.inf),
    "segment_mean": np.mean,
}


def data(seed=0):
    random = np.random.default_rng(seed)
    values = random.normal(size=(3, 20)).astype(np.float32)
    return values, random.integers(0, 4, 20), random.integers(0, 5, (3, 20))


@pytest.mark.filterwarnings("ignore")
def test_reductions_of_segments(transformer):
    functions = [getattr(geon, name) for name in REDUCTIONS]
    results = [f(x, line, S) for f in functions] + [f(x, grid, S, B) for f in functions]
    values, numbers, each = data()
    found = transformer.computation(results, x, line, grid)(values, numbers, each)
    for k, reduce in enumerate(REDUCTIONS.values()):
        wanted = np.stack([reduce(values[:, numbers == s], axis=1) for s in range(5)], 1)
        np.testing.assert_allclose(found[k], wanted, rtol=1e-5, atol=1e-6)
        rows = [[reduce(v[n == s], axis=0) for s in range(5)]
                for v, n in zip(values, each, strict=True)]  # fmt: skip
        np.testing.assert_allclose(found[5 + k], rows, rtol=1e-5, atol=1e-6)


def test_segments_may_have_the_name_of_the_axis_that_they_divide():
    values, numbers, _ = data()
    f = geon.NumPyTransformer().computation(geon.segment_sum(x, line, B.with_length(5)), x, line)
    wanted = np.stack([values[:, numbers == s].sum(1) for s in range(5)], 1)
    np.testing.assert_allclose(f(values, numbers), wanted, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("name", REDUCTIONS)
def test_derivatives(name):
    n = geon.Axis("N", 5)
    given = geon.placeholder([n], "float64", name="given")
    numbers = geon.constant([3, 0, 0, 3, 1], [n])
    made = getattr(geon, name)(given, numbers, S)
    defined = geon.where(geon.isfinite(made), made, 0)[{S: slice(0, 2)}]
    geon.check_gradients(geon.square(defined), {given: [1.0, 2.5, -2.0, 0.5, 3.0]})


def test_dtypes():
    bits = geon.placeholder([B], "float16", name="bits")
    zeros = geon.broadcast(geon.constant(0), [B])
    f = geon.NumPyTransformer().computation(geon.segment_sum(bits, zeros, geon.Axis("S", 1)), bits)
    ones = np.full(5000, 1, np.float16)
    assert f(ones) == 5000  # float16 alone would stay at 2048
    small = geon.placeholder([B], "int8")
    assert geon.segment_sum(small, line, S).dtype == "int64"
    assert geon.segment_mean(small, line, S).dtype == "float32"
    assert geon.segment_max(small, line, S).dtype == "int8"


def test_complex_numbers():
    z = geon.placeholder([B], "complex64", name="z")
    results = [geon.segment_mean(z, line, S), geon.scatter(z, line, z, B, mode="mean")]
    values = np.array([1 + 2j, 3, 5j, 1])
    means, scattered = geon.NumPyTransformer().computation(results, z, line)(values, [0, 1, 0, 1])
    np.testing.assert_allclose(means[:2], [0.5 + 3.5j, 2])
    np.testing.assert_allclose(scattered, [(2 + 9j) / 3, 7 / 3, 5j, 1], rtol=1e-6)
    with pytest.raises(geon.DTypeError, match="complex64, and complex numbers have no order"):
        geon.segment_max(z, line, S)


def test_counts(transformer):
    results = [
        geon.bincount(grid, S),
        geon.bincount(grid, S, B, weights=x),
        geon.histogram(x, S, -1, 1),
        geon.histogram(x, S, -1, 1, B, weights=x),
        geon.count_nonzero(grid, B),
    ]
    values, _, each = data()
    values[0, :6] = [-1, 1, 0.6, -0.6, 0.2, np.nan]
    values[1, 0] = -0.2
    found = transformer.computation(results, x, grid)(values, each)
    np.testing.assert_array_equal(found[0], np.bincount(each.reshape(-1), minlength=5))
    valid = np.where(np.isnan(values), 9, values)
    for row in range(3):
        np.testing.assert_allclose(
            found[1][row], np.bincount(each[row], values[row], 5), rtol=1e-5, atol=1e-6
        )
        wanted = np.histogram(valid[row].astype(float), 5, (-1, 1), weights=valid[row])[0]
        np.testing.assert_allclose(found[3][row], wanted, rtol=1e-5, atol=1e-6)
    np.testing.assert_array_equal(found[2], np.histogram(valid.astype(float), 5, (-1, 1))[0])
    np.testing.assert_array_equal(found[4], np.count_nonzero(each, 1))


@pytest.mark.parametrize("count", [1, 3, 7, 10, 49])
def test_elements_at_the_edges_of_bins_count_as_in_numpy(count):
    low, high = -0.3, 1.7
    edges = np.linspace(low, high, count + 1)
    values = np.concatenate([edges, np.nextafter(edges, -9), np.nextafter(edges, 9)])
    given = geon.placeholder([B], "float64")
    made = geon.histogram(given, geon.Axis("K", count), low, high)
    found = geon.NumPyTransformer().computation(made, given)(values)
    np.testing.assert_array_equal(found, np.histogram(values, count, (low, high))[0])


def test_a_mean_of_what_is_scattered(transformer):
    results = [geon.scatter(x, grid, 2.0, B, mode="mean"),
               geon.scatter(line, line, 8, B, mode="mean")]  # fmt: skip
    values, numbers, each = data()
    found = transformer.computation(results, x, line, grid)(values, numbers, each)
    for row in range(3):
        hits = np.bincount(each[row], minlength=20)
        np.testing.assert_allclose(found[0][row], (values[row] + 2 * hits) / (1 + hits), rtol=1e-5)
    hits = np.bincount(numbers, minlength=20)
    np.testing.assert_array_equal(found[1], (numbers + 8 * hits) // (1 + hits))


def test_several_positions_at_once(transformer):
    k, c = geon.Axis("K"), geon.Axis("C", 2)
    y = geon.placeholder([A, B, c], name="y")
    i, j = (geon.placeholder([k], "int64", name=name) for name in "ij")
    picked = geon.gather(y, {A: i, "B": j})
    results = [
        picked,
        geon.gather(y, {"B": j, A: i}),
        geon.scatter(y, {A: i, B: j}, 1.0, mode="add"),
        geon.deriv(geon.sum(geon.square(picked)), y),
        geon.gather(y, {A: i, c: geon.iota(geon.Axis("P", 2))}),
    ]
    values = np.random.default_rng(2).normal(size=(4, 6, 2)).astype(np.float32)
    rows, columns = np.array([0, 3, -1, 3]), np.array([1, -2, 0, 4])
    f = transformer.computation(results, y, i, j)
    found = f(values, rows, columns)
    added, slope = values.copy(), np.zeros_like(values)
    np.add.at(added, (rows, columns), 1)
    np.add.at(slope, (rows, columns), 2 * values[rows, columns])
    wanted = [values[rows, columns], values[rows, columns], added, slope,
              values[rows].transpose(0, 2, 1)]  # fmt: skip
    for got, expected in zip(found, wanted, strict=True):
        np.testing.assert_allclose(got, expected, rtol=1e-5)
    with pytest.raises(geon.IndexRangeError, match=r"j\(K\).*-7 .*axis has length 6"):
        f(values, [0, 0], [-7, 0])


def test_what_is_refused():
    with pytest.raises(geon.DTypeError, match="segments are float32, not an integer"):
        geon.segment_sum(x, x, S, B)
    with pytest.raises(geon.AxisError, match="have 2 axes; say along which"):
        geon.segment_sum(x, grid, S)
    with pytest.raises(geon.AxisError, match="has the axis 'A' already"):
        geon.segment_sum(x, line, A)
    with pytest.raises(geon.AxisError, match="has the axis 'A' already"):
        geon.bincount(grid, A)
    with pytest.raises(geon.ArgumentError, match="have the axis 'A'"):
        geon.bincount(line, S, weights=x)
    with pytest.raises(geon.ArgumentError, match="axis=B beside a dict of indices"):
        geon.gather(x, {A: line}, B)
    with pytest.raises(geon.ArgumentError, match="a dict without an index"):
        geon.gather(x, {})
