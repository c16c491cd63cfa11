"""Layers with memory: ``Recurrent``, ``Lstm``, ``Clockwork`` and ``ClockworkLstm``.

Their outputs have a context of one step: row -1 is the output before the first step.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from typing import Any

import geon

from ..structure.buffer_structure import BufferStructure
from .arguments import SIZE, activation_of
from .base_layer import Layer, constructor
from .fully_connected_layer import affine
from .symbols import Symbols, T

OLD = "old"  # the axis of the units one step before
GATES = "zifo"  # block input, input gate, forget gate, output gate


class _RecurrentLayer(Layer):
    """Base of layers that are a loop over steps."""

    size, activation = SIZE, activation_of("tanh")
    has_clock = False

    def begin(self, in_shapes: Any) -> tuple[int, int]:
        """Return the numbers of units and of features."""
        self.units, self.old = geon.Axis("F0", self.size), geon.Axis(OLD, self.size)
        return self.size, in_shapes["default"].feature_size

    def series(self, context: int = 0, backward: bool = False) -> BufferStructure:
        """Return the structure of a value of each unit in each step."""
        return BufferStructure("T", "B", self.size, context_size=context, is_backward_only=backward)

    def products(self, buffers: Symbols, names: Mapping[str, str]) -> dict[str, Any]:
        """Return the products of the input with each of these weights, plus their biases."""
        p = buffers.parameters
        return {
            weights: affine(buffers.inputs.default, p[weights], p[bias], self.units)
            for weights, bias in names.items()
        }

    def recurrent(self, y: Any, weights: Any) -> Any:
        """Return the product of the units one step before with recurrent weights."""
        y = geon.rename(y, {"F0": OLD})
        return geon.dot(y, geon.cast_axes(weights, [self.units, self.old]), over=[OLD])

    def is_active(self, buffers: Symbols) -> Any:
        """Return a tensor that is True in the steps in which a unit changes."""
        step = geon.cast(geon.iota(T), buffers.inputs.default.dtype)
        timing = buffers.parameters.timing
        steps = geon.broadcast(step, [T, self.units])
        return geon.equal(geon.mod(steps, geon.broadcast(timing, [T, self.units])), 0)

    def held(self, active: Any, new: Any, old: Any) -> Any:
        """Return new values of the units that are active in a step, old ones of the others."""
        return geon.reorder(geon.where(active, new, old), old.axes) if self.has_clock else new


class RecurrentLayerImpl(_RecurrentLayer):
    """``size`` units, each connected with all features of the input and with all units before.

    The internal Ha is before the activation.
    """

    def setup(self, kwargs: Any, in_shapes: Any) -> Any:
        """Return the shapes of W, R, bias and internals."""
        size, features = self.begin(in_shapes)
        parameters = OrderedDict(
            W=BufferStructure(size, features),
            R=BufferStructure(size, size),
            bias=BufferStructure(size),
        )
        if self.has_clock:
            parameters["timing"] = BufferStructure(size)
        internals = OrderedDict(
            Ha=self.series(1), dHa=self.series(1, True), dHb=self.series(1, True)
        )
        return OrderedDict(default=self.series(1)), parameters, internals

    def forward(self, buffers: Symbols) -> Any:
        """Return the units of all steps."""
        x = self.products(buffers, {"W": "bias"})["W"]
        xs = [x, buffers.probe("Ha"), buffers.probe("Hb")]
        xs.append(self.is_active(buffers) if self.has_clock else None)
        weights = buffers.parameters.R

        def step(y: Any, xs: Any) -> Any:
            h = xs[0] + self.recurrent(y, weights) + xs[1]
            new = self.held(xs[3], self.activation(h), y) + xs[2]
            return new, {"y": new, "Ha": h}

        _, values = geon.scan(step, buffers.before.default, xs, over=T, name=self.name)
        return {"default": values["y"]}, {"Ha": values["Ha"]}


class ClockworkLayerImpl(RecurrentLayerImpl):
    """Recurrent units that change only in steps that are a multiple of their ``timing``.

    The parameter ``timing`` has no gradient. J. Koutnik et al., "A clockwork RNN", ICML 2014.
    """

    has_clock = True
    computes_no_gradients_for = ("timing",)


class LstmLayerImpl(_RecurrentLayer):
    """``size`` long short-term memory cells with peepholes.

    Z, I, F, O are the block input and the gates, with a before and b after the activation. Ca is
    the state of the cells, Cb its activation. S. Hochreiter and J. Schmidhuber, "Long short-term
    memory", 1997; F. Gers and J. Schmidhuber, "Recurrent nets that time and count", 2000.
    """

    def setup(self, kwargs: Any, in_shapes: Any) -> Any:
        """Return the shapes of parameters and internals."""
        size, features = self.begin(in_shapes)
        parameters = OrderedDict()
        for prefix, shape in (
            ("W", (size, features)),
            ("p", (size,)),
            ("R", (size, size)),
            ("b", (size,)),
        ):
            for gate in GATES if prefix != "p" else GATES[1:]:
                parameters[prefix + gate] = BufferStructure(*shape)
        if self.has_clock:
            parameters["timing"] = BufferStructure(size)
        internals = OrderedDict()
        for name in LSTM_VALUES:
            internals[name] = self.series(1)
            internals[f"d{name}"] = self.series(1, True)
        return OrderedDict(default=self.series(1)), parameters, internals

    def forward(self, buffers: Symbols) -> Any:
        """Return the units of all steps, and the values of gates and cells."""
        p = buffers.parameters
        xs = {
            "x": self.products(buffers, {f"W{gate}": f"b{gate}" for gate in GATES}),
            "probe": {name: buffers.probe(name) for name in LSTM_VALUES},
            "active": self.is_active(buffers) if self.has_clock else None,
        }

        def step(carry: Any, xs: Any) -> Any:
            y, cell = carry
            values: dict[str, Any] = {}

            def keep(name: str, value: Any) -> Any:
                values[name] = value + xs["probe"][name]
                return values[name]

            def gate(name: str, peephole: Any = None) -> Any:
                before = xs["x"][f"W{name}"] + self.recurrent(y, p[f"R{name}"])
                if peephole is not None:
                    before = before + p[f"p{name}"] * peephole
                before = keep(f"{name.upper()}a", before)
                function = self.activation if name == "z" else geon.sigmoid
                return keep(f"{name.upper()}b", function(before))

            z, i, f = gate("z"), gate("i", cell), gate("f", cell)
            new_cell = keep("Ca", self.held(xs["active"], i * z + f * cell, cell))
            o = gate("o", new_cell)
            new = self.held(xs["active"], o * keep("Cb", self.activation(new_cell)), y)
            return (new, new_cell), {"y": new, **values}

        before = buffers.before
        _, values = geon.scan(step, (before.default, before.Ca), xs, over=T, name=self.name)
        return {"default": values.pop("y")}, values


LSTM_VALUES = ("Za", "Zb", "Ia", "Ib", "Fa", "Fb", "Oa", "Ob", "Ca", "Cb")


class ClockworkLstmLayerImpl(LstmLayerImpl):
    """Long short-term memory cells that change only in multiples of their ``timing``.

    The parameter ``timing`` has no gradient.
    """

    has_clock = True
    computes_no_gradients_for = ("timing",)


Recurrent = constructor(RecurrentLayerImpl)
Lstm = constructor(LstmLayerImpl)
Clockwork = constructor(ClockworkLayerImpl)
ClockworkLstm = constructor(ClockworkLstmLayerImpl)
