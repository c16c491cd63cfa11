"""Train a convolutional network on scikit-learn's digits, as a program of operators.

python examples/program_digits.py [--seed 0] [--epochs 10]
"""

import argparse

import digits
import numpy as np

from geon.frontends import program as fluid
from geon.frontends.program import layers, optimizers

BATCH = 64


def build(seed: int = 0) -> dict:
    """The programs of a step, of the start and of a test, with the variables to fetch."""
    main, startup = fluid.Program(), fluid.Program()
    main.random_seed = startup.random_seed = seed
    with fluid.program_guard(main, startup):
        image, label = layers.data("image", [1, 8, 8]), layers.data("label", [1], "int64")
        x = layers.conv2d(image, num_filters=16, filter_size=3, padding=1, act="relu")
        x = layers.pool2d(x, ksize=[2], strides=[2])
        x = layers.conv2d(x, num_filters=32, filter_size=3, padding=1, act="relu")
        x = layers.pool2d(x, ksize=[2], strides=[2])
        x = layers.dropout(x, dropout_prob=0.25, dropout_implementation="upscale_in_train")
        logits = layers.fc(x, size=10)
        loss = layers.mean(layers.softmax_with_cross_entropy(logits, label))
        accuracy = layers.accuracy(*layers.top_k(logits, k=1), label)[0]
        test = fluid.clone(main, for_test=True)
        optimizers.Adam(0.003, regularization=optimizers.L2Decay(1e-4)).minimize(loss, startup)
    return {"main": main, "startup": startup, "test": test, "loss": loss, "accuracy": accuracy}


def feed(part: digits.Images) -> dict[str, np.ndarray]:
    """The data of a step: images (N, 1, 8, 8) and labels (N, 1)."""
    images, labels = part
    return {"image": images.reshape(-1, 1, 8, 8), "label": labels.reshape(-1, 1)}


def train(executor: fluid.Executor, seed: int = 0, epochs: int = 10) -> tuple[list[float], float]:
    """The mean loss of each epoch, and the accuracy on the test images."""
    network, scope, split = build(seed), fluid.Scope(), digits.load()
    executor.run(network["startup"], scope=scope)
    shuffle, losses = np.random.default_rng(seed), []
    images, labels = split.train
    for _ in range(epochs):
        order = shuffle.permutation(len(images))
        found = []
        for start in range(0, len(order), BATCH):
            batch = order[start : start + BATCH]
            data = feed((images[batch], labels[batch]))
            found += executor.run(network["main"], data, [network["loss"]], scope)
        losses.append(float(np.mean(found)))
    accuracy = executor.run(network["test"], feed(split.test), [network["accuracy"].name], scope)
    return losses, accuracy[0].item()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--epochs", type=int, default=10)
    options = parser.parse_args()
    losses, accuracy = train(fluid.Executor(), options.seed, options.epochs)
    print(f"loss {losses[0]:.3f} in the first epoch, {losses[-1]:.3f} in the last")
    print(f"test accuracy: {100 * accuracy:.2f} %")


if __name__ == "__main__":
    main()
