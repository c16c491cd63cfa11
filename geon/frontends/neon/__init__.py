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
    Cache,
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
    MixtureOfExperts,
    MultiHeadAttention,
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
from .training import (
    Batches,
    Callback,
    Checkpoints,
    EarlyStopping,
    History,
    Model,
    Progress,
    Run,
    StopOnNaN,
    Stream,
)

__all__ = [
    "Activation", "Adadelta", "Adagrad", "Adam", "AdamW", "Affine", "BatchNorm", "Batches", "BiRNN",
    "Bias", "ByGlobalNorm", "ByNorm", "ByValue", "Cache", "Callback", "Checkpoints", "Constant",
    "Convolution", "Deconvolution", "Dropout", "EarlyStopping", "ForgetBias", "GRU", "Gaussian",
    "Glorot", "GroupNorm", "Groups", "Highway", "History", "Identity", "Kaiming", "LSTM", "Layer",
    "LayerNorm", "Linear", "Lion", "LookupTable", "MixtureOfExperts", "Model", "MultiHeadAttention",
    "Optimiser", "Orthogonal", "Parallel", "Pooling", "Preprocess", "Progress", "RMSNorm",
    "RMSProp", "Recurrent", "Residual", "Run", "SGD", "Sequential", "Sparse", "StopOnNaN", "Stream",
    "Tag", "Training", "Uniform", "Xavier", "activations", "axis", "costs", "metrics", "schedules",
]  # fmt: skip
