"""Source text of geon's runtime modules, for the files that ``Transformer.write`` makes."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Iterable
from types import ModuleType

from ... import errors
from ...op_graph.random import philox
from ...op_graph.values import arrays, labels, tree
from ..runtime import (
    arena,
    arguments,
    calls,
    checkpoint,
    checkpoint_file,
    checkpoint_selection,
    complex_arrays,
    dims,
    feeding,
    files,
    loop_steps,
    memory,
    rwlock,
    standalone,
    state,
    value_errors,
    variable_slot,
    variable_store,
)
from . import matrices, pairwise_sums, runtime

# In the order of their imports of one another.
LIBRARY = (
    errors,
    arena,
    philox,
    dims,
    arrays,
    labels,
    memory,
    feeding,
    complex_arrays,
    rwlock,
    files,
    checkpoint_file,
    checkpoint_selection,
    checkpoint,
    variable_slot,
    state,
    variable_store,
    loop_steps,
    value_errors,
    calls,
    arguments,
    tree,
    pairwise_sums,
    matrices,
    runtime,
    standalone,
)
MAX_LINE_CHARACTERS = 100


def library() -> str:
    """Return the text of the runtime modules as one function, which returns their names."""
    lines = [
        "def _library():",
        '    """What feeds, calls, stores and saves."""',
        "    from builtins import set  # the set of this file is another",
    ]
    for module in LIBRARY:
        lines += ["", *indented(section(module.__name__.rpartition(".")[2])[2:], 1)]
        lines += indented(_embedded(module), 1)
    lines += [
        "",
        "    for value in list(locals().values()):",
        "        if isinstance(value, type) and value.__module__ == __name__:",
        "            value.__qualname__ = value.__name__",
        "    return types.SimpleNamespace(**locals())",
        "",
    ]
    return "\n".join(lines)


def _embedded(module: ModuleType) -> list[str]:
    """Return the lines of a module without its docstring, and without imports of geon."""
    source = inspect.getsource(module)
    lines = source.split("\n")
    for node in ast.parse(source).body:
        docstring = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        ours = isinstance(node, ast.ImportFrom) and (node.level or node.module == "__future__")
        exports = isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__"
        if docstring or ours or exports:
            for number in range(node.lineno - 1, node.end_lineno or node.lineno):
                lines[number] = "\0"
    return trimmed([line for line in lines if line != "\0"])


def trimmed(lines: list[str]) -> list[str]:
    """Return lines without blank ones at the ends, and with at most two blank ones in a row."""
    kept: list[str] = []
    for line in lines:
        if line or (kept and kept[-2:] != ["", ""]):
            kept.append(line)
    while kept and not kept[-1]:
        kept.pop()
    return kept


def indented(lines: Iterable[str], levels: int) -> list[str]:
    """Return lines, indented."""
    return ["    " * levels + line if line else line for line in lines]


def section(title: str) -> list[str]:
    """Return the lines that head a section."""
    return ["", "", f"# {title} ".ljust(MAX_LINE_CHARACTERS - 4, "-"), ""]
