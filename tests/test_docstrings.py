"""Every function and class that is not private says what it is for."""

import ast
from pathlib import Path

import geon

ROOT = Path(geon.__file__).parent
SHORT = 5  # lines of a function whose name and types may say all


def undocumented(body, owner=""):
    """The names of classes and longer functions below ``body`` that have no docstring."""
    for node in body:
        if not isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            yield from undocumented(getattr(node, "body", []), owner)
            continue
        if any(getattr(mark, "id", "") == "overload" for mark in node.decorator_list):
            continue  # what follows it says what it does
        name = f"{owner}{node.name}"
        is_class = isinstance(node, ast.ClassDef)
        long = is_class or node.end_lineno - node.lineno >= SHORT
        if not node.name.startswith("_") and long and not ast.get_docstring(node):
            if not any(getattr(mark, "attr", "") == "setter" for mark in node.decorator_list):
                yield name
        if is_class:
            yield from undocumented(node.body, f"{name}.")


def test_what_is_public_has_a_docstring():
    paths = [path for path in ROOT.rglob("*.py") if path.stem != "conftest"]
    found = [
        f"{path.relative_to(ROOT)}: {name}"
        for path in paths
        if not path.name.startswith("test_")
        for name in undocumented(ast.parse(path.read_text()).body)
    ]
    assert found == []


def test_the_search_finds_what_is_missing():
    lines = "\n".join(["    x = 1"] * SHORT)
    text = f"class A:\n    def b(self):\n    {lines.replace(chr(10), chr(10) + '    ')}\n"
    text += f"def c():\n{lines}\ndef _d():\n{lines}\ndef e(): pass\n"
    assert list(undocumented(ast.parse(text).body)) == ["A", "A.b", "c"]
