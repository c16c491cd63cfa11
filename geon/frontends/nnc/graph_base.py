"""``GraphBase``: nodes and edges in order, loops, branches and text, for both kinds of graphs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from graphlib import CycleError, TopologicalSorter
from heapq import heappop, heappush
from typing import Any

from ...errors import ArgumentError, OrderError
from ...op_graph.core.source_info import describe, user_site
from ..base.arguments import NamedErrors
from .checks import checked
from .commands.command import Command
from .control import Condition, case_command, loop_command
from .lowering import reached, reverse
from .tensors import TensorParam, root


@checked
class GraphNode:
    """A command on tensors, or symbols of tensors: a node of a graph.

    ``params`` has those of the inputs, also of those that are None because their shape is enough.
    """

    def __init__(
        self, graph: GraphBase, command: Command, inputs: Sequence[Any], outputs: Sequence[Any],
        name: str,
    ) -> None:  # fmt: skip
        self.graph, self.name, self.site = graph, name, user_site()
        self.command, self.inputs, self.outputs = command, list(inputs), list(outputs)
        self.params: list[TensorParam | None] = [None if x is None else x.param for x in inputs]

    @property
    def reads(self) -> list[Any]:
        """The wholes that inputs are, or are parts of."""
        return [root(x) for x in self.inputs if x is not None]

    @property
    def writes(self) -> list[Any]:
        """The wholes that outputs are, or are parts of."""
        return [root(y) for y in self.outputs if y is not None]

    def set(self, command: Command) -> None:
        """Replace the command."""
        self.command = command
        self.graph.version += 1

    def set_io(self, inputs: Sequence[Any], outputs: Sequence[Any]) -> None:
        """Replace inputs and outputs."""
        self.graph.version += 1
        self.inputs, self.outputs = list(inputs), list(outputs)
        self.params = [None if x is None else x.param for x in inputs]

    def naming(self) -> NamedErrors:
        """Return a context in which errors of geon begin with the node."""
        return NamedErrors("node", lambda: str(self))

    def __repr__(self) -> str:
        return f"node {self.name} (made at {describe(self.site)})"


@checked
class GraphBase:
    """Nodes in the order in which they were made, and edges: who runs before whom."""

    def __init__(self, name: str = "graph") -> None:
        self.name = name
        self.nodes: list[Any] = []
        self.edges: dict[Any, dict[Any, None]] = {}
        self.sources: list[Any] = []
        self.destinations: list[Any] = []
        self.version = 0  # counts changes, so that compiled forms know when they are outdated

    def add_node(self, node: Any) -> Any:
        """Add a node of this graph."""
        self.nodes.append(node)
        self.edges[node] = {}
        self.version += 1
        return node

    def remove_node(self, node: Any, instead: Any = None) -> None:
        """Remove a node and its edges; where it is a source or destination, ``instead`` is one."""
        self.nodes.remove(node)
        del self.edges[node]
        for after in self.edges.values():
            after.pop(node, None)
        for ends in (self.sources, self.destinations):
            new = [instead if each is node else each for each in ends]
            ends[:] = dict.fromkeys([each for each in new if each is not None])
        self.version += 1

    # Edges ----------------------------------------------------------------------------------------

    def concat(self, before: Any, after: Any) -> None:
        """Add an edge: ``before`` runs before ``after``."""
        self._own(before), self._own(after)
        if before is after:
            raise OrderError(f"{before.name} cannot run before itself; give two nodes")
        self.edges[before][after] = None
        self.version += 1

    def disjoin(self, before: Any, after: Any) -> None:
        """Remove an edge; raise ``OrderError`` if there is none."""
        self._own(before), self._own(after)
        if after not in self.edges[before]:
            raise OrderError(
                f"there is no edge from {before.name} to {after.name} to remove; give the nodes of "
                "one that concat added"
            )
        del self.edges[before][after]
        self.version += 1

    def _own(self, node: Any) -> Any:
        if not isinstance(node, GraphNode) or node not in self.edges:
            raise ArgumentError(
                f"{getattr(node, 'name', node)} is no node of {self.name}; its nodes are "
                f"{', '.join([each.name for each in self.nodes]) or 'none'}: give one"
            )
        return node

    def set_sources(self, nodes: Sequence[Any]) -> None:
        """Begin runs at these nodes, and not at all that no edge leads to."""
        self.sources = self._different(nodes, "source")

    def set_destinations(self, nodes: Sequence[Any]) -> None:
        """End runs at these nodes, and not at all from which no edge leads on."""
        self.destinations = self._different(nodes, "destination")

    def _different(self, nodes: Sequence[Any], what: str) -> list[Any]:
        for node in nodes:
            self._own(node)
            if sum(node is other for other in nodes) > 1:
                raise ArgumentError(f"{node.name} is a {what} of {self.name} twice; give it once")
        self.version += 1
        return list(nodes)

    # Order ----------------------------------------------------------------------------------------

    def followers(self) -> dict[Any, list[Any]]:
        """Return the nodes that run after each node."""
        return {node: list(after) for node, after in self.edges.items()}

    def topsort(
        self, sources: Sequence[Any] | None = None, destinations: Sequence[Any] | None = None,
        further: Sequence[tuple[Any, Any]] = (),
    ) -> list[Any]:  # fmt: skip
        """Return the nodes from ``sources`` to ``destinations``, each after those before it.

        Those of the graph, or all, are used by default. ``further`` are edges between nodes that
        run anyway. Among nodes that may run now, the one that was made first comes first. Raises
        ``OrderError`` for a cycle, with its nodes.
        """
        after = self.followers()
        before = reverse(after)
        kept = set(self.nodes)
        for ends, ways in (
            (sources if sources is not None else self.sources, after),
            (destinations if destinations is not None else self.destinations, before),
        ):
            if ends:
                kept &= reached([self._own(node) for node in ends], ways)
        for early, late in further:
            before[late].append(early)
        place = {node: k for k, node in enumerate(self.nodes)}
        waiting = TopologicalSorter({n: [b for b in before[n] if b in kept] for n in kept})
        try:
            waiting.prepare()
        except CycleError as error:
            cycle = sorted({*error.args[1]}, key=place.__getitem__)
            raise OrderError(
                f"{self.name} has a cycle among {', '.join([n.name for n in cycle])}; remove an "
                f"edge with disjoin, which concat or what a node reads has given to {cycle[0]}"
            ) from None
        ready: list[tuple[int, Any]] = []
        order: list[Any] = []
        while waiting.is_active():
            for node in waiting.get_ready():
                heappush(ready, (place[node], node))
            order.append(heappop(ready)[1])
            waiting.done(order[-1])
        return order

    # Loops and branches ---------------------------------------------------------------------------

    def exec(self, *args: Any, **options: Any) -> Any:
        """Add a node of a command, inputs, outputs and a name, as each kind of graph says."""
        raise NotImplementedError

    def while_(
        self, loop: GraphBase, condition: Condition | int, carry_overs: dict[Any, Any],
        outputs: Any, *, reads: Sequence[Any] = (), breakpoints: Sequence[Any] = (),
        max_steps: int | None = None, name: str = "while",
    ) -> Any:  # fmt: skip
        """Add a loop over another graph, and return what ``exec`` returns.

        Nodes of the loop read tensors (or symbols) of this graph as they are. ``condition`` is the
        number of steps, or a function from the number of steps so far and the geon tensors of
        ``reads`` to a truth value. It is tested when the nodes that compute ``breakpoints`` have
        run, or at the start of each step. After a step the keys of ``carry_overs``, of this graph,
        get the values of theirs, of the loop. ``outputs`` are tensors of the loop whose values at
        its end are the results; as a dictionary, each with the tensor that gets it.
        """
        command, inputs = loop_command(
            loop, condition, reads, carry_overs, list(outputs), breakpoints, max_steps
        )
        targets = list(outputs.values()) if isinstance(outputs, dict) else None
        return self.exec(command, inputs, targets, name)

    def case_of(
        self, index: Callable[..., Any], reads: Sequence[Any],
        cases: Sequence[tuple[GraphBase, Sequence[Any]]], outputs: Sequence[Any] | None = None, *,
        default: Sequence[Any] | None = None, name: str = "case_of",
    ) -> Any:  # fmt: skip
        """Add a node that runs one of several graphs, each with its results.

        ``index`` is a function from the geon tensors of ``reads`` to an integer. ``default`` are
        tensors of this graph that replace the results for another integer; without them that raises
        in a run. ``outputs`` get the results.
        """
        for case in cases:
            if not isinstance(case, tuple) or len(case) != 2 or not isinstance(case[0], GraphBase):
                raise ArgumentError(
                    f"the case {case!r:.80}; give a pair of a graph and its results"
                )
        command, inputs = case_command(index, reads, cases, default)
        return self.exec(command, inputs, outputs, name)

    # Text -----------------------------------------------------------------------------------------

    def dot(self) -> str:
        """Return the graph in the language DOT: boxes are nodes, labels of edges are tensors."""
        number = {node: k for k, node in enumerate(self.nodes)}
        lines = [f'digraph "{self.name}" {{']
        lines += [f'  n{k} [shape=box, label="{n.name}"];' for n, k in number.items()]
        for node, following in self.followers().items():
            for each in following:
                shared = [x for x in each.inputs if x is not None and root(x) in node.writes]
                label = ", ".join([str(x.param) for x in shared])
                lines.append(f'  n{number[node]} -> n{number[each]} [label="{label}"];')
        return "\n".join([*lines, "}"])
