"""``for_each`` runs every case and names those that fail."""

import pytest

from geon.testing.cases import for_each


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
