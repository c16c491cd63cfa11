"""The sentences of the project's own text, each with the place where it stands.

Prose of Markdown files (programs and their output are held to by the tests of the documents) and
docstrings of everything below ``geon/``, public or not. A cell of a table and an item of a list are
sentences of their own.
"""

import ast
import functools
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import geon

# What a sentence that promises something has in it: more words where it is written for users.
STRONG = (
    "always|never|exact|exactly|only|alone|every|nothing|nobody|no|(?-i:none)|at most|at least"
    "|whatever|bit for bit|(?:same|equal|any) bits?|for ever|once|linear (?:time|in)|quadratic"
)
FOR_USERS = "not|cannot|without|same|must|raises?|refuses?|refused|any|whole"
NUMBER = r"O\(|\d[\d,.]*\s?(?:ms|s|us|µs|ns|%|bytes|KiB|MiB|GiB|times|ulp|seconds?)\b"
INTERNAL = re.compile(rf"(?i:\b(?:{STRONG})\b)|{NUMBER}")
PUBLIC = re.compile(rf"(?i:\b(?:{STRONG}|{FOR_USERS})\b)|{NUMBER}")

ROOT = Path(__file__).parent.parent.parent
MADE = "docs/ops.md"  # of docstrings, which are read where they are
PAGES = (
    "README.md",
    *sorted({p.relative_to(ROOT).as_posix() for p in ROOT.glob("docs/*.md")} - {MADE}),
)

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


@functools.cache
def public() -> frozenset[str]:
    """The qualified names of what is public in geon."""
    values = [getattr(geon, name) for name in dir(geon) if not name.startswith("_")]
    return frozenset(
        f"{v.__module__}.{v.__qualname__}" for v in values if hasattr(v, "__qualname__")
    )


def for_users(place: str) -> bool:
    """Whether users read what stands there: a page, a public name, or a member of one."""
    if place.endswith(".md"):
        return True
    head, _, last = place.rpartition(".")
    return place in public() or (head in public() and (last == "__call__" or last[0] != "_"))


def promising(sentence: Sentence) -> bool:
    """Whether a sentence has words that promise something."""
    words = PUBLIC if for_users(sentence.place) else INTERNAL
    return words.search(sentence.text) is not None
