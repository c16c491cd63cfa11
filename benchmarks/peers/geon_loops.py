"""In geon: loops. Each function takes sizes and gives results, placeholders by the names of their
data, and the open lengths.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import geon
from geon import Axis, placeholder

from .chains import stepped
from .loops import gru_step, lstm_step, ring_step
from .workloads import Sizes

Made = tuple[Any, dict[str, Any], dict[Axis, int]]


def recurrent(sizes: Sizes, gates: int) -> tuple[dict[str, Any], dict[Axis, int], list[Axis]]:
    """The placeholders of a recurrent layer, its lengths, and its axes."""
    time, batch, inputs = Axis("T"), Axis("N"), Axis("C", sizes["inputs"])
    hidden, gate = Axis("H", sizes["hidden"]), Axis("G", gates * sizes["hidden"])
    inside: dict[str, Any] = {
        "x": placeholder([time, batch, inputs]),
        "w": placeholder([inputs, gate]),
        "u": placeholder([hidden.prime, gate]),
        "b": placeholder([gate]),
    }
    return inside, {time: sizes["steps"], batch: sizes["batch"]}, [time, batch, hidden]


def parts(z: Any, count: int, axes: list[Axis]) -> list[Any]:
    """The sums of each gate."""
    length = axes[-1].length
    return [geon.cast_axes(z[:, k * length : (k + 1) * length], axes) for k in range(count)]


def lstm_outputs(given: dict[str, Any], axes: list[Axis]) -> Any:
    """The output of each step."""
    time, batch, hidden = axes

    def step(carry: Any, each: Any) -> Any:
        h, c = carry
        old = geon.cast_axes(h, [batch, hidden.prime])
        z = geon.dot(each, given["w"]) + geon.dot(old, given["u"]) + given["b"]
        h, c = lstm_step(parts(z, 4, [batch, hidden]), c, geon.sigmoid, geon.tanh)
        return (h, c), h

    zero = geon.broadcast(0.0, [batch, hidden])
    return geon.scan(step, (zero, zero), given["x"], over=time)[1]


def gru_outputs(given: dict[str, Any], axes: list[Axis]) -> Any:
    """The state after each step."""
    time, batch, hidden = axes

    def step(h: Any, each: Any) -> Any:
        a = parts(geon.dot(each, given["w"]) + given["b"], 3, [batch, hidden])
        z = parts(
            geon.dot(geon.cast_axes(h, [batch, hidden.prime]), given["u"]), 3, [batch, hidden]
        )
        h = gru_step(a, z, h, geon.sigmoid, geon.tanh)
        return h, h

    return geon.scan(step, geon.broadcast(0.0, [batch, hidden]), given["x"], over=time)[1]


def lstm_forward(sizes: Sizes) -> Made:
    """The outputs of all steps."""
    given, lengths, axes = recurrent(sizes, 4)
    return lstm_outputs(given, axes), given, lengths


def slopes(outputs: Any, given: dict[str, Any]) -> list[Any]:
    """The derivatives of the sum of squares with respect to inputs and weights, one by one."""
    loss = geon.sum(geon.square(outputs))
    return [geon.deriv(loss, value) for value in given.values()]


def lstm_gradient(sizes: Sizes) -> Made:
    """Derivatives with respect to inputs and weights."""
    given, lengths, axes = recurrent(sizes, 4)
    return slopes(lstm_outputs(given, axes), given), given, lengths


def gru_gradient(sizes: Sizes) -> Made:
    """The same of the gated unit."""
    given, lengths, axes = recurrent(sizes, 3)
    return slopes(gru_outputs(given, axes), given), given, lengths


def lorenz(sizes: Sizes) -> Made:
    """Where each system is after all steps."""
    n, time = Axis("N"), Axis("T", sizes["steps"])
    first = [placeholder([n]) for _ in range(3)]
    last, _ = geon.scan(lambda at, _: (stepped(at), None), tuple(first), over=time)
    return list(last), dict(zip("xyz", first, strict=True)), {n: sizes["count"]}


def products_gradient(sizes: Sizes) -> Made:
    """Derivatives of what matrices make of one, step by step, with respect to them."""
    time, a, b = Axis("T"), Axis("A", sizes["n"]), Axis("B", sizes["n"])
    m, start = placeholder([time, a, a.prime]), placeholder([a, b])

    def step(s: Any, each: Any) -> Any:
        return geon.dot(each, geon.cast_axes(s, [a.prime, b])), None

    last, _ = geon.scan(step, start, m, over=time)
    slope = geon.deriv(geon.sum(geon.square(last)), m)
    return [last, slope], {"m": m, "start": start}, {time: sizes["steps"]}


def on_ring(sizes: Sizes) -> tuple[list[Any], dict[str, Any], dict[Axis, int]]:
    """The values on a ring after all steps, each a scalar that is carried."""
    count = sizes["count"]
    time, ring = Axis("T"), Axis("R", count)
    force, start = placeholder([time]), placeholder([ring])

    def step(at: Any, each: Any) -> Any:
        new = [ring_step(at[k - 2], at[k - 1], at[k], at[(k + 1) % count], each)
               for k in range(count)]  # fmt: skip
        return tuple(new), None

    last, _ = geon.scan(step, tuple([start[k] for k in range(count)]), force, over=time)
    return list(last), {"force": force, "start": start}, {time: sizes["steps"]}


def ring(sizes: Sizes) -> Made:
    """Their sum of squares."""
    last, given, lengths = on_ring(sizes)
    return sum(geon.square(value) for value in last), given, lengths


def ring_gradient(sizes: Sizes) -> Made:
    """The derivatives of that with respect to what drives them, and to where they start."""
    last, given, lengths = on_ring(sizes)
    total = sum(geon.square(value) for value in last)
    return [geon.deriv(total, value) for value in given.values()], given, lengths


LOOPS: dict[str, Callable[[Sizes], Made]] = {
    f.__name__: f
    for f in (
        lstm_forward, lstm_gradient, gru_gradient, lorenz, products_gradient, ring, ring_gradient,
    )
}  # fmt: skip
