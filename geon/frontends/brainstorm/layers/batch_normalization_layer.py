"""``BatchNorm``: features with mean 0 and variance 1 over steps, sequences and places."""

from __future__ import annotations

from collections import OrderedDict
from typing import Any

import geon

from ..structure.buffer_structure import BufferStructure
from .arguments import argument, is_number
from .base_layer import Layer, constructor
from .symbols import Symbols


class BatchNormLayerImpl(Layer):
    """The input, normalised for each entry of its last dimension, times gamma plus beta.

    In training it uses the mean and variance of the batch, else running ones, which decay by
    ``decay`` in each pass that trains. The running mean ``mu`` and the running standard deviation
    ``sigma``, the root of the running variance, are internals, so that steppers and modifiers do
    not see them. S. Ioffe and C. Szegedy, "Batch normalization", ICML 2015.
    """

    decay = argument("it needs a number from 0 to 1", lambda d: is_number(d, 0, 1), 0.9)
    epsilon = argument("it needs a number of at least 0", lambda e: is_number(e, 0), 1e-5)
    state = {"mu": 0.0, "sigma": 1.0}

    def setup(self, kwargs: Any, in_shapes: Any) -> Any:
        """Return the shapes of gamma, beta and internals."""
        shape = in_shapes["default"].shape
        if len(shape) < 3:
            raise self.refused(f"the input has the shape {shape}, without features to normalise")
        features = shape[-1]
        parameters = OrderedDict(gamma=BufferStructure(features), beta=BufferStructure(features))
        internals = OrderedDict(
            sigma_b=BufferStructure(features),
            centered=BufferStructure(*shape),
            x_hat=BufferStructure(*shape),
            mu=BufferStructure(features),
            sigma=BufferStructure(features),
        )
        return OrderedDict(default=BufferStructure(*shape)), parameters, internals

    def forward(self, buffers: Symbols) -> Any:
        """Return the normalised input, scaled and shifted."""
        x = buffers.inputs.default
        features = list(x.axes)[-1]
        gamma, beta, mu, sigma = (
            geon.cast_axes(tensor, [features])
            for tensor in (*buffers.parameters.values(), buffers.state.mu, buffers.state.sigma)
        )
        new = {}
        if buffers.training:
            mean = geon.mean(x, out_axes=[features])
            variance = geon.variance(x, out_axes=[features])
            deviation = geon.sqrt(variance + self.epsilon)
            new = {
                "mu": self.decay * mu + (1 - self.decay) * mean,
                "sigma": geon.sqrt(
                    self.decay * geon.square(sigma) + (1 - self.decay) * geon.square(deviation)
                ),
            }
            new = {name: geon.stop_gradient(value) for name, value in new.items()}
        else:
            mean, deviation = mu, sigma
        centered = x - mean
        x_hat = centered / deviation
        return {"default": x_hat * gamma + beta}, {
            "sigma_b": deviation * 1,
            "centered": centered,
            "x_hat": x_hat,
            **new,
        }


BatchNorm = constructor(BatchNormLayerImpl)
