"""Ranges of integers that follow from the ops that compute them.

A position that is provably inside of an axis needs no check at run time.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from ....op_graph.axes.lengths import Length, is_never_negative, product
from ....op_graph.building.constants import constant_value
from ....op_graph.op_graph import Op
from ....op_graph.regions.loop import RegionLoop, loop_of
from ....op_graph.values.dtypes import BOOL, INT64, kind
from ...sizes.limits import MAX_CANDIDATES, MAX_SEARCHED

Size = int | Length
LARGEST_CONSTANT = 1 << 24  # sums and products of a few such numbers and lengths stay in int64


class Range(NamedTuple):
    """Inclusive bounds of all elements of a value; None where none is known."""

    low: Size | None = None
    high: Size | None = None


UNKNOWN = Range()


def is_inside(positions: Range, length: Size, from_end: bool = True) -> bool:
    """Return True if positions are provably inside an axis, counted from its end if negative."""
    low, high = positions
    if low is None or high is None:
        return False
    first = low + length if from_end else low
    return is_never_negative(first) and is_never_negative(length - 1 - high)


def is_from_start(index: Op) -> bool:
    """Return True if positions are provably not negative."""
    low = range_of(index).low
    return low is not None and is_never_negative(low)


def range_of(op: Op) -> Range:
    """Return the known bounds of the elements of an integer op."""
    return Ranges({}).of(op)


class Ranges:
    """Bounds of the integer ops of a graph, or of the body of a region.

    ``given`` are the bounds of the parameters of the body.
    """

    def __init__(self, given: Mapping[Op, Range]) -> None:
        self.given = given
        self.found: dict[Op, Range] = {}
        self.regions: dict[Op, list[Ranges]] = {}

    def of(self, op: Op, depth: int = 0) -> Range:
        """Return the known bounds of the elements of an op; ``depth`` ops depend on it."""
        rule = RULES.get(op.primitive.name)
        if depth > MAX_SEARCHED or kind(op.dtype) not in "iub":
            return UNKNOWN
        if op not in self.found:
            if op.primitive.name == "parameter":
                self.found[op] = self.given.get(op, UNKNOWN)
            elif op.primitive.name == "region_result":
                self.found[op] = self._result(op, depth)
            elif rule is None:
                return UNKNOWN
            else:
                self.found[op] = rule(op, lambda k: self.of(op.args[k], depth + 1))
        return self.found[op]

    def inside(self, region: Op, depth: int = 0) -> list[Ranges]:
        """Return the bounds inside of each body of a region, for all steps of a loop."""
        if region not in self.regions:
            loop = loop_of(region)
            given = [self.of(arg, depth + 1) for arg in region.args]
            if loop is None:
                found = [Ranges(dict(zip(b.parameters, given, strict=True))) for b in region.bodies]
            else:
                found = [_steps(loop, given)] * len(region.bodies)
            self.regions[region] = found
        return self.regions[region]

    def _result(self, op: Op, depth: int) -> Range:
        """Return the bounds of a result of a region."""
        region, number = op.args[0], op.attrs.number
        loop, inner = loop_of(region), self.inside(region, depth)
        if loop is None:
            pairs = zip(inner, region.bodies, strict=True)
            return functools.reduce(_union, [r.of(b.results[number]) for r, b in pairs])
        if number < loop.carries:  # its first value, or that after a step
            return inner[0].of(loop.body.parameters[number])
        if number < loop.carries + loop.extra:
            return UNKNOWN
        # Stacks are 0 where a loop has no step.
        return _union(inner[0].of(loop.step_value(number)), Range(0, 0))


def _steps(loop: RegionLoop, given: Sequence[Range]) -> Ranges:
    """Return the bounds inside of the body of a loop, whose arguments have the bounds ``given``.

    Those of carries hold for their first values, and if they hold before a step, then after it.
    """
    carries, rest = list(given[: loop.carries]), list(given[loop.carries :])
    parameters = loop.body.parameters
    if loop.numbered:
        limit = loop.attrs.limit if loop.axis is None else loop.axis.expression
        rest[len(parameters) - 1 - loop.carries :] = [
            Range(0, None if limit is None else limit - 1)
        ]
    turns = 0
    while True:
        inner = Ranges(dict(zip(parameters, [*carries, *rest], strict=False)))
        after = [
            _union(before, inner.of(result))
            for before, result in zip(carries, loop.body.results, strict=False)
        ]
        if after == carries:
            return inner
        turns += 1
        if turns > MAX_CANDIDATES:  # bounds that still move have no limit
            pairs = zip(carries, after, strict=True)
            after = [
                Range(*[x if x == y else None for x, y in zip(*p, strict=True)]) for p in pairs
            ]
        carries = after


def _union(x: Range, y: Range) -> Range:
    return Range(_least(x.low, y.low), _most(x.high, y.high))


Given = Callable[[int], Range]  # the range of an argument by its number


def _constant(op: Op, given: Given) -> Range:
    values = constant_value(op)
    if not values.size:
        return UNKNOWN
    low, high = int(values.min()), int(values.max())
    return Range(low, high) if max(-low, high) <= LARGEST_CONSTANT else UNKNOWN


def _cast(op: Op, given: Given) -> Range:
    if op.args[0].dtype is BOOL:
        return Range(0, 1)
    return given(0) if op.dtype is INT64 else UNKNOWN


def _along(op: Op, given: Given) -> Range:
    return Range(0, op.args[0].axes[op.attrs.axis].expression - 1)


def _extreme(op: Op, given: Given) -> Range:
    axes = op.args[0].axes
    return Range(0, product(axes[name].expression for name in op.attrs.reduced) - 1)


def _checked(op: Op, given: Given) -> Range:
    a = op.attrs
    if a.batch is not None or len(op.args) > 1:
        return UNKNOWN
    return Range(-a.length if a.from_end else 0, a.length - 1)


def _add(op: Op, given: Given) -> Range:
    x, y = given(0), given(1)
    return Range(
        None if x.low is None or y.low is None else x.low + y.low,
        None if x.high is None or y.high is None else x.high + y.high,
    )


def _subtract(op: Op, given: Given) -> Range:
    x, y = given(0), given(1)
    return Range(
        None if x.low is None or y.high is None else x.low - y.high,
        None if x.high is None or y.low is None else x.high - y.low,
    )


def _multiply(op: Op, given: Given) -> Range:
    x, y = given(0), given(1)
    if x.low is None or y.low is None:
        return UNKNOWN
    if not (is_never_negative(x.low) and is_never_negative(y.low)):
        return UNKNOWN
    high = None if x.high is None or y.high is None else x.high * y.high
    return Range(x.low * y.low, high)


def _minimum(op: Op, given: Given) -> Range:
    x, y = given(0), given(1)
    return Range(_least(x.low, y.low), _either(x.high, y.high, _least))


def _maximum(op: Op, given: Given) -> Range:
    x, y = given(0), given(1)
    return Range(_either(x.low, y.low, _most), _most(x.high, y.high))


def _where(op: Op, given: Given) -> Range:
    condition, shifted, index = op.args
    x, y = given(1), given(2)
    # where(i < 0, i + n, i): only negative positions are shifted, and only others are not.
    if (
        condition.primitive.name == "less"
        and condition.args[0] is index
        and range_of(condition.args[1]) == (0, 0)
        and shifted.primitive.name == "add"
        and any(arg is index for arg in shifted.args)
    ):
        step = range_of(shifted.args[shifted.args[0] is index])
        x = Range(x.low, None if step.high is None else step.high - 1)
        y = Range(0, y.high)
    return _union(x, y)


def _mod(op: Op, given: Given) -> Range:
    y = given(1)
    positive = y.low is not None and is_never_negative(y.low - 1)
    return Range(0, None if y.high is None else y.high - 1) if positive else UNKNOWN


def _floordivide(op: Op, given: Given) -> Range:
    x, y = given(0), given(1)
    if not isinstance(y.low, int) or y.low != y.high or y.low < 1:
        return UNKNOWN
    return Range(*(bound // y.low if isinstance(bound, int) else None for bound in x))


def _least(x: Size | None, y: Size | None) -> Size | None:
    """Return the smaller of two bounds, or None if it is not known which one that is."""
    if x is None or y is None:
        return None
    if is_never_negative(y - x):
        return x
    return y if is_never_negative(x - y) else None


def _most(x: Size | None, y: Size | None) -> Size | None:
    """Return the larger of two bounds, or None if it is not known which one that is."""
    least = _least(x, y)
    return None if least is None else y if least is x else x


def _either(
    x: Size | None, y: Size | None, better: Callable[[Size, Size], Size | None]
) -> Size | None:
    """Return the better of two bounds that both hold, or the first where that is not known."""
    if x is None or y is None:
        return y if x is None else x
    found = better(x, y)
    return x if found is None else found


def _first(op: Op, given: Given) -> Range:
    return given(0)


RULES: dict[str, Callable[[Op, Given], Range]] = {
    **dict.fromkeys(
        (
            "broadcast", "copy", "diagonal", "flatten", "flip", "gather", "max", "min", "rename",
            "reorder", "slice", "sort", "stop_gradient", "unflatten", "window",
        ),
        _first,
    ),
    "add": _add,
    "argmax": _extreme,
    "argmin": _extreme,
    "argsort": _along,
    "cast": _cast,
    "checked": _checked,
    "constant": _constant,
    "floordivide": _floordivide,
    "iota": lambda op, given: Range(0, op.attrs.axis.expression - 1),
    "length": lambda op, given: Range(op.attrs.length, op.attrs.length),
    "maximum": _maximum,
    "minimum": _minimum,
    "mod": _mod,
    "multiply": _multiply,
    "subtract": _subtract,
    "top_k": _along,
    "where": _where,
}  # fmt: skip
