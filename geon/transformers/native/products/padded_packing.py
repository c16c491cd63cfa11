"""The part of a run of a padded operand that is inside of the operand, as C.

Each guard restricts a run to an interval of its lines or of its summed indices, or to all or none
of it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ....op_graph.axes.affine import Size
from ....op_graph.axes.index_map import InRange
from .multi_index import indent


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
