"""Primitives without a file of their own: iota, constants, polygamma, print."""

from __future__ import annotations

import numpy as np
import pytest

import geon
from geon.testing import assert_agrees
from geon.testing.running import compute_samples
from geon.testing.samples import SAMPLES, A, B, Sample


@pytest.mark.parametrize("sample", SAMPLES["other"], ids=str)
def test_values(transformer: geon.Transformer, sample: Sample) -> None:
    compute_samples(transformer, sample)


def test_a_print_shows_each_call(
    transformer: geon.Transformer, capsys: pytest.CaptureFixture[str]
) -> None:
    x = geon.placeholder([A])
    f = transformer.computation(geon.print(x + 1, "above") * 2, x)
    for start in (0, 10):
        np.testing.assert_array_equal(f([start, start + 1]), [2 * start + 2, 2 * start + 4])
        assert "above" in (shown := capsys.readouterr().out) and f"{start + 1}." in shown


def test_a_large_constant_is_no_part_of_the_form(transformer: geon.Transformer) -> None:
    n = geon.Axis("N", 500)
    x = geon.placeholder([n])
    for scale in (1.0, -2.0):
        table = geon.constant(scale * np.arange(500), axes=[n], dtype="float32")
        assert_agrees(transformer, x + table, {x: np.ones(500, np.float32)})


def test_a_result_may_be_an_argument_or_a_constant(transformer: geon.Transformer) -> None:
    x = geon.placeholder([A, B])
    array = np.arange(6, dtype=np.float32).reshape(2, 3)
    results = [x, geon.constant(2.5), geon.reorder(x, [B, A]), x, geon.tensor_size(x)]
    assert_agrees(transformer, results, {x: array})
