"""The documentation builds without a warning, and its programs print what it says they print."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PAGES = sorted(page.relative_to(ROOT).as_posix() for page in (ROOT / "docs").glob("*.md"))


def python(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, *arguments], cwd=ROOT, capture_output=True, text=True)


@pytest.mark.parametrize("page", PAGES)
def test_a_page_prints_what_it_says(page: str) -> None:
    done = python("-m", "tests.document_blocks", page)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_build_has_no_warning(tmp_path: Path) -> None:
    done = python("-m", "mkdocs", "build", "--strict", "--site-dir", str(tmp_path / "site"))
    assert done.returncode == 0, done.stdout + done.stderr
    for page in ("index", "tour", "ops", "errors", "decisions"):
        name = "index.html" if page == "index" else f"{page}/index.html"
        html = (tmp_path / "site" / name).read_text()
        assert 'src="http' not in html and 'rel="stylesheet" href="http' not in html


def test_every_primitive_is_in_the_op_reference() -> None:
    import geon  # noqa: F401  # the rows register themselves
    from geon.op_graph.registry import PRIMITIVES

    reference = python("docs/generate_ops.py").stdout
    missing = [name for name in PRIMITIVES if f"`{name}`" not in reference]
    assert not missing
