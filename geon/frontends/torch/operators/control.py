"""Loops and branches; inner graphs are functions of values."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ...positional.control import branch, outside, repeat_while, scan_rows
from ...positional.values import Value, host
from .common import Rows

Graph = Callable[..., list[Any]]


def branched(
    condition: Any, then: Graph, otherwise: Graph, operands: Sequence[Any] = (), *, results: Any
) -> tuple[Value, ...]:
    """Return the results of one of two graphs."""
    given = outside(operands)
    number = condition if isinstance(condition, Value) else host(int(condition))
    makes = [lambda: otherwise(*given), lambda: then(*given)]
    return tuple(branch(number, makes, [each.shape for each in results]))


def scanned(
    step: Graph, init: Sequence[Any], xs: Sequence[Any], more: Sequence[Any] = ()
) -> tuple[Value, ...]:
    """Return the last carries and the stacked values of a loop over the first dimension."""
    given, count = outside(more), len(init)

    def body(carries: list[Value], slices: list[Value]) -> tuple[list[Value], list[Value]]:
        found = step(*carries, *slices, *given)
        return found[:count], found[count:]

    last, values = scan_rows(body, outside(init), outside(xs), xs[0].shape[0])
    return (*last, *values)


def repeated(
    condition: Graph, body: Graph, init: Sequence[Any], more: Sequence[Any] = ()
) -> tuple[Value, ...]:
    """Return the carries after a loop that ends by a condition."""
    given = outside(more)
    return tuple(
        repeat_while(
            lambda carries: condition(*carries, *given)[0],
            lambda carries: body(*carries, *given),
            outside(init),
        )
    )


ROWS: Rows = {
    "cond": branched,
    "scan": scanned,
    "while_loop": repeated,
    "map_impl": lambda step, xs, more=(): scanned(step, [], xs, more),
}
