"""A denoising diffusion model of handwritten digits, which draws the digits that it is asked for.

    python examples/digit_diffusion.py [--epochs 200] [--seed 0] [--into diffusion.png]

The images are those of examples/digits.py. A network sees an image with some noise, how much it is,
and which digit it was, and learns to tell the two apart. Samples begin as noise alone, and a
geon.scan takes it out in 60 steps, so a sheet of samples is one call (J. Ho, A. Jain and P. Abbeel,
"Denoising diffusion probabilistic models", NeurIPS 2020). It writes a sheet, a column for each
digit, and prints how many of 500 samples the nearest of the held-out images reads as the digit that
was asked for, beside the same of true images, and of noise.
"""

import argparse
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
from digit_samples import sheet
from digits import DIGIT, PIXEL, Images, load
from matplotlib.image import imsave

import geon
from geon.frontends import neon
from geon.frontends.neon import axis as ax

LEVELS = 60  # of noise: the first is almost none, the last almost all
LEVEL, WAVE = geon.Axis("level", LEVELS), geon.Axis("wave", 16)
BATCH = 64


def kept() -> np.ndarray:
    """How much of an image's variance is left at each level, as the square of a cosine.

    A. Nichol and P. Dhariwal, "Improved denoising diffusion probabilistic models", ICML 2021.
    """
    return np.cos((np.arange(1, LEVELS + 1) / LEVELS + 0.008) / 1.008 * np.pi / 2) ** 2 + 1e-4


class Denoiser(neon.Layer):
    """From noisy images, the numbers of their levels and their digits, to what tells them apart.

    Where an image is a image + b noise, that is a noise - b image. T. Salimans and J. Ho,
    "Progressive distillation for fast sampling of diffusion models", ICLR 2022.
    """

    def __init__(self, random: geon.Random) -> None:
        super().__init__("denoiser")
        wide, he = geon.Axis("wide", 256), neon.Kaiming(random)
        self.random = random
        self.level = neon.LookupTable(LEVEL, wide, neon.Gaussian(random, std=0.3))
        self.digit = neon.LookupTable(DIGIT, wide, neon.Gaussian(random, std=0.3))
        self.first = neon.Affine(wide, he)
        self.blocks = [
            neon.Residual(neon.Sequential([neon.RMSNorm(), two, geon.silu, neon.Affine(wide, he)]))
            for two in [neon.Affine(wide, he) for _ in range(2)]
        ]
        self.last = neon.Affine(PIXEL, neon.Glorot(random))

    def forward(self, *inputs: geon.Tensor, training: neon.Training | None = None) -> geon.Tensor:
        noisy, level, digit = inputs
        h = self.first(noisy)
        for block in self.blocks:
            h = block(h + self.level(level) + self.digit(digit))
        return self.last(geon.silu(h))


def build(seed: int, steps: int) -> tuple[neon.Model, geon.Computation]:
    """A model, and the computation from digits over (N) to images over (N, pixel)."""
    random = geon.Random(seed, name="random")
    layer = Denoiser(random)
    noisy = geon.placeholder([ax.N, PIXEL], name="noisy")
    level = geon.placeholder([ax.N], "int64", name="level")
    digit = geon.placeholder([ax.N], "int64", name="digit")
    apart = geon.placeholder([ax.N, PIXEL], name="apart")
    rate = neon.schedules.OneCycle(0.005, steps)
    optimiser = neon.AdamW(rate, decay=0.01)
    model = neon.Model(layer, [noisy, level, digit], apart, neon.costs.squared_error, optimiser)

    def step(x: geon.Tensor, at: Sequence[geon.Tensor]) -> tuple[geon.Tensor, None]:
        """One level less of noise."""
        level, now, before = at
        told = layer(x, geon.broadcast(level, [ax.N]), digit)
        clean = geon.clip(geon.sqrt(now) * x - geon.sqrt(1 - now) * told, -1, 1)
        ratio, new = now / before, (1 - before) / (1 - now)
        mean = geon.sqrt(before) * (1 - ratio) / (1 - now) * clean + geon.sqrt(ratio) * new * x
        return mean + geon.sqrt((1 - ratio) * new) * random.normal([ax.N, PIXEL]), None

    shares = [kept(), np.append(1, kept()[:-1])]  # at each level, and at the one below
    levels = [geon.iota(LEVEL), *(geon.constant(each, [LEVEL], "float32") for each in shares)]
    start = random.normal([ax.N, PIXEL])
    end, _ = geon.scan(step, start, levels, over=LEVEL, reverse=True)
    draw = model.transformer.computation(geon.clip((end + 1) / 2, 0, 1), digit)
    return model, draw


def noisy_images(part: Images, seed: int) -> neon.Stream:
    """Images with noise of drawn levels, in batches; other noise in each epoch."""
    images, digits = part
    shares = kept()

    def epoch(number: int) -> Iterator[tuple[np.ndarray, ...]]:
        random = np.random.default_rng([seed, number])
        order = random.permutation(len(images))
        for start in range(0, len(order), BATCH):
            chosen = order[start : start + BATCH]
            level = random.integers(0, LEVELS, len(chosen))
            noise = random.normal(size=(len(chosen), 64))
            image, share = 2 * images[chosen] - 1, shares[level][:, None]
            a, b = np.sqrt(share), np.sqrt(1 - share)
            yield a * image + b * noise, level, digits[chosen], a * noise - b * image

    return neon.Stream(epoch)


def read_rightly(images: np.ndarray, digits: np.ndarray, known: Images) -> float:
    """The share of images whose nearest known image is of their digit, 0 to 1."""
    far = np.linalg.norm(images[:, None] - known[0], axis=2)
    return float(np.mean(known[1][far.argmin(1)] == digits))


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description="Learn to draw digits.")
    parser.add_argument("--epochs", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0, help="of weights, noise and order")
    parser.add_argument("--into", type=Path, default=Path("diffusion.png"), help="sheet of samples")
    options = parser.parse_args(argv)

    split = load()
    model, draw = build(options.seed, options.epochs * -(-len(split.train[1]) // BATCH))
    model.fit(noisy_images(split.train, options.seed), options.epochs, callbacks=[neon.Progress()])
    asked = np.arange(500) % 10
    samples = draw(asked)
    noise = np.random.default_rng(options.seed).uniform(size=(500, 64))
    for name, images, digits in [
        ("noise", noise, asked),
        ("samples", samples, asked),
        ("true images", *split.train),
    ]:
        print(f"{name}: {100 * read_rightly(images, digits, split.test):.1f} % read rightly")
    imsave(options.into, sheet(samples[:100]), cmap="gray_r", vmin=0, vmax=1)


if __name__ == "__main__":
    main()
