"""Orders in which sets are contiguous, beside a search of all permutations."""

import itertools
import random

import pytest

from geon.frontends.brainstorm.structure.pq_tree import consecutive_order


def searched(count, sets):
    """The first of all permutations in which each set is contiguous."""
    for order in itertools.permutations(range(count)):
        places = [[order.index(element) for element in each] for each in sets]
        if all(max(each) - min(each) == len(each) - 1 for each in places):
            return list(order)
    return None


def subsets(count):
    return [s for n in range(1, count + 1) for s in itertools.combinations(range(count), n)]


@pytest.mark.parametrize("count", [1, 2, 3, 4])
def test_all_small_cases(count):
    for number in range(4):
        for sets in itertools.combinations(subsets(count), number):
            assert consecutive_order(count, sets) == searched(count, sets), sets


def test_the_order_of_sets_does_not_matter():
    for sets in itertools.permutations(subsets(3), 3):
        assert consecutive_order(3, sets) == searched(3, sets), sets


@pytest.mark.parametrize("seed", range(4))
def test_random_cases(seed):
    draw = random.Random(seed)
    found = []
    for _ in range(60):
        count = draw.randint(4, 6)
        order = draw.sample(range(count), count)
        sets = [order[a:b] for a, b in (sorted(draw.sample(range(count + 1), 2)) for _ in range(4))]
        if draw.random() < 0.3:
            sets.append(draw.sample(range(count), draw.randint(2, count - 1)))
        found.append(consecutive_order(count, sets))
        assert found[-1] == searched(count, sets), sets
    assert None in found and any(found)


def test_many_elements_take_no_search():
    pairs = [(k, k + 1) for k in range(0, 199)]
    assert consecutive_order(200, pairs) == list(range(200))
    assert consecutive_order(200, [*pairs, (0, 199)]) is None
