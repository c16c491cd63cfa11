"""``trace``: every op's value for given inputs, from the reference interpreter."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import numpy as np

from ...lazy_dataclasses import dataclass
from ...op_graph.core.region_body import Body
from ...op_graph.evaluation.interpreter import RegionRun, interpret
from ...op_graph.op_graph import Op, RegionOp, post_order
from ...op_graph.regions.scan_op import ScanAttributes
from ...op_graph.transforms.functionalize import Functional
from ...op_graph.values.arrays import array_of
from ...op_graph.values.labels import by_name

Array = np.ndarray[Any, Any]
BRANCH = "branch"
ENDING = {"while": "while_loop", "fixed_point": "fixed_point"}  # loops without an axis


@dataclass(frozen=True, eq=False)
class TraceEntry:
    """One op with its value: ``str`` shows its axes, dtype, the user's line, and the array.

    ``steps`` are (axis, step) of the loops around it, the outermost first; for a loop without an
    axis, ("while_loop" or "fixed_point", step); for a branch, ("branch", its number).
    """

    op: Op
    value: Array
    steps: tuple[tuple[str, int], ...] = ()

    def __str__(self) -> str:
        where = [
            f"in branch {step}"
            if axis == BRANCH
            else f"at step {step} {'of' if axis in ENDING.values() else 'along'} {axis}"
            for axis, step in self.steps
        ]
        return f"{', '.join([op_title(self.op), *where])}\n{self.value}"


def op_title(op: Op) -> str:
    """Return a description of an op: primitive, name, axes, dtype, and the user's line."""
    label = f"{op.primitive.name} {op}" if op.name else str(op)
    return f"{label} {op.dtype.name}, made at {op.file_info}"


def trace(
    pure: Functional,
    known: Mapping[Any, Array],
    lengths: Mapping[str, int],
    given: Mapping[Op, Any],
    steps: bool = False,
) -> list[TraceEntry]:
    """Return the value of every op of a graph, arguments before users; change no variable.

    ``known`` has the values of its leaves, ``given`` those that override computed ones. Effects are
    traced as the values they would assign to variables. With ``steps``, there is also the value of
    each op in a loop at each step, and of those in the branch that is taken.
    """
    overridden = {
        op: array_of(
            by_name(value, op.axes.names, f"the override of {op}"), f"the override of {op}"
        )
        for op, value in given.items()
    }
    runs: dict[Op, list[RegionRun]] | None = {} if steps else None
    computed = interpret(pure.roots, {**known, **overridden}, lengths, runs)
    return list(_entries(pure.roots, computed, runs or {}, ()))


def _entries(
    roots: Iterable[Op],
    values: Mapping[Op, Array],
    runs: Mapping[Op, list[RegionRun]],
    steps: tuple[tuple[str, int], ...],
) -> Iterator[TraceEntry]:
    """Yield the entries of the ops below ``roots``; for a region, those of its runs in order."""
    for op in post_order(roots):
        if not isinstance(op, RegionOp):
            yield TraceEntry(op, values[op], steps)
            continue
        known, counts = runs.get(op, []), Counter[Body]()
        for run in known:  # a while loop's condition and body are counted separately
            within = (*steps, _place(op, run, counts[run.body], len(known)))
            counts[run.body] += 1
            yield from _entries(run.body.results, run.values, run.inside, within)


def _place(op: RegionOp, run: RegionRun, number: int, count: int) -> tuple[str, int]:
    """Return the axis or kind of a loop and the step of a run, or ("branch", its number).

    ``number`` counts the runs of its body, ``count`` is the total.
    """
    if op.primitive.name == "case":
        return BRANCH, op.bodies.index(run.body)
    if op.primitive.name in ENDING:
        return ENDING[op.primitive.name], number
    a: ScanAttributes = op.attrs
    return a.axis.name, count - 1 - number if a.reverse else number
