"""Selections whose length depends on data: with a bound, and as exact arrays."""

import numpy as np
import pytest

import geon

A, B, C, N = geon.Axis("A"), geon.Axis("B"), geon.Axis("C", 2), geon.Axis("N")
K = geon.Axis("K", 9)
mask = geon.placeholder([A, B], "bool", name="mask")
y = geon.placeholder([A, B, C], name="y")
z = geon.placeholder([A, B], "int64", name="z")


def data(seed=0, shape=(4, 6)):
    random = np.random.default_rng(seed)
    found = random.random(shape) < 0.6, random.normal(size=(*shape, 2)).astype("f4")
    return *found, random.integers(0, 4, shape)


def test_positions_of_true_elements(transformer):
    results = {
        "all": geon.nonzero(mask),
        "bound": geon.nonzero(mask, geon.Axis("K", 40), fill=7),
        "first": geon.nonzero(mask, K, truncate=True),
        "rows": geon.nonzero(mask, over=B),
        "picked": geon.gather(y, geon.nonzero(mask).positions),
    }
    f = transformer.computation(results, mask, y)
    for which in (data()[0], np.zeros((4, 6), bool), np.ones((2, 5), bool)):
        values = data(1, which.shape)[1]
        found, wanted = f(which, values), np.nonzero(which)
        count = len(wanted[0])
        assert found["all"].count == found["bound"].count == count
        assert found["first"].count == min(count, 9)
        for name, positions in zip("AB", wanted, strict=True):
            np.testing.assert_array_equal(found["all"].exact()[name], positions)
            np.testing.assert_array_equal(found["bound"].positions[name][:count], positions)
            np.testing.assert_array_equal(found["bound"].positions[name][count:], 7)
            np.testing.assert_array_equal(found["first"].exact()[name], positions[:9])
            np.testing.assert_array_equal(found["first"].positions[name][count:], -1)
        np.testing.assert_array_equal(found["picked"][:count], values[wanted])
        for row, positions, held in zip(
            which, found["rows"].positions["B"], found["rows"].count, strict=True
        ):
            np.testing.assert_array_equal(positions[:held], np.nonzero(row)[0])
            assert (positions[held:] == -1).all()


def test_selected_elements_and_what_puts_them_back(transformer):
    bound = geon.Axis("K", 40)
    chosen = geon.compress(y, mask, bound, fill=-1)
    back = geon.masked_scatter(geon.broadcast(0.0, y.axes), mask, chosen.values, bound)
    slope = geon.deriv(geon.sum(geon.square(chosen.values)), y)
    f = transformer.computation([geon.compress(y, mask), chosen, back, slope], y, mask)
    which, values, _ = data()
    found, held, again, gradient = f(values, which)
    np.testing.assert_array_equal(found.exact(), values[which])
    np.testing.assert_array_equal(held.exact(), values[which])
    assert (held.values[which.sum() :] == -1).all()
    kept = np.where(which[..., None], values, 0)
    np.testing.assert_array_equal(again, kept)
    np.testing.assert_allclose(gradient, 2 * kept)


def test_no_elements_at_all(transformer):
    x, any_of = geon.placeholder([N], name="x"), geon.placeholder([N], "bool", name="any_of")
    results = [geon.compress(x, any_of, K), geon.nonzero(any_of, K)]
    selected, positions = transformer.computation(results, x, any_of)(
        np.zeros(0), np.zeros(0, bool)
    )
    assert selected.count == positions.count == 0
    assert selected.values.tolist() == [0] * 9 and positions.positions["N"].tolist() == [-1] * 9


def test_distinct_elements(transformer):
    results = [
        geon.unique(z),
        geon.unique(z, geon.Axis("K", 30), fill=-5),
        geon.unique_consecutive(z),
        geon.unique(z, geon.Axis("K", 2), truncate=True),
    ]
    values = data()[2]
    whole, bound, runs, two = transformer.computation(results, z)(values)
    wanted = np.unique(values, True, True, True)
    for found in (whole.exact(), bound.exact()):
        for got, expected in zip(
            (found.values, found.first, found.inverse.reshape(-1), found.counts),
            (wanted[0], wanted[1], wanted[2].reshape(-1), wanted[3]),
            strict=True,
        ):
            np.testing.assert_array_equal(got, expected)
    assert (bound.values[bound.count :] == -5).all() and (bound.counts[bound.count :] == 0).all()
    line = values.reshape(-1)
    starts = np.flatnonzero(np.diff(line, prepend=-1))
    cut = runs.exact()
    np.testing.assert_array_equal(cut.values, line[starts])
    np.testing.assert_array_equal(cut.first, starts)
    np.testing.assert_array_equal(cut.counts, np.diff(starts, append=line.size))
    np.testing.assert_array_equal(cut.values[cut.inverse], values)
    assert two.count == 2
    np.testing.assert_array_equal(two.values, wanted[0][:2])
    np.testing.assert_array_equal(two.counts, wanted[3][:2])
    np.testing.assert_array_equal(two.inverse, np.minimum(wanted[2].reshape(values.shape), 2))


def test_nan_is_one_value():
    x = geon.placeholder([N], name="x")
    found = geon.NumPyTransformer().computation(geon.unique(x), x)([np.nan, 2, np.nan, -1]).exact()
    np.testing.assert_array_equal(found.values, [-1, 2, np.nan])
    assert found.counts.tolist() == [1, 1, 2] and found.inverse.tolist() == [2, 1, 2, 0]


@pytest.mark.parametrize(
    ("build", "name"),
    [
        (lambda: geon.nonzero(mask, geon.Axis("K", 3)), "nonzero"),
        (lambda: geon.compress(mask, mask, geon.Axis("K", 3)), "compress"),
        (lambda: geon.unique(geon.cumsum(mask, B), geon.Axis("K", 3)), "unique"),
    ],
)
def test_more_than_the_bound_holds_raises(transformer, build, name):
    f = transformer.computation(build(), mask)
    assert f(np.eye(3, dtype=bool)).count <= 3
    with pytest.raises(geon.IndexRangeError, match=rf"{name}\(\) .*last found element.*truncate"):
        f(np.ones((3, 4), bool))


def test_what_is_refused():
    found = geon.nonzero(mask)
    with pytest.raises(geon.ArgumentError, match="not computed yet"):
        found.exact()
    rows = geon.NumPyTransformer().computation(geon.nonzero(mask, over=B), mask)(
        np.eye(3, dtype=bool)
    )
    with pytest.raises(geon.ArgumentError, match="there are 3 counts"):
        rows.exact()
    with pytest.raises(geon.AxisError, match="the bound C:4 is an axis of the result already"):
        geon.compress(y, mask, C.with_length(4))
    with pytest.raises(geon.AxisError, match="no axis of"):
        geon.compress(y[{C: 0}], y > 0)
    with pytest.raises(geon.IndexRangeError):
        x = geon.placeholder([N], name="x")
        put = geon.masked_scatter(x, x > 0, geon.constant([1.0], [geon.Axis("K", 1)]))
        geon.NumPyTransformer().computation(put, x)([1, 1])
