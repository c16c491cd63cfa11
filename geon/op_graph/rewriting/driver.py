"""Rewrite driver: applies rules bottom-up to a fixed point at each op and carries source lines.

A rule is a function from an op to its replacement, or to None where it does not apply. It belongs
to the primitives named when it is registered. The driver gives the replacement the site, name and
tags of what it replaces; rules never mention them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from ...errors import RewriteError
from ..building.rebuild import with_args, with_bodies
from ..core.interning import OwnTable
from ..core.region_body import Body
from ..core.source_info import building, current
from ..nodes import carry_lines, carry_notes
from ..op_graph import Op, post_order

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

    def without(self, *rules: Rule) -> RuleSet:
        """The set less these rules."""
        kept = {n: tuple(r for r in each if r not in rules) for n, each in self.rules.items()}
        return RuleSet(self.name, kept)


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
    roots: Iterable[Op], rules: RuleSet, known: dict[Op, Op], own: OwnTable | None = None
) -> list[Op]:
    """The roots with every rule applied everywhere below them, to a fixed point.

    ``known`` maps ops to their rewritten forms and is added to; new ops are in ``own``, if given. A
    rule that fails, or a set of rules that does not end, raises ``RewriteError``.
    """
    with building(own):
        return _Driver(rules, known).run(list(roots))


class _Driver:
    """One run: the rules, what is known, and the ops whose replacement is being worked out."""

    def __init__(self, rules: RuleSet, known: dict[Op, Op]) -> None:
        self.rules = rules
        self.known = known
        self.pending: dict[Op, Op] = {}

    def run(self, roots: Sequence[Op]) -> list[Op]:
        """The roots rewritten, and in ``known`` all below them; arguments come first."""
        known, table = self.known, self.rules.rules
        for op in post_order(roots, known):
            if op in known:  # a rule that fired since has met it
                continue
            args = op.args
            for arg in args:
                if known[arg] is not arg:
                    args = tuple([known[arg] for arg in args])
                    break
            new = op
            if args is not op.args:
                new = with_args(op, args)
                carry_lines(op, new)
            if op.bodies:
                new = with_bodies(new, [self.rewritten(body) for body in op.bodies])
                carry_lines(op, new)
            if new.primitive.name in table:
                current.site = op._site
                new = self.fixed_point(new)
            carry_notes(op, new)
            known[op] = new
            known.setdefault(new, new)
        return [known[root] for root in roots]

    def rewritten(self, body: Body) -> Body:
        """A body with every rule applied in it."""
        made: tuple[Any, ...] = tuple(self.run(body.results))
        return Body(body.parameters, made)

    def fixed_point(self, op: Op) -> Op:
        """What is left of ``op`` when no rule applies; ``RewriteError`` where that has no end."""
        previous = op
        for _ in range(LOOP_GUARD):
            new = self.replaced(op)
            if new is None:
                return op
            previous, op = op, self.settled(op, new)
            if op in self.known:
                return self.known[op]
        raise self.endless(previous, op)

    def settled(self, op: Op, new: Op) -> Op:
        """``new``, for ``op``, with the ops that a rule built below it rewritten too."""
        unknown = [arg for arg in new.args if arg not in self.known]
        if unknown:
            if op in self.pending:
                raise self.endless(self.pending[op], new)
            self.pending[op] = new
            self.run(unknown)
            del self.pending[op]
        return with_args(new, tuple([self.known[arg] for arg in new.args]))

    def replaced(self, op: Op) -> Op | None:
        """What the first rule that applies makes of ``op``; None where none does."""
        name = self.rules.name
        for rule in self.rules.rules.get(op.primitive.name, ()):
            try:
                new = rule(op)
            except Exception as error:
                raise RewriteError(
                    f"rule {rule.__name__!r} of {name!r} failed on {op!r}: {error}"
                ) from error
            if new is None or new is op:
                continue
            if new.axes is not op.axes or new.dtype is not op.dtype:
                raise RewriteError(
                    f"rule {rule.__name__!r} of {name!r} turned {op!r} into {new!r}: axes and "
                    "dtype must stay"
                )
            return new
        return None

    def endless(self, previous: Op, op: Op) -> RewriteError:
        return RewriteError(
            f"the rules of {self.rules.name!r} do not end: {previous!r} became {op!r}, after "
            f"{LOOP_GUARD} steps or while its own replacement was worked out"
        )
