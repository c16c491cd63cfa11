"""Texts that may stand in comments of the C family."""

from __future__ import annotations


def comment(text: str) -> str:
    """A text that may stand in a C comment: one line of plain characters."""
    plain = text.encode("ascii", "backslashreplace").decode()
    plain = "".join(c if c.isprintable() else repr(c)[1:-1] for c in plain)
    return plain.replace("*/", "*\\/").replace("/*", "/\\*").replace("??", "?\\?").rstrip("\\")
