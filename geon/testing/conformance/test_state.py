"""Effects: assignments, reads of variables, and their order."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import geon
from geon.op_graph.op_graph import Leaf
from geon.testing import assert_agrees
from geon.testing.samples import A, C, D, values


def zeros(axes: list[geon.Axis]) -> Leaf:
    """Return a variable that starts at 0."""
    return geon.Variable(axes=axes, initial_value=0)


def test_reads_see_values_at_entry(transformer: geon.Transformer) -> None:
    v, x = zeros([D]), geon.placeholder([D])
    f = transformer.computation([v * 1, geon.assign(v, v + x), v + x], x)
    for k in range(3):
        before, effect, after = f(np.ones(5))
        assert effect is None
        np.testing.assert_array_equal(before, np.full(5, k))
        np.testing.assert_array_equal(after, np.full(5, k + 1))
    np.testing.assert_array_equal(transformer.get(v), np.full(5, 3))


def test_a_swap_swaps(transformer: geon.Transformer) -> None:
    p, q = zeros([D]), zeros([D])
    swap = geon.doall([geon.assign(p, q), geon.assign(q, p)])
    feeds = {p: np.arange(5, dtype=np.float32), q: -np.arange(5, dtype=np.float32)}
    assert_agrees(transformer, swap, feeds, exact=True)
    np.testing.assert_array_equal(transformer.get(p), -np.arange(5))


def test_a_rotation_of_three_with_arithmetic(transformer: geon.Transformer) -> None:
    p, q, r = zeros([D]), zeros([D]), zeros([D])
    turn = geon.doall([geon.assign(p, q * 2), geon.assign(q, r + p), geon.assign(r, p)])
    feeds = {v: np.arange(5, dtype=np.float32) + 10 * k for k, v in enumerate((p, q, r))}
    assert_agrees(transformer, [turn, p + q + r], feeds, exact=True)


def test_sequential_adds_twice(transformer: geon.Transformer) -> None:
    v = zeros([])
    more = geon.assign(v, v + 1)
    f = transformer.computation(geon.sequential([more, more, v]))
    assert [float(f()) for _ in range(3)] == [2, 4, 6]


def test_slices_are_assigned(transformer: geon.Transformer) -> None:
    v, x = zeros([A, D]), geon.placeholder([D])
    at = geon.placeholder((), "int64")
    effects = geon.sequential(
        [
            geon.assign(v[0], x),
            geon.assign(v[1, ::2], v[0, ::2] * 10),
            geon.assign(v[{A: 1, D: at}], -1.0),
            geon.assign(v[1][1:4:2], geon.constant([7.0, 8.0], axes=[D.with_length(2)])),
            v * 1,
        ]
    )
    feeds: dict[Leaf, Any] = {x: np.arange(5, dtype=np.float32), at: 4}
    assert_agrees(transformer, effects, feeds, exact=True)


def test_unordered_parts_that_do_not_overlap(transformer: geon.Transformer) -> None:
    v = zeros([D])
    halves = geon.doall([geon.assign(v[0:2], v[3:5] + 1), geon.assign(v[3:5], v[0:2] + 2)])
    assert_agrees(transformer, halves, {v: np.arange(5, dtype=np.float32)}, exact=True)


def test_a_shift_inside_a_variable(transformer: geon.Transformer) -> None:
    v, x = zeros([D]), geon.placeholder(())
    push = geon.sequential([geon.assign(v[1:], v[:-1]), geon.assign(v[0], x), v])
    f = transformer.computation(push, x)
    for k in range(1, 4):
        last = f(k)
    np.testing.assert_array_equal(last, [3, 2, 1, 0, 0])


def test_an_assigned_placeholder_is_seen_and_never_written(transformer: geon.Transformer) -> None:
    x = geon.placeholder([D])
    f = transformer.computation(geon.sequential([geon.SetItem(x, x + x), x + 1]), x)
    array = np.arange(5, dtype=np.float32)
    np.testing.assert_array_equal(f(array), 2 * np.arange(5) + 1)
    np.testing.assert_array_equal(array, np.arange(5))


def test_follows_orders(transformer: geon.Transformer) -> None:
    v = zeros([])
    set_first = geon.assign(v, 5.0)
    f = transformer.computation(geon.add(v, 1, follows=[set_first]))
    assert float(f()) == 6 and float(transformer.get(v)) == 5


def test_a_call_that_raises_changes_nothing(transformer: geon.Transformer) -> None:
    v, w = zeros([D]), zeros([])
    at = geon.placeholder([C], "int64")
    f = transformer.computation(
        [geon.doall([geon.assign(v, v + 1), geon.assign(w, w + 1)]), geon.gather(v + 1, at, D)], at
    )
    f([0, 1, 2, 3])
    with pytest.raises(geon.IndexRangeError):
        f([0, 1, 2, 9])
    np.testing.assert_array_equal(transformer.get(v), np.ones(5))
    assert float(transformer.get(w)) == 1
    f([0, 1, 2, 3])
    np.testing.assert_array_equal(transformer.get(v), np.full(5, 2))


def test_what_is_read_after_the_update_is_computed_before(transformer: geon.Transformer) -> None:
    v, x = zeros([C, D]), geon.placeholder([C, D])
    random = np.random.default_rng(0)
    feeds = {leaf: random.normal(size=(4, 5)).astype(np.float32) for leaf in (v, x)}
    new = v * 0.9 + x
    results = [geon.assign(v, new), geon.dot(v, new, over=D), geon.cumsum(v, D) - new, v]
    assert_agrees(transformer, results, feeds)


def test_a_training_step_of_two_layers(transformer: geon.Transformer) -> None:
    n, i, h, o = geon.Axis("N"), geon.Axis("I", 7), geon.Axis("H", 6), geon.Axis("O", 3)
    x, y = geon.placeholder([n, i]), geon.placeholder([n], "int64")
    random = np.random.default_rng(0)
    weights = [geon.Variable(axes=axes) for axes in ([i, h], [h], [h, o], [o])]
    speeds = [geon.Variable(axes=w.axes, trainable=False) for w in weights]
    hidden = geon.tanh(geon.dot(x, weights[0]) + weights[1])
    logits = geon.dot(hidden, weights[2]) + weights[3]
    loss = -geon.mean(geon.sum(geon.log_softmax(logits, o) * geon.onehot(y, o), o))
    updates = []
    for w, s, d in zip(weights, speeds, geon.deriv(loss, weights), strict=True):
        new = 0.9 * s - 0.1 * d
        updates += [geon.assign(s, new), geon.assign(w, w + new)]
    for leaf in weights + speeds:
        transformer.set(leaf, values(random, "float32", leaf))
    feeds: dict[Leaf, Any] = {
        x: random.normal(size=(11, 7)).astype(np.float32),
        y: random.integers(0, 3, 11),
    }
    for _ in range(3):
        assert_agrees(transformer, [loss, geon.doall(updates), geon.argmax(logits, o)], feeds)
