"""Costs, and ``Loss``, which sums them up and begins the backward pass."""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Sequence
from typing import Any, ClassVar

import geon

from ..structure.buffer_structure import BufferStructure, StructureTemplate
from .arguments import number
from .base_layer import Layer, constructor
from .elementwise_layers import ANY, SameShapeLayer, sum_of_features
from .symbols import B, Symbols

MIN_PROBABILITY = 1e-6
"""Probabilities are at least this in the logarithm of a cost."""


class LossLayerImpl(Layer):
    """The sum of the input, divided by the number of sequences, times ``importance``.

    The backward pass begins here.
    """

    expected_inputs = {"default": StructureTemplate("...")}
    importance = number(1.0)
    takes_no_output_deltas_from = ("loss",)
    starts_backward_pass_from = ("loss",)

    def setup(self, kwargs: Any, in_shapes: Any) -> Any:
        """Return the shape of the loss."""
        return OrderedDict(loss=BufferStructure(1)), {}, {}

    def forward(self, buffers: Symbols) -> Any:
        """Return the weighted sum."""
        x = buffers.inputs.default
        total = geon.sum(x) * self.importance
        if "B" in x.axes:
            total = total / geon.cast(geon.tensor_size(x, [B]), x.dtype)
        return {"loss": geon.expand(total, geon.Axis("F0", 1))}, {}


class _CostLayer(Layer):
    """A layer with ``predictions`` and a ``loss`` of one feature."""

    expected_inputs = {"default": ANY, "targets": ANY}
    computes_no_input_deltas_for = ("targets",)
    takes_no_output_deltas_from: ClassVar[Sequence[str]] = ("predictions",)
    loss_shape: Any = None

    def setup(self, kwargs: Any, in_shapes: Any) -> Any:
        """Return the shapes of both outputs."""
        shape, targets = in_shapes["default"].shape, in_shapes["targets"].shape
        wanted = self.target_shape(shape)
        if targets != wanted:
            raise self.refused(
                f"the input 'targets' has the shape {targets}, and the input "
                f"'default' {shape}, for which targets have the shape {wanted}"
            )
        loss = BufferStructure(*(wanted if self.loss_shape else ("T", "B", 1)))
        return OrderedDict(predictions=BufferStructure(*shape), loss=loss), {}, {}

    def target_shape(self, shape: tuple[Any, ...]) -> tuple[Any, ...]:
        """Return the shape of targets for an input of this shape."""
        return shape


class SoftmaxCELayerImpl(_CostLayer):
    """The softmax of the input as ``predictions``, and its cross entropy with ``targets``.

    Targets are numbers of classes. For an input of several dimensions, classes are along the last.
    The deltas of ``predictions`` are ignored.
    """

    loss_shape = True

    def target_shape(self, shape: tuple[Any, ...]) -> tuple[Any, ...]:
        """Return the shape with one number in place of the probabilities of the classes."""
        return (*shape[:-1], 1)

    def forward(self, buffers: Symbols) -> Any:
        """Return softmax and cross entropy; their derivative is predictions minus targets."""
        x, targets = buffers.inputs.default, buffers.inputs.targets[..., 0]
        classes = x.axes[-1]
        numbers = geon.broadcast(geon.cast(geon.iota(classes), x.dtype), x.axes)
        wanted = geon.cast(geon.equal(geon.broadcast(targets, x.axes), numbers), x.dtype)

        def rule(g: Any, out: Any, x: Any, wanted: Any) -> list[Any]:
            return [(geon.softmax(x, classes) - wanted) * g, None]

        @geon.custom_deriv(rule)
        def cost(x: Any, wanted: Any) -> Any:
            likely = geon.maximum(geon.log_softmax(x, classes), math.log(MIN_PROBABILITY))
            return -geon.sum(wanted * likely, classes)

        loss = cost(x, wanted)
        loss = geon.expand(loss, geon.Axis(classes.name, 1), position=len(loss.axes))
        return {"predictions": geon.softmax(x, classes), "loss": loss}, {}


class SigmoidCELayerImpl(_CostLayer):
    """The sigmoid of the input as ``predictions``; its cross entropy with ``targets`` as ``loss``.

    The deltas of ``predictions`` are ignored.
    """

    def forward(self, buffers: Symbols) -> Any:
        """Return sigmoid and cross entropy; the latter in a form that cannot overflow."""
        x, targets = buffers.inputs.default, buffers.inputs.targets
        loss = sum_of_features(geon.softplus(x) - targets * x)
        return {"predictions": geon.sigmoid(x), "loss": loss}, {}


class SquaredErrorLayerImpl(_CostLayer):
    """The input as ``predictions``, and half of its squared distance from ``targets`` as ``loss``.

    The deltas of ``predictions`` are ignored.
    """

    def forward(self, buffers: Symbols) -> Any:
        """Return the input and the error."""
        x, targets = buffers.inputs.default, buffers.inputs.targets
        loss = sum_of_features(geon.square(x - targets)) / 2
        return {"predictions": x, "loss": loss}, {}


class BinomialCrossEntropyLayerImpl(_CostLayer):
    """The cross entropy of probabilities and ``targets``, summed over the features."""

    takes_no_output_deltas_from = ()

    def setup(self, kwargs: Any, in_shapes: Any) -> Any:
        """Return the shape of the output."""
        outputs, _, _ = super().setup(kwargs, in_shapes)
        return OrderedDict(default=outputs["loss"]), {}, {}

    def forward(self, buffers: Symbols) -> Any:
        """Return the cross entropy."""
        p = geon.clip(buffers.inputs.default, MIN_PROBABILITY, 1 - MIN_PROBABILITY)
        t = buffers.inputs.targets
        cost = -(t * geon.log(p) + (1 - t) * geon.log(1 - p))
        return {"default": sum_of_features(cost)}, {}


class SquaredDifferenceLayerImpl(SameShapeLayer):
    """Half of the squared difference of ``inputs_1`` and ``inputs_2``, for each element."""

    expected_inputs = {"inputs_1": ANY, "inputs_2": ANY}
    same_inputs = True

    def forward(self, buffers: Symbols) -> Any:
        """Return half of the squared difference."""
        return {"default": geon.square(buffers.inputs.inputs_1 - buffers.inputs.inputs_2) / 2}, {}


class _DecayLayer(Layer):
    """A layer with one feature, a sum over those of the input."""

    def setup(self, kwargs: Any, in_shapes: Any) -> Any:
        """Return the shape of the output."""
        return OrderedDict(default=BufferStructure("T", "B", 1)), {}, {}


class L1DecayLayerImpl(_DecayLayer):
    """The sum of the absolute values of the features."""

    def forward(self, buffers: Symbols) -> Any:
        """Return the sum of absolute values."""
        return {"default": sum_of_features(geon.absolute(buffers.inputs.default))}, {}


class L2DecayLayerImpl(_DecayLayer):
    """Half of the sum of the squares of the features."""

    def forward(self, buffers: Symbols) -> Any:
        """Return half of the sum of squares."""
        return {"default": sum_of_features(geon.square(buffers.inputs.default)) / 2}, {}


Loss = constructor(LossLayerImpl)
SoftmaxCE = constructor(SoftmaxCELayerImpl)
SigmoidCE = constructor(SigmoidCELayerImpl)
BinomialCrossEntropy = constructor(BinomialCrossEntropyLayerImpl)
SquaredError = constructor(SquaredErrorLayerImpl)
SquaredDifference = constructor(SquaredDifferenceLayerImpl)
L1Decay = constructor(L1DecayLayerImpl)
L2Decay = constructor(L2DecayLayerImpl)
