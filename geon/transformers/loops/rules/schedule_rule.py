"""Rules that schedule trees, and their application to a tree."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Generic, NamedTuple, TypeVar

from ..tree import IllegalScheduleError, Tree, replace

Facts = TypeVar("Facts")  # what rules know of the target


class ScheduleRule(NamedTuple, Generic[Facts]):
    """A rule: the loops that it looks at, and the transformation of the tree at one of them."""

    name: str
    sites: Callable[[Tree], Iterator[str]]
    apply: Callable[[Tree, str, Facts], Tree]


def applied(rule: ScheduleRule[Facts], tree: Tree, facts: Facts) -> Tree:
    """Return the tree after a rule; what was refused is recorded."""
    for name in list(rule.sites(tree)):
        try:
            tree = rule.apply(tree, name, facts)
        except IllegalScheduleError as refusal:
            tree = replace(tree, refusals=(*tree.refusals, f"{rule.name}: {refusal}"))
    return tree
