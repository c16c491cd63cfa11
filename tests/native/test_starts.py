"""Products of slices of one value are one function, called with pointers into the value."""

import re

import numpy as np
import pytest

import geon

RNG = np.random.default_rng(3)
T, N, D, H = (geon.Axis(name, size) for name, size in (("T", 5), ("N", 7), ("D", 9), ("H", 4)))


def data(*axes):
    """Numbers whose products are exact, so that every order of sums gives the same."""
    return RNG.integers(-4, 5, [axis.length for axis in axes]).astype(np.float32)


def called(f):
    """The functions that a program calls, in order, and all of the call."""
    text = f.source
    return re.findall(
        r"^    (kernel_\d+)\((.*)\);", text[text.rindex("int64_t geon_run(") :], re.MULTILINE
    )


def compute(results, *placeholders):
    return geon.make_transformer("native").computation(results, *placeholders)


@pytest.mark.parametrize("turned", [False, True], ids=["left", "right"])
def test_products_of_slices_are_one_function(turned):
    x, w = geon.placeholder([T, N, D]), geon.placeholder([D, H])
    products = [geon.dot(w, x[k]) if turned else geon.dot(x[k], w) for k in range(5)]
    f = compute(products, x, w)
    calls = called(f)
    assert len(calls) == 5 and len({name for name, _ in calls}) == 1
    assert len({arguments for _, arguments in calls}) == 5
    a, b = data(T, N, D), data(D, H)
    for k, found in enumerate(f(a, b)):
        np.testing.assert_array_equal(found, (a[k] @ b).T if turned else a[k] @ b)


def test_slices_of_variables_and_constants():
    a, b = data(T, N, D), data(T, D, H)
    large = np.tile(b, (1, 1, 64)).astype(np.float32)
    wide = geon.Axis("W", 256)
    variable = geon.variable([T, N, D], initial_value=a)
    small, much = geon.constant(b, [T, D, H]), geon.constant(large, [T, D, wide])
    products = [geon.dot(variable[k], small[4 - k]) for k in range(5)]
    products += [geon.dot(variable[k], much[k]) for k in range(5)]
    found = compute(products)()
    for k in range(5):
        np.testing.assert_array_equal(found[k], a[k] @ b[4 - k])
        np.testing.assert_array_equal(found[5 + k], a[k] @ large[k])


def test_what_is_read_in_two_ways_begins_where_it_lies():
    """A slice that stores read too, and two slices of one value."""
    x, w = geon.placeholder([T, N, D]), geon.placeholder([D, geon.Axis("D2", 9)])
    both = geon.dot(x[1], w) + geon.rename(x[2], {D: geon.Axis("D2", 9)})
    square = geon.dot(x[3], geon.rename(x[4], {N: N.prime}), over=D)
    f = compute([both, square], x, w)
    assert all("+" not in arguments for _, arguments in called(f))
    a, b = data(T, N, D), data(D, D)
    first, second = f(a, b)
    np.testing.assert_array_equal(first, a[1] @ b + a[2])
    np.testing.assert_array_equal(second, a[3] @ a[4].T)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("rows", [0, 1, 40, 500])
def test_open_rows_of_slices(rows, dtype):
    """Few rows, many, and those with packed copies of the right operand; kept copies too."""
    n = geon.Axis("N")
    x = geon.placeholder([T, n, D], dtype)
    w = geon.variable([T, D, H], dtype, initial_value=data(T, D, H))
    f = compute([geon.dot(x[{T: k}], w[k], over=D) for k in range(5)], x)
    a = RNG.integers(-4, 5, (5, rows, 9)).astype(dtype)
    weights = f.transformer.get(w)
    for k, found in enumerate(f(a)):
        np.testing.assert_array_equal(found, a[k] @ weights[k])
