"""``Convolution2D`` and ``Pooling2D``, over images (T, B, height, width, channels)."""

from __future__ import annotations

from collections import OrderedDict
from typing import Any

import geon

from ..errors import LayerValidationError
from ..handlers.operations import convolve, pool
from ..structure.buffer_structure import BufferStructure, StructureTemplate
from ..structure.construction import ConstructionWrapper
from .base_layer import Layer, checked_size
from .fully_connected_layer import activation_of
from .symbols import Symbols

IMAGES = StructureTemplate("T", "B", "F", "F", "F")


def Convolution2D(
    num_filters: int,
    kernel_size: tuple[int, int],
    stride: tuple[int, int] = (1, 1),
    padding: int = 0,
    activation: str = "rel",
    name: str | None = None,
) -> ConstructionWrapper:
    """A convolution with ``num_filters`` filters of the size (height, width)."""
    return ConstructionWrapper.create(
        Convolution2DLayerImpl,
        name=name,
        num_filters=num_filters,
        kernel_size=kernel_size,
        stride=stride,
        padding=padding,
        activation=activation,
    )


def Pooling2D(
    kernel_size: tuple[int, int],
    type: str = "max",
    stride: tuple[int, int] = (1, 1),
    padding: int = 0,
    name: str | None = None,
) -> ConstructionWrapper:
    """The largest element (``max``) or the mean (``avg``) of each window of an image.

    A mean counts padding as 0.
    """
    return ConstructionWrapper.create(
        Pooling2DLayerImpl,
        name=name,
        kernel_size=kernel_size,
        type=type,
        stride=stride,
        padding=padding,
    )


class _WindowLayer(Layer):
    """A layer that computes from windows of images."""

    expected_inputs = {"default": IMAGES}

    def windows(self, shape: tuple[int, ...]) -> tuple[int, int]:
        """Check the arguments, and return the height and width of the result."""
        self.kernel_size = self._pair("kernel_size", None, 1)
        self.stride = self._pair("stride", (1, 1), 1)
        self.padding = self.kwargs.get("padding", 0)
        if not isinstance(self.padding, int) or self.padding < 0:
            raise LayerValidationError(
                f"{self.described}: padding={self.padding!r}; it needs an integer of at least 0"
            )
        sizes = []
        for length, kernel, step in zip(shape[:2], self.kernel_size, self.stride, strict=True):
            rest = length + 2 * self.padding - kernel
            if rest < 0:
                raise LayerValidationError(
                    f"{self.described}: kernel_size={self.kernel_size} does not fit into images of "
                    f"the shape {shape} with padding={self.padding}; use a smaller kernel, or pad"
                )
            sizes.append(rest // step + 1)
        return sizes[0], sizes[1]

    def _pair(self, name: str, default: Any, least: int) -> tuple[int, int]:
        value = self.kwargs.get(name, default)
        pair = (value, value) if isinstance(value, int) else value
        if (
            not isinstance(pair, (list, tuple))
            or len(pair) != 2
            or not all(isinstance(each, int) and each >= least for each in pair)
        ):
            raise LayerValidationError(
                f"{self.described}: {name}={value!r}; it needs two integers of at least {least}, "
                "for height and width"
            )
        return pair[0], pair[1]


def as_images(x: Any, features: str = "hwc") -> Any:
    """Return a tensor over (T, B, height, width, channels) with features of these names."""
    t, b, *lengths = x.axes
    named = [geon.Axis(n, axis.length) for n, axis in zip(features, lengths, strict=True)]
    return geon.cast_axes(x, [t, b, *named])


class Convolution2DLayerImpl(_WindowLayer):
    """See ``Convolution2D``: W has the shape (filters, height, width, channels)."""

    expected_kwargs = {"num_filters", "kernel_size", "stride", "padding", "activation"}

    def setup(self, kwargs: Any, in_shapes: Any) -> Any:
        """Return the shapes of W, bias and H."""
        self.num_filters = checked_size(self, "num_filters")
        self.activation = activation_of(self, "rel")
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
    """See ``Pooling2D``."""

    expected_kwargs = {"kernel_size", "type", "stride", "padding"}

    def setup(self, kwargs: Any, in_shapes: Any) -> Any:
        """Return the shape of the output."""
        self.type = kwargs.get("type", "max")
        if self.type not in ("max", "avg"):
            raise LayerValidationError(
                f"{self.described}: type={self.type!r}; there are 'max', 'avg'"
            )
        shape = in_shapes["default"].feature_shape
        made = BufferStructure("T", "B", *self.windows(shape), shape[2])
        if self.padding >= min(self.kernel_size):
            raise LayerValidationError(
                f"{self.described}: padding={self.padding} is not below kernel_size="
                f"{self.kernel_size}, so that windows would lie in padding alone; pad less"
            )
        return OrderedDict(default=made), {}, {}

    def forward(self, buffers: Symbols) -> Any:
        """Return the pooled images."""
        pooling = pool(self.type, self.kernel_size, self.padding, self.stride)
        return {"default": pooling(as_images(buffers.inputs.default))}, {}
