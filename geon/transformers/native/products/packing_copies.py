"""Operands that lie in memory, brought into packed blocks: copied or transposed run by run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from .multi_index import Walker
from .operand_views import View
from .padded_packing import Run, bordered, of_windows


@dataclass(frozen=True)
class Moves:
    """The text that moves blocks of a view to `to`, whose lines or summed indices are `step` apart.

    Lines are the major order of the block where `lines_first`, else what is summed is; `tag` is
    that of the element's type in names of C.
    """

    walker: Walker
    tag: str
    found: View
    to: str
    step: str
    lines_first: bool

    def text(self, start: str, length: str) -> list[str]:
        """Copies or transposes of the lines from `start` on, `length` of them."""
        return self.walker.walk(
            self.found.lines,
            start,
            length,
            lambda line, lines: self.walker.walk(
                self.found.summed,
                "depth_start",
                "depth_run",
                lambda k, ks: self.moved(Run(line, lines, k, ks)),
            ),
        )

    def moved(self, run: Run) -> list[str]:
        """The statements that bring one run into the block."""
        found, length = self.found, self.walker.length
        if found.border is None:
            return [self.move(run, self.source())]
        if found.windows is not None:
            return of_windows(
                found.border, found.windows, run, length, self.clear, lambda at: self.show(run, at)
            )
        line, deep = (loops[-1].name if loops else None for loops in (found.lines, found.summed))
        return bordered(found.border, (line, deep), run, length, self.clear, self.inside)

    @property
    def line_steps(self) -> bool:
        """Whether the rows of a copy are lines: what adjoins in memory is along summed indices."""
        if self.found.summed_step == self.found.line_step == 1:
            return self.lines_first
        return self.found.summed_step == 1

    def source(self, *further: str) -> str:
        """The address of the element that a run begins with, so many elements `further`.

        Beyond a border there may be no such element: then only the sum with these is an address.
        """
        found = self.found
        if found.border is None:
            return self.walker.address(found.pointer, found.strides, found.loops)
        offset = self.walker.address(found.border.start, found.strides, found.loops)
        return f"{found.pointer} + ({' + '.join([offset, *further])})"

    def target(self, run: Run) -> str:
        """Where a run goes to, and the step from one to the next there."""
        major, minor = (run.line, run.deep) if self.lines_first else (run.deep, run.line)
        return f"{self.to} + ({major}) * {self.step} + {minor}, {self.step}"

    def move(self, run: Run, source: str) -> str:
        """The copy or transpose of one run."""
        kind = "copy" if self.line_steps == self.lines_first else "transpose"
        steps = (self.found.line_step, self.found.summed_step)
        across = self.walker.length(steps[0] if self.line_steps else steps[1])
        return self.call(kind, run, [source, across, *_sizes(run, self.line_steps)])

    def inside(self, run: Run) -> str:
        """The copy or transpose of that part of a run which is inside of all borders."""
        steps = [("line_low", self.found.line_step), ("deep_low", self.found.summed_step)]
        offsets = [f"{name} * {self.walker.factor(each)}" for name, each in steps if each != 0]
        return self.move(run, self.source(*offsets))

    def show(self, run: Run, given: str) -> str:
        """The call that knows windows: of their places, and of positions inside them."""
        assert self.found.windows is not None
        of_lines = self.found.windows.of_lines
        far = self.walker.length(self.found.line_step if of_lines else self.found.summed_step)
        across = str(int(of_lines != self.lines_first))
        sizes = _sizes(run, of_lines)
        return self.call("windows", run, [self.source(), far, *sizes, across, given])

    def clear(self, run: Run) -> str:
        """The statement that fills a run with zeros."""
        return self.call("clear", run, _sizes(run, self.lines_first))

    def call(self, kind: str, run: Run, further: Sequence[str]) -> str:
        """A call of the library that writes a run."""
        return f"geon_{kind}_{self.tag}({', '.join([self.target(run), *further])});"


def _sizes(run: Run, lines_first: bool) -> tuple[str, str]:
    """How many lines and summed indices a run has, or the other way."""
    return (run.lines, run.run) if lines_first else (run.run, run.lines)
