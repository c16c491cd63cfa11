"""Derivatives of every primitive: compared with the interpreter, and reverse with forward mode."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import geon
from geon.op_graph.building.elementwise_build import Elementwise
from geon.op_graph.core.primitive import PRIMITIVES
from geon.op_graph.op_graph import Leaf, Tensor
from geon.op_graph.values.dtypes import kind
from geon.testing import assert_agrees
from geon.testing.running import factorised_elsewhere
from geon.testing.samples import OPERAND_AXES, ROWS, SAMPLES, Array, Sample, shape_of, values

SMOOTH = [row for row in ROWS if row.rule in ("numeric", "any", "float", "magnitude")]
DIFFERENTIABLE = [
    sample
    for samples in SAMPLES.values()
    for sample in samples
    if "float64" in sample.dtypes and PRIMITIVES[sample.row].differentiable
]


def compared(transformer: geon.Transformer, y: Tensor, feeds: dict[Leaf, Array]) -> None:
    """Compare <u, J t> (forward mode) with <t, u J> (reverse), and both with the interpreter."""
    random = np.random.default_rng(5)
    xs = list(feeds)
    seed, *tangents = (geon.placeholder(leaf.axes, leaf.dtype) for leaf in (y, *xs))
    for leaf in (seed, *tangents):
        feeds[leaf] = values(random, "float64", leaf)
    forward = geon.jvp(y, xs, tangents)
    reverse = geon.vjp(y, xs, seed)
    found: Any = assert_agrees(transformer, [forward, *reverse], feeds)
    left = np.vdot(feeds[seed], found[0])
    right = sum(np.vdot(feeds[t], g) for t, g in zip(tangents, found[1:], strict=True))
    np.testing.assert_allclose(left, right, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("row", SMOOTH, ids=lambda row: row.name)
def test_elementwise_rows(transformer: geon.Transformer, row: Elementwise) -> None:
    random = np.random.default_rng(3)
    feeds = {}
    for axes, interval in zip(OPERAND_AXES, row.domain, strict=False):
        feeds[geon.placeholder(axes, "float64")] = random.uniform(*interval, size=shape_of(axes))
    compared(transformer, row.apply(*feeds), feeds)


@pytest.mark.parametrize("sample", DIFFERENTIABLE, ids=str)
def test_samples(transformer: geon.Transformer, sample: Sample) -> None:
    results, feeds = sample.results("float64", seed=2)
    for y in results:
        if kind(y.dtype) == "f":
            with factorised_elsewhere(sample):
                compared(transformer, y, dict(feeds))


def test_a_second_derivative(transformer: geon.Transformer) -> None:
    a, b = geon.Axis("A", 3), geon.Axis("B", 4)
    w, x = geon.placeholder([a, b], "float64"), geon.placeholder([b], "float64")
    random = np.random.default_rng(0)
    feeds: dict[Leaf, Array] = {w: random.normal(size=(3, 4)), x: random.normal(size=4)}
    loss = geon.sum(geon.softmax(geon.tanh(geon.dot(w, x))) ** 2)
    gradient = geon.deriv(loss, w)
    again = geon.deriv(geon.sum(gradient * gradient), [w, x])
    assert_agrees(transformer, [loss, gradient, *again, geon.hvp(loss, w, w)], feeds)


def test_the_derivative_is_of_values_at_entry(transformer: geon.Transformer) -> None:
    v = geon.Variable(initial_value=3.0)
    slope = geon.deriv(v * v, v)
    f = transformer.computation([geon.assign(v, v - 0.5 * slope), slope])
    assert float(f()[1]) == 6 and float(f()[1]) == 0
