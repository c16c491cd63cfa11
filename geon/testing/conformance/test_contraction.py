"""Contractions: contracted, batch and kept axes in every order and memory layout.

Factorisations of matrices and solutions too.
"""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import geon
from geon.testing import assert_agrees
from geon.testing.running import compute_samples, factorised_elsewhere
from geon.testing.samples import SAMPLES, A, B, C, D, Sample, values


@pytest.mark.parametrize("sample", SAMPLES["contraction"], ids=str)
def test_values(transformer: geon.Transformer, sample: Sample) -> None:
    compute_samples(transformer, sample)


@pytest.mark.parametrize("sample", SAMPLES["matrix"], ids=str)
def test_values_of_matrices(transformer: geon.Transformer, sample: Sample) -> None:
    with factorised_elsewhere(sample):
        compute_samples(transformer, sample)


def test_every_order_of_operand_axes(transformer: geon.Transformer) -> None:
    random = np.random.default_rng(0)
    results, feeds = [], {}
    for left, right in itertools.product(
        itertools.permutations([A, B, C]), itertools.permutations([B, C, D])
    ):
        x, y = geon.placeholder(left), geon.placeholder(right)
        results.append(geon.dot(x, y, over=C))
        for leaf in (x, y):
            feeds[leaf] = values(random, "float32", leaf)
    assert_agrees(transformer, results, feeds)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_halves_accumulate_in_float32(transformer: geon.Transformer, dtype: str) -> None:
    k = geon.Axis("K")
    x, y = geon.placeholder([k], dtype), geon.placeholder([k], dtype)
    ones = np.full(4096, 0.5).astype(x.dtype)
    assert float(transformer.computation(geon.dot(x, y), x, y)(ones, ones)) == 1024


@pytest.mark.parametrize("sizes", [(1, 1, 1), (0, 3, 2), (3, 0, 2), (1, 70, 1), (65, 33, 129)])
def test_sizes(transformer: geon.Transformer, sizes: tuple[int, int, int]) -> None:
    m, k, n = geon.Axis("M"), geon.Axis("K"), geon.Axis("N")
    x, y = geon.placeholder([m, k]), geon.placeholder([k, n])
    random = np.random.default_rng(0)
    feeds = {
        x: random.normal(size=sizes[:2]).astype(np.float32),
        y: random.normal(size=sizes[1:]).astype(np.float32),
    }
    results = [geon.dot(x, y), geon.dot(y, x), geon.dot(x, x, over=k), geon.dot(y * 2, x + 1)]
    assert_agrees(transformer, results, feeds)
