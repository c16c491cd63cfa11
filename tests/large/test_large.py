"""A part of the fuzz over large arrays: each constant once, and some programs of a new seed.

``make fuzz-large`` runs many more. What fails is written to a file that ``python -m geon replay``
runs, and is run again, alone and with sanitizers, by the command in the message.
"""

import secrets

import pytest

import geon

from .constants import CONSTANTS, aims
from .fuzz import can_sanitize, run
from .planned import enough, plan

missing = geon.NativeTransformer.unavailable()
pytestmark = pytest.mark.skipif(missing is not None, reason=str(missing))

FIXED = "fixed"
NEW = 6
HALVES = (0, 1)  # tests that pytest-xdist runs side by side


def run_all(seed, numbers, count):
    outcome = run(seed, numbers, count, jobs=1, sanitize=can_sanitize())
    command = f"python -m tests.large.fuzz --seed {seed} --programs {count} --only"
    texts = [f"{command} {n}\n{outcome.shown.get(n, '')}\n{text}"
             for n, text in sorted(outcome.failed.items())]  # fmt: skip
    assert not texts, "\n\n".join(texts)
    assert sorted(outcome.passed) == list(numbers)


@pytest.mark.slow
@pytest.mark.parametrize("half", HALVES)
def test_each_constant(half):
    programs = enough(FIXED)  # of which each constant has one
    run_all(FIXED, list(range(half, programs, len(HALVES))), programs)


@pytest.mark.slow
@pytest.mark.parametrize("half", HALVES)
def test_programs_of_a_new_seed(half):
    seed = secrets.token_hex(4)
    print(f"seed {seed}")
    run_all(seed, list(range(NEW // len(HALVES))), NEW)


def test_the_fixed_programs_have_each_constant():
    used = {aim.constant for together in plan(FIXED, enough(FIXED)) for aim in together}
    assert used == {constant.name for constant in CONSTANTS} == set(aims())
