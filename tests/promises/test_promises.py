"""Each promise of the README and of the design names tests that exist, or says why it has none."""

from . import table


def test_every_row_names_tests_that_are_there_or_says_why_not():
    wrong = [
        f"{name}, {chapter}: {promise} {fault}"
        for name in table.TABLES
        for chapter, promise, value in table.rows(name)
        if (fault := table.wrong_value(value))
    ]
    assert not wrong, "\n".join(wrong)


def test_no_promise_is_there_twice():
    promises = [promise for name in table.TABLES for _, promise, _ in table.rows(name)]
    assert len(promises) == len(set(promises)) > 100


def test_a_wrong_row_is_noticed():
    wrong = (["tests/test_docs.py::test_x"], ["tests/nowhere.py::test_x"], [], "perhaps", "open: ")
    for value in (*wrong, ["tests/test_docs.py::python"]):
        assert table.wrong_value(value)
    held = ["tests/promises/test_promises.py::test_a_wrong_row_is_noticed"]
    for value in (held, "planned", "open: what is missing and why it is"):
        assert table.wrong_value(value) is None
