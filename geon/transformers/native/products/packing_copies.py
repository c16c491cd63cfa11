"""Emit the packing of operands in memory: copies and transposes, run by run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from .multi_index import Walker, indent, index_name
from .operand_views import View
from .padded_packing import Border, RunTexts, narrow_run


@dataclass(frozen=True)
class PackingMoves:
    """Emits copies of a view's blocks into `to`.

    `step` is the stride of its major index there: lines if `lines_first`, else summed indices.
    `tag` is the element type's suffix of C names.
    """

    walker: Walker
    tag: str
    found: View
    to: str
    step: str
    lines_first: bool

    def text(self, start: str, length: str) -> list[str]:
        """Return copies or transposes of `length` lines from `start` on."""
        return self.walker.walk(
            self.found.lines,
            start,
            length,
            lambda line, lines: self.walker.walk(
                self.found.summed,
                "depth_start",
                "depth_run",
                lambda k, ks: self.moved(RunTexts(line, lines, k, ks)),
            ),
        )

    def moved(self, run: RunTexts) -> list[str]:
        """Return the statements that write one run into the block.

        If a guard depends on both loops of a run, each summed index is a run of its own.
        """
        found = self.found
        if found.border is None:
            return [self.move(run, self.source())]
        line, deep = (loops[-1].name if loops else None for loops in (found.lines, found.summed))
        if deep is None or not found.border.mixes(line, deep):
            return self.padded(found.border, line, deep, run)
        index = index_name(deep)
        one = RunTexts(run.line, run.lines, f"{run.deep} + single", "1")
        each = [f"const int64_t {index} = run_start + single;"]
        each += self.padded(found.border, line, None, one)
        return [
            f"for (int64_t single = 0; single < {run.run}; ++single) {{",
            *indent([f"const int64_t run_start = {index};", "{", *indent(each), "}"]),
            "}",
        ]

    def padded(
        self, border: Border, line: str | None, deep: str | None, run: RunTexts
    ) -> list[str]:
        """Return the statements that copy the part of a run inside of the operand and clear the
        rest.
        """
        lows = "line_low > 0 || deep_low > 0"
        return [
            *narrow_run(border, line, deep, run, self.walker.length),
            f"if ({lows} || line_high < {run.lines} || deep_high < {run.run})",
            f"  {self.clear(run)}",
            "if (line_low < line_high && deep_low < deep_high)",
            f"  {self.inside(run.inside)}",
        ]

    @property
    def line_steps(self) -> bool:
        """Return True if memory is contiguous along summed indices, not along lines."""
        if self.found.summed_step == self.found.line_step == 1:
            return self.lines_first
        return self.found.summed_step == 1

    def source(self, *further: str) -> str:
        """Return the address of a run's first element, plus the offsets `further`.

        In the padding there may be no such element; then only the sum with the offsets is valid.
        """
        found = self.found
        if found.border is None:
            return self.walker.address(found.pointer, found.strides, found.loops)
        offset = self.walker.address(found.border.start, found.strides, found.loops)
        return f"{found.pointer} + ({' + '.join([offset, *further])})"

    def target(self, run: RunTexts) -> str:
        """Return a run's destination pointer and the stride there."""
        major, minor = (run.line, run.deep) if self.lines_first else (run.deep, run.line)
        return f"{self.to} + ({major}) * {self.step} + {minor}, {self.step}"

    def move(self, run: RunTexts, source: str) -> str:
        """Return the copy or transpose of one run."""
        kind = "copy" if self.line_steps == self.lines_first else "transpose"
        steps = (self.found.line_step, self.found.summed_step)
        across = self.walker.length(steps[0] if self.line_steps else steps[1])
        return self.call(kind, run, [source, across, *_sizes(run, self.line_steps)])

    def inside(self, run: RunTexts) -> str:
        """Return the copy or transpose of the part of a run inside of all borders."""
        steps = [("line_low", self.found.line_step), ("deep_low", self.found.summed_step)]
        offsets = [f"{name} * {self.walker.factor(each)}" for name, each in steps if each != 0]
        return self.move(run, self.source(*offsets))

    def clear(self, run: RunTexts) -> str:
        """Return the statement that fills a run with zeros."""
        return self.call("clear", run, _sizes(run, self.lines_first))

    def call(self, kind: str, run: RunTexts, further: Sequence[str]) -> str:
        """Return the call of a shared function that writes a run."""
        return f"geon_{kind}_{self.tag}({', '.join([self.target(run), *further])});"


def _sizes(run: RunTexts, lines_first: bool) -> tuple[str, str]:
    """Return the extents of a run in lines and summed indices, lines first or last."""
    return (run.lines, run.run) if lines_first else (run.run, run.lines)
