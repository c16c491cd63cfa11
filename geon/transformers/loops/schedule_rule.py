"""Rules that schedule trees, and their application to a tree."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import NamedTuple

from .tree import IllegalScheduleError, Tree, VectorWidth


class ScheduleRule(NamedTuple):
    """A rule: the loops that it looks at, and the transformation of the tree at one of them."""

    name: str
    sites: Callable[[Tree], Iterator[str]]
    apply: Callable[[Tree, str, VectorWidth], Tree]


def applied(rule: ScheduleRule, tree: Tree, vectors: VectorWidth) -> Tree:
    """Return the tree after a rule; what was refused is recorded."""
    for name in list(rule.sites(tree)):
        try:
            tree = rule.apply(tree, name, vectors)
        except IllegalScheduleError as refusal:
            tree = replace(tree, refusals=(*tree.refusals, f"{rule.name}: {refusal}"))
    return tree
