"""The README's programs run, and print what it says they print."""

from pathlib import Path

import pytest

from tests.document_blocks import blocks, check_alone, settled, with_real_output

ROOT = Path(__file__).parent.parent


def test_the_readme_prints_what_it_says(tmp_path: Path) -> None:
    said = tmp_path / "said"
    assert check_alone(ROOT / "README.md", said) == 0, said.read_text()


def test_the_readme_has_an_example_with_output() -> None:
    languages = [block.language for block in blocks((ROOT / "README.md").read_text())]
    assert ("python", "text") in zip(languages, languages[1:], strict=False)


def test_a_wrong_output_is_seen_and_mended() -> None:
    text = "```python\nx = 2\n```\n\n```python\nprint(x + 1)\n```\n\n```text\n4\n```\nend\n"
    mended = with_real_output(text, "sample.md")
    assert mended == text.replace("4\n", "3\n")
    assert with_real_output(mended, "sample.md") == mended


@pytest.mark.parametrize(
    "text, wanted",
    [
        ("print(1)\n```\n\n```text\n2", "-2\n+1\n"),
        ("1 / 0", "ZeroDivisionError: division by zero\n"),
    ],
)
def test_a_page_that_fails_alone_says_why(tmp_path: Path, text: str, wanted: str) -> None:
    (tmp_path / "page.md").write_text(f"```python\n{text}\n```\n")
    assert check_alone(tmp_path / "page.md", tmp_path / "said") == 1
    assert wanted in (tmp_path / "said").read_text()


def test_output_without_a_place_for_it_is_refused() -> None:
    with pytest.raises(ValueError, match=r"sample.md:4: this block prints"):
        with_real_output("a\n\n```python\nprint(1)\n```\n", "sample.md")


def test_lines_of_errors_are_lines_of_the_document() -> None:
    with pytest.raises(ZeroDivisionError) as caught:
        with_real_output("one\ntwo\n\n```python\ny = 1\ny / 0\n```\n", "sample.md")
    where = caught.traceback[-1]
    assert (Path(str(where.path)).name, where.lineno + 1) == ("sample.md", 6)


def test_lines_in_outputs_are_those_of_the_written_document() -> None:
    first = "```python\nprint('one\\ntwo')\n```\n\n```text\n```\n\n"
    second = "```python\nimport sys\nprint(sys._getframe().f_lineno)\n```\n\n```text\n```\n"
    assert settled(first + second, "sample.md").endswith("```text\n12\n```\n")


def test_no_run_finds_what_another_one_has_defined() -> None:
    lines = "import geon\ngeon.runs = getattr(geon, 'runs', 0) + 1\nprint(geon.runs)"
    text = f"```python\n{lines}\n```\n\n```text\n```\n"
    assert settled(text, "sample.md").endswith("```text\n1\n```\n")


def test_outputs_that_differ_from_run_to_run_are_refused() -> None:
    text = "```python\nimport time\nprint(time.perf_counter())\n```\n\n```text\n```\n"
    with pytest.raises(ValueError, match=r"sample.md: the outputs are not the same"):
        settled(text, "sample.md")


def test_installations_in_place_put_the_clone_on_the_path() -> None:
    """The default puts an import hook, which loses to a folder called geon beside a script."""
    lines = (ROOT / "Makefile").read_text().splitlines()
    (options,) = [line for line in lines if "--editable" in line]
    assert options == "EDITABLE := --config-settings editable_mode=compat --editable"
    assert sum("$(EDITABLE) " in line for line in lines) == 5
