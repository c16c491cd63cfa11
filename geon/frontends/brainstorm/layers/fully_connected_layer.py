"""``FullyConnected``: a product with weights, a bias, and an activation function."""

from __future__ import annotations

from collections import OrderedDict
from typing import Any

import geon

from ..structure.buffer_structure import BufferStructure
from ..utils import product
from .arguments import activation_of, argument, is_length
from .base_layer import Layer, constructor
from .symbols import Symbols, feature_axes

IN = "in"  # the axis of all features of an input


def _is_size(value: Any) -> bool:
    lengths = value if isinstance(value, (tuple, list)) else [value]
    return value is None or (len(lengths) > 0 and all(map(is_length, lengths)))


class FullyConnectedLayerImpl(Layer):
    """``size`` units, each connected with all features of the input.

    ``size`` is an integer, or the shape of the features, by default that of the input.
    ``activation`` is ``rel``, ``tanh``, ``sigmoid``, ``el`` or ``linear``. W has the shape (units,
    inputs); H is before the activation.
    """

    size = argument("it needs an integer of at least 1, or a tuple of such", _is_size, None)
    activation = activation_of("rel")

    def setup(self, kwargs: Any, in_shapes: Any) -> Any:
        """Return the shapes of W, bias and H."""
        size = in_shapes["default"].feature_shape if self.size is None else self.size
        self.size = tuple(size) if isinstance(size, (tuple, list)) else (size,)
        if not self.size:
            raise self.refused("the input has no features, so it needs a size=, such as size=1")
        units = product(self.size)
        self.axis = geon.Axis("F0", units)
        made = "T", "B", *self.size
        parameters = OrderedDict(
            W=BufferStructure(units, in_shapes["default"].feature_size),
            bias=BufferStructure(units),
        )
        internals = OrderedDict(
            H=BufferStructure(*made), dH=BufferStructure(*made, is_backward_only=True)
        )
        return OrderedDict(default=BufferStructure(*made)), parameters, internals

    def forward(self, buffers: Symbols) -> Any:
        """Return the activation of the product plus the bias."""
        w, bias = buffers.parameters.values()
        h = affine(buffers.inputs.default, w, bias, self.axis)
        if len(self.size) > 1:
            h = geon.unflatten(h, "F0", [geon.Axis(f"F{k}", n) for k, n in enumerate(self.size)])
        return {"default": self.activation(h)}, {"H": h}


def affine(x: Any, weights: Any, bias: Any, units: geon.Axis) -> Any:
    """Return x over (T, B, features) times weights over (units, inputs), plus the bias."""
    features = feature_axes(x)
    if len(features) == 1:  # a renamed axis, other than a flattened one, ends no kernel
        x = geon.rename(x, {features[0]: IN})
    elif features:
        x = geon.flatten(x, features, geon.Axis(IN))
    else:
        x = geon.expand(x, geon.Axis(IN, 1))
    return geon.dot(x, geon.cast_axes(weights, [units, x.axes[IN]]), over=[IN]) + bias


FullyConnected = constructor(FullyConnectedLayerImpl)
