"""Lines of C loops."""

from __future__ import annotations

SIMD = "#pragma omp simd"


def indented(lines: list[str], by: int = 1) -> list[str]:
    """Lines of a block; those of the preprocessor stay at the margin."""
    return ["    " * by + line if line[:1] != "#" else line for line in lines]


def for_loop(variable: str, low: str, high: str, body: list[str]) -> list[str]:
    """A loop over ``body``."""
    head = f"for (int64_t {variable} = {low}; {variable} < {high}; {variable}++) {{"
    return [head, *indented(body), "}"]


def stepped(variable: str, step: int, body: list[str], low: str, high: str) -> list[str]:
    """A loop that takes so many elements at a time."""
    head = f"for (int64_t {variable} = {low}; {variable} < {high}; {variable} += {step}) {{"
    return [head, *indented(body), "}"]
