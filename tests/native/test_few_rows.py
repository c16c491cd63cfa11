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


@pytest.mark.parametrize(
    "sizes",
    [(1, 1, 256, 256), (3, 1, 700, 130), (12, 2, 20000, 30), (1, 7, 1541, 300), (1, 1, 5000, 1100)],
)
def test_a_stream_in_parts_gives_the_same_bits_on_any_number_of_threads(sizes):
    """Threads divide what is read along memory, into parts that follow from the sizes alone."""
    names = ("B", "M", "K", "N")
    b, m, k, n = (geon.Axis(name, size) for name, size in zip(names, sizes, strict=True))
    x, y = geon.placeholder([b, m, k]), geon.placeholder([b, k, n])
    product = geon.dot(geon.tanh(x), y, over=k)
    generator = np.random.default_rng(0)
    feeds = [
        generator.standard_normal([axis.length for axis in z.axes], np.float32) for z in (x, y)
    ]
    found = []
    for threads in (1, 2, 3, 8):
        with geon.NativeTransformer(threads=threads) as transformer:
            f = transformer.computation([product, geon.relu(product + 1)], x, y)
            found.append([np.array(result) for result in f(*feeds)])
    wanted = np.tanh(feeds[0].astype(float)) @ feeds[1]
    assert np.abs(found[0][0] - wanted).max() < 1e-6 * np.sqrt(sizes[2]) * np.abs(wanted).max()
    assert (found[0][1] == np.maximum(found[0][0] + 1, 0)).all()
    for other in found[1:]:
        assert all((one == two).all() for one, two in zip(found[0], other, strict=True))
