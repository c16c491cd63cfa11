"""Loops and branches over lists of values, by a condition or a number of iterations."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import geon

from .elementwise import expand
from .movement import flip
from .programs import cast
from .regions import Sliced, fitted, ordered, scan
from .values import HostArray, PositionalArray, Size, Value, Weight, array, as_array

Values = Sequence[Value]


def outside(values: Values) -> list[Value]:
    """Return values with variables made here, before a region encloses them."""
    return [as_array(value) if isinstance(value, Weight) else value for value in values]


def scan_rows(
    step: Callable[[list[Value], list[Value]], tuple[Values, Values]],
    init: Values,
    xs: Values,
    length: Size,
    reverse: bool = False,
) -> tuple[list[Value], list[Value]]:
    """Loop along the first position of ``xs``; return the last carries and the stacked values.

    ``step(carries, slices)`` returns the new carries, of the same shapes, and values.
    """
    inputs = [Sliced(value, 0, reverse) for value in xs]
    last, stacks = scan(
        lambda carries, slices, _: step(carries, slices), init, inputs, None if xs else length
    )
    return last, [flip(each, [0]) if reverse else each for each in stacks]


def repeat_while(
    condition: Callable[[list[Value]], Value], body: Callable[[list[Value]], Values], init: Values
) -> list[Value]:
    """Return the carries after ``body`` was applied while ``condition`` is true."""
    carries = [ordered(value) for value in init]

    def arrays(tensors: list[geon.Tensor]) -> list[Value]:
        return [array(t, c.dims) for t, c in zip(tensors, carries, strict=True)]

    def step(tensors: list[geon.Tensor]) -> list[geon.Tensor]:
        return _fitted(body(arrays(tensors)), carries, "a carry of a loop")

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
            patterns.extend([ordered(each) for each in results])
        return _fitted(results, patterns, "a result of a branch")

    index = geon.cast(as_array(number).tensor, "int64")
    found = geon.case_of(
        geon.minimum(geon.maximum(index, 0), last),
        [lambda make=make: build(make) for make in branches],  # type: ignore[misc]  # bound now
    )
    return [array(t, p.dims) for t, p in zip(found, patterns, strict=True)]


def _fitted(values: Values, like: Sequence[PositionalArray], what: str) -> list[geon.Tensor]:
    pairs = zip(values, like, strict=True)
    return [fitted(as_array(cast(value, p.dtype), p.dims), p, what) for value, p in pairs]
