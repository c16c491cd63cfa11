"""Expressions as plain text, and as escaped HTML in notebooks."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from html import escape
from typing import Any

from ...errors import ArgumentError
from ..building.constants import CONSTANT, scalar_value
from ..core.argument_hints import public
from ..op_graph import NO_AXES, Leaf, Op, Tensor

MAX_SHOWN_LEVELS = 4  # default number of levels of an expression below the first
MAX_SHOWN_ARGUMENTS = 6  # maximum arguments of an op that are listed
MAX_UNFOLDED_LINES = 24  # an expression of more lines is folded
ROWS = ("results", "placeholders", "variables", "peak_bytes")


def tensor_html(op: Op) -> str:
    """Return a table of an op's properties, then the first levels of its expression."""
    rows: list[tuple[str, str]] = []
    if op.name is not None:
        rows.append(("name", op.name))
    rows += [
        ("primitive", op.primitive.name),
        ("axes", str(op.axes)),
        ("dtype", op.dtype.name),
        ("made at", op.file_info),
    ]
    if op.tags:
        rows.append(("tags", ", ".join(sorted(op.tags))))
    if isinstance(op, Leaf):
        rows.append(("trainable", "yes" if op.trainable else "no"))
        rows.append(("persistent", "yes" if op.persistent else "no"))
    return _table(rows) + (fold_lines("expression", _tree(op, MAX_SHOWN_LEVELS)) if op.args else "")


@public
def text(op: Op, levels: int = MAX_SHOWN_LEVELS) -> str:
    """Return an expression as text, one line for each op, its arguments below it.

    Use it as ``print(geon.text(y))``. Each line has the name, primitive, axes and dtype; the first
    line also has the source line. Ops more than ``levels`` levels below the first are left out.
    Raises ``ArgumentError`` if ``op`` is no op.
    """
    if not isinstance(op, Op):
        raise ArgumentError(f"text takes an op, not {op!r} of type {type(op).__name__}")
    first, *rest = _tree(op, levels)
    return "\n".join([f"{first}, made at {op.line_info}", *rest])


def fold_lines(what: str, lines: list[str]) -> str:
    """Return lines as HTML; more than ``MAX_UNFOLDED_LINES`` are folded under the heading
    ``what``.
    """
    content = "\n".join(lines)
    shown = f"<pre>{escape(content)}</pre>"
    if len(lines) <= MAX_UNFOLDED_LINES:
        return shown
    return f"<details><summary>{escape(what)}, {len(lines)} lines</summary>{shown}</details>"


def computation_html(summary: Any) -> str:
    """Return a table of a computation: its results, placeholders, variables and peak memory.

    ``summary`` is a mapping from the name of a row to its value, or an object with any of the
    attributes ``results``, ``placeholders``, ``variables`` and ``peak_bytes``. A value is an op, a
    string, a number, a length, or a list of them; ``peak_bytes`` is in bytes.
    """
    if not isinstance(summary, Mapping):
        summary = {name: getattr(summary, name) for name in ROWS if hasattr(summary, name)}
    rows = [(str(name).replace("_", " "), _lines(value)) for name, value in summary.items()]
    return _table(rows)


def _table(rows: Iterable[tuple[str, str]]) -> str:
    cells = "".join(
        f'<tr><th style="text-align: left">{escape(head)}</th>'
        f'<td style="text-align: left">{escape(content).replace(chr(10), "<br>")}</td></tr>'
        for head, content in rows
    )
    return f"<table>{cells}</table>"


def _lines(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, Op):
        return f"{value} {value.dtype.name}"
    if isinstance(value, (list, tuple)):
        return "\n".join(map(_lines, value)) or "none"
    return f"{value:,}" if type(value) is int else str(value)


def _label(op: Op) -> str:
    if op.primitive is CONSTANT and op.axes is NO_AXES:
        return f"{scalar_value(op)} {op.dtype.name}"
    named = f"{op.name} = " if op.name is not None else ""
    if not isinstance(op, Tensor):
        return f"{named}{op.primitive.name}"
    return f"{named}{op.primitive.name} {op.axes} {op.dtype.name}"


def _tree(root: Op, levels: int) -> list[str]:
    """Return the lines of the expression, indented by level; each op is expanded once."""
    lines: list[str] = []
    shown: set[Op] = set()
    stack: list[tuple[int, Op | str]] = [(0, root)]
    while stack:
        level, op = stack.pop()
        indent = "  " * level
        if isinstance(op, str):
            lines.append(indent + op)
            continue
        again = op in shown and bool(op.args)
        lines.append(indent + _label(op) + (" (as above)" if again else ""))
        if again or not op.args:
            continue
        if level == levels:
            lines.append(indent + "  ...")
            continue
        shown.add(op)
        below: list[Op | str] = list(op.args[:MAX_SHOWN_ARGUMENTS])
        if len(op.args) > MAX_SHOWN_ARGUMENTS:
            below.append(f"... {len(op.args) - MAX_SHOWN_ARGUMENTS} more")
        stack += [(level + 1, part) for part in reversed(below)]
    return lines
