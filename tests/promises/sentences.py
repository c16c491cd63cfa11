"""The sentences of the project's own text, each with the place where it stands.

Prose of Markdown files (programs and their output are held to by the tests of the documents) and
docstrings of everything below ``geon/``, public or not. A cell of a table and an item of a list are
sentences of their own.
"""

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

# What a sentence that promises something has in it. Pages are for users, so theirs are many;
# docstrings are dense with "no" and "not", and promise in stronger words.
STRONG = (
    r"always|never|exact|exactly|only|alone|every|nothing|nobody|at most|at least|bit for bit"
    r"|(?:same|equal|any|no) bits?|for ever|whatever|once|quadratic"
)
NUMBER = r"O\(|\d[\d,.]*\s?(?:ms|s|us|µs|ns|%|bytes|KiB|MiB|GiB|times|ulp|seconds?)\b"
IN_DOCSTRINGS = re.compile(rf"(?i:\b(?:{STRONG})\b)|{NUMBER}")
IN_PAGES = re.compile(
    rf"(?i:\b(?:{STRONG}|no|not|cannot|without|same|must|raises?|refused?s?|any|whole)\b)|(?i:\bnone\b)|{NUMBER}|linear"
)

ROOT = Path(__file__).parent.parent.parent
PAGES = ("README.md", *sorted(p.relative_to(ROOT).as_posix() for p in ROOT.glob("docs/*.md")))

FENCE = re.compile(r"^```.*?^```[ \t]*$", re.MULTILINE | re.DOTALL)
ENDS = re.compile(r"(?<!\be\.g\.)(?<!\bi\.e\.)(?<=[.!?])[\"')]?\s+(?=[\"'(`*]*[A-Z0-9`_(])")
ITEM = re.compile(r"^\s*(?:[-*]|\d+\.)\s+", re.MULTILINE)


@dataclass(frozen=True)
class Sentence:
    """One sentence, with single spaces, and where it stands: a page, or a qualified name."""

    place: str
    text: str


def sentences(text: str) -> Iterator[str]:
    """The sentences of some prose, each on one line."""
    for paragraph in re.split(r"\n\s*\n", text):
        lines = [line for line in paragraph.splitlines() if line.strip()]
        if lines and all(line.lstrip().startswith("|") for line in lines):
            rows = [line.strip().strip("|").split(" | ") for line in lines]
            yield from (cell.strip() for row in rows for cell in row if not set(cell) <= set("-| "))
            continue
        for part in re.split(ITEM, paragraph):
            yield from filter(None, ENDS.split(" ".join(part.split())))


def of_page(page: str) -> Iterator[Sentence]:
    """The sentences of a Markdown file, without its programs."""
    text = FENCE.sub("\n\n", (ROOT / page).read_text())
    text = re.sub(r"^#.*$", "\n", text, flags=re.MULTILINE)
    for sentence in sentences(text):
        yield Sentence(page, sentence)


def of_module(path: Path) -> Iterator[Sentence]:
    """The sentences of all docstrings of a Python file."""
    parts = path.relative_to(ROOT).with_suffix("").parts
    module = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
    waiting: list[tuple[str, ast.AST]] = [(module, ast.parse(path.read_text()))]
    while waiting:
        name, node = waiting.pop(0)
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)):
            text = ast.get_docstring(node) or ""
            yield from (Sentence(name, s) for s in sentences(text))
        waiting[:0] = [
            (f"{name}.{child.name}" if hasattr(child, "name") else name, child)
            for child in ast.iter_child_nodes(node)
        ]


def all_sentences() -> Iterator[Sentence]:
    """Those of all pages, then those of all modules."""
    for page in PAGES:
        yield from of_page(page)
    for path in sorted((ROOT / "geon").rglob("*.py")):
        if not path.name.startswith("test_"):  # what the tests of the suite say they hold
            yield from of_module(path)


def promising(sentence: Sentence) -> bool:
    """Whether a sentence has words that promise something."""
    words = IN_PAGES if sentence.place.endswith(".md") else IN_DOCSTRINGS
    return words.search(sentence.text) is not None
