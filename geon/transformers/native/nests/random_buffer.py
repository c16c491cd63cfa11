"""Emit buffers of random words, filled ahead of the loop that reads them."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ....op_graph.axes.affine import Size
from ...loops.values_ahead import MAX_BUFFERED_WORDS
from ...printing.nests.loop_lines import indent
from ...printing.nests.pass_text import PrintedWindow


def declare_buffers(windows: Sequence[PrintedWindow]) -> list[str]:
    """Return the declarations of empty buffers."""
    return [
        f"struct geon_words {window.name}; {window.name}.first = {window.name}.end = 0;"
        for window in windows
    ]


def with_words(
    windows: Sequence[PrintedWindow],
    variable: str,
    bounds: tuple[str, str],
    extent: Size,
    loop: Callable[[str, str], list[str]],
) -> list[str]:
    """Return the innermost loop of a pass between ``bounds``, with the random words that it reads.

    ``loop`` returns its text for given bounds. ``extent`` is its maximum number of iterations; a
    loop that needs more words than a buffer has is cut.
    """
    low, high = bounds
    if not windows:
        return loop(low, high)
    first, stop = f"{variable}_words", f"{variable}_words_stop"
    most = MAX_BUFFERED_WORDS // max(window.words for window in windows)
    if isinstance(extent, int) and extent <= most:
        lines = [f"const int64_t {first} = {low};", *_filled(windows, first, high)]
        return ["{", *indent([*lines, *loop(low, high)]), "}"]
    lines = [
        f"{stop} = {high} - {first} < {most} ? {high} : {first} + {most};",
        *_filled(windows, first, stop),
        *loop(first, stop),
    ]
    head = f"for (int64_t {first} = {low}, {stop}; {first} < {high}; {first} = {stop}) {{"
    return [head, *indent(lines), "}"]


def _filled(windows: Sequence[PrintedWindow], first: str, stop: str) -> list[str]:
    """Return the statements that generate words for iterations ``first`` to before ``stop``."""
    lines = []
    for window in windows:
        times = f"{window.words} * " if window.words != 1 else ""
        places = [f"{times}({window.base} + {at})" for at in (first, stop)]
        arguments = [f"&{window.name}", *places, f"{times}({window.end})", *window.stream]
        call = f"geon_words_at({', '.join(arguments)})"
        lines.append(f"const {window.ctype} *const {window.name}_at = {call};")
    return lines
