"""Iteration spaces of kernels: the axes of their loops, with lengths."""

from __future__ import annotations

from collections.abc import Iterator

from ....op_graph.axes.axes import Axis
from ...kernels.ir.nest import Region
from ...kernels.scans.sequential_scan import OrderedLoop
from ...sizes.spaces import Space
from ..fusion.kernel import Kernel
from .plan import Plan


def space_of(kernel: Kernel) -> Space:
    """Return the axes of a kernel, by name and length; of an ordered loop, also its own axis."""
    assert kernel.fused is not None
    chain = kernel.fused.chain
    parts = [kernel.fused] if chain is None else [fused for fused, _ in chain.steps]
    within = [arg for fused in parts for op in fused.reductions for arg in op.args]
    within += [arg for fused in parts if fused.dot is not None for arg in fused.dot.args]
    ops = (*kernel.results, *kernel.reads, *within)
    found = frozenset((axis.name, axis.expression) for op in ops for axis in op.axes)
    if isinstance(kernel.work, OrderedLoop):
        found |= {(f"{kernel.work.op.attrs.axis.name} of a loop", kernel.work.turns)}
    return found


def spaces_of(plan: Plan) -> Iterator[Space]:
    """Yield the axes of each kernel of a plan; inside loops, also those of the loops."""
    for kernel in plan.schedule.kernels:
        inside = plan.inside.get(kernel.op)
        if inside is None:
            yield space_of(kernel)
            continue
        assert isinstance(kernel.work, Region)
        axes = [value for value in kernel.work.op.attrs if isinstance(value, Axis)]
        around = {(f"{axis.name} of a loop", axis.expression) for axis in axes}
        for inner in inside.plans:
            for space in spaces_of(inner):
                yield space | around
