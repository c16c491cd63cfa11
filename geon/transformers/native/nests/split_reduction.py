"""Divide a pass of a loop nest into tasks of neighbouring iterations and combine partial values.

The division depends only on lengths, never on the number of threads. So the partial values of
reductions do not depend on the number of threads.
"""

from __future__ import annotations

from ....op_graph.axes.lengths import is_multiple, product
from ...printing.nests.loop_lines import indent
from ...printing.nests.parameters import Parameter
from ...printing.nests.pass_text import Accumulator, PrintedPass
from ...printing.nests.scalar_statements import MAX_LANES
from ..vectors.transpose_tiles import TILE_LANES
from ..vectors.unroll_jam_columns import JAM_FACTOR, joins_turns
from .accumulators import is_float_sum, wide_name
from .pass_loops import DIVIDED
from .task_text import NestTasks

MAX_ROW_PARTIALS = 32  # maximum tasks for up to TILE rows in lanes
MAX_WIDE_ROW_PARTIALS = 16  # maximum tasks for more rows in lanes
MAX_ROW_SUMS = 2048  # maximum sums of those rows: the caller's stack has 256 KB of partial values
MAX_UNSPLIT_TURNS = 1024  # maximum iterations of a pass that is not worth dividing


def only_folds_and_stores(made: PrintedPass) -> bool:
    """Return True if a pass follows the memory order and has only simple reductions and stores."""
    return not (made.crosses or made.flat or made.states or made.windows)


class DividedNest(NestTasks):
    """A nest whose passes are divided into tasks."""

    def is_one_run(self) -> bool:
        """Return True if the nest is one contiguous run over a few rows in lanes, divided into
        tasks.

        A pass that only stores and uses no values of the rows is divided by rows instead.
        """
        lines = self.nest.row.lines
        found = [line for line in lines if isinstance(line, PrintedPass)]
        if self.nest.rows or self.nest.arrays or len(found) != 1:
            return False
        (made,) = found
        if not self.passes.is_run(made) and not self.has_many_turns(made):
            return False
        return bool(made.sums or made.states) or (made is not lines[0] and self.has_known_lanes())

    def has_many_turns(self, made: PrintedPass) -> bool:
        """Return True if a pass is long and its known number of rows in lanes is small enough for
        the partial values of all tasks.
        """
        turns = product(loop.extent for loop in made.loops)
        if not self.has_known_lanes() or not made.loops or not only_folds_and_stores(made):
            return False
        if isinstance(turns, int) and turns <= MAX_UNSPLIT_TURNS:
            return False
        lanes = self.known_lanes()
        return 1 < lanes < MAX_LANES and lanes * len(made.sums) <= MAX_ROW_SUMS

    def known_lanes(self) -> int:
        """Return the number of rows in lanes, or ``TILE_LANES`` if it is open."""
        lanes = None if self.nest.lanes is None else self.nest.lanes.extent
        return lanes if isinstance(lanes, int) else TILE_LANES

    def has_known_lanes(self) -> bool:
        """Return True if the number of rows in lanes is known."""
        return self.nest.lanes is not None and isinstance(self.nest.lanes.extent, int)

    def by_runs(self) -> str:
        """Return the functions of tasks of parts of one run, whose partial values are combined by
        row.
        """
        lines = self.nest.row.lines
        at = next(k for k, line in enumerate(lines) if isinstance(line, PrintedPass))
        first, rest = lines[at], lines[at + 1 :]
        assert isinstance(first, PrintedPass) and self.nest.lanes is not None
        task, size = f"{self.name}_part", self.passes.extent(self.nest.lanes)
        top = [
            *self.top(),
            "const int64_t first_lane = 0;",
            f"const int64_t lanes = {size};",
            *self.passes.statements(lines[:at]),  # each task recomputes the rows' own values
        ]
        extra = self.partial(first)
        at_once = self.turns_at_once(first)
        self.passes.whole_parts = at_once > 1
        body = [*self.hidden("grain"), *top, *self.part_of_run(first)]
        self.passes.whole_parts = False
        held = max(self.known_lanes(), TILE_LANES)
        runs, each = (
            (MAX_ROW_PARTIALS if held == TILE_LANES else MAX_WIDE_ROW_PARTIALS),
            "part * lanes + lane",
        )
        lines = [
            *self.shares(first, "lanes", runs, at_once),
            *(f"{p.ctype} {p.name}[{runs} * {held}];" for p in extra[1:]),
            *self.launch(task, {"grain": "grain"} | {p.name: p.name for p in extra[1:]}),
        ]
        before, after, combined, over = [], [], [], self.passes.over
        for t in first.sums:
            total, start = (wide_name(t), "0") if is_float_sum(t) else (t.name, t.first)
            ctype = partial_type(t)
            own, part = over.at(total, ctype), over.at(f"{t.name}_parts", ctype, each)
            before.append(over.array(ctype, total, held))
            before.append(f"{over.head()} {own} = {over.each(ctype, start)};")
            if is_float_sum(t):
                combined.append(f"{own} += {part};")
                after.append(over.array(t.ctype, t.name, held))
                after.append(over.narrowed(t.ctype, t.name, total))
            else:
                combined.append(f"{own} = {t.step(own, part)};")
        for state in first.states:
            for name, ctype, start in zip(state.names, state.ctypes, state.first, strict=True):
                before.append(f"{ctype} {name}[{held}];")
                before.append(f"{over.head()} {name}[lane] = {start};")
            combined += state.combine("[lane]", f"_parts[{each}]")
        if combined:
            lines.append("for (int64_t part = 0; part < parts; part++)")
            one = [f"    {over.head()} {line}" for line in combined]
            many = over.loop("0", "lanes", combined, pragma=False)
            lines += one if len(one) == 1 else indent(many)
        main = [*self.hidden("threads"), *top, *before, *lines, *after]
        main += self.passes.statements(rest)
        return self.whole([
            self.structure(task, extra),
            self.function(task, body, extra),
            [self.head(), "{", *indent(main), "}"],
        ])  # fmt: skip

    def shares(self, made: PrintedPass, lanes: str, most: int, multiple: int = 1) -> list[str]:
        """Return the statements that compute the iterations of a task, a multiple of ``multiple``.

        There are at most ``most`` tasks, as there are so many partial values.
        """
        inner = [f"({self.passes.extent(loop)})" for loop in made.loops[1:]]
        work = " * ".join([str(made.weight), lanes, *inner])
        return [
            f"const int64_t size = {self.extent(made)};",
            f"int64_t grain = geon_grain(size, {work});",
            f"if (grain < (size + {most - 1}) / {most}) grain = (size + {most - 1}) / {most};",
            *([f"grain = (grain + {multiple - 1}) & -{multiple};"] if multiple > 1 else []),
            "const int64_t parts = (size + grain - 1) / grain;",
        ]

    def turns_at_once(self, made: PrintedPass) -> int:
        """Return the number of iterations that are computed or loaded together if it divides all,
        else 1.

        Parts that are multiples of it need no code for single iterations.
        """
        if self.passes.is_run(made):
            beside = self.passes.beside(made)
            at_once = int(beside) if beside.isdigit() else 1
        else:
            at_once = JAM_FACTOR if len(made.loops) == 1 and joins_turns(made) else 1
        return at_once if is_multiple(made.loops[0].extent, at_once) else 1

    def part_of_run(self, made: PrintedPass) -> list[str]:
        """Return a task of one run, which stores each lane's partial values."""
        work, size = self.passes.accumulation(made), self.extent(made)
        lines = [
            "const int64_t begin = task * grain;",
            f"const int64_t end = begin + grain < {size} ? begin + grain : {size};",
            *self.passes.text(made, DIVIDED, partial=True),
        ]
        over, each = self.passes.over, "task * lanes + lane"
        for t in made.sums:
            blocked, ctype = t.name in work.blocked, partial_type(t)
            part = over.at(f"{t.name}_parts", ctype, each)
            held = over.converted(
                *((ctype, ctype, wide_name(t)) if blocked else (t.ctype, ctype, t.name))
            )
            lines.append(f"{over.head()} {part} = {held};")
        for name in [name for state in made.states for name in state.names]:
            lines.append(f"{over.head()} {name}_parts[{each}] = {name}[lane];")
        return lines

    def extent(self, made: PrintedPass) -> str:
        """Return the extent of the divided loop of a pass, as C."""
        return self.passes.extent(made.loops[made.divided])

    def partial(self, made: PrintedPass) -> list[Parameter]:
        """Return a divided pass's extra task parameters: its grain, partial values."""
        parts = [Parameter(f"{t.name}_parts", partial_type(t), None) for t in made.sums]
        for state in made.states:
            pairs = zip(state.names, state.ctypes, strict=True)
            parts += [Parameter(f"{name}_parts", ctype, None) for name, ctype in pairs]
        return [Parameter("grain", "int64_t", None, False), *parts]


def partial_type(total: Accumulator) -> str:
    """Return the C type of a partial value of a reduction."""
    return "double" if is_float_sum(total) else total.ctype
