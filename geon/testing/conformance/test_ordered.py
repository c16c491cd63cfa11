"""Cumulative sums and products, sorting and the k largest."""

from __future__ import annotations

import numpy as np
import pytest

import geon
from geon.testing import assert_agrees
from geon.testing.running import compute_samples
from geon.testing.samples import SAMPLES, D, Sample


@pytest.mark.parametrize("sample", SAMPLES["ordered"], ids=str)
def test_values(transformer: geon.Transformer, sample: Sample) -> None:
    compute_samples(transformer, sample)


def test_nan_is_sorted_last_and_is_among_the_largest(transformer: geon.Transformer) -> None:
    x = geon.placeholder([D])
    array = np.array([3, np.nan, -np.inf, np.inf, 0], np.float32)
    results = [geon.sort(x), geon.argsort(x), *geon.top_k(x, 3)]
    assert_agrees(transformer, results, {x: array}, exact=True)


def test_equal_elements_keep_their_order(transformer: geon.Transformer) -> None:
    x = geon.placeholder([geon.Axis("N")], "int16")
    array = np.tile(np.array([2, 1, 0], np.int16), 40)
    assert_agrees(transformer, [geon.argsort(x), *geon.top_k(x, 50)], {x: array})


def test_sorting_leaves_what_it_sorts(transformer: geon.Transformer) -> None:
    x = geon.placeholder([D])
    y = x * 2
    assert_agrees(transformer, [geon.sort(y) + y, y], {x: np.array([3, 1, 2, 5, 4], np.float32)})
