"""Rewrite driver: applies rules bottom-up to a fixed point at each op and carries source lines.

A rule is a pattern with its replacement, or a function from an op to its replacement, or to None
where it does not apply. It is registered for the primitives at which it starts. The driver gives
the replacement the site, name and tags of the op that it replaces; rules do not handle these.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from ...errors import RewriteError
from ...lazy_dataclasses import dataclass
from ..building.rebuild import with_args, with_bodies
from ..core.interning import OwnTable
from ..core.region_body import Body
from ..core.source_info import building, current
from ..nodes import carry_lines, carry_notes
from ..op_graph import Op, post_order
from .matching import Replacement, pattern_rule

Rule = Callable[[Op], "Op | None"]
MAX_REWRITES_PER_OP = 50  # maximum successive replacements of one op


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
        """Return the set without these rules."""
        kept = {n: tuple(r for r in each if r not in rules) for n, each in self.rules.items()}
        return RuleSet(self.name, kept)


class Rules:
    """Collects rules: patterns by ``rules.replace``, functions by ``@rules.on("log")``."""

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

    def replace(self, name: str, *cases: Replacement) -> None:
        """Register a rule by patterns: the first case that matches replaces the op."""
        self.on(*dict.fromkeys(case.pattern.name for case in cases))(pattern_rule(name, cases))

    def done(self) -> RuleSet:
        """Return the rules collected so far."""
        return RuleSet(self.name, {name: tuple(rules) for name, rules in self.table.items()})


def rewrite(
    roots: Iterable[Op], rules: RuleSet, known: dict[Op, Op], own: OwnTable | None = None
) -> list[Op]:
    """Return the roots with every rule applied everywhere below them, to a fixed point.

    ``known`` maps ops to their rewritten forms; the call adds to it. New ops are in the interning
    table ``own``, if given. Raises ``RewriteError`` if a rule fails or the rules do not terminate.
    """
    with building(own):
        return _Driver(rules, known).run(list(roots))


class _Driver:
    """One run of a rule set.

    ``known`` maps ops to their rewritten forms. ``pending`` maps an op whose replacement is being
    rewritten to that replacement.
    """

    def __init__(self, rules: RuleSet, known: dict[Op, Op]) -> None:
        self.rules = rules
        self.known = known
        self.pending: dict[Op, Op] = {}

    def run(self, roots: Sequence[Op]) -> list[Op]:
        """Return the roots rewritten; add all ops below them to ``known``, arguments first."""
        known, table = self.known, self.rules.rules
        for op in post_order(roots, known):
            if op in known:  # rewritten below a rule's result in the meantime
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
        """Return a body with every rule applied in it."""
        result: tuple[Any, ...] = tuple(self.run(body.results))
        return Body(body.parameters, result)

    def fixed_point(self, op: Op) -> Op:
        """Apply rules to ``op`` until none applies; ``RewriteError`` after ``MAX_REWRITES_PER_OP``
        steps.
        """
        previous = op
        for _ in range(MAX_REWRITES_PER_OP):
            new = self.replaced(op)
            if new is None:
                return op
            previous, op = op, self.settled(op, new)
            if op in self.known:
                return self.known[op]
        raise self.endless(previous, op)

    def settled(self, op: Op, new: Op) -> Op:
        """Return ``new``, which replaces ``op``, with the ops below it rewritten too."""
        unknown = [arg for arg in new.args if arg not in self.known]
        if unknown:
            if op in self.pending:
                raise self.endless(self.pending[op], new)
            self.pending[op] = new
            self.run(unknown)
            del self.pending[op]
        return with_args(new, tuple([self.known[arg] for arg in new.args]))

    def replaced(self, op: Op) -> Op | None:
        """Return the replacement of ``op`` by the first rule that applies; None if none does.

        Rules hold for real numbers: an op that computes with complex ones is left as it is.
        """
        if op.dtype.kind == "c" or any(arg.dtype.kind == "c" for arg in op.args):
            return None
        name = self.rules.name
        operands = [arg.primitive.name for arg in op.args]
        for rule in self.rules.rules.get(op.primitive.name, ()):
            needed = getattr(rule, "operands", None)
            if needed is not None and needed.isdisjoint(operands):
                continue
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
            f"{MAX_REWRITES_PER_OP} steps or while its own replacement was worked out"
        )
