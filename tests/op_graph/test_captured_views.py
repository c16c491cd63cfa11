"""Derivatives by views that the bodies of loops and branches read from outside."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import geon

T, N, M = geon.Axis("T", 4), geon.Axis("N", 3), geon.Axis("M", 3)
FIRST = [0.3, -0.5, 0.8]

Inside = Callable[[Any], Any]


def scanned(h: Any) -> Any:
    xs = geon.iota(T, dtype="float64") / 4.0
    last, out = geon.scan(lambda c, x: (geon.tanh(c * h + x), c * h), ones(), xs, over=T)
    return geon.sum(last) + geon.sum(out)


def prefixes(h: Any) -> Any:
    given = geon.broadcast(geon.iota(T, dtype="float64"), [T, N]) / 4.0
    made = geon.associative_scan(lambda a, b: a + b, given, over=T)
    return geon.sum(made * h * h)


def repeated(h: Any) -> Any:
    _, last = geon.while_loop(
        lambda s: s[0] < 3, lambda s: (s[0] + 1, geon.tanh(s[1] * h)), (0, ones()), max_steps=5
    )
    return geon.sum(last)


def solved(h: Any) -> Any:
    return geon.sum(geon.fixed_point(lambda v: geon.tanh(v * h) / 2.0 + h, ones()))


def chosen(h: Any) -> Any:
    return geon.cond(geon.sum(h) > 0, lambda: geon.sum(h * h * h), lambda: geon.sum(h))


def nested(h: Any) -> Any:
    def step(c: Any, x: Any) -> Any:
        inner = geon.cond(geon.sum(c) > 0, lambda: geon.tanh(c * h + x), lambda: c - h)
        return inner, None

    last, _ = geon.scan(step, ones(), geon.iota(T, dtype="float64") / 4.0, over=T)
    return geon.sum(last)


def ones() -> Any:
    return geon.cast(geon.broadcast(1.0, [N]), "float64")


LOOPS = [scanned, prefixes, repeated, solved, chosen, nested]
VIEWS: dict[str, Inside] = {
    "rename": lambda w: geon.rename(w, {M: N}),
    "two views": lambda w: geon.rename(w, {M: N})[{N: slice(None, None, -1)}],
    "rename of a computed value": lambda w: geon.rename(geon.tanh(w), {M: N}),
}


@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize("loop", LOOPS, ids=lambda f: f.__name__)
def test_derivatives_by_a_view_are_those_by_an_argument(loop: Inside, view: str) -> None:
    w = geon.placeholder([M], dtype="float64", name="w")
    h = VIEWS[view](w)
    given = geon.placeholder([N], dtype="float64", name="given")
    y, expected = loop(h), loop(given)
    tangent = geon.cast(geon.broadcast(0.5, [N]), "float64")
    made = geon.NumPyTransformer().computation([h, geon.deriv(y, h), geon.jvp(y, h, tangent)], w)(
        FIRST
    )
    wanted = geon.NumPyTransformer().computation(
        [geon.deriv(expected, given), geon.jvp(expected, given, tangent)], given
    )(made[0])
    for one, other in zip(made[1:], wanted, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-12)
    assert abs(made[1]).min() > 0


def test_second_derivatives_by_a_view() -> None:
    w = geon.placeholder([M], dtype="float64", name="w")
    given = geon.placeholder([N], dtype="float64", name="given")
    values = []
    for leaf, h in ((w, geon.rename(w, {M: N})), (given, given)):
        first = geon.deriv(nested(h), h)
        second = geon.deriv(geon.sum(first * first), h)
        values.append(geon.NumPyTransformer().computation(second, leaf)(FIRST))
    np.testing.assert_allclose(values[0], values[1], rtol=1e-12)


def test_two_views_and_an_op_between_them() -> None:
    w = geon.placeholder([M], dtype="float64", name="w")
    first = geon.rename(w, {M: N})
    middle = geon.tanh(first)
    second = middle[{N: slice(None, None, -1)}]
    y = scanned(second) + scanned(first) + geon.sum(middle * middle)
    got = geon.NumPyTransformer().computation(geon.deriv(y, [first, middle, second]), w)(FIRST)
    f, m, s = [geon.placeholder([N], dtype="float64", name=name) for name in "fms"]
    z = scanned(s) + scanned(f) + geon.sum(m * m)
    parts = geon.NumPyTransformer().computation(geon.deriv(z, [f, m, s]), f, m, s)
    value = np.array(FIRST)
    by_f, by_m, by_s = parts(value, np.tanh(value), np.tanh(value)[::-1])
    by_m = by_m + by_s[::-1]
    by_f = by_f + by_m * (1 - np.tanh(value) ** 2)
    for one, other in zip(got, (by_f, by_m, by_s), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-12)
