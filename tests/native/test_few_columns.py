"""Products of few columns, their left operand transposed in memory: right at any depth and length.

They are taken as few rows that stream along the operand.
"""

import itertools

import numpy as np
import pytest

import geon

DEPTHS = [1, 2, 3, 4, 5, 40, 127, 128, 1025]
COLUMNS = [1, 2, 3, 8, 15, 16, 17]
ROWS = [31, 32, 33, 47, 48, 257, 1000]


def whole(generator, *shape):
    """Small integers, of which every sum is exact in float32."""
    return generator.integers(-8, 9, size=shape).astype(np.float32)


@pytest.mark.parametrize("columns", COLUMNS)
@pytest.mark.parametrize("is_open", [False, True])
def test_few_columns_of_a_transposed_operand_are_right(columns, is_open):
    generator = np.random.default_rng(columns)
    with geon.NativeTransformer(threads=1) as one, geon.NativeTransformer(threads=2) as two:
        made = {}
        for depth, rows in itertools.product(DEPTHS[columns % 2 :: 2], ROWS[columns % 3 :: 3]):
            if not is_open or not made:
                k, m = geon.Axis("K", depth), geon.Axis("M", rows)
                k, m = (geon.Axis("K"), geon.Axis("M")) if is_open else (k, m)
                x, y = geon.placeholder([k, m]), geon.placeholder([k, geon.Axis("N", columns)])
                product = geon.dot(x, y)
                made = [
                    transformer.computation([product, geon.maximum(product, 0)], x, y)
                    for transformer in (one, two)
                ] + [
                    one.computation(product, x, y),
                    two.computation(geon.maximum(product, 0), x, y),
                ]
            a, b = whole(generator, depth, rows), whole(generator, depth, columns)
            wanted = a.T @ b
            both, again, plain, positive = (computation(a, b) for computation in made)
            for found in (both[0], again[0], plain):
                np.testing.assert_array_equal(found, wanted)
            for found in (both[1], again[1], positive):
                np.testing.assert_array_equal(found, np.maximum(wanted, 0))
