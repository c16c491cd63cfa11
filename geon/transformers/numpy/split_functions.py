"""Split long emitted functions into parts.

Python takes more time per line for a long function than for a short one, so a program of many
thousand statements is written as functions of ``STATEMENTS_PER_FUNCTION`` statements each.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from ...op_graph.op_graph import Op

Line = tuple[str, Op | None]
STATEMENTS_PER_FUNCTION = 1000
_NAME = re.compile(r"\b(?:[bcgknrsvx]\d\w*|L)\b")
_UNREAD = re.compile(r"'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\"|#.*")  # strings and comments


def comment(text: str) -> str:
    """Return text for a comment, with characters escaped that could end the line."""
    return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in text)


def names_text(names: Iterable[str]) -> str:
    """Return names as a tuple."""
    listed = list(names)
    return f"({', '.join(listed)}{',' * (len(listed) == 1)})"


def unpacked(names: Iterable[str], source: str) -> list[Line]:
    """Return the statement that unpacks a sequence into names; none without names."""
    listed = list(names)
    return [(f"    {names_text(listed)} = {source}", None)] if listed else []


def computing(
    statements: list[Line],
    scopes: dict[str, str],
    inputs: list[str],
    results: list[str],
    name: str = "run",
) -> tuple[str, list[Line]]:
    """Return what ``bind`` returns, and the functions called ``name`` that run the statements.

    ``scopes`` has for each name whether it is made in ``bind`` (then it is passed on) or in
    ``run``.
    """
    if len(statements) <= 2 * STATEMENTS_PER_FUNCTION:
        bound = _used(statements, scopes, "bind")
        head: Line = (f"def {name}({', '.join(['bound', *inputs])}):", None)
        body = unpacked(bound, "bound") + _indented(statements)
        body += [(f"    return {names_text(results)}", None)] if results or name == "run" else []
        return names_text(bound), [head, *body]
    parts = [
        statements[k : k + STATEMENTS_PER_FUNCTION]
        for k in range(0, len(statements), STATEMENTS_PER_FUNCTION)
    ]
    bounds = [_used(part, scopes, "bind") for part in parts]
    needed = [_used(part, scopes, "run") for part in parts]
    lines: list[Line] = []
    calls: list[Line] = []
    live: dict[str, None] = dict.fromkeys(inputs)
    for k, part in enumerate(parts):
        later = {name for names in needed[k + 1 :] for name in names} | set(results)
        known = {**live, **dict.fromkeys(needed[k])}
        after = [name for name in known if name in later]
        lines += [(f"def {name}_{k}({', '.join(['bound', *live])}):", None)]
        lines += unpacked(bounds[k], "bound") + _indented(part)
        lines += [(f"    return {names_text(after)}", None), ("", None)]
        call = f"{name}_{k}({', '.join([f'bound[{k}]', *live])})"
        calls.append((f"    {names_text(after) + ' = ' if after else ''}{call}", None))
        live = dict.fromkeys(after)
    lines += [(f"def {name}({', '.join(['bound', *inputs])}):", None), *calls]
    lines += [(f"    return {names_text(results)}", None)]
    return names_text(map(names_text, bounds)), lines


def _indented(statements: list[Line]) -> list[Line]:
    return [("\n".join(f"    {line}" for line in text.split("\n")), op) for text, op in statements]


def _used(statements: list[Line], scopes: dict[str, str], scope: str) -> list[str]:
    """Return the names of a scope that occur in the statements, in order of first use."""
    found: dict[str, None] = {}
    for text, _ in statements:
        for name in _NAME.findall(_UNREAD.sub("", text)):
            if scopes.get(name) == scope:
                found[name] = None
    return list(found)


def functions(source: str) -> list[str]:
    """Return a module's text split before each top-level function, with unchanged line numbers.

    Compiling the pieces one by one costs less than the whole at once.
    """
    starts = [match.start() for match in re.finditer(r"^def ", source, re.MULTILINE)]
    cuts = [0, *starts, len(source)]
    pieces, line = [], 0
    for start, end in zip(cuts, cuts[1:], strict=False):
        pieces.append("\n" * line + source[start:end])
        line += source.count("\n", start, end)
    return pieces
