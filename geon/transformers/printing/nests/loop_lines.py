"""Format C loops as lines of text."""

from __future__ import annotations

from collections.abc import Sequence


def indent(lines: Sequence[str], by: int = 1) -> list[str]:
    """Return the lines of a block, indented except for preprocessor lines."""
    return ["    " * by + line if line[:1] != "#" else line for line in lines]


def for_loop(variable: str, low: str, high: str, body: list[str]) -> list[str]:
    """Return a C loop over ``body`` with step 1."""
    head = f"for (int64_t {variable} = {low}; {variable} < {high}; {variable}++) {{"
    return [head, *indent(body), "}"]


def stepped_loop(variable: str, step: int, body: list[str], low: str, high: str) -> list[str]:
    """Return a C loop over ``body`` with the given step."""
    head = f"for (int64_t {variable} = {low}; {variable} < {high}; {variable} += {step}) {{"
    return [head, *indent(body), "}"]
