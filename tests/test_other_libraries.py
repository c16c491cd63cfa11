"""The table of names of other libraries: what geon's column says runs, and gives NumPy's values."""

import re
from pathlib import Path

import numpy as np
import pytest

import geon
from geon.op_graph.op_graph import Op
from tests.document_blocks import blocks

PAGE = (Path(__file__).parent.parent / "docs" / "other-libraries.md").read_text()
ROWS = [
    [cell.strip() for cell in re.split(r" ?\| ", line.strip("| "))]
    for line in PAGE.splitlines()
    if line.startswith("|") and not line.startswith("|-")
][1:]
RUN = [(row, code) for row in ROWS for code in re.findall(r"`([^`]+)`", row[-1])]


@pytest.fixture(scope="module")
def names():
    """The names of the page's first program."""
    namespace = {}
    exec(blocks(PAGE)[0].body, namespace)
    return namespace


def compared(row, code, names, path):
    """Whether geon's column of a row was run and gave what the row's own library gives."""
    if code == "transformer.restore(path)":
        names["transformer"].save(path)
    if code == "x.axes":
        assert eval(code, names).names == ("A", "B")
    made = eval(code, {**names, "path": path})
    random = np.random.default_rng(0)
    arrays = {
        "x": random.normal(size=(3, 4)).astype("f4"),
        "y": random.normal(size=(4, 2)).astype("f4"),
        "v": random.normal(size=3).astype("f4"),
        "a": [1.0, 2.0, 3.0],
        "s": (2, 3),
        "np": np,
    }
    if not isinstance(made, Op):
        return False
    theirs = re.findall(r"`(.*)`", row[0])
    try:
        expected = np.asarray(eval(theirs[0], arrays))
    except (IndexError, NameError, SyntaxError):
        return False  # a name without an example
    if expected.dtype == object or "mostly" in row[-1]:
        return False
    if theirs[0].startswith(("rng.", "np.take")):
        return False
    leaves = made.placeholders()
    found = geon.NumPyTransformer().computation(made, *leaves)(*[arrays[o.name] for o in leaves])
    np.testing.assert_allclose(found, expected, rtol=1e-5)
    return True


@pytest.mark.parametrize(("row", "code"), RUN, ids=[code for _, code in RUN])
def test_geons_column_runs(row, code, names, tmp_path):
    compared(row, code, names, tmp_path / "state")


def test_many_rows_were_compared(names, tmp_path):
    assert sum(compared(row, code, names, tmp_path / "state") for row, code in RUN) >= 20


def test_the_table_has_every_familiar_name():
    """What the table calls geon's is what errors name."""
    shown = " ".join(row[-1] for row in ROWS)
    for name in ("geon.constant", "geon.iota", "geon.contract", "geon.deriv", "geon.gather"):
        assert name in shown
