"""The loops in which kernels of a plan run."""

from __future__ import annotations

from collections.abc import Iterator

from ...op_graph.affine import Size
from ..kernels.types import Region
from .memory import Plan

Loops = tuple[tuple[str, Size], ...]  # axes and lengths, the outermost loop first


def loops_of(plan: Plan) -> dict[int, Loops]:
    """The loops around each kernel that has any, by its step as ``kernels_of`` counts them."""
    return {step: loops for step, loops in _around(plan, 0, ()) if loops}


def _around(plan: Plan, first: int, loops: Loops) -> Iterator[tuple[int, Loops]]:
    for kernel, (begins, _) in zip(plan.schedule.kernels, plan.steps, strict=True):
        inside = plan.inside.get(kernel.op)
        if inside is None:
            yield first + begins, loops
            continue
        assert isinstance(kernel.work, Region)
        within = (*loops, *kernel.work.loops)
        for inner, at in zip(inside.plans, inside.steps, strict=True):
            yield from _around(inner, first + at, within)
