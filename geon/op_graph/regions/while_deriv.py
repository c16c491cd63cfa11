"""Derivatives of while loops.

Forward mode carries the tangents with the values. Reverse mode is a scan over as many steps as the
loop took, in reverse order. If the loop has a small limit, or if values of its steps have
cotangents, the loop stacks its carries before every step. Otherwise it runs once more in segments
and stores the carries at the start of each. Then each segment, last one first, runs again, with the
carries of one part of its steps stacked at a time.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..axes.axes import Axes, Axis
from ..building.constants import as_tensor
from ..core.primitive import PRIMITIVES
from ..core.region_body import Body
from ..op_graph import Op, Tensor, make_region
from ..rows.accumulation import accumulate, total_of, widen
from ..rows.elementwise import cast, equal, less, maximum, minimum, where
from ..rows.leaves import placeholder
from ..rows.movement import broadcast
from ..transforms.batching import fresh_axes, names_below
from ..transforms.derivative_sweeps import cotangents, zeros
from ..transforms.functionalize import substitute
from ..values.dtypes import INT64, is_continuous
from .carries import strong
from .closure import Opened, like
from .parameters import result_of, substitute_ops, tensors
from .scan_deriv import Reverse
from .scan_op import make_scan
from .while_op import WhileAttributes, make_while

Given = Sequence[Tensor | None]

MAX_RECORDED_STEPS = (
    512  # steps: a loop limited to at most so many stores the carries of every step
)
MAX_SEGMENTS = 256  # maximum number of segments of other loops; each stores its initial carries
MAX_STACKED_STEPS = 256  # steps of a segment whose carries are stacked at a time


def while_vjp(given: Given, op: Op, wanted: Sequence[bool]) -> list[Tensor | None]:
    """Return the cotangents of the ``wanted`` arguments of a loop from those of its results."""
    a: WhileAttributes = op.attrs
    through_stacks = any(part is not None for part in given[a.carries + 1 :])
    if a.limit is not None and (a.limit <= MAX_RECORDED_STEPS or through_stacks):
        return _Recorded(op, given, wanted).build()[:-1]
    return _Segmented(op, given, wanted).build()


class _Recorded(Reverse):
    """The reverse of a loop as that of a counted scan whose stacks the while loop computes."""

    def __init__(self, op: Op, given: Given, wanted: Sequence[bool]) -> None:
        a = self.loop = op.attrs
        self.original = op
        assert a.limit is not None
        self.along = a.axis or _fresh_axis("step", a.limit, a)
        attrs = (self.along, a.carries, 0, False, True, a.body)
        count = result_of(op, a.carries)
        scan = make_region(PRIMITIVES["scan"], (*op.args, count), attrs)
        super().__init__(scan, [*given[: a.carries], *given[a.carries + 1 :]], [*wanted, False])

    def recorded(self, values: Sequence[Op]) -> list[Tensor]:
        """Return one stack over all steps for each of these values of the body."""
        a, body = self.loop, self.loop.body
        extended = Body(body.parameters, tuple(tensors([*body.results, *values])))
        attrs = (self.along, a.limit, a.carries, a.condition, extended)
        before = make_region(self.original.primitive, self.original.args, attrs)
        first = len(body.results) + 1
        return [result_of(before, first + k) for k in range(len(values))]


class _Segmented:
    """Builds the reverse of a loop without a small limit, in segments.

    ``count`` is a placeholder for the number of steps, ``captures`` are placeholders for the values
    that all steps read. They are bound to their values where the scans over segments are built.
    """

    def __init__(self, op: Op, given: Given, wanted: Sequence[bool]) -> None:
        a = self.a = op.attrs
        self.op, self.given = op, given
        self.parameters = a.body.parameters
        self.count = placeholder((), "int64")
        self.captures = [like(op) for op in self.parameters[a.carries : -1]]
        self.moving = [k for k in range(a.carries) if is_continuous(self.parameters[k].dtype)]
        self.sought = [k for k in range(len(self.captures)) if wanted[a.carries + k]]
        self.named: dict[Op, Any] = {self.count: result_of(op, a.carries)}
        self.named.update(zip(self.captures, op.args[a.carries :], strict=True))
        self.in_one = a.limit is not None and a.limit <= MAX_SEGMENTS * MAX_STACKED_STEPS
        number = (
            -(-a.limit // MAX_STACKED_STEPS)
            if self.in_one and a.limit is not None
            else MAX_SEGMENTS
        )
        self.outer = _fresh_axis("segment", number, a)
        self.inner = _fresh_axis("step", MAX_STACKED_STEPS, a)

    def build(self) -> list[Tensor | None]:
        """Return the cotangent of each argument; None means zero."""
        if all(self.given[k] is None for k in self.moving):
            return [None] * len(self.op.args)
        length: Any = MAX_STACKED_STEPS
        if not self.in_one:  # a segment of as few parts as give at most SEGMENTS segments
            length = (
                maximum(_ceiling(self.count, MAX_SEGMENTS * MAX_STACKED_STEPS), 1)
                * MAX_STACKED_STEPS
            )
        segments = _integer(_ceiling(self.count, length))
        starts = self.starts(length, segments)
        totals = [total_of(self.parameters[k]) for k in self.moving]
        totals += [total_of(self.captures[k]) for k in self.sought]
        bars = [*(self.given[k] for k in self.moving), *(None for _ in self.sought)]
        init = [zeros(total) if bar is None else widen(bar)
                for total, bar in zip(totals, bars, strict=True)]  # fmt: skip
        state, passing, at = self.state(), [like(bar) for bar in init], placeholder((), "int64")
        steps = minimum(length, self.count - at * length)
        results = self.reversed(state, at * length, steps, passing)
        leaves = [*passing, *state, at]
        result = self.scanned(True, init, starts, leaves, results, segments)
        places = [*self.moving, *(self.a.carries + k for k in self.sought)]
        by_place = dict(zip(places, result, strict=True))
        return [by_place.get(k) for k in range(len(self.op.args))]

    def starts(self, length: Any, segments: Tensor) -> list[Tensor]:
        """Return the carries before each segment, stacked over the segments."""
        state, at = self.state(), placeholder((), "int64")
        steps = where(equal(at + 1, segments), 0, length)  # no segment follows the last one
        after = self.run(state, at * length, steps)
        init: list[Any] = list(self.op.args[: self.a.carries])
        result = self.scanned(False, init, [], [*state, at], [*after, *state], segments)
        return result[self.a.carries :]

    def scanned(
        self,
        reverse: bool,
        init: Sequence[Tensor],
        xs: Sequence[Tensor],
        leaves: Sequence[Tensor],
        results: Sequence[Tensor],
        segments: Tensor,
    ) -> list[Tensor]:
        """Return the results of a scan over segments."""
        count: Any = substitute(segments, dict(self.named))
        row = PRIMITIVES["scan"]
        return make_scan(row, self.outer, reverse, init, xs, leaves, results, self.named, count)

    def state(self) -> list[Tensor]:
        """Return new placeholders for the carries."""
        return [like(op) for op in self.parameters[: self.a.carries]]

    def step(self, state: Sequence[Tensor], at: Tensor) -> list[Tensor]:
        """Return the carries after step number ``at`` from the carries ``state`` before it."""
        return Opened(self.a.body, [*state, *self.captures, at]).results[: self.a.carries]

    def run(self, initial: Sequence[Tensor], start: Tensor, steps: Any) -> list[Tensor]:
        """Return the carries after ``steps`` steps, from ``initial`` at step ``start``."""
        state, at = self.state(), placeholder((), "int64")
        results = self.step(state, start + at)
        row = self.op.primitive
        return make_while(row, None, None, initial, [*state, at], less(at, steps), results)[:-1]

    def reversed(
        self, initial: Sequence[Tensor], start: Tensor, steps: Tensor, passing: Sequence[Tensor]
    ) -> list[Tensor]:
        """Return the cotangents before a segment and the totals, from those after it."""
        if self.in_one:
            return self.part(initial, start, steps, passing)
        inner, at = [like(bar) for bar in passing], placeholder((), "int64")
        number = _ceiling(steps, MAX_STACKED_STEPS)
        first = (number - 1 - at) * MAX_STACKED_STEPS
        there = self.run(initial, start, first)
        results = self.part(there, start + first, minimum(MAX_STACKED_STEPS, steps - first), inner)
        row = self.op.primitive
        return make_while(row, None, None, passing, [*inner, at], less(at, number), results)[:-1]

    def part(
        self, initial: Sequence[Tensor], start: Tensor, steps: Tensor, passing: Sequence[Tensor]
    ) -> list[Tensor]:
        """Return the same for at most ``MAX_STACKED_STEPS`` steps, by the derivative of a scan over
        them.
        """
        first, state, at = self.state(), self.state(), placeholder((), "int64")
        results, count = self.step(state, start + at), _integer(steps)
        row = PRIMITIVES["scan"]
        last = make_scan(row, self.inner, False, first, [], [*state, at], results, count=count)
        seeds: dict[Op, Tensor] = {}
        for k, bar in zip(self.moving, passing, strict=False):
            seeds[last[k]] = bar
        targets = [*(first[k] for k in self.moving), *(self.captures[k] for k in self.sought)]
        adjoints = cotangents(seeds, targets)
        result = [
            widen(broadcast(adjoints[t], t.axes) if t in adjoints else zeros(t)) for t in targets
        ]
        totals = passing[len(self.moving) :]
        result[len(self.moving) :] = [
            accumulate(total, each)
            for total, each in zip(totals, result[len(self.moving) :], strict=True)
        ]
        known: dict[Op, Op] = dict(zip(first, initial, strict=True))
        return substitute_ops(result, known)


def _fresh_axis(name: str, length: int, a: WhileAttributes) -> Axis:
    """Return an axis whose name nothing in the loop has, for stacks of its carries."""
    used = names_below([*a.body.results[: a.carries], *a.condition.results])
    return fresh_axes(Axes(Axis(name, length)), used)[0]


def _ceiling(count: Any, by: Any) -> Tensor:
    """Return ``count / by`` rounded up."""
    return (count + (by - 1)) // by  # type: ignore[no-any-return]  # a tensor


def _integer(value: Any) -> Tensor:
    """Return a number of steps as int64."""
    return cast(strong(as_tensor(value)), INT64)
