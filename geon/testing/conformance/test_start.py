"""Asynchronous calls return what ordinary calls return, on every transformer."""

from __future__ import annotations

import numpy as np
import pytest

import geon
from geon.testing.samples import D

M, B = geon.Axis("M"), geon.Axis("B", 2)


def listed(value: object) -> tuple[object, ...]:
    return value if isinstance(value, tuple) else (value,)


def test_the_result_is_that_of_the_call(transformer: geon.Transformer) -> None:
    x = geon.placeholder([M, B], name="x")
    for results in (geon.tanh(x), [geon.tanh(x), geon.sum(x)], [], geon.assign(x, x + 1)):
        f = transformer.computation(results, x)
        for n in (3, 3, 0, 1, 3):
            given = np.arange(2 * n, dtype=np.float32).reshape(n, 2)
            started = f.start(given)
            found, expected = started.result(), f(x=given)
            assert started.done()
            assert type(found) is type(expected)
            for a, b in zip(*map(listed, (found, expected)), strict=True):
                np.testing.assert_array_equal(a, b)
            assert started.result() is found


def test_arrays_may_change_once_a_call_was_begun(transformer: geon.Transformer) -> None:
    x = geon.placeholder([D], name="x")
    f = transformer.computation(x * 2, x)
    given = np.arange(5, dtype=np.float32)
    for _ in range(3):
        started = f.start(given)
        given[...] = -1
        np.testing.assert_array_equal(started.result(), 2 * np.arange(5))
        given[...] = np.arange(5)


def test_started_calls_take_effect_in_order(transformer: geon.Transformer) -> None:
    x = geon.placeholder([D], name="x")
    v = geon.Variable([D], initial_value=0)
    f = transformer.computation([v + 0, geon.assign(v, v + x)], x)
    started = [f.start(np.full(5, k)) for k in range(6)]
    np.testing.assert_array_equal(transformer.get(v), np.full(5, 15))
    f(np.full(5, 1))
    np.testing.assert_array_equal(transformer.get(v), np.full(5, 16))
    for k, each in reversed(list(enumerate(started))):
        np.testing.assert_array_equal(each.result()[0], np.full(5, k * (k - 1) / 2))


def test_what_depends_on_values_is_raised_by_the_result(transformer: geon.Transformer) -> None:
    at = geon.placeholder([geon.Axis("T")], "int64", name="at")
    v = geon.Variable([D], initial_value=1)
    f = transformer.computation([geon.gather(v, at, D), geon.assign(v, v * 2)], at)
    for _ in range(3):
        wrong = f.start([2, 9])
        for _ in range(2):
            with pytest.raises(geon.IndexRangeError, match="9 where the axis has length 5"):
                wrong.result()
        assert wrong.done()
    np.testing.assert_array_equal(transformer.get(v), np.ones(5))
    with pytest.raises(geon.FeedError):
        f.start([0.5])
    with pytest.raises(geon.ArgumentError):
        f.start()


def test_values_that_are_not_finite_are_raised_by_the_result(transformer: geon.Transformer) -> None:
    x = geon.placeholder([D], name="x")
    f = transformer.computation(geon.log(x), x, check="nan")
    f(np.ones(5))
    for _ in range(2):
        with pytest.raises(geon.NonFiniteError, match=r"(?s)log\(D.*not finite"):
            f.start(np.zeros(5)).result()
    np.testing.assert_array_equal(f.start(np.ones(5)).result(), np.zeros(5))


def test_kept_values_and_out_come_with_the_result(transformer: geon.Transformer) -> None:
    x = geon.placeholder([D], name="x")
    hidden = geon.tanh(x)
    f = transformer.computation(hidden * 2, x, keep=[hidden])
    for k in range(3):
        out = np.empty(5, np.float32)
        assert f.start(np.full(5, k), out=out).result() is out
        np.testing.assert_allclose(f.value(hidden), np.tanh(np.full(5, k)), rtol=1e-6)
        np.testing.assert_allclose(out, 2 * np.tanh(np.full(5, k)), rtol=1e-6)


def test_results_on_the_device_are_the_callers_own(transformer: geon.Transformer) -> None:
    x = geon.placeholder([M, B], name="x")
    double = transformer.computation(x * 2, x, on_device=True)
    total = transformer.computation(geon.sum(x, reduction_axes=M), x)
    given = np.arange(6, dtype=np.float32).reshape(3, 2)
    held = [double(given + k) for k in range(4)]
    held.append(double.start(given + 4).result())
    for k, value in enumerate(held):
        assert (value.shape, value.dtype) == ((3, 2), np.float32)
        np.testing.assert_array_equal(np.asarray(value), 2 * (given + k))
        np.testing.assert_array_equal(total(value), np.sum(2 * (given + k), 0))
        np.testing.assert_array_equal(np.asarray(double(double(value))), 8 * (given + k))
    assert double(np.empty((0, 2))).shape == (0, 2)


def test_results_have_labels_and_structure(transformer: geon.Transformer) -> None:
    xarray = pytest.importorskip("xarray")
    x = geon.placeholder([M, B], name="x")
    f = transformer.computation({"double": x * 2, "total": geon.sum(x, M)}, x, labels=True)
    plain = transformer.computation({"double": x * 2, "total": geon.sum(x, M)}, x)
    for n in (2, 2, 3):
        given = xarray.DataArray(np.ones((n, 2)), dims=("M", "B"), coords={"M": np.arange(n)})
        started, later = f.start(given), plain.start(given)
        given[...] = 7
        found = started.result()
        np.testing.assert_array_equal(found["double"].coords["M"], np.arange(n))
        np.testing.assert_array_equal(found["double"], np.full((n, 2), 2))
        np.testing.assert_array_equal(later.result()["total"], np.full(2, n))


def test_arrays_that_have_changed_are_not_blamed(transformer: geon.Transformer) -> None:
    x = geon.placeholder([D], name="x")
    f = transformer.computation(geon.log(x), x, check="nan")
    f(np.ones(5))
    given = np.zeros(5, np.float32)
    started = f.start(given)
    given[...] = np.nan
    with pytest.raises(geon.NonFiniteError, match=r"(?s)log\(D.*not finite") as caught:
        started.result()
    assert "was fed" not in str(caught.value)
