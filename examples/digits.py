"""Train a small network on the handwritten digits that scikit-learn ships, save it, use it again.

    python examples/digits.py train [--seed 0] [--checkpoint digits.safetensors] [--plot curve.png]
    python examples/digits.py predict [--checkpoint digits.safetensors]

1,797 images of 8 by 8 pixels, split once and for all into 1,197 to train on, 300 to watch while
training and 300 that are looked at only at the end. Nothing is downloaded.
"""

import argparse
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from sklearn.datasets import load_digits
from tqdm import tqdm

import geon

N = geon.Axis("N")  # images in a batch: open, so one compile serves every batch length
PIXEL = geon.Axis("pixel", 64)
HIDDEN1 = geon.Axis("hidden1", 128)
HIDDEN2 = geon.Axis("hidden2", 64)
DIGIT = geon.Axis("digit", 10)

BATCH, EPOCHS, RATE, MOMENTUM = 64, 15, 0.1, 0.9

Images = tuple[np.ndarray, np.ndarray]  # pixels from 0 to 1 over (N, pixel), digits over (N,)


@dataclass(frozen=True)
class Split:
    """Images to train on, to watch while training, and to test with at the end."""

    train: Images
    validation: Images
    test: Images


@dataclass
class Curve:
    """What training reached after each epoch: mean loss, and accuracy on the validation images."""

    loss: list[float] = field(default_factory=list)
    accuracy: list[float] = field(default_factory=list)


@dataclass
class Network:
    """A transformer that holds the weights, and its two computations."""

    transformer: geon.Transformer
    step: geon.Computation  # (images, digits) -> (loss, None), and the weights have moved
    predict: geon.Computation  # images -> the likeliest digit of each


def load() -> Split:
    """The same split in every process: it does not depend on the seed of the training."""
    data = load_digits()
    order = np.random.default_rng(0).permutation(len(data.data))
    images = (data.data[order] / 16).astype(np.float32)
    digits = data.target[order]
    parts = (slice(0, 1197), slice(1197, 1497), slice(1497, 1797))
    return Split(*((images[part], digits[part]) for part in parts))


def build(seed: int = 0) -> Network:
    """A network with two hidden layers, whose first weights are drawn from ``seed``."""
    stream = geon.Random(seed)

    def layer(x: geon.Tensor, inputs: geon.Axis, outputs: geon.Axis) -> geon.Tensor:
        spread = geon.sqrt(2 / geon.tensor_size(x, inputs))  # He et al. 2015, for relu
        draw = stream.normal([inputs, outputs], 0, spread)
        w = geon.Variable(axes=[inputs, outputs], initial_value=draw, name=f"{outputs.name}.w")
        b = geon.Variable(axes=[outputs], initial_value=0, name=f"{outputs.name}.b")
        return geon.dot(x, w) + b

    x = geon.placeholder(axes=[N, PIXEL], name="images")
    target = geon.placeholder(axes=[N], dtype="int64", name="digits")

    h = geon.relu(layer(x, PIXEL, HIDDEN1))
    h = geon.relu(layer(h, HIDDEN1, HIDDEN2))
    y = geon.softmax(layer(h, HIDDEN2, DIGIT), normalization_axes=DIGIT)
    loss = geon.mean(geon.cross_entropy_multi(y, geon.onehot(target, DIGIT), out_axes=[N]))

    updates = []
    weights = loss.variables()
    for w, gradient in zip(weights, geon.deriv(loss, weights), strict=True):
        speed = geon.Variable(axes=w.axes, initial_value=0, trainable=False, persistent=False)
        faster = MOMENTUM * speed + gradient
        updates += [geon.assign(speed, faster), geon.assign(w, w - RATE * faster)]

    transformer = geon.make_transformer()
    step = transformer.computation([loss, geon.doall(updates)], x, target)
    predict = transformer.computation(geon.argmax(y, reduction_axes=DIGIT), x)
    return Network(transformer, step, predict)


def evaluate(network: Network, part: Images) -> float:
    """The share of the images whose digit the network names rightly, 0 to 1."""
    images, digits = part
    return float(np.mean(network.predict(images) == digits))


def train(seed: int, split: Split, progress: bool = True) -> tuple[Network, Curve]:
    """A trained network; ``seed`` decides the first weights and the order of the images."""
    network, curve, shuffle = build(seed), Curve(), np.random.default_rng(seed)
    images, digits = split.train
    with tqdm(range(EPOCHS), unit="epoch", disable=not progress) as epochs:
        for _ in epochs:
            order = shuffle.permutation(len(images))
            losses = []
            for start in range(0, len(order), BATCH):
                batch = order[start : start + BATCH]  # the last one is shorter
                loss, _ = network.step(images[batch], digits[batch])
                losses.append(float(loss) * len(batch))
            curve.loss.append(sum(losses) / len(order))
            curve.accuracy.append(evaluate(network, split.validation))
            epochs.set_postfix(
                loss=f"{curve.loss[-1]:.4f}", accuracy=f"{100 * curve.accuracy[-1]:.2f} %"
            )
    return network, curve


def show(images: np.ndarray, predicted: np.ndarray, digits: np.ndarray) -> str:
    """The images side by side as text, each above its predicted and its true digit."""
    ink = np.array(list(" .:-=+*#%@"))
    shades = ink[(images * 9).round().astype(int)].reshape(-1, 8, 8).repeat(2, axis=2)
    rows = ["  ".join("".join(row) for row in across) for across in shades.swapaxes(0, 1)]
    captions = [f"predicted {p}, is {d}" for p, d in zip(predicted, digits, strict=True)]
    return "\n".join([*rows, "  ".join(caption.ljust(16) for caption in captions)])


def plot(curve: Curve, path: str) -> None:
    """Write the learning curve as a picture."""
    from matplotlib.figure import Figure

    figure = Figure(layout="constrained")
    above, below = figure.subplots(2, sharex=True)
    epochs = range(1, EPOCHS + 1)
    above.semilogy(epochs, curve.loss)
    above.set_ylabel("training loss")
    below.plot(epochs, curve.accuracy)
    below.set(xlabel="epoch", ylabel="validation accuracy")
    figure.savefig(path)


def report(network: Network, part: Images) -> None:
    """Print the accuracy on the held-out test images."""
    print(f"test accuracy: {100 * evaluate(network, part):.2f} % of {len(part[1])} images")


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description="Learn to read handwritten digits.")
    parser.add_argument("command", choices=["train", "predict"])
    parser.add_argument(
        "--seed", type=int, default=0, help="of the first weights and the shuffling"
    )
    parser.add_argument("--checkpoint", default="digits.safetensors", help="file of the weights")
    parser.add_argument("--plot", metavar="PNG", help="write the learning curve (needs matplotlib)")
    options = parser.parse_args(argv)

    split = load()
    if options.command == "train":
        network, curve = train(options.seed, split)
        network.transformer.save(options.checkpoint)
        if options.plot:
            plot(curve, options.plot)
        report(network, split.test)
        print(f"saved {options.checkpoint}")
    else:
        network = build()
        network.transformer.restore(options.checkpoint)
        report(network, split.test)
        images, digits = split.test[0][:5], split.test[1][:5]
        print(show(images, network.predict(images), digits))


if __name__ == "__main__":
    main()
