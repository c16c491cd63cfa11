"""Offsets of buffers: what is alive together does not overlap, and arenas are small."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from geon.transformers.runtime import arena as placing
from geon.transformers.runtime.arena import place

BUFFERS = st.lists(
    st.tuples(
        st.sampled_from([0, 1, 63, 64, 65, 128, 1000, 4096]),
        st.integers(0, 12),
        st.integers(0, 6),
    ),
    max_size=25,
)


def rounded(sizes):
    return [-(-size // 64) * 64 for size in sizes]


def check(sizes, lifetimes, offsets, total):
    """Every buffer inside the arena, aligned, and apart from what is alive with it."""
    assert len(offsets) == len(sizes)
    for k, (size, (first, last)) in enumerate(zip(sizes, lifetimes, strict=True)):
        assert offsets[k] % 64 == 0
        assert 0 <= offsets[k] and offsets[k] + size <= total
        for j in range(k):
            together = lifetimes[j][0] <= last and first <= lifetimes[j][1]
            low, high = max(offsets[k], offsets[j]), min(offsets[k] + size, offsets[j] + sizes[j])
            assert not (together and low < high), f"buffers {j} and {k} overlap"
    assert total <= sum(rounded(sizes))
    alive = [
        sum(n for n, (a, b) in zip(rounded(sizes), lifetimes, strict=True) if a <= t <= b)
        for t in range(20)
    ]
    assert total >= max(alive)


@given(BUFFERS)
def test_what_is_alive_together_does_not_overlap(buffers):
    sizes = [size for size, _, _ in buffers]
    lifetimes = [(first, first + more) for _, first, more in buffers]
    check(sizes, lifetimes, *place(sizes, lifetimes, 64))
    for strategy in (placing._by_size, placing._by_time):
        check(sizes, lifetimes, *strategy(rounded(sizes), lifetimes))


@given(BUFFERS)
def test_the_better_order_is_taken(buffers):
    sizes = [size for size, _, _ in buffers]
    lifetimes = [(first, first + more) for _, first, more in buffers]
    totals = [s(rounded(sizes), lifetimes)[1] for s in (placing._by_size, placing._by_time)]
    assert place(sizes, lifetimes, 64)[1] == min(totals)


def test_a_chain_takes_two_buffers():
    sizes = [1024] * 50
    assert place(sizes, [(k, k + 1) for k in range(50)], 64)[1] == 2048


@pytest.mark.parametrize(
    "count", [placing.MAX_SEARCHED_BUFFERS, placing.MAX_SEARCHED_BUFFERS + 1, 3000]
)
def test_large_plans(count):
    random = np.random.default_rng(count)
    sizes = (64 * random.integers(0, 50, count)).tolist()
    first = random.integers(0, count, count).tolist()
    lifetimes = [
        (a, a + int(more)) for a, more in zip(first, random.integers(0, 9, count), strict=True)
    ]
    offsets, total = place(sizes, lifetimes, 64)
    events = sorted(range(count), key=lambda k: lifetimes[k])
    for at, k in enumerate(events):
        for j in events[at + 1 :]:
            if lifetimes[j][0] > lifetimes[k][1]:
                break
            low = max(offsets[k], offsets[j])
            assert low >= min(offsets[k] + sizes[k], offsets[j] + sizes[j])
    assert total < sum(sizes)


def test_nothing_to_place():
    assert place([], [], 64) == ([], 0)
    assert place([0, 0], [(0, 5), (0, 5)], 64)[1] == 0
