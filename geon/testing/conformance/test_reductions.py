"""Reductions in every dtype and layout, with NaN, without elements, and with overflow."""

from __future__ import annotations

import numpy as np
import pytest

import geon
from geon.testing import assert_agrees
from geon.testing.running import compute_samples
from geon.testing.samples import SAMPLES, A, C, Sample


@pytest.mark.parametrize("sample", SAMPLES["reduction"], ids=str)
def test_values(transformer: geon.Transformer, sample: Sample) -> None:
    compute_samples(transformer, sample)


def test_nan_is_the_largest_and_the_smallest(transformer: geon.Transformer) -> None:
    x = geon.placeholder([A, C])
    array = np.array([[1, np.nan, 3, 0], [np.inf, 2, -np.inf, 5]], np.float32)
    reduced = [geon.max(x, C), geon.min(x, C), geon.argmax(x, C), geon.argmin(x, C), geon.sum(x, C)]
    assert_agrees(transformer, reduced, {x: array})


def test_small_integers_are_summed_in_int64(transformer: geon.Transformer) -> None:
    n = geon.Axis("N")
    x = geon.placeholder([n], "int8")
    total = transformer.computation(geon.sum(x), x)(np.full(1000, 127, np.int8))
    assert total.dtype == np.int64 and total == 127000


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_halves_are_summed_in_float32(transformer: geon.Transformer, dtype: str) -> None:
    x = geon.placeholder([geon.Axis("N")], dtype)
    total = transformer.computation(geon.sum(x), x)(np.full(4096, 0.5).astype(x.dtype))
    assert total.dtype == x.dtype and float(total) == 2048


def test_the_first_of_equal_elements_is_found(transformer: geon.Transformer) -> None:
    x = geon.placeholder([A, C], "int32")
    array = np.array([[1, 3, 3, 0], [0, 0, 3, 2]], np.int32)
    results = [geon.argmax(x), geon.argmin(x), geon.argmax(x, A), geon.argmin(x, [C, A])]
    assert_agrees(transformer, results, {x: array})


def test_long_sums_are_accurate(transformer: geon.Transformer) -> None:
    x = geon.placeholder([geon.Axis("N")])
    array = np.random.default_rng(0).uniform(0, 1, 100_000).astype(np.float32)
    total = transformer.computation(geon.sum(x), x)(array)
    np.testing.assert_allclose(total, array.astype(np.float64).sum(), rtol=1e-5)
