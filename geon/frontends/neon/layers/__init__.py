"""Layers: callables on tensors that create their variables at the first call."""

from .attention import MultiHeadAttention
from .cache import Cache
from .containers import Highway, Parallel, Residual, Sequential
from .convolution import Convolution, Deconvolution, Pooling
from .experts import MixtureOfExperts
from .functions import Activation, Dropout, Preprocess
from .layer import Layer, Training
from .linear import Affine, Bias, Linear, LookupTable
from .normalisation import BatchNorm, GroupNorm, LayerNorm, RMSNorm
from .recurrent import GRU, LSTM, BiRNN, ForgetBias, Recurrent

__all__ = [
    "Activation", "Affine", "BatchNorm", "BiRNN", "Bias", "Cache", "Convolution", "Deconvolution",
    "Dropout", "ForgetBias", "GRU", "GroupNorm", "Highway", "LSTM", "Layer", "LayerNorm", "Linear",
    "LookupTable", "MixtureOfExperts", "MultiHeadAttention", "Parallel", "Pooling", "Preprocess",
    "RMSNorm", "Recurrent", "Residual", "Sequential", "Training",
]  # fmt: skip
