"""Naive interpreter: evaluates one op at a time with NumPy, into new arrays.

It is the reference for compiled programs, so it shares nothing with them: no simplification, no
memory plan, no in-place updates.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np

from ...errors import ArgumentError
from ...lazy_dataclasses import dataclass
from ..axes.axes import Axes
from ..core.primitive import PRIMITIVES
from ..core.region_body import Body
from ..op_graph import Leaf, Op, RegionOp, post_order
from ..rows.movement import align_dimensions
from ..values.attribute_types import with_lengths
from ..values.dtypes import DType
from .eval_index_map import eval_index_map
from .eval_reducer import eval_reduction

Array = np.ndarray[Any, Any]


class BoundOp:
    """An op with integer lengths, as the reference of a primitive takes it."""

    __slots__ = ("args", "attrs", "axes", "dtype", "guards", "op", "primitive")

    def __init__(self, op: Op, lengths: Mapping[str, int], args: tuple[Any, ...]) -> None:
        self.primitive = op.primitive
        self.axes = bind(op.axes, lengths)
        self.dtype = op.dtype
        self.attrs = op.attrs if op.primitive.name == "constant" else bound_attributes(op, lengths)
        self.args = args
        self.guards = op.guards
        self.op = op

    @property
    def line_info(self) -> str:
        """The source line of the op, for messages."""
        return self.op.line_info

    def __str__(self) -> str:
        return str(self.op)


@dataclass(frozen=True, eq=False, slots=True)
class BoundRegion:
    """A region with integer lengths; lengths in its bodies stay open.

    ``outcomes`` are the axes and dtypes of its results.
    """

    attrs: Any
    outcomes: list[tuple[Axes, DType]]


def bind(value: Any, lengths: Mapping[str, int]) -> Any:
    """Return ``value`` (an attribute, axes, a length) with every length expression evaluated."""
    return with_lengths(value, lambda length: length.evaluate(lengths))


def bound_attributes(op: Op, lengths: Mapping[str, int]) -> Any:
    """Return the attributes of an op with every length expression evaluated."""
    return op.primitive.named(bind(op.attrs, lengths)) if op.attrs else op.attrs


# Kinds that widen halves.
COMPUTING = ("elementwise", "reduction", "ordered", "contraction", "matrix")


def evaluate(op: Op, bound: BoundOp, args: list[Array]) -> Array:
    """Return the value of one op from the values of its arguments."""
    row = op.primitive
    if row.reference is None and row.index_map is not None:
        return eval_index_map(bound, *args)
    if row.reference is None and row.reducer is not None:
        return np.asarray(eval_reduction(bound, *_widened(args))).astype(op.dtype)
    if row.reference is None:
        raise ArgumentError(f"{op} (made at {op.line_info}) has no value: it must be given")
    with np.errstate(all="ignore"):
        if row.kind == "elementwise":
            shape = tuple(bound.axes.lengths)
            operands = [
                align_dimensions(a, x.axes, bound.axes)
                for a, x in zip(args, bound.args, strict=True)
            ]
            first = (bound,) if row.attributes._fields else ()
            value = np.broadcast_to(row.reference(*first, *_widened(operands)), shape)
        elif row.kind in COMPUTING:
            value = row.reference(bound, *_widened(args))
        else:
            value = row.reference(bound, *args)
        return np.ascontiguousarray(np.asarray(value).astype(op.dtype)).reshape(bound.axes.lengths)


def _widened(arrays: list[Array]) -> list[Array]:
    # Ops on halves compute in float32 and round once, as on every target.
    return [a.astype(np.float32) if a.dtype.name in ("float16", "bfloat16") else a for a in arrays]


Evaluate = Callable[[Op, BoundOp, list[Array]], Array]
ENDING = ("while", "fixed_point")  # loops that end by a condition


@dataclass(frozen=True, eq=False, slots=True)
class RegionRun:
    """One run of the body of a region: the values of its ops, and the runs of regions in it."""

    body: Body
    values: dict[Op, Array]
    inside: dict[Op, list[RegionRun]]


def interpret(
    roots: Iterable[Op],
    known: Mapping[Any, Array],
    lengths: Mapping[str, int],
    runs: dict[Op, list[RegionRun]] | None = None,
    value_of: Evaluate = evaluate,
) -> dict[Op, Array]:
    """Return the value of every op that the pure ``roots`` depend on.

    ``known`` has the array of each placeholder and variable, and of any other op that is not to be
    computed. ``lengths`` has the integer of each open name. If given, ``runs`` receives the runs of
    bodies by region, in order of execution. Values come from ``value_of``, except in loops that end
    by a condition: with other values these might not end.
    """
    values: dict[Op, Any] = {}  # for a region, the list of the arrays of its results
    bounds: dict[Op, BoundOp] = {}
    for op in post_order(roots):
        bound = bounds[op] = BoundOp(op, lengths, tuple(bounds[arg] for arg in op.args))
        if op in known:
            values[op] = np.asarray(known[op], op.dtype)
        elif isinstance(op, Leaf):
            raise ArgumentError(f"{op} (made at {op.line_info}) has no value")
        elif isinstance(op, RegionOp):
            seen = None if runs is None else runs.setdefault(op, [])
            inside = evaluate if op.primitive.name in ENDING else value_of
            run = running(lengths, seen, inside)
            values[op] = results_of(op, [values[arg] for arg in op.args], lengths, run)
        elif isinstance(op.args[0] if op.args else None, RegionOp):
            values[op] = values[op.args[0]][op.attrs.number]
        else:
            values[op] = value_of(op, bound, [values[arg] for arg in op.args])
    return values


RunBody = Callable[[Body, list[Array]], list[Array]]


def running(
    lengths: Mapping[str, int], runs: list[RegionRun] | None, value_of: Evaluate = evaluate
) -> RunBody:
    """Return a function that runs a body on arguments and appends the run to ``runs``."""

    def run(body: Body, given: list[Array]) -> list[Array]:
        known = dict(zip(body.parameters, given, strict=True))
        inside: dict[Op, list[RegionRun]] | None = None if runs is None else {}
        values = interpret(body.results, known, lengths, inside, value_of)
        if runs is not None and inside is not None:
            runs.append(RegionRun(body, values, inside))
        return [values[result] for result in body.results]

    return run


def results_of(op: Op, args: list[Array], lengths: Mapping[str, int], run: RunBody) -> list[Array]:
    """Return the arrays of all results of a region; ``run`` computes its bodies."""
    row = op.primitive
    assert row.reference is not None and row.outcomes is not None
    outcomes = [(bind(axes, lengths), dtype) for axes, dtype in row.outcomes(op.attrs)]
    result = row.reference(BoundRegion(bound_attributes(op, lengths), outcomes), run, *args)
    return [np.asarray(value, dtype) for value, (_, dtype) in zip(result, outcomes, strict=True)]


def completeness() -> list[str]:
    """Return the primitives without a reference that are no storage: none in a correct registry."""
    storage = (
        "placeholder", "variable", "assign", "doall", "sequential", "with_effect", "parameter",
        "region_result",
    )  # fmt: skip
    return [
        name
        for name, row in PRIMITIVES.items()
        if (row.reference or row.index_map or row.reducer) is None and name not in storage
    ]
