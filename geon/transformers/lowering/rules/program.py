"""Stage 3: the pure, simplified, lowered graph that a computation is compiled from."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from typing import Any

from ....errors import IncompleteError
from ....lazy_dataclasses import dataclass
from ....op_graph.building.rebuild import rebuild, with_args
from ....op_graph.core.interning import OwnTable
from ....op_graph.core.source_info import building
from ....op_graph.nodes import made_at
from ....op_graph.op_graph import Leaf, Op, Tensor, deep_order, post_order
from ....op_graph.regions.segments import MARKED, Division, in_segments
from ....op_graph.rewriting.driver import RuleSet, rewrite
from ....op_graph.rewriting.region_cleanup import clean_regions
from ....op_graph.rewriting.simplify import simplify_rules
from ....op_graph.rewriting.stabilise import STABLE
from ....op_graph.rewriting.window_rules import WINDOW_RULES
from ....op_graph.rows.remat_annotations import compute_after
from ....op_graph.transforms.functionalize import Functional
from ..facts.target import Target
from .gather_products import by_words
from .matrix_rules import with_shared_vectors
from .position_checks import without_needless_checks
from .rematerialisation import rematerialise


@dataclass(frozen=True, eq=False, slots=True, weakref_slot=True)
class Program:
    """Values to return, new values of variables, and prints; all ops are pure.

    ``again`` are the ops that recompute other ops, in separate memory.
    """

    outputs: tuple[Tensor, ...]
    updates: tuple[tuple[Leaf, Tensor], ...]
    prints: tuple[Op, ...]
    again: tuple[Op, ...] = ()

    @property
    def roots(self) -> tuple[Op, ...]:
        """Return every op that must be computed."""
        return (*self.outputs, *(op for _, op in self.updates), *self.prints)

    @property
    def leaves(self) -> list[Leaf]:
        """Return the storage it reads or writes, in order of first use."""
        found = {op: None for op in post_order(self.roots) if isinstance(op, Leaf)}
        found.update((leaf, None) for leaf, _ in self.updates)
        return list(found)

    def mapped(self, new: Mapping[Op, Any], again: Iterable[Op]) -> Program:
        """Return the program with its ops replaced; ``again`` are added to the recomputing ops."""
        updates = tuple([(leaf, new[op]) for leaf, op in self.updates])
        before = [new.get(op, op) for op in self.again]
        return Program(
            tuple([new[op] for op in self.outputs]),
            updates,
            tuple([new[op] for op in self.prints]),
            (*before, *again),
        )


@cache
def _rules() -> RuleSet:
    """Return the rules of stage 3 for every target: stable forms first, then simplifications."""
    return STABLE | simplify_rules() | WINDOW_RULES


@cache
def _lowering_rules(target: Target) -> RuleSet:
    """Return these rules with the target's lowerings, which see stable forms only."""
    return _rules() | target.rules


def build_program(
    pure: Functional,
    target: Target,
    own: OwnTable,
    again: bool = True,
    check: bool = False,
    division: Division = MARKED,
) -> Program:
    """Return the functional graph, stabilised, simplified and lowered to primitives of ``target``.

    With ``again``, ops below recomputation marks, and steps of scans that a ``division`` segments,
    are computed a second time. With ``check``, loop bodies keep everything they were written with,
    so that errors refer to a step. New ops are in ``own``.
    """
    outputs = [op for op in pure.outputs if op is not None]
    roots = [*outputs, *pure.updates.values(), *pure.prints]
    # In a single pass an op would be lowered before rules on its users could match it.
    fused = None if check else target.fused
    simple = with_shared_vectors(rewrite(roots, _rules(), {}, own), own)
    simple = without_needless_checks(rewrite(simple, _lowering_rules(target), {}, own), own)
    for rules in (target.last, fused):
        simple = simple if rules is None else rewrite(simple, rules, {}, own)
    divided = division if again else None

    def tidy(roots: Sequence[Op], division: Division | None) -> list[Op]:
        return clean_regions(roots, own, not check, division)

    simple, runs = in_segments(tidy(simple, divided), own, tidy, divided)
    if target.scattered is not None and not check:
        simple = by_words(simple, own, target.scattered)
    first, second = len(outputs), len(outputs) + len(pure.updates)
    simple, clones = rematerialise(printed_in_order(simple, second, own), own, again)
    new = [op for op in simple if isinstance(op, Tensor)]
    made = Program(
        tuple(new[:first]),
        tuple(zip(pure.updates, new[first:second], strict=True)),
        tuple(simple[second:]),
        (*runs, *clones),
    )
    require_complete(made, target)
    return made


def printed_in_order(roots: list[Op], first: int, own: OwnTable) -> list[Op]:
    """Return the roots, of which those from ``first`` on that print wait for the previous one."""
    printing = [op for op in roots[first:] if op.primitive.name == "print"]
    if len(printing) < 2:
        return roots
    before: dict[Op, Op] = dict(zip(printing[1:], printing, strict=False))
    new: dict[Op, Op] = {}

    def replaced(op: Op, args: tuple[Op, ...]) -> Op | None:
        return with_args(op, (compute_after(args[0], [new[before[op]]]),)) if op in before else None

    with building(own):
        return rebuild([*printing, *roots], replaced, new)[len(printing) :]


def require_complete(program: Program, target: Target) -> None:
    """Raise ``IncompleteError`` if a target's tables lack an entry that an op needs.

    A primitive that is in some of the tables only would otherwise fail in a later stage, or compute
    another primitive's function.
    """
    for op in deep_order(program.roots):
        lacking = [] if op.primitive.is_barrier else target.lacks(op)
        if lacking:
            raise IncompleteError(
                f"the {target.name} target cannot compute the {op.primitive.kind} row "
                f"{op.primitive.name!r}, needed by {op} (made at {made_at(op)}): it lacks "
                f"{'; '.join(lacking)}. Add what is missing, or a lowering of the row in "
                "transformers/lowering/rules/lowering_rules.py"
            )
