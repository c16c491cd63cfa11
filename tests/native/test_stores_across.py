"""Updates of filters and of weights whose elements adjoin along the rows of a product."""

import numpy as np
import pytest

import geon
from geon.transformers.cache import programs
from geon.transformers.native.products import epilogue_form
from geon.transformers.native.toolchain.compilers import find_toolchain

compiled = pytest.mark.skipif(find_toolchain() is None, reason="there is no C compiler")
RATE, MOMENTUM = 0.01, 0.9
SIDE = 5


def filters(count, channels, dtype):
    """A step of filters with momentum: the computation's values and variables, and data for it."""
    n, h, w = geon.Axis("N"), geon.Axis("H", SIDE), geon.Axis("W", SIDE)
    c, k = geon.Axis("C", channels), geon.Axis("K", count)
    r, s = geon.Axis("R", 3), geon.Axis("S", 3)
    x, g = geon.placeholder([n, h, w, c], dtype), geon.placeholder([n, h, w, k], dtype)
    shape = (3, 3, channels, count)
    made = geon.variable([r, s, c, k], dtype, initial_value=numbers(shape, dtype), name="w")
    window = {"H": geon.Window(r, pad=(1, 1)), "W": geon.Window(s, pad=(1, 1))}
    y = geon.convolution(x, made, window, c)
    data = [numbers((7, SIDE, SIDE, each), dtype, k) for k, each in enumerate((channels, count))]
    return geon.sum(y * g), made, (x, g), data


def weights(count, channels, dtype):
    """The same of a product's weights whose rows are fewer than its columns."""
    n, c, k = geon.Axis("N"), geon.Axis("C", channels), geon.Axis("K", count)
    x, g = geon.placeholder([n, c], dtype), geon.placeholder([n, k], dtype)
    shape = (channels, count)
    made = geon.variable([c, k], dtype, initial_value=numbers(shape, dtype), name="w")
    data = [numbers((70, each), dtype, k) for k, each in enumerate((channels, count))]
    return geon.sum(geon.dot(x * 0.5, made, c) * g), made, (x, g), data


def numbers(shape, dtype, seed=9):
    return np.random.default_rng(seed).standard_normal(shape).astype(dtype)


def after(name, made, threads=None, steps=2):
    """The variables after some steps of a transformer, and the text."""
    cost, leaf, inputs, data = made
    velocity = geon.variable(leaf.axes, leaf.dtype, initial_value=0, name="v")
    moved = MOMENTUM * velocity + geon.deriv(cost, leaf)
    step = [geon.assign(velocity, moved), geon.assign(leaf, leaf - RATE * moved)]
    options = {} if threads is None else {"threads": threads}
    with geon.make_transformer(name, **options) as transformer:
        f = transformer.computation([cost, geon.doall(step)], *inputs)
        for _ in range(steps):
            f(*data)
        values = [np.array(transformer.get(each)) for each in (leaf, velocity)]
        return values, f.source


def agree(kind, count, channels, dtype):
    """The text, which gives on one thread and on three what NumPy does."""
    return compared(lambda: kind(count, channels, dtype), dtype, (1, 3))


def compared(made, dtype, each):
    """The same of any program, on so many threads each."""
    expected, _ = after("numpy", made())
    for threads in each:
        found, source = after("native", made(), threads)
        for value, other in zip(found, expected, strict=True):
            scale = np.abs(other).max()
            tolerance = 2e-5 if dtype == "float32" else 1e-12
            np.testing.assert_allclose(value, other, rtol=tolerance, atol=tolerance * scale)
    return source


@compiled
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("channels", [1, 3, 16])
@pytest.mark.parametrize("count", [2, 10, 16, 24, 31, 32, 48, 49, 64, 65, 100])
def test_filters(count, channels, dtype):
    agree(filters, count, channels, dtype)


@compiled
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(
    ("count", "channels"),
    [(10, 64), (4, 300), (1, 64), (8, 65), (16, 200), (40, 500), (64, 640), (130, 700)],
)
def test_weights(count, channels, dtype):
    agree(weights, count, channels, dtype)


@compiled
@pytest.mark.parametrize("known", [False, True])
@pytest.mark.parametrize(
    ("sizes", "batch", "dtype"),
    [
        ((10, 16, 200), 300, "float32"),
        ((9, 16, 200), 1000, "float32"),
        ((5, 32, 200), 300, "float32"),
        ((3, 48, 200), 300, "float32"),
        ((3, 16, 90), 300, "float32"),
        ((40, 8, 400), 1000, "float64"),
        ((40, 16, 700), 1000, "float32"),
    ],
)
def test_rows_of_several_loops(sizes, batch, dtype, known):
    """They do not join in the weights, so that blocks begin anywhere in the inner one."""
    n = geon.Axis("N", batch) if known else geon.Axis("N")
    a, b, k = (geon.Axis(name, size) for name, size in zip("ABK", sizes, strict=True))

    def made():
        x, g = geon.placeholder([n, a, b], dtype), geon.placeholder([n, k], dtype)
        shape = (sizes[0], sizes[2], sizes[1])
        w = geon.variable([a, k, b], dtype, initial_value=numbers(shape, dtype), name="w")
        data = [numbers((batch, *sizes[:2]), dtype, 1), numbers((batch, sizes[2]), dtype, 2)]
        return geon.sum(geon.dot(x, w, [a, b]) * (g * 0.5)), w, (x, g), data

    compared(made, dtype, (1, 2, 3))


@compiled
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(
    ("windows", "channels"), [((2, 3), 8), ((2, 1), 24), ((3, 3), 16), ((2, 2), 15), ((2, 2), 12)]
)
def test_runs_of_columns_that_fill_no_vectors(windows, channels, dtype):
    """Windows are summed run by run, though all columns together fill vectors."""
    n, h, w = geon.Axis("N"), geon.Axis("H", 8), geon.Axis("W", 6)
    r, s = (geon.Axis(name, size) for name, size in zip("RS", windows, strict=True))
    c, k = geon.Axis("C", channels), geon.Axis("K", 33)

    def made():
        x = geon.placeholder([n, h, w, c], dtype)
        shape = (33, *windows, channels)
        own = geon.variable([k, r, s, c], dtype, initial_value=numbers(shape, dtype), name="w")
        places = {"H": geon.Window(r, pad=(1, 1)), "W": geon.Window(s, pad=(1, 1))}
        y = geon.convolution(x, own, places, c)
        high, wide = 11 - windows[0], 9 - windows[1]
        g = geon.placeholder([n, h.with_length(high), w.with_length(wide), k], dtype)
        data = [numbers((20, 8, 6, channels), dtype, 1), numbers((20, high, wide, 33), dtype, 2)]
        return geon.sum(y * g), own, (x, g), data

    compared(made, dtype, (1, 3))


@compiled
def test_blocks_are_turned_where_rows_are_enough(monkeypatch):
    for count, rest in [(2, False), (32, False), (48, False), (64, True)]:
        source = agree(filters, count, 16, "float32")
        assert ".across = 1" in source, count
        store = source.partition("_store(")[2].partition("\n}")[0]
        assert ("for (; e < width; ++e)" in store) == rest, count
        assert ("height * width" in store) == (count == 2), count
    assert ".across = 1" not in agree(weights, 700, 130, "float32")
    monkeypatch.setattr(epilogue_form, "_is_across", lambda product, of: False)
    programs._programs.clear()
    assert ".across = 1" not in agree(filters, 32, 16, "float32")
