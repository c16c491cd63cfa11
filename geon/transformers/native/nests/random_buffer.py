"""Random bits in the loops of a pass, as C: words are made ahead of the elements that need them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache

from ....op_graph.axes.affine import Size
from ...printing.nests.pass_text import PrintedWindow
from ..names.c_files import FileFunction, file_function
from ..names.loop_lines import indented

RUN = 1024  # the most words that are asked for at once: four lines of cache are one part in sixteen


@cache
def words_function() -> FileFunction:
    """The C function that makes words, which ``geon_words_at`` of its header calls."""
    return file_function(
        "random_words", "geon_random_words", {"RUN": RUN}, {}, calls=("geon_philox",)
    )


def declared(windows: Sequence[PrintedWindow]) -> list[str]:
    """The statements that declare windows, which are empty."""
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
    """The innermost ``loop`` of a pass, between bounds, with the words that its draws need.

    ``extent`` is the most turns it has; a longer one than windows hold is cut.
    """
    low, high = bounds
    if not windows:
        return loop(low, high)
    first, stop = f"{variable}_words", f"{variable}_words_stop"
    most = RUN // max(window.words for window in windows)
    if isinstance(extent, int) and extent <= most:
        lines = [f"const int64_t {first} = {low};", *_filled(windows, first, high)]
        return ["{", *indented([*lines, *loop(low, high)]), "}"]
    lines = [
        f"{stop} = {high} - {first} < {most} ? {high} : {first} + {most};",
        *_filled(windows, first, stop),
        *loop(first, stop),
    ]
    head = f"for (int64_t {first} = {low}, {stop}; {first} < {high}; {first} = {stop}) {{"
    return [head, *indented(lines), "}"]


def _filled(windows: Sequence[PrintedWindow], first: str, stop: str) -> list[str]:
    """The statements that make the words for turns ``first`` to before ``stop``."""
    lines = []
    for window in windows:
        times = f"{window.words} * " if window.words != 1 else ""
        places = [f"{times}({window.base} + {at})" for at in (first, stop)]
        arguments = [f"&{window.name}", *places, f"{times}({window.end})", *window.stream]
        call = f"geon_words_at({', '.join(arguments)})"
        lines.append(f"const {window.ctype} *const {window.name}_at = {call};")
    return lines
