"""A permutation-invariant network learns to read digits, in the style of Brainstorm.

    python examples/brainstorm_digits.py [--epochs 30] [--handler numpy] [--save best.h5]

Two hidden layers with dropout see 64 pixels without their places. The images, and how they are
split, are those of examples/digits.py. The network with the best validation accuracy is the one
that is tested.
"""

import argparse
from collections.abc import Sequence

import numpy as np
from digits import Images, load

from geon.frontends import brainstorm as bs
from geon.frontends.brainstorm.data_iterators import Minibatches
from geon.frontends.brainstorm.handlers import NativeHandler, NumpyHandler

HANDLERS = {"numpy": NumpyHandler, "native": NativeHandler}
PREDICTIONS = "Output.outputs.predictions"


def batches(part: Images, shuffle: bool = False) -> Minibatches:
    """Images over (1, B, 64) with their digits over (1, B, 1), in batches of 100."""
    images, digits = part
    return Minibatches(100, shuffle=shuffle, default=images[None], targets=digits[None, :, None])


def build(seed: int, handler: str = "native") -> bs.Network:
    """The network, initialised."""
    bs.global_rnd.set_seed(seed)
    inputs, projection = bs.tools.get_in_out_layers("classification", 64, 10, projection_name="FC")
    network = bs.Network.from_layer(
        inputs
        >> bs.layers.Dropout(drop_prob=0.1)
        >> bs.layers.FullyConnected(200, name="Hid1", activation="rel")
        >> bs.layers.Dropout(drop_prob=0.3)
        >> bs.layers.FullyConnected(200, name="Hid2", activation="rel")
        >> bs.layers.Dropout(drop_prob=0.3)
        >> projection
    )
    network.set_handler(HANDLERS[handler]())
    network.initialize(bs.initializers.DenseSqrtFanIn(), fallback=0.0)
    network.set_weight_modifiers({"FC": bs.value_modifiers.ConstrainL2Norm(1)})
    return network


def train(
    network: bs.Network, epochs: int, save: str | None = None, progress: bool = False
) -> dict:
    """Train a network; leave it with the best parameters, and return the logs."""
    split = load()
    trainer = bs.Trainer(
        bs.training.MomentumStepper(learning_rate=1.0, momentum=0.9), verbose=False
    )
    if progress:
        trainer.add_hook(bs.hooks.ProgressBar())
    scorers = [bs.scorers.Accuracy(out_name=PREDICTIONS)]
    trainer.add_hook(bs.hooks.MonitorScores("valid_getter", scorers, name="validation"))
    best = bs.hooks.SaveBestNetwork("validation.Accuracy", criterion="max")
    trainer.add_hook(best)
    trainer.add_hook(bs.hooks.StopAfterEpoch(epochs))
    trainer.train(network, batches(split.train, True), valid_getter=batches(split.validation))
    network.buffer.parameters[:] = best.load_best_network()
    if save is not None:
        network.save_as_hdf5(save)
    return trainer.logs


def test_accuracy(network: bs.Network) -> float:
    """The share of the held-out images that are read rightly, 0 to 1."""
    scorers = [bs.scorers.Accuracy(out_name=PREDICTIONS)]
    return bs.tools.evaluate(network, batches(load().test), scorers)["Accuracy"]


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description="Learn to read digits in the style of Brainstorm.")
    parser.add_argument("--epochs", type=int, default=30)
    parser.add_argument("--seed", type=int, default=42, help="of weights, dropout and order")
    parser.add_argument("--handler", choices=list(HANDLERS), default="native")
    parser.add_argument("--save", metavar="HDF5", help="write the best network")
    options = parser.parse_args(argv)

    network = build(options.seed, options.handler)
    bs.tools.print_network_info(network)
    logs = train(network, options.epochs, options.save, progress=True)
    print(f"best validation accuracy: {100 * np.max(logs['validation']['Accuracy']):.2f} %")
    print(f"test accuracy: {100 * test_accuracy(network):.2f} % of 300 images")


if __name__ == "__main__":
    main()
