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
    load no other ones than it does. Stores past the caches are not to memory that the nest reads.
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
            for parts in alternatives(form.parts):
                _verify_parts(kernel.op, work, parts, shared)


def alternatives(parts: tuple[Any, ...]) -> list[list[Any]]:
    """Return the sequences of trees and copies that parts may run, one for each choice."""
    found: list[list[Any]] = [[]]
    for part in parts:
        ways = [[part]]
        if isinstance(part, FormChoice):
            ways = [*alternatives(part.forms), *alternatives(part.others)]
        found = [[*before, *way] for before in found for way in ways]
    return found


def _verify_parts(op: Op, nest: Nest, parts: list[Any], places: tuple[int, ...]) -> None:
    """Raise ``PlanError`` if parts do not store or load what a nest does."""
    trees: list[Tree] = [part.tree for part in parts if not isinstance(part, Fill)]
    body = from_nest(nest).body
    loaded, stored = _operands(body, READ), _operands(body, WRITE)
    for tree in trees:
        loads = _operands(tree.body, READ)
        if loads - loaded:
            raise PlanError(
                f"a tree of {op!r} loads operands {sorted(loads - loaded)}, and its nest does not"
            )
        past = [each.streamed for each, _ in walk(tree.body) if isinstance(each, Write)]
        read = {places[number] for number in loaded}
        wrong = [k for k in frozenset[int]().union(*past) if places[k] in read]
        if wrong:
            raise PlanError(
                f"a tree of {op!r} stores operands {wrong} past the caches, and its nest reads them"
            )
    made = frozenset[int]().union(*[_operands(tree.body, WRITE) for tree in trees])
    made |= {part.operand for part in parts if isinstance(part, Fill)}
    missing = {k for k in stored - made if nest.operands[k].axes.size != 0}
    if missing or made - stored:
        raise PlanError(
            f"the nest of {op!r} stores operands {sorted(stored)}, and its trees {sorted(made)}"
        )


def _operands(body: Body, way: str) -> frozenset[int]:
    """Return the operands that statements access in a way."""
    found = [each.memory for each in accesses(body) if each.way == way]
    return frozenset([number for memory, number in found if memory == "operand"])
