"""The rows of docs/add-an-op.md, made from its text, pass the tests that are generated for them."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "add-an-op.md"
GENERATED = [
    "geon/testing/conformance/test_elementwise.py",
    "geon/testing/conformance/test_reductions.py",
    "geon/testing/conformance/test_movement.py",
    "geon/testing/conformance/test_derivatives.py",
    "tests/op_graph/test_rows.py",
    "tests/op_graph/test_index_map.py",
    "tests/op_graph/test_reducers.py",
    "tests/transformers/test_tables.py",
    "tests/transformers/test_view_layout.py",
]
# The blocks of the page run in one process with the tests, which find the rows in the registry.
PROGRAM = """
import sys
import pytest
from pathlib import Path
from tests.document_blocks import blocks, run

page, chosen, *files = sys.argv[1:]
namespace = {"__name__": "page"}
for block in blocks(Path(page).read_text()):
    if block.language == "python":
        run(block, page, namespace)
sys.exit(pytest.main(["-q", "-p", "no:cacheprovider", "-k", chosen, *files]))
"""


def passed(chosen: str) -> int:
    """How many generated tests whose names fit ``chosen`` pass; none may fail."""
    command = [sys.executable, "-c", PROGRAM, str(PAGE), chosen, *GENERATED]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    found = re.search(r"(\d+) passed", done.stdout)
    assert found is not None, done.stdout
    return int(found[1])


@pytest.mark.slow
@pytest.mark.parametrize(
    "chosen, least",
    [("cbrt", 12), ("overlaps or view_layout", 60), ("any_nan", 15)],
    ids=["elementwise", "view", "reduction"],
)
def test_a_row_made_from_the_page_passes_its_tests(chosen: str, least: int) -> None:
    assert passed(chosen) >= least


def test_the_page_adds_one_of_each_kind_in_the_places_it_says() -> None:
    text = PAGE.read_text()
    code = "".join(re.findall(r"^```python\n(.*?)^```", text, re.MULTILINE | re.DOTALL))
    entries = re.findall(r'^(\w+)\["(\w+)"\] = ', code, re.MULTILINE)
    assert entries == [("TABLE", "cbrt"), ("FLOAT_ROWS", "cbrt"), ("REDUCTIONS", "any_nan")]
    assert re.findall(r"^(\w+) = (?:elementwise|Primitive)\(", code, re.MULTILINE) == [
        "cbrt",
        "ANY_NAN",
        "OVERLAPS",
    ]
