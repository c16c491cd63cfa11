"""A few rows that become columns: by registers, right at each number of rows and columns."""

import numpy as np
import pytest

import geon

ROWS = [*range(1, 20), 31, 32, 33, 64, 65]
COLUMNS = [1, 2, 7, 8, 15, 16, 17, 31, 32, 33, 64, 65, 200]
DTYPES = ["int8", "int16", "float32", "float64"]


def turned(x, a, b):
    """Columns of x one after another, and the same computed with."""
    y = geon.reorder(x, [b, a])
    return [geon.flatten(y), geon.flatten(y + y), y + geon.reorder(x, [b, a])]


@pytest.mark.parametrize("dtype", DTYPES)
def test_of_open_lengths(dtype):
    a, b = geon.Axis("A"), geon.Axis("B")
    x = geon.placeholder([a, b], dtype=dtype)
    with geon.NativeTransformer(threads=1) as one, geon.NativeTransformer(threads=2) as two:
        made = [each.computation(turned(x, a, b), x) for each in (one, two)]
        for rows in ROWS:
            for columns in COLUMNS:
                data = (np.arange(rows * columns) % 63).astype(dtype).reshape(rows, columns)
                for f in made:
                    copied, doubled, summed = f(data)
                    np.testing.assert_array_equal(copied, data.T.ravel())
                    np.testing.assert_array_equal(doubled, 2 * data.T.ravel())
                    np.testing.assert_array_equal(summed, 2 * data.T)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("rows", [2, 3, 5, 8, 13])
def test_of_known_lengths(dtype, rows):
    columns = 1000 + rows
    a, b = geon.Axis("A", rows), geon.Axis("B", columns)
    x = geon.placeholder([a, b], dtype=dtype)
    data = (np.arange(rows * columns) % 63).astype(dtype).reshape(rows, columns)
    with geon.NativeTransformer(threads=2) as transformer:
        copied, doubled, _ = transformer.computation(turned(x, a, b), x)(data)
    np.testing.assert_array_equal(copied, data.T.ravel())
    np.testing.assert_array_equal(doubled, 2 * data.T.ravel())


@pytest.mark.parametrize("dtype", DTYPES)
def test_what_lies_behind_stays(dtype):
    """What a line has of rows that are missing is overwritten, and nothing behind the last line."""
    a, b, k = geon.Axis("A"), geon.Axis("B"), geon.Axis("K")
    x, y = geon.placeholder([a, b], dtype=dtype), geon.placeholder([k], dtype=dtype)
    flat = geon.flatten(geon.reorder(x, [b, a]), [b, a], k)
    with geon.NativeTransformer(threads=1) as transformer:
        f = transformer.computation(geon.concat([flat, y], k), x, y)
        for rows in (2, 3, 5, 7, 13):
            data = np.ones((rows, 33), dtype)
            found = f(data, np.full(40, 7, dtype))
            np.testing.assert_array_equal(found, [1] * (33 * rows) + [7] * 40)
