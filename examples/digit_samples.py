"""A variational autoencoder of handwritten digits, which writes a sheet of digits that it makes up.

    python examples/digit_samples.py [--epochs 60] [--seed 0] [--sheet samples.png]

The images are those of examples/digits.py. It prints the cost of the test images in nats each, an
upper bound of what it takes to tell them by the model, beside that of a model without a code: of
each pixel by itself. Then it writes 144 samples as a picture.
"""

import argparse
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from digits import PIXEL, load
from matplotlib.image import imsave

import geon
from geon.frontends import neon
from geon.frontends.neon import axis as ax

CODE = geon.Axis("code", 8)
PART = geon.Axis("part", 2)  # mean, and logarithm of the variance, of the code of an image
BATCH, SIDE = 64, 12


class Autoencoder(neon.Layer):
    """From images to what is known of their codes; ``cost`` goes back to images.

    D. Kingma and M. Welling, "Auto-encoding variational Bayes", ICLR 2014.
    """

    def __init__(self, random: geon.Random) -> None:
        super().__init__("digits")
        init = neon.Kaiming(random)
        self.random = random
        self.encoder = neon.Sequential(
            [
                neon.Affine(geon.Axis("seen", 256), init, activation=geon.relu),
                neon.Affine([PART, CODE], neon.Glorot(random)),
            ]
        )
        self.decoder = neon.Sequential(
            [
                neon.Affine(geon.Axis("drawn", 256), init, activation=geon.relu),
                neon.Affine(PIXEL, neon.Glorot(random)),
            ]
        )

    def forward(self, images: geon.Tensor, training: neon.Training | None = None) -> geon.Tensor:
        """Means and logarithms of variances of codes, for each image."""
        return self.encoder(images, training=training)

    def cost(self, known: geon.Tensor, images: geon.Tensor) -> geon.Tensor:
        """The negative lower bound of the log likelihood of each image, in nats."""
        mean, log_variance = known[{PART: 0}], known[{PART: 1}]
        code = mean + geon.exp(log_variance / 2) * self.random.normal([ax.N, CODE])
        scores = self.decoder(code)
        told = geon.sum(geon.softplus(scores) - scores * images, PIXEL)
        prior = geon.square(mean) + geon.exp(log_variance) - log_variance - 1
        return told + geon.sum(prior, CODE) / 2


def build(seed: int, epochs: int) -> tuple[neon.Model, geon.Computation]:
    """The model, and the computation from codes over (N, code) to images over (N, pixel)."""
    images = geon.placeholder([ax.N, PIXEL], name="images")
    target = geon.placeholder([ax.N, PIXEL], name="target")
    layer = Autoencoder(geon.Random(seed, name="random"))
    rate = neon.schedules.OneCycle(0.003, epochs * -(-1197 // BATCH))
    model = neon.Model(layer, images, target, layer.cost, neon.AdamW(rate, decay=0.01))
    code = geon.placeholder([ax.N, CODE], name="code")
    draw = model.transformer.computation(geon.sigmoid(layer.decoder(code)), code)
    return model, draw


def batches(images: np.ndarray, seed: int | None = None) -> neon.Batches:
    """Images, each with itself as its target, in batches."""
    return neon.Batches(images, images, size=BATCH, seed=seed)


def cost_by_pixels(train: np.ndarray, test: np.ndarray) -> float:
    """What each test image costs in nats where every pixel has the mean of its place."""
    mean = train.mean(0).clip(0.001, 0.999)
    return float(-(test * np.log(mean) + (1 - test) * np.log(1 - mean)).sum(1).mean())


def sheet(images: np.ndarray, scale: int = 4) -> np.ndarray:
    """Images over (N, pixel), whose number is a square, side by side as one picture."""
    side = int(len(images) ** 0.5)
    framed = np.pad(images.reshape(-1, 8, 8), ((0, 0), (1, 1), (1, 1)))
    rows = framed.reshape(side, side, 10, 10).swapaxes(1, 2).reshape(side * 10, side * 10)
    return rows.repeat(scale, 0).repeat(scale, 1)


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description="Learn to make up handwritten digits.")
    parser.add_argument("--epochs", type=int, default=60)
    parser.add_argument("--seed", type=int, default=0, help="of weights, draws and order")
    parser.add_argument("--sheet", type=Path, default=Path("samples.png"), help="of 144 samples")
    options = parser.parse_args(argv)

    split = load()
    model, draw = build(options.seed, options.epochs)
    model.fit(batches(split.train[0], options.seed), options.epochs, callbacks=[neon.Progress()])
    reached = model.evaluate(batches(split.test[0]))["cost"]
    print(f"test cost: {reached:.2f} nats an image")
    print(f"by pixels: {cost_by_pixels(split.train[0], split.test[0]):.2f} nats an image")
    codes = np.random.default_rng(options.seed).normal(size=(SIDE * SIDE, CODE.length))
    imsave(options.sheet, sheet(draw(codes)), cmap="gray_r", vmin=0, vmax=1)


if __name__ == "__main__":
    main()
