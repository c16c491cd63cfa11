"""Iteration spaces of kernels, and loops of a plan.

A space has the axes of a kernel's loops, with lengths. Around the kernels of a plan are its loops,
and inside of these are the kernels of their bodies.
"""

from __future__ import annotations

from collections.abc import Iterator

from ....op_graph.axes.affine import Size
from ....op_graph.axes.axes import Axis
from ....op_graph.op_graph import Op
from ...kernels.ir.nest import Region
from ...kernels.scans.sequential_scan import OrderedLoop
from ...sizes.spaces import Space
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


def kernel_spaces(kernel: Kernel) -> list[Space]:
    """Return the axes of each loop nest of a kernel, by name and length.

    Results and operands are nests, and so are the arguments of a reduction or product, together.
    Nests within others are left out. Those of an ordered loop also have its own axis.
    """
    assert kernel.fused is not None
    chain = kernel.fused.chain
    parts = [kernel.fused] if chain is None else [fused for fused, _ in chain.steps]
    nests: list[tuple[Op, ...]] = [(op,) for op in (*kernel.results, *kernel.reads)]
    nests += [op.args for fused in parts for op in fused.reductions]
    nests += [fused.dot.args for fused in parts if fused.dot is not None]
    loop: Space = frozenset()
    if isinstance(kernel.work, OrderedLoop):
        loop = frozenset({(f"{kernel.work.op.attrs.axis.name} of a loop", kernel.work.turns)})
    spaces = [
        loop | {(axis.name, axis.expression) for op in nest for axis in op.axes} for nest in nests
    ]
    found = list(dict.fromkeys(spaces))
    return [space for space in found if not any(space < other for other in found)]


def spaces_of(plan: Plan) -> Iterator[Space]:
    """Yield the axes of the nests of each kernel; inside loops, also those of the loops."""
    for kernel in plan.schedule.kernels:
        inside = plan.inside.get(kernel.op)
        if inside is None:
            yield from kernel_spaces(kernel)
            continue
        assert isinstance(kernel.work, Region)
        axes = [value for value in kernel.work.op.attrs if isinstance(value, Axis)]
        around = {(f"{axis.name} of a loop", axis.expression) for axis in axes}
        for inner in inside.plans:
            for space in spaces_of(inner):
                yield space | around
