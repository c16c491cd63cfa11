"""Positions that share axes with what they are of: nothing is moved for them."""

import numpy as np
import pytest

import geon
from geon import Axis

missing = geon.NativeTransformer.unavailable()
pytestmark = pytest.mark.skipif(missing is not None, reason=str(missing))

R, N, M, K = Axis("R", 3), Axis("N", 50), Axis("M", 40), Axis("K", 20)


@pytest.mark.parametrize("axes", [(N, M), (M, N), (R, N, M), (N, M, R), (M, R, N)], ids=str)
def test_neighbours_are_picked_from_and_put_where_they_lie(axes):
    """Sums of integers are exact."""
    random = np.random.default_rng(len(axes))
    x, index = geon.placeholder(axes), geon.placeholder([K, M], "int64")
    values = random.integers(-9, 9, [axis.length for axis in axes]).astype(np.float32)
    places = random.integers(-50, 50, (20, 40))
    picked = geon.gather(x, index, N)
    slope = geon.deriv(geon.sum(picked * picked), [x])[0]
    f = geon.NativeTransformer().computation([picked, slope], x, index)
    first = [axes.index(N), axes.index(M)]
    rows, columns = np.moveaxis(values, first, [0, 1]), np.arange(40)
    expected, sums = rows[places, columns], np.zeros_like(rows)
    np.add.at(sums, (places, columns), 2 * expected)
    got, found = f(values, places)
    inner = [picked.axes.index(K), picked.axes.index(M)]
    np.testing.assert_array_equal(np.moveaxis(got, inner, [0, 1]), expected)
    np.testing.assert_array_equal(np.moveaxis(found, first, [0, 1]), sums)
    if axes[0] is not M:
        assert "in memory" not in f.explain("schedule")
