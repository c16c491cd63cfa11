"""Primitives without a file of their own: iota, constants, polygamma, print; complex numbers."""

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
from geon.testing.running import compute_samples
from geon.testing.samples import OPERAND_AXES, ROWS, SAMPLES, A, B, Sample, shape_of

Array = np.ndarray[Any, Any]


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


# Complex numbers ----------------------------------------------------------------------------------


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
def test_complex_samples(transformer: geon.Transformer, kind: str) -> None:
    results: list[Tensor] = []
    feeds: dict[Leaf, Array] = {}
    for number, sample in enumerate(COMPLEX_SAMPLES[kind]):
        built, arrays = sample.results(COMPLEXES[number % 2])
        results += built
        feeds |= arrays
    assert_agrees(transformer, results, feeds)


def test_every_row_of_complex_numbers_has_a_sample() -> None:
    sampled = {sample.row for samples in COMPLEX_SAMPLES.values() for sample in samples}
    assert {"dot", "sum", "cumsum", "gather", "scatter", "fourier"} <= sampled
    assert {row.name for row in PRIMITIVES.values() if row.kind == "movement"} <= sampled


@pytest.mark.parametrize("dtype", COMPLEXES)
def test_complex_elementwise_values(transformer: geon.Transformer, dtype: str) -> None:
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


def test_parts_and_bits(transformer: geon.Transformer) -> None:
    x, y = geon.placeholder([A, B]), geon.placeholder([B])
    z = geon.as_complex(x, y)
    results = [z, geon.real(z * z), geon.imag(z * z), geon.conj(z), geon.bitcast(x, "int32")]
    arrays = {x: np.arange(6, dtype=np.float32).reshape(2, 3) - 2, y: np.ones(3, np.float32)}
    assert_agrees(transformer, [*results, geon.bitcast(results[-1] + 1, "float32")], arrays)
