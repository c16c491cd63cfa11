"""Every number of the source is a constant with lengths, or has a reason to have none."""

from collections import Counter

from .constants import CONSTANTS, aims, stale, unlisted
from .programs import MOST_ELEMENTS, MOST_PRODUCTS
from .roles import ROLES
from .scanning import Number, found, of_c, of_python
from .unlisted import FILES, PLACES


def test_every_number_of_the_source_is_listed():
    missing = unlisted()
    assert not missing, (
        "these numbers have no lengths in tests/large/constants.py, and no reason why in "
        "tests/large/unlisted.py:\n" + "\n".join(missing)
    )


def test_every_entry_is_of_a_number_that_is_there():
    assert not stale()
    files = {n.file for n in found()}
    assert not set(FILES) - files
    places = {(n.file, n.where) for n in found()} | {tuple(n) for n in found()}
    assert not set(PLACES) - places


def test_no_number_is_listed_twice_with_one_role():
    seen = Counter(
        (c.file, c.where, value + c.plus, role, each)
        for c in CONSTANTS
        for value in c.values()
        for role in c.roles
        for each in c.each
    )
    assert [key for key, count in seen.items() if count > 1] == []


def test_each_constant_has_lengths_below_at_and_above():
    for name, listed in aims().items():
        assert {"below", "at", "above"} <= {aim.near for aim in listed}, name
        assert all(aim.role in ROLES and aim.length > 0 for aim in listed), name


def test_each_length_is_one_that_a_program_can_have():
    """A program does without a value that is larger, but its leaves take the memory."""
    for name, listed in aims().items():
        for aim in listed:
            most = MOST_PRODUCTS if aim.role == "products" else MOST_ELEMENTS
            assert aim.length <= most, f"{name}: {aim}"


def test_each_role_is_of_some_constant():
    assert {aim.role for listed in aims().values() for aim in listed} == set(ROLES)


PYTHON = '''
"""A text of 77 lines."""
LANES = 512
TEXT = """\\
for (int64_t i = 0; i < n; i += 96) a[128] = x[i] >> 3; /* 55 of them */
"""


class Shape:
    def columns(self, n):
        """At most 33."""
        return f"if (n < {1 << 20}) m = {n} / 48;" if n > 8 * 2 and n != 3 else "plain 99 words"
'''
C = """
#define GRAIN (1 << 14) /* 7000 */
static int work(int64_t n)
{
    return n < 300 ? 1 : 2; // not 400
}
"""


def test_numbers_are_found_in_python_and_in_c():
    assert {(where, value) for where, value, _ in of_python(PYTHON)} == {
        ("LANES", 512),
        ("TEXT", 96),
        ("TEXT", 128),
        ("Shape.columns", 1 << 20),
        ("Shape.columns", 48),
        ("Shape.columns", 16),
    }
    assert {(where, value) for where, value, _ in of_c(C)} == {("GRAIN", 1 << 14), ("work", 300)}


def test_a_new_number_is_missing_until_it_is_listed(monkeypatch):
    new = Number("transformers/native/trees/nest_text.py", "WIDE_ROW", 4321)
    monkeypatch.setattr("tests.large.constants.found", lambda: {**found(), new: 40})
    assert unlisted() == [f"{new} (line 40)"]
