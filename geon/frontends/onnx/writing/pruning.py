"""Removes nodes whose outputs nothing reads, in a graph and in the sub-graphs of its nodes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any


def pruned(nodes: Sequence[Any], needed: set[str]) -> list[Any]:
    """Return the nodes that compute ``needed`` values, in order; ``needed`` gains what they read.

    Nodes of sub-graphs are removed from these.
    """
    kept = []
    for node in reversed(nodes):
        if needed.isdisjoint(node.output):
            continue
        kept.append(node)
        needed.update(name for name in node.input if name)
        for graph in subgraphs(node):
            inner = {each.name for each in graph.output}
            rest = pruned(graph.node, inner)
            del graph.node[:]
            graph.node.extend(rest)
            needed |= inner
    return kept[::-1]


def subgraphs(node: Any) -> Iterator[Any]:
    """Yield the graphs among the attributes of a node."""
    for attribute in node.attribute:
        if attribute.HasField("g"):
            yield attribute.g
