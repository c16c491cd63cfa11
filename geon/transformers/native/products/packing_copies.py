"""Emit the packing of operands in memory: copies and transposes, run by run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from .multi_index import Walker
from .operand_views import View
from .padded_packing import RunTexts, of_windows, pack_run


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
        """Return the statements that write one run into the block."""
        found, length = self.found, self.walker.length
        if found.border is None:
            return [self.move(run, self.source())]
        if found.windows is not None:
            return of_windows(
                found.border, found.windows, run, length, self.clear, lambda at: self.show(run, at)
            )
        line, deep = (loops[-1].name if loops else None for loops in (found.lines, found.summed))
        return pack_run(found.border, (line, deep), run, length, self.clear, self.inside)

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

    def show(self, run: RunTexts, given: str) -> str:
        """Return the call that copies windows, given the bounds of valid positions."""
        assert self.found.windows is not None
        of_lines = self.found.windows.of_lines
        far = self.walker.length(self.found.line_step if of_lines else self.found.summed_step)
        across = str(int(of_lines != self.lines_first))
        sizes = _sizes(run, of_lines)
        return self.call("windows", run, [self.source(), far, *sizes, across, given])

    def clear(self, run: RunTexts) -> str:
        """Return the statement that fills a run with zeros."""
        return self.call("clear", run, _sizes(run, self.lines_first))

    def call(self, kind: str, run: RunTexts, further: Sequence[str]) -> str:
        """Return the call of a shared function that writes a run."""
        return f"geon_{kind}_{self.tag}({', '.join([self.target(run), *further])});"


def _sizes(run: RunTexts, lines_first: bool) -> tuple[str, str]:
    """Return the extents of a run in lines and summed indices, lines first or last."""
    return (run.lines, run.run) if lines_first else (run.run, run.lines)
