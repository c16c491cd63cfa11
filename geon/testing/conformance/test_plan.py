"""Memory sharing changes no bit: programs with a plan, and with ``plan=False``."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import geon
from geon.op_graph.op_graph import Leaf, Op, Tensor
from geon.testing.samples import A, Array, C, D


def long_chain() -> tuple[list[Op], dict[Leaf, Array]]:
    """Return many values of one size, few of which are live at a time."""
    x = geon.placeholder([C, D])
    y: Tensor = x
    for k in range(40):
        y = geon.tanh(y * (1 + k / 40) + x) if k % 3 else y - geon.mean(y, C) + k / 10
    return [y, geon.sum(y, D)], {x: np.random.default_rng(0).normal(size=(4, 5))}


def branches() -> tuple[list[Op], dict[Leaf, Array]]:
    """Return values with long and short live ranges, of several sizes."""
    x = geon.placeholder([A, C])
    wide = [geon.exp(geon.broadcast(x * k, [A, C, D])) for k in range(1, 5)]
    total = wide[0]
    for other in wide[1:]:
        total = geon.cumsum(total, C) / (1 + other) + geon.sort(total, A)
    parts = [geon.sum(value * total, D) for value in wide]
    return [geon.concat(parts, C), geon.dot(total, wide[3], over=D)], {x: np.ones((2, 4)) / 3}


def training() -> tuple[list[Op], dict[Leaf, Array]]:
    """Return in-place updates of variables that are read before and after."""
    n = geon.Axis("N")
    x = geon.placeholder([n, D])
    random = np.random.default_rng(0)
    w = geon.Variable(axes=[D, C], initial_value=random.normal(size=(5, 4)).astype(np.float32))
    m = geon.Variable(axes=[D, C], initial_value=0, trainable=False)
    y = geon.softmax(geon.dot(x, w), normalization_axes=C)
    loss = geon.sum(y * y)
    new = m * 0.9 + geon.deriv(loss, w)
    updates = geon.doall([geon.assign(m, new), geon.assign(w, w - 0.1 * new)])
    return [loss, updates, w + m, geon.dot(x, w)], {x: random.normal(size=(7, 5))}


@pytest.mark.parametrize("build", [long_chain, branches, training])
def test_bits_are_equal(transformer: geon.Transformer, build: Any) -> None:
    results, feeds = build()
    values = []
    for plan in (True, False):
        f = transformer.computation(results, *feeds, plan=plan)
        transformer.initialize(force=True)
        for _ in range(3):
            last = f(*feeds.values())
        values.append([value for value in last if value is not None])
    for left, right in zip(*values, strict=True):
        np.testing.assert_array_equal(left, right)
