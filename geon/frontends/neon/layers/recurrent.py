"""Recurrent layers: ``Recurrent``, ``LSTM``, ``GRU`` and ``BiRNN``, each one ``geon.scan``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ....errors import ArgumentError, AxisError, DTypeError
from ....op_graph.axes.axes import Axes, Axis, as_axes
from ....op_graph.building.constants import as_tensor
from ....op_graph.building.resolve_axes import axis_of
from ....op_graph.core.source_info import user_call
from ....op_graph.op_graph import Leaf, Tensor
from ....op_graph.regions.scan import scan
from ....op_graph.rows.concatenation import concat
from ....op_graph.rows.contraction import dot
from ....op_graph.rows.elementwise import cast, sigmoid, where
from ....op_graph.rows.movement import broadcast, cast_axes, reorder
from ....op_graph.rows.trigonometry import tanh
from ..axis import T, feature_axes
from ..checks import a_function
from .axes import made_apart, resolve_over
from .layer import Layer, Training, parameter_dtype

if TYPE_CHECKING:
    from ....op_graph.building.typing import AxesLike, AxisLike, NewAxes, TensorLike
    from ..initialisers import First
    from .cache import Cache

State = tuple[Tensor, ...]


@dataclass(frozen=True)
class ForgetBias:
    """Initialiser of an ``LSTM``'s bias: ``value`` for the forget gate, 0 for the others.

    R. Jozefowicz, W. Zaremba and I. Sutskever, "An empirical exploration of recurrent network
    architectures", ICML 2015.
    """

    value: float = 1.0

    def __call__(self, axes: Axes, inputs: Axes, outputs: Axes) -> Callable[[Axes], Any]:
        chosen = [self.value if gate == "forget" else 0.0 for gate in LSTM.gates]
        along = [len(chosen) if axis.name == "gate" else 1 for axis in axes]
        return lambda axes: np.broadcast_to(
            np.reshape(chosen, along), [int(length) for length in axes.lengths]
        )


class Recurrence(Layer):
    """Base of recurrent layers with a state over ``axes``; a subclass defines ``cell``.

    For each gate, ``x`` is multiplied by weights ``w``, the state by ``u``, and a bias ``b`` is
    added. The layer sums over ``over``, or all axes of ``x`` but N and T, and iterates along
    ``along``, T by default, from its end with ``reverse``. The result is the state at all times, or
    with ``last`` that after the last step.
    """

    remembers = True
    gates: tuple[str, ...]
    carries = 1  # number of tensors in the state

    def __init__(
        self,
        axes: NewAxes,
        init: First,
        recurrent: First | None = None,
        bias: First = 0.0,
        *,
        over: AxesLike | None = None,
        along: AxisLike = T,
        reverse: bool = False,
        last: bool = False,
        name: str | None = None,
    ) -> None:
        super().__init__(name)
        self.axes, self.init, self.bias = as_axes(axes), init, bias
        self.recurrent = init if recurrent is None else recurrent
        self.over, self.along, self.reverse, self.last = over, along, reverse, last

    def forward(
        self,
        x: Tensor,
        training: Training | None = None,
        state: Sequence[TensorLike] | None = None,
        mask: TensorLike | None = None,
        cache: Cache | None = None,
    ) -> Tensor:
        """The states at all times, or the last one; ``state`` and ``mask`` as in ``unrolled``.

        With ``cache``, it starts from the state after the earlier calls. Raises ``ArgumentError``
        for a cache together with a ``state``, or in a layer with ``reverse``.
        """
        if cache is None:
            y, end = self.unrolled(x, state, mask)
        else:
            y, end = self.remembered(x, state, mask, cache)
        return end[0] if self.last else y

    def remembered(
        self,
        x: Tensor,
        state: Sequence[TensorLike] | None,
        mask: TensorLike | None,
        cache: Cache,
    ) -> tuple[Tensor, State]:
        """Return ``unrolled`` from the state in the cache, and store the last state there."""
        if state is not None or self.reverse:
            raise ArgumentError(
                f"{user_call(self)}: a cache has the state after the times before, so there is no "
                "state= beside it, nor a layer that goes from the end; leave cache= out"
            )
        along = axis_of(x, self.along, repr(self))
        inputs = resolve_over(x, self.over, feature_axes(x.axes).without([along]), repr(self))
        whole = Axes(x.axes.without(inputs).without([along]), self.axes)
        cache.enter(self, x, along)
        names = [f"state.{number}" for number in range(self.carries)]
        kept = [cache.state(whole, parameter_dtype(x), name) for name in names]
        y, end = self.unrolled(x, [first for _, first in kept], mask)
        for (leaf, _), value in zip(kept, end, strict=True):
            cache.keep(leaf, value)
        return y, end

    def unrolled(
        self,
        x: Tensor,
        state: Sequence[TensorLike] | None = None,
        mask: TensorLike | None = None,
    ) -> tuple[Tensor, State]:
        """The states at all times, and the complete state after the last step.

        ``state`` is the initial state, a complete one; zeros by default. Where ``mask``, over the
        time and axes of the batch, is False, the state stays unchanged.
        """
        along = axis_of(x, self.along, repr(self))
        inputs = resolve_over(x, self.over, feature_axes(x.axes).without([along]), repr(self))
        x, inputs = made_apart(x, inputs, self.axes, repr(self))
        batch = x.axes.without(inputs).without([along])
        counts = None if mask is None else self.fitting_mask(as_tensor(mask), along, batch)
        if counts is not None:
            # Padding may be NaN, and gradients of w are sums over all times.
            x = where(counts, x, 0, axes=x.axes)
        dtype = parameter_dtype(x)
        gates = self.gate_axes()
        both = Axes(gates, self.axes)
        w = self.variable(
            "w", Axes(inputs, both), self.init, inputs=inputs, outputs=self.axes, dtype=dtype
        )
        old = self.old_axes(batch)
        u = self.variable(
            "u", Axes(old, both), self.recurrent, inputs=old, outputs=self.axes, dtype=dtype
        )
        b = self.variable("b", both, self.bias, outputs=both, dtype=dtype)
        whole = Axes(batch, self.axes)
        given = [0.0] * self.carries if state is None else list(state)
        if len(given) != self.carries:
            raise ArgumentError(
                f"{user_call(self)}: the state is {self.carries} tensors, and {len(given)} were "
                "given; give what unrolled returned"
            )
        first = tuple([start(value, whole, dtype) for value in given])
        parts = [dot(x, w, over=inputs) + b]
        if counts is not None:
            parts.append(counts)

        def step(state: State, parts: Sequence[Tensor]) -> tuple[State, Tensor]:
            before = cast_axes(state[0], Axes(batch, old))
            new = self.cell(state, parts[0], dot(before, u, over=old), dtype)
            if len(parts) > 1:
                new = tuple([where(parts[1], n, o) for n, o in zip(new, state, strict=True)])
            return new, new[0]

        end, y = scan(step, first, parts, over=along, reverse=self.reverse, name=self.name)
        return reorder(y, Axes(x.axes.without(inputs), self.axes)), end

    def cell(self, state: State, x: Tensor, h: Tensor, dtype: str) -> State:
        """Return the next state, from the state and the products of ``x`` and of the state."""
        raise NotImplementedError

    def gate_axes(self) -> Axes:
        """Return the axis of the gates; none for a single gate."""
        return Axes(Axis("gate", len(self.gates))) if len(self.gates) > 1 else Axes()

    def old_axes(self, batch: Axes) -> Axes:
        """Return the axes of the state under unused names."""
        found = []
        for axis in self.axes:
            axis = axis.prime
            while axis in batch or axis in self.axes:
                axis = axis.prime
            found.append(axis)
        return as_axes(found)

    def fitting_mask(self, mask: Tensor, along: Axis, batch: Axes) -> Tensor:
        """Return a mask of truth values over the time and axes of the batch.

        Raise ``AxisError`` or ``DTypeError`` for another.
        """
        if along not in mask.axes or len(mask.axes.without([along]).without(batch)):
            raise AxisError(
                f"{user_call(self)}: the mask {mask} (made at {mask.line_info}) is not over "
                f"{along} and axes of the batch {batch}; give one that is"
            )
        if mask.dtype.name != "bool":
            raise DTypeError(
                f"{user_call(self)}: the mask {mask} (made at {mask.line_info}) is "
                f"{mask.dtype.name}; give truth values, which hold where a time counts"
            )
        return mask


class Recurrent(Recurrence):
    """h = activation(x w + h u + b), where the activation is tanh by default."""

    gates = ("state",)

    def __init__(
        self,
        axes: NewAxes,
        init: First,
        recurrent: First | None = None,
        bias: First = 0.0,
        activation: Callable[[Tensor], Tensor] = tanh,
        *,
        over: AxesLike | None = None,
        along: AxisLike = T,
        reverse: bool = False,
        last: bool = False,
        name: str | None = None,
    ) -> None:
        super().__init__(
            axes, init, recurrent, bias,
            over=over, along=along, reverse=reverse, last=last, name=name,
        )  # fmt: skip
        a_function("Recurrent", "activation", activation)
        self.activation = activation

    def cell(self, state: State, x: Tensor, h: Tensor, dtype: str) -> State:
        """Return the activation of the sum."""
        return (self.activation(x + h),)


class LSTM(Recurrence):
    """Long short-term memory; its state is the output h and the cell state c.

    c = forget c + input cell and h = output tanh(c), where the gates are sigmoids of their sums and
    cell is a tanh. S. Hochreiter and J. Schmidhuber, "Long short-term memory", Neural Computation,
    1997; F. Gers, J. Schmidhuber and F. Cummins, "Learning to forget", Neural Computation, 2000.
    """

    gates = ("input", "forget", "cell", "output")
    carries = 2

    def cell(self, state: State, x: Tensor, h: Tensor, dtype: str) -> State:
        """Return the next h and c."""
        enter, forget, cell, output = parts_of(x + h, 4)
        held = sigmoid(forget) * state[1] + sigmoid(enter) * tanh(cell)
        return sigmoid(output) * tanh(held), held


class GRU(Recurrence):
    """Gated recurrent units: h = (1 - update) new + update h.

    new = tanh(x part + reset (h part + ``bu``)), with a bias ``bu``; update and reset are sigmoids
    of their sums. K. Cho and others, "Learning phrase representations using RNN encoder-decoder for
    statistical machine translation", EMNLP 2014.
    """

    gates = ("reset", "update", "new")

    def cell(self, state: State, x: Tensor, h: Tensor, dtype: str) -> State:
        """Return the next h."""
        reset_x, update_x, new_x = parts_of(x, 3)
        reset_h, update_h, new_h = parts_of(h, 3)
        bu: Leaf = self.variable("bu", self.axes, 0.0, outputs=self.axes, dtype=dtype)
        update = sigmoid(update_x + update_h)
        new = tanh(new_x + sigmoid(reset_x + reset_h) * (new_h + bu))
        return ((1 - update) * new + update * state[0],)


class BiRNN(Layer):
    """Two recurrent layers, one from each end, with their results concatenated along ``axis``.

    The axis is that of the forward layer's state, if it has only one.
    """

    def __init__(
        self,
        forward: Recurrence,
        backward: Recurrence,
        axis: AxisLike | None = None,
        *,
        name: str | None = None,
    ) -> None:
        super().__init__(name)
        for layer in (forward, backward):
            if not isinstance(layer, Recurrence):
                raise ArgumentError(
                    f"BiRNN: {layer!r} does not go along time; give a neon.Recurrent, neon.LSTM or "
                    "neon.GRU"
                )
        if forward.reverse or not backward.reverse:
            raise ArgumentError(
                "BiRNN: the first layer goes forward and the second one back; give the second, "
                "and it alone, reverse=True"
            )
        if axis is None and len(forward.axes) != 1:
            raise AxisError(f"BiRNN: the states are over {forward.axes}; say which with axis=")
        self.axis = forward.axes[0] if axis is None else axis
        self.ahead, self.back = forward, backward

    def forward(
        self, x: Tensor, training: Training | None = None, mask: TensorLike | None = None
    ) -> Tensor:
        """The concatenated results of both; ``mask`` as in the layers."""
        both = [layer(x, training=training, mask=mask) for layer in (self.ahead, self.back)]
        return concat(both, self.axis)


def parts_of(x: Tensor, count: int) -> list[Tensor]:
    """Return the part of each gate."""
    return [x[{"gate": number}] for number in range(count)]


def start(value: TensorLike, axes: Axes, dtype: str) -> Tensor:
    """Return an initial state over the axes of the batch and the state."""
    return broadcast(cast(as_tensor(value), dtype), axes)
