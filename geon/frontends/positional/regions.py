"""Loops over a position: inputs are sliced, carries passed on, and results stacked."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import geon

from ...errors import ArgumentError
from ...op_graph.axes.lengths import may_equal
from .movement import flip, with_axis
from .values import (
    PositionalArray,
    Size,
    Value,
    array,
    as_array,
    fresh,
    new_axis,
)

STEPS = "loop_step"  # the axis of a loop inside of it, where tensors may have the outer axis, too


@dataclass(frozen=True)
class Sliced:
    """An input of a loop, which reads one index along a position in each step."""

    value: Value
    position: int = 0
    is_reversed: bool = False


def ordered(value: Value) -> PositionalArray:
    """Return a value whose tensor has its axes in the order of positions."""
    given = as_array(value)
    names = [dim.name for dim in given.dims if dim is not None]
    if names == list(given.tensor.axes.names):
        return given
    return PositionalArray(geon.reorder(given.tensor, names), given.dims)


def fitted(value: Any, like: PositionalArray, what: str) -> geon.Tensor:
    """Return the tensor of a value with the axes of ``like``, whose shape it must have."""
    if not isinstance(value, Value):
        raise ArgumentError(f"{what} is {_kind(value)}, chosen in a call; a tensor is needed")
    given = ordered(value)
    fits = len(given.dims) == len(like.dims) and all(
        a is b is None or (a and b and may_equal(a.expression, b.expression))
        for a, b in zip(given.dims, like.dims, strict=True)
    )
    if not fits:
        raise ArgumentError(f"{what} is first {like} and then {given}; give both the same shape")
    return geon.cast_axes(given.tensor, like.tensor.axes)


def _kind(value: Any) -> str:
    return "an optional without value" if value is None else f"a {type(value).__name__}"


def scan(
    step: Callable[[list[Value], list[Value], Value], tuple[Sequence[Any], Sequence[Any]]],
    carries: Sequence[Value],
    inputs: Sequence[Sliced],
    length: Size | None = None,
    steps: geon.Tensor | None = None,
) -> tuple[list[Value], list[PositionalArray]]:
    """Return the last carries, and results of steps stacked along a new first position.

    ``step`` takes the carries, the slices of the inputs and the number of the step, and returns the
    new carries, in their shapes, and the results. Without inputs ``length`` is the number of steps.
    With ``steps`` only so many run, and the other results are 0.
    Raises ``ArgumentError`` if a carry changes its shape.
    """
    initial = [ordered(value) for value in carries]
    outer = new_axis(length, "steps", ()) if length is not None else None
    sliced: list[PositionalArray] = []
    for each in inputs:
        value = flip(each.value, [each.position]) if each.is_reversed else each.value
        given = with_axis(as_array(value), each.position)
        dim = given.dims[each.position]
        assert dim is not None
        outer = outer or dim
        rest = [d for k, d in enumerate(given.dims) if k != each.position]
        sliced.append(PositionalArray(given.tensor.rename({dim.name: STEPS}), tuple(rest)))
    assert outer is not None  # there is a length or an input
    axis = outer.named(STEPS)
    shapes: list[PositionalArray] = []

    def build(old: list[geon.Tensor], parts: Any) -> Any:
        tensors, number = parts
        held = [array(t, given.dims) for t, given in zip(old, initial, strict=True)]
        slices = [array(t, given.dims) for t, given in zip(tensors, sliced, strict=True)]
        new, results = step(list(held), list(slices), array(number, ()))
        pairs = zip(new, initial, strict=True)
        after = [fitted(v, b, f"the carry {k} of a loop") for k, (v, b) in enumerate(pairs)]
        shapes.extend([ordered(value) for value in results])
        return after, [value.tensor for value in shapes]

    parts = ([value.tensor for value in sliced], geon.iota(axis))
    first = [value.tensor for value in initial]
    last, stacks = geon.scan(build, first, parts, over=axis, steps=steps)
    results = [stacked_rows(t, row, outer.name) for t, row in zip(stacks, shapes, strict=True)]
    held = [array(t, given.dims) for t, given in zip(last, initial, strict=True)]
    return list(held), results


def stacked_rows(stack: geon.Tensor, row: PositionalArray, base: str) -> PositionalArray:
    """Return rows that a loop stacked along ``STEPS``, which gets a name like ``base``."""
    names = [None if dim is None else dim.name for dim in row.dims]
    own = fresh(base, [name for name in names if name is not None])
    return array(stack.rename({STEPS: own}), [own, *names])
