"""Divide a pass of a loop nest into tasks of neighbouring iterations and combine partial values.

The division depends only on lengths, never on the number of threads. So the partial values of
reductions do not depend on the number of threads.
"""

from __future__ import annotations

from collections.abc import Mapping

from ....op_graph.axes.lengths import is_multiple, product
from ...printing.nests.loop_lines import for_loop, indent
from ...printing.nests.parameters import Parameter
from ...printing.nests.pass_text import Accumulator, PrintedPass, RowStore
from ...printing.nests.scalar_statements import MAX_LANES
from ..vectors.nontemporal_stores import Past
from ..vectors.transpose_tiles import TILE_LANES
from ..vectors.unroll_jam_columns import JAM_FACTOR, joins_turns
from .accumulators import is_float_sum, wide_name
from .pass_loops import DIVIDED
from .task_text import NestTasks

MAX_PARTIALS = 256  # maximum tasks of one reduction, each with a partial value
MAX_ROW_PARTIALS = 32  # maximum tasks for up to TILE rows in lanes
MAX_WIDE_ROW_PARTIALS = 16  # maximum tasks for more rows in lanes
MAX_ROW_SUMS = 2048  # maximum sums of those rows: the caller's stack has 256 KB of partial values
MAX_UNSPLIT_TURNS = 1024  # maximum iterations of a pass that is not worth dividing


def only_folds_and_stores(made: PrintedPass) -> bool:
    """Return True if a pass follows the memory order and has only simple reductions and stores."""
    return not (made.crosses or made.flat or made.states or made.windows or made.stages)


class DividedNest(NestTasks):
    """A nest whose passes are divided into tasks."""

    def divided(self) -> str:
        """Return the functions of tasks of neighbouring iterations of each pass's divided loop.

        Tasks of later passes receive the reductions of earlier ones and recompute the values that
        follow from them.
        """
        nest, top = self.nest, self.top()
        passes = [line for line in nest.row.lines if isinstance(line, PrintedPass)]
        functions: list[list[str]] = []
        main: list[str] = []
        if not passes:
            main = [*top, *self.passes.statements(nest.row.lines), "(void)threads;"]
        known, told = list(top), dict[str, Parameter]()
        for line in passes:
            main += self.task(line, functions, top, {})
            known += restore_states(line)
            told |= result_parameters(line)
        for other in nest.ending.lines:
            if isinstance(other, PrintedPass):
                main += self.task(other, functions, [*known, *self.windows([other])], told)
                known += restore_states(other)
                told |= result_parameters(other)
            else:
                main.append(str(other))
                known += [] if isinstance(other, RowStore) else [str(other)]
        return self.whole([*functions, [self.head(), "{", *indent(main), "}"]])

    def task(
        self,
        made: PrintedPass,
        functions: list[list[str]],
        begin: list[str],
        told: dict[str, Parameter],
    ) -> list[str]:
        """Return the statements that run a pass in parts, and add its task to ``functions``.

        ``told`` are the parameters of values that the task receives, by their names in the caller.
        """
        name = f"{self.name}_part{len(functions) // 2 or ''}"
        body = self.part(made, begin)  # first, as it adds parameters
        extra = [*self.partial(made), *told.values()]
        functions += [self.structure(name, extra), self.function(name, body, extra)]
        return self.divide(made, name, {p.name: value for value, p in told.items()})

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

    def part(self, made: PrintedPass, top: list[str]) -> list[str]:
        """Return a task's body: the pass between two bounds, and its partial values."""
        lines = [*top]
        bounds = None
        if made.loops:
            size = self.extent(made)
            end = f"begin + grain < {size} ? begin + grain : {size}"
            lines += ["const int64_t begin = task * grain;", f"const int64_t end = {end};"]
            bounds = DIVIDED
        else:
            lines.append("(void)grain;")
        past = self.passes.past = Past(self.passing if bounds else None, self.names)
        lines += past.task(self.passes.text(made, bounds, partial=True, flat=self.is_flat(made)))
        self.passes.past = Past(None, self.names)
        blocked = self.passes.accumulation(made).blocked
        for t in made.sums:
            lines.append(f"{t.name}_parts[task] = {wide_name(t) if t.name in blocked else t.name};")
        names = [name for state in made.states for name in state.names]
        lines += [f"{name}_parts[task] = {name}[0];" for name in names]
        return lines if made.loops or made.sums or names else [*lines, "(void)task;"]

    def is_flat(self, made: PrintedPass) -> bool:
        """Return True if a pass is one loop without reductions that fills vectors."""
        reduces = made.sums or made.states
        if len(made.loops) != 1 or reduces or made.windows or self.nest.lanes is not None:
            return False
        return is_multiple(made.loops[0].extent, self.passes.at_once(made))

    def divide(self, made: PrintedPass, task: str, told: Mapping[str, str]) -> list[str]:
        """Return the statements that run a pass in parts and combine its partial values in order.

        ``told`` has the names of further task fields and their values here.
        """
        size = self.extent(made) if made.loops else "1"
        others = [*made.loops[: made.divided], *made.loops[made.divided + 1 :]]
        counts = [f"({self.passes.extent(loop)})" for loop in others]
        work = " * ".join([str(made.weight), *counts])
        lines = [
            f"const int64_t size = {size}, work = {work};",
            "int64_t grain = geon_grain(size, work);",
        ]
        if made.sums or made.states:
            lines.append(f"if (grain < (size + {MAX_PARTIALS - 1}) / {MAX_PARTIALS}) "
                         f"grain = (size + {MAX_PARTIALS - 1}) / {MAX_PARTIALS};")  # fmt: skip
        at_once = self.passes.at_once(made) if self.is_flat(made) else 1
        if at_once > 1:
            lines.append(f"grain = (grain + {at_once - 1}) & -{at_once};")
        lines.append("const int64_t parts = (size + grain - 1) / grain;")
        lines += [f"{partial_type(t)} {t.name}_parts[{MAX_PARTIALS}];" for t in made.sums]
        held = [f"{t.name}_parts" for t in made.sums]
        for state in made.states:
            for name, ctype in zip(state.names, state.ctypes, strict=True):
                lines.append(f"{ctype} {name}_parts[{MAX_PARTIALS}];")
                held.append(f"{name}_parts")
        lines += self.launch(task, {"grain": "grain", **{name: name for name in held}, **told})
        before, after = [], []
        for t in made.sums:
            each = f"{t.name}_parts[part]"
            if is_float_sum(t):
                before.append(f"double {wide_name(t)} = 0;")
                combined = f"{wide_name(t)} += {each}"
                after.append(f"const {t.ctype} {t.name} = ({t.ctype}){wide_name(t)};")
            else:
                before.append(f"{t.ctype} {t.name} = {t.first};")
                combined = f"{t.name} = {t.step(t.name, each)}"
            lines.append(f"for (int64_t part = 0; part < parts; part++) {combined};")
        for state in made.states:
            for name, ctype, first in zip(state.names, state.ctypes, state.first, strict=True):
                before.append(f"{ctype} {name}[1] = {{{first}}};")
            lines += for_loop("part", "0", "parts", state.combine("[0]", "_parts[part]"))
        return [*before, "{", *indent(lines), "}", *after]


def result_parameters(made: PrintedPass) -> dict[str, Parameter]:
    """Return the task parameters of a pass's results, by their expressions in the caller."""
    found = {total.name: Parameter(total.name, total.ctype, None, False) for total in made.sums}
    for state in made.states:
        for name, ctype in zip(state.names, state.ctypes, strict=True):
            found[f"{name}[0]"] = Parameter(f"{name}_found", ctype, None, False)
    return found


def restore_states(made: PrintedPass) -> list[str]:
    """Return the statements of a later task that restore a pass's states."""
    pairs = [p for state in made.states for p in zip(state.names, state.ctypes, strict=True)]
    return [f"const {ctype} {name}[1] = {{{name}_found}};" for name, ctype in pairs]


def partial_type(total: Accumulator) -> str:
    """Return the C type of a partial value of a reduction."""
    return "double" if is_float_sum(total) else total.ctype
