"""The loops in which kernels of a plan run, and what is in them."""

from __future__ import annotations

from collections.abc import Iterator

from ....op_graph.axes.affine import Size
from ...kernels.ir.nest import Region
from ..fusion.kernel import Kernel
from .plan import Plan

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


def kernels_inside(plan: Plan, kernel: Kernel) -> Iterator[tuple[Plan, int, Kernel]]:
    """The kernels of a kernel's bodies, with their plans and their positions in these.

    What is in one of them follows it.
    """
    inside = plan.inside.get(kernel.op)
    for inner in () if inside is None else inside.plans:
        for position, each in enumerate(inner.schedule.kernels):
            yield inner, position, each
            yield from kernels_inside(inner, each)
