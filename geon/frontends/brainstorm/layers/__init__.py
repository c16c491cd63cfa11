"""The layers: constructor functions for wiring, and the base class of layers of your own.

Brainstorm's modules of one layer each, such as ``lstm_layer``, are other names of modules here.
"""

import sys

from . import convolution_layers, elementwise_layers, loss_layers, recurrent_layers
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

MODULES = {
    convolution_layers: ["convolution_layer_2d", "pooling_layer_2d"],
    elementwise_layers: [
        "deltas_scaling_layer", "dropout_layer", "elementwise_layer", "highway_layer", "mask_layer",
        "merge_layer", "noop_layer",
    ],
    loss_layers: [
        "binomial_cross_entropy_layer", "l1_decay", "l2_decay", "loss_layer", "sigmoid_ce_layer",
        "softmax_ce_layer", "squared_difference_layer", "squared_error_layer",
    ],
    recurrent_layers: ["clockwork_layer", "clockwork_lstm_layer", "lstm_layer", "recurrent_layer"],
}  # fmt: skip
for module, names in MODULES.items():
    for name in names:
        globals()[name] = sys.modules[f"{__name__}.{name}"] = module
