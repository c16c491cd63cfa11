"""Concrete graphs: commands on tensors in memory, run as one computation or over streams."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

import geon

from ...errors import ArgumentError
from ..neon.checks import at_least_one
from ..positional.values import Value
from .checks import checked
from .commands.command import Command, leaf_of
from .commands.execution import (
    Program,
    autotune,
    cmd_exec,
    device_of,
    lane_of,
    program_of,
    transformer_of,
)
from .graph_base import GraphBase, GraphNode
from .lowering import Env, all_slots, lower, outer_reads, read, reverse
from .streams import Signal, Stream, current_stream, wait_for_all
from .tensors import Tensor, root


class Exec(GraphNode):
    """A node of a concrete graph: a command on tensors."""

    def run(self) -> None:
        """Run the command alone."""
        pairs = zip(self.inputs, self.params, strict=True)
        with self.naming():
            cmd_exec(self.command, [p if x is None else x for x, p in pairs], self.outputs)


@dataclass(frozen=True, eq=False)
class Schedule:
    """Nodes in order, the stream of each, and the nodes whose signal each waits for.

    ``version`` is that of the graph.
    """

    order: tuple[Any, ...]
    stream_of: dict[Any, int]
    waits: dict[Any, tuple[Any, ...]]
    version: int = -1

    @property
    def streams(self) -> int:
        """The number of streams."""
        return 1 + max(self.stream_of.values(), default=-1)


@checked
class Graph(GraphBase):
    """A concrete graph: nodes are commands on tensors, and edges are given by the user.

    ``results`` are the tensors whose memory has their values after a run; by default all that
    nodes write. ``memory`` is a bound for the memory that a run takes, as for a computation.
    """

    def __init__(self, name: str = "graph", *, memory: int | str | None = None) -> None:
        super().__init__(name)
        self.results: list[Tensor] | None = None
        self.memory = memory
        self.is_planned = False  # tensors share memory only as a planner has arranged it
        self._programs: dict[Any, Any] = {}
        self._random = geon.Random(0)
        self._is_cancelled = False

    def exec(
        self, command: Command, inputs: Sequence[Tensor | None],
        outputs: Sequence[Tensor | None] | None, name: str | None = None,
    ) -> Exec:  # fmt: skip
        """Add a node and return it; edges are added with ``concat``."""
        if outputs is None:
            raise ArgumentError(
                f"{command.name} has no outputs; give tensors, to while_ as a dictionary of those "
                "of the loop and those that get them"
            )
        name = name or f"{command.name}{len(self.nodes)}"
        made: Exec = self.add_node(Exec(self, command, inputs, outputs, name))
        return made

    # Running --------------------------------------------------------------------------------------

    def run(
        self, sources: Sequence[Exec] | None = None, destinations: Sequence[Exec] | None = None
    ) -> None:
        """Run the nodes from ``sources`` to ``destinations``.

        They are one computation, compiled once, if all run on one device and no two tensors overlap
        but as parts of one; else, and for a part of a compiled symbolic graph, nodes run one after
        another.
        """
        lanes: frozenset[int | None] = frozenset()
        if current_stream() is not None:
            lanes = frozenset([lane_of(self._backend(node), None) for node in self.nodes])
        key = (self.version, tuple(sources or ()), tuple(destinations or ()), lanes - {None})
        if key not in self._programs:
            order = self.topsort(sources, destinations)
            is_part = self.is_planned and (sources or destinations)  # memory of others is used
            is_one = self._is_one(order) and not is_part
            self._programs[key] = self._fused(order) if is_one else order
        made = self._programs[key]
        if isinstance(made, list):
            for node in made:
                node.run()
            return
        program, inputs, outputs = made
        program(inputs, outputs)

    def _is_one(self, order: Sequence[Exec]) -> bool:
        """Return True if nodes can be one computation."""
        slots = all_slots(order)
        if len({self._backend(node) for node in order if node.inputs}) > 1:
            return False
        return self.is_planned or not overlapping(slots)

    def _backend(self, node: Exec) -> str:
        slots = [s.param for s in [*node.inputs, *node.outputs] if s is not None]
        return device_of(node.command, slots)

    def _fused(self, order: Sequence[Exec]) -> tuple[Program, list[Tensor], list[Tensor]]:
        inputs = outer_reads(order)
        written = list(dict.fromkeys([whole for node in order for whole in node.writes]))
        # A whole of which only parts are written keeps the rest.
        whole = {y for n in order for y in n.outputs if y is not None and y.base is None}
        inputs += [s for s in written if s not in whole and s not in inputs]
        leaves = [leaf_of(tensor.param, f"t{k}") for k, tensor in enumerate(inputs)]
        env: Env = dict(zip(inputs, leaves, strict=True))
        lower(order, env, self._random)
        kept = written if self.results is None else [
            s for s in written if any(s is root(r) for r in self.results)
        ]  # fmt: skip
        values: list[Value] = [read(env, s) for s in kept]
        first = next((node for node in order if node.inputs), *order[:1]) if order else None
        backend = "cpu" if first is None else self._backend(first)
        chosen = transformer_of(backend, lane_of(backend, None))
        program = program_of(
            leaves, values, chosen, self.name, self.memory, any(s.may_stay for s in kept)
        )
        return program, inputs, kept

    @property
    def computation(self) -> Any:
        """The computation of the last run that was one; None before, or if nodes run alone."""
        made = [each for each in self._programs.values() if not isinstance(each, list)]
        return made[-1][0].computation if made else None

    def autotune(self) -> None:
        """Choose for each node the backend that runs it in the shortest time."""
        for node in self.topsort():
            tensors = [x for x in node.inputs if x is not None]
            if len(tensors) == len(node.inputs) and node.command.row.name != "graph":
                node.set(autotune(node.command, node.inputs, node.outputs))
        self.version += 1

    # Streams --------------------------------------------------------------------------------------

    def static_schedule(self, streams: int | None = None) -> Schedule:
        """Return the nodes on streams: each goes on with its follower of the longest chain.

        A node without a stream to go on with takes one whose last node is before it, else a new
        one, of at most ``streams``.
        """
        if streams is not None:
            at_least_one("static_schedule", "streams", streams)
        order = self.topsort()
        kept, following = set(order), self.followers()
        after = {n: [m for m in following[n] if m in kept] for n in order}
        before = reverse(after)
        rank: dict[Any, int] = {}  # nodes of the longest chain from here on, and up to here
        for node in reversed(order):
            rank[node] = 1 + max([rank[m] for m in after[node]], default=0)
        depth: dict[Any, int] = {}
        earlier: dict[Any, set[Any]] = {}
        for node in order:
            depth[node] = 1 + max([depth[p] for p in before[node]], default=0)
            earlier[node] = {p for q in before[node] for p in (q, *earlier[q])}
        last: list[Any] = []
        stream_of: dict[Any, int] = {}
        waits: dict[Any, tuple[Any, ...]] = {}
        for node in order:
            heirs = [
                p
                for p in before[node]
                if last[stream_of[p]] is p and max(after[p], key=rank.__getitem__) is node
            ]
            ended = [
                k
                for k, tail in enumerate(last)
                if tail in earlier[node] and all(m in stream_of or m is node for m in after[tail])
            ]
            if heirs:
                chosen = stream_of[max(heirs, key=depth.__getitem__)]
            elif ended:
                chosen = ended[0]
            elif streams is None or len(last) < streams:
                last.append(None)
                chosen = len(last) - 1
            else:
                chosen = min(range(len(last)), key=lambda k: order.index(last[k]))
            last[chosen] = node
            stream_of[node] = chosen
            waits[node] = tuple([p for p in before[node] if stream_of[p] != chosen])
        return Schedule(tuple(order), stream_of, waits, self.version)

    def run_with_schedule(
        self, schedule: Schedule, streams: Sequence[Stream] | None = None
    ) -> None:
        """Run the nodes one by one on streams, as many as the schedule has, and wait for them.

        Raises the first error of a node, when all streams have ended.
        """
        is_new = schedule.version == self.version
        if not is_new and {*schedule.order} != {*self.topsort()}:
            raise ArgumentError(
                f"the schedule has not the nodes that {self.name} has now; make another one with "
                "static_schedule"
            )
        if streams is not None and len(streams) < schedule.streams:
            raise ArgumentError(
                f"the schedule has {schedule.streams} streams, and {len(streams)} were given; give "
                "as many"
            )
        used = list(streams) if streams is not None else [Stream() for _ in range(schedule.streams)]
        self._is_cancelled = False
        signals = {p: Signal() for waited in schedule.waits.values() for p in waited}
        for signal in signals.values():
            signal.clear()

        def guarded(node: Exec) -> None:
            if not self._is_cancelled:
                node.run()

        for node in schedule.order:
            stream = used[schedule.stream_of[node]]
            for each in schedule.waits[node]:
                stream.wait_for(signals[each])
            stream.submit(lambda node=node: guarded(node))  # type: ignore[misc]  # bound now
            if node in signals:
                stream.emit(signals[node])
        try:
            wait_for_all(used)
        finally:
            if streams is None:
                for stream in used:
                    stream.close()

    def cancel(self) -> None:
        """Skip the nodes of a running schedule that have not begun."""
        self._is_cancelled = True


def overlapping(tensors: Sequence[Tensor]) -> bool:
    """Return True if two tensors, none of which is a part of another, may share memory."""
    spans = sorted(
        [np.lib.array_utils.byte_bounds(t.memory) for t in tensors if t.memory.size]
    )  # first and last byte
    return any(a[1] > b[0] for a, b in zip(spans, spans[1:], strict=False))
