"""Programs of the documentation's pages, written eagerly, give the same numbers and messages."""

from pathlib import Path

import pytest

from tests.test_docs import python

# The least numbers of results and of messages that are compared: pages whose subject is how values
# are computed (variables, draws, memory, targets) compare none.
PAGES = {
    "axes": (5, 1), "derivatives": (4, 2), "dtypes": (2, 5), "errors": (0, 20), "fourier": (6, 1),
    "index": (1, 0), "linear-algebra": (3, 1), "loops": (5, 1), "masks": (2, 1), "recipes": (6, 0),
    "selecting": (15, 1), "windows": (2, 1),
}  # fmt: skip


@pytest.mark.parametrize("page", PAGES)
def test_a_page_written_eagerly_gives_its_numbers_and_messages(page: str) -> None:
    done = python("-m", "tests.eager.pages", f"docs/{page}.md")
    assert done.returncode == 0, done.stdout + done.stderr
    first, *left_out = done.stdout.splitlines()
    results, messages = (int(word) for word in first.split() if word.isdecimal())
    assert (results, messages) >= PAGES[page] and messages >= PAGES[page][1], done.stdout
    assert len(left_out) <= 3, done.stdout


def test_the_pages_exist() -> None:
    folder = Path(__file__).parents[2] / "docs"
    assert all((folder / f"{page}.md").exists() for page in PAGES)
