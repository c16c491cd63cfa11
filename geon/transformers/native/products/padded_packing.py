"""Operands that are 0 beyond a border: which part of a run of rows and summed indices is inside.

Windows reach beyond an axis where it is padded. A run is then moved as far as it is inside, and the
rest of it cleared: what each guard leaves of a run is an interval of its lines, or of its summed
indices, or all or nothing of both.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from ....op_graph.axes.affine import Size
from ....op_graph.axes.index_map import Guard
from .multi_index import at, indent


@dataclass(frozen=True)
class Border:
    """Where an operand is not 0: where all ``guards`` hold. ``start`` is the offset at index 0."""

    start: str
    guards: tuple[Guard, ...]

    @property
    def loops(self) -> frozenset[str]:
        """The loops that guards are on."""
        return frozenset(str(name) for guard in self.guards for name in guard.index.terms)

    def mixes(self, first: str | None, second: str | None) -> bool:
        """Whether a guard is on two loops together."""
        terms = [guard.index.terms for guard in self.guards]
        return any(first in each and second in each for each in terms)


@dataclass(frozen=True)
class Windows:
    """Windows that are runs of memory: positions lead what is one after another inside them.

    ``guard`` is on the loop ``along``, of lines where ``of_lines``, and on ``positions``, which
    have ``each`` elements of the loop ``short``.
    """

    guard: Guard
    along: str
    of_lines: bool
    positions: str
    each: Size
    short: str


@dataclass(frozen=True)
class Run:
    """Texts of one run: its place and its length along lines and along summed indices."""

    line: str
    lines: str
    deep: str
    run: str

    @property
    def inside(self) -> Run:
        """The part of it that is inside."""
        return Run(
            f"{self.line} + line_low",
            "line_high - line_low",
            f"{self.deep} + deep_low",
            "deep_high - deep_low",
        )


def narrowed(
    border: Border, line: str | None, deep: str | None, run: Run, length: Callable[[Size], str]
) -> list[str]:
    """Statements that declare which lines and summed indices of a run are inside.

    ``line`` and ``deep`` are the loops that the run goes along.
    """
    lines = [f"int64_t line_low = 0, line_high = {run.lines}, deep_low = 0, deep_high = {run.run};"]
    for guard in border.guards:
        terms = guard.index.terms
        base = " + ".join(
            [
                *(f"at_{name} * ({length(step)})" for name, step in terms.items()),
                f"({length(guard.index.constant)})",
            ]
        )
        low, high = f"({length(guard.low)})", f"({length(guard.high)})"
        along = next((n for n in (line, deep) if n in terms), None)
        if along is None:
            lines.append(f"if ({base} < {low} || {base} >= {high}) line_high = 0;")
            continue
        step, name = terms[along], "line" if along == line else "deep"
        assert isinstance(step, int)  # of what a window and its inverse step by
        lines += ["{", *indent(_interval(name, base, low, high, step)), "}"]
    return lines


def _interval(name: str, base: str, low: str, high: str, step: int) -> list[str]:
    """Statements that narrow the interval of one loop by a guard that steps along it."""
    if step > 0:
        below, above, more = f"{low} - base", f"{high} - base", step - 1
    else:
        below, above, more = f"base - {high} + 1", f"base - {low} + 1", -step - 1
    size = abs(step)
    return [
        f"const int64_t base = {base}, below = {below}, above = {above};",
        f"const int64_t least = below > 0 ? (below + {more}) / {size} : 0;",
        f"const int64_t most = above > 0 ? (above + {more}) / {size} : 0;",
        f"if ({name}_low < least) {name}_low = least;",
        f"if ({name}_high > most) {name}_high = most;",
    ]


def bordered(
    border: Border,
    loops: tuple[str | None, str | None],
    run: Run,
    length: Callable[[Size], str],
    clear: Callable[[Run], str],
    move: Callable[[Run], str],
) -> list[str]:
    """Statements that bring one run into a packed block: what is inside moved, the rest cleared.

    ``loops`` are those of lines and of summed indices that it goes along. Where a guard is on both
    each summed index is a run of its own.
    """
    line, deep = loops
    if border.mixes(line, deep):
        assert deep is not None
        one = Run(run.line, run.lines, f"{run.deep} + single", "1")
        return [
            f"for (int64_t single = 0; single < {run.run}; ++single) {{",
            *indent(
                [
                    f"const int64_t run_start = {at(deep)};",
                    "{",
                    *indent(
                        [
                            f"const int64_t {at(deep)} = run_start + single;",
                            *_parts(border, line, None, one, length, clear, move),
                        ]
                    ),
                    "}",
                ]
            ),
            "}",
        ]
    return _parts(border, line, deep, run, length, clear, move)


def of_windows(
    border: Border,
    windows: Windows,
    run: Run,
    length: Callable[[Size], str],
    clear: Callable[[Run], str],
    move: Callable[[str], str],
) -> list[str]:
    """The same of windows that are runs of memory, by the function that knows them."""
    others = replace(border, guards=tuple([g for g in border.guards if g is not windows.guard]))
    terms = windows.guard.index.terms
    base = " + ".join(
        [
            *(f"at_{n} * ({length(t)})" for n, t in terms.items() if n != windows.positions),
            f"({length(windows.guard.index.constant)})",
        ]
    )
    given = [
        base,
        length(terms[windows.along]),
        length(windows.guard.low),
        length(windows.guard.high),
        length(windows.each),
        length(terms[windows.positions]),
        at(windows.short),
    ]
    return [
        *narrowed(others, None, None, run, length),
        "if (line_low < line_high && deep_low < deep_high)",
        f"  {move(', '.join(given))}",
        "else",
        f"  {clear(run)}",
    ]


def _parts(
    border: Border,
    line: str | None,
    deep: str | None,
    run: Run,
    length: Callable[[Size], str],
    clear: Callable[[Run], str],
    move: Callable[[Run], str],
) -> list[str]:
    outside = f"line_low > 0 || deep_low > 0 || line_high < {run.lines} || deep_high < {run.run}"
    return [
        *narrowed(border, line, deep, run, length),
        f"if ({outside})",
        f"  {clear(run)}",
        "if (line_low < line_high && deep_low < deep_high)",
        f"  {move(run.inside)}",
    ]
