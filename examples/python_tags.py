"""Tag each character of Python source as a keyword, name, number, string, comment or operator.

    python examples/python_tags.py [--epochs 4] [--lines 6000] [--seed 0] [--into tags.html]

The text is lines of modules that Python ships, and tokenize says what each character is. An LSTM
from each end of a line reads it; lines have various lengths, so batches are padded, and a mask says
what counts. Held out are whole modules. It prints the share of their characters that are tagged
rightly, beside that of a table with the most frequent tag of each character, and writes lines of
them, coloured by the tags that were found.
"""

import argparse
import html
import io
import keyword
import sysconfig
import tokenize
from collections.abc import Sequence
from pathlib import Path

import numpy as np

import geon
from geon.frontends import neon
from geon.frontends.neon import axis as ax

TAGS = ["space", "keyword", "name", "number", "string", "comment", "operator"]
COLOURS = ["black", "#a0a", "black", "#07a", "#080", "#888", "#b40"]
KNOWN = ["argparse", "ast", "bdb", "calendar", "csv", "datetime", "difflib", "doctest", "enum"]
KNOWN += ["fractions", "inspect", "optparse", "pdb", "pickle", "random", "tarfile"]
HELD_OUT = ["statistics", "textwrap", "zipapp", "shutil", "heapq", "configparser"]
CHARACTER, TAG = geon.Axis("character", 128), geon.Axis("tag", len(TAGS))
LONGEST, BATCH = 80, 32

Lines = tuple[list[np.ndarray], list[np.ndarray]]  # of each line its characters and their tags


def tags_of(source: str) -> list[np.ndarray | None]:
    """The tags of each line's characters; None for lines that part of a longer token is in."""
    lines = source.splitlines()
    found: list[np.ndarray | None] = [np.zeros(len(line), np.int64) for line in lines]
    kinds = {tokenize.NUMBER: 3, tokenize.STRING: 4, tokenize.COMMENT: 5, tokenize.OP: 6}
    kinds |= {getattr(tokenize, each): 4 for each in dir(tokenize) if each.startswith("FSTRING_")}
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        (first, begin), (last, end) = token.start, token.end
        if first < last and token.string.strip():
            found[first - 1 : last] = [None] * (last - first + 1)
        elif first == last and first <= len(lines) and (line := found[first - 1]) is not None:
            name = 1 if keyword.iskeyword(token.string) else 2
            line[begin:end] = name if token.type == tokenize.NAME else kinds.get(token.type, 0)
    return found


def read(modules: Sequence[str], count: int, seed: int = 0) -> Lines:
    """At most ``count`` lines of modules, drawn by ``seed``."""
    characters, tags = [], []
    for module in modules:
        source = Path(sysconfig.get_path("stdlib"), f"{module}.py").read_text("utf-8")
        for line, found in zip(source.splitlines(), tags_of(source), strict=True):
            if found is not None and line.strip() and len(line) <= LONGEST:
                characters.append(np.array([min(ord(each), 127) for each in line]))
                tags.append(found)
    chosen = np.random.default_rng(seed).permutation(len(tags))[:count]
    return [characters[k] for k in chosen], [tags[k] for k in chosen]


class Tagger(neon.Layer):
    """From characters over (N, T), and a mask that says which count, to scores of their tags."""

    def __init__(self, random: geon.Random) -> None:
        super().__init__("tagger")
        state, glorot, turned = geon.Axis("state", 48), neon.Glorot(random), neon.Orthogonal(random)
        self.table = neon.LookupTable(CHARACTER, geon.Axis("row", 24), neon.Gaussian(random, std=1))
        self.both = neon.BiRNN(
            neon.LSTM(state, glorot, turned, neon.ForgetBias()),
            neon.LSTM(state, glorot, turned, neon.ForgetBias(), reverse=True),
        )
        self.scores = neon.Affine(TAG, glorot)

    def forward(
        self, text: geon.Tensor, mask: geon.Tensor, training: neon.Training | None = None
    ) -> geon.Tensor:
        rows = self.table(text, training=training)
        return self.scores(self.both(rows, training=training, mask=mask), training=training)


def build(seed: int, steps: int) -> neon.Model:
    """A model from characters and mask to scores, whose cost sees what the mask lets it see."""
    text = geon.placeholder([ax.N, ax.T], "int64", name="text")
    mask = geon.placeholder([ax.N, ax.T], "bool", name="mask")
    tags = geon.placeholder([ax.N, ax.T], "int64", name="tags")

    def cost(scores: geon.Tensor, tags: geon.Tensor) -> geon.Tensor:
        """The mean over the characters of each line."""
        each = geon.where(mask, neon.costs.cross_entropy(scores, tags), 0)
        return geon.sum(each, ax.T) / geon.sum(geon.cast(mask, "float32"), ax.T)

    rate = neon.schedules.OneCycle(0.02, steps)
    optimiser = neon.AdamW(rate, decay=0.01, clip=neon.ByGlobalNorm(1.0))
    return neon.Model(Tagger(geon.Random(seed, name="random")), [text, mask], tags, cost, optimiser)


def accuracy(model: neon.Model, lines: Lines) -> float:
    """The share of characters, spaces left out, whose tag is the right one, 0 to 1."""
    right = total = 0
    for text, mask, tags in neon.Buckets(*lines, size=256, edges=range(10, LONGEST, 10)).epoch(0):
        counts = mask & (tags > 0)
        said = np.argmax(model.predict(text, mask), axis=2)
        right, total = right + np.sum((said == tags)[counts]), total + counts.sum()
    return float(right / total)


def table_accuracy(known: Lines, lines: Lines) -> float:
    """The same of a table: what each character most often was in the lines ``known``."""
    counts = np.zeros((CHARACTER.length, TAG.length), int)
    np.add.at(counts, (np.concatenate(known[0]), np.concatenate(known[1])), 1)
    text, tags = (np.concatenate(column) for column in lines)
    return float(np.mean((counts.argmax(1)[text] == tags)[tags > 0]))


def coloured(model: neon.Model, lines: Lines) -> str:
    """A page with lines in the colours of the tags that the model finds."""
    ((text, mask, _),) = neon.Buckets(*lines, size=len(lines[0])).epoch(0)
    page = ["<!DOCTYPE html><meta charset=utf-8>\n<pre>"]
    for characters, tags in zip(lines[0], model.predict(text, mask).argmax(2), strict=True):
        pairs = zip(characters, tags, strict=False)  # what is beyond the line is padding
        page += [f'<span style="color:{COLOURS[t]}">{html.escape(chr(c))}</span>' for c, t in pairs]
        page.append("\n")
    return "".join(page) + "</pre>"


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description="Learn what the characters of Python source are.")
    parser.add_argument("--epochs", type=int, default=4)
    parser.add_argument("--lines", type=int, default=6000, help="to learn from")
    parser.add_argument("--seed", type=int, default=0, help="of weights, lines and order")
    parser.add_argument("--into", type=Path, default=Path("tags.html"), help="page of tagged lines")
    options = parser.parse_args(argv)

    known, held_out = read(KNOWN, options.lines, options.seed), read(HELD_OUT, 1000)
    data = neon.Buckets(*known, size=BATCH, edges=range(10, LONGEST, 10), seed=options.seed)
    model = build(options.seed, options.epochs * len(data))
    model.fit(data, options.epochs, callbacks=[neon.Progress()])
    print(f"most frequent tag: {100 * table_accuracy(known, held_out):.2f} % of the characters")
    print(f"LSTM of both ends: {100 * accuracy(model, held_out):.2f} % of the characters")
    options.into.write_text(coloured(model, (held_out[0][:40], held_out[1][:40])), "utf-8")


if __name__ == "__main__":
    main()
