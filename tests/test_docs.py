"""The documentation builds without a warning, and its programs print what it says they print."""

import __future__

import inspect
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

import geon
from geon import distributions, eager
from geon.frontends import neon, onnx, xarray
from geon.op_graph.core.primitive import PRIMITIVES
from tests.document_blocks import blocks, check_alone

ROOT = Path(__file__).parent.parent
KINDS_OF_OPS = {"Tensor", "ComputationOp", "VoidOp", "NumPyTransformer"}  # no members of their own
GENERATED = ROOT / "docs" / "ops.md"
PAGES = sorted(
    page.relative_to(ROOT).as_posix() for page in {*(ROOT / "docs").glob("*.md")} - {GENERATED}
)


def python(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, *arguments], cwd=ROOT, capture_output=True, text=True)


@pytest.mark.parametrize("page", PAGES)
def test_a_page_prints_what_it_says(page: str, tmp_path: Path) -> None:
    said = tmp_path / "said"
    assert check_alone(ROOT / page, said) == 0, said.read_text()


def test_the_build_has_no_warning_and_all_that_is_public(tmp_path: Path) -> None:
    done = python("-m", "mkdocs", "build", "--strict", "--site-dir", str(tmp_path / "site"))
    assert done.returncode == 0, done.stdout + done.stderr
    for page in ("index", "tour", "ops", "ops/sum", "errors", "glossary", "design"):
        name = "index.html" if page == "index" else f"{page}/index.html"
        html = (tmp_path / "site" / name).read_text()
        assert 'src="http' not in html and 'rel="stylesheet" href="http' not in html
    assert '<span class="n">geon</span>' in (tmp_path / "site/tour/index.html").read_text()
    found = json.loads((tmp_path / "site/search/search_index.json").read_text())
    titles = {entry["title"] for entry in found["docs"]}
    pages = (ROOT / "docs" / "ops").glob("*.md")
    shown = (page.stem.removeprefix("class-") for page in pages)
    assert {name if "." in name else f"geon.{name}" for name in shown} <= titles
    check_references()


def check_references() -> None:
    """Raise where a public name is not in the references that a build has written."""
    reference = GENERATED.read_text()
    errors = (ROOT / "docs" / "errors.md").read_text()
    rows = re.findall(r"^\| \[?`(?:geon\.)?(\w+)[^|]*\| ([^|]*\S)", reference, re.MULTILINE)
    documented = {name for name, sentence in rows if sentence}
    documented |= set(re.findall(r"Also `geon\.(\w+)`", reference))
    documented |= set(re.findall(r"^## (\w+)$", reference, re.MULTILINE))
    documented |= set(re.findall(r"`(?:geon\.)?(\w+)`", errors))
    public = {name for name in dir(geon) if not name.startswith("_")} - vars(__future__).keys()
    wanted = {name for name in public if not inspect.ismodule(getattr(geon, name))}
    assert wanted | set(PRIMITIVES) <= documented | KINDS_OF_OPS
    for frontend in (distributions, eager, neon, onnx, xarray):
        for name in frontend.__all__:
            page = ROOT / "docs" / "ops" / f"{frontend.__name__.rpartition('.')[2]}.{name}.md"
            lines = page.read_text().splitlines()
            assert len(lines) > 2 and "](" + f"ops/{page.name})" in reference, name


def test_design_records_are_short_listed_and_name_files_that_exist() -> None:
    """Each has the four parts in 15 to 45 lines, a row in the index, and paths of today's tree."""
    sources = ["/math.h"]  # of the C library
    for top in ("geon", "tests", "benchmarks"):
        sources += [f"/{path.relative_to(ROOT)}" for path in (ROOT / top).rglob("*")]
    folder, wrong = ROOT / "docs" / "design", []
    index = (folder / "index.md").read_text()
    for record in sorted(folder.glob("[0-9]*.md")):
        text = record.read_text()
        parts = re.findall(r"^\*\*(\w+)\.\*\*", text, re.MULTILINE)
        if parts != ["Context", "Decision", "Evidence", "Rejected"]:
            wrong.append(f"{record.name}: {parts}")
        if not 15 <= text.count("\n") <= 45 or f"({record.name})" not in index:
            wrong.append(f"{record.name}: {text.count(chr(10))} lines, or not in the index")
        for path in re.findall(r"`([\w/]+\.(?:py|c|h|cuh))`", text):
            if not any(source.endswith(f"/{path}") for source in sources):
                wrong.append(f"{record.name}: {path}")
    assert not wrong, "\n".join(wrong)


def test_the_glossary_has_at_most_sixty_terms_each_once_in_order() -> None:
    page = (ROOT / "docs" / "glossary.md").read_text()
    terms = re.findall(r"^\| ([^|]+) \| [^|]+\. \|$", page, re.MULTILINE)
    assert len(terms) == page.count("\n| ") - 1, "a row is no term with one sentence"
    assert terms == sorted(set(terms)) and 1 <= len(terms) <= 60


@pytest.mark.parametrize("page", PAGES)
def test_excerpts_are_in_the_sources(page: str) -> None:
    excerpts = [block for block in blocks((ROOT / page).read_text()) if block.language == "py"]
    sources = [path.read_text() for path in (ROOT / "geon").rglob("*.py")] if excerpts else []
    for block in excerpts:
        assert any(block.body in source for source in sources), f"{page}:{block.line}"
