"""Elementwise layers: activations, dropout, masks, highway gates, and merging of features."""

from __future__ import annotations

from collections import OrderedDict
from typing import Any

import geon

from ..structure.buffer_structure import BufferStructure, StructureTemplate
from .arguments import activation_of, argument, is_number, number
from .base_layer import Layer, constructor
from .symbols import Symbols, feature_axes

ANY = StructureTemplate("T", "B", "...")


class SameShapeLayer(Layer):
    """Base of layers whose output, and inputs if ``same_inputs``, have one shape."""

    same_inputs = False

    def setup(self, kwargs: Any, in_shapes: Any) -> Any:
        """Return the shape of the output."""
        shapes = {name: structure.shape for name, structure in in_shapes.items()}
        if self.same_inputs and len(set(shapes.values())) != 1:
            (name, shape), *others = shapes.items()
            rest = "".join(f" and {each} {found}" for each, found in others)
            raise self.refused(f"{name} has the shape {shape}{rest}; they need one shape")
        return OrderedDict(default=BufferStructure(*next(iter(shapes.values())))), {}, {}


class NoOpLayerImpl(SameShapeLayer):
    """The input."""

    def forward(self, buffers: Symbols) -> Any:
        """Return the input."""
        return {"default": buffers.inputs.default}, {}


class ElementwiseLayerImpl(SameShapeLayer):
    """An activation function of the input."""

    activation = activation_of("rel")

    def forward(self, buffers: Symbols) -> Any:
        """Return the activation of the input."""
        return {"default": self.activation(buffers.inputs.default)}, {}


class DropoutLayerImpl(SameShapeLayer):
    """In training, elements set to 0 with this probability, and the others scaled to compensate.

    The internal ``mask`` is 1 where an element is kept. G. Hinton et al., "Improving neural
    networks by preventing co-adaptation of feature detectors", 2012.
    """

    drop_prob = argument(
        "it needs a number from 0 up to, but not, 1", lambda p: is_number(p, 0) and p < 1, 0.5
    )

    def setup(self, kwargs: Any, in_shapes: Any) -> Any:
        """Return the shapes of output and mask."""
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


class DeltasScalingLayerImpl(SameShapeLayer):
    """The input; the deltas are multiplied by ``factor``."""

    factor = number()

    def forward(self, buffers: Symbols) -> Any:
        """Return the input, with a derivative of its own."""
        scaled = geon.custom_deriv(lambda g, out, x: [self.factor * g])(lambda x: x * 1)
        return {"default": scaled(buffers.inputs.default)}, {}


class MaskLayerImpl(SameShapeLayer):
    """The input ``default`` times the input ``mask``, which has one feature."""

    expected_inputs = {"default": ANY, "mask": StructureTemplate("T", "B", 1)}
    computes_no_input_deltas_for = ("mask",)

    def forward(self, buffers: Symbols) -> Any:
        """Return the product."""
        return {"default": buffers.inputs.default * buffers.inputs.mask[..., 0]}, {}


class MergeLayerImpl(Layer):
    """The inputs ``inputs_1`` and ``inputs_2``, concatenated along their last dimension."""

    expected_inputs = {"inputs_1": ANY, "inputs_2": ANY}

    def setup(self, kwargs: Any, in_shapes: Any) -> Any:
        """Return the shape of the output."""
        first, second = in_shapes["inputs_1"].shape, in_shapes["inputs_2"].shape
        if first[:-1] != second[:-1] or len(first) < 3:
            raise self.refused(
                f"inputs_1 has the shape {first} and inputs_2 {second}; they may differ in the "
                "last length only"
            )
        outputs = OrderedDict(default=BufferStructure(*first[:-1], first[-1] + second[-1]))
        return outputs, {}, {}

    def forward(self, buffers: Symbols) -> Any:
        """Return the concatenation."""
        parts = [buffers.inputs.inputs_1, buffers.inputs.inputs_2]
        return {"default": geon.concat(parts, parts[0].axes[-1].name)}, {}


class HighwayLayerImpl(SameShapeLayer):
    """``H * T + x * (1 - T)`` of the inputs ``H``, ``T`` and ``x``, which have one shape.

    R. Srivastava, K. Greff and J. Schmidhuber, "Highway networks", 2015.
    """

    expected_inputs = {"H": ANY, "T": ANY, "x": ANY}
    same_inputs = True

    def forward(self, buffers: Symbols) -> Any:
        """Return H where T is 1 and x where it is 0."""
        h, t, x = buffers.inputs.H, buffers.inputs.T, buffers.inputs.x
        return {"default": h * t + x * (1 - t)}, {}


def sum_of_features(x: Any) -> Any:
    """Return the sum over the features, as one feature."""
    return geon.expand(geon.sum(x, feature_axes(x)), geon.Axis("F0", 1), position=2)


NoOp = constructor(NoOpLayerImpl)
Elementwise = constructor(ElementwiseLayerImpl)
Dropout = constructor(DropoutLayerImpl)
DeltasScaling = constructor(DeltasScalingLayerImpl)
Mask = constructor(MaskLayerImpl)
Merge = constructor(MergeLayerImpl)
Highway = constructor(HighwayLayerImpl)
