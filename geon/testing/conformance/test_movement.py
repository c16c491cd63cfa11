"""Movement: broadcast, transpose, slice, concatenate and pad, bit for bit in every dtype."""

from __future__ import annotations

import numpy as np
import pytest

import geon
from geon.testing import assert_agrees
from geon.testing.running import compute_samples
from geon.testing.samples import SAMPLES, A, B, C, D, Sample


@pytest.mark.parametrize("sample", SAMPLES["movement"], ids=str)
def test_values(transformer: geon.Transformer, sample: Sample) -> None:
    compute_samples(transformer, sample)


def test_movements_on_movements(transformer: geon.Transformer) -> None:
    x = geon.placeholder([A, B, C])
    array = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
    turned = geon.flip(geon.reorder(x, [C, A, B])[1:], B)
    results = [
        geon.flatten(turned, [A, B]),
        geon.flatten(turned[::2] + 1),
        geon.concat([turned, turned[0:1]], turned.axes["C"]),
        geon.update(turned, turned[{B: 0}] * 10, {B: 2}),
        geon.broadcast(turned[0, 0], [B, D]) * 2,
        geon.pad(geon.flip(turned, C), {B: (1, 0)}, value=7) - 1,
    ]
    assert_agrees(transformer, results, {x: array}, exact=True)


def test_a_part_replaced_by_another_part_of_itself(transformer: geon.Transformer) -> None:
    x = geon.placeholder([D])
    y = x + 1
    shifted = geon.update(y, y[0:4], slice(1, 5))
    back = geon.update(y, y[1:5], slice(0, 4))
    array = np.arange(5, dtype=np.float32)
    assert_agrees(transformer, [shifted, back, geon.update(y, y[::-1], ...)], {x: array})
