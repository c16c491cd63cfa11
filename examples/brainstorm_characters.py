"""An LSTM with carried context learns to write text, in the style of Brainstorm.

    python examples/brainstorm_characters.py [--epochs 6] [--characters 200000] [--sample "The "]

The text is that of examples/character_model.py; its last tenth is held out. It is cut into streams
beside each other, and each batch goes on where the one before ended: the state of the LSTM is
carried. A step of training is one compiled computation. What the network and an order-3 Markov
model need for each held-out character is printed in bits; then the network goes on from a
beginning, one character at a time.
"""

import argparse
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from character_model import SYMBOLS, markov_bits, read

from geon.frontends import brainstorm as bs
from geon.frontends.brainstorm.data_iterators import DataIterator, OneHot
from geon.frontends.brainstorm.handlers import NativeHandler, NumpyHandler

HANDLERS = {"numpy": NumpyHandler, "native": NativeHandler}
STREAMS, STEPS, RATE = 16, 32, 0.008
PREDICTIONS = "Output.outputs.predictions"


class Pieces(DataIterator):
    """Pieces of ``steps`` time steps of arrays over (T, B, ...), in their order."""

    def __init__(self, steps: int, **named_data: np.ndarray) -> None:
        (total,) = {len(data) for data in named_data.values()}
        shapes = {name: (steps, *data.shape[1:]) for name, data in named_data.items()}
        super().__init__(shapes, total // steps)
        self.steps, self.data = steps, named_data

    def __call__(self, handler: Any = None) -> Iterator[dict[str, np.ndarray]]:
        for number in range(self.length or 0):
            part = slice(number * self.steps, (number + 1) * self.steps)
            yield {name: data[part] for name, data in self.data.items()}


def pieces(text: np.ndarray, streams: int = STREAMS) -> OneHot:
    """One-hot characters of streams of a text, beside the numbers of those that follow."""
    length = (len(text) - 1) // streams
    inputs, targets = (
        text[start : start + length * streams].reshape(streams, length).T[:, :, None]
        for start in (0, 1)
    )
    return OneHot(Pieces(STEPS, default=inputs, targets=targets), {"default": len(SYMBOLS)})


def build(units: int, seed: int, handler: str = "native") -> bs.Network:
    """The network, initialised; gradients are clipped."""
    bs.global_rnd.set_seed(seed)
    count = len(SYMBOLS)
    network = bs.tools.create_net_from_spec("classification", count, count, f"L{units}")
    network.set_handler(HANDLERS[handler]())
    small = bs.initializers.Gaussian(0.1)
    network.initialize(default=small, Lstm={"bf": 1.0, "default": small}, seed=seed)
    network.set_gradient_modifiers(bs.value_modifiers.ClipValues(-5, 5))
    return network


def train(
    network: bs.Network,
    text: np.ndarray,
    epochs: int,
    progress: bool = False,
    compiled: bool = True,
) -> dict:
    """Train a network on a text and return the logs."""
    trainer = bs.Trainer(
        bs.training.AdamStepper(RATE), verbose=False, compiled=compiled, carry_context=True
    )
    if progress:
        trainer.add_hook(bs.hooks.ProgressBar())
    falling = bs.training.Linear(RATE, RATE / 10, epochs)
    trainer.add_hook(bs.hooks.ModifyStepperAttribute(falling, "learning_rate"))
    trainer.add_hook(bs.hooks.StopAfterEpoch(epochs))
    trainer.train(network, pieces(text))
    return trainer.logs


def bits(network: bs.Network, text: np.ndarray, carry: bool = True) -> float:
    """What the network needs for each character of a text, with or without carried context."""
    context, losses = None, []
    for data in pieces(text, streams=2)():
        network.provide_external_data(data)
        network.forward_pass(context=context)
        losses.append(network.get_loss_values()["total_loss"] / STEPS)
        context = network.get_context() if carry else None
    return float(np.mean(losses) / np.log(2))


def sample(network: bs.Network, beginning: str, length: int, seed: int = 0) -> str:
    """The beginning, and what the network writes after it: ``length`` characters."""
    dice, context, text = np.random.default_rng(seed), None, beginning
    given = np.array([[[SYMBOLS.index(each)]] for each in beginning])
    for _ in range(length):
        network.provide_external_data(
            {"default": np.eye(len(SYMBOLS))[given[:, :, 0]]}, all_inputs=False
        )
        network.forward_pass(context=context)
        context = network.get_context()
        shares = network.get(PREDICTIONS)[-1, 0].astype(float)
        number = int(dice.choice(len(SYMBOLS), p=shares / shares.sum()))
        text += SYMBOLS[number]
        given = np.array([[[number]]])
    return text


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description="Learn to write in the style of Brainstorm.")
    parser.add_argument("--epochs", type=int, default=6)
    parser.add_argument("--characters", type=int, default=200_000, help="of the text")
    parser.add_argument("--units", type=int, default=128)
    parser.add_argument("--seed", type=int, default=42)
    parser.add_argument("--handler", choices=list(HANDLERS), default="native")
    parser.add_argument("--sample", metavar="TEXT", default="The ", help="to go on from")
    parser.add_argument("--length", type=int, default=200, help="of the sample")
    options = parser.parse_args(argv)

    text = read(options.characters)
    known, other = text[: len(text) * 9 // 10], text[len(text) * 9 // 10 :]
    network = build(options.units, options.seed, options.handler)
    train(network, known, options.epochs, progress=True)
    print(f"Markov model: {markov_bits(known, other):.3f} bits per character")
    print(f"network: {bits(network, other):.3f} bits per character")
    print(f"without carried context: {bits(network, other, carry=False):.3f} bits per character")
    print(sample(network, options.sample, options.length, options.seed))


if __name__ == "__main__":
    main()
