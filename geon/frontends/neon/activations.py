"""Activation functions: geon's own, and further ones."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...op_graph.building.constants import as_tensor
from ...op_graph.functions import composites
from ...op_graph.functions.composites import clip, elu, gelu, leaky_relu, relu, silu
from ...op_graph.op_graph import Tensor
from ...op_graph.rows.elementwise import absolute, sigmoid, softplus
from ...op_graph.rows.trigonometry import tanh
from .axis import feature_axes

if TYPE_CHECKING:
    from ...op_graph.building.typing import AxesLike, TensorLike

__all__ = [
    "elu", "gelu", "hard_sigmoid", "hard_tanh", "identity", "leaky_relu", "log_softmax", "mish",
    "relu", "selu", "sigmoid", "silu", "softmax", "softplus", "softsign", "tanh",
]  # fmt: skip

# Mean 0 and variance 1 are a fixed point for these: G. Klambauer, T. Unterthiner, A. Mayr and S.
# Hochreiter, "Self-normalizing neural networks", NIPS 2017.
SELU_ALPHA, SELU_SCALE = 1.6732632423543772, 1.0507009873554805


def identity(x: TensorLike) -> Tensor:
    """``x`` unchanged."""
    return as_tensor(x)


def selu(x: TensorLike) -> Tensor:
    """elu with the scale and alpha that keep mean 0 and variance 1."""
    return SELU_SCALE * elu(x, SELU_ALPHA)


def hard_sigmoid(x: TensorLike) -> Tensor:
    """x / 6 + 1/2, clipped to 0 and 1."""
    return clip(as_tensor(x) / 6 + 0.5, 0, 1)


def hard_tanh(x: TensorLike) -> Tensor:
    """x, clipped to -1 and 1."""
    return clip(x, -1, 1)


def softsign(x: TensorLike) -> Tensor:
    """x / (1 + |x|)."""
    x = as_tensor(x)
    return x / (1 + absolute(x))


def mish(x: TensorLike) -> Tensor:
    """x tanh(softplus(x)).

    D. Misra, "Mish: a self regularized non-monotonic activation function", BMVC 2020.
    """
    x = as_tensor(x)
    return x * tanh(softplus(x))


def softmax(x: TensorLike, axes: AxesLike | None = None) -> Tensor:
    """Probabilities over ``axes``, or over the features: all axes but N and T."""
    x = as_tensor(x)
    return composites.softmax(x, feature_axes(x.axes) if axes is None else axes)


def log_softmax(x: TensorLike, axes: AxesLike | None = None) -> Tensor:
    """The logarithms of ``softmax``."""
    x = as_tensor(x)
    return composites.log_softmax(x, feature_axes(x.axes) if axes is None else axes)
