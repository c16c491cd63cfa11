"""Texts, which are known when the model is built, and counts of words."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import geon

from ....errors import ArgumentError
from ...positional.elementwise import elementwise
from ...positional.indexing import gather
from ...positional.movement import Part, concat, slices
from ...positional.programs import cast
from ...positional.reductions import reduce
from ...positional.reshaping import unsqueeze
from ...positional.values import HostArray, Value, host, known
from ..table import row

MAX_COLUMNS = 2**22  # of counts of n-grams
CASES: dict[str, Callable[[str], str]] = {"NONE": str, "LOWER": str.lower, "UPPER": str.upper}


def _texts(x: Value) -> np.ndarray[Any, Any]:
    return known(x, "a tensor of texts").astype(object)


def _host(values: Any, shape: Sequence[int]) -> HostArray:
    whole = np.empty(len(values), object)
    whole[:] = values
    return HostArray(whole.reshape(shape), np.dtype(object))


def concat_texts(x: Value, y: Value, /) -> HostArray:
    """Return texts joined element by element."""
    joined = np.asarray(_texts(x) + _texts(y), object)
    return HostArray(joined, np.dtype(object))


def normalize(
    x: Value,
    /,
    *,
    case_change_action: str = "NONE",
    is_case_sensitive: int = 0,
    stopwords: Sequence[str] = (),
) -> HostArray:
    """Return a vector, or a row, of texts without some words, in upper or lower case."""
    given = _texts(x)
    change, same = CASES[case_change_action], CASES["NONE" if is_case_sensitive else "LOWER"]
    gone = {same(word) for word in stopwords}
    kept = [change(text) for text in given.flat if same(text) not in gone] or [""]
    return _host(kept, [*given.shape[:-1], len(kept)])


def split_texts(
    x: Value, /, *, delimiter: str | None = None, maxsplit: int | None = None
) -> tuple[HostArray, HostArray]:
    """Return the parts of each text along a new position, filled up with "", and their numbers."""
    given = _texts(x)
    most = -1 if maxsplit is None else maxsplit
    parts = [text.split(delimiter or None, most) for text in given.flat]
    width = max([len(each) for each in parts], default=0)
    filled = [word for each in parts for word in [*each, *[""] * (width - len(each))]]
    counts = np.array([len(each) for each in parts], np.int64)
    return _host(filled, [*given.shape, width]), host(counts.reshape(given.shape))


def full_match(x: Value, /, *, pattern: str) -> HostArray:
    """Return true where the whole text matches a regular expression."""
    given = _texts(x)
    try:
        found = [re.fullmatch(pattern, text) is not None for text in given.flat]
    except re.error as error:
        raise ArgumentError(f"the pattern {pattern!r} is not valid: {error}") from None
    return host(np.array(found, bool).reshape(given.shape))


def count_ngrams(
    x: Value,
    /,
    *,
    max_gram_length: int,
    max_skip_count: int,
    min_gram_length: int,
    mode: str,
    ngram_counts: Sequence[int],
    ngram_indexes: Sequence[int],
    pool_int64s: Sequence[int] = (),
    pool_strings: Sequence[str] = (),
    weights: Sequence[float] = (),
) -> Value:
    """Return how often each n-gram of a pool is in a row, weighted by ``mode``.

    The elements of an n-gram may be up to ``max_skip_count`` elements apart. ``ngram_counts`` has
    the place in the pool where the n-grams of each length begin.
    """
    pool: Sequence[int] = pool_int64s
    if pool_strings:
        words = {word: number for number, word in enumerate(dict.fromkeys(pool_strings))}
        pool = [words[word] for word in pool_strings]
        given = _texts(x)
        numbers = [words.get(word, -1) for word in given.flat]
        x = host(np.array(numbers, np.int64).reshape(given.shape))
    bounds = [*ngram_counts, len(pool)]
    found: list[Value] = []
    for size, (first, last) in enumerate(zip(bounds[:-1], bounds[1:], strict=True), 1):
        grams = np.array(pool[first:last]).reshape(-1, size)
        if not len(grams):
            continue
        skips = range(max_skip_count + 1 if size > 1 else 1)
        is_counted = min_gram_length <= size <= max_gram_length
        counts = [_matches(x, grams, skip + 1) for skip in skips] if is_counted else []
        total: Value = host(np.zeros([*([1] * (len(x.shape) - 1)), len(grams)], np.float32))
        for each in counts:
            if each is not None:
                total = elementwise(geon.add, total, each)
        found.append(_rows(total, x))
    whole = concat(found, len(x.shape) - 1)
    if mode != "TF":
        factor = host(np.array(weights or [1.0] * len(ngram_indexes), np.float32))
        if mode == "IDF":
            whole = elementwise(lambda t: geon.cast(geon.greater(t, 0), "float32"), whole)
        whole = elementwise(geon.multiply, whole, factor)
    return _placed(whole, ngram_indexes)


def _rows(total: Value, x: Value) -> Value:
    """Return counts with as many rows as ``x``."""
    if len(x.shape) == 1:
        return total
    zero = reduce(lambda t, axes: geon.sum(t, axes) * 0, cast(x, "float32"), [1])
    return elementwise(geon.add, total, zero)


def _matches(x: Value, grams: np.ndarray[Any, Any], distance: int) -> Value | None:
    """Return how often each n-gram is in each row, with its elements at a distance."""
    last = len(x.shape) - 1
    size, length = grams.shape[1], x.shape[last]
    span = (size - 1) * distance
    if isinstance(length, int) and length <= span:
        return None
    equal: Value | None = None
    for k in range(size):
        part = slices(x, {last: Part(k * distance, length - span + k * distance)})
        column = host(grams[:, k].astype(x.dtype))
        same = elementwise(geon.equal, unsqueeze(part, [last + 1]), column)
        equal = same if equal is None else elementwise(geon.logical_and, equal, same)
    assert equal is not None  # n-grams have at least one element
    return reduce(geon.sum, cast(equal, "float32"), [last], keep=False)


def _placed(counts: Value, indexes: Sequence[int]) -> Value:
    """Return counts at these columns of the result, 0 in others."""
    if len(set(indexes)) != len(indexes) or not 0 <= min(indexes) <= max(indexes) < MAX_COLUMNS:
        raise ArgumentError(f"ngram_indexes must be different, from 0 to {MAX_COLUMNS - 1}")
    column = {index: number for number, index in enumerate(indexes)}
    width = max(indexes) + 1
    last = len(counts.shape) - 1
    zero = elementwise(lambda t: t * 0, slices(counts, {last: Part(0, 1)}))
    order = [column.get(index, len(indexes)) for index in range(width)]
    return gather(concat([counts, zero], last), host(np.array(order)), last)


ROWS = [
    row("StringConcat", concat_texts),
    row("StringNormalizer", normalize),
    row("StringSplit", split_texts),
    row("RegexFullMatch", full_match),
    row("TfIdfVectorizer", count_ngrams),
]
