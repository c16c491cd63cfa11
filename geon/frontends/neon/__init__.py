"""Networks of layers over named axes: ``from geon.frontends import neon``.

``neon.axis`` has the axes, ``neon.activations`` functions for between layers.
"""

from . import activations, axis
from .initialisers import (
    Constant,
    Gaussian,
    Glorot,
    Identity,
    Kaiming,
    Orthogonal,
    Sparse,
    Uniform,
    Xavier,
)
from .layers import (
    Activation,
    Affine,
    BatchNorm,
    Bias,
    Convolution,
    Deconvolution,
    Dropout,
    GroupNorm,
    Highway,
    Layer,
    LayerNorm,
    Linear,
    LookupTable,
    Parallel,
    Pooling,
    Preprocess,
    Residual,
    RMSNorm,
    Sequential,
    Training,
)

__all__ = [
    "Activation", "Affine", "BatchNorm", "Bias", "Constant", "Convolution", "Deconvolution",
    "Dropout", "Gaussian", "Glorot", "GroupNorm", "Highway", "Identity", "Kaiming", "Layer",
    "LayerNorm", "Linear", "LookupTable", "Orthogonal", "Parallel", "Pooling", "Preprocess",
    "RMSNorm", "Residual", "Sequential", "Sparse", "Training", "Uniform", "Xavier", "activations",
    "axis",
]  # fmt: skip
