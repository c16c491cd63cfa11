"""Schedules: their values by epoch or update, and their descriptions."""

import json

import pytest

from geon.frontends.brainstorm.describable import create_from_description, get_description
from geon.frontends.brainstorm.training import DecreaseAfterEpoch, Exponential, Linear, MultiStep
from geon.frontends.brainstorm.utils import ValidationError

CASES = {
    "linear": (Linear(1.0, 0.5, 5), 1, [1.0, 0.9, 0.8, 0.7, 0.6, 0.5, 0.5]),
    "linear by two": (Linear(1.0, 0.5, 2), 2, [1.0, 1.0, 0.75, 0.75, 0.5, 0.5, 0.5]),
    "exponential": (Exponential(1.0, 0.5), 1, [1.0, 0.5, 0.25, 0.125, 0.0625]),
    "with a minimum": (Exponential(1.0, 0.5, minimum=0.2), 1, [1.0, 0.5, 0.25, 0.2, 0.2]),
    "with a maximum": (Exponential(1.0, 2.0, maximum=3.0), 2, [1.0, 1.0, 2.0, 2.0, 3.0]),
    "steps": (MultiStep(1.0, [2, 3, 5], [0.1, 0.2, 0.3]), 1, [1, 1, 0.1, 0.2, 0.2, 0.3, 0.3]),
}


@pytest.mark.parametrize("timescale", ["epoch", "update"])
@pytest.mark.parametrize("case", CASES)
def test_values(case, timescale):
    schedule, interval, expected = CASES[case]
    again = create_from_description(json.loads(json.dumps(get_description(schedule))))
    for each in (schedule, again):
        found = [
            each(
                *((k, -1) if timescale == "epoch" else (-1, k)), timescale, interval, None, None, {}
            )
            for k in range(len(expected))
        ]
        assert found == pytest.approx(expected)


def test_decrease_goes_by_epochs_on_any_timescale():
    schedule = DecreaseAfterEpoch(0.5, T=2)
    found = [schedule(k, 99, "update", 7, None, None, {}) for k in range(5)]
    assert found == pytest.approx([0.5, 0.5, 0.5 * 2 / 3, 0.25, 0.2])


def test_what_does_not_fit_is_refused():
    for make in (
        lambda: Linear(1, 2, 0),
        lambda: MultiStep(1, [1], []),
        lambda: MultiStep(1, [2, 1], [3, 4]),
    ):
        with pytest.raises(ValidationError, match="give"):
            make()
