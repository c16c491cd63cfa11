"""Derivatives of scans: other scans, made by the sweeps of derivatives on the body's own graph.

The reverse of a scan goes the other way over the carries as each step found them, which the scan
itself stacks when it is asked for these too. Its carries are the cotangents of the carries, and
totals of those of what all steps read. Both are in the accumulator dtype: steps add to them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..accumulation import accumulated, rounded, total_of, widened
from ..body import Body
from ..copies import with_bodies
from ..dtypes import kind
from ..functional import substitute
from ..movement import broadcast
from ..op_graph import Op, RegionOp, Tensor, post_order
from ..sweeps import cotangents, forward_mode, zeros
from .kept import kept_of
from .opened import Opened, like
from .parts import result_of, substituted, tensors
from .scan_facts import ScanAttributes, make_scan

Given = Sequence[Tensor | None]


def scan_vjp(given: Given, op: Op, wanted: Sequence[bool]) -> list[Tensor | None]:
    """The cotangents of a scan's arguments that are ``wanted`` from those of its results."""
    return Reverse(op, given, wanted).made()


class Reverse:
    """The reverse scan of one scan."""

    def __init__(self, op: Op, given: Given, wanted: Sequence[bool]) -> None:
        self.op, self.a, self.given = op, ScanAttributes(op.attrs), given
        self.wanted = [
            asked or (k < self.a.carries and kind(op.args[k].dtype) == "f")
            for k, asked in enumerate(wanted)
        ]
        self.opened = Opened(self.a.body)
        self.arguments = self.opened.leaves[:-1]
        self.step = self.opened.leaves[-1]

    def made(self) -> list[Tensor | None]:
        """The cotangent of each argument, None for zero."""
        count, first = self.a.carries, self.a.before_captures
        results = self.opened.results
        moving = {k: total_of(results[k]) for k in range(count) if kind(results[k].dtype) == "f"}
        values = {k: like(results[k]) for k in range(count, len(results)) if self.given[k]
                  is not None}  # fmt: skip
        seeds: dict[Op, Tensor] = {}
        for k, seed in {**moving, **values}.items():
            seeds[results[k]] = accumulated(seeds.get(results[k]), seed)
        floats = [leaf for k, leaf in enumerate(self.arguments) if self.wanted[k]]
        found = cotangents(seeds, floats) if seeds else {}
        bars: list[Any] = [self.over(found.get(leaf), leaf) for leaf in self.arguments]
        totals = {k: total_of(leaf) for k, leaf in enumerate(self.arguments)
                  if k >= first and bars[k] is not None}  # fmt: skip
        out = [zeros(total) if bars[k] is None else widened(bars[k])
               for k, total in moving.items()]  # fmt: skip
        out += [accumulated(total, bars[k]) for k, total in totals.items()]
        stacked = [k for k in range(count, first) if bars[k] is not None]
        out += [rounded(bars[k], self.arguments[k].dtype) for k in stacked]
        roots: list[Tensor] = [value for value in out if value is not None]
        kept = {op: like(op) for op in self.kept(roots)}
        stand: dict[Op, Op] = dict(kept)
        roots = substituted(roots, stand)
        used = set(post_order(roots))
        read = [k for k in range(first) if self.arguments[k] in used]
        given: list[Any] = list(self.given)
        xs = [*self.histories(read, list(kept)),
              *(rounded(given[k], results[k].dtype) for k in values)]  # fmt: skip
        init = [zeros(total) if given[k] is None else widened(given[k])
                for k, total in moving.items()]  # fmt: skip
        init += [zeros(total) for total in totals.values()]
        leaves = [*moving.values(), *totals.values(), *(self.arguments[k] for k in read),
                  *kept.values(), *values.values(), self.step]  # fmt: skip
        every = self.a.captures
        named: dict[Op, Op] = dict(zip(self.arguments[every], self.op.args[every], strict=True))
        made = make_scan(
            self.op.primitive,
            self.a.axis,
            not self.a.reverse,
            tensors(init),
            tensors(xs),
            leaves,
            roots,
            named,
            self.a.count(self.op.args),
        )
        places = [*moving, *totals, *stacked]
        cotangent = dict(zip(places, made, strict=True))
        return [cotangent.get(k) for k in range(len(self.op.args))]

    def over(self, g: Tensor | None, leaf: Tensor) -> Tensor | None:
        """A cotangent over the axes of what it is of, in their order."""
        return None if g is None else broadcast(g, leaf.axes)

    def kept(self, roots: Sequence[Tensor]) -> list[Op]:
        """The values of the steps that are kept for a reverse that computes ``roots``."""
        forward = set(post_order(self.opened.results))
        read: set[Op] = {op for op in roots if op in forward}
        for op in post_order(roots):
            if op not in forward:
                read.update([arg for arg in op.args if arg in forward])
        regions = [op for op in read if isinstance(op, RegionOp)]  # without a value: run again
        read -= {*regions}
        read |= {arg for op in regions for arg in op.args if arg in forward}
        moving = self.arguments[: self.a.before_captures]
        return kept_of(self.opened.results, [*moving, self.step], read)

    def histories(self, read: Sequence[int], kept: Sequence[Op]) -> list[Tensor]:
        """The stacks that the reverse reads: of carries as each step found them, and of ``xs``,
        then of what is ``kept`` of the steps.
        """
        carried = [k for k in read if k < self.a.carries]
        known: dict[Op, Op] = dict(zip(self.opened.leaves, self.a.body.parameters, strict=True))
        before = [self.a.body.parameters[k] for k in carried]
        stacks = self.recorded([*before, *(substitute(op, known) for op in kept)])
        made = dict(zip(carried, stacks, strict=False))
        found: list[Op] = [made[k] if k in made else self.op.args[k] for k in read]
        return tensors([*found, *stacks[len(carried) :]])

    def recorded(self, values: Sequence[Op]) -> list[Tensor]:
        """The stacks of these values of the body, one of each step."""
        body = self.a.body
        extended = Body(body.parameters, tuple(tensors([*body.results, *values])))
        before = with_bodies(self.op, [extended])
        first = len(body.results)
        return [result_of(before, first + k) for k in range(len(values))]


def scan_jvp(op: Op, tangents: Given) -> list[Tensor | None]:
    """The tangents of a scan's results from those of its arguments.

    One scan carries both the values and their tangents.
    """
    a = ScanAttributes(op.attrs)
    opened = Opened(a.body)
    arguments, step = opened.leaves[:-1], opened.leaves[-1]
    carries, first = a.carries, a.before_captures
    moving = {k: like(arguments[k]) for k, t in enumerate(tangents) if t is not None}
    while True:
        along: dict[Op, Tensor] = {arguments[k]: leaf for k, leaf in moving.items()}
        found = forward_mode(opened.results, along)
        new = [k for k in range(carries) if opened.results[k] in found and k not in moving]
        if not new:
            break
        moving.update({k: like(arguments[k]) for k in new})
    carried = [k for k in moving if k < carries]
    values = [k for k in range(carries, len(opened.results)) if opened.results[k] in found]
    if not carried and not values:
        return [None] * len(opened.results)
    pushed = {k: found.get(opened.results[k]) for k in (*carried, *values)}
    results = [*opened.results[:carries]]
    for k, value in pushed.items():
        results.append(zeros(opened.results[k]) if value is None else
                       broadcast(value, opened.results[k].axes))  # fmt: skip
    stacks = [k for k in moving if carries <= k < first]
    init = [*op.args[:carries], *(_or_zeros(tangents[k], arguments[k]) for k in carried)]
    xs = [*op.args[carries:first], *(tangents[k] for k in stacks)]
    leaves = [*arguments[:carries], *(moving[k] for k in carried), *arguments[carries:first],
              *(moving[k] for k in stacks), step]  # fmt: skip
    named: dict[Op, Any] = dict(zip(arguments[a.captures], op.args[a.captures], strict=True))
    named.update({moving[k]: tangents[k] for k in moving if k >= first})
    made = make_scan(
        op.primitive, a.axis, a.reverse, tensors(init), tensors(xs), leaves, results, named,
        a.count(op.args),
    )  # fmt: skip
    places = dict(zip(pushed, made[carries:], strict=True))
    return [places.get(k) for k in range(len(opened.results))]


def _or_zeros(value: Tensor | None, like: Op) -> Tensor:
    return zeros(like) if value is None else value
