"""Composites for values where their formulas as written would overflow, cancel or divide by 0."""

from __future__ import annotations

import numpy as np

import geon
from geon.testing import assert_agrees
from geon.testing.samples import C

FAR = np.array([[0, 1, 2, 3], [1000, 0, -1000, 999], [-1e4, -1e4, -1e4, -1e4]], np.float32)
N = geon.Axis("N")


def test_softmax_far_out(transformer: geon.Transformer) -> None:
    x = geon.placeholder([N, C])
    y = geon.softmax(x, normalization_axes=C)
    z = geon.log_softmax(x, normalization_axes=C)
    f = transformer.computation([y, geon.log(y), z, geon.logsumexp(x, C)], x)
    shares, logs, direct, total = f(FAR)
    wide = FAR.astype(np.float64)
    expected = wide - np.logaddexp.reduce(wide, axis=1, keepdims=True)
    for found in (logs, direct):
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(shares, np.exp(expected), rtol=1e-4, atol=1e-30)
    np.testing.assert_allclose(total, np.logaddexp.reduce(wide, axis=1), rtol=1e-6)


def test_binary_cross_entropy_far_out(transformer: geon.Transformer) -> None:
    x, t = geon.placeholder([N]), geon.placeholder([N])
    loss = geon.cross_entropy_binary(geon.sigmoid(x), t)
    f = transformer.computation([loss, geon.deriv(geon.sum(loss), x)], x, t)
    far, truth = np.array([-200, -1, 0, 1, 200.0]), np.array([1, 0, 1, 1, 0.0])
    value, slope = f(far, truth)
    each = np.logaddexp(0, far) - truth * far
    np.testing.assert_allclose(value.sum(), each.sum(), rtol=1e-5)
    np.testing.assert_allclose(slope, 1 / (1 + np.exp(-far)) - truth, rtol=1e-4, atol=1e-6)


def test_activations_and_moments(transformer: geon.Transformer) -> None:
    x = geon.placeholder([N, C], "float64")
    results = [
        geon.relu(x), geon.leaky_relu(x), geon.elu(x), geon.softplus(x), geon.gelu(x),
        geon.silu(x), geon.clip(x, -1, 1), geon.mean(x, C), geon.variance(x, N), geon.std(x),
        geon.squared_L2(x), geon.L2_norm(x),
    ]  # fmt: skip
    array = np.random.default_rng(0).normal(size=(6, 4)) * 3
    assert_agrees(transformer, results, {x: array})


def test_onehot_and_multinomial_cross_entropy(transformer: geon.Transformer) -> None:
    x, t = geon.placeholder([N, C]), geon.placeholder([N], "int64")
    loss = geon.cross_entropy_multi(geon.softmax(x, normalization_axes=C), geon.onehot(t, C))
    feeds = {x: FAR[:1].repeat(4, 0), t: np.array([0, 3, 1, 3])}
    assert_agrees(transformer, [loss, geon.deriv(geon.sum(loss), x)], feeds)
