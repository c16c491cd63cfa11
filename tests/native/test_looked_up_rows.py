"""Rows at computed positions, asked for ahead: the results of NumPy."""

import numpy as np
import pytest

import geon
from geon.transformers.loops.gather_prefetch import (
    MAX_CACHED_TABLE_BYTES,
    MAX_PREFETCHED_LINES,
    MAX_PREFETCHED_TABLES,
)
from geon.transformers.sizes.blocks import CACHE_LINE_BYTES
from geon.transformers.sizes.limits import PREFETCH_DISTANCE

from .test_short_rows import compare, values

N, M, P = geon.Axis("N"), geon.Axis("M"), geon.Axis("P")
ROWS = [
    1,
    PREFETCH_DISTANCE - 1,
    PREFETCH_DISTANCE,
    PREFETCH_DISTANCE + 1,
    5 * PREFETCH_DISTANCE + 3,
]
LENGTHS = [
    1,
    15,
    16,
    17,
    MAX_PREFETCHED_LINES * CACHE_LINE_BYTES // 4,
    MAX_PREFETCHED_LINES * CACHE_LINE_BYTES // 4 + 1,
    513,
]


def asks(source):
    """Whether rows are asked for before they are read."""
    return "__builtin_prefetch(far" in source


def positions(count, size):
    """Positions, some of which count from the end."""
    return np.random.default_rng(count).integers(-size, size, count)


@pytest.mark.parametrize("rows", ROWS)
@pytest.mark.parametrize("length", LENGTHS)
def test_rows_of_open_length_that_are_stored_summed_and_both(rows, length):
    table, at = geon.placeholder([N, M]), geon.placeholder([P], dtype="int64")
    found = geon.gather(table, at, N)
    feeds = [table, values("float32", 300, length), at, positions(rows, 300)]
    total = geon.cast(geon.sum(geon.cast(found, "float64")), "float32")
    for results in ([found], [total], [found * 2, geon.max(found)], [geon.sum(found, M)]):
        assert asks(compare(results, *feeds))


@pytest.mark.parametrize("batch", [1, 3, PREFETCH_DISTANCE + 1])
def test_each_row_of_a_batch_has_positions_of_its_own(batch):
    b, k = geon.Axis("B", batch), geon.Axis("K", 40)
    n, p = geon.Axis("N", 4000), geon.Axis("P", 37)
    table, at = geon.placeholder([b, n, k]), geon.placeholder([b, p], dtype="int64")
    found = geon.gather(table, at, n)
    data = positions(batch * 37, 4000).reshape(batch, 37)
    source = compare(
        [found, geon.argmax(found)], table, values("float32", batch, 4000, 40), at, data
    )
    assert asks(source)


@pytest.mark.parametrize("count", [MAX_PREFETCHED_TABLES, MAX_PREFETCHED_TABLES + 1])
def test_so_many_tables_are_asked_for(count):
    n, k, p = geon.Axis("N", 4000), geon.Axis("K", 40), geon.Axis("P", 37)
    total, feeds = None, []
    for number in range(count):
        table, at = geon.placeholder([n, k]), geon.placeholder([p], dtype="int64")
        found = geon.gather(table, at, n)
        total = found if total is None else total * found
        feeds += [table, values("float32", 4000, 40), at, positions(37 + number, 4000)[:37]]
    assert asks(compare([total], *feeds)) == (count <= MAX_PREFETCHED_TABLES)


@pytest.mark.parametrize(
    "elements", [MAX_CACHED_TABLE_BYTES // 4, MAX_CACHED_TABLE_BYTES // 4 + 40]
)
def test_tables_that_the_nearest_cache_holds_are_not_asked_for(elements):
    n, k, p = geon.Axis("N", elements // 40), geon.Axis("K", 40), geon.Axis("P", 37)
    table, at = geon.placeholder([n, k]), geon.placeholder([p], dtype="int64")
    data = values("float32", n.length, 40)
    source = compare([geon.gather(table, at, n)], table, data, at, positions(37, n.length))
    assert asks(source) == (n.length * 160 > MAX_CACHED_TABLE_BYTES)
