"""Derivatives of scans, with the fewest bytes stored for the reverse scan.

Each value of a step that the reverse scan reads is either stacked by the forward scan or recomputed
from stacked values. A minimum cut between the values that must be stored and those that the reverse
reads gives the fewest bytes. Expensive ops (large products, reductions) are not recomputed.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping, Sequence, Set
from typing import Any

from ..axes.lengths import Length, evaluate, names_of, product
from ..building.rebuild import with_bodies
from ..core.region_body import Body
from ..op_graph import Op, RegionOp, Tensor, post_order
from ..rows.accumulation import accumulate, round_total, total_of, widen
from ..rows.movement import broadcast
from ..transforms.derivative_sweeps import cotangents, zeros
from ..transforms.functionalize import substitute
from ..values.dtypes import is_continuous
from .closure import Opened, like
from .parameters import result_of, substitute_ops, tensors
from .scan_op import make_scan

Given = Sequence[Tensor | None]


def scan_vjp(given: Given, op: Op, wanted: Sequence[bool]) -> list[Tensor | None]:
    """Return the cotangents of the ``wanted`` arguments of a scan from those of its results."""
    return Reverse(op, given, wanted).build()


class Reverse:
    """Builds the reverse scan of one scan."""

    def __init__(self, op: Op, given: Given, wanted: Sequence[bool]) -> None:
        self.op, self.a, self.given = op, op.attrs, given
        self.wanted = [
            is_wanted or (k < self.a.carries and is_continuous(op.args[k].dtype))
            for k, is_wanted in enumerate(wanted)
        ]
        self.opened = Opened(self.a.body)
        self.arguments = self.opened.leaves[:-1]
        self.step = self.opened.leaves[-1]

    def build(self) -> list[Tensor | None]:
        """Return the cotangent of each argument; None means zero."""
        count, first = self.a.carries, self.a.before_captures
        results = self.opened.results
        moving = {k: total_of(results[k]) for k in range(count) if is_continuous(results[k].dtype)}
        values = {k: like(results[k]) for k in range(count, len(results)) if self.given[k]
                  is not None}  # fmt: skip
        seeds: dict[Op, Tensor] = {}
        for k, seed in {**moving, **values}.items():
            seeds[results[k]] = accumulate(seeds.get(results[k]), seed)
        floats = [leaf for k, leaf in enumerate(self.arguments) if self.wanted[k]]
        adjoints = cotangents(seeds, floats) if seeds else {}
        bars: list[Any] = [self.over(adjoints.get(leaf), leaf) for leaf in self.arguments]
        totals = {k: total_of(leaf) for k, leaf in enumerate(self.arguments)
                  if k >= first and bars[k] is not None}  # fmt: skip
        out = [zeros(total) if bars[k] is None else widen(bars[k])
               for k, total in moving.items()]  # fmt: skip
        out += [accumulate(total, bars[k]) for k, total in totals.items()]
        stacked = [k for k in range(count, first) if bars[k] is not None]
        out += [round_total(bars[k], self.arguments[k].dtype) for k in stacked]
        roots: list[Tensor] = [value for value in out if value is not None]
        kept = {op: like(op) for op in self.kept(roots)}
        replaced: dict[Op, Op] = dict(kept)
        roots = substitute_ops(roots, replaced)
        used = set(post_order(roots))
        read = [k for k in range(first) if self.arguments[k] in used]
        given: list[Any] = list(self.given)
        xs = [*self.histories(read, list(kept)),
              *(round_total(given[k], results[k].dtype) for k in values)]  # fmt: skip
        init = [zeros(total) if given[k] is None else widen(given[k])
                for k, total in moving.items()]  # fmt: skip
        init += [zeros(total) for total in totals.values()]
        leaves = [*moving.values(), *totals.values(), *(self.arguments[k] for k in read),
                  *kept.values(), *values.values(), self.step]  # fmt: skip
        every = self.a.captures
        named: dict[Op, Op] = dict(zip(self.arguments[every], self.op.args[every], strict=True))
        result = make_scan(
            self.op.primitive,
            self.a.axis,
            not self.a.reverse,
            tensors(init),
            tensors(xs),
            leaves,
            roots,
            named,
            self.a.steps_given(self.op.args),
        )
        places = [*moving, *totals, *stacked]
        cotangent = dict(zip(places, result, strict=True))
        return [cotangent.get(k) for k in range(len(self.op.args))]

    def over(self, g: Tensor | None, leaf: Tensor) -> Tensor | None:
        """Broadcast cotangent ``g`` to the axes of ``leaf``, in their order; None stays None."""
        return None if g is None else broadcast(g, leaf.axes)

    def kept(self, roots: Sequence[Tensor]) -> list[Op]:
        """Return the values of forward steps to store for a reverse that computes ``roots``."""
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
        """Return the stacks that the reverse scan reads.

        First come, for each argument number in ``read``, the values of a carry before each step or
        one of ``xs``; then the stacks of the values in ``kept``.
        """
        carried = [k for k in read if k < self.a.carries]
        known: dict[Op, Op] = dict(zip(self.opened.leaves, self.a.body.parameters, strict=True))
        before = [self.a.body.parameters[k] for k in carried]
        stacks = self.recorded([*before, *(substitute(op, known) for op in kept)])
        result = dict(zip(carried, stacks, strict=False))
        carried_values: list[Op] = [result[k] if k in result else self.op.args[k] for k in read]
        return tensors([*carried_values, *stacks[len(carried) :]])

    def recorded(self, values: Sequence[Op]) -> list[Tensor]:
        """Return one stack over all steps for each of these values of the body."""
        body = self.a.body
        extended = Body(body.parameters, tuple(tensors([*body.results, *values])))
        before = with_bodies(self.op, [extended])
        first = len(body.results)
        return [result_of(before, first + k) for k in range(len(values))]


MIN_STORED_PRODUCT_TERMS = (
    32  # terms: a product of so many or more takes longer than a store and load of its result
)
NOMINAL_LENGTH = 64  # elements assumed for an open length
INFINITE_CAPACITY = 1 << 62  # capacity of edges that must not be cut


def kept_of(results: Sequence[Op], moving: Iterable[Op], read: Set[Op]) -> list[Op]:
    """Return the ops to store so that the ops in ``read`` can be recomputed.

    They are among ``results`` and the ops below these. ``moving`` are the leaves whose values
    differ from step to step; they are never in the result. The result is empty if the ops in
    ``read`` depend on no expensive op.
    """
    order = post_order(results)
    moves = set(moving)
    leaves = set(moves)
    for op in order:
        if any(arg in moves for arg in op.args):
            moves.add(op)
    order = [op for op in order if op in moves]
    needed = _below(read, moves, leaves)
    expensive = [op for op in order if op in needed and is_expensive(op)]
    if not expensive:
        return []
    cut = _MinCut([op for op in order if op in needed], {*expensive, *leaves}, read)
    return [op for op in cut.saved() if op not in leaves]


def is_expensive(op: Op) -> bool:
    """Return True if recomputing an op takes longer than storing and loading its value."""
    row = op.primitive
    if row.name == "dot":
        depth = product(op.args[0].axes[name].expression for name in op.attrs.over)
        return _about(depth) >= MIN_STORED_PRODUCT_TERMS
    return row.kind == "reduction"


def _about(size: int | Length) -> int:
    return int(evaluate(size, dict.fromkeys(names_of(size), NOMINAL_LENGTH)))


def _bytes(op: Op) -> int:
    """Return the bytes of an op's value; ``INFINITE_CAPACITY`` for a region, which has no value."""
    if isinstance(op, RegionOp):
        return INFINITE_CAPACITY
    return max(_about(op.axes.size) * op.dtype.itemsize, 1)


def _below(read: Set[Op], moves: Set[Op], leaves: Set[Op]) -> set[Op]:
    """Return the ops in ``read`` that vary by step and their varying arguments, transitively.

    The walk stops at expensive ops and leaves, which it includes.
    """
    reached: set[Op] = set()
    stack = [op for op in read if op in moves]
    while stack:
        op = stack.pop()
        if op in reached:
            continue
        reached.add(op)
        if op not in leaves and not is_expensive(op):
            stack += [arg for arg in op.args if arg in moves]
    return reached


class _MinCut:
    """Minimum vertex cut between ``sources`` and the ops in ``read``, nearest to the latter.

    Each op is an edge from its entry node to its exit node, with the bytes of its value as
    capacity. Augmenting shortest paths give the maximum flow.
    """

    def __init__(self, order: Sequence[Op], sources: Set[Op], read: Set[Op]) -> None:
        self.order = order
        self.number = {op: k for k, op in enumerate(order)}
        self.start, self.end = 2 * len(order), 2 * len(order) + 1
        self.room: list[dict[int, int]] = [{} for _ in range(2 * len(order) + 2)]
        for op, k in self.number.items():
            self.edge(2 * k, 2 * k + 1, _bytes(op))
            if op in sources:
                self.edge(self.start, 2 * k, INFINITE_CAPACITY)
            else:
                for arg in op.args:
                    if arg in self.number:
                        self.edge(2 * self.number[arg] + 1, 2 * k, INFINITE_CAPACITY)
            if op in read:
                self.edge(2 * k + 1, self.end, INFINITE_CAPACITY)

    def edge(self, one: int, other: int, room: int) -> None:
        self.room[one][other] = room
        self.room[other].setdefault(one, 0)

    def saved(self) -> list[Op]:
        """Return the ops of the cut, in order."""
        while self.more():
            pass
        reaches = self.before_end()
        return [op for op, k in self.number.items()
                if 2 * k + 1 in reaches and 2 * k not in reaches]  # fmt: skip

    def more(self) -> bool:
        """Augment the flow along a shortest path; return False if there is none."""
        came: dict[int, int] = {self.start: self.start}
        queue = deque([self.start])
        while queue and self.end not in came:
            node = queue.popleft()
            for other, room in self.room[node].items():
                if room > 0 and other not in came:
                    came[other] = node
                    queue.append(other)
        if self.end not in came:
            return False
        path = _path(came, self.end)
        least = min(self.room[one][other] for one, other in path)
        for one, other in path:
            self.room[one][other] -= least
            self.room[other][one] += least
        return True

    def before_end(self) -> set[int]:
        """Return the nodes that reach the end in the residual graph."""
        reached, stack = {self.end}, [self.end]
        while stack:
            node = stack.pop()
            for other in self.room[node]:
                if other not in reached and self.room[other].get(node, 0) > 0:
                    reached.add(other)
                    stack.append(other)
        return reached


def _path(came: Mapping[int, int], node: int) -> list[tuple[int, int]]:
    """Return the edges of the path to ``node`` by predecessors ``came``, last edge first."""
    cut = []
    while came[node] != node:
        cut.append((came[node], node))
        node = came[node]
    return cut
