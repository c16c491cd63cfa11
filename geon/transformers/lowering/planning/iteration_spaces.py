"""Iteration spaces of kernels: the axes of their loops, with lengths."""

from __future__ import annotations

from collections.abc import Iterator

from ....op_graph.axes.axes import Axis
from ....op_graph.op_graph import Op
from ...kernels.ir.nest import Region
from ...kernels.scans.sequential_scan import OrderedLoop
from ...sizes.spaces import Space
from ..fusion.kernel import Kernel
from .plan import Plan


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
