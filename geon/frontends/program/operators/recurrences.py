"""Recurrent operators over whole sequences: LSTM and GRU on the rows of sequences."""

from __future__ import annotations

from typing import Any

import geon

from ...positional.elementwise import elementwise
from ...positional.movement import Part, slices, split
from ...positional.products import matmul
from ...positional.reshaping import reshape
from ...positional.values import Value
from ..values import constant
from .control import recurrent
from .rows import Function, Row

ACTIVATIONS: dict[str, Function] = {
    "sigmoid": geon.sigmoid, "tanh": geon.tanh, "relu": geon.relu, "identity": lambda x: x,
}  # fmt: skip


def gru_step(x: Value, h: Value, weight: Value, gate: str, candidate: str,
             keeps_new: bool = True) -> tuple[Value, Value, Value]:  # fmt: skip
    """Return the candidate, the reset state and the new state of a GRU cell.

    ``x`` has the sums for update, reset and candidate, ``weight`` (D, 3 D) the recurrent weights.
    The update gate is the share of the candidate, or with ``keeps_new`` False that of the state.
    """
    s, t = ACTIVATIONS[gate], ACTIVATIONS[candidate]
    (u, r, c), (wu, wr, wc) = (split(v, 1, [h.shape[1]] * 3) for v in (x, weight))
    update = elementwise(lambda a, b: s(a + b), u, matmul(h, wu))
    reset = elementwise(lambda a, b, h: s(a + b) * h, r, matmul(h, wr), h)
    new = elementwise(lambda a, b: t(a + b), c, matmul(reset, wc))
    pair = (new, h) if keeps_new else (h, new)
    return new, reset, elementwise(lambda u, a, b: u * a + (1 - u) * b, update, *pair)


def gru_unit(x: Value, h: Value, weight: Value, bias: Value | None) -> tuple[Value, Value, Value]:
    """Return the gates, the reset state and the new state of a GRU cell.

    Input has the sums for update, reset and candidate; Weight (D, 3 D) the recurrent weights.
    """
    x = x if bias is None else elementwise(geon.add, x, bias)
    return gru_step(x, h, weight, "sigmoid", "tanh")


def lstm_unit(x: Value, previous: Value, *, forget_bias: float = 0.0) -> tuple[Value, Value]:
    """Return the state and output of an LSTM cell; X has the gates i, f, o and the candidate."""
    i, f, o, g = split(x, 1, [previous.shape[1]] * 4)
    s, t = geon.sigmoid, geon.tanh
    cell = elementwise(lambda i, f, g, c: s(f + forget_bias) * c + s(i) * t(g), i, f, g, previous)
    return cell, elementwise(lambda o, c: s(o) * t(c), o, cell)


def over_rows(
    step: Function, x: Value, weight: Value, states: list[Value | None], offsets: Value,
    positions: Value, is_reverse: bool,
) -> list[Value]:  # fmt: skip
    """Return the states after each row of sequences, with states (N, D) that begin as 0.

    ``step(row, *states)`` returns the new states.
    """
    shape = (offsets.shape[0] - 1, weight.shape[0])
    boot = [constant(0, shape, x.dtype) if v is None else v for v in states]

    def block(given: Any) -> list[Value]:
        new = step(*given)
        return [*new, *new]

    return recurrent([x], boot, [], offsets, positions, sub_block=block, is_reverse=is_reverse)[0]


def lstm(
    x: Value, h: Value | None, c: Value | None, weight: Value, bias: Value | None, offsets: Value,
    positions: Value, *, use_peepholes: bool = True, is_reverse: bool = False,
    gate_activation: str = "sigmoid", cell_activation: str = "tanh",
    candidate_activation: str = "tanh",
) -> tuple[Value, ...]:  # fmt: skip
    """Return the outputs and states of an LSTM (Hochreiter and Schmidhuber, 1997) after each row.

    Input (rows, 4 D) has the sums for the candidate, input, forget and output gates; Weight
    (D, 4 D) the recurrent weights in this order. Bias is (1, 4 D), or with peepholes (1, 7 D): the
    weights (D) of the state in the three gates come last. H0 and C0 (N, D) are 0 by default.
    """
    width = weight.shape[0]
    gate, out, new = (
        ACTIVATIONS[name] for name in (gate_activation, cell_activation, candidate_activation)
    )
    count = 7 if use_peepholes else 4
    peep: list[Value] = []
    if bias is not None:
        every = reshape(bias, [count * width])
        x = elementwise(geon.add, x, slices(every, {0: Part(0, 4 * width)}))
        peep = split(every, 0, [width] * count)[4:]

    def gated(total: Value, state: Value, k: int) -> Value:
        seen = elementwise(lambda a, s, p: a + p * s, total, state, peep[k]) if peep else total
        return elementwise(gate, seen)

    def step(row: Value, h: Value, c: Value) -> tuple[Value, Value]:
        g, i, f, o = split(elementwise(geon.add, row, matmul(h, weight)), 1, [width] * 4)
        kept, read = gated(f, c, 1), gated(i, c, 0)
        state = elementwise(lambda f, c, i, g: f * c + i * new(g), kept, c, read, g)
        return elementwise(lambda o, s: o * out(s), gated(o, state, 2), state), state

    return tuple(over_rows(step, x, weight, [h, c], offsets, positions, is_reverse))


def gru(
    x: Value, h: Value | None, weight: Value, bias: Value | None, offsets: Value, positions: Value,
    *, is_reverse: bool = False, origin_mode: bool = False, gate_activation: str = "sigmoid",
    activation: str = "tanh",
) -> Value:  # fmt: skip
    """Return the states of a GRU (Cho et al., 2014) after each row of sequences.

    Input (rows, 3 D) has the sums for the update and reset gates and the candidate; Weight (D, 3 D)
    the recurrent weights and Bias (1, 3 D) a bias in this order. H0 (N, D) is 0 by default. The
    update gate is the share of the candidate, or with origin_mode that of the old state.
    """
    x = x if bias is None else elementwise(geon.add, x, bias)

    def step(row: Value, h: Value) -> tuple[Value]:
        return (gru_step(row, h, weight, gate_activation, activation, not origin_mode)[2],)

    return over_rows(step, x, weight, [h], offsets, positions, is_reverse)[0]


SEQUENCES = "Weight@2 Bias?@2 Offsets@1 Positions@1"
ROWS = [
    Row("lstm_unit", lstm_unit, "", "X@2 C_prev@2", "C H"),
    Row(
        "gru_unit",
        gru_unit,
        "",
        "Input@2 HiddenPrev@2 Weight@2 Bias?",
        "Gate~ ResetHiddenPrev~ Hidden",
    ),
    Row("lstm", lstm, "", f"Input@2 H0?@2 C0?@2 {SEQUENCES}", "Hidden Cell"),
    Row("gru", gru, "", f"Input@2 H0?@2 {SEQUENCES}", "Hidden"),
]
