"""Loops and branches."""

from __future__ import annotations

import numpy as np
import pytest

import geon
from geon.testing import assert_agrees

T, N = geon.Axis("T"), geon.Axis("N", 3)


@pytest.mark.parametrize("count", [0, 1, 5])
@pytest.mark.parametrize("reverse", [False, True])
def test_a_scan_and_its_derivative(
    transformer: geon.Transformer, count: int, reverse: bool
) -> None:
    x, w = geon.placeholder([T, N]), geon.placeholder([N])

    def step(carry: geon.Tensor, each: geon.Tensor) -> tuple[geon.Tensor, geon.Tensor]:
        return geon.tanh(geon.flip(carry, N) * w + each), geon.sum(carry)

    last, sums = geon.scan(step, w, x, over=T, reverse=reverse)
    loss = geon.sum(last) + geon.sum(geon.square(sums))
    random = np.random.default_rng(0)
    feeds = {x: random.normal(size=(count, 3)).astype(np.float32),
             w: np.array([0.5, -0.25, 1.0], np.float32)}  # fmt: skip
    assert_agrees(transformer, [last, sums, *geon.deriv(loss, [x, w])], feeds)


def test_a_scan_of_elements(transformer: geon.Transformer) -> None:
    x = geon.placeholder([T, N])
    last, seen = geon.scan(lambda c, e: (0.5 * c + geon.sin(e), c), x[{T: 0}], x, over=T)
    feeds = {x: np.arange(12, dtype=np.float32).reshape(4, 3)}
    assert_agrees(transformer, [last, seen, geon.deriv(geon.sum(seen), x)], feeds)


@pytest.mark.parametrize("number", [-1, 0, 1, 2])
def test_a_case_and_its_derivative(transformer: geon.Transformer, number: int) -> None:
    x, which = geon.placeholder([N]), geon.placeholder([], "int64")
    y = geon.case_of(which, [lambda: geon.sin(x), lambda: geon.cumsum(x, N)], default=lambda: x * x)
    feeds = {x: np.array([0.5, -1.0, 2.0], np.float32), which: np.asarray(number)}
    assert_agrees(transformer, [y, geon.deriv(geon.sum(y), x)], feeds)


@pytest.mark.parametrize("limit", [5, None])
@pytest.mark.parametrize("count", [0, 1, 4])
def test_a_while_loop_and_its_derivative(
    transformer: geon.Transformer, count: int, limit: int | None
) -> None:
    x, steps = geon.placeholder([N]), geon.placeholder([], "int64")

    def body(carry: tuple[geon.Tensor, geon.Tensor]) -> tuple[geon.Tensor, geon.Tensor]:
        return geon.tanh(geon.flip(carry[0], N) * x + 0.5), carry[1] - 1

    (last, _), taken = geon.while_loop(lambda c: c[1] > 0, body, (x, steps), limit, count=True)
    feeds = {x: np.array([0.5, -1.0, 2.0], np.float32), steps: np.asarray(count)}
    assert_agrees(transformer, [last, taken, geon.deriv(geon.sum(last), x)], feeds)


@pytest.mark.parametrize("limit", [5, 600])
def test_values_of_the_steps_of_a_while_loop_and_their_derivatives(
    transformer: geon.Transformer, limit: int
) -> None:
    x, steps = geon.placeholder([N]), geon.placeholder([], "int64")
    (last, _), values, taken = geon.while_loop(
        lambda c: c[1] > 0,
        lambda c: (
            (geon.tanh(geon.flip(c[0], N) * x + 0.5), c[1] - 1),
            {"x": c[0] * x, "left": c[1]},
        ),
        (x, steps),
        over=geon.Axis("S", limit),
        count=True,
    )
    loss = geon.sum(geon.square(values["x"])) + geon.sum(last)
    slope = geon.deriv(loss, x)
    further = [geon.jvp(loss, x, x), geon.deriv(geon.sum(slope * slope), x)]
    for count in (0, 3, 9):
        feeds = {x: np.array([0.5, -1.0, 2.0], np.float32), steps: np.asarray(count)}
        every = [last, *values.values(), taken, slope, *further]
        assert_agrees(transformer, every, feeds)


def test_a_fixed_point_and_its_derivative(transformer: geon.Transformer) -> None:
    x, k = geon.placeholder([T, N]), geon.placeholder([N])
    y = geon.fixed_point(lambda y: k * geon.sin(geon.flip(y, N)) + x, geon.broadcast(0.0, x.axes))
    values = np.array([0.5, -0.25, 0.125], np.float32)
    for count in (0, 2):
        feeds = {x: np.ones((count, 3), np.float32), k: values}
        assert_agrees(transformer, [y, *geon.deriv(geon.sum(y), [x, k])], feeds)
