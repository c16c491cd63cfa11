"""One name, other lengths: parts of an axis are reduced beside the whole, each over its own."""

import numpy as np
import pytest

import geon

missing = geon.NativeTransformer.unavailable()
pytestmark = pytest.mark.skipif(missing is not None, reason=str(missing))

REDUCERS = {
    "sum": geon.sum,
    "max": geon.max,
    "mean": geon.mean,
    "argmax": lambda x, over=None: geon.cast(geon.argmax(x, over), "float64"),
    "logsumexp": geon.logsumexp,
}


def axes(fixed, n, m):
    return (geon.Axis("a", n), geon.Axis("b", m)) if fixed else (geon.Axis("a"), geon.Axis("b"))


def parts(f, a, b):
    """The whole, and what is left of it at the ends of each axis."""
    return {
        "whole": f,
        "later rows": f[{a: slice(1, None)}],
        "earlier rows": f[{a: slice(0, -1)}],
        "later": f[{b: slice(1, None)}],
        "inner": f[{a: slice(1, -1), b: slice(2, -1)}],
        "every other": f[{b: slice(0, None, 2)}],
    }


def agree(results, f, shape, **options):
    values = np.random.default_rng(0).normal(size=shape)
    wanted = geon.NumPyTransformer().computation(results, f)(values)
    for threads in (1, 2):
        found = geon.make_transformer("native", threads=threads).computation(results, f, **options)
        for one, other in zip(found(values), wanted, strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("fixed", [True, False], ids=["fixed", "open"])
@pytest.mark.parametrize("shape", [(3, 4), (6, 10), (61, 103)], ids=str)
@pytest.mark.parametrize("reducer", REDUCERS)
def test_reductions_of_parts_that_meet_in_one_value(reducer, shape, fixed):
    a, b = axes(fixed, *shape)
    f = geon.placeholder([a, b], "float64")
    reduce = REDUCERS[reducer]
    if reducer == "argmax":
        found = [reduce(part, b) for part in parts(f, a, b).values()]
        by_rows = [found[0] + found[3] * found[5]]
        agree(by_rows, f, shape)
        return
    found = [reduce(part) for part in parts(f, a, b).values()]
    total = found[0]
    for each in found[1:]:
        total = total * 0.5 + each
    agree([total, found[1] - found[0]], f, shape)
    agree([total], f, shape, plan=False)


@pytest.mark.parametrize("fixed", [True, False], ids=["fixed", "open"])
@pytest.mark.parametrize("shape", [(3, 4), (20, 9), (70, 1030)], ids=str)
def test_rows_with_passes_of_other_lengths(shape, fixed):
    a, b = axes(fixed, *shape)
    f = geon.placeholder([a, b], "float64")
    later, others = f[{b: slice(1, None)}], f[{b: slice(0, None, 2)}]
    whole, part = geon.sum(f, b), geon.max(later, b)
    agree([whole + part, later - whole, f * part], f, shape)
    agree([geon.softmax(later, b) * whole, geon.softmax(f, b) - geon.sum(others, b)], f, shape)
    agree([geon.mean(later, b) - geon.mean(others, b) / geon.mean(f, b)], f, shape)
    agree([geon.sum(later - whole) + geon.sum(f - part)], f, shape)


def test_the_gradient_of_differences_beside_their_sum():
    a, b = axes(False, 0, 0)
    f = geon.placeholder([a, b], "float64")
    total = geon.sum(geon.square(f))
    for axis in (a, b):
        step = f[{axis: slice(1, None)}] - f[{axis: slice(0, -1)}]
        total = total + 0.1 * geon.sum(geon.square(step))
    for shape in ((2, 2), (7, 5), (60, 100)):
        agree([total, f - 0.4 * geon.deriv(total, f)], f, shape)
