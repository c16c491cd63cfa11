"""Random bits: Threefry-2x32 with 20 rounds, with the counters that JAX gives it.

J. K. Salmon et al., "Parallel random numbers: as easy as 1, 2, 3" (2011).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np

import geon

from ....errors import ArgumentError
from ....op_graph.axes.lengths import product
from ...positional.elementwise import elementwise
from ...positional.indexing import select
from ...positional.movement import concat
from ...positional.picking import numbers
from ...positional.programs import cast
from ...positional.reshaping import reshape, unsqueeze
from ...positional.values import Size, Value, host

ROTATIONS = ((13, 15, 26, 6), (17, 29, 16, 24))
PARITY = 0x1BD11BDA
WORD = np.dtype("uint32")


@dataclass(frozen=True)
class Keys:
    """An array of keys: the two words of each."""

    words: tuple[Value, Value]


def threefry(k0: Value, k1: Value, x0: Value, x1: Value) -> tuple[Value, Value]:
    """Return two words of random bits for the words of a key and of a counter."""
    found = []
    for number in (0, 1):  # one tensor each; equal parts are one op
        found.append(elementwise(lambda *w, n=number: _rounds(*w)[n], k0, k1, x0, x1))
    return found[0], found[1]


def _rounds(
    k0: geon.Tensor, k1: geon.Tensor, x0: geon.Tensor, x1: geon.Tensor
) -> tuple[geon.Tensor, geon.Tensor]:
    keys = [k0, k1, geon.bitwise_xor(geon.bitwise_xor(k0, k1), PARITY)]
    x0, x1 = x0 + k0, x1 + k1
    for number in range(5):
        for distance in ROTATIONS[number % 2]:
            x0 = x0 + x1
            turned = geon.bitwise_or(
                geon.left_shift(x1, distance), geon.right_shift(x1, 32 - distance)
            )
            x1 = geon.bitwise_xor(x0, turned)
        x0 = x0 + keys[(number + 1) % 3]
        x1 = x1 + keys[(number + 2) % 3] + (number + 1)
    return x0, x1


def _counters(shape: Sequence[Size]) -> tuple[Value, Value]:
    """Return the two words of the row-major index of each element."""
    whole = reshape(numbers(product(shape)), shape) if shape else host(0, "int64")
    high = elementwise(geon.right_shift, whole, host(32, "int64"))
    low = elementwise(geon.bitwise_and, whole, host(2**32 - 1, "int64"))
    return cast(high, WORD), cast(low, WORD)


def _draw(keys: Keys, shape: Sequence[Size]) -> tuple[Value, Value]:
    """Return two words for each key and each element of a shape."""
    if not jax.config.values["jax_threefry_partitionable"]:
        raise ArgumentError(
            "random bits with jax_threefry_partitionable=False; geon has those of True alone"
        )
    rank = len(keys.words[0].shape)
    wide = [unsqueeze(word, range(rank, rank + len(shape))) for word in keys.words]
    return threefry(wide[0], wide[1], *_counters(shape))


def bits(keys: Keys, *, bit_width: int, shape: Sequence[Size]) -> Value:
    """Return random integers of 8, 16, 32 or 64 bits."""
    first, second = _draw(keys, shape)
    if bit_width == 64:
        high = elementwise(geon.left_shift, cast(first, "uint64"), host(32, "uint64"))
        return elementwise(geon.bitwise_or, high, cast(second, "uint64"))
    both = elementwise(geon.bitwise_xor, first, second)
    if bit_width == 32:
        return both
    low = elementwise(geon.bitwise_and, both, host(2**bit_width - 1, WORD))
    return cast(low, f"uint{bit_width}")


def split(keys: Keys, *, shape: Sequence[Size]) -> Keys:
    """Return new keys in a shape for each key."""
    return Keys(_draw(keys, shape))


def fold_in(keys: Keys, data: Value) -> Keys:
    """Return the key that follows from a key and a number."""
    zero = host(0, WORD)
    return Keys(threefry(*keys.words, zero, cast(data, WORD)))


def seed(number: Value, *, impl: Any) -> Keys:
    """Return the key of an integer: its upper and its lower word."""
    _only_threefry(impl)
    if number.dtype.itemsize < 8:
        high: Value = elementwise(lambda t: 0 * t, cast(number, WORD))
        return Keys((high, cast(number, WORD)))
    mask = host(2**32 - 1, number.dtype)
    upper = elementwise(geon.right_shift, number, host(32, number.dtype))
    words = [elementwise(geon.bitwise_and, each, mask) for each in (upper, number)]
    return Keys((cast(words[0], WORD), cast(words[1], WORD)))


def _only_threefry(impl: Any) -> None:
    if "fry" not in str(impl):
        raise ArgumentError(f"random keys of the kind {impl}; geon has those of threefry2x32")


def wrap(x: Value, *, impl: Any) -> Keys:
    """Return the keys whose two words lie along the last position."""
    _only_threefry(impl)
    last = len(x.shape) - 1
    return Keys((select(x, last, 0), select(x, last, 1)))


def unwrap(keys: Keys) -> Value:
    """Return the words of keys along a new last position."""
    rank = len(keys.words[0].shape)
    return concat([unsqueeze(word, [rank]) for word in keys.words], rank)


ROWS: dict[str, Callable[..., Any]] = {
    "threefry2x32": threefry,
    "random_bits": bits,
    "random_split": split,
    "random_fold_in": fold_in,
    "random_seed": seed,
    "random_wrap": wrap,
    "random_unwrap": unwrap,
}
