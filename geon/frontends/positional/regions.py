"""Loops and branches whose carries and results are positional arrays."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import geon

from ...errors import ArgumentError
from .elementwise import expand
from .movement import with_axis
from .programs import cast
from .values import Dim, HostArray, PositionalArray, Size, Value, array, as_array, fresh, renamed

Values = Sequence[Value]


def scan(
    step: Callable[[list[Value], list[Value]], tuple[Values, Values]],
    init: Values,
    xs: Values,
    length: Size,
    reverse: bool = False,
) -> tuple[list[Value], list[Value]]:
    """Loop along the first position of ``xs``; return the last carries and the stacked values.

    ``step(carries, slices)`` returns the new carries, of the same shapes and dtypes, and values.
    """
    carries = [_settled(value) for value in init]
    taken = {name for value in carries for name in value.tensor.axes.names}
    stacks = [with_axis(as_array(value), 0) for value in xs]
    for value in stacks:
        taken |= {dim.name for dim in value.dims[1:] if dim is not None}
    base = stacks[0].dims[0] if stacks else None
    axis = geon.Axis(fresh("step" if base is None else base.name, taken), length)
    stacks = [
        renamed(value, [axis.name, *[None if d is None else d.name for d in value.dims[1:]]])
        for value in stacks
    ]
    shapes: list[tuple[Dim, ...]] = []

    def body(
        old: list[geon.Tensor], slices: list[geon.Tensor]
    ) -> tuple[list[geon.Tensor], list[geon.Tensor]]:
        given = [array(t, c.dims) for t, c in zip(old, carries, strict=True)]
        parts = [array(t, s.dims[1:]) for t, s in zip(slices, stacks, strict=True)]
        new, values = step(list(given), list(parts))
        results = [_apart(as_array(value), axis.name) for value in values]
        shapes.extend([result.dims for result in results])
        return [_like(value, c) for value, c in zip(new, carries, strict=True)], [
            result.tensor for result in results
        ]

    first = [value.tensor for value in carries]
    end, values = geon.scan(body, first, [value.tensor for value in stacks], over=axis,
                            reverse=reverse)  # fmt: skip
    return (
        [array(t, c.dims) for t, c in zip(end, carries, strict=True)],
        [array(t, [axis, *dims]) for t, dims in zip(values, shapes, strict=True)],
    )


def repeat_while(
    condition: Callable[[list[Value]], Value], body: Callable[[list[Value]], Values], init: Values
) -> list[Value]:
    """Return the carries after ``body`` was applied while ``condition`` is true."""
    carries = [_settled(value) for value in init]

    def arrays(tensors: list[geon.Tensor]) -> list[Value]:
        return [array(t, c.dims) for t, c in zip(tensors, carries, strict=True)]

    def step(tensors: list[geon.Tensor]) -> list[geon.Tensor]:
        return [_like(value, c) for value, c in zip(body(arrays(tensors)), carries, strict=True)]

    end = geon.while_loop(
        lambda tensors: as_array(condition(arrays(tensors))).tensor,
        step,
        [value.tensor for value in carries],
    )
    return arrays(end)


def branch(
    number: Value, branches: Sequence[Callable[[], Values]], shapes: Sequence[Sequence[Size]]
) -> list[Value]:
    """Return the results of branch ``number``, clamped; a known number chooses at once.

    ``shapes`` are those of the results, which are equal in all branches.
    """
    last = len(branches) - 1
    if isinstance(number, HostArray):
        return list(branches[min(max(int(number.array), 0), last)]())
    patterns: list[PositionalArray] = []

    def build(make: Callable[[], Values]) -> list[geon.Tensor]:
        results = [expand(value, shape) for value, shape in zip(make(), shapes, strict=True)]
        if not patterns:
            patterns.extend(results)
        return [_like(value, p) for value, p in zip(results, patterns, strict=True)]

    if number.dtype.kind == "b":
        index = geon.cast(as_array(number).tensor, "int64")
    else:
        index = geon.minimum(geon.maximum(as_array(number).tensor, 0), last)
    found = geon.case_of(index, [lambda make=make: build(make) for make in branches])  # type: ignore[misc]  # bound now
    return [array(t, p.dims) for t, p in zip(found, patterns, strict=True)]


def _settled(value: Value) -> PositionalArray:
    """Return a carry as a tensor with an order of axes that its positions have."""
    given = as_array(value)
    names = [dim.name for dim in given.dims if dim is not None]
    if list(given.tensor.axes.names) == names:
        return given
    return array(geon.reorder(given.tensor, names), given.dims)


def _like(value: Value, pattern: PositionalArray) -> geon.Tensor:
    """Return a value over the axes of ``pattern``, in their order."""
    given = as_array(cast(value, pattern.dtype), pattern.dims)
    wrong = [
        k
        for k, (d, p) in enumerate(zip(given.dims, pattern.dims, strict=True))
        if (d is None) != (p is None)
    ]
    if wrong:
        raise ArgumentError(
            f"a carry or result begins as {pattern} and comes back as {given}: dimension "
            f"{wrong[0]} differs"
        )
    order = [dim.name for dim in given.dims if dim is not None]
    tensor = given.tensor
    if order != list(tensor.axes.names):
        tensor = geon.reorder(tensor, order)
    return geon.cast_axes(tensor, pattern.tensor.axes)


def _apart(value: PositionalArray, name: str) -> PositionalArray:
    """Return an array none of whose axes has this name."""
    names = [None if dim is None else dim.name for dim in value.dims]
    if name not in names:
        return value
    taken = [name, *[n for n in names if n is not None and n != name]]
    return renamed(value, [fresh(name, taken) if n == name else n for n in names])
