"""The tables: rows of promise and test, and what is wrong with them."""

import ast
import functools
import json
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from .sentences import ROOT, Sentence, all_sentences, promising

FOLDER = Path(__file__).parent
DESIGN = "design.toml"
REASONS = ("definition", "explanation", "measurement", "planned", "project")

Value = str | list[str]


def rows(path: Path) -> Iterator[tuple[Sentence, Value]]:
    """The rows of one table."""
    for place, entries in tomllib.loads(path.read_text()).items():
        for text, value in entries.items():
            yield Sentence(place, text), value


def quoted() -> dict[Sentence, Value]:
    """The rows that quote the project's own text."""
    tables = [path for path in sorted(FOLDER.glob("*.toml")) if path.name != DESIGN]
    return {sentence: value for path in tables for sentence, value in rows(path)}


def design() -> dict[Sentence, Value]:
    """The rows about the design."""
    return dict(rows(FOLDER / DESIGN))


def missing(known: Mapping[Sentence, Value], found: Iterable[Sentence]) -> list[Sentence]:
    """The sentences that promise something and are in no row."""
    return [s for s in dict.fromkeys(found) if promising(s) and s not in known]


def changed(known: Mapping[Sentence, Value], found: Iterable[Sentence]) -> list[Sentence]:
    """The rows whose words stand there no more."""
    present = set(found)
    return [sentence for sentence in known if sentence not in present]


def nodes(value: Value) -> list[str]:
    """The tests of a row."""
    return [] if isinstance(value, str) else value


def wrong_value(value: Value) -> str | None:
    """What is wrong with the value of a row."""
    if isinstance(value, list):
        if not value:
            return "names no test"
        absent = [node for node in value if not exists(node)]
        return f"names {', '.join(absent)}, which is not there" if absent else None
    if value in REASONS or (value.startswith("open: ") and len(value) > 20):
        return None
    return f"says {value!r}; see tests/promises/__init__.py"


def exists(node: str) -> bool:
    """Whether pytest collects a test of this name: a function of a file that it looks into."""
    file, _, name = node.partition("::")
    inside = file.startswith(("tests/", "geon/testing/")) and Path(file).name.startswith("test_")
    return inside and name.startswith("test_") and name in functions(file)


@functools.cache
def functions(file: str) -> frozenset[str]:
    """The names of the functions of a file; none where there is no such file."""
    path = ROOT / file
    if not path.is_file():
        return frozenset()
    body = ast.parse(path.read_text()).body
    return frozenset(node.name for node in body if isinstance(node, ast.FunctionDef))


def key(text: str) -> str:
    """A sentence as a key of TOML."""
    return json.dumps(text, ensure_ascii=False) if "'" in text else f"'{text}'"


def shown(found: Iterable[Sentence]) -> str:
    """Sentences as they stand in a table, without a value."""
    lines: list[str] = []
    place = None
    for sentence in found:
        if sentence.place != place:
            place = sentence.place
            lines += ["", f'["{place}"]']
        lines.append(f"{key(sentence.text)} = ")
    return "\n".join(lines)


def report() -> str:
    """What to put into the tables and what to take out; empty where they fit the text."""
    known, found = quoted(), list(all_sentences())
    parts = [("to be put in:", missing(known, found)), ("to be taken out:", changed(known, found))]
    return "\n\n".join(f"{what}\n{shown(which)}" for what, which in parts if which)
