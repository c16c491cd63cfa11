"""The one driver of rewrite rules: bottom-up, to a fixed point at each op, carrying provenance.

A rule is a function from an op to its replacement, or to None where it does not apply. It belongs
to the primitives named when it is registered. The driver gives the replacement the site, name and
tags of what it replaces; rules never mention them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from ..errors import RewriteError
from .op_graph import Op, post_order, with_args
from .sites import set_override

Rule = Callable[[Op], "Op | None"]
LOOP_GUARD = 50


@dataclass(frozen=True)
class RuleSet:
    """Named rules by the primitive they start at, in the order they are tried."""

    name: str
    rules: dict[str, tuple[Rule, ...]]

    def __or__(self, other: RuleSet) -> RuleSet:
        names = {*self.rules, *other.rules}
        merged = {n: (*self.rules.get(n, ()), *other.rules.get(n, ())) for n in names}
        return RuleSet(f"{self.name}, {other.name}", merged)


class Rules:
    """Collects rules: ``@rules.on("log")`` registers one."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.table: dict[str, list[Rule]] = {}

    def on(self, *primitives: str) -> Callable[[Rule], Rule]:
        """Register the decorated rule for ops of these primitives."""

        def register(rule: Rule) -> Rule:
            for primitive in primitives:
                self.table.setdefault(primitive, []).append(rule)
            return rule

        return register

    def done(self) -> RuleSet:
        """The rules collected so far."""
        return RuleSet(self.name, {name: tuple(rules) for name, rules in self.table.items()})


def rewrite(
    roots: Iterable[Op], rules: RuleSet, known: dict[Op, Op], keep: frozenset[Op] = frozenset()
) -> list[Op]:
    """The roots with every rule applied everywhere below them, to a fixed point.

    ``known`` maps ops to their rewritten forms and is added to. Ops in ``keep`` stay in the graph:
    a rule that would look through one is not applied. A rule that fails, or a set of rules that
    does not end, raises ``RewriteError``.
    """
    listed = list(roots)
    table = rules.rules
    outer = set_override(None)
    try:
        for op in post_order(listed, known):
            if op in known:  # a rule that fired since has met it
                continue
            args = op.args
            for arg in args:
                if known[arg] is not arg:
                    args = tuple([known[arg] for arg in args])
                    break
            new = op
            if args is not op.args:
                set_override(op._site)
                new = with_args(op, args)
            if new.primitive.name in table:
                set_override(op._site)
                new = _fixed_point(new, rules, known, keep)
            if new is not op and op._notes is not None:
                _carry_notes(op, new)
            known[op] = new
            known.setdefault(new, new)
    finally:
        set_override(outer)
    return [known[root] for root in listed]


def _fixed_point(op: Op, rules: RuleSet, known: dict[Op, Op], keep: frozenset[Op]) -> Op:
    previous = op
    for _ in range(LOOP_GUARD):
        new = _apply(op, rules, keep)
        if new is None:
            return op
        previous, op = op, _settled(new, rules, known, keep)
        if op in known:
            return known[op]
    raise RewriteError(
        f"the rules of {rules.name!r} do not end: {previous!r} became {op!r}, after {LOOP_GUARD} "
        "steps"
    )


def _settled(new: Op, rules: RuleSet, known: dict[Op, Op], keep: frozenset[Op]) -> Op:
    """``new`` with the ops that a rule built below it rewritten too."""
    if any(arg not in known for arg in new.args):
        rewrite(new.args, rules, known, keep)
    args = tuple([known[arg] for arg in new.args])
    return new if args == new.args else with_args(new, args)


def _apply(op: Op, rules: RuleSet, keep: frozenset[Op]) -> Op | None:
    for rule in rules.rules.get(op.primitive.name, ()):
        try:
            new = rule(op)
        except Exception as error:
            raise RewriteError(
                f"rule {rule.__name__!r} of {rules.name!r} failed on {op!r}: {error}"
            ) from error
        if new is None or new is op or (keep and _hides(op, new, keep)):
            continue
        if new.axes is not op.axes or new.dtype is not op.dtype:
            raise RewriteError(
                f"rule {rule.__name__!r} of {rules.name!r} turned {op!r} into {new!r}: axes and "
                "dtype must stay"
            )
        return new
    return None


def _hides(op: Op, new: Op, keep: frozenset[Op]) -> bool:
    below = {arg for first in op.args for arg in (first, *first.args)}
    return any(kept in below and kept not in set(post_order([new])) for kept in keep)


def _carry_notes(old: Op, new: Op) -> None:
    notes = old._notes
    if notes is not None and new.primitive.kind != "leaf":
        if notes.name is not None:
            new._set_name(notes.name)
        if notes.tags:
            new.add_tags(notes.tags)
