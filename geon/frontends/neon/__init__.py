"""Networks of layers over named axes: ``from geon.frontends import neon``.

``neon.axis`` has the axes, ``neon.activations`` functions for between layers, ``neon.costs`` and
``neon.metrics`` how good results are, ``neon.schedules`` rates for optimisers.
"""

from . import activations, axis, costs, metrics
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
from .optimisers import (
    SGD,
    Adadelta,
    Adagrad,
    Adam,
    AdamW,
    ByGlobalNorm,
    ByNorm,
    ByValue,
    Groups,
    Lion,
    Optimiser,
    RMSProp,
    Tag,
    schedules,
)

__all__ = [
    "Activation", "Adadelta", "Adagrad", "Adam", "AdamW", "Affine", "BatchNorm", "Bias",
    "ByGlobalNorm", "ByNorm", "ByValue", "Constant", "Convolution", "Deconvolution", "Dropout",
    "Gaussian", "Glorot", "GroupNorm", "Groups", "Highway", "Identity", "Kaiming", "Layer",
    "LayerNorm", "Linear", "Lion", "LookupTable", "Optimiser", "Orthogonal", "Parallel",
    "Pooling", "Preprocess", "RMSNorm", "RMSProp", "Residual", "SGD", "Sequential", "Sparse",
    "Tag", "Training", "Uniform", "Xavier", "activations", "axis", "costs", "metrics",
    "schedules",
]  # fmt: skip
