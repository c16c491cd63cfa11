"""Where a package compares ops by anything but ``is``: what mypy knows of every operand.

A copy of the package is written in which every operand of ``==``, ``!=``, ``in`` and ``not in``,
and all that is searched by ``index``, ``count`` and ``remove`` or looked up by key, stands in
``reveal_type(...)``; mypy then says the type of each. What mypy takes for ``Any`` is left to the
watch in ``identity_watch``, which runs with all tests.
"""

from __future__ import annotations

import ast
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

OP = re.compile(r"geon\.op_graph\.op_graph\.(?:Op|Tensor|ComputationOp|VoidOp|Leaf)\b")
HASHED = re.compile(r"(?:[\w.]+\.)?(?:dict|set|frozenset|dict_keys|AbstractSet|Mapping|Counter)")
NOTE = re.compile(r"^(.*?):(\d+):(\d+): note: Revealed type is \"(.*)\"$")
SEARCHES = {"index", "count", "remove"}
LOOK_UPS = {"get", "setdefault", "pop", "add", "discard"}
OPEN, CLOSE = "reveal_type(", ")"


@dataclass(frozen=True)
class Asked:
    """An operand: where it stands, and whether it is ``compared``, ``searched`` or ``keyed``.

    What is ``sought`` has the place of the operand that is searched for it.
    """

    line: int
    column: int
    end_line: int
    end_column: int
    how: str
    within: tuple[int, int] | None = None


def operands(tree: ast.AST) -> Iterator[Asked]:
    """The operands of comparisons in a module."""
    skipped = {id(below) for node in _left_out(tree) for below in ast.walk(node)}
    for node in ast.walk(tree):
        if id(node) in skipped:
            continue
        if isinstance(node, ast.Compare):
            sides = [node.left, *node.comparators]
            for operator, left, right in zip(node.ops, sides, sides[1:], strict=False):
                if isinstance(operator, (ast.Eq, ast.NotEq)):
                    yield from (_asked(left, "compared"), _asked(right, "compared"))
                elif isinstance(operator, (ast.In, ast.NotIn)):
                    yield _asked(right, "searched")
                    yield _asked(left, "sought", (right.lineno, right.col_offset))
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            if node.func.attr in SEARCHES:
                yield _asked(node.func.value, "searched")
            elif node.func.attr in LOOK_UPS:
                yield _asked(node.func.value, "keyed")
        elif isinstance(node, ast.Subscript):
            yield _asked(node.value, "keyed")
        elif isinstance(node, ast.MatchValue):
            yield _asked(node.value, "compared")


def _left_out(tree: ast.AST) -> Iterator[ast.AST]:
    """f-strings, whose parts have no places before Python 3.12, and what stands for types."""
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            yield node
        elif isinstance(node, (ast.arg, ast.AnnAssign)) and node.annotation is not None:
            yield node.annotation
        elif isinstance(node, ast.FunctionDef) and node.returns is not None:
            yield node.returns
        elif isinstance(node, ast.ClassDef):
            yield from node.bases
        elif isinstance(node, ast.Module):  # aliases of types
            yield from (line.value for line in node.body if isinstance(line, ast.Assign))


def _asked(node: ast.expr, how: str, within: tuple[int, int] | None = None) -> Asked:
    assert node.end_lineno is not None and node.end_col_offset is not None
    place = (node.lineno, node.col_offset, node.end_lineno, node.end_col_offset)
    return Asked(*place, how, within)


def marked(source: str) -> tuple[str, dict[tuple[int, int], Asked]]:
    """``source`` with every operand in ``reveal_type``, and the operand that stands at each place.

    Places are those that mypy prints: the line, and the column (from 1) where an operand begins.
    """
    lines = [line.encode() for line in source.splitlines(keepends=True)]
    asked = set(operands(ast.parse(source)))
    # At one place an outer operand opens before an inner one, and closes after it.
    spots = [(a.line, a.column, 1, (-a.end_line, -a.end_column), a) for a in asked]
    spots += [(a.end_line, a.end_column, 0, (-a.line, -a.column), None) for a in asked]
    shift: dict[int, int] = {}
    places: dict[tuple[int, int], Asked] = {}
    for line, column, opens, _, operand in sorted(spots, key=lambda spot: spot[:4]):
        text = (OPEN if opens else CLOSE).encode()
        at = column + shift.get(line, 0)
        lines[line - 1] = lines[line - 1][:at] + text + lines[line - 1][at:]
        shift[line] = shift.get(line, 0) + len(text)
        if operand is not None:
            places[line, at + len(text) + 1] = operand
    return b"".join(lines).decode(), places


def comparisons(package: Path, scratch: Path) -> list[str]:
    """``file:line: how, type`` of everything that compares ops in the package, by mypy's types."""
    places: dict[Path, dict[tuple[int, int], Asked]] = {}
    copy = scratch / package.name
    shutil.copytree(package, copy, ignore=shutil.ignore_patterns("__pycache__"))
    for path in sorted(copy.rglob("*.py")):
        text, places[path.relative_to(scratch)] = marked(path.read_text())
        path.write_text(text)
    command = [sys.executable, "-m", "mypy", "--config-file", "", "--check-untyped-defs"]
    command += ["--cache-dir", str(scratch / "cache"), "--show-column-numbers", "--no-pretty"]
    command += [
        "--ignore-missing-imports",
        "--hide-error-context",
        "--explicit-package-bases",
        package.name,
    ]
    run = subprocess.run(command, cwd=scratch, capture_output=True, text=True)
    assert "Revealed type" in run.stdout, run.stdout[-2000:] + run.stderr
    types: dict[tuple[str, int, int], str] = {}
    asked: list[tuple[str, Asked, str]] = []
    for note in filter(None, map(NOTE.match, run.stdout.splitlines())):
        file, line, column, shown = note.groups()
        operand = places[Path(file)].get((int(line), int(column)))
        if operand is None:  # mypy says that an f-string begins elsewhere
            assert not OP.search(shown), note.group()
            continue
        asked.append((file, operand, shown))
        if operand.how == "searched":
            types[file, operand.line, operand.column] = shown
    found = []
    for file, operand, shown in asked:
        if operand.within is None:
            compares = compares_ops(shown, operand.how)
        else:  # in a container whose elements mypy does not know
            searched = types.get((file, *operand.within))
            compares = searched in ("Any", "object") and compares_ops(shown, "compared")
        if compares:
            found.append(f"{file}:{operand.line}: {operand.how}: {shown}")
    return found


def compares_ops(shown: str, how: str) -> bool:
    """Whether using a value of this type so compares ops by ``==``.

    Ops as keys of a dict or elements of a set are found by hash and ``is``, because two live ops
    never have one hash; tuples of ops may, and are then compared by ``==``.
    """
    for part in _split(shown, " | "):
        name, _, rest = part.partition("[")
        inner = _split(rest[:-1], ", ") if rest else []
        if part.startswith("def ") or name == "type":
            continue  # functions and classes are compared by identity
        if OP.fullmatch(name):
            return how == "compared"
        if HASHED.fullmatch(name):
            if any(
                _split(key, " | ")[0].startswith("tuple[") and OP.search(key) for key in inner[:1]
            ):
                return True
            if how == "compared" and any(compares_ops(value, how) for value in inner[1:]):
                return True
        elif how != "keyed" and any(compares_ops(element, "compared") for element in inner):
            return True
    return False


def _split(text: str, separator: str) -> list[str]:
    """``text`` cut at separators outside brackets."""
    parts, depth, start = [], 0, 0
    for k, letter in enumerate(text):
        depth += (letter in "[(") - (letter in "])")
        if depth == 0 and text.startswith(separator, k):
            parts.append(text[start:k])
            start = k + len(separator)
    return [*parts, text[start:]]
