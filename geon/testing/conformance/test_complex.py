"""Every primitive that takes complex numbers, compared with its reference."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import numpy as np
import pytest

import geon
from geon.op_graph.core.primitive import PRIMITIVES
from geon.op_graph.op_graph import Leaf, Tensor
from geon.op_graph.values.dtypes import COMPLEXES
from geon.testing import assert_agrees
from geon.testing.samples import OPERAND_AXES, ROWS, SAMPLES, Sample, shape_of

Array = np.ndarray[Any, Any]


def complex_samples() -> dict[str, list[Sample]]:
    """Return the samples of primitives that can be built of complex tensors, by kind."""
    found: dict[str, list[Sample]] = {}
    for kind, samples in SAMPLES.items():
        for sample in samples:
            if PRIMITIVES[sample.row].takes_complex:
                with suppress(geon.DTypeError, geon.DerivativeError):
                    sample.results("complex64")
                    found.setdefault(kind, []).append(sample)
    return found


COMPLEX_SAMPLES = complex_samples()


@pytest.mark.parametrize("kind", COMPLEX_SAMPLES)
def test_samples(transformer: geon.Transformer, kind: str) -> None:
    results: list[Tensor] = []
    feeds: dict[Leaf, Array] = {}
    for number, sample in enumerate(COMPLEX_SAMPLES[kind]):
        built, arrays = sample.results(COMPLEXES[number % 2])
        results += built
        feeds |= arrays
    assert_agrees(transformer, results, feeds)


def test_every_row_has_a_sample() -> None:
    sampled = {sample.row for samples in COMPLEX_SAMPLES.values() for sample in samples}
    assert {"dot", "sum", "cumsum", "gather", "scatter", "fourier"} <= sampled
    assert {row.name for row in PRIMITIVES.values() if row.kind == "movement"} <= sampled


@pytest.mark.parametrize("dtype", COMPLEXES)
def test_elementwise_values(transformer: geon.Transformer, dtype: str) -> None:
    random = np.random.default_rng(2)
    results: list[Tensor] = []
    feeds: dict[Leaf, Array] = {}
    for row in ROWS:
        if not row.takes_complex:
            continue
        operands = []
        for k in range(row.arity):
            truth = row.rule == "select" and k == 0
            leaf = geon.placeholder(OPERAND_AXES[k], "bool" if truth else dtype)
            shape = shape_of(leaf.axes)
            both = random.normal(size=(2, *shape))
            feeds[leaf] = both[0] > 0 if truth else (both[0] + 1j * both[1]).astype(dtype)
            operands.append(leaf)
        results.append(row.apply(*operands))
    assert_agrees(transformer, results, feeds, floor=1.0)
