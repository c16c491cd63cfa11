"""The PyCUDA transformer: a computation becomes CUDA kernels over one planned arena."""

from __future__ import annotations

import dataclasses

from ...op_graph.op_graph import Op
from ...op_graph.registry import PRIMITIVES
from ..base import Transformer
from ..linking import Linking
from ..lowering.fusion import fusion_groups
from ..lowering.loop_rules import LAST, RULES
from ..lowering.memory import Plan
from ..lowering.target import Arrangement, Layout, Target
from . import host
from .completeness import lacks
from .device import Device
from .emit import make_module
from .library import SORTS
from .memory import DeviceMemory
from .program import CudaProgram
from .scratch import scratch_of


def arrange(op: Op, x: Layout, y: Layout) -> Arrangement:
    """Operands as they lie, the result in the order of its axes."""
    return Arrangement((None, None), op.axes.names)


TARGET = Target(
    name="pycuda",
    rules=RULES,
    arrange=arrange,
    in_place={
        name: row.in_place
        for name, row in PRIMITIVES.items()
        if row.in_place and name not in SORTS  # what is sorted is read to the end
    },
    hidden={},
    contiguous={
        **{row.name: tuple(range(8)) for row in PRIMITIVES.values() if row.cost == "kernel"},
        "print": (0,),
    },
    group=fusion_groups,
    last=LAST,
    scratch=scratch_of,
    lacks=lacks,
    alignment=256,
)


class CudaTransformer(Transformer):
    """Compiles computations to CUDA for a device; variables and the arena lie in its memory."""

    target = TARGET

    def __init__(self, device: Device) -> None:
        self.device = device
        super().__init__()

    def make_memory(self) -> DeviceMemory:
        """The memory of the device."""
        return DeviceMemory(self.device)

    def emit(self, plan: Plan, linking: Linking, annotate: bool) -> str:
        """The CUDA text of a plan."""
        return make_module(plan, linking, annotate).source

    def compile(self, plan: Plan, linking: Linking) -> CudaProgram:
        """The module of a plan, compiled and loaded."""
        return CudaProgram(plan, make_module(plan, linking, annotate=False), self.device)


class CudaOnHost(CudaTransformer):
    """Runs CUDA's kernels on the CPU: slow, and the same as on a GPU. For tests."""

    target = dataclasses.replace(TARGET, name="cuda-on-host")

    def __init__(self) -> None:
        super().__init__(host.DEVICE)

    @classmethod
    def unavailable(cls) -> str | None:
        """None where there is a C++ compiler; else how to get one."""
        return None if host.find_compiler() is not None else host.CURE
