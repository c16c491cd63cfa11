"""``FullyConnected``: a product with weights, a bias, and an activation function."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from typing import Any

import geon

from ..errors import LayerValidationError
from ..handlers.operations import ACTIVATIONS, activation
from ..structure.buffer_structure import BufferStructure
from ..structure.construction import ConstructionWrapper
from .base_layer import Layer, checked_size
from .symbols import Symbols, feature_axes


def FullyConnected(
    size: int, activation: str = "rel", name: str | None = None
) -> ConstructionWrapper:
    """``size`` units, each connected with all features of the input.

    ``activation`` is ``rel``, ``tanh``, ``sigmoid``, ``el`` or ``linear``.
    """
    return ConstructionWrapper.create(
        FullyConnectedLayerImpl, name=name, size=size, activation=activation
    )


def activation_of(layer: Layer, default: str) -> Callable[[Any], Any]:
    """Return the activation function of a layer's argument; raise for one that does not exist."""
    name = layer.kwargs.get("activation", default)
    if name != "linear" and name not in ACTIVATIONS:
        raise LayerValidationError(
            f"{layer.described}: activation={name!r}; there are "
            f"{', '.join(map(repr, [*ACTIVATIONS, 'linear']))}"
        )
    return activation(name)


class FullyConnectedLayerImpl(Layer):
    """See ``FullyConnected``: W is (size, inputs), the internal H is before the activation."""

    expected_kwargs = {"size", "activation"}

    def setup(self, kwargs: Any, in_shapes: Any) -> Any:
        """Return the shapes of W, bias and H."""
        self.size, self.activation = checked_size(self, "size"), activation_of(self, "rel")
        self.axis = geon.Axis("F0", self.size)
        outputs = OrderedDict(default=BufferStructure("T", "B", self.size))
        parameters = OrderedDict(
            W=BufferStructure(self.size, in_shapes["default"].feature_size),
            bias=BufferStructure(self.size),
        )
        internals = OrderedDict(
            H=BufferStructure("T", "B", self.size),
            dH=BufferStructure("T", "B", self.size, is_backward_only=True),
        )
        return outputs, parameters, internals

    def forward(self, buffers: Symbols) -> Any:
        """Return the activation of the product plus the bias."""
        (x,), (w, bias) = buffers.inputs.values(), buffers.parameters.values()
        inputs = [axis.prime for axis in feature_axes(x)]
        x = geon.cast_axes(x, [*x.axes[:2], *inputs])
        w = geon.cast_axes(w, [self.axis, geon.Axis("W", w.axes[1].length)])
        w = (
            geon.unflatten(w, "W", inputs)
            if len(inputs) != 1
            else geon.rename(w, {"W": inputs[0].name})
        )
        h = geon.dot(x, w, over=inputs) + bias
        return {"default": self.activation(h)}, {"H": h}
