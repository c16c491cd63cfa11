"""Two networks of layers that learn to read handwritten digits: one of products, one of windows.

    python examples/digit_networks.py train [--network convolutional] [--folder digits-run]
    python examples/digit_networks.py resume [--folder digits-run]
    python examples/digit_networks.py predict [--folder digits-run]

The images, and how they are split, are those of examples/digits.py. Training writes checkpoints and
a history to the folder, and a picture of it with --plot; ended with Ctrl-C, it goes on with resume.
"""

import argparse
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from digits import Images, load, show

import geon
from geon.frontends import neon
from geon.frontends.neon import axis as ax

H, W, C = geon.Axis("H", 8), geon.Axis("W", 8), geon.Axis("C", 1)
DIGIT = geon.Axis("digit", 10)
EPOCHS, BATCH = {"products": 15, "convolutional": 10}, 64


def products(random: geon.Random) -> neon.Layer:
    """A network with two hidden layers, which sees no places."""
    he = neon.Kaiming(random)
    return neon.Sequential(
        [
            neon.Affine(geon.Axis("hidden1", 128), he, activation=geon.relu),
            neon.Affine(geon.Axis("hidden2", 64), he, activation=geon.relu),
            neon.Affine(DIGIT, neon.Glorot(random)),
        ],
        name="products",
    )


def convolutional(random: geon.Random) -> neon.Layer:
    """A network of three convolutions, each normed over the batch."""
    window = {H: geon.Window(3, pad="same"), W: geon.Window(3, pad="same")}

    def block(channels: int) -> list[neon.Layer]:
        made = neon.Convolution(window, geon.Axis("C", channels), neon.Kaiming(random))
        return [made, neon.BatchNorm(), neon.Activation(geon.relu)]

    return neon.Sequential(
        [
            *block(16),
            *block(32),
            neon.Pooling({H: 2, W: 2}),
            *block(64),
            neon.Pooling({H: 2, W: 2}),
            neon.Dropout(0.3, random),
            neon.Affine(DIGIT, neon.Glorot(random), over=[H, W, "C"]),
        ],
        name="convolutional",
    )


NETWORKS = {"products": products, "convolutional": convolutional}


def build(network: str, seed: int = 0, train: bool = True) -> neon.Model:
    """A model of a network, with an optimiser where it is to be trained."""
    images = geon.placeholder([ax.N, H, W, C], name="images")
    digits = geon.placeholder([ax.N], "int64", name="digits")
    steps = EPOCHS[network] * -(-1197 // BATCH)
    rate = neon.schedules.OneCycle(0.005, steps)
    return neon.Model(
        NETWORKS[network](geon.Random(seed, name="random")),
        images,
        digits,
        neon.costs.cross_entropy,
        neon.AdamW(rate, decay=0.01) if train else None,
        [neon.metrics.Accuracy()],
    )


def batches(part: Images, seed: int | None = None) -> neon.Batches:
    """Images over height, width and one channel, with their digits, in batches."""
    images, digits = part
    return neon.Batches(images.reshape(-1, 8, 8, 1), digits, size=BATCH, seed=seed)


def train(
    network: str,
    seed: int,
    callbacks: Sequence[neon.Callback] = (),
    resume: Path | None = None,
    epochs: int | None = None,
) -> neon.Model:
    """A trained model; ``seed`` decides the first weights, what is dropped and the order."""
    split, model = load(), build(network, seed)
    model.fit(
        batches(split.train, seed),
        EPOCHS[network] if epochs is None else epochs,
        validation=batches(split.validation),
        callbacks=callbacks,
        resume=resume,
    )
    return model


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description="Learn to read handwritten digits with layers.")
    parser.add_argument("command", choices=["train", "resume", "predict"])
    parser.add_argument("--network", choices=list(NETWORKS), default="convolutional")
    parser.add_argument("--seed", type=int, default=0, help="of weights, dropout and order")
    parser.add_argument("--folder", type=Path, default=Path("digits-run"), help="of checkpoints")
    parser.add_argument("--plot", metavar="PNG", type=Path, help="write the learning curves")
    options = parser.parse_args(argv)

    test = load().test
    if options.command == "predict":
        model = build(options.network, train=False)
        model.restore(options.folder / "best.safetensors")
        images, digits = test[0][:5], test[1][:5]
        scores = model.predict(images.reshape(-1, 8, 8, 1))
        print(show(images, np.argmax(scores, axis=1), digits))
    else:
        options.folder.mkdir(parents=True, exist_ok=True)
        history = neon.History(options.folder / "history.jsonl")
        saved = neon.Checkpoints(options.folder, keep=1, best="validation cost")
        resume = None
        if options.command == "resume":
            resume = options.folder / "interrupted.safetensors"
        callbacks = [neon.Progress(), history, saved]
        callbacks += [neon.Curves(history, options.plot)] if options.plot else []
        model = train(options.network, options.seed, callbacks, resume)
        print(model.summary())
    print(f"test accuracy: {100 * model.evaluate(batches(test))['accuracy']:.2f} % of 300 images")


if __name__ == "__main__":
    main()
