"""Philox4x32-10 in NumPy: random words from seed, draw, call, step and element index.

J. K. Salmon, M. A. Moraes, R. O. Dror and D. E. Shaw, "Parallel random numbers: as easy as 1, 2,
3", SC11 (2011). A block of four 32-bit words is a function of a counter of four words and a key of
two. Beyond the standard library this module imports NumPy alone, because its text is part of
written-out programs.
"""

from __future__ import annotations

from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]

_MULTIPLIERS = (0xD2511F53, 0xCD9E8D57)
_KEY_STEPS = (0x9E3779B9, 0xBB67AE85)
_ROUNDS = 10
_WORD_MASK = 0xFFFFFFFF
_BLOCK_COUNTERS = 1 << 14  # counters processed at a time, so that the temporaries stay in cache


def philox(counter: tuple[int, ...], key: tuple[int, ...]) -> tuple[int, ...]:
    """Return the four 32-bit words for one counter (four words) and key (two words)."""
    words = [np.array([word], dtype=np.uint64) for word in counter]
    words = _rounds(words, key)
    return tuple(int(word[0]) for word in words)


def random_bits(out: Array, key: int, draw: int, call: int) -> None:
    """Fill `out`, a C-order array of uint32 or uint64, with random bits.

    The word with row-major index i is lane i % 4 of the block with counter (i // 4, step, draw,
    call), where the step of a loop is the high half of `call`; `key` is the 64-bit seed, its low
    half the first key word. A uint64 element is made of two neighbouring words, the low one first.
    Raises ValueError for an array that is not of this kind or has more than 2^34 words.
    """
    count = out.size * (out.itemsize // 4)
    if count > 1 << 34:
        raise ValueError(f"one draw holds at most 2**34 32-bit words, got {count}")
    if out.dtype not in (np.uint32, np.uint64) or not out.flags.c_contiguous:
        raise ValueError(f"random_bits fills C-order uint32 or uint64, got {out.dtype}")
    keys = (key & _WORD_MASK, key >> 32 & _WORD_MASK)
    fixed = [np.full(1, word & _WORD_MASK, np.uint64) for word in (call >> 32, draw, call)]
    flat = out.reshape(-1)
    for start in range(0, count, 4 * _BLOCK_COUNTERS):
        stop = min(start + 4 * _BLOCK_COUNTERS, count)
        counters = np.arange(start // 4, (stop + 3) // 4, dtype=np.uint64)
        words = _rounds([counters, *fixed], keys)
        if out.dtype == np.uint64:
            _interleave(flat[start // 2 : stop // 2], _pairs(words))
        else:
            _interleave(flat[start:stop], words)


def _pairs(words: list[Array]) -> list[Array]:
    """Return the two uint64 lanes made of four words, the low word first."""
    return [words[i] | words[i + 1] << np.uint64(32) for i in (0, 2)]


def _interleave(out: Array, lanes: list[Array]) -> None:
    """Write the lanes in alternation; the last block may be incomplete."""
    width = len(lanes)
    for lane, words in enumerate(lanes):
        part = out[lane::width]
        part[...] = words[: part.size]


def _rounds(words: list[Array], key: tuple[int, ...]) -> list[Array]:
    """Return the four words after ten rounds; words are uint64 holding 32-bit values."""
    low, shift = np.uint64(_WORD_MASK), np.uint64(32)
    first, second = (np.uint64(multiplier) for multiplier in _MULTIPLIERS)
    a, b, c, d = words
    for number in range(_ROUNDS):
        k0, k1 = (
            np.uint64(word + number * step & _WORD_MASK)
            for word, step in zip(key, _KEY_STEPS, strict=True)
        )
        left = a * first
        right = c * second
        a, b, c, d = right >> shift ^ b ^ k0, right & low, left >> shift ^ d ^ k1, left & low
    return [a, b, c, d]
