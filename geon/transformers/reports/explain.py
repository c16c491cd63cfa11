"""``explain``: the result of each compilation stage as readable text."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from ...errors import ArgumentError
from ...op_graph.axes.length_defaults import default_lengths
from ...op_graph.building.constants import scalar_value
from ...op_graph.nodes import shown_name
from ...op_graph.op_graph import Leaf, Op, post_order
from ..compile import CompileStages
from ..kernels.costs.machine import Machine
from ..kernels.costs.roofline import Prediction, predict
from ..kernels.ir.nest import Call, Fill, Nest, Region
from ..kernels.products.contraction import Contraction
from ..loops.show import show
from ..lowering.fusion.kernel import Kernel
from ..lowering.planning.cost_report import parts_of, predictions, written_place
from ..lowering.planning.kernel_forms import FormChoice, Summarised
from ..lowering.planning.plan import Home, peak
from .recomputation import computed_again

STAGES = ("build", "functional", "simplify", "schedule", "plan", "emit")


def explain(stages: CompileStages, stage: str, threads: int) -> str:
    """Return the text of one stage, for calls on ``threads`` threads."""
    if stage not in STAGES:
        raise ArgumentError(f"there is no stage {stage!r}; there are {', '.join(STAGES)}")
    if stage == "build":
        made = stages.request.copies(stages.request.results)
        return listing([made[op] for op in stages.request.results])
    if stage == "functional":
        pure = stages.request.copied(stages.functional)
        changes = [f"{leaf} := {value}" for leaf, value in pure.updates.items()]
        return "\n".join([listing(pure.roots), *changes])
    if stage == "simplify":
        program = stages.program
        changes = [f"{leaf} := {value}" for leaf, value in program.updates]
        return "\n".join([listing(program.roots), *changes, *computed_again(stages, threads)])
    if stage == "schedule":
        return _schedule(stages, threads)
    return _plan(stages, threads) if stage == "plan" else stages.source


def listing(roots: Iterable[Op]) -> str:
    """Return one line for each op, arguments before users: number, expression, axes, dtype, line.

    Below a region are the lines of its bodies and their results.
    """
    return "\n".join(_listed(roots)[0])


def _listed(roots: Iterable[Op]) -> tuple[list[str], dict[Op, str]]:
    """Return the lines of a listing, and the name of each op in it."""
    numbers: dict[Op, str] = {}
    lines: list[str] = []
    count = itertools.count()
    for op in post_order(roots):
        number = _number(op)
        if number is not None:
            numbers[op] = number
            continue
        numbers[op] = f"%{next(count)}"
        args = ", ".join(numbers[arg] for arg in op.args)
        name = f" {shown_name(op)!r}" if op.name else ""
        lines.append(
            f"{numbers[op]} = {op.primitive.name}({args}){name} {op.axes} {op.dtype.name}"
            f"  {op.file_info}"
        )
        for body in op.bodies:
            inner, called = _listed([*body.parameters, *body.results])
            given = ", ".join([called[result] for result in body.results])
            lines += [f"    {line}" for line in [*inner, f"gives {given}"]]
    return lines, numbers


def _schedule(stages: CompileStages, threads: int) -> str:
    schedule = stages.schedule
    machine = schedule.target.machine
    expected = [""] * len(schedule.kernels)
    ending = []
    if machine is not None:
        here = machine(threads)
        expected, total = _predicted(stages, here, threads)
        on = f"{threads} thread{'s' * (threads > 1)} of {here.name}"
        ending = [f"predicted{total} on {on}"]
        if not here.measured:
            ending[0] += "; a profile measures this one"
    lines = []
    stored_in = {
        op: k for k, kernel in enumerate(schedule.kernels) for op in computed_values(kernel)
    }
    for position, kernel in enumerate(schedule.kernels):
        notes = []
        for op in kernel.results:
            order = schedule.layouts[op].order
            notes += [f"in memory {', '.join(order)}"] if order != op.axes.names else []
        notes += [f"writes {leaf}" for leaf in kernel.writes.values()]
        notes += ["can raise"] if kernel.raises else []
        notes += [str(kernel.fused)] if kernel.fused is not None else []
        reads = ", ".join(_short(value) for value in kernel.reads)
        made = ", ".join(_short(op) for op in kernel.results or (kernel.op,))
        lines.append(
            f"{position}: {made} from ({reads})"
            + (f"  [{'; '.join(notes)}]" if notes else "")
            + expected[position]
        )
        lines += [f"    not with {stored_in[each.other]}: {each}" for each in kernel.apart
                  if each.other in stored_in]  # fmt: skip
        form = stages.plan.forms.get(kernel.op)
        if form is not None and isinstance(kernel.work, Nest | Call | Region):
            lines += [f"    {line}" for line in form_lines(form.parts)]
        elif form is not None and isinstance(kernel.work, Contraction):
            lines += [f"    {part.summary}" for part in form.parts if isinstance(part, Summarised)]
    return "\n".join([*lines, *ending])


def form_lines(parts: Sequence[Any]) -> Iterator[str]:
    """Yield the lines of the loop trees of a nest's form, and of the steps of a call or region.

    Each of several pieces has a line of its number. Lengths of a call decide where there is a
    choice.
    """
    trees = [each for each in parts if not isinstance(each, Fill)]
    for number, part in enumerate(trees):
        if isinstance(part, FormChoice):
            yield f"if {' and '.join(f'{size} >= 0' for size in part.holds)}:"
            yield from (f"    {line}" for line in form_lines(part.forms))
            others = [f"    {line}" for line in form_lines(part.others)]
            yield from ["else:", *others] if others else []
            continue
        if isinstance(part, Summarised):
            yield part.summary
            continue
        if len(trees) > 1:
            yield f"piece {number}:"
        yield from show(part.tree).split("\n")


def computed_values(kernel: Kernel) -> tuple[Op, ...]:
    """Return the values that a kernel computes, including those that only its own steps read."""
    chain = kernel.fused.chain if kernel.fused is not None else None
    return kernel.results if chain is None else (*kernel.results, *chain.inner)


def _predicted(stages: CompileStages, machine: Machine, threads: int) -> tuple[list[str], str]:
    """Return the predicted time of each kernel as text, and their sum if all lengths are known."""
    schedule, plan = stages.schedule, stages.plan
    lengths = {**default_lengths(), **stages.request.lengths}

    def alone(kernel: Kernel, lengths: Mapping[str, int]) -> Prediction:
        return predict(kernel.work, lengths, machine, threads, None, parts_of(plan, kernel))

    missing = []  # unknown open lengths that the time of each kernel depends on
    for kernel in schedule.kernels:
        lengths_read = _AskedLengths(lengths)
        alone(kernel, lengths_read)
        missing.append(sorted(lengths_read.missing))
    if not any(missing):
        where = written_place(schedule)
        found = predictions(schedule, lengths, machine, threads, where, plan)
        total = sum(each.prediction.seconds for each in found)
        return [_expected(each.prediction) for each in found], f" {1e6 * total:.2f} us"
    return [
        f"  time depends on {', '.join(names)}" if names else _expected(alone(kernel, lengths))
        for kernel, names in zip(schedule.kernels, missing, strict=True)
    ], ""


class _AskedLengths(dict[str, int]):
    """Lengths that return 1 for an unknown name and record it in ``missing``."""

    def __init__(self, lengths: Mapping[str, int]) -> None:
        super().__init__(lengths)
        self.missing: set[str] = set()

    def __missing__(self, name: str) -> int:
        self.missing.add(name)
        return 1


def _expected(prediction: Prediction) -> str:
    moved = f"{prediction.bytes} bytes, {prediction.operations} operations"
    return f"  {1e6 * prediction.seconds:.2f} us, {moved}"


def _plan(stages: CompileStages, threads: int) -> str:
    plan = stages.plan
    lengths = {**default_lengths(), **stages.request.lengths}
    lines = [f"peak bytes: {peak(plan, lengths, threads)}"]
    for number, buffer in enumerate(plan.buffers):
        span = f"kernels {buffer.first} to {buffer.last}"
        size = f"{buffer.most(threads)} bytes"
        if buffer.scratch:
            size = f"scratch, at most {size} on {threads} thread{'s' * (threads > 1)}"
        lines.append(f"buffer {number}: {size}, {span}")
    for position, kernel in enumerate(plan.schedule.kernels):
        for op in kernel.results or (kernel.op,):
            lines.append(f"{position}: {_short(op)} -> {_where(plan.homes.get(op))}")
        if kernel.op in plan.kept:
            lines.append(f"{position}: keeps a packed copy of {plan.kept[kernel.op].size} bytes")
    return "\n".join(lines)


def _where(home: Home | None) -> str:
    if home is None:
        return "no memory"
    if home.leaf is not None:
        return f"variable {home.leaf}"
    return f"{'buffer' if home.kind == 'arena' else home.kind} {home.number}"


def _short(op: Op) -> str:
    if isinstance(op, Leaf):
        return str(op)
    return _number(op) or f"{op.primitive.name}{op.axes}"


def _number(op: Op) -> str | None:
    """Return a scalar constant in the digits of its dtype; None for any other op."""
    value = scalar_value(op)
    return None if value is None else str(op.dtype.type(value))
