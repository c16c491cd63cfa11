"""Verifier of forms: raises where a kernel would run what computes something else."""

from __future__ import annotations

from typing import Any

from ....errors import PlanError
from ....op_graph.op_graph import Op
from ...kernels.ir.nest import Fill, Nest
from ...kernels.products.contraction import Contraction
from ...kernels.products.operand_starts import from_starts
from ...kernels.structural_key import first_occurrences, structure
from ...loops.access import READ, WRITE, accesses
from ...loops.from_nest import from_nest
from ...loops.tree import Body, Tree, Write, walk
from .kernel_forms import FormChoice, KernelForm, operands_of
from .plan import Plan, place_in


def verify_forms(plan: Plan) -> None:
    """Raise ``PlanError`` for a form that does not fit the kernels that run it.

    Forms have the structure of their kernels, whose operands all share memory in the same way.
    Whatever the lengths, trees and copies of a nest store the operands that it stores, and trees
    load no other ones than it does, or than its variant for short rows does if they compute that.
    Stores past the caches are not to memory that the nest reads.
    """
    aliases: dict[KernelForm, tuple[Op, tuple[int, ...]]] = {}
    for kernel in plan.schedule.kernels:
        form = plan.forms.get(kernel.op)
        if form is None:
            continue
        work: Any = kernel.work
        shared = first_occurrences([place_in(plan.homes, op) for op in operands_of(work)])
        alike = [work, from_starts(work, shared)[0]] if isinstance(work, Contraction) else [work]
        if structure(form.work) not in map(structure, alike):
            raise PlanError(f"the kernel of {kernel.op!r} has the form of another structure")
        other, known = aliases.setdefault(form, (kernel.op, shared))
        if known != shared:
            raise PlanError(
                f"the kernels of {other!r} and {kernel.op!r} have one form, and their operands "
                f"share memory in different ways: {known} and {shared}"
            )
        if isinstance(work, Nest):
            for parts in alternatives(work, form.parts):
                _verify_parts(kernel.op, work, parts, shared)


def alternatives(nest: Nest, parts: tuple[Any, ...]) -> list[list[tuple[Nest, Any]]]:
    """Return the sequences of trees and copies that parts may run, one for each choice.

    Each has the nest that it computes: of short rows the variant of the nest, or of its piece.
    """
    short = {x.shortness: x.short for x in (nest, *nest.pieces) if x.short and x.shortness}
    found: list[list[tuple[Nest, Any]]] = [[]]
    for part in parts:
        ways = [[(nest, part)]]
        if isinstance(part, FormChoice):
            variant = short.get(part.holds, nest)
            ways = [*alternatives(variant, part.forms), *alternatives(nest, part.others)]
        found = [[*before, *way] for before in found for way in ways]
    return found


def _verify_parts(
    op: Op, nest: Nest, parts: list[tuple[Nest, Any]], places: tuple[int, ...]
) -> None:
    """Raise ``PlanError`` if parts do not store what a nest does, or load what theirs do not."""
    trees: list[tuple[Nest, Tree]] = [(x, y.tree) for x, y in parts if not isinstance(y, Fill)]
    body = from_nest(nest).body
    loaded, stored = _loads(nest), _operands(body, WRITE)
    for own, tree in trees:
        loads = _operands(tree.body, READ)
        known = loaded if own is nest else _loads(own)
        if loads - known:
            raise PlanError(
                f"a tree of {op!r} loads operands {sorted(loads - known)}, and its nest does not"
            )
        past = [each.streamed for each, _ in walk(tree.body) if isinstance(each, Write)]
        read = {places[number] for number in loaded | known}
        wrong = [k for k in frozenset[int]().union(*past) if places[k] in read]
        if wrong:
            raise PlanError(
                f"a tree of {op!r} stores operands {wrong} past the caches, and its nest reads them"
            )
    made = frozenset[int]().union(*[_operands(tree.body, WRITE) for _, tree in trees])
    made |= {part.operand for _, part in parts if isinstance(part, Fill)}
    missing = {k for k in stored - made if nest.operands[k].axes.size != 0}
    if missing or made - stored:
        raise PlanError(
            f"the nest of {op!r} stores operands {sorted(stored)}, and its trees {sorted(made)}"
        )


def _loads(nest: Nest) -> frozenset[int]:
    """Return the operands that a nest loads, or its variants that run whatever the lengths.

    A variant for short rows keeps no values of rows: it may read a result that it has stored.
    """
    always = [x.short for x in (nest, *nest.pieces) if x.short and not x.shortness]
    return frozenset[int]().union(*[_operands(from_nest(x).body, READ) for x in (nest, *always)])


def _operands(body: Body, way: str) -> frozenset[int]:
    """Return the operands that statements access in a way."""
    found = [each.memory for each in accesses(body) if each.way == way]
    return frozenset([number for memory, number in found if memory == "operand"])
