"""References give values, defaults and fallbacks to parameters by patterns."""

import pytest

from geon.frontends.brainstorm.structure.view_references import resolve_references
from geon.frontends.brainstorm.utils import NetworkValidationError

NET = {
    "Lstm_1": {"W": None, "R": None, "bias": None},
    "Lstm_2": {"W": None, "R": None, "bias": None},
    "Out": {"W": None, "bias": None},
}


def flat(resolved):
    return [values for views in resolved.values() for values in views.values()]


CASES = {
    "one value for all": (5, [[5]] * 8),
    "a layer": ({"Out": 1, "default": 0}, [[0]] * 6 + [[1]] * 2),
    "a default of a layer before that of all": (
        {"Lstm_1": {"W": 1, "default": 2}, "default": 3},
        [[1], [2], [2]] + [[3]] * 5,
    ),
    "the default of all in a layer without one": (
        {"Lstm*": {"W": 1}, "default": 3},
        [[1], [3], [3]] * 2 + [[3]] * 2,
    ),
    "several patterns": (
        {"Lstm*": {"W": 1}, "*": {"*ia*": 2}, "*_2": 7, "default": 0},
        [[1], [0], [2], [1, 7], [7], [2, 7], [0], [2]],
    ),
    "a value instead of the default of another pattern": (
        {"Lstm*": {"W": 1, "default": 4}, "*_2": {"R": 5}},
        [[1], [4], [4], [1], [4, 5], [4], [], []],
    ),
    "no value": ({"Out": {"W": 1}}, [[]] * 6 + [[1], []]),
}


@pytest.mark.parametrize("case", CASES)
def test_values(case):
    references, expected = CASES[case]
    values, fallbacks = resolve_references(NET, references)
    assert flat(values) == expected and flat(fallbacks) == [[]] * 8


def test_fallbacks():
    references = {"Lstm_1": {"W": 0, "fallback": 2}, "Lstm_2": 5, "fallback": 1}
    values, fallbacks = resolve_references(NET, references)
    assert flat(fallbacks) == [[2]] * 3 + [[1]] * 5
    assert flat(values) == [[0], [], []] + [[5]] * 3 + [[], []]


@pytest.mark.parametrize(
    ("references", "message"),
    [
        ({"Gru*": 1}, "'Gru.' matches nothing: there are 'Lstm_1', 'Lstm_2', 'Out'"),
        ({"Out": {"R": 1}}, "'Out.R' matches nothing of Out: there are 'W', 'bias'"),
        ({3: 1}, "3: a key is a name or a pattern"),
    ],
)
def test_keys_that_match_nothing_are_refused(references, message):
    with pytest.raises(NetworkValidationError, match=message):
        resolve_references(NET, references, "the initializer for")
