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
    GRU,
    LSTM,
    Activation,
    Affine,
    BatchNorm,
    Bias,
    BiRNN,
    Convolution,
    Deconvolution,
    Dropout,
    ForgetBias,
    GroupNorm,
    Highway,
    Layer,
    LayerNorm,
    Linear,
    LookupTable,
    Parallel,
    Pooling,
    Preprocess,
    Recurrent,
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
    "Activation", "Adadelta", "Adagrad", "Adam", "AdamW", "Affine", "BatchNorm", "BiRNN",
    "Bias", "ByGlobalNorm", "ByNorm", "ByValue", "Constant", "Convolution", "Deconvolution",
    "Dropout", "ForgetBias", "GRU", "Gaussian", "Glorot", "GroupNorm", "Groups", "Highway",
    "Identity", "Kaiming", "LSTM", "Layer", "LayerNorm", "Linear", "Lion", "LookupTable",
    "Optimiser", "Orthogonal", "Parallel", "Pooling", "Preprocess", "RMSNorm", "RMSProp",
    "Recurrent", "Residual", "SGD", "Sequential", "Sparse", "Tag", "Training", "Uniform",
    "Xavier", "activations", "axis", "costs", "metrics", "schedules",
]  # fmt: skip
