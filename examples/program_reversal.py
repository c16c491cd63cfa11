"""Reverse sequences of different lengths with an encoder and a decoder, as a program of operators.

    python examples/program_reversal.py [--steps 800]

The encoder reads the words of each sequence; the decoder starts with its last state, and predicts
the words in reverse order, each from the one before.
"""

import argparse

import numpy as np

from geon.frontends import program as fluid
from geon.frontends.program import layers, optimizers

WORDS, WIDTH, START = 9, 64, 0  # word 0 begins each sequence of the decoder
BATCH, LENGTHS = 64, (2, 5)


def sequences(random: np.random.Generator) -> list[np.ndarray]:
    """A batch of random sequences of different lengths."""
    return [random.integers(1, WORDS, random.integers(*LENGTHS)) for _ in range(BATCH)]


def feed(batch: list[np.ndarray]) -> dict[str, np.ndarray]:
    """The data of a step: the words, those before each one that is predicted, and these."""
    parts = {
        "source": batch,
        "before": [np.concatenate([[START], s[:0:-1]]) for s in batch],
        "after": [s[::-1] for s in batch],
    }
    found: dict[str, np.ndarray] = {}
    for name, words in parts.items():
        found |= layers.sequence_feed(name, [w[:, None] for w in words])
    return found


def recurrence(words: fluid.Var, init: fluid.Var | None) -> layers.DynamicRNN:
    """A recurrence of GRU cells over embedded words."""
    gates = layers.fc(layers.embedding(words, [WORDS, WIDTH], is_sparse=True), size=3 * WIDTH)
    weights = layers.create_parameter([WIDTH, 3 * WIDTH])
    rnn = layers.DynamicRNN()
    with rnn.block():
        gate = rnn.step_input(gates)
        state = rnn.memory(init=init, shape=None if init is not None else [WIDTH])
        new = layers.gru_unit(gate, state, weights)
        rnn.update_memory(state, new)
        rnn.output(new)
    return rnn


def build() -> dict:
    """The programs of a step and of the start, with the variables to fetch."""
    main, startup = fluid.Program(), fluid.Program()
    with fluid.program_guard(main, startup):
        source, before, after = (
            layers.data(name, [1], "int64", lod_level=1) for name in ("source", "before", "after")
        )
        (context,) = recurrence(source, None).last
        states = recurrence(before, context)()
        logits = layers.fc(states, size=WORDS)
        loss = layers.mean(layers.softmax_with_cross_entropy(logits, after))
        accuracy = layers.accuracy(*layers.top_k(logits, k=1), after)[0]
        optimizers.Adam(0.01, grad_clip=optimizers.GradientClipByGlobalNorm(1.0)).minimize(
            loss, startup
        )
    return {"main": main, "startup": startup, "loss": loss, "accuracy": accuracy}


def train(executor: fluid.Executor, steps: int) -> tuple[list[float], float]:
    """The losses of all steps, and the share of right words in the last ten."""
    network, scope, random = build(), fluid.Scope(), np.random.default_rng(0)
    executor.run(network["startup"], scope=scope)
    fetched = [network["loss"], network["accuracy"]]
    found = [
        executor.run(network["main"], feed(sequences(random)), fetched, scope) for _ in range(steps)
    ]
    losses = [loss.item() for loss, _ in found]
    return losses, float(np.mean([accuracy for _, accuracy in found[-10:]]))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--steps", type=int, default=800)
    options = parser.parse_args()
    losses, accuracy = train(fluid.Executor(), options.steps)
    print(f"loss {losses[0]:.3f} at first, {losses[-1]:.3f} at last")
    print(f"right words: {100 * accuracy:.1f} %")


if __name__ == "__main__":
    main()
