"""Products of few rows, whose right operand is read at several places side by side: right at any
depth, also where it is no multiple of what is read at once.
"""

import itertools

import numpy as np
import pytest

import geon

DEPTHS = [1, 2, 3, 4, 5, 7, 8, 9, 11, 16, 31, 33, 191, 192, 193, 1023, 1025, 1541]
COLUMNS = [24, 31, 48, 100]
ROWS = [1, 2, 3, 4, 5, 9]


def whole(generator, *shape):
    """Small integers, of which every sum is exact in float32."""
    return generator.integers(-8, 9, size=shape).astype(np.float32)


@pytest.mark.parametrize("columns", COLUMNS)
def test_few_rows_are_right_at_every_depth(columns):
    generator = np.random.default_rng(columns)
    m, k, n = geon.Axis("M"), geon.Axis("K"), geon.Axis("N", columns)
    x, y = geon.placeholder([m, k]), geon.placeholder([k, n])
    product = geon.dot(x, y)
    with geon.NativeTransformer(threads=1) as one, geon.NativeTransformer(threads=2) as two:
        made = [t.computation([product, product + 1], x, y) for t in (one, two)]
        for rows, depth in itertools.product(ROWS, DEPTHS):
            a, b = whole(generator, rows, depth), whole(generator, depth, columns)
            for computation in made:
                found, more = computation(a, b)
                np.testing.assert_array_equal(found, a @ b)
                np.testing.assert_array_equal(more, a @ b + 1)
