"""The layers: constructor functions for wiring, and the base class of layers of your own."""

from .base_layer import Layer
from .batch_normalization_layer import BatchNorm
from .convolution_layers import Convolution2D, Pooling2D
from .elementwise_layers import DeltasScaling, Dropout, Elementwise, Highway, Mask, Merge, NoOp
from .fully_connected_layer import FullyConnected
from .input_layer import Input
from .loss_layers import (
    BinomialCrossEntropy,
    L1Decay,
    L2Decay,
    Loss,
    SigmoidCE,
    SoftmaxCE,
    SquaredDifference,
    SquaredError,
)
from .recurrent_layers import Clockwork, ClockworkLstm, Lstm, Recurrent

__all__ = [
    "BatchNorm", "BinomialCrossEntropy", "Clockwork", "ClockworkLstm", "Convolution2D",
    "DeltasScaling", "Dropout", "Elementwise", "FullyConnected", "Highway", "Input", "L1Decay",
    "L2Decay", "Layer", "Loss", "Lstm", "Mask", "Merge", "NoOp", "Pooling2D", "Recurrent",
    "SigmoidCE", "SoftmaxCE", "SquaredDifference", "SquaredError",
]  # fmt: skip
