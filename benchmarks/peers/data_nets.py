"""Inputs of the networks: data, and first values by the names that geon's layers give.

Each function is named as a kind and takes a generator and sizes. Images are (N, H, W, C).
"""

from __future__ import annotations

from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]
Data = dict[str, Any]
Generator = np.random.Generator
Values = dict[str, Array]


def normal(rng: Generator, *shape: int, scale: float) -> Array:
    """Normal numbers in float32."""
    return rng.standard_normal(shape, np.float32) * np.float32(scale)


def norm(place: str, channels: int, batch: bool = False) -> Values:
    """A layer that norms, with running statistics where it is a batch norm."""
    ones, zeros = np.ones(channels, np.float32), np.zeros(channels, np.float32)
    found = {f"{place}.scale": ones, f"{place}.shift": zeros}
    return found | ({f"{place}.mean": zeros, f"{place}.variance": ones} if batch else {})


def convolved(rng: Generator, place: str, size: int, channels: int, filters: int) -> Values:
    """Filters, and the norm behind them."""
    deep = size * size * channels
    w = normal(rng, size, size, channels, filters, scale=(2 / deep) ** 0.5)
    return {f"{place}.w": w} | norm(f"{place}_norm", filters, True)


def residual_step(
    rng: Generator, batch: int, side: int, channels: int, blocks: int, classes: int
) -> Data:
    """Three stages of blocks of two convolutions, each stage twice as wide and half as large."""
    values = convolved(rng, "stem", 3, 3, channels)
    before = channels
    for number in range(3 * blocks):
        place, width = f"blocks.{number}", channels * 2 ** (number // blocks)
        values |= convolved(rng, f"{place}.first", 3, before, width)
        values |= convolved(rng, f"{place}.second", 3, width, width)
        if before != width:
            values |= convolved(rng, f"{place}.shortcut", 1, before, width)
        before = width
    values["head.w"] = normal(rng, before, classes, scale=before**-0.5)
    values["head.b"] = np.zeros(classes, np.float32)
    return {
        "x": normal(rng, batch, side, side, 3, scale=1.0),
        "t": rng.integers(0, classes, batch),
        "values": values,
    }


def transformer(rng: Generator, layers: int, width: int, heads: int, words: int) -> Values:
    """A table, blocks of attention and of two products, and a head."""
    key = width // heads
    values = {"table.w": normal(rng, words, width, scale=1.0)}
    for number in range(layers):
        place = f"blocks.{number}"
        values |= norm(f"{place}.before", width) | norm(f"{place}.between", width)
        for part in ("query", "key", "value"):
            w = normal(rng, width, heads, key, scale=width**-0.5)
            values[f"{place}.attention.{part}"] = w
        values |= {
            f"{place}.attention.out": normal(rng, heads, key, width, scale=width**-0.5),
            f"{place}.wide.w": normal(rng, width, 4 * width, scale=width**-0.5),
            f"{place}.wide.b": np.zeros(4 * width, np.float32),
            f"{place}.narrow.w": normal(rng, 4 * width, width, scale=(4 * width) ** -0.5),
            f"{place}.narrow.b": np.zeros(width, np.float32),
        }
    return values | norm("norm", width) | {"head.w": normal(rng, width, words, scale=width**-0.5)}


def gpt_step(
    rng: Generator, batch: int, tokens: int, layers: int, width: int, heads: int, words: int
) -> Data:
    """Rows of tokens and those that come next."""
    text = rng.integers(0, words, (batch, tokens + 1))
    return {
        "x": text[:, :-1],
        "t": text[:, 1:],
        "values": transformer(rng, layers, width, heads, words),
    }


def sampling(
    rng: Generator, tokens: int, places: int, layers: int, width: int, heads: int, words: int
) -> Data:
    """One token, after which the likeliest comes, and so on."""
    return {
        "first": int(rng.integers(words)),
        "values": transformer(rng, layers, width, heads, words),
    }


def lstm_model_step(rng: Generator, batch: int, tokens: int, width: int, words: int) -> Data:
    """Rows of tokens and those that come next; a table, a recurrent layer, and a head."""
    text = rng.integers(0, words, (batch, tokens + 1))
    return {
        "x": text[:, :-1],
        "t": text[:, 1:],
        "values": {
            "table.w": normal(rng, words, width, scale=1.0),
            "lstm.w": normal(rng, width, 4, width, scale=width**-0.5),
            "lstm.u": normal(rng, width, 4, width, scale=width**-0.5),
            "lstm.b": np.zeros((4, width), np.float32),
            "head.w": normal(rng, width, words, scale=width**-0.5),
            "head.b": np.zeros(words, np.float32),
        },
    }
