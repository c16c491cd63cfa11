"""``Convolution2D`` and ``Pooling2D``, over images (T, B, height, width, channels)."""

from __future__ import annotations

from collections import OrderedDict
from typing import Any

import geon

from ..handlers.operations import convolve, pool
from ..structure.buffer_structure import BufferStructure, StructureTemplate
from .arguments import SIZE, activation_of, argument, pair
from .base_layer import Layer, constructor
from .symbols import Symbols

PADDING = argument("it needs an integer of at least 0", lambda n: isinstance(n, int) and n >= 0, 0)
IMAGES = StructureTemplate("T", "B", "F", "F", "F")


class _WindowLayer(Layer):
    """A layer that computes from windows of images."""

    expected_inputs = {"default": IMAGES}
    kernel_size: Any
    stride: Any
    padding: Any

    def windows(self, shape: tuple[int, ...]) -> tuple[int, int]:
        """Return the height and width of the result; raise if no window fits into an image."""
        sizes = []
        for length, kernel, step in zip(shape[:2], self.kernel_size, self.stride, strict=True):
            rest = length + 2 * self.padding - kernel
            if rest < 0:
                raise self.refused(
                    f"kernel_size={self.kernel_size} does not fit into images of the shape {shape} "
                    f"with padding={self.padding}; use a smaller kernel, or pad"
                )
            sizes.append(rest // step + 1)
        return sizes[0], sizes[1]


def as_images(x: Any, features: str = "hwc") -> Any:
    """Return a tensor over (T, B, height, width, channels) with features of these names."""
    t, b, *lengths = x.axes
    named = [geon.Axis(n, axis.length) for n, axis in zip(features, lengths, strict=True)]
    return geon.cast_axes(x, [t, b, *named])


class Convolution2DLayerImpl(_WindowLayer):
    """A convolution with ``num_filters`` filters of the size (height, width).

    W has the shape (filters, height, width, channels); H is before the activation.
    """

    num_filters = SIZE
    kernel_size, stride, padding = pair(), pair((1, 1)), PADDING
    activation = activation_of("rel")

    def setup(self, kwargs: Any, in_shapes: Any) -> Any:
        """Return the shapes of W, bias and H."""
        shape = in_shapes["default"].feature_shape
        made = ("T", "B", *self.windows(shape), self.num_filters)
        parameters = OrderedDict(
            W=BufferStructure(self.num_filters, *self.kernel_size, shape[2]),
            bias=BufferStructure(self.num_filters),
        )
        internals = OrderedDict(
            H=BufferStructure(*made), dH=BufferStructure(*made, is_backward_only=True)
        )
        return OrderedDict(default=BufferStructure(*made)), parameters, internals

    def forward(self, buffers: Symbols) -> Any:
        """Return the activation of the convolution plus the bias."""
        w, bias = buffers.parameters.values()
        w = geon.cast_axes(
            w, [geon.Axis(name, axis.length) for name, axis in zip("crsi", w.axes, strict=True)]
        )
        bias = geon.cast_axes(bias, [geon.Axis("c", bias.axes[0].length)])
        convolution = convolve(self.kernel_size, self.padding, self.stride)
        h = convolution(as_images(buffers.inputs.default, "hwi"), w, bias)
        return {"default": self.activation(h)}, {"H": h}


class Pooling2DLayerImpl(_WindowLayer):
    """The largest element (``max``) or the mean (``avg``) of each window of an image.

    A mean counts padding as 0.
    """

    kernel_size = pair()
    type = argument("there are 'max', 'avg'", lambda kind: kind in ("max", "avg"), "max")
    stride, padding = pair((1, 1)), PADDING

    def setup(self, kwargs: Any, in_shapes: Any) -> Any:
        """Return the shape of the output."""
        shape = in_shapes["default"].feature_shape
        made = BufferStructure("T", "B", *self.windows(shape), shape[2])
        if self.padding >= min(self.kernel_size):
            raise self.refused(
                f"padding={self.padding} is not below kernel_size="
                f"{self.kernel_size}, so that windows would lie in padding alone; pad less"
            )
        return OrderedDict(default=made), {}, {}

    def forward(self, buffers: Symbols) -> Any:
        """Return the pooled images."""
        pooling = pool(self.type, self.kernel_size, self.padding, self.stride)
        return {"default": pooling(as_images(buffers.inputs.default))}, {}


Convolution2D = constructor(Convolution2DLayerImpl)
Pooling2D = constructor(Pooling2DLayerImpl)
