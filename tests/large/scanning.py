"""What numbers the code has at which it could do its work in another way.

``found()`` lists every one: names bound to numbers at the top of a module, whole numbers in Python
code, in C that Python writes (texts and f-texts), and in C files. Each is known by its file, the
function it stands in (or the name it is bound to) and the number, so that moving a line changes
nothing and a new number anywhere is something new.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

import geon

ROOT = Path(geon.__file__).parent
# Numbers below this one are counts of operands, signs, indices: no length is long enough to matter.
LEAST = 4
# Where work is done on elements; all else of geon builds, checks, names and stores graphs.
FOLDERS = ("transformers", "op_graph")
_C_NUMBER = re.compile(
    r"(?<![\w.\"])(?:0[xX][0-9a-fA-F]+|\d+(?:\.\d*)?(?:[eE][+-]?\d+)?)(?:[uUlLfF]*)(?![\w.])"
)
_C_SHIFT = re.compile(r"(?<![\w.])(\d+)(?:[uUlL]*)\s*<<\s*(\d+)(?![\w.])")
_C_NOISE = re.compile(r"/\*.*?\*/|//[^\n]*|\"(?:[^\"\\\n]|\\.)*\"|#(?:include|if|elif)[^\n]*", re.S)
# What shows that a text in Python is C.
_IS_C = re.compile(r"[;{}=]|\bfor \(|\bif \(|#pragma|[<>?] ")


class Number(NamedTuple):
    """A number of the code: the file under geon/, where in it, and the value."""

    file: str
    where: str
    value: int | float

    def __str__(self) -> str:
        return f"{self.file}:{self.where}: {self.value}"


@cache
def found() -> dict[Number, int]:
    """Every number of the code that is not small, and the first line that has it."""
    numbers: dict[Number, int] = {}
    for folder in FOLDERS:
        for path in sorted((ROOT / folder).rglob("*")):
            name = path.relative_to(ROOT).as_posix()
            if path.suffix == ".py":
                listed = of_python(path.read_text("utf-8"))
            elif path.suffix in (".c", ".h"):
                listed = of_c(path.read_text("utf-8"))
            else:
                continue
            for where, value, line in listed:
                numbers.setdefault(Number(name, where, value), line)
    return numbers


# Python -------------------------------------------------------------------------------------------


def of_python(text: str) -> Iterator[tuple[str, int | float, int]]:
    """The numbers of a Python file: where, value, line."""
    tree = ast.parse(text)
    for node in tree.body:
        target = _bound_name(node)
        yield from _numbers(node, target or _name_of(node) or "", ())


def _bound_name(node: ast.AST) -> str | None:
    if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
        return node.targets[0].id
    if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
        return node.target.id
    return None


def _name_of(node: ast.AST) -> str | None:
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
    return node.name if isinstance(node, kinds) else None


def _numbers(
    node: ast.AST, where: str, docs: tuple[ast.AST, ...]
) -> Iterator[tuple[str, int | float, int]]:
    if isinstance(node, (ast.Module, ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        docs = (*docs, *_docstring(node))
    if node in docs:
        return
    folded = _folded(node)
    if folded is not None:
        if abs(folded) >= LEAST:
            yield where, folded, getattr(node, "lineno", 0)
        return
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        if _IS_C.search(node.value):
            for value, line in c_numbers(node.value):
                yield where, value, node.lineno + line
        return
    for child in ast.iter_child_nodes(node):
        name = _name_of(child)
        inner = where if name is None else f"{where}.{name}" if where else name
        yield from _numbers(child, inner, docs)


def _docstring(node: ast.AST) -> list[ast.AST]:
    body = getattr(node, "body", [])
    return [
        line.value
        for line in body
        if isinstance(line, ast.Expr)
        and isinstance(line.value, ast.Constant)
        and isinstance(line.value.value, str)
    ]


def _folded(node: ast.AST) -> int | float | None:
    """The value of an expression of numbers alone."""
    if isinstance(node, ast.Constant):
        number = isinstance(node.value, (int, float)) and not isinstance(node.value, bool)
        return node.value if number else None
    if isinstance(node, ast.BinOp):
        left, right = _folded(node.left), _folded(node.right)
        if left is None or right is None:
            return None
        match node.op:
            case ast.LShift():
                return int(left) << int(right)
            case ast.Pow():
                return left**right
            case ast.Mult():
                return left * right
            case ast.Add():
                return left + right
            case ast.Sub():
                return left - right
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        inner = _folded(node.operand)
        return None if inner is None else -inner
    return None


# C ------------------------------------------------------------------------------------------------


def c_numbers(text: str) -> Iterator[tuple[int | float, int]]:
    """The numbers of C text that are not small, and the lines before them."""
    text = _C_NOISE.sub(lambda match: "\n" * match.group().count("\n"), text)
    shifts = list(_C_SHIFT.finditer(text))
    inside = [match.span() for match in shifts]
    for match in shifts:
        value = int(match.group(1)) << int(match.group(2))
        if value >= LEAST:
            yield value, text.count("\n", 0, match.start())
    for match in _C_NUMBER.finditer(text):
        if any(low <= match.start() < high for low, high in inside):
            continue
        written = match.group().rstrip("uUlL")
        if written[:2].lower() == "0x":
            continue  # bits and masks
        written = written.rstrip("fF")
        value = float(written) if re.search(r"[.eE]", written) else int(written)
        value = int(value) if value == int(value) else value
        if value >= LEAST:
            yield value, text.count("\n", 0, match.start())


_C_FUNCTION = re.compile(r"^[A-Za-z_][\w \t\*\(\),]*?\b(\w+)\([^;]*$")


def of_c(text: str) -> Iterator[tuple[str, int | float, int]]:
    """The numbers of a C file, by the function or the macro they stand in."""
    where = ""
    code = _C_NOISE.sub(lambda match: "\n" * match.group().count("\n"), text)
    code = re.sub(r"\bTAG\((\w+)\)", r"\1", code)  # a name with its type
    for number, line in enumerate(code.split("\n"), 1):
        macro = re.match(r"\s*#\s*define\s+(\w+)", line)
        if macro:
            for value, _ in c_numbers(line[macro.end() :]):
                yield macro.group(1), value, number
            continue
        if line[:1] not in (" ", "\t", "", "{", "}", "#"):
            named = _C_FUNCTION.match(line) or re.match(r".*?\b(\w+)\s*\(", line)
            where = named.group(1) if named else where
        for value, _ in c_numbers(line):
            yield where, value, number
