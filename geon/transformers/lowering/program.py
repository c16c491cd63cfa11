"""Stage 3: the pure, simple, lowered graph that a computation is compiled from."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from ...errors import IncompleteError
from ...op_graph.functional import Functional
from ...op_graph.interning import OwnTable
from ...op_graph.nodes import made_at
from ...op_graph.op_graph import Leaf, Op, Tensor, deep_order, post_order
from ...op_graph.regions.tidy import tidied
from ...op_graph.rewrite import RuleSet, rewrite
from ...op_graph.simplify import simplify_rules
from ...op_graph.stabilise import STABLE
from ...op_graph.window_rules import WINDOW_RULES
from .target import Target


@dataclass(frozen=True, eq=False, slots=True)
class Program:
    """Values to return, values to put into variables, and what to print; all ops are pure."""

    outputs: tuple[Tensor, ...]
    updates: tuple[tuple[Leaf, Tensor], ...]
    prints: tuple[Op, ...]

    @property
    def roots(self) -> tuple[Op, ...]:
        """Every op that must be computed."""
        return (*self.outputs, *(op for _, op in self.updates), *self.prints)

    @property
    def leaves(self) -> list[Leaf]:
        """The storage it reads or writes, in order of first use; written ones included."""
        found = {op: None for op in post_order(self.roots) if isinstance(op, Leaf)}
        found.update((leaf, None) for leaf, _ in self.updates)
        return list(found)


@cache
def _rules() -> RuleSet:
    """The rules of stage 3 for every target: stable forms first, then simpler ones."""
    return STABLE | simplify_rules() | WINDOW_RULES


@cache
def _lowering_rules(target: Target) -> RuleSet:
    """The same with the target's lowerings, which see stable forms alone."""
    return _rules() | target.rules


def build_program(pure: Functional, target: Target, own: OwnTable) -> Program:
    """The functional graph, stabilised, simplified and lowered to what ``target`` has rows for.

    New ops are in ``own``.
    """
    outputs = [op for op in pure.outputs if op is not None]
    roots = [*outputs, *pure.updates.values(), *pure.prints]
    # In one pass a function would be lowered before what it is the argument of is looked at.
    passes = [_rules(), _lowering_rules(target), *([] if target.last is None else [target.last])]
    simple = roots
    for rules in passes:
        simple = rewrite(simple, rules, {}, own)
    simple = tidied(simple, own)
    first, second = len(outputs), len(outputs) + len(pure.updates)
    new = [op for op in simple if isinstance(op, Tensor)]
    made = Program(
        tuple(new[:first]),
        tuple(zip(pure.updates, new[first:second], strict=True)),
        tuple(simple[second:]),
    )
    require_complete(made, target)
    return made


def require_complete(program: Program, target: Target) -> None:
    """Raise ``IncompleteError`` where a target's tables lack something that an op needs.

    A row that is in some of its tables alone would otherwise fail in a later stage, or compute
    what another row means.
    """
    for op in deep_order(program.roots):
        lacking = target.lacks(op)
        if lacking:
            raise IncompleteError(
                f"the {target.name} target cannot compute the {op.primitive.kind} row "
                f"{op.primitive.name!r}, needed by {op} (made at {made_at(op)}): it lacks "
                f"{'; '.join(lacking)}. Add what is missing, or a lowering of the row in "
                "transformers/lowering/rules.py"
            )
