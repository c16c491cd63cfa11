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
    Accumulated,
    Adadelta,
    Adagrad,
    Adam,
    AdamW,
    Averaged,
    ByGlobalNorm,
    ByNorm,
    ByValue,
    Groups,
    Lion,
    Matrices,
    Muon,
    Optimiser,
    RMSProp,
    Scaled,
    Tag,
    schedules,
)
from .training import (
    Batches,
    Callback,
    Checkpoints,
    Curves,
    EarlyStopping,
    HDF5History,
    History,
    Model,
    Progress,
    Run,
    StopOnNaN,
    Stream,
    TensorBoard,
    Timing,
)

__all__ = [
    "Accumulated", "Activation", "Adadelta", "Adagrad", "Adam", "AdamW", "Affine", "Averaged",
    "BatchNorm", "Batches", "BiRNN", "Bias", "ByGlobalNorm", "ByNorm", "ByValue", "Callback",
    "Checkpoints", "Constant", "Convolution", "Curves", "Deconvolution", "Dropout", "EarlyStopping",
    "ForgetBias", "GRU", "Gaussian", "Glorot", "GroupNorm", "Groups", "HDF5History", "Highway",
    "History", "Identity", "Kaiming", "LSTM", "Layer", "LayerNorm", "Linear", "Lion", "LookupTable",
    "Matrices", "Model", "Muon", "Optimiser", "Orthogonal", "Parallel", "Pooling", "Preprocess",
    "Progress", "RMSNorm", "RMSProp", "Recurrent", "Residual", "Run", "SGD", "Scaled", "Sequential",
    "Sparse", "StopOnNaN", "Stream", "Tag", "TensorBoard", "Timing", "Training", "Uniform",
    "Xavier", "activations", "axis", "costs", "metrics", "schedules",
]  # fmt: skip
