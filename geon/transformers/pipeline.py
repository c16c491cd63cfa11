"""Stages 3 to 5 of a request, as functions from immutable values to the next stage's.

``Stages`` imports this module when it first runs a stage. Nothing else that a call of a recalled
program needs imports a stage.
"""

from __future__ import annotations

from ..op_graph.regions.segments import MARKED, Division
from ..op_graph.transforms.functionalize import Functional
from .loading.environment import debugging
from .lowering.facts.target import Target
from .lowering.planning.derivable_values import kept_once
from .lowering.planning.memory_budget import Fitting
from .lowering.planning.plan import Plan, plan_memory
from .lowering.planning.schedule import Schedule, program_schedule
from .lowering.rules.program import Program, build_program
from .request import Request
from .sizes.budget import Budget


def simplify(request: Request, pure: Functional, target: Target, budget: Budget | None) -> Program:
    """Return the simplified graph of a request, of the request's own copies.

    With a ``budget``, values are recomputed as far as needed; raise ``SizeError`` if nothing fits.
    """
    made = built(request, pure, target, again=True)
    if budget is None:
        return made if request.check else kept_once(made, target, request.own)

    def divided(division: Division) -> Program:
        return built(request, pure, target, again=True, division=division)

    fitting = Fitting(budget, target, request.own, request.check, request.planned)
    return fitting.fitted(made, divided)


def built(
    request: Request,
    pure: Functional,
    target: Target,
    again: bool,
    division: Division = MARKED,
) -> Program:
    """Return the simplified graph; ``again`` allows values to be recomputed."""
    copied = request.copied(pure)
    return build_program(copied, target, request.own, again, request.check, division)


def make_schedule(request: Request, program: Program, target: Target) -> Schedule:
    """Return the kernels of a simplified graph, in order."""
    return program_schedule(program, target, request.own, request.check)


def make_plan(request: Request, kernels: Schedule) -> Plan:
    """Return the plan of a schedule: the home of each value."""
    return plan_memory(kernels, reuse=request.planned)


def verify(plan: Plan) -> Plan:
    """Return the plan, after verification if GEON_DEBUG contains ``verify``."""
    if debugging("verify"):
        # imported here because only tests need it
        from .lowering.planning.plan_verifier import verify_plan

        verify_plan(plan)
    return plan
