"""Orders in which given sets are contiguous (the consecutive-ones property), by PQ-trees.

K. Booth and G. Lueker, "Testing for the consecutive ones property, interval graphs, and graph
planarity using PQ-tree algorithms", 1976. The reduction here is recursive and takes a time that is
polynomial, not linear, in the size of the sets.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

EMPTY, PARTIAL, FULL = range(3)


@dataclass(frozen=True)
class Leaf:
    """An element."""

    element: int

    @property
    def children(self) -> tuple[Node, ...]:
        """Return no children."""
        return ()


@dataclass(frozen=True)
class P:
    """Children that may stand in any order."""

    children: tuple[Node, ...]


@dataclass(frozen=True)
class Q:
    """Children that stand in this order or in the reverse one."""

    children: tuple[Node, ...]


Node = Leaf | P | Q


class NoOrder(Exception):
    """There is no order in which all sets are contiguous."""


def consecutive_order(count: int, sets: Iterable[Iterable[int]]) -> list[int] | None:
    """Return the lexicographically first order of 0 to ``count`` - 1 with each set contiguous.

    Return None if there is none.
    """
    if count == 0:
        return []
    tree = _group(P, [Leaf(element) for element in range(count)])
    try:
        for each in sets:
            chosen = frozenset(each)
            if len(chosen) > 1:
                tree = _reduce(tree, chosen)
    except NoOrder:
        return None
    return _frontier(tree)


def _group(kind: type[P] | type[Q], children: Sequence[Node]) -> Node:
    """Return a node of these children; a single child is itself, and two have no fixed order."""
    if len(children) == 1:
        return children[0]
    return P(tuple(children)) if len(children) == 2 else kind(tuple(children))


def _some(children: Sequence[Node]) -> list[Node]:
    """Return the children as at most one node."""
    return [_group(P, children)] if children else []


def _elements(node: Node) -> frozenset[int]:
    if isinstance(node, Leaf):
        return frozenset([node.element])
    return frozenset().union(*map(_elements, node.children))


def _label(node: Node, chosen: frozenset[int]) -> int:
    found = _elements(node)
    return FULL if found <= chosen else PARTIAL if found & chosen else EMPTY


def _reduce(node: Node, chosen: frozenset[int]) -> Node:
    """Return the tree of the orders of a node in which ``chosen``, all below it, is contiguous."""
    for place, child in enumerate(node.children):
        if chosen <= _elements(child):
            children = list(node.children)
            children[place] = _reduce(child, chosen)
            return type(node)(tuple(children)) if not isinstance(node, Leaf) else node
    labels = [_label(child, chosen) for child in node.children]
    if isinstance(node, Q):
        return Q(tuple(_spread(node.children, labels, chosen)))
    full, partial, empty = _sorted(node.children, labels)
    if len(partial) > 2:
        raise NoOrder
    if not partial:
        return _group(P, [*empty, *_some(full)])
    inside = _ending_full(partial[0], chosen) + _some(full)
    if len(partial) == 2:
        inside += _ending_full(partial[1], chosen)[::-1]
    return _group(P, [_group(Q, inside), *empty])


def _sorted(
    children: Sequence[Node], labels: Sequence[int]
) -> tuple[list[Node], list[Node], list[Node]]:
    """Return the full, the partial and the empty children."""
    full, partial, empty = (
        [child for child, label in zip(children, labels, strict=True) if label == wanted]
        for wanted in (FULL, PARTIAL, EMPTY)
    )
    return full, partial, empty


def _spread(children: Sequence[Node], labels: Sequence[int], chosen: frozenset[int]) -> list[Node]:
    """Return the children of a Q node, with partial ones opened towards the full ones."""
    touched = [place for place, label in enumerate(labels) if label != EMPTY]
    first, last = touched[0], touched[-1]
    if any(label != FULL for label in labels[first + 1 : last]):
        raise NoOrder
    found: list[Node] = []
    for place, child in enumerate(children):
        if labels[place] != PARTIAL:
            found.append(child)
        else:
            opened = _ending_full(child, chosen)
            found += opened if place == first else opened[::-1]
    return found


def _ending_full(node: Node, chosen: frozenset[int]) -> list[Node]:
    """Return the parts of a partial node in an order that ends with all of ``chosen``."""
    labels = [_label(child, chosen) for child in node.children]
    if isinstance(node, Q):
        children = list(node.children)
        if labels[0] == FULL or labels[-1] == EMPTY:
            children, labels = children[::-1], labels[::-1]
        if sorted(labels) != labels or labels.count(PARTIAL) > 1:
            raise NoOrder
        found: list[Node] = []
        for child, label in zip(children, labels, strict=True):
            found += _ending_full(child, chosen) if label == PARTIAL else [child]
        return found
    full, partial, empty = _sorted(node.children, labels)
    if len(partial) > 1:
        raise NoOrder
    inside = _ending_full(partial[0], chosen) if partial else []
    return [*_some(empty), *inside, *_some(full)]


def _frontier(node: Node) -> list[int]:
    """Return the lexicographically first order of a tree."""
    if isinstance(node, Leaf):
        return [node.element]
    parts = [_frontier(child) for child in node.children]
    if isinstance(node, P):
        return [element for part in sorted(parts) for element in part]
    return min(sum(parts, []), sum(parts[::-1], []))
