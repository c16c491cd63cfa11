"""Results belong to the caller, inputs are read-only, and intermediate values can be kept."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import geon
from geon.testing.samples import A, B, D


def test_results_are_not_overwritten_by_the_next_call(transformer: geon.Transformer) -> None:
    x = geon.placeholder([D])
    y = x * 2
    f = transformer.computation([y, y[::2], geon.flip(y, D), geon.broadcast(y, [A, D])], x)
    first = f(np.arange(5))
    kept = [np.array(value) for value in first]
    f(np.ones(5))
    for value, right in zip(first, kept, strict=True):
        np.testing.assert_array_equal(value, right)
        value[...] = -1
    for value, right in zip(f(np.arange(5)), kept, strict=True):
        np.testing.assert_array_equal(value, right)


def test_results_show_neither_inputs_nor_variables_nor_constants(
    transformer: geon.Transformer,
) -> None:
    x = geon.placeholder([D])
    v = geon.Variable(axes=[D], initial_value=4)
    k = geon.constant(np.arange(100.0), axes=[geon.Axis("K")])
    f = transformer.computation([x, x[1:], v, geon.flip(v, D), k, k[5:]], x)
    array = np.arange(5, dtype=np.float32)
    for value in f(array):
        value[...] = -1
    np.testing.assert_array_equal(array, np.arange(5))
    np.testing.assert_array_equal(transformer.get(v), np.full(5, 4))
    np.testing.assert_array_equal(f(array)[4], np.arange(100))
    transformer.get(v)[...] = -1
    np.testing.assert_array_equal(transformer.get(v), np.full(5, 4))


def test_one_result_twice_is_two_arrays(transformer: geon.Transformer) -> None:
    x = geon.placeholder([D])
    y = x + 1
    first, second = transformer.computation([y, y], x)(np.arange(5))
    first[...] = 0
    np.testing.assert_array_equal(second, np.arange(5) + 1)


def test_inputs_are_read_only(transformer: geon.Transformer) -> None:
    x = geon.placeholder([A, B])
    given = np.arange(6, dtype=np.float32).reshape(2, 3)
    given.setflags(write=False)
    f = transformer.computation([geon.tanh(x) * 2, geon.sort(x, B), geon.SetItem(x, x + 1)], x)
    f(given)
    np.testing.assert_array_equal(given, np.arange(6).reshape(2, 3))


def test_set_copies(transformer: geon.Transformer) -> None:
    v = geon.Variable(axes=[D], initial_value=0)
    array = np.arange(5, dtype=np.float32)
    transformer.set(v, array)
    array[...] = -1
    np.testing.assert_array_equal(transformer.get(v), np.arange(5))


def test_every_layout_of_an_input(transformer: geon.Transformer) -> None:
    x = geon.placeholder([A, B])
    f = transformer.computation([x + 1, geon.sum(x, A), geon.dot(x, x, over=B)], x)
    array = np.arange(6, dtype=np.float32).reshape(2, 3)
    shifted = np.frombuffer(b"\0" + array.tobytes(), np.uint8)[1:].view(np.float32).reshape(2, 3)
    layouts: list[Any] = [
        array,
        np.asfortranarray(array),
        np.repeat(array, 2, 1)[:, ::2],
        array[::-1, ::-1],
        shifted,
        array.astype(">f4"),
        array.tolist(),
    ]
    for given in layouts:
        plain = np.array(given, np.float32)
        expected = (plain + 1, plain.sum(0), (plain * plain).sum(1))
        for value, right in zip(f(given), expected, strict=True):
            np.testing.assert_allclose(value, right)


def test_scalars_and_structure(transformer: geon.Transformer) -> None:
    x = geon.placeholder(())
    one = transformer.computation(x + 1, x)(2)
    assert isinstance(one, np.ndarray) and one.shape == () and one.dtype == np.float32
    listed = transformer.computation([x + 1], x)(2)
    assert isinstance(listed, tuple) and len(listed) == 1
    assert transformer.computation([], x)(2) == ()
    assert transformer.computation(geon.assign(x, 1.0), x)(2) is None


def test_kept_values_are_read_and_overridden(transformer: geon.Transformer) -> None:
    x = geon.placeholder([D])
    hidden = geon.tanh(x)
    f = transformer.computation(hidden * 2, x, keep=[hidden])
    with pytest.raises(geon.ArgumentError):
        f.value(hidden)
    np.testing.assert_allclose(f(np.zeros(5)), np.zeros(5))
    np.testing.assert_allclose(f.value(hidden), np.zeros(5))
    f.override(hidden, np.arange(5))
    np.testing.assert_allclose(f(np.zeros(5)), 2 * np.arange(5))
    f.override(hidden, None)
    np.testing.assert_allclose(f(np.zeros(5)), np.zeros(5))
