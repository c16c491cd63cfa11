"""Escaping of texts for comments of the C family."""

from __future__ import annotations


def comment(text: str) -> str:
    """Return a text that is safe in a C comment: one line of printable ASCII characters."""
    plain = text.encode("ascii", "backslashreplace").decode()
    plain = "".join(c if c.isprintable() else repr(c)[1:-1] for c in plain)
    return plain.replace("*/", "*\\/").replace("/*", "/\\*").replace("??", "?\\?").rstrip("\\")
