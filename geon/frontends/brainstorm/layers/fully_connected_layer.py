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
from ..utils import product
from .base_layer import Layer, is_length
from .symbols import Symbols, feature_axes

IN = "in"  # the axis of all features of an input


def FullyConnected(
    size: int | tuple[int, ...] | None = None, activation: str = "rel", name: str | None = None
) -> ConstructionWrapper:
    """``size`` units, each connected with all features of the input.

    ``size`` is an integer, or the shape of the features, by default that of the input.
    ``activation`` is ``rel``, ``tanh``, ``sigmoid``, ``el`` or ``linear``.
    """
    given = {} if size is None else {"size": size}
    return ConstructionWrapper.create(
        FullyConnectedLayerImpl, name=name, activation=activation, **given
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
    """See ``FullyConnected``: W has the shape (units, inputs); H is before the activation."""

    expected_kwargs = {"size", "activation"}

    def setup(self, kwargs: Any, in_shapes: Any) -> Any:
        """Return the shapes of W, bias and H."""
        size = kwargs.get("size", in_shapes["default"].feature_shape)
        self.size = tuple(size) if isinstance(size, (tuple, list)) else (size,)
        if not self.size or not all(is_length(n) for n in self.size):
            raise LayerValidationError(
                f"{self.described}: size={size!r}; it needs an integer of at least 1, or a tuple "
                "of such"
            )
        self.activation = activation_of(self, "rel")
        units = product(self.size)
        self.axis = geon.Axis("F0", units)
        outputs = OrderedDict(default=BufferStructure("T", "B", *self.size))
        parameters = OrderedDict(
            W=BufferStructure(units, in_shapes["default"].feature_size),
            bias=BufferStructure(units),
        )
        internals = OrderedDict(
            H=BufferStructure("T", "B", *self.size),
            dH=BufferStructure("T", "B", *self.size, is_backward_only=True),
        )
        return outputs, parameters, internals

    def forward(self, buffers: Symbols) -> Any:
        """Return the activation of the product plus the bias."""
        (x,), (w, bias) = buffers.inputs.values(), buffers.parameters.values()
        h = affine(x, w, bias, self.axis)
        if len(self.size) > 1:
            h = geon.unflatten(h, "F0", [geon.Axis(f"F{k}", n) for k, n in enumerate(self.size)])
        return {"default": self.activation(h)}, {"H": h}


def affine(x: Any, weights: Any, bias: Any, units: geon.Axis) -> Any:
    """Return x over (T, B, features) times weights over (units, inputs), plus the bias."""
    first, *others = feature_axes(x)
    x = geon.flatten(x, [first, *others], geon.Axis(IN)) if others else geon.rename(x, {first: IN})
    return geon.dot(x, geon.cast_axes(weights, [units, x.axes[IN]]), over=[IN]) + bias
