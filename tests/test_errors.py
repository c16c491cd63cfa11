"""The table of errors in the documentation has every class, as it is, and what each one says."""

import inspect
import re
from pathlib import Path

import pytest

import geon
from geon import errors

PAGE = (Path(__file__).parent.parent / "docs" / "errors.md").read_text()
ROWS = dict(re.findall(r"^\| `(\w+Error)` \| `(\w+)` \|", PAGE, re.MULTILINE))
CLASSES = {
    name: value
    for name, value in vars(errors).items()
    if inspect.isclass(value) and issubclass(value, Exception)
}
# What only a defect of geon raises has no example; nor has what machines with a GPU do not raise.
DEFECTS = {"GeonError", "PlanError", "RewriteError"}
OF_SOME_MACHINES = {"DeviceError", "DeviceMemoryError"}


@pytest.mark.parametrize("name", CLASSES)
def test_the_class_is_public_documented_and_one_of_geons(name):
    error = CLASSES[name]
    assert getattr(geon, name) is error
    assert issubclass(error, geon.GeonError)
    assert error.__doc__


def test_the_table_has_every_class_and_no_other():
    assert set(ROWS) == set(CLASSES) - {"GeonError"}


@pytest.mark.parametrize("name", ROWS)
def test_the_table_says_what_else_the_error_is(name):
    assert ROWS[name] in [base.__name__ for base in CLASSES[name].__bases__]


@pytest.mark.parametrize("name", ROWS)
def test_every_row_says_when_and_the_cure(name):
    (row,) = re.findall(rf"^\| `{name}` .*$", PAGE, re.MULTILINE)
    cells = [cell.strip() for cell in row.strip("|").split(" | ")]
    assert len(cells) == 4 and all(len(cell) > 5 for cell in cells)


@pytest.mark.parametrize("name", sorted(set(CLASSES) - DEFECTS - OF_SOME_MACHINES))
def test_there_is_an_example_of_every_error(name):
    """``test_docs`` holds the examples to what is really printed."""
    assert re.search(rf"^{name}: \w", PAGE, re.MULTILINE)
