"""Recurrent layers: RNN, GRU and LSTM."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import geon

from ....errors import ArgumentError
from ...positional.indexing import select
from ...positional.regions import STEPS
from ...positional.reshaping import transpose
from ...positional.values import Value, array, as_array, fresh, full_tensor
from ..table import NodeInfo, row
from .activation import FUNCTIONS

Tensor = geon.Tensor
Function = Callable[[Tensor], Tensor]


# By name: functions of a tensor, alpha and beta.
ACTIVATIONS: dict[str, Callable[..., Tensor]] = {
    **{
        name.lower(): FUNCTIONS[name]
        for name in ("Elu", "HardSigmoid", "LeakyRelu", "Relu", "Sigmoid", "Softplus", "Softsign")
    },
    "affine": lambda x, alpha=1.0, beta=0.0: alpha * x + beta,
    "scaledtanh": lambda x, alpha=1.0, beta=1.0: alpha * geon.tanh(beta * x),
    "tanh": geon.tanh,
    "thresholdedrelu": lambda x, alpha=1.0: geon.where(x >= alpha, x, 0),
}


@dataclass(frozen=True, eq=False)
class Cell:
    """A cell: the numbers of its gates and states, its activations and its step.

    ``step`` takes the weighted input of each gate, the states, and the ``Weights``.
    """

    gates: int
    states: int
    activations: tuple[str, ...]
    step: Callable[[list[Tensor], list[Tensor], Weights], list[Tensor]]


@dataclass(frozen=True, eq=False)
class Weights:
    """The weights of one direction, and the options of the node.

    ``entering`` are those of inputs, and ``recurrent`` those of states, whose hidden axis is called
    ``inner`` there; both have the gates joined along ``GATES``. The biases of each and the
    peepholes are vectors for each gate, or empty.
    """

    hidden: geon.Axis
    inner: str
    entering: Tensor
    recurrent: Tensor
    bias: list[Tensor]
    recurrent_bias: list[Tensor]
    peepholes: list[Tensor]
    functions: Sequence[Function]
    clip: float | None
    options: dict[str, int]

    def product(self, h: Tensor, first: int, last: int) -> list[Tensor]:
        """Return the product of a state with the recurrent weights of gates, with their bias."""
        size = int(self.hidden.expression)  # a weight's length is known
        part = self.recurrent[{GATES: slice(first * size, last * size)}]
        whole = geon.dot(h.rename({self.hidden.name: self.inner}), part)
        return summed(gates_of(whole, self.hidden, last - first), self.recurrent_bias[first:last])

    def apply(self, number: int, x: Tensor) -> Tensor:
        """Return an activation of ``x``, which is limited before on request."""
        limited = x if self.clip is None else geon.clip(x, -self.clip, self.clip)
        return self.functions[number](limited)

    def peep(self, number: int, x: Tensor, c: Tensor) -> Tensor:
        """Return ``x`` with a cell state through a peephole, if there are any."""
        return x + self.peepholes[number] * c if self.peepholes else x


GATES = "gates"


def summed(x: list[Tensor], bias: list[Tensor]) -> list[Tensor]:
    """Return the sums with a bias of each gate, if there is one."""
    return [a + b for a, b in zip(x, bias, strict=True)] if bias else x


def gates_of(whole: Tensor, hidden: geon.Axis, count: int) -> list[Tensor]:
    """Return the parts of the joined axis of gates, each over the hidden axis."""
    size = int(hidden.expression)  # a weight's length is known
    parts = [whole[{GATES: slice(k * size, (k + 1) * size)}] for k in range(count)]
    return [part.rename({GATES: hidden.name}) for part in parts]


def rnn_step(x: list[Tensor], states: list[Tensor], w: Weights) -> list[Tensor]:
    """Return the next state of a simple network."""
    return [w.apply(0, x[0] + w.product(states[0], 0, 1)[0])]


def gru_step(x: list[Tensor], states: list[Tensor], w: Weights) -> list[Tensor]:
    """Return the next state of gated units: the gates are update, reset and hidden."""
    (h,) = states
    update, reset = [w.apply(0, a + b) for a, b in zip(x[:2], w.product(h, 0, 2), strict=True)]
    if w.options["linear_before_reset"]:
        inner = reset * w.product(h, 2, 3)[0]
    else:
        (inner,) = w.product(reset * h, 2, 3)
    return [(1 - update) * w.apply(1, x[2] + inner) + update * h]


def lstm_step(x: list[Tensor], states: list[Tensor], w: Weights) -> list[Tensor]:
    """Return the next output and cell state: the gates are input, output, forget and cell."""
    h, c = states
    enter, leave, forget, cell = [a + b for a, b in zip(x, w.product(h, 0, 4), strict=True)]
    entered = w.apply(0, w.peep(0, enter, c))
    kept = 1 - entered if w.options["input_forget"] else w.apply(0, w.peep(2, forget, c))
    new = kept * c + entered * w.apply(1, cell)  # which ``clip`` does not limit
    return [w.apply(0, w.peep(1, leave, new)) * w.functions[2](new), new]


CELLS = {
    "RNN": Cell(1, 1, ("Tanh",), rnn_step),
    "GRU": Cell(3, 1, ("Sigmoid", "Tanh"), gru_step),
    "LSTM": Cell(4, 2, ("Sigmoid", "Tanh", "Tanh"), lstm_step),
}
DIRECTIONS = {"forward": (False,), "reverse": (True,), "bidirectional": (False, True)}


def functions_of(
    names: Sequence[str], alphas: Sequence[float], betas: Sequence[float]
) -> list[Function]:
    """Return activations by name; those with parameters take them from the lists, in order."""
    left = {"alpha": iter(alphas), "beta": iter(betas)}
    found: list[Function] = []
    for name in names:
        if name.lower() not in ACTIVATIONS:
            raise ArgumentError(f"{name!r} is no activation of recurrent layers")
        f = ACTIVATIONS[name.lower()]
        own = inspect.signature(f).parameters
        given = {k: next(left[k], own[k].default) for k in ("alpha", "beta") if k in own}
        found.append(partial(f, **given))
    return found


def recurrent(
    x: Value,
    w: Value,
    r: Value,
    b: Value | None = None,
    lengths: Value | None = None,
    h0: Value | None = None,
    c0: Value | None = None,
    p: Value | None = None,
    /,
    *,
    node: NodeInfo,
    activations: Sequence[str] | None = None,
    activation_alpha: Sequence[float] = (),
    activation_beta: Sequence[float] = (),
    clip: float | None = None,
    direction: str = "forward",
    hidden_size: int | None = None,
    input_forget: int = 0,
    layout: int = 0,
    linear_before_reset: int = 0,
) -> tuple[Value, ...]:
    """Return the states at all times and the last ones, for each direction."""
    cell = CELLS[node.operator]
    ways = DIRECTIONS[direction.lower()]
    hidden = r.shape[2]
    if hidden_size not in (None, hidden) or w.shape[1] != cell.gates * hidden:
        raise ArgumentError(
            f"hidden_size {hidden_size}, weights {w} and recurrent weights {r} do not fit for "
            f"{cell.gates} gates"
        )
    names = list(activations or cell.activations * len(ways))
    if len(names) < len(cell.activations) * len(ways):  # the default of RNN has two for one
        raise ArgumentError(f"{len(names)} activations for {len(ways)} directions")
    functions = functions_of(names, activation_alpha, activation_beta)
    if layout:
        x = transpose(x, [1, 0, 2])
        h0, c0 = [None if v is None else transpose(v, [1, 0, 2]) for v in (h0, c0)]
    sequence = full_tensor(x)
    time, batch, features = sequence.axes
    sequence = sequence.rename({time.name: STEPS})
    unit = geon.Axis(fresh("hidden", [batch.name, features.name]), hidden)
    inner = unit.named(fresh("hidden_in", [batch.name, features.name]))
    ways_axis, gates = geon.Axis("direction", len(ways)), geon.Axis(GATES)

    def part(value: Value, number: int, *axes: geon.Axis) -> Tensor:
        """Return the weights or states of one direction over these axes."""
        whole = as_array(value, [ways_axis, *axes])
        return _over(select(whole, 0, number), axes)

    ends = None if lengths is None else _over(lengths, [batch])
    outputs: list[list[Tensor]] = []
    for number, is_reversed in enumerate(ways):
        bias = [] if b is None else gates_of(part(b, number, gates), unit, 2 * cell.gates)
        weights = Weights(
            unit,
            inner.name,
            part(w, number, gates, features),
            part(r, number, gates, inner),
            bias[: cell.gates],
            bias[cell.gates :],
            [] if p is None else gates_of(part(p, number, gates), unit, 3),
            functions[number * len(cell.activations) :],
            clip,
            {"input_forget": input_forget, "linear_before_reset": linear_before_reset},
        )
        zero = geon.cast(0, x.dtype)
        initial = [
            geon.broadcast(zero if v is None else part(v, number, batch, unit), [batch, unit])
            for v in (h0, c0)[: cell.states]
        ]
        outputs.append(_direction(cell, sequence, weights, initial, ends, is_reversed))
    y, *last = [geon.stack(list(each), ways_axis) for each in zip(*outputs, strict=True)]
    dims = [ways_axis.name, batch.name, unit.name]
    first = fresh(time.name, dims)
    shown: Value = array(y.rename({STEPS: first}), [first, *dims])
    states: list[Value] = [array(each, dims) for each in last]
    if layout:
        shown, states = transpose(shown, [2, 0, 1, 3]), [transpose(v, [1, 0, 2]) for v in states]
    return (shown, *states)


def _over(value: Value, axes: Sequence[geon.Axis]) -> Tensor:
    """Return the tensor of a value with the names of ``axes``."""
    tensor = full_tensor(as_array(value, axes))
    pairs = zip(tensor.axes, axes, strict=True)
    return tensor.rename({old.name: new.name for old, new in pairs if old.name != new.name})


def _direction(
    cell: Cell,
    sequence: Tensor,
    weights: Weights,
    initial: list[Tensor],
    ends: Tensor | None,
    is_reversed: bool,
) -> list[Tensor]:
    """Return the outputs of all steps and the last states of one direction."""

    def step(states: list[Tensor], given: tuple[Tensor, Tensor]) -> tuple[list[Tensor], Tensor]:
        x, time = given
        entering = gates_of(geon.dot(x, weights.entering), weights.hidden, cell.gates)
        new = cell.step(summed(entering, weights.bias), states, weights)
        shown = new[0]
        if ends is not None:  # after the end of a sequence states stay, and outputs are 0
            inside = geon.less(time, ends)
            shown = geon.where(inside, new[0], 0)
            new = [geon.where(inside, a, b) for a, b in zip(new, states, strict=True)]
        pairs = zip([*new, shown], [*states, states[0]], strict=True)
        *carried, shown = [geon.cast(geon.reorder(t, s.axes), s.dtype) for t, s in pairs]
        return carried, shown

    axis = sequence.axes[STEPS]
    xs = (sequence, geon.iota(axis))
    last, shown = geon.scan(step, initial, xs, over=axis, reverse=is_reversed)
    return [shown, *last]


ROWS = [row(name, recurrent) for name in CELLS]
