"""Branches and loops."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

import geon

from ....errors import ArgumentError, GeonError
from ....op_graph.axes.lengths import Length
from ...positional.indexing import select
from ...positional.movement import concat, flip
from ...positional.regions import STEPS, Sliced, fitted, ordered, scan, stacked_rows
from ...positional.reshaping import transpose, unsqueeze
from ...positional.values import (
    HostArray,
    PositionalArray,
    UnknownValueError,
    Value,
    Weight,
    array,
    as_array,
    host,
    known,
    position,
)
from ..builder import MAX_UNROLLED_STEPS, Subgraph
from ..stacks import PartialStack
from ..table import NodeInfo, row


def branch(condition: Any, /, *, then_branch: Subgraph, else_branch: Subgraph) -> tuple[Any, ...]:
    """Return the outputs of one of two graphs; a known condition chooses when it is built."""
    if not isinstance(condition, PositionalArray):
        chosen = then_branch if bool(known(condition).reshape(())[()]) else else_branch
        return tuple(chosen())
    then_branch.prepare()
    else_branch.prepare()
    shapes: list[PositionalArray] = []

    def build(graph: Subgraph) -> list[geon.Tensor]:
        results = graph()
        if any(not isinstance(value, Value) for value in results):
            known(condition, "a condition that chooses a sequence or an optional")
        if not shapes:
            shapes.extend([ordered(value) for value in results])
        pairs = zip(results, shapes, strict=True)
        return [fitted(v, s, f"output {k} of a branch") for k, (v, s) in enumerate(pairs)]

    found = geon.cond(condition.tensor, lambda: build(then_branch), lambda: build(else_branch))
    return tuple([array(t, s.dims) for t, s in zip(found, shapes, strict=True)])


class _DynamicConditionError(GeonError):
    """The condition of a loop depends on values of a call."""


def loop(
    trips: Value | None, condition: Any, /, *carries: Any, node: NodeInfo, body: Subgraph
) -> tuple[Any, ...]:
    """Return the last carries and the stacked results of the steps of a graph.

    The loop is a scan if its number of steps is known, or is an open length; a while loop if its
    condition depends on the data, whose stacked results need a known limit of the number; and it is
    unrolled if it carries sequences, or if its steps need their number when they are built.
    """
    body.prepare()
    given = [as_array(v) if isinstance(v, Weight) else v for v in carries]
    count = None if trips is None else _number(trips)
    stacked = body.outputs - 1 - len(carries)
    begins = True if condition is None else _truth(condition)
    if count is None or begins is None:
        has_length = not stacked or isinstance(count, int)
        if not has_length or not all(isinstance(v, Value) for v in given):
            _refuse(trips, condition)
        try:
            return _while(trips, condition, given, body, node)
        except (UnknownValueError, ArgumentError) as error:
            if not stacked or getattr(error, "inputs", None):
                raise
            _refuse(trips, condition)
    if not begins:
        count = 0
    if not all(isinstance(v, Value) for v in given):
        return _unrolled(count, given, body)
    try:
        return _scanned(count, given, body)
    except _DynamicConditionError:
        if stacked and not isinstance(count, int):
            raise ArgumentError(
                "the number of steps depends on values of a call, and so does the length of "
                f"{stacked} stacked results; geon needs a length that is known before"
            ) from None
        return _while(trips, condition, given, body, node)
    except (UnknownValueError, ArgumentError) as error:
        needs_inputs = isinstance(error, UnknownValueError) and error.inputs
        if needs_inputs or not isinstance(count, int):
            raise
        return _unrolled(count, given, body)


def _number(value: Value) -> Any:
    """Return a number that is known, as an integer or a length; None if it is not."""
    if isinstance(value, PositionalArray):
        return None
    found = known(value).reshape(()).item()
    return max(found, 0) if isinstance(found, int) else found


def _truth(value: Value) -> bool | None:
    return None if isinstance(value, PositionalArray) else bool(known(value).reshape(()).item())


def _refuse(trips: Value | None, condition: Any) -> None:
    """Raise an error with the inputs that give a loop its number of steps."""
    for value, what in ((trips, "the number of steps"), (condition, "the first condition")):
        if value is not None:
            known(value, f"{what} of a loop with stacked results or sequences")
    raise ArgumentError(
        "a loop without a number of steps has stacked results or carries sequences; geon needs a "
        "number that is known before"
    )


def _scanned(count: Any, carries: Sequence[Value], body: Subgraph) -> tuple[Any, ...]:
    def step(
        old: list[Value], slices: list[Value], number: Value
    ) -> tuple[Sequence[Any], Sequence[Any]]:
        del slices
        goes_on, *results = body(number, host(np.array(True)), *old)
        if not (isinstance(goes_on, HostArray) and _truth(goes_on)):
            raise _DynamicConditionError("the condition of a loop depends on values of a call")
        return results[: len(old)], results[len(old) :]

    last, stacks = scan(step, carries, (), count)
    return (*last, *stacks)


def _while(
    trips: Value | None, condition: Any, carries: Sequence[Any], body: Subgraph, node: NodeInfo
) -> tuple[Any, ...]:
    """Build a while loop; its stacked results have the known limit of the number of steps."""
    initial = [ordered(value) for value in carries]
    number = None if trips is None else _number(trips)
    limit = number if isinstance(number, int) else None
    most = None if trips is None or limit is not None else as_array(trips).tensor
    first = geon.constant(True) if condition is None else as_array(condition).tensor
    is_stacked = body.outputs - 1 > len(initial)
    rows: list[PositionalArray] = []

    def goes_on(state: Any) -> geon.Tensor:
        number, goes, _ = state
        return goes if most is None else geon.logical_and(goes, geon.less(number, most))

    def step(state: Any) -> Any:
        number, goes, old = state
        held = [array(t, like.dims) for t, like in zip(old, initial, strict=True)]
        next_goes, *results = body(array(number, ()), array(goes, ()), *held)
        pairs = zip(results, initial, strict=False)
        new = [fitted(v, b, f"the carry {k} of a loop") for k, (v, b) in enumerate(pairs)]
        rows.extend([ordered(value) for value in results[len(initial) :]])
        after = number + 1, as_array(next_goes).tensor, new
        return (after, [each.tensor for each in rows]) if is_stacked else after

    init = (geon.constant(0, dtype="int64"), first, [value.tensor for value in initial])
    if is_stacked:
        over = geon.Axis(STEPS, limit)
        end, stacks, count = geon.while_loop(goes_on, step, init, over=over, count=True)
    else:
        end, stacks, count = geon.while_loop(goes_on, step, init, limit), (), init[0]
    steps = Length.of(f"steps_of_{node.name or node.outputs[0]}")
    pairs = zip(stacks, rows, strict=True)
    whole = [PartialStack(stacked_rows(t, like, "steps"), count, steps) for t, like in pairs]
    return (*[array(t, like.dims) for t, like in zip(end[2], initial, strict=True)], *whole)


def _unrolled(count: Any, carries: Sequence[Any], body: Subgraph) -> tuple[Any, ...]:
    if not isinstance(count, int) or not body.unroll(count):
        raise ArgumentError(
            f"a loop of {count} steps carries sequences or changes shapes, so it is built step by "
            f"step; all such loops of a model may have {MAX_UNROLLED_STEPS} steps"
        )
    held = list(carries)
    rows: list[list[Value]] = []
    goes_on: Any = host(np.array(True))
    for number in range(count):
        goes_on, *results = body(host(np.array(number)), goes_on, *held)
        held, row_results = results[: len(held)], results[len(held) :]
        rows.append([unsqueeze(value, [0]) for value in row_results])
        if not known(goes_on, "the condition of a loop that is built step by step").item():
            break
    if not rows and body.outputs - 1 > len(held):
        raise ArgumentError("a loop without steps has stacked results, whose shapes are not known")
    stacks = [concat(each, 0) for each in zip(*rows, strict=True)] if rows and rows[0] else []
    return (*held, *stacks)


def scan_along(
    *values: Value,
    body: Subgraph,
    num_scan_inputs: int,
    scan_input_axes: Sequence[int] = (),
    scan_input_directions: Sequence[int] = (),
    scan_output_axes: Sequence[int] = (),
    scan_output_directions: Sequence[int] = (),
) -> tuple[Value, ...]:
    """Return the last states and the stacked results of a loop over positions of its inputs."""
    body.prepare()
    count = len(values) - num_scan_inputs
    inputs = values[count:]
    axes = list(scan_input_axes) or [0] * num_scan_inputs
    ways = list(scan_input_directions) or [0] * num_scan_inputs
    sliced = [
        Sliced(value, position(axis, len(value.shape)), bool(way))
        for value, axis, way in zip(inputs, axes, ways, strict=True)
    ]

    def step(
        old: list[Value], slices: list[Value], number: Value
    ) -> tuple[Sequence[Any], Sequence[Any]]:
        del number
        results = body(*old, *slices)
        return results[:count], results[count:]

    last, stacks = scan(step, values[:count], sliced)
    axes = list(scan_output_axes) or [0] * len(stacks)
    ways = list(scan_output_directions) or [0] * len(stacks)
    results: list[Value] = []
    for stack, axis, way in zip(stacks, axes, ways, strict=True):
        whole = flip(stack, [0]) if way else stack
        rank = len(whole.shape)
        order = list(range(1, rank))
        order.insert(position(axis, rank), 0)
        results.append(transpose(whole, order))
    return (*last, *results)


def scan_of_batches(
    lengths: Value | None,
    /,
    *values: Value,
    body: Subgraph,
    num_scan_inputs: int,
    directions: Sequence[int] = (),
) -> tuple[Value, ...]:
    """Return the loop over position 1 of inputs whose position 0 is a batch.

    Each example of the batch is a loop of its own.
    """
    if lengths is not None:
        raise ArgumentError("sequence_lens of Scan, version 8, are not supported")
    size = values[0].shape[0]
    if isinstance(size, Length):
        raise ArgumentError(f"Scan, version 8, goes over each of {size} examples; give the length")
    rows = []
    for number in range(size):
        parts = [select(value, 0, number) for value in values]
        rows.append(
            scan_along(
                *parts,
                body=body,
                num_scan_inputs=num_scan_inputs,
                scan_input_directions=directions,
            )
        )
    return tuple([concat([unsqueeze(v, [0]) for v in each], 0) for each in zip(*rows, strict=True)])


ROWS = [
    row("If", branch),
    row("Loop", loop),
    row("Scan", scan_along, 9),
    row("Scan", scan_of_batches, 8, 8),
]
