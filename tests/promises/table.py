"""The tables of promises: rows of promise and tests, and what is wrong with a row."""

import ast
import functools
import tomllib
from collections.abc import Iterator
from pathlib import Path

FOLDER = Path(__file__).parent
ROOT = FOLDER.parent.parent
TABLES = ("readme.toml", "design.toml")
REASONS = ("planned", "measurement")

Value = str | list[str]


def rows(name: str) -> Iterator[tuple[str, str, Value]]:
    """Yield (chapter, promise, value) for each row of the table in the file ``name``."""
    for chapter, entries in tomllib.loads((FOLDER / name).read_text()).items():
        for promise, value in entries.items():
            yield chapter, promise, value


def wrong_value(value: Value) -> str | None:
    """Return what is wrong with the value of a row, or None."""
    if isinstance(value, list):
        if not value:
            return "names no test"
        absent = [node for node in value if not exists(node)]
        return f"names {', '.join(absent)}, which is not there" if absent else None
    if value in REASONS or (value.startswith("open: ") and len(value) > 20):
        return None
    return f"says {value!r}; see tests/promises/__init__.py"


def exists(node: str) -> bool:
    """Return whether pytest collects a test of this name."""
    file, _, name = node.partition("::")
    inside = file.startswith(("tests/", "geon/testing/")) and Path(file).name.startswith("test_")
    return inside and name.startswith("test_") and name in functions(file)


@functools.cache
def functions(file: str) -> frozenset[str]:
    """Return the names of the top-level functions of a file; none where there is no such file."""
    path = ROOT / file
    if not path.is_file():
        return frozenset()
    body = ast.parse(path.read_text()).body
    return frozenset(node.name for node in body if isinstance(node, ast.FunctionDef))
