"""Small networks and data that tests of training share."""

import numpy as np

from geon.frontends.brainstorm import layers
from geon.frontends.brainstorm.data_iterators import Minibatches, Undivided
from geon.frontends.brainstorm.initializers import Gaussian
from geon.frontends.brainstorm.structure.network import Network

XOR = {
    "default": np.array([[[0, 0], [0, 1], [1, 0], [1, 1]]], float),
    "targets": np.array([[[0], [1], [1], [0]]], float),
}


def xor_network(seed=42, hidden=2):
    """The network of Brainstorm's XOR test, initialised with its seed."""
    inputs = layers.Input(out_shapes={"default": ("T", "B", 2), "targets": ("T", "B", 1)})
    error = layers.BinomialCrossEntropy()
    (
        inputs
        >> layers.FullyConnected(hidden, activation="sigmoid")
        >> layers.FullyConnected(1, activation="sigmoid", name="OutLayer")
        >> error
        >> layers.Loss()
    )
    net = Network.from_layer(inputs - "targets" >> "targets" - error)
    net.initialize(Gaussian(1.0), seed=seed)
    return net


def xor_data():
    """All four cases in one batch."""
    return Undivided(**XOR)


def xor_batches(size=2):
    """The four cases in batches, in order."""
    return Minibatches(size, shuffle=False, **XOR)
