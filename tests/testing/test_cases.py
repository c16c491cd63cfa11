"""``for_each`` runs every case and names those that fail."""

import pytest

from geon.testing.cases import for_each
from tests import tiers


def test_each_case_runs_once_with_its_values():
    seen = []

    @for_each("a, b", [(1, 2), (3, 4)])
    @for_each("c", "xy")
    def table(a, b, c):
        seen.append((a, b, c))

    table()
    assert seen == [(1, 2, "x"), (1, 2, "y"), (3, 4, "x"), (3, 4, "y")]


def test_every_case_that_fails_is_named():
    @for_each("n", range(4), ids=lambda n: f"case {n}")
    def table(n):
        assert n % 2 == 0, f"{n} is odd"

    with pytest.raises(AssertionError, match=r"2 of 4 cases failed") as told:
        table()
    assert "[case 1] AssertionError: 1 is odd" in str(told.value)
    assert "[case 3]" in str(told.value) and "[case 2]" not in str(told.value)


def test_a_table_is_skipped_only_if_each_case_is():
    @for_each("n", range(2), ids=["a", "b"])
    def table(n, least):
        if n >= least:
            pytest.skip("not here")

    table(least=1)
    with pytest.raises(pytest.skip.Exception):
        table(least=0)


# Choice of cases by size of a run -----------------------------------------------------------------


def test_chosen_cases_have_each_value_or_each_pair_of_values():
    rows = [(a, b, c) for a in range(3) for b in range(4) for c in range(2)]
    ones = [rows[k] for k in tiers.covering(rows, 1, "seed")]
    assert len(ones) == 4
    assert [{row[k] for row in ones} for k in range(3)] == [set(range(n)) for n in (3, 4, 2)]
    pairs = [rows[k] for k in tiers.covering(rows, 2, "seed")]
    assert 12 <= len(pairs) < 24
    for k, m in ((0, 1), (0, 2), (1, 2)):
        assert {(r[k], r[m]) for r in pairs} == {(r[k], r[m]) for r in rows}


def test_another_seed_chooses_other_cases():
    rows = [(a, b) for a in range(4) for b in range(4)]
    chosen = {tuple(tiers.covering(rows, 1, str(seed))) for seed in range(10)}
    assert len(chosen) > 5 and all(len(each) == 4 for each in chosen)
    assert tiers.covering(rows, 1, "3") == tiers.covering(rows, 1, "3")


def test_a_share_is_two_numbers():
    assert tiers.part("1/1") == (0, 1) and tiers.part("2/4") == (1, 4)
    for wrong in ("", "0/4", "5/4", "2", "a/b"):
        with pytest.raises(pytest.UsageError, match="give a share"):
            tiers.part(wrong)
