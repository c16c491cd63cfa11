"""Two networks that learn to write text character by character: an LSTM, and a small transformer.

    python examples/character_model.py [--network transformer] [--epochs 6] [--characters 400000]
    python examples/character_model.py --sample "The " --length 300

The text is that of Python's own help, which every CPython has as pydoc_data.topics. The last tenth
is held out, and what the network and an order-3 Markov model need for each of its characters is
printed in bits; then the network goes on from a beginning. A cache keeps what it saw of the text so
far, so each character costs one step.
"""

import argparse
from collections import Counter, defaultdict
from collections.abc import Sequence
from pydoc_data.topics import topics

import numpy as np

import geon
from geon.frontends import neon
from geon.frontends.neon import axis as ax

SYMBOLS = "\n" + "".join(chr(code) for code in range(32, 127))  # no others are in the text
CHARACTER, NEXT = geon.Axis("character", len(SYMBOLS)), geon.Axis("next", len(SYMBOLS))
WINDOW, BATCH, ORDER = 64, 8, 3
RATE = {"lstm": 0.015, "transformer": 0.006}


def read(count: int) -> np.ndarray:
    """The first characters of the help, topic after topic, as numbers; others are left out."""
    text = "\n".join(topics[name] for name in sorted(topics))
    numbers = {symbol: number for number, symbol in enumerate(SYMBOLS)}
    return np.array([numbers[each] for each in text if each in numbers][:count])


def windows(text: np.ndarray, seed: int | None = None) -> neon.Batches:
    """Pieces of text, each beside that of the characters that follow, in batches."""
    count = (len(text) - 1) // WINDOW
    pieces = [text[start : start + count * WINDOW].reshape(-1, WINDOW) for start in (0, 1)]
    return neon.Batches(*pieces, size=BATCH, seed=seed)


def lstm(random: geon.Random) -> neon.Layer:
    """A state that goes from character to character."""
    wide = geon.Axis("state", 128)
    glorot, turned = neon.Glorot(random), neon.Orthogonal(random)
    return neon.Sequential(
        [
            neon.LookupTable(CHARACTER, geon.Axis("row", 64), neon.Gaussian(random, std=1.0)),
            neon.LSTM(wide, glorot, turned, neon.ForgetBias()),
            neon.Affine(NEXT, glorot),
        ],
        name="lstm",
    )


def transformer(random: geon.Random, layers: int = 2) -> neon.Layer:
    """Blocks in which each character sees those before it."""
    row, head, key = geon.Axis("row", 96), geon.Axis("head", 4), geon.Axis("key", 24)
    glorot = neon.Glorot(random)

    def block() -> list[neon.Layer]:
        seen = neon.MultiHeadAttention(head, key, row, glorot, causal=True, rotary=10000)
        wide = neon.Affine(geon.Axis("wide", 256), glorot, activation=geon.gelu)
        return [
            neon.Residual(neon.Sequential([neon.RMSNorm(), seen])),
            neon.Residual(neon.Sequential([neon.RMSNorm(), wide, neon.Affine(row, glorot)])),
        ]

    parts = [each for _ in range(layers) for each in block()]
    table = neon.LookupTable(CHARACTER, row, neon.Gaussian(random, std=1.0))
    return neon.Sequential(
        [table, *parts, neon.RMSNorm(), neon.Affine(NEXT, glorot)], name="transformer"
    )


NETWORKS = {"lstm": lstm, "transformer": transformer}


def train(
    network: str,
    text: np.ndarray,
    epochs: int,
    seed: int = 0,
    callbacks: Sequence[neon.Callback] = (),
) -> neon.Model:
    """A network that was trained on a text; ``seed`` decides first weights and order."""
    before = geon.placeholder([ax.N, ax.T], "int64", name="before")
    after = geon.placeholder([ax.N, ax.T], "int64", name="after")
    data = windows(text, seed)
    rate = neon.schedules.OneCycle(RATE[network], epochs * len(data))
    model = neon.Model(
        NETWORKS[network](geon.Random(seed, name="random")),
        before,
        after,
        neon.costs.cross_entropy,
        neon.AdamW(rate, decay=0.01, clip=neon.ByGlobalNorm(1.0)),
    )
    model.fit(data, epochs, callbacks=callbacks)
    return model


def bits(model: neon.Model, text: np.ndarray) -> float:
    """What the network needs for each character of a text."""
    return model.evaluate(windows(text))["cost"] / np.log(2)


def markov_bits(known: np.ndarray, text: np.ndarray) -> float:
    """What a Markov model of the text ``known`` needs for each character of another.

    Probabilities after three characters are mixed with those after two, and so on, by how many
    different characters followed. I. Witten and T. Bell, "The zero-frequency problem", 1991.
    """
    followers: list[dict[bytes, Counter]] = [defaultdict(Counter) for _ in range(ORDER + 1)]
    raw, other = bytes(known.astype(np.uint8)), bytes(text.astype(np.uint8))
    for end in range(ORDER, len(raw)):
        for order in range(ORDER + 1):
            followers[order][raw[end - order : end]][raw[end]] += 1
    total = 0.0
    for end in range(ORDER, len(other)):
        p = 1 / len(SYMBOLS)
        for order in range(ORDER + 1):
            found = followers[order].get(other[end - order : end])
            if found:
                kinds = len(found)
                p = (found[other[end]] + kinds * p) / (found.total() + kinds)
        total -= np.log2(p)
    return total / (len(other) - ORDER)


def sample(model: neon.Model, beginning: str, length: int, seed: int = 0) -> str:
    """The beginning, and what the network writes after it: ``length`` characters.

    It has learned from windows, so where one is full it begins anew with the last half.
    """
    given = geon.placeholder([ax.N, ax.T], "int64", name="given")
    cache = neon.Cache(geon.Axis("place", WINDOW))
    scores = model.layer(given, cache=cache)[{"T": -1}]
    step = model.transformer.computation([scores, *cache.updates], given)
    dice = np.random.default_rng(seed)
    written = new = beginning or "\n"
    for _ in range(length):
        if len(new) + model.transformer.get(cache.position) > WINDOW:
            model.transformer.set(cache.position, 0)
            new = written[-WINDOW // 2 :]
        found = step([[SYMBOLS.index(symbol) for symbol in new]])[0][0].astype("float64")
        p = np.exp((found - found.max()) / 0.8)  # likely characters a little more often
        new = SYMBOLS[dice.choice(len(p), p=p / p.sum())]
        written += new
    return written


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description="Learn to write Python's help.")
    parser.add_argument("--network", choices=list(NETWORKS), default="transformer")
    parser.add_argument("--characters", type=int, default=400_000, help="of the text")
    parser.add_argument("--epochs", type=int, default=6)
    parser.add_argument("--seed", type=int, default=0, help="of weights, order and samples")
    parser.add_argument("--sample", metavar="TEXT", default="The ", help="a beginning")
    parser.add_argument("--length", type=int, default=300, help="of what is written after it")
    options = parser.parse_args(argv)
    strange = set(options.sample) - set(SYMBOLS)
    if strange:
        parser.error(f"--sample has {min(strange)!r}, and the text has only {SYMBOLS!r}")

    text = read(options.characters)
    cut = len(text) * 9 // 10
    known, held_out = text[:cut], text[cut:]
    model = train(options.network, known, options.epochs, options.seed, [neon.Progress()])
    print(model.summary())
    print(sample(model, options.sample, options.length, options.seed))
    print(f"order-{ORDER} Markov model: {markov_bits(known, held_out):.2f} bits per character")
    print(f"{options.network}: {bits(model, held_out):.2f} bits per character")


if __name__ == "__main__":
    main()
