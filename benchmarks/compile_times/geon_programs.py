"""The programs in geon; ``python -m benchmarks.compile_times.geon_programs NAME`` times one."""

from __future__ import annotations

import sys
import time
from typing import Any

import numpy as np

import geon
from geon import Axis

Built = tuple[list[Any], list[Any], list[Any]]  # results, placeholders, values


def variable(axes: list[Axis], value: float) -> Any:
    return geon.variable(axes, initial_value=value)


def trained(loss: Any, weights: list[Any]) -> list[Any]:
    """The loss, and a step against its gradient."""
    steps = zip(weights, geon.deriv(loss, weights), strict=True)
    return [loss, geon.doall([geon.assign(w, w - 0.1 * g) for w, g in steps])]


def mlp() -> Built:
    n, d, h, k, c = Axis("N", 128), Axis("D", 784), Axis("H", 512), Axis("K", 512), Axis("C", 10)
    x, y = geon.placeholder([n, d]), geon.placeholder([n], dtype="int64")
    w = [variable(axes, 0.01) for axes in ([d, h], [h, k], [k, c])]
    b = [variable([axis], 0.0) for axis in (h, k, c)]
    hidden = x
    for number in range(2):
        hidden = geon.relu(geon.dot(hidden, w[number]) + b[number])
    p = geon.softmax(geon.dot(hidden, w[2]) + b[2], c)
    loss = geon.mean(geon.cross_entropy_multi(p, geon.onehot(y, c)))
    return trained(loss, w + b), [x, y], [np.zeros((128, 784), "f"), np.zeros(128, "int64")]


def chain() -> Built:
    x = geon.placeholder([Axis("N", 10000)])
    value = x
    for _ in range(300):
        value = geon.tanh(value * 1.01) + 0.1
    return [geon.deriv(geon.sum(value), x)], [x], [np.zeros(10000, "f")]


def gpt() -> Built:
    b, t, s, c, v = Axis("B", 4), Axis("T", 32), Axis("S", 32), Axis("C", 64), Axis("V", 256)
    h, d, f, p = Axis("H", 4), Axis("D", 16), Axis("F", 256), Axis("P", 3)
    x, y = (geon.placeholder([b, t], dtype="int64") for _ in range(2))
    table, places = variable([v, c], 0.01), variable([t, c], 0.01)
    weights = [table, places]
    mask = geon.constant(np.tril(np.ones((32, 32), bool)), [t, s])

    def made(axes: list[Axis], value: float) -> Any:
        weights.append(variable(axes, value))
        return weights[-1]

    def normalized(value: Any) -> Any:
        centred = value - geon.mean(value, c)
        scale = geon.rsqrt(geon.mean(geon.square(centred), c) + 1e-5)
        return centred * scale * made([c], 1.0) + made([c], 0.0)

    value = geon.gather(table, x, v) + places
    for _ in range(3):
        both = geon.dot(normalized(value), made([p, c, h, d], 0.01), over=c)
        q, key, val = (both[{"P": number}] for number in range(3))
        scores = geon.dot(q, geon.rename(key, {t: s}), over=d) / 4
        scores = geon.where(geon.broadcast(mask, scores.axes), scores, -1e9)
        mixed = geon.dot(geon.softmax(scores, s), geon.rename(val, {t: s}), over=s)
        value = value + geon.dot(mixed, made([h, d, c], 0.01), over=[h, d])
        inner = geon.gelu(geon.dot(normalized(value), made([c, f], 0.01), over=c) + made([f], 0.0))
        value = value + geon.dot(inner, made([f, c], 0.01), over=f) + made([c], 0.0)
    logits = geon.dot(normalized(value), table, over=c)
    shifted = logits - geon.max(logits, v)
    logs = shifted - geon.log(geon.sum(geon.exp(shifted), v))
    loss = -geon.mean(geon.sum(logs * geon.onehot(y, v), v))
    return trained(loss, weights), [x, y], [np.zeros((4, 32), "int64")] * 2


def gru() -> Built:
    b, i, h, t = Axis("B", 8), Axis("I", 32), Axis("H", 64), Axis("T", 20)
    w = [variable([i, h], 0.01) for _ in range(3)]
    u = [variable([h.prime, h], 0.01) for _ in range(3)]
    bias = [variable([h], 0.0) for _ in range(3)]
    xs = geon.placeholder([t, b, i])
    state = geon.broadcast(geon.constant(0.0), [b, h])
    for step in range(20):
        x, before = xs[step], geon.rename(state, {h: h.prime})
        own = [geon.dot(x, each, over=i) for each in w]
        past = [geon.dot(before, each, over=h.prime) for each in u]
        z = geon.sigmoid(own[0] + past[0] + bias[0])
        r = geon.sigmoid(own[1] + past[1] + bias[1])
        state = (1 - z) * geon.tanh(own[2] + r * past[2] + bias[2]) + z * state
    loss = geon.sum(state * state)
    return [loss, *geon.deriv(loss, [*w, *u, *bias])], [xs], [np.zeros((20, 8, 32), "f")]


def lstm() -> Built:
    n, t, c, h, gate = Axis("N"), Axis("T"), Axis("C", 6), Axis("H", 8), Axis("gate", 4)
    w, u = variable([c, gate, h], 0.1), variable([h.prime, gate, h], 0.1)
    bias = variable([gate, h], 0.0)
    x = geon.placeholder([n, t, c])
    start = geon.broadcast(0.0, [n, h])

    def step(carry: Any, own: Any) -> Any:
        state, cell = carry
        sums = own + geon.dot(geon.rename(state, {h: h.prime}), u, over=h.prime)
        i, f, o, new = (sums[{"gate": number}] for number in range(4))
        cell = geon.sigmoid(f) * cell + geon.sigmoid(i) * geon.tanh(new)
        state = geon.reorder(geon.sigmoid(o) * geon.tanh(cell), [n, h])
        return (state, geon.reorder(cell, [n, h])), state

    _, states = geon.scan(step, (start, start), geon.dot(x, w, over=c) + bias, over=t)
    loss = geon.mean(geon.square(states))
    return [loss, *geon.deriv(loss, [w, u, bias])], [x], [np.zeros((4, 12, 6), "f")]


def third() -> Built:
    n, h = Axis("N", 16), Axis("H", 32)
    x, w = geon.placeholder([n, h]), geon.constant(np.full((32, 32), 0.1, "f"), [h, h.prime])

    def layer(value: Any) -> Any:
        return geon.tanh(geon.rename(geon.dot(value, w, over=h), {h.prime: h}))

    value = geon.deriv(geon.sum(layer(layer(x))), x)
    for _ in range(2):
        value = geon.deriv(geon.sum(value * value), x)
    return [value], [x], [np.zeros((16, 32), "f")]


def deep() -> Built:
    n, h = Axis("N", 32), Axis("H", 128)
    x = geon.placeholder([n, h])
    value, weights = x, []
    for _ in range(200):
        weights += [variable([h.prime, h], 0.01), variable([h], 0.0)]
        product = geon.dot(geon.rename(value, {h: h.prime}), weights[-2], over=h.prime)
        value = geon.tanh(product + weights[-1])
    return trained(geon.sum(value * value), weights), [x], [np.zeros((32, 128), "f")]


if __name__ == "__main__":
    transformer = geon.make_transformer("native")
    begin = time.perf_counter()
    results, placeholders, values = globals()[sys.argv[1]]()
    transformer.computation(results, *placeholders)(*values)
    print(time.perf_counter() - begin)
