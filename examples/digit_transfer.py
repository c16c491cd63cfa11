"""Transfer: the body of a network that reads some digits reads others from few examples.

    python examples/digit_transfer.py [--epochs 8] [--examples 10 20 50] [--seed 0] [--into new.png]

The images are those of examples/digits.py. A network whose body is two convolutions learns to read
0 to 6, and is saved. A second one has the same body below another head, for 7 to 9: it takes the
body from the checkpoint by the pattern of its names, "body.*", and trains its head alone with
neon.Groups, where "body.*" has no optimiser. It has few images to learn from. Beside it go a
network whose body stays as it was drawn, and one that trains all of itself. It prints the share of
the held-out images of 7 to 9 that each reads rightly, and draws it for several numbers of images.
"""

import argparse
import tempfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from digits import Images, load

import geon
from geon.frontends import neon
from geon.frontends.neon import axis as ax

H, W, C = geon.Axis("H", 8), geon.Axis("W", 8), geon.Axis("C", 1)
KNOWN = range(7)  # the digits that the first network reads
OTHERS = range(7, 10)
BATCH, STEPS = 32, 200  # of a head
WAYS = ["transferred body", "body as drawn", "all trained"]


def body(random: geon.Random) -> neon.Layer:
    """Two convolutions, which make features of an image."""
    window = {H: geon.Window(3, pad="same"), W: geon.Window(3, pad="same")}
    he = neon.Kaiming(random)
    return neon.Sequential(
        [
            neon.Convolution(window, geon.Axis("C", 16), he, activation=geon.relu),
            neon.Pooling({H: 2, W: 2}),
            neon.Convolution(window, geon.Axis("C", 32), he, activation=geon.relu),
            neon.Pooling({H: 2, W: 2}),
        ],
        name="body",
    )


def build(seed: int, digits: range, steps: int, frozen: bool = False) -> neon.Model:
    """A model that reads these digits; ``frozen``, only its head is trained."""
    random = geon.Random(seed, name="random")
    kind = geon.Axis("kind", len(digits))
    top = neon.Affine(kind, neon.Glorot(random), over=[H, W, "C"], name=f"head.{digits[0]}")
    rate = neon.schedules.OneCycle(0.005, steps)
    return neon.Model(
        neon.Sequential([body(random), top]),
        geon.placeholder([ax.N, H, W, C], name="images"),
        geon.placeholder([ax.N], "int64", name="kinds"),
        neon.costs.cross_entropy,
        neon.Groups({"body.*": None} if frozen else {}, rest=neon.AdamW(rate, decay=0.01)),
        [neon.metrics.Accuracy()],
    )


def part(images: Images, digits: range, count: int | None = None) -> Images:
    """The images of these digits, at most ``count``, and the place of each digit among them."""
    chosen = np.flatnonzero(np.isin(images[1], digits))[:count]
    return images[0][chosen].reshape(-1, 8, 8, 1), images[1][chosen] - digits[0]


def accuracy(model: neon.Model, images: Images, digits: range) -> float:
    """The share of the images of these digits that are read rightly, 0 to 1."""
    return model.evaluate(neon.Batches(*part(images, digits), size=300))["accuracy"]


def reached(way: str, checkpoint: Path, counts: Sequence[int], seed: int) -> list[float]:
    """The share of held-out images of other digits read rightly, after so many to learn from."""
    split, found = load(), []
    model = build(seed + 1, OTHERS, STEPS, frozen=way != WAYS[2])
    model.step()  # now the transformer knows the variables
    for count in counts:
        model.transformer.initialize(force=True)
        if way == WAYS[0]:
            model.transformer.restore(checkpoint, only="body.*")
        images = part(split.train, OTHERS, count)
        data = neon.Batches(*images, size=min(BATCH, count), seed=seed)
        model.fit(data, STEPS // len(data))
        found.append(accuracy(model, split.test, OTHERS))
    return found


def plot(shares: dict[str, list[float]], counts: Sequence[int], path: Path) -> None:
    """Draw what each way reached with each number of examples."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6, 4), layout="constrained")
    axes = figure.subplots()
    for way, each in shares.items():
        axes.plot(counts, each, "o-", label=way)
    axes.set(xlabel="images to learn from", ylabel="held-out images read rightly")
    axes.legend()
    figure.savefig(path)


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description="Learn some digits with what others have taught.")
    parser.add_argument("--epochs", type=int, default=8, help="of 0 to 4")
    parser.add_argument("--examples", type=int, nargs="+", default=[10, 20, 50])
    parser.add_argument("--seed", type=int, default=0, help="of weights and order")
    parser.add_argument("--into", type=Path, default=Path("new.png"), help="picture")
    options = parser.parse_args(argv)

    split = load()
    data = neon.Batches(*part(split.train, KNOWN), size=BATCH, seed=options.seed)
    first = build(options.seed, KNOWN, options.epochs * len(data))
    first.fit(data, options.epochs)
    print(f"0 to 6: {100 * accuracy(first, split.test, KNOWN):.1f} % read rightly")
    with tempfile.TemporaryDirectory() as folder:
        checkpoint = Path(folder, "first.safetensors")
        first.save(checkpoint)
        counts, seed = options.examples, options.seed
        shares = {way: reached(way, checkpoint, counts, seed) for way in WAYS}
    print(f"7 to 9, from {', '.join(map(str, counts))} images:")
    for way, each in shares.items():
        print(f"{way:18}", *[f"{100 * share:5.1f} %" for share in each])
    plot(shares, counts, options.into)


if __name__ == "__main__":
    main()
