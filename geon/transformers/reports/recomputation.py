"""Report on recomputation: recomputed ops, their cost, and the memory saved."""

from __future__ import annotations

from collections import Counter

from ...op_graph.axes.length_defaults import default_lengths
from ...op_graph.axes.lengths import names_of
from ...op_graph.op_graph import Op
from ..compile import CompileStages
from ..lowering.planning.cost_report import predictions, written_place
from ..lowering.planning.plan import Plan, peak


def computed_again(stages: CompileStages, threads: int) -> list[str]:
    """Return lines about recomputed ops with counts, time and bytes; empty without any."""
    again = [op for op in stages.program.again if not op.primitive.view]
    if not again:
        return []
    lengths = {**default_lengths(), **stages.request.lengths}
    counts = Counter(_called(op) for op in again)
    rows = ", ".join(f"{count} {name}" for name, count in counts.most_common())
    takes, took = (peak(plan, lengths, threads) for plan in (stages.plan, stages.kept))
    found = [f"computed again: {rows}", f"peak bytes: {takes} instead of {took}"]
    times = [_seconds(plan, lengths, threads) for plan in (stages.plan, stages.kept)]
    if None not in times:
        more, before = (1e6 * seconds for seconds in times if seconds is not None)
        found.append(f"predicted: {more:.2f} us instead of {before:.2f} us")
    return found


def _called(op: Op) -> str:
    """Return an op's name: its primitive; for a scan of a segment, with its number of steps."""
    if op.primitive.name != "scan":
        return op.primitive.name
    axis = op.attrs.axis
    return f"scan of {axis.length} steps along {axis.name}"


def _seconds(plan: Plan, lengths: dict[str, int], threads: int) -> float | None:
    """Return the predicted seconds of a plan's kernels; None if not known."""
    made = plan.schedule
    names = {n for k in made.kernels for op in k.reads for a in op.axes for n in names_of(a.length)}
    if made.target.machine is None or names - lengths.keys():
        return None
    machine = made.target.machine(threads)
    found = predictions(made, lengths, machine, threads, written_place(made), plan)
    return sum(each.prediction.seconds for each in found)
