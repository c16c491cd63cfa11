"""Sums of many float32 are as near as sums of few: terms that are positive lose no digits.

The references are sums in float64. Terms of one sign have a sum as well determined as they are, so
the bound is relative, and the same for any number of terms.
"""

import gc
import itertools

import numpy as np
import pytest

import geon
from geon.transformers.sizes.product_blocks import shape

pytestmark = pytest.mark.optimized  # bounds hold for the order of sums that optimised loops have

A, B, C, K, M, N = (geon.Axis(name) for name in "ABCKMN")
BOUND = 1e-6
# Products of so many terms and fewer add them in float32, as libraries of products do: of equal
# terms at most 2.6e-5 was measured in native code and 5.5e-5 in a BLAS, both of few rows.
SHORT, SHORT_BOUND = shape("float", 64).long_depth, 6e-5
KINDS = {"a tenth": 0.1, "three tenths": 0.3, "random": None}


@pytest.fixture
def transformers(transformer_name):
    """The transformers that are held to each other: native ones on 1, 2 and 3 threads."""
    options = [{"threads": k} for k in (1, 2, 3)] if transformer_name == "native" else [{}]
    made = [geon.make_transformer(transformer_name, **each) for each in options]
    yield made
    for each in made:
        each.close()


def terms(kind, size, seed=0):
    """Positive float32: equal ones, or random ones."""
    if KINDS[kind] is None:
        return np.random.default_rng(seed).random(size, np.float32)
    return np.full(size, KINDS[kind], np.float32)


def near(got, exact, what, bound=BOUND):
    """Hold results to their references by the relative error."""
    exact = np.asarray(exact, np.float64)
    assert got.shape == exact.shape, what
    error = np.max(np.abs(got - exact) / np.maximum(np.abs(exact), 1e-30), initial=0)
    assert error <= bound, f"{what}: {error:.1e}"


def called(computations, *feeds):
    """The results, of which all transformers have the same bits."""
    first, *others = ([np.asarray(r) for r in f(*feeds)] for f in computations)
    for other in others:
        assert [r.tobytes() for r in first] == [r.tobytes() for r in other]
    return first


@pytest.mark.parametrize("kind", KINDS)
def test_vectors(transformers, kind):
    x = geon.placeholder(A)
    results = [geon.sum(x), geon.mean(x), geon.dot(x, x), geon.variance(x)]
    computations = [t.computation(results, x) for t in transformers]
    for length in (1, 31, 33, 1000, 8191, 8192, 8193, 100_003, (1 << 20) + 1, 1 << 24):
        values = terms(kind, length)
        total, mean, square, variance = called(computations, values)
        exact = values.sum(dtype=np.float64)
        near(total, exact, f"sum of {length}")
        near(mean, exact / length, f"mean of {length}")
        squares = np.square(values, dtype=np.float64).sum()
        near(square, squares, f"dot of {length}", BOUND if length > SHORT else SHORT_BOUND)
        if kind == "random" and length > 30:
            near(variance, values.var(dtype=np.float64), f"variance of {length}")


def subsets(axes):
    """Every choice of some of the axes."""
    return [list(s) for k in range(1, len(axes) + 1) for s in itertools.combinations(axes, k)]


SHAPES = [(2, 300_000, 1), (300_000, 3, 2), (3, 2, 300_000), (90, 80, 70), (1, 9000, 33),
          (9000, 70, 1), (5, 40_000, 3)]  # fmt: skip


@pytest.mark.parametrize("kind", ["a tenth", "random"])
def test_every_axis_and_all_of_several(transformers, kind):
    x = geon.placeholder([A, B, C])
    results = [geon.sum(x, axes) for axes in subsets([A, B, C])]
    computations = [t.computation(results, x) for t in transformers]
    for size in SHAPES:
        values = terms(kind, size)
        for got, places in zip(called(computations, values), subsets([0, 1, 2]), strict=True):
            near(got, values.sum(tuple(places), dtype=np.float64), f"{size} over {places}")


@pytest.mark.parametrize("kind", ["a tenth", "random"])
def test_matrices(transformers, kind):
    x = geon.placeholder([A, B])
    views = {
        "as it is": (x, lambda v: v),
        "transposed": (geon.reorder(x, [B, A]), np.transpose),
        "flipped": (geon.flip(x, A), lambda v: v[::-1]),
        "every third": (x[::3], lambda v: v[::3]),
        "every other column": (x[:, ::2], lambda v: v[:, ::2]),
    }
    results = [geon.sum(view, axes) for view, _ in views.values() for axes in (A, B, [A, B])]
    computations = [t.computation(results, x) for t in transformers]
    for size in [(3, 700_000), (700_000, 3), (2000, 1000), (20_000, 33)]:
        values = terms(kind, size)
        found = iter(called(computations, values))
        for name, (view, seen) in views.items():
            array = seen(values)
            for axes in (A, B, [A, B]):
                names = [axis.name for axis in (axes if isinstance(axes, list) else [axes])]
                places = tuple(view.axes.names.index(n) for n in names)
                exact = array.sum(places, dtype=np.float64)
                near(next(found), exact, f"{size} {name} over {names}")


def test_sums_of_what_is_computed(transformers):
    x, b = geon.placeholder([A, B]), geon.placeholder([B])
    loss = geon.sum(x * b)
    results = [
        geon.sum(geon.exp(x), A), geon.sum(geon.exp(x)), geon.sum(x % 0.25, A),
        geon.sum(x % 0.25), geon.mean(geon.sqrt(x), A), geon.deriv(loss, b),
        geon.deriv(geon.sum(geon.square(x + b)), b),
    ]  # fmt: skip
    computations = [t.computation(results, x, b) for t in transformers]
    for size in [(1_000_000, 2), (30_000, 50), (3, 500_000)]:
        values, row = terms("random", size), terms("random", size[1], 1)
        wide = values.astype(np.float64)
        exact = [
            np.exp(wide).sum(0), np.exp(wide).sum(), (wide % 0.25).sum(0), (wide % 0.25).sum(),
            np.sqrt(wide).mean(0), wide.sum(0), 2 * (wide + row).sum(0),
        ]  # fmt: skip
        for k, (got, reference) in enumerate(zip(called(computations, values, row), exact,
                                                 strict=True)):  # fmt: skip
            near(got, reference, f"result {k} of {size}")


DEPTHS = [8191, 8192, 8193, (1 << 18) - 1, 1 << 18, (1 << 18) + 1]


@pytest.mark.parametrize("kind", ["a tenth", "random"])
def test_products_over_long_axes(transformers, kind):
    """Of vectors and matrices, with few and more rows, in the four patterns of transposition."""
    lefts, rights = [geon.placeholder(a) for a in ([M, K], [K, M])], [
        geon.placeholder(a) for a in ([K, N], [N, K])]  # fmt: skip
    v = geon.placeholder(K)
    results = [geon.dot(x, y, over=K) for x in lefts for y in rights]
    results += [geon.dot(x, v, over=K) for x in lefts]
    results += [geon.dot(v, y, over=K) for y in rights]
    computations = [t.computation(results, *lefts, *rights, v) for t in transformers]
    some = [8191, 8192, 8193, 1 << 18]
    for m, n, depths in [(1, 1, DEPTHS), (3, 33, some), (40, 9, some[2:]), (61, 70, [8193])]:
        for depth in depths:
            x, y = terms(kind, (m, depth)), terms(kind, (depth, n), 1)
            vector = terms(kind, depth, 2)
            feeds = [x, np.ascontiguousarray(x.T), y, np.ascontiguousarray(y.T), vector]
            wide, tall, line = (a.astype(np.float64) for a in (x, y, vector))
            exact = [wide @ tall] * 4 + [wide @ line] * 2 + [line @ tall] * 2
            bound = BOUND if depth > SHORT else SHORT_BOUND
            for k, got in enumerate(called(computations, *feeds)):
                near(got, exact[k], f"result {k}, {m} x {depth} x {n}", bound)


@pytest.mark.parametrize("value", [0.1, 0.3, 0.77])
@pytest.mark.parametrize("depth", [384, 1000, 1024, 1025, 4000, 8192])
def test_short_products_in_native_code(depth, value):
    """Equal terms of products that are not long: few rows, more rows, in memory either way."""
    with geon.make_transformer("native", threads=1) as transformer:
        for m, n in [(1, 70), (3, 64), (8, 100), (20, 50), (40, 40)]:
            rows, columns = geon.Axis("M", m), geon.Axis("N", n)
            deep = geon.Axis("K", depth)
            for left in ([rows, deep], [deep, rows]):
                for right in ([deep, columns], [columns, deep]):
                    x, y = geon.placeholder(left), geon.placeholder(right)
                    f = transformer.computation(geon.dot(x, y), x, y)
                    feeds = [np.full(p.axes.lengths, value, np.float32) for p in (x, y)]
                    exact = np.full((m, n), depth * np.float64(np.float32(value)) ** 2)
                    near(f(*feeds), exact, f"{m} x {depth} x {n}", 8e-6)


def test_float64_along_an_outer_axis(transformer):
    """Beside a sum of twice the digits, where one running value is 7e-13 off."""
    values = np.full((262_144, 8), 0.00125)
    x = geon.placeholder([A, B], dtype="float64")
    found = transformer.computation(geon.sum(x, A), x)(values)
    exact = np.longdouble(0.00125) * len(values)
    assert np.max(np.abs(found - exact)) <= 1e-13 * exact


def test_a_count_of_many_is_exact(transformer):
    x = geon.placeholder([A, B])
    ones = np.ones((1 << 25, 2), np.float32)
    assert transformer.computation(geon.sum(x, A), x)(ones).tolist() == [1 << 25] * 2
    del ones
    gc.collect()


@pytest.mark.parametrize("transformer_name", ["native"])
def test_a_quarter_of_a_billion_terms(transformer):
    x = geon.placeholder(A, "uint8")
    f = transformer.computation(geon.sum(geon.cast(x, "float32") * 0.1), x)
    values = np.full(1 << 28, 3, np.uint8)
    near(f(values), (1 << 28) * float(np.float32(3) * np.float32(0.1)), "2**28 terms")
    values[:] = 1
    near(f(values), (1 << 28) * float(np.float32(0.1)), "2**28 terms")
    del values
    gc.collect()
