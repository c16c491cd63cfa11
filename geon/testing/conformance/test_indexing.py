"""Gather and scatter, and refusal of indices out of range."""

from __future__ import annotations

import numpy as np
import pytest

import geon
from geon.testing import assert_agrees
from geon.testing.running import compute_samples
from geon.testing.samples import SAMPLES, A, D, Sample


@pytest.mark.parametrize("sample", SAMPLES["indexing"], ids=str)
def test_values(transformer: geon.Transformer, sample: Sample) -> None:
    compute_samples(transformer, sample)


@pytest.mark.parametrize("dtype", ["int8", "int32", "uint16", "int64"])
def test_index_dtypes(transformer: geon.Transformer, dtype: str) -> None:
    x, at = geon.placeholder([A, D]), geon.placeholder([geon.Axis("M")], dtype)
    array = np.arange(10, dtype=np.float32).reshape(2, 5)
    results = [geon.gather(x, at, D), geon.scatter(x, at, 5.0, D, mode="add")]
    assert_agrees(transformer, results, {x: array, at: np.array([4, 0, 4], dtype)}, exact=True)


@pytest.mark.parametrize("wrong", [5, -6])
def test_a_position_outside_is_refused(transformer: geon.Transformer, wrong: int) -> None:
    x, at = geon.placeholder([A, D]), geon.placeholder([geon.Axis("M")], "int64")
    one = geon.placeholder((), "int64")
    array = np.zeros((2, 5), np.float32)
    f = transformer.computation([geon.gather(x, at, D), x[{D: one}]], x, at, one)
    f(array, [4, -5], 4)
    for feeds in ((array, [0, wrong], 0), (array, [0], wrong)):
        with pytest.raises(geon.IndexRangeError, match="test_indexing.py:"):
            f(*feeds)


def test_what_is_scattered_into_stays(transformer: geon.Transformer) -> None:
    x, at = geon.placeholder([D]), geon.placeholder([geon.Axis("M")], "int64")
    y = x * 2
    feeds = {x: np.arange(5, dtype=np.float32), at: np.array([1, 3])}
    assert_agrees(transformer, [geon.scatter(y, at, -1.0, D) + y, y], feeds)
