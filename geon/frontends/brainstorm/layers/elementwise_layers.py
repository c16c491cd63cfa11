"""Layers that compute each element from the same place of their inputs, or pass elements on."""

from __future__ import annotations

from collections import OrderedDict
from typing import Any

import geon

from ..errors import LayerValidationError
from ..structure.buffer_structure import BufferStructure, StructureTemplate
from ..structure.construction import ConstructionWrapper
from .base_layer import Layer
from .fully_connected_layer import activation_of
from .symbols import Symbols, feature_axes

ANY = StructureTemplate("T", "B", "...")


def NoOp(name: str | None = None) -> ConstructionWrapper:
    """The input."""
    return ConstructionWrapper.create(NoOpLayerImpl, name=name)


def Elementwise(activation: str = "rel", name: str | None = None) -> ConstructionWrapper:
    """An activation function of the input."""
    return ConstructionWrapper.create(ElementwiseLayerImpl, name=name, activation=activation)


def Dropout(drop_prob: float = 0.5, name: str | None = None) -> ConstructionWrapper:
    """In training, elements set to 0 with this probability, and the others scaled to compensate.

    G. Hinton et al., "Improving neural networks by preventing co-adaptation of feature detectors",
    2012.
    """
    return ConstructionWrapper.create(DropoutLayerImpl, name=name, drop_prob=drop_prob)


def DeltasScaling(factor: float, name: str | None = None) -> ConstructionWrapper:
    """The input; the deltas are multiplied by ``factor``."""
    return ConstructionWrapper.create(DeltasScalingLayerImpl, name=name, factor=factor)


def Mask(name: str | None = None) -> ConstructionWrapper:
    """The input ``default`` times the input ``mask``, which has one feature."""
    return ConstructionWrapper.create(MaskLayerImpl, name=name)


def Merge(name: str | None = None) -> ConstructionWrapper:
    """The inputs ``inputs_1`` and ``inputs_2``, concatenated along their last dimension."""
    return ConstructionWrapper.create(MergeLayerImpl, name=name)


def Highway(name: str | None = None) -> ConstructionWrapper:
    """``H * T + x * (1 - T)`` of the inputs ``H``, ``T`` and ``x``, which have one shape.

    R. Srivastava, K. Greff and J. Schmidhuber, "Highway networks", 2015.
    """
    return ConstructionWrapper.create(HighwayLayerImpl, name=name)


class _SameShapeLayer(Layer):
    """A layer whose output has the shape of its first input."""

    def setup(self, kwargs: Any, in_shapes: Any) -> Any:
        """Return the shape of the output."""
        shape = next(iter(in_shapes.values())).shape
        return OrderedDict(default=BufferStructure(*shape)), {}, {}


class NoOpLayerImpl(_SameShapeLayer):
    """See ``NoOp``."""

    def forward(self, buffers: Symbols) -> Any:
        """Return the input."""
        return {"default": buffers.inputs.default}, {}


class ElementwiseLayerImpl(_SameShapeLayer):
    """See ``Elementwise``."""

    expected_kwargs = {"activation"}

    def setup(self, kwargs: Any, in_shapes: Any) -> Any:
        """Return the shape of the output."""
        self.activation = activation_of(self, "rel")
        return super().setup(kwargs, in_shapes)

    def forward(self, buffers: Symbols) -> Any:
        """Return the activation of the input."""
        return {"default": self.activation(buffers.inputs.default)}, {}


class DropoutLayerImpl(_SameShapeLayer):
    """See ``Dropout``: the internal ``mask`` is 1 where an element is kept."""

    expected_kwargs = {"drop_prob"}

    def setup(self, kwargs: Any, in_shapes: Any) -> Any:
        """Return the shapes of output and mask."""
        self.drop_prob = kwargs.get("drop_prob", 0.5)
        if not isinstance(self.drop_prob, (int, float)) or not 0 <= self.drop_prob < 1:
            raise LayerValidationError(
                f"{self.described}: drop_prob={self.drop_prob!r}; it needs a number from 0 up to, "
                "but not, 1"
            )
        outputs, _, _ = super().setup(kwargs, in_shapes)
        return outputs, {}, OrderedDict(mask=outputs["default"])

    def forward(self, buffers: Symbols) -> Any:
        """Return the input times the mask, scaled, in training; else the input."""
        x = buffers.inputs.default
        if not buffers.training:
            return {"default": x}, {}
        keep = 1 - self.drop_prob
        mask = geon.cast(buffers.random().bernoulli(x.axes, keep), x.dtype)
        return {"default": x * mask / keep}, {"mask": mask}


class DeltasScalingLayerImpl(_SameShapeLayer):
    """See ``DeltasScaling``."""

    expected_kwargs = {"factor"}

    def setup(self, kwargs: Any, in_shapes: Any) -> Any:
        """Return the shape of the output."""
        self.factor = kwargs.get("factor")
        if not isinstance(self.factor, (int, float)):
            raise LayerValidationError(
                f"{self.described}: factor={self.factor!r}; it needs a number"
            )
        return super().setup(kwargs, in_shapes)

    def forward(self, buffers: Symbols) -> Any:
        """Return the input, with a derivative of its own."""
        scaled = geon.custom_deriv(lambda g, out, x: [self.factor * g])(lambda x: x * 1)
        return {"default": scaled(buffers.inputs.default)}, {}


class MaskLayerImpl(_SameShapeLayer):
    """See ``Mask``."""

    expected_inputs = {"default": ANY, "mask": StructureTemplate("T", "B", 1)}
    computes_no_input_deltas_for = ("mask",)

    def forward(self, buffers: Symbols) -> Any:
        """Return the product."""
        return {"default": buffers.inputs.default * buffers.inputs.mask[..., 0]}, {}


class MergeLayerImpl(Layer):
    """See ``Merge``."""

    expected_inputs = {"inputs_1": ANY, "inputs_2": ANY}

    def setup(self, kwargs: Any, in_shapes: Any) -> Any:
        """Return the shape of the output."""
        first, second = in_shapes["inputs_1"].shape, in_shapes["inputs_2"].shape
        if first[:-1] != second[:-1] or len(first) < 3:
            raise LayerValidationError(
                f"{self.described}: inputs_1 has the shape {first} and inputs_2 {second}; they "
                "may differ in the last length only"
            )
        outputs = OrderedDict(default=BufferStructure(*first[:-1], first[-1] + second[-1]))
        return outputs, {}, {}

    def forward(self, buffers: Symbols) -> Any:
        """Return the concatenation."""
        last = buffers.inputs.inputs_1.axes[-1].name
        parts = [buffers.inputs.inputs_1, buffers.inputs.inputs_2]
        return {"default": geon.concat(parts, last)}, {}


class HighwayLayerImpl(Layer):
    """See ``Highway``."""

    expected_inputs = {"H": ANY, "T": ANY, "x": ANY}

    def setup(self, kwargs: Any, in_shapes: Any) -> Any:
        """Return the shape of the output."""
        shapes = {name: structure.shape for name, structure in in_shapes.items()}
        if len(set(shapes.values())) != 1:
            raise LayerValidationError(
                f"{self.described}: its inputs have the shapes {shapes}; they need one shape"
            )
        return OrderedDict(default=BufferStructure(*shapes["x"])), {}, {}

    def forward(self, buffers: Symbols) -> Any:
        """Return H where T is 1 and x where it is 0."""
        h, t, x = buffers.inputs.H, buffers.inputs.T, buffers.inputs.x
        return {"default": h * t + x * (1 - t)}, {}


def sum_of_features(x: Any) -> Any:
    """Return the sum over the features, as one feature."""
    return geon.expand(geon.sum(x, feature_axes(x)), geon.Axis("F0", 1), position=2)
