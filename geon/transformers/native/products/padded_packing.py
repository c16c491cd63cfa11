"""Pack operands with padding: clear the part of a run outside of the operand, copy the rest.

Each guard restricts a run to an interval of its lines or of its summed indices, or to all or none
of it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from ....op_graph.axes.affine import Size
from ....op_graph.axes.index_map import InRange
from .multi_index import indent, index_name


@dataclass(frozen=True)
class Border:
    """The region where an operand is not padding: all ``guards`` hold. ``start`` is the offset of
    index 0.
    """

    start: str
    guards: tuple[InRange, ...]

    @property
    def loops(self) -> frozenset[str]:
        """Return the names of the loops in guards."""
        return frozenset(str(name) for guard in self.guards for name in guard.index.terms)

    def mixes(self, first: str | None, second: str | None) -> bool:
        """Return True if a guard depends on both loops."""
        terms = [guard.index.terms for guard in self.guards]
        return any(first in each and second in each for each in terms)


@dataclass(frozen=True)
class Windows:
    """Windows that are contiguous runs of memory.

    ``guard`` holds for valid positions. ``along`` is the loop over windows, which is a loop over
    lines if ``of_lines``. ``positions`` is the loop over taps, the outermost part of the collapsed
    loop ``short``. ``each`` is the number of elements of a tap.
    """

    guard: InRange
    along: str
    of_lines: bool
    positions: str
    each: Size
    short: str


@dataclass(frozen=True)
class RunTexts:
    """One run as C expressions.

    ``line`` and ``lines`` are its offset and extent along lines, ``deep`` and ``run`` those along
    summed indices.
    """

    line: str
    lines: str
    deep: str
    run: str

    @property
    def inside(self) -> RunTexts:
        """Return the part of the run inside of the operand."""
        return RunTexts(
            f"{self.line} + line_low",
            "line_high - line_low",
            f"{self.deep} + deep_low",
            "deep_high - deep_low",
        )


def narrow_run(
    border: Border, line: str | None, deep: str | None, run: RunTexts, length: Callable[[Size], str]
) -> list[str]:
    """Return statements that compute the intervals of a run inside of the operand.

    ``line`` and ``deep`` are the loops along which the run lies.
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
        assert isinstance(step, int)  # strides and dilations of windows are known
        lines += ["{", *indent(_interval(name, base, low, high, step)), "}"]
    return lines


def _interval(name: str, base: str, low: str, high: str, step: int) -> list[str]:
    """Return statements that intersect one loop's interval with a guard."""
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


def pack_run(
    border: Border,
    loops: tuple[str | None, str | None],
    run: RunTexts,
    length: Callable[[Size], str],
    clear: Callable[[RunTexts], str],
    move: Callable[[RunTexts], str],
) -> list[str]:
    """Return statements that pack one run: copy the inside and clear the rest.

    ``loops`` are those of lines and of summed indices along which the run lies. If a guard depends
    on both, each summed index is a run of its own.
    """
    line, deep = loops
    if border.mixes(line, deep):
        assert deep is not None
        one = RunTexts(run.line, run.lines, f"{run.deep} + single", "1")
        return [
            f"for (int64_t single = 0; single < {run.run}; ++single) {{",
            *indent(
                [
                    f"const int64_t run_start = {index_name(deep)};",
                    "{",
                    *indent(
                        [
                            f"const int64_t {index_name(deep)} = run_start + single;",
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
    run: RunTexts,
    length: Callable[[Size], str],
    clear: Callable[[RunTexts], str],
    move: Callable[[str], str],
) -> list[str]:
    """Return statements that pack one run of contiguous windows by their shared function."""
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
        index_name(windows.short),
    ]
    return [
        *narrow_run(others, None, None, run, length),
        "if (line_low < line_high && deep_low < deep_high)",
        f"  {move(', '.join(given))}",
        "else",
        f"  {clear(run)}",
    ]


def _parts(
    border: Border,
    line: str | None,
    deep: str | None,
    run: RunTexts,
    length: Callable[[Size], str],
    clear: Callable[[RunTexts], str],
    move: Callable[[RunTexts], str],
) -> list[str]:
    outside = f"line_low > 0 || deep_low > 0 || line_high < {run.lines} || deep_high < {run.run}"
    return [
        *narrow_run(border, line, deep, run, length),
        f"if ({outside})",
        f"  {clear(run)}",
        "if (line_low < line_high && deep_low < deep_high)",
        f"  {move(run.inside)}",
    ]
