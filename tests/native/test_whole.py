"""Loops that are known to fill vectors say so, and leave out no element."""

import re

import numpy as np
import pytest

import geon

SIZES = [16, 32, 48, 4096 + 16, 16 * 12_345, 16 * 65_537, 64 * 4_001]
RNG = np.random.default_rng(5)


@pytest.mark.parametrize("threads", [1, 2, 3])
@pytest.mark.parametrize("size", [each + more for each in SIZES for more in (0, 1)])
def test_every_element_of_a_loop_is_computed(size, threads):
    x = geon.placeholder([geon.Axis("N", size)])
    f = geon.make_transformer("native", threads=threads).computation(geon.sqrt(x) * 2 + 1, x)
    data = RNG.random(size, dtype=np.float32)
    np.testing.assert_array_equal(f(data), np.sqrt(data) * 2 + 1)


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("columns", [16, 48, 49, 80, 528, 1040])
def test_every_lane_is_summed(columns, threads):
    """Sums along the outer axis take columns side by side."""
    n, c = geon.Axis("N", 37), geon.Axis("C", columns)
    x = geon.placeholder([n, c])
    f = geon.make_transformer("native", threads=threads).computation(geon.sum(x, n), x)
    data = RNG.integers(-9, 9, (37, columns)).astype(np.float32)
    np.testing.assert_array_equal(f(data), data.sum(0))


@pytest.mark.parametrize("channels", [12, 24, 80])
def test_what_an_open_length_multiplies_has_no_text_for_what_is_left(channels):
    """Images of 48 places are a multiple of the turns that are taken at once, however many.

    Few channels are a run, whose turns lie beside each other; of many some rows are read at a time.
    """
    c = geon.Axis("C", channels)
    x = geon.placeholder([geon.Axis("N"), geon.Axis("H", 6), geon.Axis("W", 8), c])
    images = [axis for axis in x.axes if axis is not c]
    total, largest = geon.sum(x, images), geon.max(x, images)
    with geon.NativeTransformer(threads=1) as transformer:
        f = transformer.computation([total, largest, x * largest - total], x)
        text = str(f.source)
        for count in (1, 2, 5):
            a = RNG.integers(-9, 9, (count, 6, 8, channels)).astype(np.float32)
            sums, most = a.sum((0, 1, 2)), a.max((0, 1, 2))
            for found, wanted in zip(f(a), (sums, most, a * most - sums), strict=True):
                np.testing.assert_array_equal(found, wanted)
    assert "_beside" not in text and "+ 1 <=" not in text
    assert not re.search(r"= \w+_first; ", text)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("rows", [1, 5, 40, 300])
@pytest.mark.parametrize("columns", [(8,), (16,), (48,), (49,), (3, 16), (5, 24), (1040,)], ids=str)
def test_every_column_of_a_product_is_stored(columns, rows, dtype):
    """With work on the stores, for one loop of columns and for several."""
    n, d = geon.Axis("N", rows), geon.Axis("D", 20)
    outs = [geon.Axis(f"C{k}", size) for k, size in enumerate(columns)]
    x, w, b = (geon.placeholder(axes, dtype) for axes in ([n, d], [d, *outs], outs))
    f = geon.make_transformer("native").computation(geon.dot(x, w) * 2 + b, x, w, b)
    a, m, v = (RNG.integers(-4, 5, [s.length for s in t.axes]).astype(dtype) for t in (x, w, b))
    np.testing.assert_array_equal(f(a, m, v), np.tensordot(a, m, 1) * 2 + v)


@pytest.mark.parametrize("length", [0, 1, 5000])
def test_few_rows_of_any_open_length_are_divided(length):
    """Rows that are divided along themselves may have no elements."""
    rows, open_axis = geon.Axis("M", 5), geon.Axis("N")
    x, y = geon.placeholder([rows, open_axis]), geon.placeholder([rows])
    f = geon.NativeTransformer(threads=2).computation(geon.tanh(x) + y, x, y)
    data = np.ones((5, length), "float32")
    np.testing.assert_allclose(f(data, np.zeros(5)), np.tanh(data), rtol=1e-6)
