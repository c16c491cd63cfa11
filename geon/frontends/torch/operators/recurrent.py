"""Recurrent layers as loops over time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import geon

from ...positional.control import scan_rows
from ...positional.elementwise import elementwise
from ...positional.indexing import select
from ...positional.movement import concat, split
from ...positional.products import matmul, turned
from ...positional.reshaping import transpose, unsqueeze
from ...positional.values import Value, as_array
from .common import Rows
from .making import dropout
from .products import linear

Step = Callable[[Value, list[Value], Callable[[Value], Value]], list[Value]]


def lstm_step(x: Value, carries: list[Value], recur: Callable[[Value], Value]) -> list[Value]:
    """Return the new output and state of an LSTM cell; ``x`` is the product with the input."""
    h, c = carries
    gates = elementwise(geon.add, x, recur(h))
    i, f, g, o = split(gates, 1, [gates.shape[1] // 4] * 4)
    cell = elementwise(
        lambda f, c, i, g: geon.sigmoid(f) * c + geon.sigmoid(i) * geon.tanh(g), f, c, i, g
    )
    return [elementwise(lambda o, c: geon.sigmoid(o) * geon.tanh(c), o, cell), cell]


def gru_step(x: Value, carries: list[Value], recur: Callable[[Value], Value]) -> list[Value]:
    """Return the new output of a GRU cell."""
    (h,) = carries
    width = [h.shape[1]] * 3
    (r, z, n), (hr, hz, hn) = split(x, 1, width), split(recur(h), 1, width)

    def build(*parts: geon.Tensor) -> geon.Tensor:
        r, z, n, hr, hz, hn, h = parts
        update = geon.sigmoid(z + hz)
        new = geon.tanh(n + geon.sigmoid(r + hr) * hn)
        return (1 - update) * new + update * h

    return [elementwise(build, r, z, n, hr, hz, hn, h)]


def plain_step(f: Callable[..., Any]) -> Step:
    """Return the step of a cell that is one activation of the sum."""

    def step(x: Value, carries: list[Value], recur: Callable[[Value], Value]) -> list[Value]:
        return [elementwise(lambda a, b: f(a + b), x, recur(carries[0]))]

    return step


def layers(step: Step, states: int) -> Callable[..., tuple[Value, ...]]:
    """Return the builder of stacked layers of a cell with ``states`` values from step to step."""

    def build(
        x: Value,
        start: Any,
        weights: Sequence[Value],
        has_biases: bool,
        count: int,
        share: float,
        train: bool,
        is_bidirectional: bool,
        batch_first: bool,
    ) -> tuple[Value, ...]:
        first = list(start) if isinstance(start, (list, tuple)) else [start]
        sequence = transpose(x, [1, 0, 2]) if batch_first else x
        directions = 2 if is_bidirectional else 1
        given = iter(weights)
        ends: list[list[Value]] = [[] for _ in range(states)]
        for layer in range(count):
            outputs = []
            for direction in range(directions):
                own = [next(given) for _ in range(4 if has_biases else 2)]
                at = layer * directions + direction
                carries = [select(state, 0, at) for state in first]
                last, values = _run(step, sequence, carries, own, direction == 1)
                outputs.append(values)
                for kept, state in zip(ends, last, strict=True):
                    kept.append(unsqueeze(state, [0]))
            sequence = outputs[0] if directions == 1 else concat(outputs, 2)
            if share and train and layer < count - 1:
                sequence = dropout(sequence, share)[0]
        result = transpose(sequence, [1, 0, 2]) if batch_first else sequence
        return (result, *[concat(kept, 0) for kept in ends])

    return build


def _run(
    step: Step, sequence: Value, carries: list[Value], weights: list[Value], reverse: bool
) -> tuple[list[Value], Value]:
    """Return the last carries and the outputs of all steps of one layer in one direction."""
    w_input, w_state, *biases = weights
    inputs = linear(sequence, w_input, biases[0] if biases else None)
    # Variables are made here, outside of the loop.
    turned_state, moves = turned(w_state), [as_array(b) for b in biases[1:]]

    def recur(h: Value) -> Value:
        found = matmul(h, turned_state)
        return elementwise(geon.add, found, moves[0]) if moves else found

    def body(old: list[Value], slices: list[Value]) -> tuple[list[Value], list[Value]]:
        new = step(slices[0], old, recur)
        return new, [new[0]]

    last, values = scan_rows(body, carries, [inputs], sequence.shape[0], reverse)
    return last, values[0]


ROWS: Rows = {
    "lstm.input": layers(lstm_step, 2),
    "gru.input": layers(gru_step, 1),
    "rnn_tanh.input": layers(plain_step(geon.tanh), 1),
    "rnn_relu.input": layers(plain_step(geon.relu), 1),
}
