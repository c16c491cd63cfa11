"""The layers: constructor functions for wiring, and the base class of layers of your own."""

from .base_layer import Layer
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
