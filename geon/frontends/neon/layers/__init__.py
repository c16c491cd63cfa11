"""Layers: callables on tensors that make their variables when they are first called."""

from .containers import Highway, Parallel, Residual, Sequential
from .convolution import Convolution, Deconvolution, Pooling
from .functions import Activation, Dropout, Preprocess
from .layer import Layer, Training
from .linear import Affine, Bias, Linear, LookupTable
from .normalisation import BatchNorm, GroupNorm, LayerNorm, RMSNorm

__all__ = [
    "Activation", "Affine", "BatchNorm", "Bias", "Convolution", "Deconvolution", "Dropout",
    "GroupNorm", "Highway", "Layer", "LayerNorm", "Linear", "LookupTable", "Parallel", "Pooling",
    "Preprocess", "RMSNorm", "Residual", "Sequential", "Training",
]  # fmt: skip
