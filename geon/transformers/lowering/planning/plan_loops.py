"""Loops around the kernels of a plan, and the kernels inside of loops."""

from __future__ import annotations

from collections.abc import Iterator

from ....op_graph.axes.affine import Size
from ...kernels.ir.nest import Region
from ..fusion.kernel import Kernel
from .plan import Plan

Loops = tuple[tuple[str, Size], ...]  # axes and lengths, outermost loop first


def loops_of(plan: Plan) -> dict[int, Loops]:
    """Return the loops around each kernel that has any, by its step number in ``kernels_of``."""
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


def kernels_inside(plan: Plan, kernel: Kernel) -> Iterator[tuple[Plan, int, Kernel]]:
    """Yield the kernels of a kernel's bodies, with their plans and positions, depth-first."""
    inside = plan.inside.get(kernel.op)
    for inner in () if inside is None else inside.plans:
        for position, each in enumerate(inner.schedule.kernels):
            yield inner, position, each
            yield from kernels_inside(inner, each)
