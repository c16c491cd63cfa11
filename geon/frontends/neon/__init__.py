"""Neural networks of layers over named axes: ``from geon.frontends import neon``.

``neon.axis`` has the axes, ``neon.activations`` activation functions, ``neon.costs`` loss
functions, ``neon.metrics`` measures of accuracy, ``neon.schedules`` learning-rate schedules.
"""

import sys as _sys
from typing import NoReturn as _NoReturn

from ...op_graph.core.argument_hints import explain_constructors as _explain
from ...op_graph.syntax.foreign_names import NEON as _NEON
from ...op_graph.syntax.foreign_names import missing_function as _missing
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
    LBFGS,
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
    Augmented,
    Batches,
    Buckets,
    Callback,
    Checkpoints,
    Curves,
    EarlyStopping,
    HDF5History,
    History,
    Model,
    Prefetch,
    Progress,
    Run,
    StopOnNaN,
    Stream,
    TensorBoard,
    Timing,
    augment,
)

__all__ = [
    "Accumulated", "Activation", "Adadelta", "Adagrad", "Adam", "AdamW", "Affine", "Augmented",
    "Averaged", "BatchNorm", "Batches", "BiRNN", "Bias", "Buckets", "ByGlobalNorm", "ByNorm",
    "ByValue", "Cache", "Callback", "Checkpoints", "Constant", "Convolution", "Curves",
    "Deconvolution", "Dropout", "EarlyStopping", "ForgetBias", "GRU", "Gaussian", "Glorot",
    "GroupNorm", "Groups", "HDF5History", "Highway", "History", "Identity", "Kaiming", "LBFGS",
    "LSTM", "Layer", "LayerNorm", "Linear", "Lion", "LookupTable", "Matrices", "MixtureOfExperts",
    "Model", "MultiHeadAttention", "Muon", "Optimiser", "Orthogonal", "Parallel", "Pooling",
    "Prefetch", "Preprocess", "Progress", "RMSNorm", "RMSProp", "Recurrent", "Residual", "Run",
    "SGD", "Scaled", "Sequential", "Sparse", "StopOnNaN", "Stream", "Tag", "TensorBoard", "Timing",
    "Training", "Uniform", "Xavier", "activations", "augment", "axis", "costs", "metrics",
    "schedules",
]  # fmt: skip

_explain(
    [
        value
        for names in (globals(), *map(vars, (costs, metrics, schedules, augment)))
        for value in names.values()
        if isinstance(value, type)
    ],
    __name__,
)


def __getattr__(name: str) -> _NoReturn:
    raise _missing(_sys.modules[__name__], name, _NEON)
